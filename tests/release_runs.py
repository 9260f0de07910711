"""Runs of releases over a truth, and how what they say compares with it and with other runs."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from counted import ROUNDING, curator_of
from understudy.privacy.budget import Budget
from understudy.query.workload import Workload
from understudy.rational import Number
from understudy.releases.run import Outcome, Run


def run_over(
    truth: Any,
    workload: Workload,
    *,
    epsilon: Number = 1,
    delta: Number = 0,
    name: str = "r",
    beta: Fraction = Fraction(1, 20),
    **given: Any,
) -> Run:
    """A run that may spend all of epsilon and delta; what else is given, `curator_of` takes."""
    curator = curator_of(truth, epsilon=epsilon, delta=delta, **given)
    return Run(curator, workload, Budget.of(epsilon, delta), name, beta=beta)


def furthest(run: Run, outcome: Outcome) -> float:
    """The largest error of all cells of all answers, in parts of that cell's own bar on the side of the error.

    One slack for every release: the first `ROUNDING` people of an error are none. Answers and bars are sums of
    floats, and a bar may be 0 (a total that is public), where any rounding would be a broken promise. All that the
    slack can hide is a bar that is a millionth of a person too short. What is no number, or a bar below 0, is
    never within.
    """
    worst = 0.0
    for answer in outcome.answers:
        missing = run.curator._truth.count(answer.clique) - answer.counts
        with np.errstate(invalid="ignore"):  # between two infinite ends nothing is told
            below, above = answer.counts - answer.low, answer.high - answer.counts
        if not (np.isfinite(missing).all() and (below >= 0).all() and (above >= 0).all()):
            return inf
        bar, beyond = np.where(missing > 0, above, below), np.maximum(np.abs(missing) - ROUNDING, 0)
        parts = np.divide(beyond, bar, out=np.where(beyond > 0, inf, 0.0), where=bar > 0)
        worst = max(worst, float(parts.max()))
    return worst


def covered(run: Run, outcome: Outcome) -> bool:
    """Whether every cell of every answer is within its bar."""
    return furthest(run, outcome) <= 1


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes say the same, to the last bit."""
    return one.rows == other.rows and all(
        all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("counts", "low", "high"))
        for a, b in zip(one.answers, other.answers, strict=True)
    )
