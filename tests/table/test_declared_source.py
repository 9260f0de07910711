"""The source in a declaration: what may be said, what is refused, and that secrets stay outside."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import ibis
import pytest

from understudy.declaration.declaration import Counting, SourceSpec, Unit
from understudy.declaration.file import parse
from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError, ParameterError, SourceError
from understudy.table.portable_dialect import PORTABLE
from understudy.table.source import open_source
from understudy.table.truth import Truth

REST = """
understudy: 1
name: people
budget: {epsilon: 1}
attributes:
  age: {type: integer, bounds: [0, 9]}
"""


def declared(source: str) -> SourceSpec:
    return parse(REST + source).source


def test_a_path_a_url_and_a_mapping():
    assert declared("source: people.csv") == SourceSpec("people.csv")
    assert declared("source: people.duckdb\ntable: t") == SourceSpec("people.duckdb", "t")
    assert declared("source: {path: people.csv, delimiter: tab}") == SourceSpec("people.csv", delimiter="\t")
    assert declared("source: postgresql://ada@db/clinic\ntable: visits") == SourceSpec(
        "postgresql://ada@db/clinic", "visits"
    )
    full = """
source:
  url: postgresql://ada@db.example/clinic?sslmode=verify-full
  schema: public
  table: visits
  password_variable: CLINIC_PASSWORD
  count: inside
  time_limit: 60
"""
    assert declared(full) == SourceSpec(
        "postgresql://ada@db.example/clinic?sslmode=verify-full",
        "visits",
        schema="public",
        password_variable="CLINIC_PASSWORD",
        count=Counting.INSIDE,
        time_limit=60,
    )
    assert declared("source: {url: spark, path: people/*.parquet}") == SourceSpec(
        "spark", path="people/*.parquet"
    )
    assert declared("source: {url: 'spark:local[2]', table: p}") == SourceSpec("spark:local[2]", "p")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db/clinic",
        "postgresql://ada@db/clinic?password=hunter2",
        "postgresql://ada@db/clinic?PASSWORD=hunter2",
        "postgresql://ada@db/clinic?sslpassword=hunter2",
        "postgres://ada@db/clinic?passfile=hunter2",
        "sc://cluster:15002/;token=hunter2",
        "snowflake://ada:hunter2@account/db",
    ],
)
@pytest.mark.parametrize("form", ["source: '{}'\ntable: t", "source: {{url: '{}', table: t}}"])
def test_a_secret_in_the_declaration_is_refused_and_not_repeated(url, form):
    with pytest.raises(DeclarationError, match="password does not belong") as refused:
        declared(form.format(url))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("source: {table: t}", "'url' or 'path' is missing"),
        ("source: {url: spark, tabel: t}", "Did you mean 'table'"),
        ("source: {url: spark, table: t}\ntable: t", "stands here and in 'source'"),
        ("source: {url: spark, table: t, count: outside}", "auto, inside, stream"),
        ("source: {url: spark, table: t, time_limit: 0}", "time limit"),
        ("source: {url: spark, password_file: a, password_variable: b}", "not in both"),
        ("source: [a]", "single value"),
        ("source: 'postgresql://[db/clinic'", "not a URL"),
    ],
)
def test_contradictions_are_refused(source, hint):
    with pytest.raises(DeclarationError, match=hint):
        declared(source)


def test_time_limits_are_bounded():
    with pytest.raises(ParameterError):
        SourceSpec("spark", time_limit=10**9)


def test_any_other_backend_of_ibis_counts_alike(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT CASE WHEN i % 7 = 0 THEN NULL ELSE i % 12 END AS age, "
            "i / 9.0 AS height, 'd' || (i % 4) AS district, i % 3 = 0 AS smokes, i // 5 AS person, '5' AS written "
            "FROM range(200) r(i)"
        )
    domain = Domain(
        (
            Bins.between("age", [0, 3, 10], null=True),
            Bins.between("height", [0.5, 3.25, 20.0]),
            Categories(name="district", values=("d0", "d1", "d2")),
            Boolean(name="smokes"),
        )
    )
    files = Truth(open_source(SourceSpec(str(path)), base=tmp_path), domain)
    cliques = [("age", "district"), ("height",), ("age", "smokes")]
    wanted = files.counts(cliques)
    del files
    url = f"duckdb://{path}?read_only=True"
    for count in Counting:
        source = open_source(SourceSpec(url, "people", count=count), base=tmp_path)
        assert source.engine.remote
        found = Truth(source, domain).counts(cliques)
        assert all((found[clique] == wanted[clique]).all() for clique in cliques)
        source.read_through(domain)
        with pytest.raises(SourceError, match="text as numbers"):
            source.check(Domain((Bins.integers("written", 0, 9),)))
        source.check(domain, Unit("written", 1))
        unknown = replace(source, engine=replace(source.engine, dialect=PORTABLE))
        unknown.check(domain, Unit("person", 1))
        with pytest.raises(SourceError, match="declare a `unit` column of whole numbers"):
            unknown.check(domain, Unit("written", 1))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://ada@db/clinic", "pip install 'ibis-framework[mysql]'"),
        ("oracle://ada@db/clinic", "pip install 'ibis-framework[oracle]'"),
        ("imaginary://ada@db/clinic", "the driver that reads imaginary:// is not installed; see which"),
    ],
)
def test_a_driver_that_is_not_installed_is_named(url, told, tmp_path, monkeypatch):
    def lacks(url: str) -> None:
        raise ImportError("no such module")

    monkeypatch.setattr(ibis, "connect", lacks)
    with pytest.raises(SourceError) as refused:
        open_source(SourceSpec(url, "t"), base=tmp_path)
    assert told in str(refused.value)


def test_a_url_of_no_engine_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"no engine reads imaginary://; Ibis has .*duckdb"):
        open_source(SourceSpec("imaginary://ada@db/clinic", "t"), base=tmp_path)


def test_a_url_that_nobody_answers_to_does_not_show_its_password(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")

    def refuses(url: str) -> None:
        assert url == "mysql://ada:hunter2@db/clinic"
        raise OSError(f"cannot connect to {url}")

    monkeypatch.setattr(ibis, "connect", refuses)
    with pytest.raises(SourceError) as refused:
        open_source(SourceSpec("mysql://ada@db/clinic", "t", password_variable="SECRET"), base=tmp_path)
    assert "hunter2" not in str(refused.value)
