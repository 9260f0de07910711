"""Typical error, by running the shipped mechanism on invented data of the planned shape. Not a promise.

Only mechanisms that exist in the program are run; the data is invented here, never the user's. Noise is seeded: a
simulation must repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor

import numpy as np

from understudy.errors import ParameterError
from understudy.mechanism.additive import noise_for
from understudy.noise.samplers import SeededNoise
from understudy.planner.inputs import PlanInputs
from understudy.privacy.columns import ONE_COUNT, PARTITION
from understudy.privacy.compose import zcdp_rho
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation

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
    run = _RUNNERS.get(mechanism)
    if run is None:
        return None
    try:
        largest = [run(situation, seed) for seed in range(SEED, SEED + RUNS)]
    except ParameterError:  # the price of one answer is beyond what the mechanism accepts
        return None
    return float(np.median(largest))


def _counts(situation: PlanInputs, seed: int) -> np.ndarray:
    """True counts of invented yes-or-no questions about invented rows."""
    rng = np.random.default_rng(seed)
    queries = min(situation.queries, SIMULATED_QUERIES)
    return rng.binomial(situation.rows, rng.random(queries)).astype(np.int64)


def _laplace(situation: PlanInputs, seed: int) -> float:
    counts = _counts(situation, seed)
    mechanism = noise_for(
        Price("epsilon", _epsilon(situation)) / situation.queries, RELATION.moves(ONE_COUNT)
    )
    return float(np.abs(mechanism.release(counts, noise=SeededNoise(seed)) - counts).max() / situation.rows)


def _gaussian(situation: PlanInputs, seed: int) -> float:
    if not situation.delta:
        raise ParameterError("Gaussian noise needs a delta")
    rho = Fraction(floor(zcdp_rho(float(_epsilon(situation)), situation.delta) * 10**12), 10**12)
    counts = _counts(situation, seed)
    mechanism = noise_for(Price("rho", rho) / situation.queries, RELATION.moves(ONE_COUNT))
    return float(np.abs(mechanism.release(counts, noise=SeededNoise(seed)) - counts).max() / situation.rows)


def _histogram(situation: PlanInputs, seed: int) -> float:
    cells = situation.universe or 2
    if cells > SIMULATED_CELLS:
        raise ParameterError("the universe is too large to be simulated")
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(situation.rows, rng.dirichlet(np.ones(cells))).astype(np.int64)
    mechanism = noise_for(Price("epsilon", _epsilon(situation)), RELATION.moves(PARTITION))
    noise = mechanism.release(counts, noise=SeededNoise(seed)) - counts
    queries = rng.integers(0, 2, (min(situation.queries, max(1, 10**7 // cells), 1000), cells))
    return float(np.abs(queries @ noise).max() / situation.rows)


def _epsilon(situation: PlanInputs) -> Fraction:
    return Fraction(repr(float(situation.epsilon or 1)))


_RUNNERS: dict[str, Callable[[PlanInputs, int], float]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "histogram": _histogram,
}
