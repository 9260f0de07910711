"""Where new intervals of sums can come to lie, for what is made of the sums otherwise than by dividing by rows.

A standard deviation is the most off where it is small, and where it is about nothing: the root is steep there.
That is neither an end nor the middle of what is known of the sum of squares, whose least is (sum)²/(rows). So the
intervals are laid over the possible rows and sums, and for each of them those of squares and products are tried
at the least that these can be, at a few widths above it, in the middle and at the most. Then the squares are laid
over what is known of them, and the sums where the squares are at their least, and a few widths above it.

Possible    Of places t between 0 and 1 over n rows: Σt² is between (Σt)²/n and Σt, and Σt·s between
            Σt + Σs - n and the smaller of both. [Cauchy and Schwarz]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import IntervalTable, Values

SUMS_AT = (0.0, 0.5, 0.8, 1.0)
"""Where sums of places are tried, from the least that they can be to the most."""

ABOVE = (0.0, 1.0, 2.0, 3.0)
"""How many of its half-widths above the least a sum of squares or products is tried."""

BETWEEN = (0.5, 1.0)
"""Where it is tried besides, from the least to the most."""

SQUARES_AT = (0.0, 0.5, 1.0)
"""Where sums of squares are tried first, from the least that is known of them to the most."""


@dataclass(frozen=True, eq=False)
class MomentPlaces:
    """Places of the intervals of one question's marginals.

    marginals  the counts and sums
    held       for each of them the places of those that no row adds more to than to it
    """

    marginals: tuple[Marginal, ...]
    held: tuple[tuple[int, ...], ...]

    def placed(
        self, tables: Sequence[IntervalTable], widths: Sequence[float]
    ) -> Iterator[list[IntervalTable]]:
        """The places that are tried; the likeliest to be the worst come first."""
        for rows_at in (0.0, 1.0) if any(self.held) else (0.0,):
            for sums_at in reversed(SUMS_AT):
                first = self._first(tables, widths, rows_at, sums_at)
                if not self._later:
                    yield [table for table in first if table is not None]
                    continue
                for above in reversed(ABOVE):
                    yield self._all(first, tables, widths, above, 0.0)
                for between in BETWEEN:
                    yield self._all(first, tables, widths, 0.0, between)
            for squares_at in SQUARES_AT if self._later else ():
                for above in ABOVE:
                    yield self._from_squares(tables, widths, rows_at, squares_at, above)

    def middle(self, tables: Sequence[IntervalTable], widths: Sequence[float]) -> list[list[IntervalTable]]:
        """The one place in which everything is in the middle of what it can be."""
        return [self._all(self._first(tables, widths, 0.5, 0.5), tables, widths, 0.0, 0.5)]

    @cached_property
    def _rows(self) -> tuple[int | None, ...]:
        """For each marginal the place of the number of rows that it is a sum over; None where it is not there."""
        return tuple(
            next((j for j, held in enumerate(self.held) if i in held), None)
            for i in range(len(self.marginals))
        )

    @cached_property
    def _later(self) -> dict[int, tuple[int, int]]:
        """The places of squares and products, each with those of the sums of the places that they are made of."""
        of = {
            (m.moment.names, m.where.key, m.by): i
            for i, m in enumerate(self.marginals)
            if m.moment is not None and m.moment.kind == "position"
        }
        found: dict[int, tuple[int, int]] = {}
        for i, m in enumerate(self.marginals):
            if m.moment is None or m.moment.kind not in ("square", "product"):
                continue
            made_of = [of.get(((name,), m.where.key, m.by)) for name in m.moment.names]
            one, other = made_of[0], made_of[-1]
            if one is not None and other is not None:
                found[i] = one, other
        return found

    def _first(
        self, tables: Sequence[IntervalTable], widths: Sequence[float], rows_at: float, sums_at: float
    ) -> list[IntervalTable | None]:
        """Intervals of all but squares and products: of numbers of rows first, and of sums of at most as many."""
        found: list[IntervalTable | None] = [None] * len(tables)
        for i, held in enumerate(self.held):
            if held:
                found[i] = at(tables[i], widths[i], rows_at)
        for i, table in enumerate(tables):
            if found[i] is not None or i in self._later:
                continue
            low, high, rows = table.low, table.high, self._rows[i]
            if rows is not None and (counted := found[rows]) is not None:
                high = np.minimum(high, counted.high)
                for j, made_of in self._later.items():
                    if made_of == (i, i):  # a sum is at least that of the squares, and at most √(n·Σt²)
                        low = np.maximum(low, tables[j].low)
                        high = np.minimum(high, np.sqrt(np.maximum(counted.high * tables[j].high, 0.0)))
            centre = np.minimum(low, high) + sums_at * (high - np.minimum(low, high))
            found[i] = _around(table, widths[i], centre)
        return found

    def _from_squares(
        self,
        tables: Sequence[IntervalTable],
        widths: Sequence[float],
        rows_at: float,
        squares_at: float,
        above: float,
    ) -> list[IntervalTable]:
        """Intervals of squares at a place, and of sums that leave them so many half-widths above their least."""
        first = self._first(tables, widths, rows_at, 1.0)
        for i, (one, other) in self._later.items():
            rows = self._rows[i]
            if one != other:
                continue
            n = _most(tables[one]) if rows is None else _middle(first[rows])
            squares = at(tables[i], widths[i], squares_at)
            least = _middle(squares) - above * (squares.high - squares.low) / 2
            first[one] = _around(tables[one], widths[one], np.sqrt(np.maximum(n * least, 0.0)))
        found = self._all(first, tables, widths, 0.0, 0.0)
        for i, (one, other) in self._later.items():
            if one == other:
                found[i] = at(tables[i], widths[i], squares_at)
        return found

    def _all(
        self,
        first: Sequence[IntervalTable | None],
        tables: Sequence[IntervalTable],
        widths: Sequence[float],
        above: float,
        between: float,
    ) -> list[IntervalTable]:
        """The intervals with those of squares and products, so many half-widths above the least or between."""
        found = list(first)
        for i, (one, other) in self._later.items():
            table = tables[i]
            x, y, rows = _middle(first[one]), _middle(first[other]), self._rows[i]
            n = _most(tables[one]) if rows is None else _middle(first[rows])
            least = x * y / np.maximum(n, 1.0) if one == other else np.maximum(x + y - n, 0.0)
            low = np.clip(least, table.low, table.high)
            high = np.maximum(np.clip(np.minimum(x, y), table.low, table.high), low)
            half = np.minimum((table.high - table.low) / 2, widths[i])
            found[i] = _around(table, widths[i], low + above * half + between * (high - low))
        return [table for table in found if table is not None]


def at(table: IntervalTable, width: float, place: float) -> IntervalTable:
    """Intervals of a half-width, or narrower ones, at a place between the lower end (0) and the upper end (1)."""
    half = np.minimum((table.high - table.low) / 2, width)
    middle: Values = table.low + half + place * (table.high - table.low - 2 * half)
    return IntervalTable(middle - half, middle + half)


def _around(table: IntervalTable, width: float, centre: Values) -> IntervalTable:
    """Intervals of a half-width, or narrower ones, as near to a centre as what is known allows."""
    half = np.minimum((table.high - table.low) / 2, width)
    middle: Values = np.clip(centre, table.low + half, np.maximum(table.high - half, table.low + half))
    return IntervalTable(middle - half, middle + half)


def _middle(table: IntervalTable | None) -> Values:
    assert table is not None  # numbers of rows and sums of places come first
    return (table.low + table.high) / 2


def _most(table: IntervalTable) -> Values:
    return np.maximum(table.high, 1.0)
