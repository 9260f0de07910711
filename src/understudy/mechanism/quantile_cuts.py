"""Where the rows of one cell are counted for their quantiles, round after round, and what the counts say. Public.

A cut c is between two steps of a measure: below it lie the rows whose step is less than c. For a level p the
quantile is where

    T(c) = (1 - p)·(rows below c) - p·(rows not below c)

passes from below 0 to above, and T never falls as c grows. Everything here is made of released counts, of the
public levels and of the number of steps: it costs nothing, and nothing here decides what may be told.

The ends of an interval rest on one round each, whose cuts were fixed before its noise was drawn. No value that is
called the quantile lies below a cut c with T(c) ≤ -p, and none at or above one with T(c) ≥ 1 - p. Cuts are
tested in a fixed order, from the lowest upwards, each at the full level β, up to the first that fails: the lower
end is the last one before it. It is wrong only if the first cut of which T(c) ≤ -p is false passes its test, and
which cut that is depends on the table and on the cuts alone. So its probability is at most β, however many cuts
there are. (A fixed-sequence test; Maurer, Hothorn and Lehmacher 1995.) The upper end is found likewise, from the
highest cut downwards, as the step before the last cut that passes. An earlier round gives ends in the same way,
with a small part of β, and the nearer ends of all rounds are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.noise.sums import NoiseLaw, quick_bounds, sum_bound

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

FEW_STEPS, FOR_EACH_LEVEL = 31, 16
"""Measures of so few steps, or so few for each level, are counted at every cut at once."""

FIRST_CUTS = 16
"""Cuts of the first round, at equal distances, for all levels together."""

ZOOM_CUTS = 8
"""Cuts for each level in a round that looks for where its quantile lies."""

BRANCHES = 9
"""Parts into which such a round divides the region of a quantile."""

DOUBTFUL = 2.0
"""Deviations of T from 0 within which a cut may be on either side of the quantile."""

LADDER = (-0.2, 0.6, 1.8)
"""Where the last round cuts on either side of a quantile, in deviations beyond the bound that the test needs.

By simulation on smooth data: the nearest cut passes every other time or so, and the farthest nearly always.
"""

ROUNDING = 1e-12
"""What float sums of counts can be off by, as a part of them."""


def counts_every_cut(steps: int, levels: int) -> bool:
    """Whether one round that counts the rows of every step is expected to be better than several of fewer cuts."""
    return steps <= max(FEW_STEPS, FOR_EACH_LEVEL * levels)


@dataclass(frozen=True, slots=True)
class RoundTerms:
    """The noise of a round's counts, and the probability with which one end that rests on it may be wrong."""

    law: NoiseLaw
    beta: float
    last: bool

    def deviation(self, level: Fraction, cuts: int) -> float:
        """About that of the noise of T at one of so many cuts."""
        p = float(level)
        return self.law.deviation * sqrt(((1 - p) ** 2 + p**2) * (cuts + 1) / 2)

    def weights(self, level: Fraction, cuts: int) -> Floats:
        """The inverse of the variance of T at each of so many cuts."""
        p, below = float(level), np.arange(1, cuts + 1)
        return 1 / (self.law.deviation**2 * ((1 - p) ** 2 * below + p**2 * (cuts + 1 - below)))

    def bound(self, level: Fraction, cuts: int, place: int) -> float:
        """How far the noise of T at a cut is beyond 0 on either side at most, but with probability `beta`."""
        return sum_bound(self.law, (place + 1, cuts - place), 1 - level, self.beta)

    def passed(self, beyond: Floats, level: Fraction, *, upwards: bool) -> int:
        """How many cuts pass the test one after the other, from the first or, downwards, from the last.

        `beyond` is for each cut how far T is on the right side of 0, with noise.
        """
        quick = quick_bounds(self.law, beyond.size + 1, 1 - level, self.beta)
        order = range(beyond.size) if upwards else range(beyond.size - 1, -1, -1)
        for count, place in enumerate(order):
            far = float(beyond[place])
            if far < quick[place] and not (
                self.last and far > 0 and far >= self.bound(level, beyond.size, place)
            ):
                return count
        return beyond.size


@dataclass(slots=True)
class _SeenCuts:
    """What rounds told of T for one level: cuts, noisy values and the inverse of their variances."""

    cuts: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    weights: list[float] = field(default_factory=list[float])


