"""How wide the intervals of counts and sums may be so that what is made of them keeps an error.

A new interval comes to lie somewhere within what is known of its sum, and nobody can say where before it is
bought. So it is tried at the lower end of that, at the upper one and in between, and sums are at most as large as
the number of rows that they are over. An average, or another ratio (sum)/(rows), is the most off where the rows
are fewest and the ratio is largest: which is one of these places. What is made of sums otherwise, such as a
standard deviation, can be the most off in between, and is looked at in more places (`moment_places`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np

from understudy.errors import QueryError
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import TOUCHING, IntervalTable
from understudy.sessions.moment_places import MomentPlaces, at

LEAST = 1 / 16
"""In people: no sum is bought within less."""

NEAR = 1.002
"""The search ends where a width that is kept and one that is not differ by less than this factor."""

BESIDE = (1.0, 3.0, 10.0, inf)
"""How many times as wide as sums the numbers of rows beside them may be; infinite: as they are known."""

NEAR_OTHERS = 1.03
"""The same where there are more places to be tried."""

NEARLY = 1.05
"""Other proportions are looked at, of other formulas, where they may be cheaper by this factor."""

DOMINANCE_CELLS = 1 << 16
"""Cells up to which it is looked whether one marginal counts no more than another in each of them."""

Widths = tuple[float, ...]
"""Half-widths in people, one for each marginal; infinite for what need not be narrower than it is known."""

Placing = Callable[[Sequence[IntervalTable], Sequence[float]], Iterable[list[IntervalTable]]]
"""Where intervals of some widths, within those that are known, can come to lie."""


@dataclass(frozen=True, eq=False)
class WidthSearch:
    """Looks for widths of the marginals of one question.

    marginals   the counts and sums that its answer is made of
    of_ratios   whether it is made of counts, sums and ratios of a sum and its rows

    Promise     Widths that keep the error at every place that is tried (`placed`): where the intervals come to lie
                is known only once they are bought.
    Why         For a count, a sum or a ratio of a sum and its rows the worst place is an end of what is known, and
                those are tried; of a share of a private number of rows whoever asks gives that end
                (`closer_answers`). For other formulas `moment_places` says what is tried. The search halves the
                logarithm of the width between one that is kept and one that is not.
    Privacy     It reads what was released, and the formula of the question.
    Cost        Nothing is spent. At most 4·25·6 evaluations of the formula, and some thousands of other formulas.
    """

    marginals: tuple[Marginal, ...]
    of_ratios: bool = True

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

    @cached_property
    def _others(self) -> MomentPlaces:
        return MomentPlaces(self.marginals, self._held)

    def widths(
        self,
        tables: Sequence[IntervalTable],
        off: Callable[[Sequence[IntervalTable]], float],
        error: float,
        *,
        before: Widths | None = None,
    ) -> Widths | None:
        """The cheapest widths that keep an error wherever the intervals come to lie; None where none do.

        `tables` are what is known of the marginals, and `off` says how far an answer can be off by intervals.
        Widths of the numbers of rows beside sums are tried at several ratios to those of the sums. Those that were
        found `before` are taken where they are no dearer and are kept by now.
        """
        return self._cheapest(tables, off, error, self.placed, before)

    def typical(
        self, tables: Sequence[IntervalTable], off: Callable[[Sequence[IntervalTable]], float], error: float
    ) -> Widths | None:
        """The cheapest widths that keep an error where everything is in the middle of what is known of it."""
        return self._cheapest(tables, off, error, self._others.middle)

    def _cheapest(
        self,
        tables: Sequence[IntervalTable],
        off: Callable[[Sequence[IntervalTable]], float],
        error: float,
        placed: Placing,
        before: Widths | None = None,
    ) -> Widths | None:
        tried = _Tried(tables, off, error, placed)
        best = before if before is not None and tried.keeps(before) else None
        for shape in self._shapes:
            least = LEAST
            if best is not None:
                least = _as_dear(tables, shape, cost(tables, best) / (1 if self.of_ratios else NEARLY))
            found = self._widest(tables, shape, tried, least)
            if found is not None and (best is None or cost(tables, found) < cost(tables, best)):
                best = found
        return best

    @property
    def _shapes(self) -> Iterator[Widths]:
        """The proportions of widths that are tried; infinite for what is left as it is known."""
        are_some = 0 < sum(self.holders) < len(self.marginals)
        for ratio in BESIDE if are_some else (1.0,):
            shape = tuple(ratio if holds else 1.0 for holds in self.holders)
            yield shape
            if self.of_ratios:
                continue
            sums = [i for i, holds in enumerate(self.holders) if not holds or not are_some]
            for left in sums if len(sums) > 1 else ():
                yield tuple(inf if i == left else part for i, part in enumerate(shape))

    def _widest(
        self, tables: Sequence[IntervalTable], shape: Widths, tried: _Tried, least: float
    ) -> Widths | None:
        """The widest widths in the proportions of `shape` that keep the error; None where `least` does not.

        What keeps it at the worst places so far is found first, and then tried at all of them.
        """
        widest = max((float((t.high - t.low).max(initial=0.0)) / 2 for t in tables), default=1.0)
        low, high, near = least, max(widest, 1.0), NEAR if self.of_ratios else NEAR_OTHERS
        if not tried.keeps([low * part for part in shape]):
            return None
        while True:
            kept, broken = low, high
            while broken / kept >= near:
                middle = sqrt(kept * broken)
                keeps = tried.keeps([middle * part for part in shape], everywhere=False)
                kept, broken = (middle, broken) if keeps else (kept, middle)
            if kept == low or tried.keeps([kept * part for part in shape]):
                return tuple(kept * part for part in shape)
            high = kept

    def placed(
        self, tables: Sequence[IntervalTable], widths: Sequence[float]
    ) -> Iterator[list[IntervalTable]]:
        """Intervals of these widths where they can come to lie: at the ends of what is known and in between."""
        if not self.of_ratios:
            yield from self._others.placed(tables, widths)
            return
        for rows_at in (0.0, 1.0):
            rows = [at(table, width, rows_at) for table, width in zip(tables, widths, strict=True)]
            for sums_at in (0.0, 0.5, 1.0):
                yield [
                    rows[i] if holds else at(self._below(i, tables[i], rows), widths[i], sums_at)
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


def cost(tables: Sequence[IntervalTable], widths: Widths) -> float:
    """What widths cost, up to a factor, in ρ; under a pure ε the order is mostly the same."""
    bought = [width for width, table in zip(widths, tables, strict=True) if is_wider(table, width)]
    return sum(1 / width**2 for width in bought)


def _as_dear(tables: Sequence[IntervalTable], shape: Widths, most: float) -> float:
    """The narrowest width in the proportions of `shape` that is sure to cost no more than `most`."""
    parts = [part for part, table in zip(shape, tables, strict=True) if is_wider(table, 0.0)]
    return max(LEAST, sqrt(sum(1 / part**2 for part in parts) / most)) if most else LEAST


class _Tried:
    """Widths against an error, at each place; those at which it was not kept before are tried first."""

    def __init__(
        self,
        tables: Sequence[IntervalTable],
        off: Callable[[Sequence[IntervalTable]], float],
        error: float,
        placed: Placing,
    ) -> None:
        self._tables, self._off, self._error, self._placed = tables, off, error, placed
        self._worst: list[int] = []

    def keeps(self, widths: Sequence[float], *, everywhere: bool = True) -> bool:
        """Whether the error is kept; where not `everywhere`, only at places where it was not kept before."""
        places = list(self._placed(self._tables, widths))
        others = [i for i in range(len(places)) if i not in self._worst] if everywhere else []
        seen = set[bytes]()
        for i in [*self._worst, *others]:
            if i >= len(places):
                continue
            name = b"".join(table.low.tobytes() + table.high.tobytes() for table in places[i])
            if name in seen:
                continue
            seen.add(name)
            if self._off(places[i]) > self._error:
                self._worst = [i, *(j for j in self._worst if j != i)]
                return False
        return True


def is_count(marginal: Marginal) -> bool:
    """Whether a marginal counts rows, and is no sum of weights or of measured values."""
    return marginal.moment is None and marginal.where.is_counting


def is_wider(table: IntervalTable, width: float) -> bool:
    """Whether some interval is wider than a half-width allows."""
    return bool((table.high - table.low > 2 * width + TOUCHING).any())


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
