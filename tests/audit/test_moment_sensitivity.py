"""Moments of measures on generated neighbours: what meets noise moves no further than was declared and charged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np
import pytest

from audit.taps import compared, tapped
from measured_rows import MeasuredRows
from understudy.curator.curator import Curator
from understudy.curator.pricing import QuestionPricing
from understudy.curator.question_price import QuestionPrice
from understudy.declaration.declaration import Declaration, SourceSpec, Unit
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.columns import CountColumns, SharedColumns, WeightColumns
from understudy.privacy.relation import Neighbours, Sensitivity
from understudy.query.moment import POLYNOMIALS
from understudy.sql import compile_sql

PAIRS = 3_000 if os.environ.get("UNDERSTUDY_AUDIT") else 25
DOMAIN = Domain(
    (
        Categories(name="sex", values=("F",)),
        Bins.measure("x", -2, 5, edges=[-2, 1, 3, 5]),
        Bins.measure("y", 0.0, 1.5, resolution=0.25, edges=[0.0, 1.5], null=True),
    )
)
STATEMENTS = (
    "SELECT avg(x) FROM t",
    "SELECT sum(y), avg(y) FROM t WHERE sex = 'F'",
    "SELECT sum(y) FROM t",
    "SELECT sex, count(*), avg(x), sum(x) FROM t GROUP BY sex",
    "SELECT sex, variance(x), avg(x) FROM t GROUP BY sex",
    "SELECT covar_pop(x, y) FROM t WHERE x < 1",
    "SELECT avg(x) FILTER (WHERE sex = 'F'), avg(x) FILTER (WHERE sex <> 'F') FROM t",
    "SELECT sex, median(x), quantile_cont(x, 0.9), quantile_cont(y, 0.2) FROM t GROUP BY sex",
    "SELECT quantile_cont(x, [0.25, 0.75]), count(*) FROM t WHERE sex = 'F'",
    "SELECT sex, avg(x * 2), count(*), avg(CASE WHEN x < 1 THEN 3 ELSE 1 END) FROM t GROUP BY sex",
    "SELECT avg(x + y) FROM t WHERE sex = 'F'",
)
SETTINGS = [
    (budget, kind)
    for budget in (Budget.of(4), Budget.of(4, 1e-6))
    for kind in (Neighbours.REPLACE, Neighbours.ADD_REMOVE)
]


def declared(budget: Budget, kind: Neighbours, max_rows: int) -> Declaration:
    unit = None if max_rows == 1 else Unit("person", max_rows, key="k")
    return Declaration(
        name="t",
        source=SourceSpec("t.csv"),
        domain=DOMAIN,
        budget=budget,
        neighbours=kind,
        unit=unit,
        rows_at_most=20 if kind is Neighbours.ADD_REMOVE else None,
    )


def a_row(draw: np.random.Generator) -> tuple[object, ...]:
    """Values at the ends more often than between them; some beyond, some missing."""
    x = draw.choice([-2, -2, 5, 5, 0, 1, 3, -9, 99])
    y = draw.choice([0.0, 0.0, 1.5, 1.5, 0.3, 0.7, float("nan"), 9.0])
    return str(draw.choice(["F", "F", "M"])), int(x), float(y)


def pair(draw: np.random.Generator, kind: Neighbours, max_rows: int) -> tuple[list[Any], list[Any]]:
    rows = [a_row(draw) for _ in range(int(draw.integers(0, 6)))]
    if kind is Neighbours.REPLACE:
        return [*rows, a_row(draw)], [*rows, a_row(draw)]
    alike = draw.random() < 0.5
    one = a_row(draw)
    return rows, [*rows, *(one if alike else a_row(draw) for _ in range(max_rows))]


def run(statement: str, rows: list[Any], declaration: Declaration, seed: int):
    truth: Any = MeasuredRows(DOMAIN, rows)
    curator = Curator(truth, MemoryLedger(declaration.budget), declaration, noise=SeededNoise(seed))
    public = declaration.relation.rows_are_public
    family = "shares" if declaration.budget.is_pure else "centred"
    compiled = compile_sql(
        statement, DOMAIN, tables=["t"], rows_public=public, measured=family, averages="shares"
    )
    pricing = QuestionPricing(curator.calibration, curator.ledger)
    prepared = pricing.prepare(compiled.marginals, QuestionPrice(epsilon=1), rounded=True)
    with tapped() as taps:
        curator.perform(prepared)
    return taps


def faults(budget: Budget, kind: Neighbours, pairs: int, statements: Sequence[str] = STATEMENTS) -> list[Any]:
    draw, found = np.random.default_rng(7), list[Any]()
    for seed in range(pairs):
        max_rows = 1 if kind is Neighbours.REPLACE else int(draw.integers(1, 4))
        declaration = declared(budget, kind, max_rows)
        statement = statements[seed % len(statements)]
        first, second = (run(statement, rows, declaration, seed) for rows in pair(draw, kind, max_rows))
        assert len(first.settled) == 1
        found += compared(first, second, budget)[0]
    return found


@pytest.mark.parametrize(("budget", "kind"), SETTINGS, ids=str)
def test_moments_move_no_further_than_their_noise_was_made_for(budget, kind):
    assert faults(budget, kind, PAIRS) == []


def test_noise_for_half_of_a_moment_is_caught():
    """A mutant: the range of a centred moment taken for half of what it is."""
    honest = CountColumns.of

    def half(marginal, *, resolution=1):
        columns = honest(marginal, resolution=resolution)
        if marginal.moment is None or resolution == 1:
            return columns
        return CountColumns(columns.cells, columns.low // 2, columns.high // 2)

    with patch.object(CountColumns, "of", half):
        for kind in Neighbours:
            assert {fault.kind for fault in faults(SETTINGS[2][0], kind, PAIRS)} & {"sensitivity"}


def test_shares_without_their_second_row_are_caught():
    """A mutant: two rows of different people taken to move shares no further than one does."""
    one_row = PropertyMock(side_effect=lambda: Sensitivity(1 << 20, 1 << 40))
    with patch.object(SharedColumns, "farthest", one_row):
        assert faults(SETTINGS[0][0], Neighbours.REPLACE, PAIRS)


def test_weights_without_their_second_row_are_caught():
    """A mutant: two rows of different people taken to move the shares of an average no further than one does."""
    one_row = property(lambda self: self.longest)
    with patch.object(WeightColumns, "farthest", one_row):
        found = faults(SETTINGS[0][0], Neighbours.REPLACE, PAIRS, STATEMENTS[-2:])
    assert {fault.kind for fault in found} & {"sensitivity"}


def test_counts_for_quantiles_without_their_second_row_are_caught():
    """A mutant: a replaced row taken to leave one count of a quantile's round, and to enter none."""
    one_cell = CountColumns(1, low=0)
    with patch("understudy.curator.calibration.PARTITION", one_cell):
        found = faults(SETTINGS[0][0], Neighbours.REPLACE, 3 * len(STATEMENTS))
    assert {fault.kind for fault in found} & {"sensitivity"}


def test_a_moment_that_is_centred_elsewhere_is_caught():
    """A mutant: centred at the lower bound, charged as if at the middle."""
    with patch.dict(POLYNOMIALS, {"centred": {(1,): Fraction(1)}}):
        found = faults(SETTINGS[3][0], Neighbours.ADD_REMOVE, 2 * len(STATEMENTS))
    assert {fault.kind for fault in found} & {"sensitivity", "price"}


def test_the_sensitivity_of_a_centred_moment_is_attained():
    """By two people at both ends under `replace`, by one at an end under `add-remove`: it cannot be smaller."""
    ends = {
        Neighbours.REPLACE: ([("F", -2, 0.0)], [("F", 5, 0.0)]),
        Neighbours.ADD_REMOVE: ([], [("F", 5, 0.0)]),
    }
    for kind, (one, other) in ends.items():
        declaration = declared(SETTINGS[2][0], kind, 1)
        taps = [run("SELECT avg(x) FROM t WHERE sex = 'F'", rows, declaration, 1) for rows in (one, other)]
        (event, first), (_, second) = taps[0].settled[0], taps[1].settled[0]
        reached = [a.reach(b.values - a.values, event) for a, b in zip(first, second, strict=True)]
        assert max(reached) == 1
