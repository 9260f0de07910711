"""The judge of error bars, on answers that are off by what is known."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from counted import ROUNDING, Cells
from release_runs import covered, furthest, run_over
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.workload import Workload
from understudy.releases.run import MarginalAnswer, Outcome

DOMAIN = Domain((Bins.integers("a", 0, 2),))
TABLE = np.array([10, 20, 30])


@pytest.mark.parametrize(
    ("off", "bar", "parts"),
    [
        ([0, 0, 0], [0, 0, 0], 0),
        ([0, ROUNDING / 2, 0], [0, 0, 0], 0),
        ([0, -2 * ROUNDING, 0], [0, 0, 0], inf),
        ([1, -2, 3], [4, 4, 4], 0.75),
        ([1, -2, 3], [4, 2, 30], 1),
        ([1, -5, 3], [4, 4, 4], 1.25),
        ([9, 9, 9], [inf, inf, inf], 0),
        ([nan, 0, 0], [9, 9, 9], inf),
        ([inf, 0, 0], [9, 9, 9], inf),
        ([0, 0, 0], [9, nan, 9], inf),
        ([0, 0, 0], [9, 9, -1], inf),
    ],
)
def test_the_furthest_cell_is_told_in_parts_of_its_own_bar(off, bar, parts):
    run = run_over(Cells(DOMAIN, TABLE), Workload.of(DOMAIN, [("a",), ()]))
    answers = (
        MarginalAnswer.around((), np.array(60.0), np.array(0.0), "measured"),
        MarginalAnswer.around(("a",), TABLE + np.array(off), np.array(bar, np.float64), "measured"),
    )
    outcome = Outcome("none", None, 60, answers, {})  # type: ignore[arg-type]
    assert furthest(run, outcome) == pytest.approx(parts, abs=2 * ROUNDING)
    assert covered(run, outcome) == (parts <= 1)


@pytest.mark.parametrize(("below", "above", "parts"), [(1, 8, 0.25), (8, 1, 2), (0, 2, 1), (2, 1, 2)])
def test_a_bar_reaches_as_far_as_it_says_to_each_side(below, above, parts):
    run = run_over(Cells(DOMAIN, TABLE), Workload.of(DOMAIN, [("a",)]))
    told = TABLE - 2.0  # two people are missing everywhere
    answer = MarginalAnswer(("a",), told, told - below, told + above, "measured")
    outcome = Outcome("none", None, 60, (answer,), {})  # type: ignore[arg-type]
    assert furthest(run, outcome) == pytest.approx(parts, abs=2 * ROUNDING)
