"""Histograms: bands for all sets, or all ranges, of one attribute's cells at once, from one noisy measurement.

Promise, reason and cost are those of `families`; here the half-width depends on the size of a set. For a class of
sets S with noise N(S), the band of the sets of size k is m_k + κ·s_k, where κ is the 1 - β
quantile of max_k (M_k - m_k)/s_k and M_k = max |N(S)| over the sets of size k. Any constants m_k, s_k make it
valid; means and deviations make it even. They are estimated from draws of their own, so that for those that κ is
found from they are constants. How κ is found safely: `simulation`; for ranges, which are few, also by the union
bound Σ P[|N(S)| > m_k + κ·s_k] ≤ β over all of them, and the smaller one is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.mechanism.matrix.ranges import MINIMAX_CELLS
from understudy.noise.law import discrete_laplace_quantile
from understudy.query.box import Cells
from understudy.rational import exact
from understudy.sessions.found_once import found_once
from understudy.sessions.simulation import (
    LatticeNoise,
    continuous,
    draws_for,
    extended_quantile,
    safe_quantile,
    where_it_falls,
)
from understudy.theory.normal_law import ndtr

Values = NDArray[np.float64]

LARGE = 1 << 12
"""From this deviation on, noise on the lattice is taken as continuous noise and a step of slack."""

MOST_DRAWS = 1 << 20
CELLS = 1 << 21
"""Simulated numbers in all, where that is enough draws."""

MOST_NUMBERS = 1 << 24
"""Where more would be needed, bands are found in a coarser way."""

BLOCK = 1 << 12


@dataclass(frozen=True, eq=False)
class OneWay:
    """A histogram that was bought: noisy counts of an attribute's cells, and half-widths in people.

    `half_widths[k]` is that of a set of k cells; of a range of k cells where the attribute is `ordered`.
    """

    counts: Values
    half_widths: Values
    ordered: bool

    def interval(self, cells: Cells) -> tuple[float, float]:
        """The interval of the count of a set of cells, in people."""
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
        """The lower and upper ends of the counts of all cells, each by itself, in people."""
        return self.counts - self.half_widths[1], self.counts + self.half_widths[1]


def suprema(noise: Values, *, ordered: bool) -> Values:
    """M_k for k = 0 … d, for each row of simulated noise on the histogram.

    For sets of size k the largest sum is that of the k largest; for ranges it is the largest difference of prefix
    sums.
    """
    draws, size = noise.shape
    largest = _largest_ranges if ordered else _largest_sets
    found = np.zeros((size + 1, draws))
    for at in range(0, draws, BLOCK):
        largest(noise[at : at + BLOCK], found[:, at : at + BLOCK])
    return np.ascontiguousarray(found.T)


def _largest_sets(noise: Values, found: Values) -> None:
    """Write the largest |N(S)| over the sets of k cells into `found[k]`, for each row of noise.

    The k largest cells of all draws are added up together, as in `_largest_ranges`.
    """
    rising = np.ascontiguousarray(np.sort(noise, axis=1).T)
    top, bottom = np.zeros(len(noise)), np.zeros(len(noise))
    for k in range(1, len(rising) + 1):
        top += rising[-k]
        bottom -= rising[k - 1]
        np.maximum(top, bottom, out=found[k])


def _largest_ranges(noise: Values, found: Values) -> None:
    """Write the largest |N(S)| over the ranges of k cells into `found[k]`, for each row of noise.

    Draws lie along the last axis here, a block of them at a time, so that the maxima are taken over whole vectors
    that stay in the processor's cache.
    """
    draws, size = noise.shape
    prefix = np.zeros((size + 1, draws))
    np.cumsum(noise.T, axis=0, out=prefix[1:])
    room = np.empty((size, draws))
    for k in range(1, size + 1):
        sums = np.subtract(prefix[k:], prefix[: size + 1 - k], out=room[: size + 1 - k])
        np.abs(sums, out=sums).max(axis=0, out=found[k])


@found_once(512)
def shape(design: HistogramDesign, beta: float) -> tuple[Values, Values, float]:
    """m_k, s_k and κ for continuous noise of deviation 1 (scale 1 for Laplace).

    κ is safe for Gaussian noise; for Laplace noise it is a guide.
    """
    draws = int(np.clip(CELLS // design.size, 1 << 12, 1 << 16))
    first = _suprema_of(design, draws // 8, stream=1)
    mean, deviation = first.mean(axis=0), first.std(axis=0)
    if design.centred:
        deviation[-1] = 0.0
    largest = _standardised(_suprema_of(design, draws), mean, deviation)
    if design.laplace:
        return mean, deviation, float(np.quantile(largest, 1 - min(beta, 0.5)))
    moving = deviation > 0
    steepest = float((_deviations(design)[moving] / deviation[moving]).max(initial=0.0))
    kappa = extended_quantile(largest, beta, steepest)
    return mean, deviation, min(kappa, _union_kappa(design, beta, mean, deviation, kappa))


def _suprema_of(design: HistogramDesign, draws: int, *, stream: int = 0) -> Values:
    noise = continuous((draws, len(design.matrix)), laplace=design.laplace, stream=stream)
    return suprema(design.noise_of(noise), ordered=design.ordered)


def _union_kappa(design: HistogramDesign, beta: float, mean: Values, deviation: Values, most: float) -> float:
    """κ by the union bound over all ranges, each of them normal; `most` if that is larger, or for other sets."""
    if not design.ordered or design.size > MINIMAX_CELLS:
        return most
    unmixed = design.noise_of(np.eye(len(design.matrix))).T
    prefix = np.concatenate([np.zeros((1, unmixed.shape[1])), np.cumsum(unmixed, axis=0)])
    starts, ends = np.triu_indices(design.size + 1, 1)
    own, size = np.linalg.norm(prefix[ends] - prefix[starts], axis=1), ends - starts
    moving = deviation[size] > 0
    own, size = own[moving] * (1 + 1e-9), size[moving]

    def excess(kappa: float) -> float:
        return 2 * float(ndtr(-(mean + kappa * deviation)[size] / own).sum()) - beta

    return most if excess(most) > 0 else where_it_falls(excess, 0.0, most)


@found_once(512)
def half_widths(design: HistogramDesign, spread: Fraction, beta: float) -> Values:
    """The band for each size of set, at noise of variance (for Laplace: scale) `spread` on the combinations."""
    unit = float(spread) if design.laplace else float(spread) ** 0.5
    few = draws_for(beta) * design.size <= MOST_NUMBERS
    if few and design.is_plain and (unit <= LARGE or design.laplace):
        widths = _by_drawing(design, spread, beta)
    elif design.laplace:
        widths = _slack(design) * discrete_laplace_quantile(spread, exact(beta) / design.size)
    else:
        mean, deviation, kappa = shape(design, beta)
        widths = unit * (mean + kappa * deviation) + _slack(design)
    widths = np.maximum(widths, 0.0)
    if design.centred:
        widths[-1] = 0.0  # the whole is known
    widths.flags.writeable = False
    return widths


def _by_drawing(design: HistogramDesign, spread: Fraction, beta: float) -> Values:
    """Bands from draws of the discrete law itself, or of one nearby and the slack between them."""
    unit = float(spread) if design.laplace else float(spread) ** 0.5
    mean, deviation, _ = shape(design, beta)
    mean, deviation = mean * unit, deviation * unit
    cells = len(design.matrix)
    draws = max(draws_for(beta), min(CELLS // cells, MOST_DRAWS // 4))
    source = LatticeNoise.of(spread, laplace=design.laplace)
    largest: list[Values] = []
    for start in range(0, draws, BLOCK):
        drawn = source.draw((min(BLOCK, draws - start), cells))
        largest.append(
            _standardised(suprema(design.noise_of(drawn), ordered=design.ordered), mean, deviation)
        )
    kappa = safe_quantile(np.concatenate(largest), beta - cells * source.distance)
    widths = mean + kappa * deviation
    return widths + source.slack * _slack(design) if source.slack else widths


def _standardised(found: Values, mean: Values, deviation: Values) -> Values:
    moving = deviation > 0
    if not moving.any():
        return np.zeros(len(found))
    return ((found[:, moving] - mean[moving]) / deviation[moving]).max(axis=1)


def _deviations(design: HistogramDesign) -> Values:
    """The largest deviation of a member of each size, for noise of deviation 1."""
    return _over_members(design, lambda coefficients: np.sqrt((coefficients**2).sum(axis=1)))


def _slack(design: HistogramDesign) -> Values:
    """How far steps of at most 1 in each combination can move a member of each size."""
    return _over_members(design, lambda coefficients: np.abs(coefficients).sum(axis=1))


def _over_members(design: HistogramDesign, norm: Callable[[Values], Values]) -> Values:
    size = design.size
    if not design.ordered:
        found = np.zeros(size + 1)
        for k in range(1, size + 1):
            row = np.where(np.arange(size) < k, 1.0, 0.0) - (k / size if design.centred else 0.0)
            found[k] = norm(row[None, :])[0]
        return found
    unmixed = design.noise_of(np.eye(len(design.matrix))).T
    prefix = np.concatenate([np.zeros((1, unmixed.shape[1])), np.cumsum(unmixed, axis=0)])
    return np.array(
        [0.0, *(float(norm(prefix[k:] - prefix[: size + 1 - k]).max()) for k in range(1, size + 1))]
    )
