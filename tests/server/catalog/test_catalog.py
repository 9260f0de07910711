"""The emulated catalog: who asks and what they set, odd names, what it is about, and attacks on it."""

from __future__ import annotations

import pytest

from catalog_twin import TABLES, Emulated
from understudy.desk.desk import DeskDatabase
from understudy.desk.rows import Rows
from understudy.errors import StatementError, TooLongError
from understudy.server.pg.catalog.catalog import Catalog
from understudy.server.pg.catalog.relations import CatalogColumn, CatalogTable
from understudy.server.pg.catalog.session_facts import SessionFacts

# ---- who asks


def test_an_analyst_sees_no_other(emulated: Emulated):
    ada = emulated.answer("SELECT rolname FROM pg_roles WHERE rolcanlogin ORDER BY 1").rows
    bob = emulated.answer("SELECT rolname FROM pg_roles WHERE rolcanlogin ORDER BY 1", user="bob").rows
    assert (ada, bob) == ([("ada",), ("custodian",)], [("bob",), ("custodian",)])
    for relation in (
        "pg_stat_activity",
        "pg_locks",
        "pg_prepared_statements",
        "pg_cursors",
        "pg_stats",
        "pg_authid",
    ):
        assert emulated.answer(f"SELECT * FROM {relation}").rows == []


@pytest.mark.parametrize("user", ["o'hara", 'x"; DROP TABLE y; --', "', 1) --", "\\", "é", "select"])
def test_a_name_is_only_a_name(emulated: Emulated, user: str):
    assert emulated.answer("SELECT current_user, session_user, user", user=user).rows == [(user, user, user)]
    assert (user,) in emulated.answer("SELECT usename FROM pg_user", user=user).rows


def test_settings_are_those_of_the_connection(emulated: Emulated):
    sql = (
        "SELECT current_setting('application_name'), "
        "(SELECT setting FROM pg_settings WHERE name = 'application_name')"
    )
    name = 'it\'s "mine"; --'
    assert emulated.answer(sql, application_name=name).rows == [(name, name)]
    assert emulated.answer(sql).rows == [("", "")]
    assert emulated.answer("SELECT current_setting('server_version_num')::int >= 150000").rows == [(True,)]


def test_what_a_statement_sets_is_told_to_its_connection(emulated: Emulated):
    sql = "SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new"
    made = emulated.catalog.rewritten(sql, SessionFacts("ada", "understudy"))
    assert made.settings == {"jit": "off"}


def test_the_search_path_says_what_is_visible(emulated: Emulated):
    sql = (
        "SELECT current_schema(), pg_table_is_visible('public.town'::regclass), 'public.town'::regclass::text"
    )
    assert emulated.answer(sql).rows == [("public", True, "town")]
    assert emulated.answer(sql, search_path="synthetic").rows == [("synthetic", False, "public.town")]
    assert emulated.answer("SELECT 'town_2024'::regclass::text", search_path="synthetic").rows == [
        ("town_2024",)
    ]
    assert emulated.answer("SELECT current_schema(), current_schemas(true)", search_path="x").rows == [
        (None, ["pg_catalog"])
    ]


# ---- tables


def test_odd_tables_and_comments_are_shown_as_they_are(emulated: Emulated):
    odd = CatalogTable(
        "public",
        'My "Town"',
        (CatalogColumn("a b", "int4", comment="it's"), CatalogColumn("Éa", "text")),
        "a;b\n--c",
    )
    catalog = Catalog([odd])

    def ask(sql: str) -> Rows:
        return catalog.prepared(sql, user="ada").answer(emulated.desk)

    assert ask(
        "SELECT c.oid::regclass::text, obj_description(c.oid) FROM pg_class c WHERE relnamespace = 2200"
    ).rows == [('"My ""Town"""', "a;b\n--c")]
    assert ask(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    ).rows == [
        ("a b", "integer"),
        ("Éa", "text"),
    ]
    assert ask('SELECT col_description(\'"My ""Town"""\'::regclass, 1)').rows == [("it's",)]


def test_numbers_of_tables_stay_when_others_come():
    alone = Catalog([TABLES[0]]).relations.oids
    many = Catalog([CatalogTable("synthetic", f"r{n}", ()) for n in range(50)] + list(TABLES)).relations.oids
    assert many["public", "town"] == alone["public", "town"]
    assert len(set(many.values())) == len(many)
    assert all(20_000 <= oid < 2**31 for oid in many.values())


# ---- what it is about


