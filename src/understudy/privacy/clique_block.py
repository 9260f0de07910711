"""The table of one clique in joint accounting, over classes of cells that no event has told apart.

T_C adds up what the events on a clique C charge to each of its cells. Cells of an attribute that lie in the same
spans of all these events form a class, and T_C is the same on a product of classes: so one number is kept for
each product, of which there are few where few events are about the clique. Messages and beliefs belong to cells.
Every maximum over cells is taken over classes, since for any vectors v_a along the axes

    max over cells of (T_C + Σ v_a)  =  max over products of classes of (T_C + Σ max of v_a over the class).

The numbers are therefore those of the table of all cells, at the price of the table of classes.

Single counts may be kept apart in the table, to be divided anew by later sweeps between the rows of their regions
and everybody (`message_passing`, `soft_message_passing`). A list of them that gets too long is closed: they stay
as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int64]
Inside = NDArray[np.bool_]
"""Which cells of an attribute are in a span."""

Attribute = tuple[str, int]
"""The name of an attribute and its number of cells."""
Clique = tuple[Attribute, ...]

OVERHEAD = 256
"""What a block counts beside its numbers, wherever room or work is counted."""

COUNT_OVERHEAD = 32
"""What a count that is divided anew counts beside the numbers of its table."""

QUICK = 4
"""Where the work of counts goes by their regions, so many classes of a table take the time of one number of it."""

MAX_ATTRIBUTES = 3
"""A clique has at most so many attributes."""

_LEAST = np.iinfo(np.int64).min
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class DividedCounts:
    """Single counts of a block: of each its price, what the rows of its region pay of it by themselves, and the
    classes along each axis that its region has. Everybody pays half of the rest.

    `by_region` says how the work of dividing them is counted: by the numbers of their regions, or of the table.
    """

    prices: Units
    weights: Units
    members: tuple[Inside, ...]
    by_region: bool

    def __len__(self) -> int:
        return len(self.prices)

    def rows_of(self, classes: Sequence[NDArray[np.intp]]) -> list[Inside]:
        """Which classes along each axis a region has, of these ones."""
        rows: list[Inside] = []
        for member, own in zip(self.members, classes, strict=True):
            row = np.zeros(member.shape[1], np.bool_)
            row[own] = True
            rows.append(row)
        return rows

    def place_of(self, rows: Sequence[Inside]) -> int | None:
        """The place of a count of the same region, of which there is one at most."""
        same = np.ones(len(self), np.bool_)
        for member, row in zip(self.members, rows, strict=True):
            same &= (member == row).all(axis=1)
        return int(same.argmax()) if same.any() else None

    def and_one(self, price: int, rows: Sequence[Inside]) -> DividedCounts:
        """One count more, paid by the rows of its region alone."""
        members = tuple(
            np.concatenate([member, row[None]]) for member, row in zip(self.members, rows, strict=True)
        )
        prices, weights = np.append(self.prices, price), np.append(self.weights, price)
        return replace(self, prices=prices, weights=weights, members=members)

    def with_more(self, place: int, price: int) -> DividedCounts:
        """The count at a place with another one of its region, which the rows of that pay alone: as one count."""
        prices, weights = self.prices.copy(), self.weights.copy()
        prices[place] += price
        weights[place] += price
        return replace(self, prices=prices, weights=weights)

    def work_of_one(self, shape: Sequence[int], region: int) -> int:
        """The work of dividing a count whose region has so many numbers of a table, beside that of a sweep."""
        if self.by_region:
            return region + (sum(shape) + COUNT_OVERHEAD) // QUICK
        return prod(shape) + COUNT_OVERHEAD

    @cached_property
    def work(self) -> int:
        """The work of dividing all of them: asked for several times with each event, and counted once."""
        each = len(self) * self.work_of_one([member.shape[1] for member in self.members], 0)
        if not self.by_region:
            return each
        regions = prod((member.sum(axis=1) for member in self.members), start=np.ones(len(self), np.int64))
        return each + int(regions.sum())

    def cut(self, axis: int, classes: NDArray[np.intp]) -> DividedCounts:
        """The same regions, where these classes of an axis get a second part each, with the next numbers."""
        members = list(self.members)
        members[axis] = np.concatenate([members[axis], members[axis].take(classes, axis=1)], axis=1)
        return replace(self, members=tuple(members))

    def divided(self, weights: Units) -> DividedCounts:
        """The same counts, of which the rows of their regions pay these weights by themselves."""
        return replace(self, weights=weights)


def no_counts(shape: Sequence[int], *, by_region: bool) -> DividedCounts:
    """None, over so many classes along each axis."""
    members = tuple(np.zeros((0, size), np.bool_) for size in shape)
    return DividedCounts(_NONE, _NONE, members, by_region)


@dataclass(frozen=True)
class CliqueBlock:
    """T_C of one clique C over classes, the class of each cell, the messages, the maximum of what remains, and the
    counts in it that later sweeps may divide anew.
    """

    table: Units
    labels: tuple[NDArray[np.int64], ...]
    messages: tuple[Units, ...]
    largest: int
    counts: DividedCounts

    @classmethod
    def empty(cls, widths: Sequence[int], *, by_region: bool) -> CliqueBlock:
        """No event yet: one class along each axis."""
        zeros, shape = tuple(np.zeros(width, np.int64) for width in widths), [1] * len(widths)
        return cls(np.zeros(shape, np.int64), zeros, zeros, 0, no_counts(shape, by_region=by_region))

    @property
    def room(self) -> int:
        """Its numbers, as caps count them: also the work of one sweep over it."""
        return self.table.size + self.sides + OVERHEAD

    @property
    def sides(self) -> int:
        """The cells along all of its axes."""
        return sum(len(label) for label in self.labels)

    @property
    def dividing(self) -> int:
        """The work of dividing its counts anew, beside that of a sweep."""
        return self.counts.work

    def split(self, inside: Sequence[Inside]) -> list[tuple[Inside, Inside]]:
        """Along each axis the classes with a cell in the span, and those with one in it and one outside."""
        found: list[tuple[Inside, Inside]] = []
        for label, within, size in zip(self.labels, inside, self.table.shape, strict=True):
            touched = _any(label, within, size)
            found.append((touched, touched & _any(label, ~within, size)))
        return found

    def refined(self, inside: Sequence[Inside], split: Sequence[tuple[Inside, Inside]]) -> CliqueBlock:
        """The same numbers over classes that lie in the spans or outside; `split` is what the spans do to those of
        this block.

        Along each axis the cells of a class outside the span keep its number; the others get the next new ones, in
        the order of their classes, unless the whole class is inside.
        """
        table, labels, counts = self.table, list(self.labels), self.counts
        for axis, (within, (_, parted)) in enumerate(zip(inside, split, strict=True)):
            cut = np.flatnonzero(parted)
            if not len(cut):
                continue
            label, size = labels[axis], table.shape[axis]
            renamed: NDArray[np.intp] = np.arange(size, dtype=np.intp)
            renamed[cut] = size + np.arange(len(cut))
            labels[axis] = np.where(within, renamed[label], label)
            table = np.concatenate([table, table.take(cut, axis=axis)], axis=axis)
            counts = counts.cut(axis, cut)
        return CliqueBlock(table, tuple(labels), self.messages, self.largest, counts)

    def raised(self, classes: Sequence[NDArray[np.intp]], weight: int) -> CliqueBlock:
        """T_C + weight on a product of classes. Only the cells that were touched can raise the maximum."""
        at = np.ix_(*classes)
        table = self.table.copy()
        table[at] += weight
        rest = table[at]
        for axis, (side, own) in enumerate(zip(self._tops(-m for m in self.messages), classes, strict=True)):
            rest = rest + _along(side[own], axis, table.ndim)
        return replace(self, table=table, largest=max(self.largest, int(rest.max())))

    def with_count(self, classes: Sequence[NDArray[np.intp]], price: int, most: int) -> CliqueBlock:
        """A count of `price`, which the table has on a product of classes, as one that may be divided anew.

        `most` bounds the work of dividing the counts of this block: a list that would pass it is closed before.
        Counts of the same region are one count with their prices together.
        """
        block = self.within(most)
        own = block.counts.work_of_one(self.table.shape, prod(map(len, classes)))
        rows = block.counts.rows_of(classes)
        place = block.counts.place_of(rows)
        if place is not None:
            return replace(block, counts=block.counts.with_more(place, price))
        block = block.within(most - own)
        return block if own > most else replace(block, counts=block.counts.and_one(price, rows))

    def within(self, most: int) -> CliqueBlock:
        """The block without counts to divide, where dividing them would be more work than `most`."""
        if self.dividing <= max(most, 0):
            return self
        return replace(self, counts=no_counts(self.table.shape, by_region=self.counts.by_region))

    def _tops(self, vectors: Iterable[Units]) -> list[Units]:
        """The largest value of each vector in each class of its axis."""
        found: list[Units] = []
        for vector, label, size in zip(vectors, self.labels, self.table.shape, strict=True):
            top = np.full(size, _LEAST, np.int64)
            np.maximum.at(top, label, vector)
            found.append(top)
        return found


def refined_size(shape: Sequence[int], split: Sequence[tuple[Inside, Inside]]) -> int:
    """How many numbers a table of so many classes would have, if spans split them so."""
    return prod(size + int(parted.sum()) for size, (_, parted) in zip(shape, split, strict=True))


def touched(split: Sequence[tuple[Inside, Inside]]) -> tuple[NDArray[np.intp], ...]:
    """Along each axis the classes of which some cell is in the span."""
    return tuple(np.flatnonzero(some) for some, _ in split)


def touched_after(split: Sequence[tuple[Inside, Inside]]) -> tuple[NDArray[np.intp], ...]:
    """The same among the classes that are there once these were split: of one in two parts, the new one."""
    found: list[NDArray[np.intp]] = []
    for some, parted in split:
        new = len(some) + np.arange(int(parted.sum()))
        found.append(np.concatenate([np.flatnonzero(some & ~parted), new]))
    return tuple(found)


def _any(label: NDArray[np.int64], within: Inside, size: int) -> Inside:
    """Which classes have a cell that is marked."""
    found = np.zeros(size, np.bool_)
    found[label[within]] = True
    return found


def _along(vector: Units, axis: int, axes: int) -> Units:
    """A vector that lies along one axis of a table."""
    return vector.reshape([-1 if i == axis else 1 for i in range(axes)])
