"""How a dense histogram lies in memory, and what a query says about it.

The histogram is a matrix: a row for each cell of the leading attributes, a column for each of the trailing ones. A
query on few attributes is never expanded over the domain: it is a few patterns over the columns and, for each row,
the pattern that holds there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import CELL_LIMIT, Clique, Domain
from understudy.errors import TooLargeError
from understudy.query.linear import LinearQuery

CliqueTable = tuple[Clique, NDArray[np.float64]]

ROW = 1024
"""Columns of a row in the machine's memory, at least: enough to keep the vector unit busy."""

LONG_ROW = 2**16
"""A row of more columns than this, and its pattern, no longer fit in the nearest caches."""

GAP = 16
"""Columns: two spans nearer than this share cache lines, and are treated as one."""

FEW = 16
"""Spans up to which it is worth finding out whether the patterns are flat on them."""


@dataclass(frozen=True)
class DenseLayout:
    """The matrix of a domain's cells; a row has at least `row` columns where the domain allows it."""

    domain: Domain
    row: int = ROW

    @cached_property
    def split(self) -> int:
        """How many attributes lead; the cells of the others are the columns."""
        shape = self.domain.shape()
        sizes = [prod(shape[i:]) for i in range(len(shape))]
        split = max((i for i, size in enumerate(sizes) if size >= self.row), default=0)
        if sizes[split] > LONG_ROW and split + 1 < len(shape) and sizes[split + 1] >= self.row // 16:
            split += 1
        return split

    @cached_property
    def leading(self) -> tuple[int, ...]:
        return self.domain.shape()[: self.split]

    @cached_property
    def trailing(self) -> tuple[int, ...]:
        return self.domain.shape()[self.split :]

    @cached_property
    def above(self) -> Clique:
        """The leading attributes."""
        return self.domain.names[: self.split]

    @cached_property
    def below(self) -> Clique:
        """The trailing attributes."""
        return self.domain.names[self.split :]

    @cached_property
    def rows(self) -> int:
        return prod(self.leading)

    @cached_property
    def columns(self) -> int:
        return prod(self.trailing)

    @cached_property
    def every_row(self) -> NDArray[np.int32]:
        return np.zeros(self.rows, np.int32)

    def each_row(self, numbers: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Numbers with one axis for each leading attribute, as one number for each row."""
        # Neighbouring axes along which the numbers vary, or do not, are one: few axes are filled faster.
        seen, whole = [1], [1]
        for told, size in zip(numbers.shape, self.leading, strict=True):
            if (told == 1) == (seen[-1] == 1):
                seen[-1], whole[-1] = seen[-1] * told, whole[-1] * size
            else:
                seen.append(told)
                whole.append(size)
        full = np.empty(whole, np.int32)
        full[...] = numbers.reshape(seen)
        return full.reshape(self.rows)


@dataclass(frozen=True)
class Patterns:
    """What is said about the cells: `values[ids[row], column]`; nothing where the id is -1, or outside `spans`."""

    ids: NDArray[np.int32]
    values: NDArray[np.float64]
    spans: NDArray[np.int64]
    flat: bool
    """Every pattern has one value in all columns of a span."""

    @property
    def plain(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64], bool]:
        """As the compiled loops take it."""
        return self.ids, self.values, self.spans, self.flat

    def joins(self, other: Patterns) -> bool:
        """Whether one loop can serve both."""
        return (
            not (self.flat or other.flat)
            and len(self.spans) == len(other.spans) == 1
            and bool((self.spans == other.spans).all())
        )

    @classmethod
    def of_query(cls, layout: DenseLayout, query: LinearQuery) -> Self:
        """Where no factor joins leading and trailing attributes, a pattern for each level of the leading part."""
        tables = [(factor.clique, factor.weights) for factor in query.factors]
        above = [table for table in tables if layout.above and table[0][-1] in layout.above]
        below = [table for table in tables if table[0][0] in layout.below]
        if len(above) + len(below) < len(tables):
            return cls.of_tables(layout, tables, neutral=0.0)
        columns = np.ones((1, layout.columns))
        if below:
            columns.reshape(layout.trailing)[...] = product(layout.below, below)
        if not above:
            return cls._where(layout.every_row, columns, columns[0] != 0)
        rows = product(layout.above, above)
        if query.is_counting:
            return cls._where(layout.each_row(rows.astype(np.int32) - 1), columns, columns[0] != 0)
        levels, numbers = np.unique(rows, return_inverse=True)
        return cls._telling(layout, numbers.reshape(rows.shape), levels[:, None] * columns, neutral=0.0)

    @classmethod
    def of_tables(cls, layout: DenseLayout, tables: Sequence[CliqueTable], *, neutral: float) -> Self:
        """A pattern for each cell of the leading attributes that the tables touch."""
        table = product(layout.domain.names, tables)
        seen = table.shape[: layout.split]
        if (cells := prod(seen) * layout.columns) > CELL_LIMIT:
            raise TooLargeError("the query's own table", cells=cells, limit=CELL_LIMIT)
        values = np.broadcast_to(table, (*seen, *layout.trailing)).reshape(prod(seen), layout.columns)
        return cls._telling(layout, np.arange(prod(seen)).reshape(seen), values, neutral=neutral)

    @classmethod
    def _telling(
        cls,
        layout: DenseLayout,
        numbers: NDArray[np.integer[Any]],
        values: NDArray[np.float64],
        *,
        neutral: float,
    ) -> Self:
        """Without the patterns that are neutral everywhere."""
        telling = values != neutral
        kept = telling.any(axis=1)
        renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
        ids = layout.each_row(renumbered[numbers])
        return cls._where(ids, np.ascontiguousarray(values[kept]), telling.any(axis=0))

    @classmethod
    def _where(cls, ids: NDArray[np.int32], values: NDArray[np.float64], columns: NDArray[np.bool_]) -> Self:
        """`columns` are those that any pattern says something about; small gaps between them are read along."""
        spans = spans_of(columns)
        flat = len(spans) <= FEW and all(
            bool((values[:, a:b] == values[:, a : a + 1]).all()) for a, b in spans.tolist()
        )
        return cls(ids, values, spans, flat)


def product(names: Sequence[str], tables: Iterable[CliqueTable]) -> NDArray[np.float64]:
    """The product of tables on disjoint cliques, with an axis of length 1 for each name in none of them."""
    whole: NDArray[np.float64] | None = None
    for clique, table in tables:
        sizes = dict(zip(clique, table.shape, strict=True))
        spread = table.reshape([sizes.get(name, 1) for name in names])
        whole = spread if whole is None else whole * spread
    return np.ones((1,) * len(names)) if whole is None else whole


def spans_of(columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The columns that are marked, as ranges [from, to), joined across small gaps."""
    marked = columns.nonzero()[0]
    if not len(marked):
        return np.empty((0, 2), np.int64)
    breaks = (marked[1:] - marked[:-1] > GAP).nonzero()[0]
    spans = np.empty((len(breaks) + 1, 2), np.int64)
    spans[0, 0], spans[-1, 1] = marked[0], marked[-1] + 1
    spans[1:, 0], spans[:-1, 1] = marked[breaks + 1], marked[breaks] + 1
    return spans
