"""Without noise, an answer is what DuckDB says about the table of representatives."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.generate import DOMAIN, OTHER, Writer, codes, exact_sums, representative, table
from understudy.domain.bins import Bins
from understudy.errors import QueryError
from understudy.sql import CompiledAround, Estimate, compile_sql

EXAMPLES = 10_000 if os.environ.get("UNDERSTUDY_AUDIT") else 500
ROWS = 150


@cache
def world():
    data = codes(ROWS, seed=3)
    return data, table(data)


def evaluated(statement: str, data) -> list[tuple]:
    compiled = compile_sql(statement, DOMAIN, tables=["t"])
    if isinstance(compiled, CompiledAround):
        raise QueryError("it has no bounds")
    sums = [exact_sums(marginal, data) for marginal in compiled.marginals]
    return compiled.evaluate(sums, [0.0] * len(sums))


def key_of(cell, column: str):
    """Our name of a group as DuckDB's value."""
    name = column.strip('"')
    attribute = next((attribute for attribute in DOMAIN if attribute.name == name), None)
    if isinstance(attribute, Bins) and attribute.name != "kids":
        return None if cell is None else representative(attribute.name, attribute.labels.index(cell))
    if cell == "other":
        return OTHER.lower() if column.startswith("lower") else OTHER
    return cell


def close(ours, theirs) -> bool:
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if isinstance(ours, dt.date):
        return ours == theirs
    return math.isclose(ours, float(theirs), rel_tol=1e-7, abs_tol=1e-6)


def check(seed: int, nest: Callable[[str], str] = str) -> bool:
    """Compare one statement, written in another way by `nest`; False when it was refused, or has no bounds."""
    ours, plain, keys = Writer(random.Random(seed)).statement()
    names = plain.removeprefix("SELECT ").split(", ")[:keys]
    ours, theirs = nest(ours), nest(plain)
    data, connection = world()
    try:
        rows = evaluated(ours, data)
    except QueryError:
        return False
    expected = {
        tuple(round(k, 6) if isinstance(k, float) else k for k in row[:keys]): row[keys:]
        for row in connection.execute(theirs).fetchall()
    }
    for row in rows:
        key = tuple(key_of(cell, name) for cell, name in zip(row[:keys], names, strict=True))
        key = tuple(round(k, 6) if isinstance(k, float) else k for k in key)
        values = [cell.value if isinstance(cell, Estimate) else cell for cell in row[keys:]]
        truth = expected.pop(key, None)
        if truth is None:
            continue  # an empty group, which only we list
        rounded = "/ sum" in ours or "/ avg" in ours  # a sum or an average that is 0 but for rounding
        for value, true in zip(values, truth, strict=True):
            assert (rounded and true is None) or close(value, true), (ours, key, value, true)
    assert not expected, (ours, expected)
    return True


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=EXAMPLES)
def test_answers_without_noise_are_those_of_duckdb(seed):
    check(seed)


def test_most_generated_statements_are_answered():
    assert sum(check(seed) for seed in range(200)) >= 80


def filtered(statement: str) -> str:
    return statement.replace(" FROM t", " FROM (SELECT * FROM t WHERE kids > 0) AS q")


def renamed(statement: str) -> str:
    """The number of children under another name, computed in a sub-query."""
    inner = " FROM (SELECT *, KIDS + 0 AS kk FROM t WHERE KIDS > 0) AS q"
    return statement.replace("kids", "kk").replace(" FROM t", inner)


def picked(statement: str) -> str:
    return f"SELECT * FROM ({statement}) AS x"


def chained(statement: str) -> str:
    before = "WITH a AS (SELECT * FROM t WHERE age < 20), b AS (SELECT * FROM a WHERE sex <> 'M') "
    return before + statement.replace(" FROM t", " FROM b")


@given(st.integers(0, 2**64 - 1), st.sampled_from([filtered, renamed, picked, chained]))
@settings(max_examples=EXAMPLES // 10)
def test_nested_statements_without_noise_are_those_of_duckdb(seed, nest):
    check(seed, nest)


@pytest.mark.parametrize("nest", [filtered, renamed, picked, chained])
def test_most_nested_statements_keep_their_bounds(nest):
    assert sum(check(seed, nest) for seed in range(12)) >= 6
