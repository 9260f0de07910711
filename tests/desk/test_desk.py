"""A desk: results in Postgres' types, limits, and a process that is replaced when a statement ends it."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.desk.desk import Desk, DeskDatabase, DeskLimits
from understudy.desk.postgres_type import TYPES, TYPES_BY_OID, type_of_duck
from understudy.desk.rows import RowColumn, Rows, recast
from understudy.errors import ClosedError, ParameterError, StatementError

SOLD = Rows.of([("shop", "text"), ("sold", "float8")], [("a", 1.0), ("b", 3.0), (None, None)])


def reason(desk: Desk, sql: str, **given: Rows) -> str:
    with pytest.raises(StatementError) as refused:
        desk.run(sql, given)
    assert refused.value.problem
    assert refused.value.remedy
    return refused.value.reason


# ---- results


def test_a_statement_is_run_on_the_given_rows(desk):
    found = desk.run(
        "SELECT shop, sold / sum(sold) OVER () AS share FROM t WHERE shop IS NOT NULL", {"t": SOLD}
    )
    assert found.columns == (RowColumn.of("shop", "text"), RowColumn.of("share", "float8"))
    assert found.rows == [("a", 0.25), ("b", 0.75)]
    tree = sqlglot.parse_one("SELECT count(*) AS n FROM t", read="duckdb")
    assert desk.run(tree, {"t": SOLD}).rows == [(3,)]


def test_values_of_every_type_go_in_and_come_out(desk):
    values = {
        "bool": [True, None], "int2": [-3, 7], "int4": [2**31 - 1, None], "int8": [-(2**62), 0],
        "float4": [0.5, None], "float8": [0.1, math.inf], "text": ["it's \"\n\0é", ""], "name": ["x", None],
        "oid": [2**32 - 1, 0], "date": [dt.date(2020, 2, 29), None], "time": [dt.time(1, 2, 3), None],
        "timestamp": [dt.datetime(2020, 1, 2, 3, 4, 5, 6), None], "numeric": [Decimal("1.250000000"), None],
        "_int4": [[1, None, 3], []], "_text": [["a", "b,{}"], None], "int2vector": [[1, 2], []],
        "_date": [[dt.date(2020, 1, 1)], None],
    }  # fmt: skip
    held = Rows.of([(f"c_{kind}", kind) for kind in values], list(zip(*values.values(), strict=True)))
    found = desk.run("SELECT * FROM t", {"t": held})
    assert found.rows == held.rows
    assert found.names == held.names


def test_types_of_results_are_those_of_postgres(desk):
    found = desk.run(
        "SELECT now() AS a, INTERVAL 90 MINUTE AS b, 1.5 AS c, [1, 2] AS d, count(*) AS e, sum(1) AS f, "
        "DATE '2020-01-01' AS g, {'x': 1} AS h, 'x' AS i, [DATE '2020-01-01'] AS j, sum(2.5) AS k"
    )
    kinds = [
        "timestamptz",
        "interval",
        "numeric",
        "_int4",
        "int8",
        "numeric",
        "date",
        "text",
        "text",
        "_date",
        "numeric",
    ]
    assert [column.type.name for column in found.columns] == kinds
    (row,) = found.rows
    assert row[0].tzinfo is not None
    assert row[1] == "01:30:00"
    assert row[2:7] == (Decimal("1.5"), [1, 2], 1, Decimal(1), dt.date(2020, 1, 1))


def test_the_numbers_of_types_are_unique_and_arrays_belong_to_their_elements():
    assert len(TYPES) == len(TYPES_BY_OID)
    for kind in TYPES.values():
        if kind.array:
            assert TYPES_BY_OID[kind.array].is_array
    assert type_of_duck("DECIMAL(18,3)").name == "numeric"
    assert type_of_duck("VARCHAR[][]").name == "_text"
    assert type_of_duck("STRUCT(a INTEGER)").name == "text"


def test_columns_are_described_without_running_the_statement(desk):
    sql = "SELECT count(*) AS n, min(g) AS low FROM generate_series(1, 1000000000000) s(g)"
    assert desk.describe(sql) == (RowColumn.of("n", "int8"), RowColumn.of("low", "int8"))


@given(rows=st.lists(st.tuples(st.floats(), st.text(st.characters(codec="utf-8"))), max_size=20))
@settings(max_examples=25)
def test_any_number_and_any_text_survive(desk, rows):
    found = desk.run("SELECT x, s FROM t", {"t": Rows.of([("x", "float8"), ("s", "text")], rows)})
    assert [repr(x) for x, _ in found.rows] == [repr(x) for x, _ in rows]
    assert [s for _, s in found.rows] == [s for _, s in rows]


def test_rows_are_recast_to_other_types():
    held = Rows.of(
        [("a", "numeric"), ("b", "int4"), ("c", "date")], [(Decimal(3), 5, dt.date(2020, 1, 1)), (None,) * 3]
    )
    found = recast(held, Rows.of([("n", "int8"), ("t", "text"), ("c", "date")]).columns)
    assert found.rows == [(3, "5", dt.date(2020, 1, 1)), (None, None, None)]
    assert isinstance(found.rows[0][0], int)


# ---- refusals


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEC 1", "syntax"),
        ("", "not-select"),
        ("SELECT 1; SELECT 2", "not-select"),
        ("SELECT shopp FROM t", "undefined-column"),
        ("SELECT x.shop FROM t", "undefined-table"),
        ("SELECT * FROM u", "undefined-table"),
        ("SELECT sum(shop) FROM t", "undefined-function"),
        ("SELECT shop, sum(sold) FROM t", "grouping"),
        ("SELECT a.shop FROM t a, t b WHERE shop = 'a'", "ambiguous"),
        ("SELECT 'x'::INTEGER", "value"),
        ("SELECT 1::nosuch", "undefined-type"),
        ("SELECT $1", "syntax"),
        ("DESCRIBE t", "not-select"),
        ("SELECT * FROM (SHOW TABLES)", "not-select"),
    ],
)
def test_a_statement_that_cannot_be_run_says_why(desk, sql, why):
    assert reason(desk, sql, t=SOLD) == why


def test_a_misspelt_column_is_answered_with_the_near_one(desk):
    with pytest.raises(StatementError) as refused:
        desk.run("SELECT solt FROM t", {"t": SOLD})
    assert refused.value.suggestions == ("sold",)
    assert "'sold'" in refused.value.remedy


def test_no_word_of_the_engine_is_told(desk):
    for sql in ("SELECT 'x'::INTEGER", "SELECT sum(shop) FROM t", "SELECT * FROM read_csv('/etc/passwd')"):
        with pytest.raises(StatementError) as refused:
            desk.run(sql, {"t": SOLD})
        told = f"{refused.value} {refused.value.detail}"
        assert not any(
            word in told for word in ("DuckDB", "Binder", "Conversion", "LINE", "INT32", "/", "Candidate")
        )


# ---- limits


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT count(*) FROM generate_series(1, 1000000000000)", "time"),
        ("WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT max(i) FROM r", "time"),
        ("SELECT * FROM generate_series(1, 50001)", "size"),
        ("SELECT repeat('x', 1000000000)", "size"),
        ("SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 2000)", "size"),
        ("SELECT len(range(1000000000))", "size"),
        (f"SELECT {'(' * 10_000}1{')' * 10_000}", "size"),
        (f"SELECT {'+'.join(['1'] * 20_000)}", "size"),
        (f"SELECT {'NOT ' * 5_000} true", "size"),
    ],
)
def test_what_takes_too_much_is_refused_and_the_next_statement_works(desk, sql, why):
    assert reason(desk, sql) == why
    assert desk.run("SELECT 1").rows == [(1,)]


def test_nested_definitions_do_not_blow_up(desk):
    """Each common table expression that is materialised stands in the tree of every later one."""
    parts = ", ".join(f"a{i} AS MATERIALIZED (SELECT * FROM a{i - 1})" for i in range(1, 20))
    sql = f"WITH a0 AS MATERIALIZED (SELECT 1 AS x), {parts} SELECT x FROM a19"
    assert desk.run(sql).rows == [(1,)]


def test_fewer_rows_can_be_allowed(desk):
    assert len(desk.run("SELECT * FROM range(10)", rows=10).rows) == 10
    with pytest.raises(StatementError, match="more than 9 rows"):
        desk.run("SELECT * FROM range(10)", rows=9)


def test_limits_that_make_no_sense_are_refused():
    for limits in ({"seconds": 0}, {"rows": 0}, {"megabytes": 64}, {"processes": 0}, {"waiting": -1}):
        with pytest.raises(ParameterError):
            DeskLimits(**limits)


# ---- the process


def running(desk: Desk) -> int:
    """The process that the next statement would be given."""
    worker = desk._idle.get()
    desk._idle.put(worker)
    assert worker is not None
    return worker.pid


def test_a_process_that_dies_is_replaced():
    with Desk(DeskLimits(processes=1)) as desk:
        desk.run("SELECT 1")
        first = running(desk)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(StatementError) as refused:
            desk.run("SELECT 1")
        assert refused.value.reason == "size"  # which is what such a death is most likely of
        assert desk.run("SELECT 1").rows == [(1,)]
        assert running(desk) != first


def test_a_process_that_hangs_is_ended(monkeypatch):
    with Desk(DeskLimits(seconds=0.2, processes=1)) as desk:
        desk.run("SELECT 1")
        stopped = running(desk)
        os.kill(stopped, signal.SIGSTOP)
        with pytest.raises(StatementError) as refused:
            desk.run("SELECT 1")
        assert refused.value.reason == "time"
        assert not Path(f"/proc/{stopped}").exists()


def test_the_process_has_nothing_of_its_parent(desk, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_SECRET", "a password")
    with Desk(DeskLimits(processes=1)) as fresh, open(__file__) as held:
        fresh.run("SELECT 1")
        home = Path(f"/proc/{running(fresh)}")
        if not home.exists():
            pytest.skip("no /proc here: UNDERSTUDY_AUDIT on Linux")
        assert held.fileno() > 2
        status = dict(line.split(":", 1) for line in (home / "status").read_text().splitlines())
        if os.geteuid() == 0:
            assert set(status["Uid"].split()) == {"65534"}
        assert "UNDERSTUDY_SECRET" not in _readable(home / "environ")
        limits = (home / "limits").read_text()
        assert "Max file size             0 " in limits
        assert "Max core file size        0 " in limits
        paths = [os.readlink(entry) for entry in (home / "fd").iterdir()]
        assert all(path.startswith(("pipe:", "/dev/null")) for path in paths)
        assert os.readlink(home / "cwd") == "/"


def _readable(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def test_the_process_imports_nothing_that_knows_a_table():
    code = "import json, sys, understudy.desk.child; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    modules = set(json.loads(found.stdout))
    ours = {name for name in modules if name.startswith("understudy")}
    assert ours == {
        "understudy",
        *(f"understudy.desk{part}" for part in ("", ".allowed", ".child", ".engine")),
    }
    assert not modules & {"ibis", "pyarrow", "pandas", "sqlglot", "psycopg"}


def test_many_threads_share_a_few_processes():
    with Desk(DeskLimits(processes=2)) as desk:
        desk.start()

        def ask(number: int) -> int:
            held = Rows.of([("x", "int4")], [(number,)])
            return desk.run("SELECT x * 2 FROM t", {"t": held}).rows[0][0]

        with ThreadPoolExecutor(16) as threads:
            assert list(threads.map(ask, range(64))) == [2 * number for number in range(64)]


def test_one_that_waits_too_long_is_told_so():
    with Desk(DeskLimits(processes=1, waiting=0.0)) as desk:
        desk.run("SELECT 1")
        worker = desk._idle.get()
        assert reason(desk, "SELECT 1") == "busy"
        desk._idle.put(worker)
        assert desk.run("SELECT 1").rows == [(1,)]


def test_a_closed_desk_answers_no_more():
    desk = Desk(DeskLimits(processes=1))
    desk.run("SELECT 1")
    process = running(desk)
    desk.close()
    desk.close()
    assert not Path(f"/proc/{process}").exists()
    with pytest.raises(ClosedError):
        desk.run("SELECT 1")


# ---- databases that stay


def test_a_database_stays_loaded_and_has_views_and_functions(desk):
    database = DeskDatabase(
        {("s", "Town"): Rows.of([("a", "int4")], [(number,) for number in range(45_000)])},
        statements=[
            "CREATE VIEW s.small AS SELECT a FROM s.Town WHERE a < 3",
            "CREATE MACRO twice(x) AS 2 * x",
        ],
    )
    assert desk.run("SELECT sum(twice(a)) FROM s.small", database=database).rows == [(Decimal(6),)]
    assert desk.run('SELECT count(*) FROM s."Town"', database=database).rows == [(45_000,)]
    joined = "SELECT t.shop FROM t JOIN s.small ON t.sold = small.a"
    assert desk.run(joined, {"t": SOLD}, database=database).rows == [("a",)]
    assert reason(desk, "SELECT * FROM s.small") == "undefined-table"  # of another database


def test_a_database_that_had_to_go_is_loaded_again(desk):
    made = [DeskDatabase({("", "t"): Rows.of([("a", "int4")], [(number,)])}) for number in range(7)]
    for _ in range(2):
        assert [desk.run("SELECT a FROM t", database=one).rows for one in made] == [[(n,)] for n in range(7)]


def test_a_statement_leaves_nothing_behind(desk):
    desk.run("SELECT * FROM t", {"t": SOLD})
    assert reason(desk, "SELECT * FROM t") == "undefined-table"
    other = Rows.of([("x", "int4")], [(1,)])
    assert desk.run("SELECT * FROM t", {"t": other}).rows == [(1,)]


def test_odd_names_are_only_names(desk):
    odd = Rows.of([('a"; DROP TABLE t; --', "int4"), ("'", "text")], [(1, "x")])
    name = 'x" (SELECT 1); --'
    quoted = '"' + name.replace('"', '""') + '"'
    assert desk.run(f"SELECT * FROM {quoted}", {name: odd}).names == odd.names
