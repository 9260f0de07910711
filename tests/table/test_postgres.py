"""What is special about Postgres: transactions, lost connections, secrets, and types that no file has."""

from __future__ import annotations

import datetime as dt
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from understudy.curator.curator import Curator
from understudy.declaration.declaration import Counting, Declaration, SourceSpec, Unit
from understudy.domain.attribute import Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import SourceChangedError, SourceError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.query.marginal import Marginal
from understudy.table import postgres as postgres_module
from understudy.table.source import Source, open_source
from understudy.table.truth import Truth

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

DOMAIN = Domain((Bins.integers("x", 0, 9), Bins.integers("y", 0, 4)))


@pytest.fixture
def table(server, request):
    """A table of the test's own with 1,000 rows, and a connection of its owner."""
    name = f"t{abs(hash(request.node.nodeid))}"
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute(
            f"CREATE TABLE {name} AS SELECT i % 10 AS x, i % 5 AS y, i AS id FROM generate_series(0, 999) i"
        )
        yield name, owner


@pytest.fixture
def source(server, table) -> Source:
    return open_source(SourceSpec(server.url, table[0]), base=Path())


def test_a_look_cannot_write(source):
    with source.engine.look() as view, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        view._connection.execute("CREATE TABLE footprint (x int)")


def test_a_look_sees_one_state_of_the_table(source, table):
    """Rows that come between two GROUP BYs of one look are not seen; the next look sees them."""
    name, owner = table
    with source.look() as look:
        before = look.cells(DOMAIN, ("x",))
        owner.execute(f"INSERT INTO {name} SELECT 0, 0, 0 FROM generate_series(1, 50)")
        np.testing.assert_array_equal(look.cells(DOMAIN, ("x",)), before)
        assert look.cells(DOMAIN, ("y",)).sum() == before.sum() == 1000
    assert source.rows(DOMAIN) == 1050


def test_group_bys_are_at_most_the_cover_and_none_is_issued_when_streaming(source, monkeypatch):
    issued: list[str] = []
    plain = postgres_module._sql
    monkeypatch.setattr(
        postgres_module, "_sql", lambda expression: issued.append(plain(expression)) or issued[-1]
    )
    Truth(replace(source, count=Counting.INSIDE), DOMAIN).counts([("x",), ("y",), ("x", "y"), ()])
    assert sum("GROUP BY" in sql for sql in issued) == 1
    issued.clear()
    Truth(replace(source, count=Counting.STREAM), DOMAIN).counts([("x",), ("y",)])
    assert not any("GROUP BY" in sql for sql in issued)


def curator(source: Source) -> Curator:
    declaration = Declaration(
        name="people", source=SourceSpec("unused"), domain=DOMAIN, budget=Budget.of(Fraction(1), Fraction(0))
    )
    return Curator(Truth(source, DOMAIN), MemoryLedger(declaration.budget), declaration)


@pytest.mark.parametrize("count", [Counting.INSIDE, Counting.STREAM])
def test_a_connection_killed_in_the_middle_keeps_the_debit(server, table, count):
    """Its backend is ended while it reads: the error quotes nothing, the debit stays, the next look works."""
    name, owner = table
    owner.execute(f"CREATE VIEW slow_{name} AS SELECT x, y FROM {name}")
    slow = open_source(SourceSpec(server.url, f"slow_{name}", count=count), base=Path())
    guarded = curator(slow)
    _ = guarded.rows  # public here: not part of the look
    owner.execute(f"CREATE OR REPLACE VIEW slow_{name} AS SELECT x, y FROM {name}, pg_sleep(0.1 + 0 * x)")
    question = Marginal(DOMAIN, ("x", "y"))

    def kill() -> None:
        with psycopg.connect(server.url, autocommit=True) as other:
            for _ in range(600):
                killed = other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'understudy' "
                    "AND state = 'active' AND wait_event = 'PgSleep'"
                ).fetchall()
                if killed:
                    return
                other.execute("SELECT pg_sleep(0.01)")

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SourceError) as lost:
        guarded.measure(question, epsilon=Fraction(1, 10), request="r1")
    killer.join()
    assert name not in str(lost.value)
    assert "terminat" not in str(lost.value)
    assert lost.value.__cause__ is None
    assert guarded.ledger.spent.units == Budget.of(Fraction(1, 10), Fraction(0)).cap.units
    owner.execute(f"CREATE OR REPLACE VIEW slow_{name} AS SELECT x, y FROM {name}")
    answer = guarded.measure(question, epsilon=Fraction(1, 10), request="r1")
    assert answer.value.shape == (10, 5)
    assert guarded.ledger.spent.units == Budget.of(Fraction(1, 10), Fraction(0)).cap.units


