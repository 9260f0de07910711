"""Typical error, by running the shipped mechanism on invented data of the planned shape. Not a promise.

Only mechanisms that exist in the program are run; the data is invented here, never the user's. Noise is seeded: a
simulation must repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from understudy.errors import ParameterError
from understudy.mechanism.additive import noise_for
from understudy.noise.samplers import SeededNoise
from understudy.planner.mechanisms import MECHANISMS
from understudy.privacy.columns import PARTITION
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.theory.planned import PlanInputs, planned_epsilon

RUNS = 9
SIMULATED_QUERIES = 100_000
SIMULATED_CELLS = 1_000_000
SEED = 20

RELATION = Relation(Neighbours.REPLACE)
"""What is planned for: one row is replaced, and the number of rows is public."""


def expected(mechanism: str, situation: PlanInputs) -> float | None:
    """The median over a few runs of the largest error of all queries; None where the mechanism cannot be run yet.

    Where more queries are planned than are simulated, the largest error of fewer of them is shown: typical errors
    of the maximum grow only with the logarithm of their number.
    """
    run = _runner(mechanism)
    if run is None:
        return None
    try:
        largest = [run(situation, seed) for seed in range(SEED, SEED + RUNS)]
    except ParameterError:  # the price of one answer is beyond what the mechanism accepts
        return None
    return float(np.median(largest))


def _runner(mechanism: str) -> Callable[[PlanInputs, int], float] | None:
    """How a mechanism is run once, with a seed; None where it cannot be."""
    if mechanism == "histogram":
        return _histogram
    built = next((planned.one_answer for planned in MECHANISMS if planned.name == mechanism), None)
    return None if built is None else partial(_one_by_one, built)


def _counts(situation: PlanInputs, seed: int) -> np.ndarray:
    """True counts of invented yes-or-no questions about invented rows."""
    rng = np.random.default_rng(seed)
    queries = min(situation.queries, SIMULATED_QUERIES)
    return rng.binomial(situation.rows, rng.random(queries)).astype(np.int64)


def _one_by_one(built: Callable[[PlanInputs], Any], situation: PlanInputs, seed: int) -> float:
    """The largest error, as a rate, when every answer is released with its share of the budget."""
    counts = _counts(situation, seed)
    told = built(situation).release(counts, noise=SeededNoise(seed))
    return float(np.abs(told - counts).max() / situation.rows)


def _histogram(situation: PlanInputs, seed: int) -> float:
    cells = situation.universe or 2
    if cells > SIMULATED_CELLS:
        raise ParameterError("the universe is too large to be simulated")
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(situation.rows, rng.dirichlet(np.ones(cells))).astype(np.int64)
    epsilon = Fraction(repr(planned_epsilon(situation)))
    mechanism = noise_for(Price("epsilon", epsilon), RELATION.moves(PARTITION))
    noise = mechanism.release(counts, noise=SeededNoise(seed)) - counts
    queries = rng.integers(0, 2, (min(situation.queries, max(1, 10**7 // cells), 1000), cells))
    return float(np.abs(queries @ noise).max() / situation.rows)
