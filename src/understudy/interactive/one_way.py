"""Bands for all subsets, or all ranges, of one attribute at once, from one noisy measurement (`design`).

The measurement is bought once. The band speaks of every member of the class together, before anybody chooses from
it: for a class of sets S with noise N(S), the band of the sets of size k is m_k + κ·s_k, where κ is the 1 - β
quantile of max_k (M_k - m_k)/s_k and M_k = max |N(S)| over the sets of size k. Any constants m_k, s_k make it
valid; means and deviations make it even. The quantile is found by simulation on the exact discrete law, with an
order statistic that is too small with probability at most 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from understudy.interactive.conjunction import Cells
from understudy.interactive.design import Design
from understudy.noise import SeededNoise, discrete_gaussian, discrete_laplace

Values = NDArray[np.float64]

DRAWS = 1 << 16
BLOCK = 1 << 12
DOUBT = 1e-9
"""Chance that the simulated quantile is below the true one."""

SIMULATION = 20
"""The seed of the simulations: their result is public, and the same for everybody."""


@dataclass(frozen=True, eq=False)
class OneWay:
    """Noisy counts of an attribute's cells, and how far off the sum over a set of them can be."""

    counts: Values
    half_widths: Values
    ordered: bool

    def interval(self, cells: Cells) -> tuple[float, float]:
        """Where the count of a set of cells lies, if the band holds."""
        estimate = float(self.counts[cells].sum())
        width = self._width(cells)
        return estimate - width, estimate + width

    def _width(self, cells: Cells) -> float:
        """The set's own band, or, for an ordered attribute, the sum over its runs."""
        if not self.ordered:
            return float(self.half_widths[int(cells.sum())])
        edges = np.flatnonzero(np.diff(np.r_[False, cells, False].astype(np.int8)))
        return float(self.half_widths[edges[1::2] - edges[::2]].sum())

    @property
    def single(self) -> tuple[Values, Values]:
        """Lower and upper ends for each cell on its own."""
        return self.counts - self.half_widths[1], self.counts + self.half_widths[1]


def suprema(noise: Values, *, ordered: bool) -> Values:
    """M_k for k = 0 … d, for each row of simulated noise on the histogram.

    For sets of size k the largest sum is that of the k largest; for ranges it is the largest difference of prefix
    sums.
    """
    draws, size = noise.shape
    if ordered:
        prefix = np.concatenate([np.zeros((draws, 1)), np.cumsum(noise, axis=1)], axis=1)
        found = [np.abs(prefix[:, k:] - prefix[:, : size + 1 - k]).max(axis=1) for k in range(1, size + 1)]
        return np.stack([np.zeros(draws), *found], axis=1)
    rising = np.sort(noise, axis=1)
    top = np.cumsum(rising[:, ::-1], axis=1)
    bottom = -np.cumsum(rising, axis=1)
    return np.concatenate([np.zeros((draws, 1)), np.maximum(top, bottom)], axis=1)


@lru_cache(maxsize=512)
def shape(design: Design, beta: float) -> tuple[Values, Values, float]:
    """m_k, s_k and about κ for noise of deviation 1 (scale 1 for Laplace): a guide for choosing the noise."""
    generator = np.random.default_rng(SIMULATION)
    size = (min(max(BLOCK, round(40 / beta)), DRAWS), len(design.matrix))
    noise = generator.laplace(size=size) if design.laplace else generator.normal(size=size)
    found = suprema(design.noise_of(noise), ordered=design.ordered)
    mean, deviation = found.mean(axis=0), found.std(axis=0)
    if design.centred:
        deviation[-1] = 0.0
    kappa = float(np.quantile(_standardised(found, mean, deviation), 1 - min(beta, 0.5)))
    return mean, deviation, kappa


@lru_cache(maxsize=512)
def half_widths(design: Design, spread: Fraction, beta: float) -> Values:
    """The band for each size of set, at noise of variance (for Laplace: scale) `spread` on the combinations."""
    unit = float(spread) if design.laplace else float(spread) ** 0.5
    mean, deviation, _ = shape(design, beta)
    mean, deviation = mean * unit, deviation * unit
    noise, draws, cells = SeededNoise(SIMULATION), max(DRAWS, round(32 / beta)), len(design.matrix)
    draw = discrete_laplace if design.laplace else discrete_gaussian
    largest: list[Values] = []
    for start in range(0, draws, BLOCK):
        rows = min(BLOCK, draws - start)
        drawn = draw(spread, rows * cells, noise=noise).reshape(rows, cells).astype(np.float64)
        found = suprema(design.noise_of(drawn), ordered=design.ordered)
        largest.append(_standardised(found, mean, deviation))
    widths = np.maximum(mean + _safe_quantile(np.concatenate(largest), beta) * deviation, 0.0)
    if design.centred:
        widths[-1] = 0.0  # the whole is known
    widths.flags.writeable = False
    return widths


def _standardised(found: Values, mean: Values, deviation: Values) -> Values:
    moving = deviation > 0
    return ((found[:, moving] - mean[moving]) / deviation[moving]).max(axis=1)


def _safe_quantile(sample: Values, beta: float) -> float:
    """An order statistic that is below the 1 - `beta` quantile with probability at most `DOUBT`.

    At most b of the draws lie above the true quantile, b ~ Binomial(draws, at most beta); the statistic is too
    small only if at least its rank of them do not.
    """
    rank = int(binom.ppf(DOUBT, sample.size, beta))
    if rank < 1:
        raise ValueError("more draws are needed for this probability")
    return float(np.partition(sample, sample.size - rank)[sample.size - rank])
