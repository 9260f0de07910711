"""Aggregates of measures: exact on exact sums, as DuckDB says them; within their bounds on noisy ones."""

from __future__ import annotations

import os

import duckdb
import numpy as np
import pandas as pd
import pytest

from measured_rows import MeasuredRows
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql import Estimate, compile_sql

DOMAIN = Domain(
    (
        Categories(name="sex", values=("F", "M")),
        Bins.measure("age", 17, 90),
        Bins.measure("pay", -50.0, 200.0, resolution=0.5, null=True),
        Bins.between("rooms", [1, 3, 9]),
    )
)
AGGREGATES = (
    "count(*)", "count(pay)", "sum(age)", "avg(age)", "sum(pay)", "avg(pay)", "variance(age)", "var_pop(pay)",
    "stddev(pay)", "stddev_pop(age)", "stddev_samp(age)", "covar_pop(age, pay)", "covar_samp(pay, age)",
    "avg(pay) FILTER (WHERE age < 39)", "2 * avg(age) + 1", "sum(pay) / count(*)",
)  # fmt: skip
FAMILIES = ("positions", "centred", "shares")
EXAMPLES = 400 if os.environ.get("UNDERSTUDY_AUDIT") else 12


def frame(rows: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    pay = np.round(draw.normal(40, 60, rows).clip(-50, 200) * 2) / 2
    return pd.DataFrame(
        {
            "sex": draw.choice(["F", "M"], rows),
            "age": draw.integers(17, 91, rows),
            "pay": np.where(draw.random(rows) < 0.1, None, pay).astype(float),
            "rooms": draw.integers(1, 9, rows),
        }
    )


def sums_of(compiled, data: pd.DataFrame) -> list[np.ndarray]:
    truth = MeasuredRows(DOMAIN, list(data.itertuples(index=False, name=None)))
    unit = 1 << 40
    return [found / unit for found in truth.sums_of(compiled.marginals, resolution=unit)]


def compiled_and_true(family: str, data: pd.DataFrame, aggregates=AGGREGATES):
    listed = ", ".join(aggregates)
    text = f"SELECT sex, {listed} FROM t GROUP BY sex"
    compiled = compile_sql(text, DOMAIN, tables=["t"], measured=family)
    connection = duckdb.connect()
    connection.register("frame", data)
    plain = "(SELECT sex, age, CASE WHEN isnan(pay) THEN NULL ELSE pay END AS pay, rooms FROM frame)"
    told = connection.execute(f"SELECT sex, {listed} FROM {plain} GROUP BY sex").fetchall()
    return compiled, {row[0]: row[1:] for row in told}


@pytest.mark.parametrize("family", FAMILIES)
def test_on_exact_sums_they_are_what_duckdb_says(family):
    data = frame(200, 1)
    compiled, true = compiled_and_true(family, data)
    for row in compiled.evaluate(sums_of(compiled, data), [0.0] * len(compiled.marginals)):
        for cell, expected in zip(row[1:], true.get(row[0], ()), strict=False):
            assert isinstance(cell, Estimate)
            assert cell.value == pytest.approx(expected, abs=1e-5, rel=1e-6)
            assert cell.low == pytest.approx(expected, abs=1e-4, rel=1e-5)
            assert cell.high == pytest.approx(expected, abs=1e-4, rel=1e-5)
            assert cell.discretisation == 0


def misses(family: str, shrunk: float = 1.0) -> int:
    """Numbers outside their bounds, if every sum is within its error; `shrunk` is a mutant's part of that."""
    found = 0
    for seed in range(EXAMPLES):
        draw = np.random.default_rng(seed)
        data = frame(int(draw.choice([0, 1, 3, 40])), seed)
        compiled, true = compiled_and_true(family, data)
        errors = [float(draw.choice([0.0, 0.3, 4.0, 30.0])) for _ in compiled.marginals]
        exact = sums_of(compiled, data)
        ends = [e * draw.choice([-1.0, 1.0, 0.2], size=s.shape) for s, e in zip(exact, errors, strict=True)]
        values = [s + off for s, off in zip(exact, ends, strict=True)]
        most = draw.choice([None, float(len(data))])
        for row in compiled.evaluate(values, [shrunk * e for e in errors], rows=most):
            for cell, expected in zip(row[1:], true.get(row[0], ()), strict=False):
                if expected is None:
                    continue
                low, high = (
                    -np.inf if cell.low is None else cell.low,
                    np.inf if cell.high is None else cell.high,
                )
                slack = 1e-6 * max(1.0, abs(expected))
                found += not low - slack <= expected <= high + slack
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_if_sums_are_within_their_errors_so_is_every_aggregate(family):
    assert misses(family) == 0


def test_bounds_that_are_half_as_wide_are_missed():
    assert misses("centred", 0.5) > 0
    assert misses("shares", 0.5) > 0


def test_the_interval_of_a_variance_is_as_narrow_as_its_noise():
    """Centred at the released average: first order in the errors, not the difference of two wide squares."""
    data = frame(4000, 2)
    compiled = compile_sql("SELECT var_pop(age) FROM t", DOMAIN, tables=["t"], measured="centred")
    (row,) = compiled.evaluate(sums_of(compiled, data), [4.0] * len(compiled.marginals))
    unit = 73.0**2
    assert row[0].high - row[0].low < 2 * 3 * 4.0 / 4000 * unit


def test_a_share_family_buys_one_unit_for_count_average_and_variance():
    text = "SELECT count(*), sum(age), avg(age), stddev(age) FROM t"
    compiled = compile_sql(text, DOMAIN, tables=["t"], measured="shares")
    assert [m.moment.kind for m in compiled.marginals if m.moment] == [f"share {i} of 2" for i in range(3)]
    assert len(compiled.marginals) == 3


def test_a_sum_from_zero_alone_buys_one_moment():
    domain = Domain((Bins.measure("pay", 0, 100),))
    for family, kinds in (("centred", ["position"]), ("shares", ["position"])):
        compiled = compile_sql("SELECT sum(pay) FROM t", domain, tables=["t"], measured=family)
        assert [m.moment.kind for m in compiled.marginals if m.moment] == kinds
    compiled = compile_sql("SELECT sum(pay), count(*) FROM t", domain, tables=["t"], measured="centred")
    assert len(compiled.marginals) == 2


def test_what_is_no_measure_is_answered_from_bins_or_refused():
    for text in ("SELECT avg(rooms) FROM t", "SELECT avg(age * 2) FROM t", "SELECT sum(age + rooms) FROM t"):
        compiled = compile_sql(text, DOMAIN, tables=["t"], measured="centred")
        assert all(marginal.moment is None for marginal in compiled.marginals)
    for text in ("SELECT stddev(rooms) FROM t", "SELECT covar_pop(age, rooms) FROM t"):
        with pytest.raises(QueryError, match="not answered here"):
            compile_sql(text, DOMAIN, tables=["t"], measured="centred")
    with pytest.raises(QueryError, match="with itself"):
        compile_sql("SELECT covar_pop(age, age) FROM t", DOMAIN, tables=["t"], measured="centred")


def test_without_measures_the_bins_answer_as_before():
    compiled = compile_sql("SELECT avg(age) FROM t", DOMAIN, tables=["t"])
    assert all(marginal.moment is None for marginal in compiled.marginals)