def test_a_statement_that_takes_too_long_is_ended(server, table):
    name, owner = table
    owner.execute(f"CREATE VIEW slow_{name} AS SELECT x, y FROM {name}, pg_sleep(30)")
    slow = open_source(SourceSpec(server.url, f"slow_{name}", time_limit=1), base=Path())
    with pytest.raises(SourceError, match="QueryCanceled"):
        slow.rows(DOMAIN)


def test_a_server_that_is_away_is_found_before_any_charge(source, monkeypatch):
    guarded = curator(source)
    _ = guarded.rows

    def away(*_: object) -> None:
        raise psycopg.OperationalError("connection refused: SECRET")

    monkeypatch.setattr(postgres_module._SourceAddress, "connect", away)
    with pytest.raises(SourceError) as refused:
        guarded.measure(Marginal(DOMAIN, ("x",)), epsilon=Fraction(1, 10))
    assert "SECRET" not in str(refused.value)
    assert guarded.ledger.spent.units == 0


def test_another_table_of_the_same_name_is_noticed(source, table):
    name, owner = table
    source.check_unchanged()
    owner.execute(f"ALTER TABLE {name} ALTER COLUMN x TYPE bigint")
    with pytest.raises(SourceChangedError):
        source.check_unchanged()
    with pytest.raises(SourceChangedError):
        source.rows(DOMAIN)
    owner.execute(f"DROP TABLE {name}; CREATE TABLE {name} (x int, y int, id int)")
    with pytest.raises(SourceChangedError):
        source.rows(DOMAIN)
    owner.execute(f"DROP TABLE {name}")
    with pytest.raises(SourceChangedError):
        source.check_unchanged()


@pytest.mark.parametrize("declared", ["password_variable", "password_file", "PGPASSWORD"])
def test_a_password_comes_from_where_it_is_kept(server, table, tmp_path, monkeypatch, declared):
    """A role that only a password lets in; the server trusts everyone else."""
    name, owner = table
    role, secret = f"reader_{declared.lower()}", "open'Sesame"
    owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'open''Sesame'; GRANT SELECT ON {name} TO {role}")
    seen: list[dict] = []
    plain = psycopg.connect
    monkeypatch.setattr(
        psycopg, "connect", lambda *args, **kwargs: seen.append(kwargs) or plain(*args, **kwargs)
    )
    url = server.url.replace("understudy@", f"{role}@")
    kept: dict[str, str] = {}
    if declared == "password_variable":
        monkeypatch.setenv("CLINIC_PASSWORD", secret)
        kept = {"password_variable": "CLINIC_PASSWORD"}
    elif declared == "password_file":
        (tmp_path / "secret").write_text(secret + "\n")
        kept = {"password_file": "secret"}
    elif declared == "PGPASSWORD":
        monkeypatch.setenv("PGPASSWORD", secret)
    opened = open_source(SourceSpec(url, name, **kept), base=tmp_path)
    assert opened.rows(DOMAIN) == 1000
    assert secret not in repr(opened)
    assert [call.get("password") for call in seen] == [secret if kept else None] * len(seen)
    owner.execute(f"REVOKE SELECT ON {name} FROM {role}")
    with pytest.raises(SourceError, match="InsufficientPrivilege") as denied:
        opened.rows(DOMAIN)
    assert name not in str(denied.value)
    owner.execute(f"DROP ROLE {role}")


def test_missing_secrets_tables_and_servers_say_so(server, table, tmp_path, monkeypatch):
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(SourceError, match="NOWHERE is not set"):
        open_source(SourceSpec(server.url, table[0], password_variable="NOWHERE"), base=tmp_path)
    with pytest.raises(SourceError, match="password file"):
        open_source(SourceSpec(server.url, table[0], password_file="none"), base=tmp_path)
    with pytest.raises(SourceError, match="no table 'absent'"):
        open_source(SourceSpec(server.url, "absent"), base=tmp_path)
    with pytest.raises(SourceError, match="which with `table:`"):
        open_source(SourceSpec(server.url), base=tmp_path)
    refusals = {
        "postgresql://me:hunter2@127.0.0.1:1/x": "no connection to 127.0.0.1:1;",
        server.url.replace(
            "/postgres", "/hunter2"
        ): f"a server answers at 127.0.0.1:{server.port} and refuses",
        server.url.replace("understudy@", "hunter2@"): "check database, user, password",
        "postgresql://me@127.0.0.1/x?hunter2=1": "no URL that Postgres understands",
        "postgresql:///hunter2?service=hunter2": "no connection to the server that the environment names",
    }
    for url, told in refusals.items():
        with pytest.raises(SourceError, match=told) as refused:
            open_source(SourceSpec(url, "t"), base=tmp_path)
        assert "hunter2" not in str(refused.value)


