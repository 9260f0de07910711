"""Whatever is thrown at the doors, they answer in words: no crash, nothing spent by what is refused.

Inputs are made by hypothesis; a coverage-guided fuzzer (atheris) is not among what is installed. A slice here, and
a million inputs with UNDERSTUDY_AUDIT.
"""

from __future__ import annotations

import os
from contextlib import suppress

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from understudy.cli import app
from understudy.declaration_file import parse
from understudy.errors import UnderstudyError
from understudy.noise import SeededNoise
from understudy.privacy.event import as_plain, from_plain
from understudy.project import Project
from understudy.query.expression import parse as ask

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))


def inputs(share: float, slice_: int) -> int:
    """So many inputs: a share of a million, or a slice."""
    return int(1_000_000 * share) if FULL else slice_


GOOD = """\
understudy: 1
name: t
source: t.parquet
budget: {epsilon: 1}
attributes:
  a: {type: integer, edges: [0, 1, 2]}
  b: {type: category, values: [x, y], null: true}
"""
DECLARED = parse(GOOD)
TABLE = pa.table({"a": [0, 1, 1, 0], "b": ["x", "y", None, "x"]})
PROJECT = Project.frame(TABLE, DECLARED, noise=SeededNoise(1))

WORDS = st.sampled_from(
    [
        "understudy",
        "name",
        "source",
        "budget",
        "epsilon",
        "delta",
        "attributes",
        "type",
        "integer",
        "edges",
        "category",
        "values",
        "null",
        "rho",
        "rows",
        "at_least",
        "unit",
        "neighbours",
        "replace",
        "add-remove",
        "outside",
        "other",
        "0",
        "1",
        "2",
        "-1",
        "1e309",
        "nan",
        ".inf",
        "~",
        "true",
        "[]",
        "{}",
        ":",
        ",",
        "-",
        "|",
        ">",
        "&",
        "*",
        "!",
        "%",
        "@",
        "`",
        "2024-01-01",
        "0x1F",
        "../..",
        "${HOME}",
        "t.parquet",
        "x",
        "y",
    ]
)
MANGLED = st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), WORDS | st.text(max_size=6)).map(
    lambda cut: GOOD[: cut[0]] + cut[2] + GOOD[cut[0] + cut[1] :]
)


@settings(max_examples=inputs(0.2, 250))
@given(MANGLED | st.text(max_size=60))
def test_declarations_are_read_or_refused(text):
    with suppress(UnderstudyError):
        parse(text)


SQL_WORDS = st.sampled_from(
    [
        "SELECT",
        "count(*)",
        "sum(",
        "avg(",
        "median(",
        "FROM",
        "t",
        "WHERE",
        "a",
        "b",
        "=",
        "<",
        ">",
        "1",
        "0",
        "-1",
        "'x'",
        "'z'",
        "NULL",
        "IS",
        "NOT",
        "IN",
        "(",
        ")",
        ",",
        "AND",
        "OR",
        "GROUP",
        "BY",
        "HAVING",
        "ORDER",
        "LIMIT",
        "DISTINCT",
        "UNION",
        "JOIN",
        "WITH",
        "AS",
        "CASE",
        "WHEN",
        "THEN",
        "END",
        "BETWEEN",
        "LIKE",
        "'%'",
        "1e400",
        "0x7f",
        ";",
        "--",
        "/*",
        "*/",
        "*",
        "/",
        "CAST(",
        "AS",
        "INT)",
        "EXISTS",
        "INSERT",
        "DROP",
        "TABLE",
    ]
)


@settings(max_examples=inputs(0.2, 250))
@given(st.lists(SQL_WORDS | st.text(max_size=4), max_size=14).map(" ".join))
def test_sql_is_priced_or_refused_and_reads_nothing(text):
    before = PROJECT.ledger.spent
    with suppress(UnderstudyError):
        PROJECT.quote("SELECT " + text)
    assert PROJECT.ledger.spent == before


ASK_WORDS = st.sampled_from(
    [
        "count",
        "share",
        "by",
        "and",
        "not",
        "in",
        "a",
        "b",
        "=",
        "<",
        ">",
        "<=",
        "x",
        "y",
        "z",
        "0",
        "1",
        "2",
        "(",
        ")",
        ",",
        "'",
        '"',
        "-",
        ".",
        "null",
    ]
)


@settings(max_examples=inputs(0.3, 400))
@given(st.lists(ASK_WORDS | st.text(max_size=4), max_size=10).map(" ".join))
def test_questions_are_parsed_or_refused(text):
    with suppress(UnderstudyError):
        ask(text, DECLARED.domain)


FLAGS = st.sampled_from(
    [
        "ask",
        "check",
        "plan",
        "release",
        "audit",
        "ledger",
        "show",
        "verify",
        "privacy",
        "--json",
        "--project",
        "-p",
        "--epsilon",
        "--rho",
        "--error",
        "--beta",
        "--mechanism",
        "laplace",
        "nobody",
        "--samples",
        "0",
        "-1",
        "4",
        "1e9",
        "nan",
        "--dry-run",
        "--request",
        "--last",
        "--help",
        "--version",
        "nowhere.yml",
    ]
)


@settings(max_examples=inputs(0.01, 60))
@given(st.lists(FLAGS | st.text(max_size=5), max_size=6))
def test_command_lines_end_with_a_status(arguments):
    if arguments[:2] == ["audit", "privacy"] and "--mechanism" not in arguments:
        arguments = ["audit", "privacy", "--mechanism", "nobody"]
    found = CliRunner().invoke(app, arguments)
    allowed = (SystemExit, UnderstudyError, OSError)
    assert found.exception is None or isinstance(found.exception, allowed), found.exception


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["1/2", "1/0", "-1", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "event",
        "epsilon",
        "l1",
        "scale",
        "noise",
        "region",
        "relation",
        "split",
        "events",
        "l2_squared",
        "variance",
    ]
)
VALUES = PLAIN | st.sampled_from(
    ["Selection", "LaplaceNoise", "Located", "Together", "GaussianNoise", "replace"]
)


@settings(max_examples=inputs(0.29, 400))
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_ledger_entries_are_understood_or_refused(plain):
    """What a damaged or forged ledger file holds: never half understood."""
    try:
        event = from_plain(plain)
    except (UnderstudyError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
        return
    assert from_plain(as_plain(event)) == event
