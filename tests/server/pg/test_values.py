"""Values, parameters and words: each held against psycopg's own reading, or a real Postgres' writing."""

from __future__ import annotations

import asyncio
import datetime as dt
import struct
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from understudy.server.pg import commands, session
from understudy.server.pg.arrays import ARRAYS, items_of
from understudy.server.pg.commands import CopyOptions
from understudy.server.pg.copying import copied
from understudy.server.pg.frames import formats_of
from understudy.server.pg.lexer import statements_of
from understudy.server.pg.notices import explained
from understudy.server.pg.parameters import Template, decoded, literal, with_lists
from understudy.server.pg.plans import StatementPlan
from understudy.server.pg.portals import Portal
from understudy.server.pg.settings import Settings
from understudy.server.pg.states import Refusal, state_of
from understudy.server.pg.values import encoders, float_text
from understudy.server.pg.wire import ResultColumn
from understudy.server.problems import Problem

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
SOME: dict[int, st.SearchStrategy[Any]] = {
    16: st.booleans(),
    20: st.integers(-(2**63), 2**63 - 1),
    21: st.integers(-(2**15), 2**15 - 1),
    23: st.integers(-(2**31), 2**31 - 1),
    25: TEXTS,
    701: st.floats(allow_nan=False),
    1082: st.dates(dt.date(1000, 1, 1)),
    1114: st.datetimes(dt.datetime(1000, 1, 1)),
    1700: st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**15), max_value=10**15),
}
CASES = st.sampled_from(sorted(SOME)).flatmap(lambda oid: st.tuples(st.just(oid), SOME[oid]))


def read_by_psycopg(raw: bytes, oid: int, form: int) -> Any:
    return Transformer().get_loader(oid, Format(form)).load(raw)


@given(CASES, st.sampled_from([0, 1]))
def test_psycopg_reads_what_is_sent(case: tuple[int, Any], form: int) -> None:
    oid, value = case
    (encode,) = encoders([oid], [form])
    assert read_by_psycopg(encode(value), oid, form) == value


@given(CASES, st.sampled_from([0, 1]))
def test_what_psycopg_sends_is_read(case: tuple[int, Any], form: int) -> None:
    oid, value = case
    dumper = Transformer().get_dumper(value, PyFormat.BINARY if form else PyFormat.TEXT)
    found = decoded(bytes(dumper.dump(value) or b""), dumper.oid or oid, form)
    assert found == value


@given(
    st.sampled_from([16, 20, 23, 25, 701, 1082]).flatmap(
        lambda o: st.tuples(st.just(o), st.lists(SOME[o] | st.none()))
    )
)
def test_arrays_go_both_ways(case: tuple[int, list[Any]]) -> None:
    oid, values = case
    for form in (0, 1):
        (encode,) = encoders([ARRAYS[oid]], [form])
        raw = encode(values)
        assert read_by_psycopg(raw, ARRAYS[oid], form) == values
        assert decoded(raw, ARRAYS[oid], form) == values


@pytest.mark.parametrize("text", ["", "1,2", "{1,2", "{1,,2}", '{"a}', "{1}2", "{{1},{2}}"])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="arra"):
        items_of(text)


@pytest.mark.parametrize(
    ("raw", "oid", "form"),
    [
        (b"x", 23, 0), (b"99999999999", 23, 0), (b"abc", 701, 0), (b"perhaps", 16, 0), (b"2020-13-01", 1082, 0),
        (b"\0\0", 23, 1), (b"\0" * 9, 701, 1), (b"\xff", 25, 0), (b"a\0b", 25, 0), (b"\0\0\0\1", 1700, 1),
        (b"\x7f\xff\xff\xff", 1082, 1), (b"\0" * 11, 1007, 1), (b"x", 600, 1), (b"1e999999999", 20, 0),
    ],
)  # fmt: skip
def test_what_is_no_value_of_its_type_is_refused(raw: bytes, oid: int, form: int) -> None:
    with pytest.raises(Refusal) as refused:
        decoded(raw, oid, form)
    assert refused.value.state[:2] in ("22", "0A")


