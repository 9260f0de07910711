"""How wide the intervals of counts and sums may be so that what is made of them keeps an error.

A new interval comes to lie somewhere within what is known of its sum, and nobody can say where before it is
bought. So it is tried at the lower end of that, at the upper one and in between, and sums are at most as large as
the number of rows that they are over. An average, or another ratio (sum)/(rows), is the most off where the rows
are fewest and the ratio is largest: which is one of these places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np

from understudy.errors import QueryError
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import TOUCHING, IntervalTable, Values

LEAST = 1 / 16
"""In people: no sum is bought within less."""

STEPS = 24
"""Halvings of the logarithm of the width that is looked for."""

NEAR = 1.002
"""The search ends where a width that is kept and one that is not differ by less than this factor."""

BESIDE = (1.0, 3.0, 10.0, inf)
"""How many times as wide as sums the numbers of rows beside them may be; infinite: as they are known."""

DOMINANCE_CELLS = 1 << 16
"""Cells up to which it is looked whether one marginal counts no more than another in each of them."""

Widths = tuple[float, ...]
"""Half-widths in people, one for each marginal; infinite for what need not be narrower than it is known."""


@dataclass(frozen=True, eq=False)
class WidthSearch:
    """Looks for widths of the marginals of one question.

    marginals   the counts and sums that its answer is made of

    Promise     Widths that keep the error at every place that is tried (`placed`). Whether they keep it where the
                intervals come to lie is looked at again once they are bought (`within_error`), and more is bought
                where they do not.
    Why         For a count, a sum or a ratio of a sum and its rows the worst place is an end of what is known, and
                those are tried; for other formulas they are a good guess. The search halves the logarithm of the
                width between one that is kept and one that is not.
    Privacy     It reads what was released, and the formula of the question.
    Cost        Nothing is spent. At most 4·25·6 evaluations of the formula.
    """

    marginals: tuple[Marginal, ...]

    @cached_property
    def holders(self) -> tuple[bool, ...]:
        """Which marginals are the numbers of rows that others are sums, or counts, over."""
        return tuple(bool(held) for held in self._held)

    @cached_property
    def _held(self) -> tuple[tuple[int, ...], ...]:
        """For each marginal the places of the others that no row adds more to than to this one."""
        places = range(len(self.marginals))
        return tuple(
            tuple(i for i in places if i != j and _is_dominated(self.marginals[i], self.marginals[j]))
            for j in places
        )

    def widths(
        self, tables: Sequence[IntervalTable], off: Callable[[Sequence[IntervalTable]], float], error: float
    ) -> Widths | None:
        """The cheapest widths that keep an error wherever the intervals come to lie; None where none do.

        `tables` are what is known of the marginals, and `off` says how far an answer can be off by intervals.
        Widths of the numbers of rows beside sums are tried at several ratios to those of the sums.
        """
        best: Widths | None = None
        least = inf
        for ratio in BESIDE if 0 < sum(self.holders) < len(self.marginals) else (1.0,):
            shape = tuple(ratio if holds else 1.0 for holds in self.holders)
            found = self._widest(tables, shape, off, error)
            if found is None:
                continue
            bought = [width for width, table in zip(found, tables, strict=True) if is_wider(table, width)]
            cost = sum(1 / width**2 for width in bought)  # in ρ; under a pure ε the order is mostly the same
            if cost < least:
                best, least = found, cost
        return best

    def _widest(
        self,
        tables: Sequence[IntervalTable],
        shape: Widths,
        off: Callable[[Sequence[IntervalTable]], float],
        error: float,
    ) -> Widths | None:
        """The widest widths in the proportions of `shape` that keep an error; None where none do."""

        def keeps(width: float) -> bool:
            widths = [width * part for part in shape]
            return all(off(placed) <= error for placed in self.placed(tables, widths))

        widest = max((float((t.high - t.low).max(initial=0.0)) / 2 for t in tables), default=1.0)
        low, high = LEAST, max(widest, 1.0)
        if not keeps(low):
            return None
        for _ in range(STEPS):
            middle = sqrt(low * high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
            if high / low < NEAR:
                break
        return tuple(low * part for part in shape)

    def placed(
        self, tables: Sequence[IntervalTable], widths: Sequence[float]
    ) -> Iterator[list[IntervalTable]]:
        """Intervals of these widths where they can come to lie: at the ends of what is known and in between."""
        for rows_at in (0.0, 1.0):
            rows = [_at(table, width, rows_at) for table, width in zip(tables, widths, strict=True)]
            for sums_at in (0.0, 0.5, 1.0):
                yield [
                    rows[i] if holds else _at(self._below(i, tables[i], rows), widths[i], sums_at)
                    for i, holds in enumerate(self.holders)
                ]
            if not any(self.holders):
                return

    def _below(self, place: int, table: IntervalTable, rows: Sequence[IntervalTable]) -> IntervalTable:
        """What is known of a sum that is at most the number of rows that it is over."""
        high = table.high
        for j, held in enumerate(self._held):
            if place in held:
                high = np.minimum(high, rows[j].high)
        return IntervalTable(np.minimum(table.low, high), high)


def is_count(marginal: Marginal) -> bool:
    """Whether a marginal counts rows, and is no sum of weights or of measured values."""
    return marginal.moment is None and marginal.where.is_counting


def is_wider(table: IntervalTable, width: float) -> bool:
    """Whether some interval is wider than a half-width allows."""
    return bool((table.high - table.low > 2 * width + TOUCHING).any())


def _at(table: IntervalTable, width: float, place: float) -> IntervalTable:
    """Intervals of a half-width, or narrower ones, at a place between the lower end (0) and the upper end (1)."""
    half = np.minimum((table.high - table.low) / 2, width)
    middle: Values = table.low + half + place * (table.high - table.low - 2 * half)
    return IntervalTable(middle - half, middle + half)


def _is_dominated(marginal: Marginal, other: Marginal) -> bool:
    """Whether the other one counts rows, and no row adds more to the marginal than to it, in each cell of both."""
    if marginal.by != other.by or marginal.domain != other.domain:
        return False
    if not is_count(other) or (marginal.moment is not None and marginal.moment.low < 0):
        return False
    names = marginal.domain.clique({*marginal.where.clique, *other.where.clique})
    if marginal.domain.size(names) > DOMINANCE_CELLS:
        return False
    try:
        return bool((marginal.where.weights(names) <= other.where.weights(names)).all())
    except QueryError:
        return False
