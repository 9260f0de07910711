"""What is known about counts: intervals that all hold together, and what follows from them.

Promise     Where every band that was bought holds, each interval contains its true count.
Why         A band says so of the counts that it was bought for. Intersection, complement, monotonicity and the
            Fréchet bounds are deductions, so that what they give contains the true count as well.
Cost        Deducing costs neither privacy nor any of β.
Failure     Intervals that contradict each other tell that some band failed, which has probability at most β, but
            not which. The counts that they are about then count as unknown, and are bought again; the new band
            fails with no more than its own share of β, since its noise is independent of all that happened before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.domain.refinement import RefinedDomain
from understudy.query.box import Box, Grid
from understudy.query.marginal import Marginal
from understudy.sessions.box_bounds import BoxBounds
from understudy.sessions.cut_knowledge import CutKnowledge
from understudy.sessions.one_way import OneWay
from understudy.sessions.planned_sums import PlannedSums
from understudy.sessions.table_bounds import UpperEnds, along, of_marginals

if TYPE_CHECKING:
    from understudy.sessions.looks import FirstLook

Values = NDArray[np.float64]
Interval = tuple[float, float]
Place = tuple[tuple[str, bytes], ...]

TOUCHING = 1e-6
"""Ends of intervals, in people, that are further apart than rounding explains contradict each other."""

UNBOUNDED = 2.0**60
"""An upper end, in people, where nothing bounds a count: more than any table has, and exact in arithmetic."""

MOST_ALONE = 64
"""Cells of a marginal that are looked for, each by itself, among the counts that were bought."""

MOST_FIXED = 3
"""Conditions that a table is looked for which groups by them instead."""


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """The lower and upper end, in people, of the count of every cell of a marginal.

    `unbiased` are estimates of the counts where these are not the middles of the intervals.
    """

    low: Values
    high: Values
    unbiased: Values | None = None


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """Noisy counts of the cells of `by` among the rows in a box, as they were released; all of one variance."""

    by: Clique
    where: Box
    counts: Values
    variance: float


class ReleasedClass(Protocol):
    """A class of questions that was bought in one piece, with a band for all its members."""

    def interval(self, box: Box) -> Interval | None:
        """The interval of a box's count, in people; None where the class does not contain it."""
        ...

    def table(self, by: Clique, where: Box) -> IntervalTable | None:
        """The intervals of the cells of `by` among the rows in a box; None where they are not in the class."""
        ...


MOST_RELEASED = 1 << 22
"""Cells of releases that are kept for stand-ins; older ones are forgotten first."""

MOST_CLASSES = 1 << 12
"""Classes on the same attributes that are kept; older ones are forgotten first."""


@dataclass(eq=False)
class Contradiction:
    """Whether intervals turned out that cannot all hold; copies of the knowledge share what any of them found."""

    is_found: bool = False