@given(
    st.one_of(
        TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
    )
)
def test_a_literal_means_its_value_in_every_dialect(value: Any) -> None:
    for dialect in ("postgres", "duckdb"):
        tree = sqlglot.parse_one(f"SELECT {literal(value)}", read=dialect).expressions[0].unnest()
        if isinstance(value, str):
            assert tree.is_string
            assert tree.this == value
        elif value is None or isinstance(value, bool):
            assert tree.sql() == str(value).upper().replace("NONE", "NULL")
        else:
            assert float(tree.sql()) == float(value)


def test_values_stand_where_their_parameters_stood() -> None:
    (statement,) = statements_of("SELECT '$1', \"$2\", $1, $2 -- $3\nFROM t WHERE a = $1")
    template = Template.of(statement)
    assert template.count == 2
    assert (
        template.filled(["it's", -5]) == "SELECT '$1', \"$2\", 'it''s', (-5) -- $3\nFROM t WHERE a = 'it''s'"
    )


@pytest.mark.parametrize(
    ("given_text", "wanted"),
    [
        ("a = ANY(ARRAY['x', 'y])'])", "a IN ('x', 'y])')"),
        ("a = ANY (ARRAY[1, 2]::int[]) AND b", "a IN (1, 2) AND b"),
        ("NOT a <> ALL(ARRAY[1])", "NOT a NOT IN (1)"),
        ("a = ANY(ARRAY[])", "a IN (NULL)"),
        ("a < ANY(ARRAY[1])", "a < ANY(ARRAY[1])"),
        ("a = ANY(b)", "a = ANY(b)"),
    ],
)
def test_lists_become_in(given_text: str, wanted: str) -> None:
    assert with_lists(statements_of(given_text)[0]).text == wanted


@given(st.floats(allow_nan=False))
def test_a_float_reads_back(value: float) -> None:
    assert float(float_text(value)) == value


def test_copy_escapes_as_postgres_does() -> None:
    columns = [ResultColumn("a", 25), ResultColumn("b", 25)]
    rows = [["tab\there", None], ['quo"te', "a,b"], ["", "back\\slash\n"]]

    def lines(options: CopyOptions) -> list[bytes]:
        return [message[5:] for message in copied(columns, rows, options) if message[:1] == b"d"]

    assert lines(CopyOptions(delimiter="\t")) == [
        b"tab\\there\t\\N\n", b'quo"te\ta,b\n', b"\tback\\\\slash\\n\n",
    ]  # fmt: skip
    assert lines(CopyOptions(format="csv", delimiter=",", header=True)) == [
        b"a,b\n", b"tab\there,\n", b'"quo""te","a,b"\n', b'"","back\\slash\n"\n',
    ]  # fmt: skip
    forced = CopyOptions(format="csv", delimiter=";", null="NA", force_quote=("b",))
    assert lines(forced)[0] == b"tab\there;NA\n"
    assert lines(forced)[1] == b'"quo""te";"a,b"\n'


def fetch(text: str) -> commands.Fetch:
    return commands.read_fetch(statements_of(text)[0], moves=False)


