"""What a statement may contain, checked on the tree of DuckDB's own parser."""

from __future__ import annotations

import duckdb
import pytest

from understudy.desk import allowed
from understudy.desk.desk import Desk
from understudy.desk.rows import Rows
from understudy.errors import StatementError

ONE = Rows.of([("a", "int4")], [(1,)])

FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_json('x')",
    "SELECT * FROM read_parquet('x')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.parquet'",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_functions()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('t')",
    "SELECT * FROM repeat('x', 3)",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM pg_settings",
    "SELECT * FROM main.t2",
    "SELECT * FROM system.main.duckdb_settings",
    "SELECT * FROM temp.t",
    "SELECT current_setting('threads')",
    "SELECT getvariable('x')",
    "SELECT current_database()",
    "SELECT current_query()",
    "SELECT version()",
    "SELECT nextval('s')",
    "SELECT random()",
    "SELECT uuid()",
    "SELECT write_log('x')",
    "SELECT add_parquet_key('a', 'b')",
    "SELECT in_search_path('a', 'b')",
    "SELECT pg_catalog.pg_get_expr(1, 2)",
    "SELECT main.read_text('/etc/passwd')",
    "SELECT system.main.lower('A')",
    "SELECT json_serialize_sql('SELECT 1')",
    "SELECT * FROM json_execute_serialized_sql('x')",
    "SELECT error('x')",
    "SELECT a FROM t WHERE a IN (SELECT value FROM duckdb_settings())",
    "SELECT (SELECT max(name) FROM duckdb_settings)",
    "SELECT list_transform([1], lambda x: getenv('HOME'))",
    "SELECT count(*) FILTER (WHERE getenv('X') IS NULL) FROM t",
    "SELECT row_number() OVER (ORDER BY getenv('X')) FROM t",
    "SELECT CASE WHEN true THEN getenv('X') END",
    "SELECT a FROM t ORDER BY getenv('X')",
    "SELECT a FROM t LIMIT (SELECT count(*) FROM duckdb_settings())",
    "SELECT a FROM t GROUP BY ALL HAVING getenv('X') IS NULL",
    "SELECT a FROM t QUALIFY getenv('X') IS NULL",
    "SELECT * FROM t JOIN duckdb_settings() s ON true",
    "SELECT * FROM t AT (VERSION => 1)",
    "SELECT a FROM t UNION SELECT getenv('X')",
    "VALUES (getenv('X'))",
    "FROM duckdb_settings()",
    "TABLE duckdb_settings",
    "SUMMARIZE t",
    "PIVOT t ON a",
    "SELECT * FROM (DESCRIBE t)",
    "ATTACH '/tmp/x.db'",
    "COPY t TO '/tmp/x'",
    "COPY (SELECT 1) TO '/tmp/x'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA version",
    "SET threads = 8",
    "RESET threads",
    "SET VARIABLE x = 1",
    "CALL pragma_version()",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "CREATE TABLE x (a INTEGER)",
    "CREATE MACRO f() AS 1",
    "CREATE SECRET (TYPE s3)",
    "INSERT INTO t VALUES (2)",
    "UPDATE t SET a = 2",
    "DELETE FROM t",
    "DROP TABLE t",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "CHECKPOINT",
    "VACUUM",
    "USE memory",
    # a definition elsewhere does not open the system table of that name here
    "SELECT * FROM (WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings) x, duckdb_settings",
    "WITH duckdb_settings AS (SELECT * FROM duckdb_settings) SELECT * FROM duckdb_settings",
    "WITH x AS (SELECT * FROM duckdb_settings), duckdb_settings AS (SELECT 1) SELECT * FROM x",
    "WITH x AS MATERIALIZED (SELECT * FROM duckdb_settings), duckdb_settings AS MATERIALIZED (SELECT 1) SELECT 1",
    "WITH RECURSIVE duckdb_settings AS (SELECT name FROM duckdb_settings UNION ALL SELECT name FROM "
    "duckdb_settings WHERE false) SELECT * FROM duckdb_settings",
    "WITH RECURSIVE duckdb_settings AS (SELECT * FROM duckdb_settings) SELECT * FROM duckdb_settings",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_what_is_on_no_list_is_refused(desk: Desk, sql: str):
    with pytest.raises(StatementError) as refused:
        desk.run(sql, {"t": ONE})
    assert refused.value.reason in (
        "not-select",
        "undefined-function",
        "undefined-table",
        "syntax",
        "grouping",
    )
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("defined", "read"),
    [
        ("duc\u212adb_tables", "duckdb_tables"),  # the Kelvin sign, of which `str.lower` makes a k
        ("DUC\u212aDB_TABLES", "duckdb_tables"),
        ("/tmp/z\u212a.csv", "/tmp/zk.csv"),
        ("/tmp/\u00c4.csv", "/tmp/\u00e4.csv"),
        ("/tmp/\u0130.csv", "/tmp/i\u0307.csv"),  # a capital I with a dot, of which it makes two characters
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        'WITH "{defined}" AS (SELECT 1 AS x) SELECT s.* FROM "{read}" s',
        'WITH "{defined}" AS MATERIALIZED (SELECT 1 AS x) SELECT s.* FROM "{read}" s',
        'WITH RECURSIVE "{defined}" AS (SELECT 1 AS x UNION ALL SELECT 2 FROM "{read}") SELECT 1 FROM "{defined}"',
    ],
)
def test_a_name_that_differs_beyond_ascii_does_not_open_another(
    desk: Desk, form: str, defined: str, read: str
):
    with pytest.raises(StatementError) as refused:
        desk.run(form.format(defined=defined, read=read), {})
    assert refused.value.reason == "undefined-table"
    assert repr(read) in refused.value.problem
    assert refused.value.remedy


