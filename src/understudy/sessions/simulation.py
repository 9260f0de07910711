"""Quantiles by simulation that are safe: too small with probability at most `DOUBT`, or not at all.

Four things make them cheap and still right.

Order statistics   The r-th largest of N draws is exceeded with probability above b only if fewer than r draws
                   pass the true 1 - b quantile: Binomial(N, b) < r.
Isoperimetry       If P[G ≤ q] ≥ Φ(a) for a function G of standard normals that is L-Lipschitz, then
                   P[G ≤ q + L·t] ≥ Φ(a + t): a quantile found from few draws extends to rare events (the
                   Gaussian isoperimetric inequality of Borell, and of Sudakov and Tsirelson).
Coupling           Noise on the lattice is within one step of continuous noise of the same parameter: with both
                   drawn from one uniform number, X ≤ N + 1 and X ≥ N - 1, since sums of a decreasing density over
                   k ≥ m lie between its integrals from m and from m - 1. For the Gaussian the normaliser of the
                   lattice is the larger one, by the factor c = 1 + 2·exp(-2π²σ²) + …, which helps with m - 1. With
                   m ≥ σ the density is convex from m on, so that the sum exceeds the integral by half of its first
                   term f(m); and (c - 1) times the integral, which is at most f(m)·σ²/m, is less than that for
                   every σ. With 1 = m < σ the sum exceeds the integral by at least ∫₀¹ f - 1/2 > 0.3, and c - 1 is
                   below 10⁻⁸; from σ = 2 on c is 1 to 30 digits.
Coarser lattice    Discrete Laplace noise X of scale b is within s - 1 of s·Y, with such noise Y of scale b/s, for
                   every whole s: with q = exp(-1/b), P[X ≥ sj] = qˢʲ/(1 + q) ≤ qˢʲ/(1 + qˢ) = P[Y ≥ j] for j ≥ 0,
                   and P[X < -si] = qˢⁱ⁺¹/(1 + q) ≥ qˢⁱ⁺ˢ/(1 + qˢ) = P[Y < -i] for i ≥ 1, both since q ≥ qˢ. So,
                   with both drawn from one uniform number, the whole part of X/s is at most Y, which is
                   X ≤ sY + s - 1; and X ≥ sY - (s - 1) by symmetry. The table of Y's law has a bounded length.

The seed is public, and the same for everybody: what is simulated here protects nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from understudy.noise.law import discrete_gaussian_log_law, discrete_laplace_log_law
from understudy.theory.normal_law import ndtri

Values = NDArray[np.float64]

DOUBT = 1e-9
"""The probability that a simulated quantile is below the true one."""

RANKS = (8, 16, 32, 64, 128, 256)
SEED = 20
LATTICE = 9
"""The stream of draws on the lattice."""

LONGEST_SCALE = 1 << 12
"""Laplace noise of a larger scale is drawn on a coarser lattice."""

UNIFORM = 10
"""The first word of the streams of uniform numbers."""

BISECTIONS = 40


def draws_for(beta: float) -> int:
    """How many draws a safe order statistic for the 1 - `beta` quantile needs at least."""
    return ceil(48 / beta)


def continuous(shape: tuple[int, ...], *, laplace: bool = False, stream: int = 0) -> Values:
    """Simulated noise of deviation (for Laplace: scale) 1; of other streams, independent noise."""
    generator = np.random.default_rng((SEED, stream))
    return generator.laplace(size=shape) if laplace else generator.standard_normal(size=shape)


def uniform(shape: tuple[int, ...], *, stream: int) -> Values:
    """Numbers between 0 and 1, independent of all simulated noise; of other streams, independent ones."""
    return np.random.default_rng((SEED, UNIFORM, stream)).random(shape)


def continuous_blocks(
    draws: int, shape: tuple[int, ...], block: int, *, laplace: bool = False
) -> Iterator[Values]:
    """The draws of `continuous`, each of this shape, in blocks; a block is good until the next is asked for."""
    generator = np.random.default_rng((SEED, 0))
    room = np.empty((min(block, draws), *shape))
    for at in range(0, draws, block):
        part = room[: min(block, draws - at)]
        if laplace:
            part[...] = generator.laplace(size=part.shape)
        else:
            generator.standard_normal(out=part)
        yield part


def safe_quantile(sample: Values, beta: float) -> float:
    """An order statistic that is below the 1 - `beta` quantile with probability at most `DOUBT`."""
    rank = _rank(DOUBT, sample.size, beta)
    if rank < 1:
        raise ValueError("more draws are needed for this probability")
    return float(np.partition(sample, sample.size - rank)[sample.size - rank])


def extended_quantile(sample: Values, beta: float, lipschitz: float) -> float:
    """A bound of the 1 - `beta` quantile of a Lipschitz function of standard normals, from a sample of it.

    The best of several order statistics, each extended to `beta`; each is wrong with an equal part of `DOUBT`.
    """
    from scipy.special import betainccinv  # late: it takes a quarter of a second to load

    falling = -np.sort(-sample)
    found, doubt = np.inf, DOUBT / (len(RANKS) + 1)
    for rank in (*RANKS, _rank(doubt, sample.size, beta)):
        if 1 <= rank <= sample.size:
            exceeded = float(betainccinv(rank, sample.size - rank + 1, doubt))
            further = max(float(ndtri(exceeded) - ndtri(beta)), 0.0)
            found = min(found, float(falling[rank - 1]) + lipschitz * further)
    return found


def _rank(doubt: float, draws: int, beta: float) -> int:
    """The largest r with P[Binomial(draws, beta) < r] ≤ doubt, or one less.

    By `scipy.special` and not by `scipy.stats`, which takes most of a second to load.
    """
    from scipy.special import bdtr

    low, high = 0, draws  # the distribution function reaches `doubt` at `high`, and not below `low`
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtr(middle, draws, beta) >= doubt else (middle + 1, high)
    return low


def where_it_falls(excess: Callable[[float], float], low: float, high: float) -> float:
    """A point just above the root of a falling function that is not positive at `high`: never below the root."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