@dataclass(eq=False)
class Knowledge:
    """Everything that a session released, as intervals of counts, and what follows from them.

    Promise, reason and cost are those of the module. A question takes time in the number of boxes, tables and
    classes that were bought, each of which is bounded.

    Deducing changes nothing but `contradicted`, which is only ever set: any number of threads may deduce from a
    knowledge that nobody adds to. A purchase adds to a `copy`, which then takes the place of the whole.

    grid          the domain's cells
    total         the interval of the number of rows; its upper end is finite
    one_ways      the histograms, by the name of their attribute
    marginals     the classes of all marginals that were bought
    released      the noisy counts of single questions, for stand-ins
    first_looks   first looks that were not enough, by their question (`looks`)
    cuts          what is known of counts that cut declared cells
    sums          the counts that were bought, and the sums that were planned with them (`planned_sums`)
    """

    grid: Grid
    total: Interval
    one_ways: dict[str, OneWay] = field(default_factory=dict)
    marginals: list[ReleasedClass] = field(default_factory=list)
    released: deque[ReleasedTable] = field(default_factory=deque)
    first_looks: dict[Any, FirstLook] = field(default_factory=dict)
    cuts: CutKnowledge = field(default_factory=CutKnowledge)
    _contradiction: Contradiction = field(default_factory=Contradiction)
    _declared: Interval = field(init=False)
    _is_counted: bool = False
    _grids: dict[Clique, dict[Place, ReleasedClass]] = field(default_factory=dict)
    sums: PlannedSums = field(init=False)
    _boxes: BoxBounds = field(init=False)
    _kept: int = 0
    _tables: dict[tuple[Clique, Place], IntervalTable] = field(default_factory=dict)
    _outer: UpperEnds = field(default_factory=UpperEnds)

    def __post_init__(self) -> None:
        self._declared = self.total
        self.sums = PlannedSums(self.grid.domain)
        self._boxes = BoxBounds(self.grid)

    @property
    def contradicted(self) -> bool:
        """Whether two intervals turned out that cannot both hold, in this knowledge or another copy of it."""
        return self._contradiction.is_found

    def copy(self) -> Knowledge:
        """The same knowledge, to be added to; this one stays as it is as long as nobody adds to it.

        Only one copy of a knowledge may be added to, and later ones are copied from that.
        """
        other = copy(self)
        other.one_ways, other._tables = dict(self.one_ways), dict(self._tables)
        other.marginals, other.released = list(self.marginals), self.released.copy()
        other._grids = {by: dict(held) for by, held in self._grids.items()}
        other._outer, other.cuts = self._outer.copy(), self.cuts.copy()
        other._boxes = self._boxes.copy()
        other.first_looks, other.sums = dict(self.first_looks), self.sums.copy()
        return other

    def learn(self, box: Box, interval: Interval) -> None:
        """Add that the count of a box lies in an interval, in people."""
        self._boxes.learn(box, interval)
        if not box.sides:
            self.learn_rows(interval)

    def learn_rows(self, interval: Interval) -> None:
        """Add that the number of rows lies in an interval, as what tells it beside other counts says.

        Where the number is public, or was bought by itself, nothing is added: that is as close as it has to be.
        """
        if self._is_counted or self.total[0] == self.total[1]:
            return
        low, high = max(self.total[0], interval[0]), min(self.total[1], interval[1])
        if low - high > TOUCHING:
            self._contradiction.is_found = True
            low, high = (float(end) for end in np.clip(interval, *self._declared))
        self.total = min(low, high), max(low, high)

    def learn_number_of_rows(self, noisy: float, error: float) -> None:
        """Add the number of rows that was bought by itself: a band of `error` people around a noisy number."""
        low, high = around(np.array(noisy), error, self._declared)
        self.learn_rows((float(low), float(high)))
        self._is_counted = True

    def learn_table(self, by: Clique, where: Box, table: IntervalTable) -> None:
        """Add that the counts of a marginal of the rows in a box lie in intervals."""
        self._tables[by, where.key] = table
        self._outer.learn(by, where, table.high)

    def keep(self, release: ReleasedTable) -> None:
        """Keep noisy counts as they were released, for stand-ins; tables that are too large are not kept."""
        if release.counts.size > MOST_RELEASED:
            return
        self.released.append(release)
        self._kept += release.counts.size
        while self._kept > MOST_RELEASED:
            self._kept -= self.released.popleft().counts.size

    def learn_class(self, by: Clique, where: Box, bought: ReleasedClass) -> None:
        """Add a class on the cells of `by`, of the rows in a box; it takes the place of one on the same."""
        held = self._grids.setdefault(by, {})
        held[where.key] = bought
        told = None if where.sides else bought.interval(where)
        if told is not None:
            self.learn_rows(told)
        if len(held) > MOST_CLASSES:
            del held[next(iter(held))]

    def classes_on(self, by: Clique, place: Place) -> Iterator[ReleasedClass]:
        """The classes on the attributes `by`, or on these and others, of the rows in the box with this key."""
        for names, held in self._grids.items():
            if set(by) <= set(names) and place in held:
                yield held[place]

    def classes(self) -> Iterator[tuple[Box, ReleasedClass]]:
        """The classes that are held, each with the rows that it is of."""
        for held in self._grids.values():
            for place, bought in held.items():
                yield Box.from_key(self.grid.domain, place), bought

    # ---- one count

    def interval(self, box: Box) -> Interval:
        """The narrowest interval, in people, that follows for the count of a box."""
        low, high = self.frechet(box)
        for below, above in (self._boxes.interval(box), self._of_tables(box), *self._of_classes(box)):
            low, high = max(low, below), min(high, above)
        other = box.complement()
        if other is not None:
            below, above = self._boxes.interval(other)
            low, high = max(low, self.total[0] - above), min(high, self.total[1] - below)
        if low <= high:
            return low, high
        settled = self.settled(np.array(low), np.array(high))
        return float(settled.low), float(settled.high)

    def settled(self, low: Values, high: Values) -> IntervalTable:
        """Intervals that may contradict each other: where they do, nothing is known."""
        empty = low > high
        if not empty.any():
            return IntervalTable(low, high)
        wrong = low - high > TOUCHING
        self._note(wrong)
        middle = (low + high) / 2
        low, high = np.where(empty, middle, low), np.where(empty, middle, high)
        return IntervalTable(np.where(wrong, 0.0, low), np.where(wrong, self.total[1], high))

    def _note(self, wrong: NDArray[np.bool_]) -> None:
        if wrong.any():
            self._contradiction.is_found = True

    def met(self, known: IntervalTable, estimate: Values, width: float) -> IntervalTable:
        """What is known, and a new band around noisy counts; the band alone where they contradict each other."""
        low, high = around(estimate, width, (0.0, self.total[1]))
        both_low, both_high = np.maximum(known.low, low), np.minimum(known.high, high)
        wrong = both_low - both_high > TOUCHING
        self._note(wrong)
        return self.settled(np.where(wrong, low, both_low), np.where(wrong, high, both_high))

    def frechet(self, box: Box) -> Interval:
        """Bounds of a conjunction from its conditions one by one: U = min Uᵢ, L = ΣLᵢ - (k - 1)N.

        Nothing is subtracted from N, which can be so large that a difference would lose what it is about.
        """
        low, high, held = self.total[0], self.total[1], 0.0
        for name, cells in box.sides.items():
            known = self.one_ways.get(name)
            below, above = (0.0, self.total[1]) if known is None else known.interval(cells)
            high = min(high, max(above, 0.0))
            held += max(below, 0.0)
        if box.sides:
            low = max(0.0, held - (len(box.sides) - 1) * self.total[1])
        return low, high

    def _of_tables(self, box: Box) -> Interval:
        """The cell of a marginal that was released, where the box is one."""
        single = [name for name, cells in box.sides.items() if cells.sum() == 1]
        low, high = 0.0, np.inf
        for length in range(1, len(single) + 1):
            for names in combinations(single, length):
                by = self.grid.domain.clique(names)
                rest = Box(self.grid.domain, {n: c for n, c in box.sides.items() if n not in names})
                table = self._tables.get((by, rest.key))
                if table is not None:
                    cell = tuple(int(np.flatnonzero(box.sides[name])[0]) for name in by)
                    low, high = max(low, float(table.low[cell])), min(high, float(table.high[cell]))
        return low, high

    def _of_classes(self, box: Box) -> list[Interval]:
        known = [held.interval(box) for held in self._holding((), box)]
        return [interval for interval in known if interval is not None]

    def _holding(self, by: Clique, box: Box) -> list[ReleasedClass]:
        """The classes that may hold the cells of `by`, or the count, of a box."""
        classes = list(self.marginals)
        for names, held in self._grids.items():
            if set(by) <= set(names):
                known = held.get(tuple(part for part in box.key if part[0] not in names))
                if known is not None:
                    classes.append(known)
        return classes

    # ---- all cells of a marginal

    def table(self, by: Clique, where: Box) -> IntervalTable:
        """The narrowest intervals that follow for the cells of a marginal of the rows in a box."""
        known = self._tables.get((by, where.key))
        if known is not None:
            return known
        low, high = self.of_histograms(by, self.interval(where))
        for held in self._holding(by, where):
            table = held.table(by, where)
            if table is not None:
                low, high = np.maximum(low, table.low), np.minimum(high, table.high)
        for table in self._slices(by, where):
            low, high = np.maximum(low, table.low), np.minimum(high, table.high)
        high = np.minimum(high, self._outer.above(by, where))
        for held in self.marginals if where.sides else ():
            ends = of_marginals(held, by, where)
            low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        if low.size <= MOST_ALONE and self._boxes:
            ends = self._of_cells(by, where)
            low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        return self.settled(low, high)

    def of_histograms(self, by: Clique, rows: Interval) -> tuple[Values, Values]:
        """Ends that histograms give the cells of a marginal of rows of which there are so many (Fréchet)."""
        shape = self.grid.domain.shape(by)
        held, high = np.full(shape, rows[0]), np.full(shape, rows[1])
        for axis, name in enumerate(by):
            one = self.one_ways.get(name)
            if one is None:
                continue
            low_cells, high_cells = one.single
            across = [-1 if i == axis else 1 for i in range(len(by))]
            high = np.minimum(high, np.maximum(high_cells, 0).reshape(across))
            held = held + np.maximum(low_cells, 0).reshape(across)
        return np.maximum(held - len(by) * self.total[1], 0), high

    def _of_cells(self, by: Clique, where: Box) -> tuple[Values, Values]:
        """Ends that counts which were bought by themselves give the cells of a marginal, each cell being a box."""
        shape = self.grid.domain.shape(by)
        cells = [where.at(by, place) for place in np.ndindex(*shape)]
        low, high = self._boxes.intervals(cells)
        others = [other for cell in cells if (other := cell.complement()) is not None]
        if len(others) == len(cells):
            below, above = self._boxes.intervals(others)
            low, high = np.maximum(low, self.total[0] - above), np.minimum(high, self.total[1] - below)
        return low.reshape(shape), high.reshape(shape)

    def _slices(self, by: Clique, where: Box) -> Iterator[IntervalTable]:
        """Released tables of which a marginal is a slice: they group by what its condition fixes to one cell."""
        single = [name for name, cells in where.sides.items() if cells.sum() == 1]
        for length in range(1, min(len(single), MOST_FIXED) + 1):
            for names in combinations(single, length):
                whole = self.grid.domain.clique((*by, *names))
                table = self._tables.get((whole, tuple(part for part in where.key if part[0] not in names)))
                if table is not None:
                    yield IntervalTable(*(along(end, whole, by, where) for end in (table.low, table.high)))

    def cell_counts(self, name: str) -> Values | None:
        """Noisy counts of an attribute's cells among all rows, in people, if any were released."""
        one = self.one_ways.get(name)
        if one is not None:
            return one.counts
        table = self._tables.get(((name,), ()))
        return None if table is None else (table.low + table.high) / 2

    # ---- what to answer

    def estimate(self, by: Clique, where: Box) -> Values | None:
        """Unbiased counts of cells, in people, each from the narrowest band about it; None where one has none."""
        estimate: Values | None = None
        narrowest: Values | float = np.inf
        for table in self._bands(by, where):
            width = table.high - table.low
            with np.errstate(invalid="ignore"):  # of cells that the band does not speak of
                told = (table.low + table.high) / 2 if table.unbiased is None else table.unbiased
            if estimate is None:
                estimate, narrowest = told, width
            else:
                estimate = np.where(width < narrowest, told, estimate)
                narrowest = np.minimum(width, narrowest)
        return None if estimate is None or not np.isfinite(estimate).all() else estimate

    def _bands(self, by: Clique, where: Box) -> Iterator[IntervalTable]:
        """The bands that were bought for the cells of a marginal, before they were put together."""
        if by:
            one = self.one_ways.get(by[0]) if len(by) == 1 and not where.sides else None
            if one is not None:
                yield IntervalTable(*one.single)
            told = (held.table(by, where) for held in self._holding(by, where))
            yield from (table for table in told if table is not None)
            return
        known = self._of_classes(where)
        if len(where.sides) == 1:
            [(name, cells)] = where.sides.items()
            one = self.one_ways.get(name)
            known += [] if one is None else [one.interval(cells)]
        for low, high in known:
            yield IntervalTable(np.array(low), np.array(high))


