"""Small databases by enumeration: how many there are at each level of error, and which is the r-th of a level.

For a database y of m rows and a table x of n, the level is L(y) = max_f |m·f(x) - n·f(y)| in counts: an integer,
and m·n times the error. L is |n·a - m·f(x)| for one of the queries and one of its counts a in 0..m, so there are
at most |Q|(m+1) levels, and every database is counted at such a pair (query, count).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from understudy.errors import QueryError, RefusedError
from understudy.mechanism.small_database.shells import Kind, Shape
from understudy.noise.samplers import NoiseSource, uniform_below
from understudy.noise.selection import choose_many
from understudy.theory.logarithm import log_binomial

Whole = NDArray[np.int64]
Keys = NDArray[np.int32 | np.int64]
"""Differences with the numbers of their queries: as narrow as they fit, for speed."""

WORK_LIMIT = 1 << 33
"""Largest number of differences that are updated in a pass: some five seconds on one core."""

PAIR_LIMIT = 1 << 20
"""Largest number of pairs (query, count) at which databases are counted."""

OVERHEAD = 64
"""What a step costs whatever the number of queries, in updates."""


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All C(m+K-1, m) multisets of m = `size` rows over the K columns of `matrix`, against tables of n = `rows`.

    Complexity  Two passes of C(m+K-2, m) steps, each of O(|Q|) vectorised integer operations; a step settles
                (m+K-1)/(K-1) databases on average. Memory O(|Q|m). The number of steps depends on public sizes
                only, and both passes always go to the end.
    Gap         Within a step the time of a division or a cache miss may depend on the data, as everywhere.
    """

    matrix: NDArray[np.bool_]
    size: int
    rows: int
    rate: Fraction

    def __post_init__(self) -> None:
        if self.matrix.shape[1] > 1 and (self.matrix[:, -1] == self.matrix[:, -2]).all():
            raise QueryError("two classes that no query tells apart are one class")
        shape = Shape(Kind.ANY, *self.matrix.shape)
        if not self.admits(shape, self.size, self.rows, self.rate):
            digits = shape.nats(self.size) / log(10)
            raise RefusedError(
                f"SmallDB would choose among 10^{digits:.1f} databases of {self.size:,} rows over "
                f"{shape.classes:,} kinds of rows, too many to count. Ask for a larger alpha or fewer queries, or "
                f"take the methods `mwem` or `adaptive`. Nothing was spent."
            )
        if find_spec("numba") is None:  # found out before anything is charged
            raise RefusedError("SmallDB by enumeration needs numba: install it. Nothing was spent.")

    @staticmethod
    def admits(shape: Shape, size: int, rows: int, rate: Fraction) -> bool:
        """Whether the work is within limits, from public sizes alone."""
        del rate
        if shape.levels(size) > PAIR_LIMIT or _reach(shape.queries, size, rows) >= 1 << 62:
            return False
        steps = log_binomial(size + shape.classes - 2, size) if shape.classes > 1 else 0
        return steps + log(shape.queries + OVERHEAD) <= log(WORK_LIMIT)

    @property
    def candidates(self) -> int:
        return comb(self.size + self.matrix.shape[1] - 1, self.size)

    @cached_property
    def _order(self) -> tuple[NDArray[np.intp], NDArray[np.bool_], int]:
        """Queries in two groups, and which are complemented so that the second group rises."""
        last, before = self.matrix[:, -1], self.matrix[:, -2]
        order = np.argsort(last != before, kind="stable")
        return order, (last & ~before)[order], int((last == before).sum())

    def levels(self, answers: NDArray[np.int64]) -> dict[int, int]:
        """How many databases are at each level that is reached, exactly."""
        pairs, points = self._pairs(answers)
        levels, places = np.unique(pairs, return_inverse=True)
        totals = np.zeros(len(levels), np.int64)
        np.add.at(totals, places.ravel(), points)
        return {level: total for level, total in zip(levels.tolist(), totals.tolist(), strict=True) if total}

    def _pairs(self, answers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each pair (query, count) its level, and how many databases are counted there."""
        if self.matrix.shape[1] == 1:
            return np.zeros(1, np.int64), np.ones(1, np.int64)
        counts = self._counts(answers)
        pairs = np.abs(np.arange(self.size + 1) * self.rows - self.size * counts[:, None])
        points = np.zeros(pairs.shape, np.int64)
        ranges = np.zeros((len(counts), self.size + 2), np.int64)
        _kernel().tally(*self._arguments(counts), self.size * counts, points, ranges)
        points += np.cumsum(ranges, axis=1)[:, :-1]
        return pairs.ravel(), points.ravel()

    def database(self, answers: NDArray[np.int64], level: int, rank: int) -> list[int]:
        """The database of this rank among those at this level: how many of its rows are of each class."""
        if self.matrix.shape[1] == 1:
            return [self.size]
        found = np.zeros(self.matrix.shape[1], np.int64)
        _kernel().find(*self._arguments(self._counts(answers)), level, rank, found)
        *units, rest, moved = found.tolist()
        return [*units, moved, rest - moved]

    def draw(self, answers: NDArray[np.int64], *, noise: NoiseSource) -> list[int]:
        """A database with probability ∝ exp(-rate·L), exactly: its level, then one of that level."""
        return self.draw_many(answers, 1, noise=noise)[0]

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent draws; the levels are counted once."""
        pairs, points = self._pairs(values)
        # All pairs, also those without databases, so that the time of the choice depends on public sizes.
        chosen = choose_many(pairs, self.rate, times, noise=noise, multiplicities=points.tolist())
        totals = {level: int(points[pairs == level].sum()) for level in set(pairs[chosen].tolist())}
        found: dict[tuple[int, int], list[int]] = {}
        drawn: list[list[int]] = []
        for level in pairs[chosen].tolist():
            place = level, uniform_below(totals[level], noise=noise)
            if place not in found:
                found[place] = self.database(values, *place)
            drawn.append(found[place])
        return drawn

    def _counts(self, answers: NDArray[np.int64]) -> NDArray[np.int64]:
        order, complemented, _ = self._order
        counts = answers[order]
        return np.where(complemented, self.rows - counts, counts)

    def _arguments(self, counts: NDArray[np.int64]) -> tuple[Whole, Keys, Keys, Keys, int, int, int]:
        """The first database, the differences there, and how they change."""
        order, complemented, group = self._order
        matrix = (self.matrix[order] ^ complemented[:, None]).astype(np.int64)
        columns = np.concatenate([matrix[:, :-2], matrix[:, -1:]], axis=1).T
        shift = _shift(len(counts))
        kind = np.int32 if _reach(len(counts), self.size, self.rows) < 1 << 31 else np.int64
        unit = self.rows << shift
        parts = np.zeros(len(columns), np.int64)
        parts[0] = self.size
        differences = self.rows * self.size * columns[0] - self.size * counts
        keys = (differences << shift) + np.arange(len(counts))
        after = np.concatenate([columns[1:], columns[-1:]])
        turns = np.ascontiguousarray((columns[:1] - columns) * unit, dtype=kind)
        moves = np.ascontiguousarray((after - columns[:1]) * unit, dtype=kind)
        return parts, keys.astype(kind), turns, moves, group, self.rows, shift


def _shift(queries: int) -> int:
    """Bits of a key that name the query."""
    return max(queries - 1, 1).bit_length()


def _reach(queries: int, size: int, rows: int) -> int:
    """No key, and no change of one, is as large as this."""
    return (size * rows + 1) << _shift(queries)


def _kernel():
    # Late: numba takes a second to import, and most projects never get here.
    from understudy.mechanism.small_database import kernel as small_database_kernel

    return small_database_kernel
