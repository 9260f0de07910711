"""Averages of bins and expressions from two sums that share each row: what lies above the least value, and the
rest.

With x between `lowest` and `highest` in every row of a group, t = (x - lowest)/(highest - lowest) lies between 0
and 1. A row adds t to the sum T of a group and 1 - t to the rest S, so one unit in all: side by side the two
sums move no further than one count does (`privacy.columns.WeightColumns`), and both get the whole price, where T
and the number of rows N = S + T, which a row moves by 1 each, would get half of it each.

    average   lowest + (highest - lowest)·T/(S + T)
    rows      S + T
    sum       lowest·S + highest·T

The noise of S and of T is independent. T - r·N is (1 - r)·T - r·S, with variance (1 - r)² + r² times that of one
sum, and not 1 + r² times twice that: at r = 1/2 the error is √(0.5/2.5), which is 0.45, of what it would be. All
three are linear in S and T, or a ratio of such, and their intervals follow from the noise's own law where it is
known (`ratio_intervals`), else from a box of possible sums. Where bins are of very different widths, their half
widths are bounded by a box always, with the probability of their own marginal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.sql.aggregate import EXACT, Bounds, Fold, Folded, nothing_known
from understudy.sql.grid import Floats, Numbers
from understudy.sql.group import AXIS, Tally
from understudy.sql.ratio_intervals import FOR_ROWS, JointNoise, ratio_interval

ROWS, HIGH = (1.0, 1.0), (0.0, 1.0)
"""The number of rows and the sum of t, in the two sums S and T."""


@dataclass(frozen=True)
class RowShares:
    """The two sums over the same rows: `low` of 1 - t and `high` of t, with t between two values of x."""

    lowest: float
    highest: float
    low: Tally
    high: Tally

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return self.low, self.high

    @property
    def key(self) -> object:
        return self.lowest, self.highest, self.low.key, self.high.key

    @property
    def whole(self) -> tuple[float, float]:
        """The sum of x, in the two sums."""
        return self.lowest, self.highest

    def folded(self, fold: Fold) -> list[Folded]:
        return [fold(tally) for tally in self.tallies]


def _joint(sums: Sequence[Folded]) -> JointNoise | None:
    return JointNoise.of([part.noise for part in sums])


def _ends(
    sums: Sequence[Folded], form: Sequence[float], joint: JointNoise | None, part: float = 1.0
) -> tuple[Floats, Floats]:
    """The least and the most of a combination of the sums: by the noise's law with a part of β, or by a box."""
    if joint is not None:
        beta = joint.beta * part
        plain = tuple(form) == ROWS
        off = joint.reach_of_sum(beta) if plain else joint.reach([abs(c) for c in form], beta)
        value = joint.released(form)
        return value - off, value + off
    low = sum(c * (one.low if c > 0 else one.high) for c, one in zip(form, sums, strict=True))
    high = sum(c * (one.high if c > 0 else one.low) for c, one in zip(form, sums, strict=True))
    return np.asarray(low), np.asarray(high)