@dataclass(frozen=True, eq=False)
class LatticeNoise:
    """Discrete Gaussian or Laplace noise from a table of its law, to within `distance` in total variation.

    Laplace noise of a large scale is drawn in multiples of `step`: each is within `slack` of the noise itself.
    """

    generator: np.random.Generator
    first: int
    below: Values
    step: int = 1

    @property
    def distance(self) -> float:
        """The distance in total variation of a draw from its law.

        A value is drawn with its probability in the table but for half a unit of 2⁻⁵³ of the sum and one of the
        uniform number. The probabilities themselves, and what lies beyond the table, are off by less than 10⁻¹³.
        """
        return max(1e-12, self.below.size * 2.0**-52)

    @property
    def slack(self) -> int:
        """How far a draw can be from the noise that it stands for."""
        return self.step - 1

    @classmethod
    def of(cls, spread: Fraction, *, laplace: bool) -> LatticeNoise:
        """Noise of variance (for Laplace noise: scale) `spread`."""
        step = max(1, ceil(spread / LONGEST_SCALE)) if laplace else 1
        return cls(np.random.default_rng((SEED, LATTICE)), *_table(spread / step, laplace), step)

    def draw(self, shape: tuple[int, ...]) -> Values:
        """Independent draws in an array of this shape: multiples of `step`, as floating-point numbers."""
        uniform = self.generator.random(shape)
        drawn = np.searchsorted(self.below, uniform, side="right").astype(np.float64) + self.first
        return drawn * self.step


@lru_cache(maxsize=16)
def _table(spread: Fraction, laplace: bool) -> tuple[int, Values]:  # noqa: FBT001 (cached)
    """The first value, and the probability of lying at or below each value."""
    reach = ceil(36 * float(spread)) if laplace else ceil(8.5 * float(spread) ** 0.5) + 1
    values = np.arange(-reach, reach + 1)
    law = discrete_laplace_log_law if laplace else discrete_gaussian_log_law
    below = np.cumsum(np.exp(law(spread, values)))
    return -reach, below[:-1]
