"""The table of one clique in joint accounting, over classes of cells that no event has told apart.

T_C adds up what the events on a clique C charge to each of its cells. Cells of an attribute that lie in the same
spans of all these events form a class, and T_C is the same on a product of classes: so one number is kept for
each product, of which there are few where few events are about the clique. Messages and beliefs belong to cells.
Every maximum over cells is taken over classes, since for any vectors v_a along the axes

    max over cells of (T_C + Σ v_a)  =  max over products of classes of (T_C + Σ max of v_a over the class).

The numbers are therefore those of the table of all cells, at the price of the table of classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

_LEAST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class CliqueBlock:
    """T_C of one clique C over classes, the class of each cell, the messages, and the maximum of what remains."""

    table: Units
    labels: tuple[NDArray[np.int64], ...]
    messages: tuple[Units, ...]
    largest: int

    @classmethod
    def empty(cls, widths: Sequence[int]) -> CliqueBlock:
        """No event yet: one class along each axis."""
        zeros = tuple(np.zeros(width, np.int64) for width in widths)
        return cls(np.zeros([1] * len(widths), np.int64), zeros, zeros, 0)

    @property
    def room(self) -> int:
        """Its numbers, as caps count them: also the work of one sweep over it."""
        return self.table.size + self.sides + OVERHEAD

    @property
    def sides(self) -> int:
        """The cells along all of its axes."""
        return sum(len(label) for label in self.labels)

    def refined(self, inside: Sequence[Inside]) -> CliqueBlock:
        """The same numbers over classes that lie in the spans or outside.

        Along each axis the cells of a class outside the span keep its number; the others get the next new ones, in
        the order of their classes, unless the whole class is inside.
        """
        table, labels = self.table, list(self.labels)
        for axis, within in enumerate(inside):
            label, size = labels[axis], table.shape[axis]
            cut = np.flatnonzero(_any(label, within, size) & _any(label, ~within, size))
            if not len(cut):
                continue
            renamed: NDArray[np.intp] = np.arange(size, dtype=np.intp)
            renamed[cut] = size + np.arange(len(cut))
            labels[axis] = np.where(within, renamed[label], label)
            table = np.concatenate([table, table.take(cut, axis=axis)], axis=axis)
        return CliqueBlock(table, tuple(labels), self.messages, self.largest)

    def refined_size(self, inside: Sequence[Inside]) -> int:
        """How many numbers the table would have over classes that lie in the spans or outside."""
        sizes: list[int] = []
        for label, within, size in zip(self.labels, inside, self.table.shape, strict=True):
            cut = _any(label, within, size) & _any(label, ~within, size)
            sizes.append(size + int(cut.sum()))
        return prod(sizes)

    def touched(self, inside: Sequence[Inside]) -> tuple[NDArray[np.intp], ...]:
        """Along each axis the classes of which some cell is in the span."""
        parts = zip(self.labels, inside, self.table.shape, strict=True)
        return tuple(np.flatnonzero(_any(label, within, size)) for label, within, size in parts)

    def raised(self, classes: Sequence[NDArray[np.intp]], weight: int) -> CliqueBlock:
        """T_C + weight on a product of classes. Only the cells that were touched can raise the maximum."""
        at = np.ix_(*classes)
        table = self.table.copy()
        table[at] += weight
        rest = table[at]
        for axis, (side, own) in enumerate(zip(self._tops(-m for m in self.messages), classes, strict=True)):
            rest = rest + _along(side[own], axis, table.ndim)
        return CliqueBlock(table, self.labels, self.messages, max(self.largest, int(rest.max())))

    def swept(self, beliefs: Sequence[Units]) -> tuple[CliqueBlock, list[Units]]:
        """New messages, and the beliefs with them: each attribute gets an equal share of the block's maxima."""
        axes = self.table.ndim
        arriving = [belief - message for belief, message in zip(beliefs, self.messages, strict=True)]
        tops = self._tops(arriving)
        whole = self._shifted(tops)
        found: list[Units] = []
        for axis, (top, label) in enumerate(zip(tops, self.labels, strict=True)):
            others = tuple(i for i in range(axes) if i != axis)
            most = (whole.max(axis=others) if others else whole) - top
            found.append((arriving[axis] + most[label]) // axes)
        messages = tuple(new - vector for new, vector in zip(found, arriving, strict=True))
        rest = self._shifted(self._tops(-message for message in messages))
        return CliqueBlock(self.table, self.labels, messages, int(rest.max())), found

    def _tops(self, vectors: Iterable[Units]) -> list[Units]:
        """The largest value of each vector in each class of its axis."""
        found: list[Units] = []
        for vector, label, size in zip(vectors, self.labels, self.table.shape, strict=True):
            top = np.full(size, _LEAST, np.int64)
            np.maximum.at(top, label, vector)
            found.append(top)
        return found

    def _shifted(self, sides: Sequence[Units]) -> Units:
        """The table plus a vector along each axis."""
        whole = self.table
        for axis, side in enumerate(sides):
            whole = whole + _along(side, axis, whole.ndim)
        return whole


def _any(label: NDArray[np.int64], within: Inside, size: int) -> Inside:
    """Which classes have a cell that is marked."""
    found = np.zeros(size, np.bool_)
    found[label[within]] = True
    return found


def _along(vector: Units, axis: int, axes: int) -> Units:
    """A vector that lies along one axis of a table."""
    return vector.reshape([-1 if i == axis else 1 for i in range(axes)])