def test_types_that_no_file_has(server, table):
    """Decimals without limits, infinite days, enumerations, padded characters: none may stop a look."""
    name, owner = table
    owner.execute(f"CREATE TYPE mood_{name} AS ENUM ('sad', 'ok', 'it''s')")
    owner.execute(
        f"CREATE TABLE odd_{name} "
        f"(id int, amount numeric, day date, at timestamptz, mood mood_{name}, code char(5))"
    )
    rows = [
        ("NaN", "infinity", "infinity", "sad", "a"), ("Infinity", "-infinity", "-infinity", "ok", "ab"),
        ("-Infinity", "4714-11-24 BC", "2000-01-01 23:30-05", "it's", " a"),
        ("1e400", "5874897-12-31", None, None, None),
        ("-1e400", None, "294276-12-31", "ok", ""), ("1e-400", "2000-01-01", "1999-12-31 23:59:59+00", "sad", "a"),
        ("0.1", "1999-12-31", "2000-01-02", "sad", "zz"), (None, "2000-01-02", "2000-01-01", "sad", "a"),
    ]  # fmt: skip
    for i, row in enumerate(rows):
        owner.execute(f"INSERT INTO odd_{name} VALUES (%s, %s, %s, %s, %s, %s)", (i, *row))
    edges = (dt.date(2000, 1, 1), dt.date(2000, 1, 2))
    domain = Domain(
        (
            Bins.integers("id", 0, len(rows) - 1),
            Bins(name="amount", starts=(-1.0, 0.0, 0.1), upper=1.0, null=True),
            Bins(name="day", starts=edges, upper=edges[-1], outside=Outside.OTHER, null=True),
            Bins(name="at", starts=edges, upper=edges[-1], outside=Outside.OTHER, null=True),
            Categories(name="mood", values=("sad", "it's"), null=True),
            Categories(name="code", values=("a", "ab", ""), null=True),
        )
    )
    opened = open_source(SourceSpec(server.url, f"odd_{name}"), base=Path())
    truth = Truth(opened, domain)
    tables = truth.counts([("id", other) for other in domain.names[1:]])
    found = {other: tables["id", other].argmax(axis=1).tolist() for other in domain.names[1:]}
    assert found["amount"] == [3, 2, 0, 2, 0, 1, 2, 3]
    assert found["day"] == [2, 2, 2, 2, 3, 0, 2, 1]
    assert found["at"] == [2, 2, 1, 3, 2, 2, 1, 0]
    assert found["mood"] == [0, 2, 1, 3, 2, 0, 0, 0]
    assert found["code"] == [0, 1, 3, 4, 2, 0, 3, 0]
    truth.source.read_through(domain)


def test_a_column_that_the_engine_cannot_encode_is_refused_before_any_charge(server, table):
    name, owner = table
    owner.execute(f"CREATE TABLE cash_{name} (x money)")
    opened = open_source(SourceSpec(server.url, f"cash_{name}"), base=Path())
    with pytest.raises(SourceError, match="cannot be put to this table"):
        Truth(opened, Domain((Bins.between("x", [0, 5, 10]),)))


def test_long_names_and_many_attributes(server, table):
    """Names that differ only beyond what Postgres keeps of one; more codes than one integer holds."""
    name, owner = table
    columns = [f"c{i}" for i in range(40)]
    owner.execute(
        f"CREATE TABLE wide_{name} AS SELECT {', '.join(f'{i} % 7 AS {c}' for i, c in enumerate(columns))}"
    )
    long = "x" * 70
    attributes = tuple(
        replace(Bins.integers(f"{long}{i}", 0, 6), column=column) for i, column in enumerate(columns)
    )
    domain = Domain(attributes)
    opened = open_source(SourceSpec(server.url, f"wide_{name}"), base=Path())
    (batch,) = opened.batches(domain, domain.names)
    assert [int(batch[name][0]) for name in domain.names] == [i % 7 for i in range(40)]


def test_an_empty_table(server, table):
    name, owner = table
    owner.execute(f"DELETE FROM {name}")
    for count in Counting:
        truth = Truth(
            open_source(SourceSpec(server.url, name, count=count), base=Path()), DOMAIN, Unit("id", 1)
        )
        assert truth.count(("x", "y")).sum() == truth.rows == 0


def test_text_units_that_cannot_be_normalised_are_refused_before_any_charge(server):
    """Only a database in UTF-8 normalises text, and a plan alone does not show that another one does not."""
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS latin")
        owner.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    parts = psycopg.conninfo.conninfo_to_dict(server.url)
    url = f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/latin"
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE TABLE t AS SELECT i % 10 AS x, i % 5 AS y, i AS id, 'p' || i AS who "
                      "FROM generate_series(0, 99) i")  # fmt: skip
    latin = open_source(SourceSpec(url, "t"), base=Path())
    latin.check(DOMAIN)
    latin.check(DOMAIN, Unit(column="id", max_rows=2, key="k"))
    with pytest.raises(SourceError, match="database in UTF-8"):
        latin.check(DOMAIN, Unit(column="who", max_rows=2, key="k"))