def around(estimate: Values, width: float, possible: Interval) -> tuple[Values, Values]:
    """The ends of a band of `width` people around noisy counts, cut to the interval `possible`.

    Where the whole band lies outside of it, it is put around the nearest possible count.
    """
    least, most = possible
    off = (estimate < least - width) | (estimate > most + width)
    centre = np.where(off, np.clip(estimate, least, most), estimate)
    return np.maximum(centre - width, least), np.minimum(centre + width, most)


def nearest(known: IntervalTable, estimate: Values | None, width: float) -> tuple[Values, Values]:
    """The values to answer where counts lie in intervals no wider than 2·width, and how far off these can be, in
    people.

    A value is the estimate, moved into the interval and so far towards its middle that the error is at most the
    width; or the middle, where there is no estimate.
    """
    if estimate is None:
        return (known.low + known.high) / 2, (known.high - known.low) / 2
    low, high = np.maximum(known.low, known.high - width), np.minimum(known.high, known.low + width)
    value = np.clip(estimate, np.minimum(low, high), high)
    return value, np.maximum(value - known.low, known.high - value)


def boxes_of(marginal: Marginal) -> Box | None:
    """The box of declared cells that a marginal is taken of.

    None where its condition is no box, cuts declared cells, or touches the marginal's own, and where it is no
    count.
    """
    is_count = marginal.moment is None and not isinstance(marginal.domain, RefinedDomain)
    box = Box.of(marginal.where) if is_count else None
    if box is None or set(box.sides) & set(marginal.by):
        return None
    return box