@dataclass(slots=True)
class CutSearch:
    """The search for the quantiles of one cell: the cuts of the next round, and the ends that are found so far."""

    steps: int
    levels: tuple[Fraction, ...]
    low: list[int] = field(init=False)
    high: list[int] = field(init=False)
    _told: list[_SeenCuts] = field(init=False)
    _rows: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        self.low = [0] * len(self.levels)
        self.high = [self.steps] * len(self.levels)
        self._told = [_SeenCuts() for _ in self.levels]

    def cuts(self, terms: RoundTerms) -> Whole:
        """The cuts of the next round, in order: numbers between 1 and the last step."""
        if counts_every_cut(self.steps, len(self.levels)):
            return np.arange(1, self.steps + 1, dtype=np.int64)
        if not self._told[0].cuts:
            first = np.linspace(0, self.steps + 1, FIRST_CUTS + 2)[1:-1]
            found = {round(cut) for cut in first.tolist()}
        else:
            aim = self._ladder if terms.last else self._region
            found = {cut for level in range(len(self.levels)) for cut in aim(level, terms)}
        kept = sorted(cut for cut in found if 1 <= cut <= self.steps)
        return np.array(kept or [(self.steps + 1) // 2], np.int64)

    def observe(self, cuts: Whole, counts: Whole, terms: RoundTerms) -> None:
        """Take the noisy counts between cuts, those before the first and after the last among them."""
        below = np.cumsum(counts.astype(np.float64))
        self._rows = max(float(below[-1]), 1.0)
        above = below[-1] - below[:-1]
        size = np.abs(counts.astype(np.float64)).sum() * ROUNDING
        for i, level in enumerate(self.levels):
            p = float(level)
            told = (1 - p) * below[:-1] - p * above
            count = terms.passed(-told - p - size, level, upwards=True)
            if count:
                self.low[i] = max(self.low[i], int(cuts[count - 1]))
            count = terms.passed(told - (1 - p) - size, level, upwards=False)
            if count:
                self.high[i] = min(self.high[i], int(cuts[cuts.size - count]) - 1)
            held = self._told[i]
            held.cuts += cuts.tolist()
            held.values += told.tolist()
            held.weights += terms.weights(level, cuts.size).tolist()

    def ends(self) -> list[tuple[int, int, int]]:
        """For each level the lower end, the estimate and the upper end, in steps."""
        found: list[tuple[int, int, int]] = []
        for i in range(len(self.levels)):
            low, high = sorted((self.low[i], self.high[i]))  # out of order only if one of them is wrong
            point = floor(self._curve(i).crossing(0.0))
            found.append((self.low[i], min(max(point, low), high), self.high[i]))
        return found

    def _curve(self, i: int) -> _Curve:
        return _Curve.fitted(self._told[i], self.steps, float(self.levels[i]), self._rows)

    def _region(self, i: int, terms: RoundTerms) -> list[int]:
        """Cuts at equal distances of T between the last cuts that are on one side of the quantile for certain."""
        curve = self._curve(i)
        off = DOUBTFUL * curve.deviations
        low = float(curve.values[curve.values < -off].max(initial=float(curve.values[0])))
        high = float(curve.values[curve.values > off].min(initial=float(curve.values[-1])))
        apart = (high - low) / (ZOOM_CUTS - 1)
        return [curve.outwards(low + apart * place) for place in range(ZOOM_CUTS)]

    def _ladder(self, i: int, terms: RoundTerms) -> list[int]:
        """Cuts on either side of the quantile, where T is about what the test needs and somewhat more."""
        curve, level = self._curve(i), self.levels[i]
        cuts = 2 * len(LADDER) * len(self.levels)
        bound = terms.bound(level, cuts, cuts // 2)
        off = hypot(curve.deviation_at_zero, terms.deviation(level, cuts))
        return [curve.outwards(side * (bound + off * further)) for side in (-1, 1) for further in LADDER]


@dataclass(frozen=True, slots=True)
class _Curve:
    """A rising curve through what was told of T: by least squares, and linear between the cuts."""

    cuts: Floats
    values: Floats
    deviations: Floats

    @classmethod
    def fitted(cls, told: _SeenCuts, steps: int, level: float, rows: float) -> _Curve:
        at, place = np.unique(np.array(told.cuts), return_inverse=True)
        weights = np.bincount(place, told.weights)
        values = np.bincount(place, np.array(told.values) * told.weights) / weights
        rising = _rising(values.tolist(), weights.tolist())
        low, high = min(-level * rows, rising[0] - 1e-9), max((1 - level) * rows, rising[-1] + 1e-9)
        return cls(
            np.concatenate([[0.0], at, [steps + 1.0]]),
            np.concatenate([[low], rising, [high]]),
            np.concatenate([[0.0], 1 / np.sqrt(weights), [0.0]]),
        )

    def crossing(self, value: float) -> float:
        """The cut at which the curve reaches a value."""
        i = int(np.clip(np.searchsorted(self.values, value, "left"), 1, self.values.size - 1))
        below, above = self.values[i - 1], self.values[i]
        part = min(max((value - below) / (above - below), 0.0), 1.0) if above > below else 0.5
        return float(self.cuts[i - 1] + part * (self.cuts[i] - self.cuts[i - 1]))

    def outwards(self, value: float) -> int:
        """The cut at which the curve reaches a value, or the next one further from the quantile."""
        return floor(self.crossing(value)) if value < 0 else ceil(self.crossing(value))

    @property
    def deviation_at_zero(self) -> float:
        """About the deviation of T where it passes 0."""
        return float(np.interp(self.crossing(0.0), self.cuts[1:-1], self.deviations[1:-1]))


def _rising(values: list[float], weights: list[float]) -> Floats:
    """The rising sequence that is nearest by weighted least squares: neighbours out of order are pooled."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, size = value, weight, 1
        while pools and pools[-1][0] >= mean:
            before, held, count = pools.pop()
            mean, total, size = (before * held + mean * total) / (held + total), held + total, size + count
        pools.append((mean, total, size))
    return np.concatenate([np.full(size, mean) for mean, _, size in pools])