async def _rows(_: Any) -> list[list[int]]:
    return [[i] for i in range(1, 6)]


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (["FETCH c", "FETCH NEXT FROM c", "FETCH 2 IN c", "FETCH ALL c", "FETCH c"], [[1], [2], [3, 4], [5], []]),
        (["FETCH FORWARD ALL FROM c", "FETCH PRIOR FROM c", "FETCH BACKWARD 2 c"], [[1, 2, 3, 4, 5], [5], [4, 3]]),
        (["FETCH LAST c", "FETCH FIRST c", "FETCH ABSOLUTE 3 c", "FETCH RELATIVE -1 c"], [[5], [1], [3], [2]]),
        (["FETCH ABSOLUTE -2 c", "FETCH 0 c", "FETCH BACKWARD ALL c", "FETCH c"], [[4], [4], [3, 2, 1], [1]]),
        (["FETCH 5 c", "FETCH 1 c", "FETCH -1 c", "FETCH -9 c"], [[1, 2, 3, 4, 5], [], [5], [4, 3, 2, 1]]),
        (["FETCH ABSOLUTE 9 c", "FETCH RELATIVE 0 c", "FETCH ABSOLUTE 0 c", "FETCH c"], [[], [], [], [1]]),
    ],
)  # fmt: skip
def test_cursors_move_as_those_of_postgres(steps: list[str], wanted: list[list[int]]) -> None:
    async def moved() -> list[list[int]]:
        portal = Portal(StatementPlan("SELECT", _rows), ())
        return [[row[0] for row in await portal.fetched(fetch(step))] for step in steps]

    assert asyncio.run(moved()) == wanted


def test_settings_go_back_with_their_transaction() -> None:
    settings = Settings("ada", {"alpha": "0.02"})
    settings.set("understudy.bounds", "true")
    settings.begin()
    settings.set("application_name", "x")
    settings.set("understudy.bounds", "off", local=True)
    assert not settings.is_on("understudy.bounds")
    settings.end(commit=True)
    assert settings.is_on("understudy.bounds")
    assert settings["application_name"] == "x"
    settings.begin()
    settings.set("application_name", "y")
    settings.end(commit=False)
    assert settings["application_name"] == "x"
    settings.set("statement_timeout", "2min")
    assert settings.timeout == 120
    settings.set("understudy.alpha", "0.0200")
    assert settings.show("understudy.alpha") == "0.02"
    settings.reset_all()
    assert settings.timeout is None


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET a.b = 'c d'", "a.b", "c d"),
        ("SET SESSION search_path TO public, other", "search_path", "public, other"),
        ("SET LOCAL statement_timeout = -5", "statement_timeout", "-5"),
        ("SET TIME ZONE 'UTC'", "timezone", "UTC"),
        ("SET NAMES 'utf8'", "client_encoding", "utf8"),
        ("SET SESSION AUTHORIZATION DEFAULT", "session_authorization", None),
        ("SET x TO DEFAULT", "x", None),
        ("set application_name = e'it\\'s'", "application_name", "it's"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", None, None),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", None, None),
    ],
)
def test_set_is_read(text: str, name: str | None, value: str | None) -> None:
    found = commands.read_set(statements_of(text)[0])
    assert (found is None) == (name is None)
    if found is not None:
        assert (found.name, found.value) == (name, value)


@pytest.mark.parametrize(
    "text",
    ["SET", "SET x", "SET x =", "SET x = (", "FETCH", "FETCH ABSOLUTE FROM c", "FETCH 1 FROM", "FETCH c d"],
)
def test_commands_that_cannot_be_read_are_refused(text: str) -> None:
    statement = statements_of(text)[0]
    with pytest.raises(Refusal) as refused:
        commands.read_fetch(statement, moves=False) if "FETCH" in text else commands.read_set(statement)
    assert refused.value.state == "42601"


def test_problems_have_the_states_that_programs_know() -> None:
    told = {
        ("question", "there is no attribute 'x'"): "42703",
        ("question", "there is no table 'x'"): "42P01",
        ("question", "cannot read the statement at 5"): "42601",
        ("question", "28 is not a bin edge of age"): "0A000",
        ("budget", ""): "53400",
        ("too-long", ""): "54000",
        ("role", ""): "42501",
        ("stopping", ""): "57P01",
        ("ledger", ""): "58000",
    }
    status = {"role": 403, "ledger": 503, "stopping": 503}
    for (code, detail), state in told.items():
        assert state_of(Problem(status.get(code, 422), code, detail)) == state
    assert state_of(Problem(422, "statement", "", more={"reason": "grouping"})) == "42803"
    with pytest.raises(Exception, match="format codes"):
        formats_of((0, 1), 3)
    assert Decimal(literal(Decimal("1E+3"))) == 1000


