"""Timestamps beyond the library's own answers: the Postgres door, JSON for clients, a release, a first draft."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import understudy as us
from same_answers import check_same
from served import WITH_POSTGRES, config, serving, tokens
from understudy.client.decode import answer_from_plain, is_of_sql, sql_answer_from_plain
from understudy.declaration.file import read
from understudy.domain import instants
from understudy.domain.plain import domain_from_plain
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.server.described import table_as_plain
from understudy.server.replies import answer_as_plain, encoded
from understudy.sql.compiled import Estimate
from understudy.table.draft_file import write

FIRST, LAST, ROWS = dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 2, 23, 59, 59), 3_000
TEXT = f"""\
understudy: 1
name: people
source: people.parquet
budget: {{epsilon: 60, delta: 1e-6}}
attributes:
  opened: {{type: timestamp, bounds: ['{FIRST}', '{LAST}'], width: 21600, null: true}}
  sex: {{type: category, values: [F, M]}}
"""


def frame() -> pd.DataFrame:
    draw = np.random.default_rng(4)
    opened = pd.Series(pd.Timestamp(FIRST) + pd.to_timedelta(draw.integers(0, 2 * 86_400, ROWS), unit="s"))
    opened[draw.random(ROWS) < 0.05] = pd.NaT
    return pd.DataFrame({"opened": opened, "sex": draw.choice(["F", "M"], ROWS)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("moments")
    frame().to_parquet(made / "people.parquet")
    (made / "understudy.yml").write_text(TEXT)
    return made


@pytest.fixture(scope="module")
def project(folder: Path) -> Iterator[us.Project]:
    with us.open(folder / "understudy.yml") as opened:
        yield opened


# ---- the Postgres door


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    made = tmp_path_factory.mktemp("door")
    frame().to_parquet(made / "people.parquet")
    (made / "understudy.yml").write_text(TEXT)
    configured = config(made, listen=WITH_POSTGRES)
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        port = service.addresses["postgres"].port
        named = f"host=127.0.0.1 port={port} user=ada password={token} dbname=understudy sslmode=disable"
        with psycopg.connect(named, autocommit=True) as connection:
            connection.execute("SET understudy.rho = '0.05'")
            yield connection


@pytest.mark.parametrize("binary", [False, True])
def test_moments_are_moments_to_a_driver(door: psycopg.Connection, *, binary: bool) -> None:
    cursor = door.cursor(binary=binary)
    text = "SELECT date_trunc('day', opened) AS day, count(*) AS n FROM people GROUP BY 1 ORDER BY 1"
    rows = cursor.execute(text).fetchall()
    assert (
        next(column.type_code for column in cursor.description or ()) == 1114
    )  # timestamp without time zone
    assert [row[0] for row in rows if row[0] is not None] == [FIRST, dt.datetime(2024, 3, 2)]
    opened = frame().opened
    for day, count in rows:
        true = opened.isna().sum() if day is None else (opened.dt.normalize() == day).sum()
        assert abs(float(count) - true) < 100


@pytest.mark.parametrize("binary", [False, True])
def test_a_parameter_cuts_at_any_second_and_a_median_is_a_moment(
    door: psycopg.Connection, *, binary: bool
) -> None:
    cursor = door.cursor(binary=binary)
    at = dt.datetime(2024, 3, 1, 9, 30, 15)
    counted = cursor.execute("SELECT count(*) AS n FROM people WHERE opened < %s", (at,)).fetchone()
    assert counted is not None
    assert abs(float(counted[0]) - (frame().opened < at).sum()) < 100
    middle = cursor.execute("SELECT median(opened) AS m FROM people").fetchone()
    assert middle is not None
    assert isinstance(middle[0], dt.datetime)
    assert FIRST < middle[0] < LAST


def test_the_catalog_tells_the_type(door: psycopg.Connection) -> None:
    text = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'"
    assert ("opened", "timestamp without time zone") in door.execute(text).fetchall()


# ---- what a client reads

QUESTIONS = (
    "count by opened",
    "count opened >= '2024-03-01 09:30:15' by sex",
    "SELECT hour(opened) AS h, count(*) AS n FROM people GROUP BY 1",
    "SELECT date_trunc('day', opened) AS day, sex, count(*) AS n FROM people GROUP BY 1, 2",
    "SELECT opened, count(*) AS n FROM people GROUP BY opened",
    "SELECT sex, median(opened) AS m FROM people GROUP BY sex",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_with_moments_is_the_same_after_its_way_through_json(project: us.Project, question: str):
    answer = project.ask(question, rho=0.01)
    plain = json.loads(encoded(answer_as_plain(answer, project.ledger.budget)))
    if is_of_sql(plain):
        found = sql_answer_from_plain(plain, question)
        moments = [cell for row in found.cells for cell in row if isinstance(cell, dt.datetime)]
        moments += [cell.value for row in found.cells for cell in row if isinstance(cell, Estimate)]
        typed = {column.type for column in found.columns}
        assert ("timestamp" in typed) == any(isinstance(one, dt.datetime) for one in moments)
        assert found.cells == answer.cells
    else:
        told = domain_from_plain(json.loads(encoded(table_as_plain(project)))["attributes"])
        found = answer_from_plain(plain, question, told)
    check_same(answer, found)


# ---- a release


def test_a_release_with_moments_is_written_and_read_back(project: us.Project, tmp_path: Path):
    made = release(project, us.marginals(2), epsilon=4, delta=1e-7)
    made.save(tmp_path / "out")
    rows = parquet.read_table(tmp_path / "out" / "synthetic.parquet")
    assert pa.types.is_timestamp(rows.schema.field("opened").type)
    moments = [one.replace(tzinfo=None) for one in rows["opened"].to_pylist() if one is not None]
    assert FIRST <= min(moments) < max(moments) <= LAST
    assert len({one.time() for one in moments}) > 100  # inside their bins, not at the edges alone
    read_back = Release.load(tmp_path / "out")
    assert read_back.domain == made.domain == project.domain
    for question in (*QUESTIONS[:2], *QUESTIONS[3:]):
        ours, theirs = made.answer(question), read_back.answer(question)
        assert theirs.as_dict() == ours.as_dict()
    late = read_back.answer("count opened >= '2024-03-02 00:00:00'")
    assert abs(float(late.value) - (frame().opened >= "2024-03-02").sum()) <= 10 * float(late.error)


# ---- a first draft


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_draft_declares_moments_where_values_have_a_time_of_day(tmp_path: Path, ending: str):
    times = pd.date_range("2024-01-03 07:15", periods=300, freq="7h13min")
    columns = {
        "typed": times.where(np.arange(300) != 3),
        "iso": times.strftime("%Y-%m-%d %H:%M:%S"),
        "british": times.strftime("%d/%m/%Y %H:%M"),
        "years": pd.date_range("1999-03-04 01:00", periods=300, freq="31D"),
        "hour": pd.date_range("2024-02-29 09:00", periods=300, freq="11s"),
        "midnight": times.normalize(),
        "day": times.strftime("%Y-%m-%d"),
        "stray": [f"2024-01-0{1 + i % 9} {'09:30:00' if i == 7 else '00:00:00'}" for i in range(300)],
    }
    data = pd.DataFrame(columns)
    path = tmp_path / f"t.{ending}"
    data.to_parquet(path) if ending == "parquet" else data.to_csv(path, index=False)
    drafted = write(path, tmp_path / "understudy.yml")
    domain = read(tmp_path / "understudy.yml").domain
    kinds = {attribute.name: attribute.kind for attribute in domain}
    days = ("midnight", "day", "stray")
    assert kinds == {name: "date" if name in days else "timestamp" for name in columns}
    assert {note.name: note.kind for note in drafted.columns} == kinds
    for name in ("typed", "iso", "british", "years", "hour"):
        assert 1 < domain[name].proper_size <= 60
    with us.open(
        tmp_path / "understudy.yml"
    ) as opened:  # every value lies in a cell of its own, and not beyond
        for name in ("typed", "iso", "british"):
            inside = opened.curator._truth.count(opened.domain.clique([name]))[: domain[name].proper_size]
            assert inside.sum() == 300 - (name == "typed")
            assert (inside[:-1] > 0).all()


@pytest.mark.parametrize(
    ("times", "low", "high"),
    [
        (["2023-01-01 05:00:00", "9999-12-31 00:00:00"], "2023-01-01", instants.LAST),
        (["2023-01-01 05:00:00", "9999-12-31 23:59:59"], "2023-01-01", instants.LAST),
        (["2023-01-01 05:00:00", "9999-02-03 04:05:06"], "2023-01-01", instants.LAST),
        (["2023-01-01 05:00:00", "9998-12-31 23:59:59"], "2023-01-01", "9999-01-01"),
        (["9999-12-31 00:01:00", "9999-12-31 23:59:59"], "9999-12-30", instants.LAST),
        (["9999-12-28 07:00:00", "9999-12-29 08:00:00"], "9999-12-28", "9999-12-30"),
        (["0001-01-01 05:00:00", "2023-01-01 05:00:00"], "0001-01-02", "2024-01-01"),
        (["0001-01-01 05:00:00", "0001-01-01 06:00:00"], "0001-01-02", "0001-01-03"),
    ],
)
def test_a_draft_at_an_end_of_the_calendar_is_a_declaration(tmp_path: Path, times, low, high):
    """`9999-12-31` stands for "no end" in many tables; edges lie a day within the calendar."""
    pd.DataFrame({"until": times * 50}).to_csv(tmp_path / "t.csv", index=False)
    write(tmp_path / "t.csv", tmp_path / "understudy.yml")
    until = read(tmp_path / "understudy.yml").domain["until"]
    assert until.kind == "timestamp"
    assert [until.starts[0], until.upper] == [dt.datetime.fromisoformat(str(end)) for end in (low, high)]
    with us.open(tmp_path / "understudy.yml") as opened:  # values beyond the edges lie in the outermost bins
        counted = opened.curator._truth.count(opened.domain.clique(["until"]))
        assert counted[: until.proper_size].sum() == 100


def test_a_draft_of_days_from_the_first_year_on_is_a_declaration(tmp_path: Path):
    pd.DataFrame({"day": ["0001-01-01", "2023-01-01"] * 50}).to_csv(tmp_path / "t.csv", index=False)
    write(tmp_path / "t.csv", tmp_path / "understudy.yml")
    day = read(tmp_path / "understudy.yml").domain["day"]
    assert (day.kind, day.starts[0]) == ("date", dt.date(1, 1, 1))


def test_a_frame_whose_cells_are_inferred_has_moments():
    times = pd.date_range("2024-01-03 07:15", periods=300, freq="7h13min")
    with pytest.warns(UserWarning, match="read off the data"):
        declared = us.declare(pd.DataFrame({"opened": times}), infer=True, epsilon=1)
    assert declared.domain["opened"].kind == "timestamp"
    declared.close()