def test_names_are_compared_as_duckdb_compares_them(desk: Desk):
    assert desk.run('WITH "Ab\u212a" AS (SELECT a FROM T) SELECT a FROM "aB\u212a"', {"t": ONE}).rows == [
        (1,)
    ]
    assert desk.run('SELECT a FROM "S\u0130"', {"s\u0130": ONE}).rows == [(1,)]
    every = "".join(map(chr, range(0x110000)))
    assert [ord(b) - ord(a) for a, b in zip(every, allowed.ascii_lower(every), strict=True) if a != b] == [
        32
    ] * 26


def test_the_process_went_on_through_all_of_it(desk: Desk):
    for sql in FORBIDDEN[:5]:
        with pytest.raises(StatementError):
            desk.run(sql, {"t": ONE})
    assert desk.run("SELECT a FROM t", {"t": ONE}).rows == [(1,)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH x AS (SELECT a FROM t), y AS (SELECT a + 1 AS b FROM x) SELECT b FROM y, x", [(2,)]),
        (
            "WITH x AS MATERIALIZED (SELECT a FROM t), y AS MATERIALIZED (SELECT * FROM x) SELECT a FROM y",
            [(1,)],
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT max(i) FROM r",
            [(3,)],
        ),
        ("WITH t AS (SELECT a + 5 AS a FROM t) SELECT a FROM t", [(6,)]),
        ("SELECT x.b FROM (WITH y AS (SELECT a AS b FROM t) SELECT b FROM y) x", [(1,)]),
        ("SELECT a FROM t WHERE EXISTS (WITH z AS (SELECT 1) SELECT * FROM z)", [(1,)]),
        ("SELECT t.a, l.b FROM t, LATERAL (SELECT t.a + 1 AS b) l", [(1, 2)]),
        ("SELECT sum(x) FROM (VALUES (1), (2)) v(x)", [(3,)]),
        ("SELECT list_transform([1, 2], lambda y: y + 1)", [([2, 3],)]),
    ],
)
def test_what_people_write_is_allowed(desk: Desk, sql: str, rows: list[tuple[object, ...]]):
    assert desk.run(sql, {"t": ONE}).rows == rows


def test_every_allowed_function_is_one_of_values_or_an_aggregate():
    """No allowed name is a function that returns a table, has side effects or reads the engine's state."""
    known = duckdb.sql(
        "SELECT DISTINCT lower(function_name), function_type, has_side_effects, stability FROM duckdb_functions()"
    ).fetchall()
    of_values = {name for name, kind, _, _ in known if kind in ("scalar", "aggregate", "macro")}
    volatile = {name for name, _, effects, stability in known if effects or stability == "VOLATILE"}
    assert not (allowed.SCALARS | allowed.AGGREGATES) & volatile
    tables = {name for name, kind, _, _ in known if kind in ("table", "table_macro", "pragma")}
    assert allowed.FUNCTIONS & tables <= allowed.ROW_FUNCTIONS | {"histogram", "repeat"}  # not after FROM
    windows_and_syntax = {"coalesce", "grouping", "unnest", "row", "nullif", "ifnull", "if"}
    assert len((allowed.SCALARS | allowed.AGGREGATES) - of_values - windows_and_syntax) < 25
    state = (
        "duckdb",
        "pragma",
        "read_",
        "current_setting",
        "getenv",
        "getvariable",
        "query",
        "glob",
        "version",
    )
    assert not any(name.startswith(state) for name in allowed.FUNCTIONS)


@pytest.mark.parametrize(
    ("sql", "problem", "remedy"),
    [
        (
            "SELECT lenght(a) FROM t",
            "the function lenght is none of those that are allowed",
            "did you mean length?",
        ),
        ("SELECT frobnicate(a) FROM t", "the function frobnicate", "Use functions of numbers"),
        ("SELECT a FROM t UNION ALL SELECT a, a FROM t", "different numbers of columns", "as many columns"),
        ("SELECT age(a) FROM t", "", "Check its name and its arguments, or cast them"),
    ],
)
def test_what_is_wrong_with_a_statement_is_named(desk: Desk, sql: str, problem: str, remedy: str):
    with pytest.raises(StatementError) as refused:
        desk.run(sql, {"t": Rows.of([("a", "text"), ("aged", "text")], [("x", "y")])})
    assert problem in refused.value.problem
    assert remedy in refused.value.remedy
