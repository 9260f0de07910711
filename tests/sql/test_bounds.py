"""If every measured cell is within its error, every number is within its bounds."""

from __future__ import annotations

import math
import os
import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.generate import DOMAIN, OTHER, Writer, codes, exact_sums, inside, table
from understudy.domain.bins import Bins
from understudy.errors import QueryError
from understudy.sql import Estimate, compile_sql
from understudy.sql.estimate import estimate
from understudy.sql.grid import Numbers
from understudy.sql.group import AXIS

EXAMPLES = 10_000 if os.environ.get("UNDERSTUDY_AUDIT") else 500
ROWS = 120


@cache
def world(rows: int):
    """A table of values that lie anywhere in their bins."""
    data = codes(rows, seed=rows)
    rng = random.Random(rows)
    return data, table(data, lambda name, cell: inside(name, cell, rng))


def noisy(compiled, data, rng: np.random.Generator):
    errors = [float(rng.choice([0.0, 0.5, 3.0, 20.0])) for _ in compiled.marginals]
    sums = [exact_sums(marginal, data) for marginal in compiled.marginals]
    return [s + rng.uniform(-e, e, s.shape) for s, e in zip(sums, errors, strict=True)], errors


def check(seed: int) -> bool:
    """One statement with noise that keeps its promise; False when it was refused or its groups are bins."""
    writer = random.Random(seed)
    ours, theirs, keys = Writer(writer).statement()
    data, connection = world(writer.choice([0, 1, 5, ROWS]))
    names = theirs.removeprefix("SELECT ").split(", ")[:keys]
    plain = [name.strip('"') for name in names]
    if any(name in DOMAIN and isinstance(DOMAIN[name], Bins) and name != "kids" for name in plain):
        return False
    try:
        compiled = compile_sql(ours, DOMAIN, tables=["t"], rows_public=writer.random() < 0.5)
    except QueryError:
        return False
    values, errors = noisy(compiled, data, np.random.default_rng(seed))
    most = writer.choice([None, len(data["age"])])
    truth = {row[:keys]: row[keys:] for row in connection.execute(theirs).fetchall()}
    for row in compiled.evaluate(values, errors, rows=most):
        others = [OTHER.lower() if name.startswith("lower") else OTHER for name in names]
        key = tuple(other if k == "other" else k for k, other in zip(row[:keys], others, strict=True))
        for cell, true in zip(row[keys:], truth.get(key, [None] * len(row)), strict=False):
            assert isinstance(cell, Estimate)
            bounds_hold(cell, true, ours)
    return True


def bounds_hold(cell: Estimate, true, statement: str) -> None:
    low = -math.inf if cell.low is None else cell.low
    high = math.inf if cell.high is None else cell.high
    assert not any(
        isinstance(v, float) and math.isnan(v) for v in (low, high, cell.value, cell.discretisation)
    )
    assert low <= high
    assert cell.discretisation >= 0
    assert cell.value is None or low <= cell.value <= high
    if true is not None:
        slack = 1e-7 * max(1.0, abs(float(true)))
        assert low - slack <= float(true) <= high + slack, (statement, cell, true)


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=EXAMPLES)
def test_bounds_hold_whenever_the_measured_cells_do(seed):
    check(seed)


def test_most_generated_statements_are_checked():
    assert sum(check(seed) for seed in range(200)) >= 60


def test_bounds_that_forget_the_bins_are_caught():
    """The check has power: without the error of the bins it fails."""
    data, connection = world(ROWS)
    compiled = compile_sql("SELECT sum(age) FROM t", DOMAIN, tables=["t"])
    exact = [exact_sums(marginal, data) for marginal in compiled.marginals]
    ((cell,),) = compiled.evaluate(exact, [0.0, 0.0])
    assert isinstance(cell, Estimate)
    true = connection.execute("SELECT sum(age) FROM t").fetchone()[0]
    bounds_hold(cell, true, "")
    with pytest.raises(AssertionError):
        bounds_hold(cell._replace(low=cell.value, high=cell.value), true, "")


def test_the_part_of_bins_is_never_more_than_half_of_the_interval():
    """Bins that a condition cuts may move one end alone, by more than half of the interval."""
    point, high = np.array([10.0]), np.array([12.0])
    none = np.zeros(1, bool)
    wide, narrow, near = (
        Numbers((AXIS,), point, np.array([end]), high, null=none, unknown=none) for end in (0.0, 9.0, 2.0)
    )
    told = estimate(wide, narrow, 0)
    assert (told.low, told.high, told.discretisation) == (0.0, 12.0, 6.0)
    assert estimate(wide, near, 0).discretisation == 2.0