@pytest.mark.parametrize(
    ("sql", "about"),
    [
        ("SELECT 1", True),
        ("SELECT now()", True),
        ("VALUES (1)", True),
        ("SELECT * FROM pg_class", True),
        ("SELECT * FROM PG_CATALOG.PG_CLASS", True),
        ("SELECT * FROM information_schema.columns c JOIN pg_type t ON t.typname = c.udt_name", True),
        ("WITH x AS (SELECT * FROM pg_class) SELECT * FROM x", True),
        ("SELECT * FROM generate_series(1, 3)", True),
        ("SELECT * FROM town", False),
        ("SELECT * FROM public.town", False),
        ("SELECT * FROM columns", False),
        ("SELECT * FROM synthetic.town_2024", False),
        ("SELECT * FROM pg_class, town", False),
        ("SELECT (SELECT count(*) FROM town)", False),
        ("WITH pg_class AS (SELECT * FROM town) SELECT * FROM pg_class", False),
        ("SELECT * FROM public.pg_class", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT (", False),
    ],
)
def test_what_a_statement_is_about(emulated: Emulated, sql: str, about: bool):  # noqa: FBT001 (a parameter of the test)
    assert emulated.catalog.about(sql) is about


def test_statements_on_given_rows_have_the_names_and_types_of_postgres(emulated: Emulated):
    rows = Rows.of([("sex", "text"), ("n", "float8"), ("k", "int4")], [("F", 3.0, 7), ("M", 1.0, 2)])
    sql = "SELECT sex, n / sum(n) OVER (), count(*) OVER (), k / 2, k::text FROM t ORDER BY 1"
    found = emulated.catalog.prepared(sql, user="ada", tables={"t": rows}).answer(emulated.desk)
    assert [(column.name, column.type.name) for column in found.columns] == [
        ("sex", "text"), ("?column?", "float8"), ("count", "int8"), ("?column?", "int4"), ("k", "text"),
    ]  # fmt: skip
    assert found.rows == [("F", 0.75, 2, 3, "7"), ("M", 0.25, 2, 1, "2")]
    database = DeskDatabase({("synthetic", "town"): rows})
    sql = "SELECT max(k), count(*), sum(k) FROM synthetic.\"town\" WHERE sex = 'F'"
    found = emulated.catalog.prepared(sql, user="ada", database=database).answer(emulated.desk)
    assert [column.name for column in found.columns] == ["max", "count", "sum"]
    assert found.rows == [(7, 1, 7)]
    for other in ("SELECT * FROM pg_class", "SELECT * FROM synthetic.other", "SELECT * FROM town"):
        with pytest.raises(StatementError) as refused:
            emulated.catalog.prepared(other, user="ada", database=database).answer(emulated.desk)
        assert refused.value.reason == "undefined-table"


# ---- attacks


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_read_binary_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_get(1)",
        "SELECT dblink('x', 'y')",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT getenv('HOME')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM pg_catalog.duckdb_settings",
        "SELECT * FROM pg_ls_waldir()",
        "SELECT * FROM pg_hba_file_rules()",
        "SELECT * FROM us_formats",
        "SELECT * FROM pgc.pg_class",
        "SELECT us_format_type(23, -1) FROM pgc.us_formats",
        "SELECT * FROM memory.pgc.pg_class",
        "SELECT current_setting('data_directory')",
        "COPY pg_class TO '/tmp/x'",
        "COPY pg_class TO PROGRAM 'id'",
        "ATTACH 'x'",
        "INSTALL httpfs",
        "LOAD 'x'",
        "PRAGMA version",
        "SET threads = 8",
        "DO $$ BEGIN END $$",
        "CREATE TABLE x (a int)",
        "INSERT INTO pg_class VALUES (1)",
        "SELECT * INTO x FROM pg_class",
        "SELECT 1 FROM pg_class FOR UPDATE",
        "UPDATE pg_class SET relname = 'x'",
        "EXPLAIN SELECT 1",
        "SELECT 1; DROP TABLE pg_class",
        "SELECT nextval('x')",
        "SELECT E'\\x",
        "SELECT 'a",
    ],
)
def test_nothing_but_the_catalog_is_reached(emulated: Emulated, sql: str):
    with pytest.raises(StatementError) as refused:
        emulated.answer(sql)
    assert refused.value.remedy
    assert "/" not in refused.value.problem.replace("/etc/passwd", "")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {'(' * 10_000}1{')' * 10_000}",
        f"SELECT {'- ' * 5_000}1",
        f"SELECT {'NOT ' * 5_000}true",
        f"SELECT {'+'.join(['1'] * 5_000)}",
        f"SELECT 1 WHERE {' OR '.join(['true'] * 3_000)}",
        f"SELECT {'CASE WHEN true THEN ' * 500}1{' END' * 500}",
        f"SELECT {'ARRAY[' * 300}1{']' * 300}",
        "SELECT " + "1::text" + "::text" * 1_000,
        "SELECT 1 " + "UNION SELECT 1 " * 2_000,
        "SELECT * FROM " + "(SELECT * FROM " * 200 + "pg_class" + ") x" * 200,
        "SELECT a" + ".a" * 3_000,
    ],
)
def test_deep_statements_are_refused_at_once(emulated: Emulated, sql: str):
    with pytest.raises((StatementError, TooLongError)):
        emulated.answer(sql)
    assert emulated.answer("SELECT 1").rows == [(1,)]


def test_long_statements_are_refused_before_they_are_read(emulated: Emulated):
    with pytest.raises(TooLongError):
        emulated.answer("SELECT '" + "x" * 100_000 + "'")
    with pytest.raises(TooLongError):
        emulated.answer("SELECT " + "1," * 15_000 + "1")


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT count(*) FROM generate_series(1, 1000000000000)", ("time", "size", "value")),
        ("SELECT generate_series(1, 1000000000000)", ("time", "size", "value")),
        ("SELECT repeat('x', 2000000000)", ("size",)),
        ("SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_proc d", ("time",)),
        (
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
            ("time", "size"),
        ),
        ("SELECT a.attname, b.attname FROM pg_attribute a, pg_attribute b", ("size",)),
    ],
)
def test_heavy_statements_end_and_the_next_one_works(impatient: Emulated, sql: str, why: tuple[str, ...]):
    with pytest.raises(StatementError) as refused:
        impatient.answer(sql)
    assert refused.value.reason in why
    assert impatient.answer("SELECT 1").rows == [(1,)]
