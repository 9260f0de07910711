"""Promises about many answers together that were made one at a time: caught by counting how often all hold."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from audit.mutants.mutant import Mutant
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise, discrete_laplace
from understudy.sessions.simulation import LatticeNoise, draws_for, safe_quantile

BETA, CELLS, GAMES = 0.05, 40, 20_000
SCALE = Fraction(20)
FALSE_ALARM = 1e-9


def broken(band: Callable[[], float]) -> bool:
    """Whether a band that all cells are to keep together, but for a share β of the runs, certainly does not."""
    noise = discrete_laplace(SCALE, GAMES * CELLS, noise=SeededNoise(31)).reshape(GAMES, CELLS)
    missed = int((np.abs(noise).max(axis=1) > band()).sum())
    return bool(binom.sf(missed - 1, GAMES, BETA) < FALSE_ALARM)


def simulated(beta: float, cells: int = CELLS) -> float:
    """The band as a session finds it: a safe order statistic of simulated maxima."""
    drawn = LatticeNoise.of(SCALE, laplace=True).draw((20 * draws_for(beta), cells))
    return safe_quantile(np.abs(drawn).max(axis=1), beta)


def exact(beta: float) -> float:
    return float(LaplaceMechanism(epsilon=1 / SCALE, l1=1).error(Fraction(beta)))


def plain_quantile() -> float:
    """The empirical quantile of a dozen draws: too small every other time, and here it is."""
    drawn = np.random.default_rng(4).laplace(scale=float(SCALE), size=(12, CELLS))
    return float(np.quantile(np.abs(drawn).max(axis=1), 0.5))


COVERAGE = [
    Mutant("a session's band at β for each question", "coverage", lambda: broken(lambda: exact(BETA))),
    Mutant("a session's band from the law of one cell", "coverage", lambda: broken(lambda: simulated(BETA, 1))),
    Mutant("a session's band from a quantile of few draws", "coverage", lambda: broken(plain_quantile)),
    Mutant("a session that spends its β twice", "coverage", lambda: broken(lambda: simulated(2 * BETA))),
]  # fmt: skip

COVERAGE_HONEST = [
    Mutant("shares of β that add up to β", "coverage", lambda: broken(lambda: exact(BETA / CELLS))),
    Mutant("a session's own band", "coverage", lambda: broken(lambda: simulated(BETA))),
]