def _counted(
    sums: Sequence[Folded], joint: JointNoise | None, part: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """The number of rows that was released, and its least and its most: all of them are possible."""
    ends, most = _ends(sums, ROWS, joint, part), sums[0].most
    value, low, high = (np.clip(one, 0.0, most) for one in (sums[0].value + sums[1].value, *ends))
    return np.clip(value, low, high), low, high


def _summed(
    shares: RowShares, sums: Sequence[Folded], joint: JointNoise | None, part: float = 1.0
) -> tuple[Floats, Floats]:
    """The least and the most of the sum of x: both are possible with no rows, and with as many as there can be.

    Where an interval holds the true sum, so does what is left of it between the least and the most possible one.
    """
    most = sums[0].most
    least, largest = min(shares.lowest, 0.0), max(shares.highest, 0.0)
    possible = (
        least and least * most,
        largest and largest * most,
    )  # 0 also of a number of rows without a bound
    low, high = (np.clip(end, *possible) for end in _ends(sums, shares.whole, joint, part))
    return low, high


@dataclass(frozen=True)
class OfShares:
    """What aggregates of shares have in common: they need both sums, and the half widths of uneven bins."""

    shares: RowShares
    bounds: Bounds = EXACT

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return (*self.shares.tallies, *self.bounds.tallies)

    @property
    def key(self) -> object:
        return type(self).__name__, self.shares.key, self.bounds.key


@dataclass(frozen=True)
class SharedCount(OfShares):
    """The number of rows, from the shares of an average that is bought anyway."""

    def half_width(self, fold: Fold) -> Floats:
        """How far the number of rows can be off in each group, in people."""
        sums = self.shares.folded(fold)
        low, high = _ends(sums, ROWS, _joint(sums))
        return (high - low) / 2

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums = self.shares.folded(fold)
        joint = _joint(sums)
        value, low, high = _counted(sums, joint)
        if (
            joint is not None
        ):  # the number of rows is whole; expected rows, of which no law is told, need not be
            low, high = np.ceil(low), np.maximum(np.floor(high), np.ceil(low))
        point = np.clip(np.rint(value), low, high)
        return Numbers((AXIS,), point, low, high, null=np.zeros(low.shape, bool), kind="integer")


@dataclass(frozen=True)
class SharedSum(OfShares):
    """The sum of x over rows, from shares; 0 over no rows."""

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums, form = self.shares.folded(fold), self.shares.whole
        joint = _joint(sums)
        point = form[0] * sums[0].value + form[1] * sums[1].value
        low, high = _summed(self.shares, sums, joint, 1.0 if self.bounds.exact else 1 - FOR_ROWS)
        if discretised and not self.bounds.exact:
            rows = Folded(*_counted(sums, joint, FOR_ROWS))
            low, high = self.bounds.around_sum(fold, rows, low, high)
        point = np.clip(point, low, high)
        return Numbers((AXIS,), point, low, high, null=np.zeros(low.shape, bool), kind="real")


@dataclass(frozen=True)
class SharedMean(OfShares):
    """The average of x, from shares; missing where there are no rows, or nothing is known.

    The ratio lies in [0, 1] whatever the number of rows, so the interval is finite also where there may be none.
    """

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums = self.shares.folded(fold)
        rest, above = sums
        rows, joint = rest.value + above.value, _joint(sums)
        empty = rows <= 0
        spread = self.bounds.spread is not None  # then the number of rows is bounded besides
        if joint is not None:
            least, most = ratio_interval(joint, HIGH, ROWS, joint.beta * (1 - FOR_ROWS if spread else 1.0))
        else:
            least, most = _ratio(above.low, rest.high, 0.0), _ratio(above.high, rest.low, 1.0)
        with np.errstate(all="ignore"):
            ratio = np.where(empty, 0.5, above.value / np.where(empty, 1.0, rows))
        ratio = np.clip(ratio, least, np.maximum(least, most))
        lowest, width = self.shares.lowest, self.shares.highest - self.shares.lowest
        empty |= nothing_known(sums, rest.low + above.low, least, most)
        point, low, high = (lowest + width * part for part in (ratio, least, most))
        if discretised:
            counted = Folded(*_counted(sums, joint if spread else None, FOR_ROWS))
            low, high = self.bounds.around_mean(fold, counted, low, high)
        return Numbers((AXIS,), point, low, high, null=empty, kind="real")


def _ratio(above: Floats, rest: Floats, unknown: float) -> Floats:
    """above / (above + rest), which rises with the one and falls with the other; `unknown` where both are 0."""
    whole = above + rest
    with np.errstate(all="ignore"):
        return np.where(whole > 0, np.clip(above / np.where(whole > 0, whole, 1.0), 0.0, 1.0), unknown)
