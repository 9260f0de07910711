"""Counts along one ordered attribute: what is known of some of its ranges, and what follows for others.

For the rows that meet the other conditions of a question let F(e) be how many of them lie before the edge e. The
count of a range from a to b is F(b) - F(a), so that an interval for it is a pair of constraints on a difference;
and F never falls. What follows from such constraints together is a shortest path: F(b) - F(a) is at most the
length of the shortest path from a to b, and no smaller bound follows (difference constraints, Bellman 1958).

The cells for other and for missing values come after the last bin, so that they are ranges of this line as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute
from understudy.domain.bins import Bins
from understudy.query.box import Cells

Values = NDArray[np.float64]

Edge = tuple[int, Any]
"""A place on the line: (0, where a bin begins), (1, the number of a cell that is no bin), or `END`."""

Run = tuple[Edge, Edge]
Runs = tuple[Run, ...]
"""A set of values: ranges from an edge up to another, which is not in it; they neither touch nor overlap."""

END: Edge = (2, 0)

PASSES = 16
"""How often paths from one edge are made shorter, mostly, until none is: from many edges all are found at once."""


def edge_of(attribute: Attribute, cell: int) -> Edge:
    """Where a cell begins; where the line ends, for the number of cells."""
    if cell == attribute.size:
        return END
    if isinstance(attribute, Bins) and cell < attribute.proper_size:
        return 0, attribute.starts[cell]
    return 1, cell - attribute.proper_size


def runs_of(attribute: Attribute, cells: Cells) -> Runs:
    """Cells of an attribute as ranges of its line: equal for equal sets, however finely they are cut."""
    changes = np.flatnonzero(np.diff(np.r_[False, cells, False].astype(np.int8)))
    edges = [edge_of(attribute, int(cell)) for cell in changes]
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def holds(outer: Runs, inner: Runs) -> bool:
    """Whether one set lies within another."""
    return all(any(a <= low and high <= b for a, b in outer) for low, high in inner)


def without(outer: Runs, inner: Runs) -> Runs:
    """What is left of a set without another one that lies within it."""
    left: list[Run] = []
    for start, end in outer:
        at = start
        for low, high in inner:
            if start <= low and high <= end:
                left += [(at, low)] if at < low else []
                at = high
        left += [(at, end)] if at < end else []
    return tuple(left)


@dataclass(frozen=True, eq=False)
class RangeFact:
    """The counts of a set of values lie between `low` and `high`, in people, in each group of the line.

    `cut` are the attributes that were refined to count them.
    """

    runs: Runs
    low: Values
    high: Values
    cut: frozenset[str] = frozenset()


@dataclass(eq=False)
class RangeBounds:
    """The narrowest intervals that follow for ranges of one line from facts about others.

    Promise     Where all facts hold, each interval contains its true count; for a range it is the narrowest that
                follows from the facts about ranges.
    Cost        Time: edges² times the least of the number of edges and a few times the number of ends of ranges
                that are asked for, `starts`, for each group.
    """

    facts: Sequence[RangeFact]
    edges: Sequence[Edge]
    shape: tuple[int, ...]
    starts: int = 1
    _from: dict[int, Values] = field(default_factory=dict)
    contradicted: NDArray[np.bool_] = field(init=False)
    """The groups whose facts cannot all hold."""

    def __post_init__(self) -> None:
        self.contradicted = np.zeros(self.shape, bool)

    @cached_property
    def _place(self) -> dict[Edge, int]:
        return {edge: i for i, edge in enumerate(sorted(set(self.edges)))}

    @cached_property
    def _most(self) -> Values:
        """For each pair of edges the most that F can rise from the first to the second by one fact."""
        size = len(self._place)
        most = np.full((size, size, *self.shape), np.inf)
        most[np.arange(size), np.arange(size)] = 0.0
        most[np.arange(1, size), np.arange(size - 1)] = 0.0  # F never falls
        for fact in self.facts:
            if len(fact.runs) == 1:
                low, high = (self._place[edge] for edge in fact.runs[0])
                most[low, high] = np.minimum(most[low, high], fact.high)
                most[high, low] = np.minimum(most[high, low], -fact.low)
        return most

    @cached_property
    def _between_all(self) -> Values:
        """The lengths of the shortest paths between all edges, in each group (Floyd 1962)."""
        found = self._most.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # of facts that contradict each other
            for via in range(len(found)):
                np.minimum(found, found[:, via, None] + found[None, via], out=found)
        self.contradicted |= ~(found[np.arange(len(found)), np.arange(len(found))] >= 0).all(axis=0)
        return found

    def _paths(self, start: int) -> Values:
        """The lengths of the shortest paths from an edge to all others, in each group."""
        if PASSES * self.starts > len(self._place):
            return self._between_all[start]
        if start not in self._from:
            found, changed = self._most[start].copy(), np.ones(self.shape, bool)
            for _ in range(len(self._place) + 1):
                shorter = np.minimum(found, (found[:, None] + self._most).min(axis=0))
                changed = (shorter < found).any(axis=0)
                found = shorter
                if not changed.any():
                    break
            self.contradicted |= changed  # lengths that fall without end: the facts contradict each other
            self._from[start] = found
        return self._from[start]

    def _range(self, run: Run) -> tuple[Values, Values]:
        low, high = (self._place[edge] for edge in run)
        return -self._paths(high)[low], self._paths(low)[high]

    def _sum(self, runs: Runs) -> tuple[Values, Values]:
        least, most = np.zeros(self.shape), np.zeros(self.shape)
        for run in runs:
            low, high = self._range(run)
            least, most = least + low, most + high
        return least, most

    def interval(self, runs: Runs) -> tuple[Values, Values]:
        """The ends of the counts of a set of values, in people; the first may be above the second by mistake."""
        least, most = self._sum(runs)
        for fact in self.facts:
            if len(fact.runs) == len(runs) == 1:
                continue  # every path has gone by it
            if holds(fact.runs, runs):
                low, high = self._sum(without(fact.runs, runs))
                least, most = np.maximum(least, fact.low - high), np.minimum(most, fact.high - low)
            elif holds(runs, fact.runs):
                low, high = self._sum(without(runs, fact.runs))
                least, most = np.maximum(least, fact.low + low), np.minimum(most, fact.high + high)
        bad = self.contradicted
        return np.where(bad, 1.0, np.maximum(least, 0.0)), np.where(bad, -1.0, most)
