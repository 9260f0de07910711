"""psycopg 3, the driver that shows most of the protocol: parameters, prepared, binary, cursors, COPY, notices."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import errors

from served_wire import BY_SEX, WireTown

COUNT = "SELECT count(*) FROM town WHERE age < %s AND sex = %s"


@pytest.fixture
def connection(town: WireTown) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(town.dsn()) as opened:
        yield opened


def heard(connection: psycopg.Connection[Any]) -> list[Any]:
    """The notices that come from here on."""
    found: list[Any] = []

    def note(told: errors.Diagnostic) -> None:  # which lives no longer than this call
        names = ("severity", "sqlstate", "message_primary", "message_detail", "message_hint")
        found.append(SimpleNamespace(**{name: getattr(told, name) for name in names}))

    connection.add_notice_handler(note)
    return found


def test_a_question_is_answered_with_its_types(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute(BY_SEX)
    rows = cursor.fetchall()
    assert [row[0] for row in rows][:2] == ["F", "M"]
    assert abs(rows[0][1] - 1334) < 150  # noise far beyond its error, and nearer than any other count
    assert all(isinstance(value, float) for value in rows[0][1:])
    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [
        ("sex", 25),
        ("n", 701),
        ("years", 701),
    ]
    assert cursor.statusmessage == f"SELECT {len(rows)}"


def test_columns_without_names_are_called_as_postgres_calls_them(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute("SELECT sex, count(*), avg(age), 1 + count(*) FROM town GROUP BY sex")
    assert [column.name for column in cursor.description or ()] == ["sex", "count", "avg", "?column?"]


def test_parameters_of_every_type_that_an_attribute_has(connection: psycopg.Connection[Any]) -> None:
    plain = connection.execute("SELECT count(*) FROM town WHERE age < 30 AND sex = 'F'").fetchone()
    for value in (30, Decimal(30), 30.0, "30"):
        assert connection.execute(COUNT, (value, "F")).fetchone() == plain
    by_date = "SELECT count(*) FROM town WHERE moved_in >= %s"
    on_day = connection.execute(by_date, (dt.date(2010, 1, 1),)).fetchone()
    assert on_day == connection.execute(by_date, ("2010-01-01",)).fetchone()
    smokers = connection.execute("SELECT smoker, count(*) FROM town WHERE smoker = %s GROUP BY 1", (True,))
    assert (True, pytest.approx(500, abs=150)) in smokers.fetchall()
    some = "SELECT count(*) FROM town WHERE district = ANY(%s)"
    listed = connection.execute(some, (["Inkwharf", "The Vale"],)).fetchone()
    assert (
        listed
        == connection.execute(
            "SELECT count(*) FROM town WHERE district IN ('Inkwharf', 'The Vale')"
        ).fetchone()
    )


def test_a_text_is_a_text_whatever_it_holds(connection: psycopg.Connection[Any]) -> None:
    for text in ("O'Brien", "x' OR 'a'='a", "back\\slash", "a\nb", "';--", 'quo"te', "ünïcødé"):
        with pytest.raises(errors.Error) as refused:
            connection.execute("SELECT count(*) FROM town WHERE district = %s", (text,))
        assert "district" in str(refused.value) or text[:4] in str(refused.value)
        connection.rollback()


def test_binary_results_are_those_of_text(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT sex, smoker, count(*), avg(income) FROM town GROUP BY 1, 2"
    assert (
        connection.cursor(binary=True).execute(sql).fetchall()
        == connection.cursor(binary=False).execute(sql).fetchall()
    )


def test_binary_parameters(connection: psycopg.Connection[Any]) -> None:
    told = connection.execute(COUNT, (30, "F")).fetchone()
    assert (
        connection.execute(
            "SELECT count(*) FROM town WHERE age < %b AND sex = %b", (30, "F"), binary=True
        ).fetchone()
        == told
    )
    day = connection.execute("SELECT count(*) FROM town WHERE moved_in < %b", (dt.date(2010, 1, 1),))
    assert (
        day.fetchone()
        == connection.execute("SELECT count(*) FROM town WHERE moved_in < '2010-01-01'").fetchone()
    )


def test_a_statement_is_prepared_after_five(connection: psycopg.Connection[Any]) -> None:
    found = {connection.execute(COUNT, (30, "F")).fetchone() for _ in range(8)}
    assert len(found) == 1
    assert connection._prepared._names  # psycopg keeps the names of what it prepared here


def test_a_refusal_has_a_state_and_a_hint_and_fails_the_transaction(
    connection: psycopg.Connection[Any],
) -> None:
    with pytest.raises(errors.FeatureNotSupported) as refused:
        connection.execute("SELECT max(age) FROM town")
    assert "hangs on single rows" in (refused.value.diag.message_primary or "")
    assert "quantile_disc(x, 0.99)" in (refused.value.diag.message_hint or "")
    with pytest.raises(errors.InFailedSqlTransaction):
        connection.execute("SELECT count(*) FROM town")
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM town").fetchone()


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT count(*) FROM town WHERE agee < 30", "42703"),
        ("SELECT count(*) FROM tawn", "42P01"),
        ("SELECT * FROM town LIMIT 5", "0A000"),
        ("SELECT count(*) FROM town WHERE", "42601"),
        ("SELECT 'open", "42601"),
        ("SELEKT 1", "42601"),
        ("INSERT INTO town VALUES (1)", "25006"),
        ("UPDATE town SET age = 1", "25006"),
        ("DELETE FROM town", "25006"),
        ("CREATE TABLE x (a int)", "25006"),
        ("DROP TABLE town", "25006"),
        ("LISTEN channel", "25006"),
        ("COPY town FROM STDIN", "0A000"),
        ("COPY town TO STDOUT", "0A000"),
        ("COPY (SELECT 1) TO '/tmp/x'", "25006"),
        ("COPY (SELECT 1) TO PROGRAM 'sh'", "25006"),
        ("SET nothing_of_that_name = 1", "42704"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SET datestyle = 'German'", "22023"),
        ("SET server_version = '16'", "55P02"),
        ("SET role = postgres", "42501"),
        ("SET understudy.bounds = perhaps", "22023"),
        ("SET understudy.alpha = 0.001", "22023"),
        ("SET understudy.nothing = 1", "42704"),
        ("SET understudy.epsilon = -1", "22023"),
        ("FETCH 1 FROM nothing", "34000"),
        ("CLOSE nothing", "34000"),
        ("EXECUTE nothing", "26000"),
        ("DEALLOCATE nothing", "26000"),
        ("SELECT count(*) FROM synthetic.autumn", "42P01"),
        ("EXPLAIN INSERT INTO town VALUES (1)", "0A000"),
    ],
)
def test_what_is_refused_has_the_state_that_programs_know(
    connection: psycopg.Connection[Any], sql: str, state: str
) -> None:
    with pytest.raises(errors.Error) as refused:
        connection.execute(sql)
    assert refused.value.sqlstate == state, refused.value
    connection.rollback()
    assert connection.execute("SHOW server_version").fetchone() == ("15.0",)


def test_a_notice_tells_source_price_and_half_width(connection: psycopg.Connection[Any]) -> None:
    notices = heard(connection)
    connection.execute("SELECT district, count(*) AS n FROM town WHERE age >= 90 GROUP BY 1")
    connection.execute("SELECT district, count(*) AS n FROM town WHERE age >= 90 GROUP BY 1")
    first, again = notices
    assert first.message_primary.startswith(("source measured, price rho", "source implied, free"))
    assert "n within ± " in first.message_primary
    assert again.message_primary.startswith("source repeat, free; n within ± ")
    assert "probability 0.95" in again.message_detail
    assert again.severity == "NOTICE"
    connection.execute("SET client_min_messages = warning")
    connection.execute("SELECT district, count(*) AS n FROM town WHERE age >= 90 GROUP BY 1")
    assert len(notices) == 2


def test_bounds_are_columns_where_they_are_wanted(
    town: WireTown, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("SET understudy.bounds = on")
    cursor = connection.execute(BY_SEX)
    names = [column.name for column in cursor.description or ()]
    assert names == ["sex", "n", "n_low", "n_high", "years", "years_low", "years_high"]
    row = cursor.fetchall()[0]
    assert row[2] <= row[1] <= row[3]
    connection.rollback()
    assert connection.execute("SHOW understudy.bounds").fetchone() == ("off",)
    with psycopg.connect(town.dsn(options="-c understudy.bounds=on")) as other:
        assert len(other.execute(BY_SEX).description or ()) == 7
        other.execute("RESET ALL")
        assert other.execute("SHOW understudy.bounds").fetchone() == ("on",)


def test_named_cursors_fetch_in_parts_and_scroll(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT district, count(*) FROM town GROUP BY district"
    whole = connection.execute(sql).fetchall()
    with connection.cursor("parts") as cursor:
        cursor.execute(sql)
        assert [cursor.fetchone(), *cursor.fetchmany(2), *cursor.fetchall()] == whole
    with connection.cursor("back", scrollable=True) as cursor:
        cursor.execute(sql)
        assert cursor.fetchmany(2) == whole[:2]
        cursor.scroll(-1)
        assert cursor.fetchone() == whole[1]
        cursor.scroll(0, mode="absolute")
        assert cursor.fetchall() == whole
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute(sql)
        connection.commit()
        assert cursor.fetchall() == whole


def test_copy_sends_text_csv_and_binary(connection: psycopg.Connection[Any]) -> None:
    query = "SELECT sex, smoker, count(*) AS n FROM town GROUP BY 1, 2"
    rows = connection.execute(query).fetchall()
    cursor = connection.cursor()
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["text", "bool", "float8"])
        assert list(copy.rows()) == rows
    with cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
        copy.set_types(["text", "bool", "float8"])
        assert list(copy.rows()) == rows
    with cursor.copy(f"COPY ({query}) TO STDOUT WITH CSV HEADER") as copy:
        lines = b"".join(bytes(part) for part in copy).decode().splitlines()
    assert lines[0] == "sex,smoker,n"
    assert lines[1].split(",")[:2] == [rows[0][0], "t" if rows[0][1] else "f"]


def test_savepoints_and_transactions_are_state(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(errors.UndefinedColumn), connection.transaction():
        connection.execute("SELECT count(*) FROM town WHERE nothing = 1")
    with connection.transaction():
        with pytest.raises(errors.UndefinedColumn), connection.transaction():
            connection.execute("SELECT count(*) FROM town WHERE nothing = 1")
        assert connection.execute("SELECT count(*) FROM town").fetchone()
    notices = heard(connection)
    connection.autocommit = True
    connection.execute("COMMIT")
    assert notices[-1].sqlstate == "25P01"
    with pytest.raises(errors.NoActiveSqlTransaction):
        connection.execute("SAVEPOINT a")
    with pytest.raises(errors.NoActiveSqlTransaction):
        connection.execute("DECLARE c CURSOR FOR SELECT count(*) FROM town")


def test_a_pipeline_answers_in_order(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline():
        one = connection.execute("SELECT count(*) FROM town")
        two = connection.execute("SELECT sex, count(*) FROM town GROUP BY sex")
    assert len(one.fetchall()) == 1
    assert len(two.fetchall()) >= 2


def test_explain_prices_and_asks_nothing(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT district, smoker, count(*) FROM town WHERE age < 70 GROUP BY 1, 2"
    lines = [row[0] for row in connection.execute(f"EXPLAIN {sql}").fetchall()]
    assert lines[0].startswith("Question (at most rho")
    assert any("every count within" in line for line in lines)
    (again,) = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone() or ((),)
    assert again[0]["Plan"]["free"] is False
    (direct,) = (
        connection.execute("SET understudy.epsilon = 0.5")
        and connection.execute(f"EXPLAIN {sql}").fetchall()[:1]
    )
    assert direct[0].startswith("Question (at most rho")
    connection.execute("RESET understudy.epsilon")
    notices = heard(connection)
    connection.execute(f"EXPLAIN ANALYZE {sql}")
    assert "never looks" in notices[-1].message_primary
    assert any("free" in row[0] for row in connection.execute("EXPLAIN SELECT 1").fetchall())


def test_a_question_by_itself_is_paid_and_named(connection: psycopg.Connection[Any]) -> None:
    notices = heard(connection)
    sql = "SELECT count(*) FROM town WHERE district = 'Saltmarsh' AND smoker"
    connection.execute("SET understudy.rho = 0.0001")
    connection.execute("SET understudy.request = 'wire-1'")
    first = connection.execute(sql).fetchone()
    assert connection.execute("SHOW understudy.request").fetchone() == ("",)
    assert notices[-1].message_primary.startswith("source measured")
    assert notices[-1].message_detail.endswith("request wire-1.")
    connection.execute(sql)
    assert not notices[-1].message_detail.endswith("request wire-1.")
    connection.execute("SET understudy.request = 'wire-1'")
    assert connection.execute(sql).fetchone() == first
    connection.execute("SET understudy.request = 'wire-1'")
    with pytest.raises(errors.UniqueViolation):
        connection.execute("SELECT count(*) FROM town WHERE district = 'Inkwharf'")


def test_synthetic_rows_take_any_select(connection: psycopg.Connection[Any]) -> None:
    notices = heard(connection)
    rows = connection.execute("SELECT age, sex FROM synthetic.spring ORDER BY age").fetchall()
    assert rows == [(10, "F"), (20, "M"), (30, "F")]
    assert "synthetic" in notices[-1].message_primary
    ranked = connection.execute(
        "SELECT sex, age, rank() OVER (PARTITION BY sex ORDER BY age) FROM synthetic.spring "
        "WHERE age > %s ORDER BY 1",
        (10,),
    )
    assert ranked.fetchall() == [("F", 30, 1), ("M", 20, 1)]
    with pytest.raises(errors.FeatureNotSupported):
        connection.execute("SELECT * FROM synthetic.spring a JOIN pg_class b ON true")


def test_sql_prepare_and_execute(connection: psycopg.Connection[Any]) -> None:
    connection.execute("PREPARE young (int, text) AS SELECT count(*) FROM town WHERE age < $1 AND sex = $2")
    found = connection.execute("EXECUTE young (30, 'F')").fetchone()
    assert found == connection.execute(COUNT, (30, "F")).fetchone()
    connection.execute("DEALLOCATE young")
    connection.execute("DISCARD PLANS")


def test_several_statements_of_one_text(connection: psycopg.Connection[Any]) -> None:
    connection.autocommit = True
    cursor = connection.execute("SELECT 1; ; SELECT count(*) FROM town; SHOW timezone -- the end")
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    assert [len(rows) for rows in found] == [1, 1, 1]
    with pytest.raises(errors.UndefinedColumn):
        connection.execute("BEGIN; SELECT count(*) FROM town WHERE nothing = 1; SELECT 1")
    assert connection.info.transaction_status.name == "INERROR"
    connection.execute("ROLLBACK")


def test_nothing_and_comments_are_statements(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute("").statusmessage is None
    assert connection.execute(" ; -- nothing").statusmessage is None
    assert connection.execute("-- Metabase:: userID: 1\nSELECT count(*) FROM town").fetchone()
    assert connection.execute("/* a /* b */ c */ SELECT count(*) FROM town").fetchone()
