"""Aggregates as linear queries, and what their released sums say about them.

A count is a sum of weights 0 and 1. A sum of x is written lowest·(number of rows) + width·(sum of weights
(x - lowest)/width), an average is lowest + width·(a ratio in [0, 1]): the weights of a linear query lie in [0, 1],
and this way one person moves them as little as possible. x stands for the representative of its bin; how far it
can be from the value itself is the discretisation error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from understudy.domain.bins import Bins
from understudy.query.cell_noise import TallyNoise
from understudy.query.quantiles_of_bins import can_hold
from understudy.sql.grid import TEMPORAL, Bools, Floats, Numbers, ends
from understudy.sql.group import AXIS, Tally
from understudy.sql.ratio_intervals import JointNoise


@dataclass(frozen=True, slots=True)
class Folded:
    """A tally in each group: what was released, and between what bounds the truth is; its noise, where known.

    Of a tally over the cells of an attribute, `through` are the lower and upper ends of the sums of each cell and
    all before it, where more is known of these than follows from the cells. `most` is the most rows that there can
    be. `measured` says whether the values rest on noise and its bounds alone, and not on a model that knows more.
    """

    value: Floats
    low: Floats
    high: Floats
    through: tuple[Floats, Floats] | None = None
    noise: TallyNoise | None = None
    most: float = inf
    measured: bool = False


Fold = Callable[[Tally], Folded]


def _numbers(
    point: Floats, low: Floats, high: Floats, null: Floats | None = None, kind: str = "real"
) -> Numbers:
    missing = np.zeros(point.shape, bool) if null is None else np.asarray(null, bool)
    return Numbers((AXIS,), point, low, high, null=missing, kind=kind)


def nothing_known(parts: Sequence[Folded], fewest: Floats, least: Floats, most: Floats) -> Bools:
    """In which groups nothing is known of an average or a quantile: there may be no rows, and it may be any value.

    `fewest` are the fewest rows that there can be, and the average is between `least` and `most`, parts of its
    range. What noise makes of it says nothing then, whatever it is. A model's estimate is told all the same.
    """
    measured = all(part.measured for part in parts)
    return (fewest <= 0) & (least <= 0) & (most >= 1) & measured


@dataclass(frozen=True)
class Count:
    """The number of rows with a weight of 1.

    Where a group is made of several cells, it is off by the sum of their noises, of which the law is known: that
    reaches less far than each of them at its farthest does, added up.
    """

    rows: Tally

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return (self.rows,)

    @property
    def key(self) -> object:
        return "count", self.rows.key

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        rows = fold(self.rows)
        joint = JointNoise.of([rows.noise])
        if joint is None:
            return _numbers(rows.value, rows.low, rows.high, kind="integer")
        released, off = joint.released([1.0]), joint.reach_of_sum(joint.beta)
        low, high = (
            np.clip(end, 0.0, rows.most) for end in (np.ceil(released - off), np.floor(released + off))
        )
        return _numbers(np.clip(rows.value, low, high), low, high, kind="integer")

    def half_width(self, fold: Fold) -> Floats:
        """How far the number of rows can be off in each group, in people."""
        rows = fold(self.rows)
        joint = JointNoise.of([rows.noise])
        if joint is None:
            return (rows.high - rows.low) / 2
        return np.floor(joint.reach_of_sum(joint.beta))  # what is told and what is true are both whole


@dataclass(frozen=True)
class Bounds:
    """How far the values of rows can be from their representatives.

    The value of a row is at most `below` under its representative and at most `above` over it, and between `least`
    and `most`. Where bins are of very different widths, `spread` tallies the half width of each row's bin, as a
    fraction of `below` and `above`, which are then equal.
    """

    below: float = 0.0
    above: float = 0.0
    least: float = -inf
    most: float = inf
    spread: Tally | None = None

    @property
    def exact(self) -> bool:
        return self.below == self.above == 0

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return (self.spread,) if self.spread else ()

    @property
    def key(self) -> object:
        return self.below, self.above, self.least, self.most, self.spread.key if self.spread else None

    def around_sum(self, fold: Fold, rows: Folded, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Bounds of a sum over rows, from those of the sum of representatives.

        Where what was released of the sum contradicts what was released of its rows, no sum is within both, and
        one of them is wrong, which β allows for: then both bounds are the point half-way between the two.
        """
        count = rows.high if self.spread is None else fold(self.spread).high
        least = self.least * (rows.high if self.least < 0 else rows.low)
        most = self.most * (rows.high if self.most > 0 else rows.low)
        low, high = np.maximum(low - self.below * count, least), np.minimum(high + self.above * count, most)
        contradicted = low > high
        middle = np.where(contradicted, low, 0.0) / 2 + np.where(contradicted, high, 0.0) / 2
        return np.where(contradicted, middle, low), np.where(contradicted, middle, high)

    def around_mean(self, fold: Fold, rows: Folded, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The same for an average."""
        share: Floats = np.ones(rows.low.shape)
        if self.spread is not None:
            with np.errstate(all="ignore"):
                share = np.where(rows.low > 0, np.clip(fold(self.spread).high / rows.low, 0, 1), 1.0)
        return np.maximum(low - self.below * share, self.least), np.minimum(
            high + self.above * share, self.most
        )


EXACT = Bounds()
"""Of values that are what they stand for."""


@dataclass(frozen=True)
class Sum:
    """A sum of `parts`, each a coefficient times a tally. A sum over no rows is 0.

    `rows` tells how many rows there are, where the error of bins needs it.
    """

    parts: tuple[tuple[float, Tally], ...]
    bounds: Bounds = EXACT
    rows: Tally | None = None

    @property
    def tallies(self) -> tuple[Tally, ...]:
        rows = (self.rows,) if self.rows else ()
        return (*(tally for _, tally in self.parts), *rows, *self.bounds.tallies)

    @property
    def key(self) -> object:
        rows = self.rows.key if self.rows else None
        return "sum", sorted((c, *t.key) for c, t in self.parts), self.bounds.key, rows

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        point = low = high = np.zeros(1)
        for coefficient, tally in self.parts:
            part = fold(tally)
            point = point + coefficient * part.value
            low = low + coefficient * (part.low if coefficient > 0 else part.high)
            high = high + coefficient * (part.high if coefficient > 0 else part.low)
        if discretised and self.rows is not None:
            low, high = self.bounds.around_sum(fold, fold(self.rows), low, high)
        return _numbers(point, low, high)


@dataclass(frozen=True)
class Mean:
    """`lowest` + `width` times the ratio of `weight` to `rows`; missing where there are none, or nothing is known.

    The ratio lies in [0, 1] whatever the number of rows, so the interval is finite also where there may be none.
    """

    lowest: float
    width: float
    rows: Tally
    weight: Tally | None
    bounds: Bounds

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return (self.rows, *((self.weight,) if self.weight else ()), *self.bounds.tallies)

    @property
    def key(self) -> object:
        weight = self.weight.key if self.weight else None
        return "mean", self.lowest, self.width, self.rows.key, weight, self.bounds.key

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        rows = fold(self.rows)
        empty = rows.value <= 0
        if self.weight is None:
            ratio = least = most = np.zeros(rows.value.shape)
        else:
            part = fold(self.weight)
            with np.errstate(all="ignore"):
                ratio = np.clip(np.where(empty, 0.5, part.value / rows.value), 0, 1)
                least = np.where(rows.high > 0, np.clip(part.low / rows.high, 0, 1), 0.0)
                most = np.where(rows.low > 0, np.clip(part.high / rows.low, 0, 1), 1.0)
                empty |= nothing_known([rows, part], rows.low, least, most)
        ratio = np.clip(ratio, least, np.maximum(least, most))
        point, low, high = (self.lowest + self.width * part for part in (ratio, least, most))
        if discretised:
            low, high = self.bounds.around_mean(fold, rows, low, high)
        return _numbers(point, low, high, null=empty)


@dataclass(frozen=True)
class Quantile:
    """The value below which the share `level` of the rows lies, from counts of the bins of `attribute`.

    The interval runs over every bin that the quantile could be in, given the bounds of all counts.
    """

    tally: Tally
    attribute: Bins
    level: float
    continuous: bool

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return (self.tally,)

    @property
    def kind(self) -> str:
        """The kind of the released numbers: days and moments of such attributes, else real numbers."""
        return self.attribute.kind if self.attribute.kind in TEMPORAL else "real"

    @property
    def key(self) -> object:
        return "quantile", self.tally.key, self.level, self.continuous

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        bins = fold(self.tally)
        proper = self.attribute.proper_size
        counts, low, high = (part[:, :proper] for part in (bins.value, bins.low, bins.high))
        points = self.attribute.representatives
        lows, highs = ends(self.attribute) if discretised else (points, points)
        sums = bins.through
        through = None if sums is None else (sums[0][:, :proper], sums[1][:, :proper])
        first, last = self._possible(low, high, through)
        total = counts.sum(axis=1)
        point = np.clip(self._point(counts, total, points), lows[first], highs[last])
        unknown = nothing_known([bins], low.sum(axis=1), first / 1.0, last / max(proper - 1, 1))
        return _numbers(point, lows[first], highs[last], null=(total <= 0) | unknown, kind=self.kind)

    def _possible(
        self, low: Floats, high: Floats, through: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The first and the last bin that may hold the quantile.

        With N rows it lies between the order statistics of ranks floor and ceil of level·(N - 1), from 0. Bin j or
        one before holds the lower one only if through(j) > level·(N - 1), and bin j or one after the upper one
        only if below(j) < level·(N - 1) + 1; both are asked of the counts most favourable to them. Bounds of the
        running sums through(j), of which N is the last, may rule out more.
        """
        p = self.level
        through_most, above_least = np.cumsum(high, axis=1), _after(low)
        can_begin = (1 - p) * through_most - p * above_least + p > -1e-9
        can_begin &= through_most > 0
        below_least, from_most = np.cumsum(low, axis=1) - low, _after(high) + high
        can_end = (1 - p) * below_least - p * from_most + p - 1 < 1e-9
        if through is not None:
            begins, ends_there = can_hold(*through, p)
            can_begin, can_end = can_begin & begins, can_end & ends_there
        size = low.shape[1]
        first = np.where(can_begin.any(axis=1), can_begin.argmax(axis=1), 0)
        last = np.where(can_end.any(axis=1), size - 1 - can_end[:, ::-1].argmax(axis=1), size - 1)
        return first, np.maximum(first, last)

    def _point(self, counts: Floats, total: Floats, points: Floats) -> Floats:
        through = np.cumsum(counts, axis=1)
        if not self.continuous:
            rank = np.maximum(np.ceil(self.level * total - 1e-9), 1) - 1
            return self._at(through, rank, points)
        rank = np.maximum(self.level * (total - 1), 0)
        under, over = np.floor(rank), np.ceil(rank)
        one, other = self._at(through, under, points), self._at(through, over, points)
        return one + (other - one) * (rank - under)

    def _at(self, through: Floats, rank: Floats, points: Floats) -> Floats:
        """The representative of the row of a rank, from 0."""
        cell = (through <= rank[:, None]).sum(axis=1)
        return points[np.minimum(cell, len(points) - 1)]


def _after(cells: Floats) -> Floats:
    """For each cell the sum over those after it."""
    from_here = np.cumsum(cells[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([from_here[:, 1:], np.zeros((len(cells), 1))], axis=1)
