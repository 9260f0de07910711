"""Where a quantile lies, by counts of the rows up to some edges: which count is asked next, and how many at most.

The number of rows comes first, where it is not known, and then the bins in which the quantile can lie are halved.
A count whose error leaves open on which side of it the quantile is stays inside the bins that are possible; then
counts on either side of it are asked, where earlier ones suggest that they are just clear of the quantile.

Promise     The quantile lies in the bins that are told, if every count is within the session's width of the truth.
            The bins that are left are those that these counts leave possible; most often the ranks of all edges
            between them are within 2 + 2p widths of that of the quantile of level p.
Why         `query.quantiles_of_bins`, for the intervals of the counts, which rise along the attribute. A count
            that is further from the quantile's rank than its own error and that of the number of rows rules out
            all bins on one side. Counts that no outcome would make clear, as in a group of few people, are not
            asked.
Length      At most 1 + levels·(⌈log₂ bins⌉ + BESIDE) counts are planned for each group: one for the number of
            rows, halving, and `BESIDE` more where a count is too near to tell.
Privacy     What is asked next is a function of the question and of released counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.quantiles_of_bins import Bools, Floats, QuantilesOfBins, can_hold
from understudy.sessions.direct import has_running_sums, running_sums
from understudy.sessions.knowledge import Knowledge, boxes_of

BESIDE = 2
"""Counts that are planned for each quantile beside those that halve its bins."""

Places = NDArray[np.intp]

Group = tuple[int, ...]
"""The cells of the attributes that quantiles are grouped by, in the order of the domain."""

IsTold = Callable[[Marginal, float, float], bool]
"""Whether a count is told well enough for nothing, from the question and the ends of what is known of it."""


@dataclass(frozen=True, eq=False)
class SearchPath:
    """How far a search comes for nothing.

    asked    the counts on its way that are told
    missing  for each group that it ends in early the count that has to be bought next
    open     for each of these groups how many counts it may still have to buy
    """

    asked: list[Marginal]
    missing: dict[Group, Marginal]
    open: dict[Group, int]

    @property
    def next(self) -> Marginal | None:
        """The count that has to be bought next; None where the search is at its end."""
        return next(iter(self.missing.values()), None)


@dataclass(frozen=True, eq=False)
class QuantileSearch:
    """The search for the quantiles of one marginal, in each of its groups; the module has rule and reason.

    `box` is of the rows of the marginal, `width` the error of counts, in people.
    """

    marginal: Marginal
    need: QuantilesOfBins
    box: Box
    width: float
    _last: list[tuple[Knowledge, tuple[Floats, Floats]]] = field(default_factory=list, repr=False)
    """The knowledge of which the running sums were found last, and these: nobody adds to it any more."""

    @classmethod
    def of(cls, marginal: Marginal, need: QuantilesOfBins, width: float) -> QuantileSearch | None:
        """None where quantiles cannot be searched for: of cells that conditions cut, or of too many of them."""
        box = boxes_of(marginal)
        if box is None or need.bins < 2 or not has_running_sums(marginal, need.over):
            return None
        return cls(marginal, need, box, width)

    @property
    def _others(self) -> tuple[str, ...]:
        return tuple(name for name in self.marginal.by if name != self.need.over)

    @cached_property
    def groups(self) -> list[Group]:
        """All groups."""
        return list(np.ndindex(*self.marginal.domain.shape(self._others)))

    @property
    def most(self) -> int:
        """The most counts that are planned for one group, if nothing is known."""
        halving = ceil(log2(self.need.bins)) + BESIDE
        return min(1 + len(self.need.levels) * halving, self.need.bins)

    def upto(self, group: Group, last: int) -> Marginal:
        """The count of a group's rows in the bin `last` and all before it."""
        domain, over = self.marginal.domain, self.need.over
        sides = dict(self.box.sides)
        for name, cell in zip(self._others, group, strict=True):
            sides[name] = np.arange(domain[name].size) == cell
        sides[over] = np.arange(domain[over].size) <= last
        return Marginal.of(LinearQuery.conjunction(domain, sides))

    def ends(self, knowledge: Knowledge) -> tuple[Floats, Floats]:
        """The lower and upper ends of the running sums in each group: the last axis is that of the bins."""
        if self._last and self._last[0][0] is knowledge:
            return self._last[0][1]
        found = running_sums(knowledge, self.marginal, self.need.over)
        assert found is not None
        axis = self.marginal.by.index(self.need.over)
        least, most = (np.moveaxis(part, axis, -1)[..., : self.need.bins] for part in found)
        self._last[:] = [(knowledge, (least, most))]
        return least, most

    def walk(self, knowledge: Knowledge, is_told: IsTold, *, takes_all: bool) -> SearchPath:
        """Go as far as counts are told. `takes_all` is whether counts are asked that other knowledge makes
        needless, as by who knows nothing else.
        """
        least, most = self.ends(knowledge)
        found, nothing = SearchPath([], {}, {}), float(knowledge.total[1])
        for group in self.groups:
            self._walk_in(group, least[group], most[group], nothing, is_told, found, takes_all=takes_all)
        return found

    def _walk_in(
        self,
        group: Group,
        least: Floats,
        most: Floats,
        total: float,
        is_told: IsTold,
        found: SearchPath,
        *,
        takes_all: bool,
    ) -> None:
        bins = self.need.bins
        needed = np.ones(bins, bool) if takes_all else self._open(least, most)
        low, high, seen = np.zeros(bins), np.full(bins, total), np.zeros(bins, bool)
        while (cut := self._next(low, high, seen)) is not None:
            count = self.upto(group, cut)
            if is_told(count, float(least[cut]), float(most[cut])):
                found.asked.append(count)
            elif needed[cut]:
                found.missing[group] = count
                left = needed & ~seen
                if not takes_all:
                    left &= most - least > 2 * self.width
                found.open[group] = max(min(int(left.sum()), self.most - int(seen.sum())), 1)
                return
            low[cut:] = np.maximum(low[cut:], least[cut])
            high[: cut + 1] = np.minimum(high[: cut + 1], most[cut])
            seen[cut] = True

    def _possible(self, low: Floats, high: Floats, level: float) -> tuple[int, int]:
        """The first and the last bin that may hold a quantile."""
        begins, ends = can_hold(low, high, level)
        first = int(begins.argmax()) if begins.any() else 0
        last = int(np.flatnonzero(ends)[-1]) if ends.any() else self.need.bins - 1
        return first, max(first, last)

    def _open(self, least: Floats, most: Floats) -> Bools:
        """The running sums that may still tell something by what is known: those inside possible bins, and all."""
        found = np.zeros(self.need.bins, bool)
        for level in self.need.levels:
            first, last = self._possible(least, most, level)
            found[first:last] = True
            found[-1] |= first < last
        return found

    def _next(self, low: Floats, high: Floats, seen: Bools) -> int | None:
        """The running sum to look at next; None where none of those that were not seen can tell anything."""
        if not seen[-1]:
            return self.need.bins - 1
        for level in self.need.levels:
            first, last = self._possible(low, high, level)
            inside = np.arange(first, last)
            if seen[inside].all():
                continue
            found = self._halfway(low, high, seen, inside, level)
            if found is not None:
                return found
        return None

    def _halfway(self, low: Floats, high: Floats, seen: Bools, inside: Places, level: float) -> int | None:
        """A running sum `inside` the bins that are possible: the middle one; or, where one that was seen is too
        near to the quantile to tell, about the first beside it that is clear. None where none can be clear.
        """
        unseen, near = inside[~seen[inside]], inside[seen[inside]]
        at = np.flatnonzero(seen)
        middle = np.maximum.accumulate((low[at] + high[at]) / 2)
        rank, reach = level * middle[-1], self.width + level * (high[-1] - low[-1]) / 2
        can_rise, can_fall = rank + reach < middle[-1], rank - reach > 0
        if not near.size:
            return int(unseen[(unseen.size - 1) // 2]) if can_rise or can_fall else None
        guess = np.interp(unseen, np.r_[-1, at], np.r_[0.0, middle])
        before, after = unseen[unseen < near[0]], unseen[unseen > near[-1]]
        if can_fall and before.size and (before.size >= after.size or not can_rise):
            clear = unseen[(unseen < near[0]) & (guess < rank - reach)]
            return int(clear[-1] if clear.size else before[0])
        if can_rise and after.size:
            clear = unseen[(unseen > near[-1]) & (guess > rank + reach)]
            return int(clear[0] if clear.size else after[-1])
        return None

    def guess(self, knowledge: Knowledge) -> Floats:
        """Counts of all cells between the running sums that are told, as if rows were spread evenly between those.

        Cells beyond the bins are taken from what is known of them.
        """
        least, most = self.ends(knowledge)
        axis = self.marginal.by.index(self.need.over)
        size, bins = self.marginal.domain[self.need.over].size, self.need.bins
        cells = np.zeros((*least.shape[:-1], size))
        for group in self.groups:
            told = most[group] - least[group] <= 2 * self.width + 1
            told[-1] = True
            at = np.flatnonzero(told)
            middle = np.maximum.accumulate((least[group][at] + most[group][at]) / 2)
            sums = np.interp(np.arange(bins), np.r_[-1, at], np.r_[0.0, middle])
            cells[group][:bins] = np.diff(sums, prepend=0.0)
        return np.moveaxis(cells, -1, axis)