@pytest.mark.parametrize("text", ["1e-5000000000", "1e5000000000", "-1E+401", "0e-5000000000", "1e-401"])
def test_a_number_that_fills_gigabytes_is_refused_where_it_is_read(text: str) -> None:
    for raw, oid in ((text, 1700), ("{1," + text + "}", ARRAYS[1700])):
        with pytest.raises(Refusal) as refused:
            decoded(raw.encode(), oid, 0)
        assert refused.value.state == "22003"
    assert literal(decoded(b"1e-400", 1700, 0)) == "0." + "0" * 399 + "1"


def test_a_number_in_binary_has_the_same_powers() -> None:
    with pytest.raises(Refusal) as refused:
        decoded(struct.pack("!hhHhh", 1, 200, 0, 30, 1), 1700, 1)
    assert refused.value.state == "22003"
    assert decoded(struct.pack("!hhHhh", 1, 99, 0, 30, 1), 1700, 1) == Decimal(10) ** 396


def test_a_long_value_used_often_is_refused_before_it_is_written() -> None:
    (statement,) = statements_of("SELECT " + ", ".join(["$1"] * 6_000))
    tracemalloc.start()
    try:
        with pytest.raises(Refusal, match="characters; at most 100,000") as refused:
            Template.of(statement).filled(("x" * (1 << 20),))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert refused.value.state == "54000"
    assert Template.of(statement).filled((7,)) == "SELECT " + ", ".join(["7"] * 6_000)


def test_dollar_quotes_that_are_not_closed_are_refused_in_one_look() -> None:
    with pytest.raises(Refusal) as refused:
        statements_of("SELECT " + " ".join(f"$a{i}$" for i in range(12_000)))
    assert (refused.value.state, refused.value.position) == ("42601", 8)
    closed = "$$a;$b$ 'c$$", "$b$d$$;$c$$b$", "$1"
    (statement,) = statements_of("SELECT " + " ".join(closed))
    assert [(t.kind, t.text) for t in statement.tokens[1:]] == list(
        zip(("dollar", "dollar", "parameter"), closed, strict=True)
    )
    assert [t.value for t in statement.tokens[1:3]] == ["a;$b$ 'c", "d$$;$c$"]


async def _two_texts(_: Any) -> list[list[Any]]:
    return [["x" * 84, 1], ["y" * 84, None]]


def test_what_the_portals_of_a_connection_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST_HELD", 300)
    plan = StatementPlan("SELECT", _two_texts)
    held = session.SqlSession(Settings("ada", {}))

    async def opened() -> None:
        for name in ("a", "b", "c"):
            held.open(name, Portal(plan, (), scrolls=True))
        assert len(await held.cursor("a").rows()) == 2
        assert held.cursor("a").size == 2 * (84 + 32)
        await held.cursor("b").rows()
        with pytest.raises(Refusal, match="464 bytes") as refused:
            await held.cursor("c").rows()
        assert refused.value.state == "53400"
        assert not held.cursor("c").was_run  # it was not asked, and nothing was paid
        del held.portals["a"]
        assert len(await held.cursor("c").rows()) == 2

    asyncio.run(opened())


def test_a_portal_that_goes_forward_only_forgets_what_was_sent() -> None:
    async def sent(*, scrolls: bool) -> tuple[int, int]:
        portal = Portal(StatementPlan("SELECT", _two_texts), (), scrolls=scrolls)
        assert [len((await portal.forward(1))[0]) for _ in range(2)] == [1, 1]
        assert await portal.forward(1) == (([] if scrolls else ()), False)
        assert portal.was_run
        return portal.size, len(await portal.rows())

    assert asyncio.run(sent(scrolls=False)) == (0, 0)
    assert asyncio.run(sent(scrolls=True)) == (232, 2)


def test_explain_does_not_name_a_column_as_its_own_unit():
    priced = {"free": True, "forecast": [{"column": "n", "unit": "n", "error": 400.0}]}
    assert "  Error of n: ± 400" in explained(priced, "in the session")
