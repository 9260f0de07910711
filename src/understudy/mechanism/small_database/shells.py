"""Small databases that can be counted within a given error: how to draw one by the exponential mechanism.

Where the databases of level at most T can be counted for one T, counting those of every one of the |Q|(m+1) levels
would still take too long, and is not needed. Levels are put into shells of a width at which the law falls by no
more than exp(-1/2). A shell is drawn with the weight of its lowest level, a database is drawn uniformly from the
shell, and it is kept with probability exp(-rate·(its level - the lowest)). What is kept has exactly the law of the
exponential mechanism. The last shell is everything beyond, so that nothing is ever cut off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from understudy.errors import RefusedError
from understudy.noise.samplers import NoiseSource, bernoulli_exp, uniform_below
from understudy.noise.selection import choose, choose_many
from understudy.theory.logarithm import log_binomial

WORK_LIMIT = 1 << 32
"""Largest number of additions of numbers of up to 1,000 bits: about half a minute on one core."""

TABLE_LIMIT = 1 << 21
"""Largest number of counts that are kept to draw one database from."""

TRIALS = 40
"""Proposals that are always made. None is kept with probability below (1 - exp(-1/2))^40 < 10^-16; then go on."""

BEYOND = 40
"""The last shell has at most the share exp(-40) of all weight."""

Band = list[tuple[int, int]]
"""For each query the least and the largest count that a database may have."""


class Kind(StrEnum):
    """How the sets of a class lie to each other, up to complements."""

    CHAIN = "chain"
    TREE = "tree"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the work of counting depends on: public numbers.

    `merges` is how often in a tree two sets of several classes are parts of the same set.
    """

    kind: Kind
    queries: int
    classes: int
    merges: int = 0

    def nats(self, size: int) -> float:
        """ln of the number of databases of `size` rows."""
        return log_binomial(size + self.classes - 1, size)

    def levels(self, size: int) -> int:
        """No more levels than this are possible."""
        return self.queries * (size + 1)

    def shells(self, size: int) -> int:
        """How many shells are counted: one for each level where those are few, else as many as matter."""
        return min(2 * ceil(self.nats(size) + BEYOND) + 2, self.levels(size))


@dataclass(frozen=True, eq=False)
class Counted(ABC):
    """All multisets of m = `size` rows over the K columns of `matrix`, against tables of n = `rows`.

    A kind of class says how those within a band are counted, and which one has a given rank.

    Complexity  At most 2(ln C(m+K-1, m) + 41) + log₂n counts, each in exact integers; `TRIALS` databases drawn.
    Gap         The numbers of counts and trials are public (more trials follow with probability below 10^-16); the
                digits of the integers, and so the time of an addition, depend on the data.
    """

    matrix: NDArray[np.bool_]
    size: int
    rows: int
    rate: Fraction

    def __post_init__(self) -> None:
        if not self.admits(self.shape, self.size, self.rows, self.rate):
            raise RefusedError(
                f"SmallDB with {self.size:,} rows against {len(self.matrix):,} queries takes too long. Ask for a "
                f"larger alpha or coarser bins, or take the methods `mwem` or `adaptive`. Nothing was spent."
            )

    @classmethod
    def admits(cls, shape: Shape, size: int, rows: int, rate: Fraction) -> bool:
        """Whether the work is within limits, from public sizes alone."""
        if (shape.queries + shape.classes) * (size + 1) > TABLE_LIMIT or size * rows >= 1 << 62:
            return False
        shells, width = shape.shells(size), size + 1
        if shells < shape.levels(size):
            width = min(width, 2 * (rows + shells * _step(rate)) // rows + 2)
        counts = shells + rows.bit_length() + 2 * TRIALS
        work = counts * cls.additions(shape, size, width) + cls.additions(shape, size, size + 1)
        return work * (1 + shape.nats(size) / 700) <= WORK_LIMIT

    @staticmethod
    @abstractmethod
    def additions(shape: Shape, size: int, width: int) -> float:
        """What one count takes, if no query may have more than `width` counts."""

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @abstractmethod
    def within(self, band: Band) -> int:
        """How many databases have all their counts in the band."""

    @abstractmethod
    def ranked(self, outer: Band, inner: Band, rank: int) -> list[int]:
        """The database of this rank among those within the outer band that are not within the inner one."""

    # ---- what all kinds share

    @property
    def candidates(self) -> int:
        return comb(self.size + self.matrix.shape[1] - 1, self.size)

    @property
    def by_level(self) -> bool:
        """Whether the levels are so few that each is a shell of its own, and nothing is ever rejected."""
        return self.shape.shells(self.size) == self.shape.levels(self.size)

    def levels(self, answers: NDArray[np.int64]) -> dict[int, int]:
        """How many databases are at each level that is reached, exactly. One count for each level."""
        levels = self._all_levels(answers)
        counts = [self.within(self.band(answers, level)) for level in levels]
        found = zip(levels, counts, [0, *counts], strict=False)
        return {level: count - before for level, count, before in found if count > before}

    def database(self, answers: NDArray[np.int64], low: int, high: int, rank: int) -> list[int]:
        """The database of this rank among those whose level is from `low` to `high`."""
        return self.ranked(self.band(answers, high), self.band(answers, low - 1), rank)

    def draw(self, answers: NDArray[np.int64], *, noise: NoiseSource) -> list[int]:
        """A database with probability ∝ exp(-rate·L), exactly."""
        return self.draw_many(answers, 1, noise=noise)[0]

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent draws; the shells are counted once."""
        shells, counts = self.shells(values)
        lows = np.array([low for low, _ in shells], np.int64)
        if not self.by_level:
            return [self._kept(values, shells, counts, lows, noise) for _ in range(times)]
        found: dict[tuple[int, int], list[int]] = {}
        drawn: list[list[int]] = []
        for shell in map(int, choose_many(lows, self.rate, times, noise=noise, multiplicities=counts)):
            rank = uniform_below(counts[shell], noise=noise)
            if (shell, rank) not in found:
                found[shell, rank] = self.database(values, *shells[shell], rank)
            drawn.append(found[shell, rank])
        return drawn

    def _kept(
        self,
        answers: NDArray[np.int64],
        shells: list[tuple[int, int]],
        counts: list[int],
        lows: NDArray[np.int64],
        noise: NoiseSource,
    ) -> list[int]:
        """A database of a shell as if all of it were at its least level, kept with what its own level is less."""
        kept: list[list[int]] = []
        while not kept:
            for _ in range(TRIALS):
                shell = choose(lows, self.rate, noise=noise, multiplicities=counts)
                rank = uniform_below(counts[shell], noise=noise)
                units = self.database(answers, *shells[shell], rank)
                above = self.level(answers, units) - shells[shell][0]
                if bernoulli_exp(self.rate * above, 1, noise=noise)[0]:
                    kept.append(units)
        return kept[0]

    def shells(self, answers: NDArray[np.int64]) -> tuple[list[tuple[int, int]], list[int]]:
        """Shells of levels, from the least that any database reaches, and how many databases each holds."""
        if self.by_level:
            shells = [(level, level) for level in self._all_levels(answers)]
        else:
            least, last, width = self._least(answers), self.size * self.rows, _step(self.rate)
            lows = [low for b in range(self.shape.shells(self.size)) if (low := least + b * width) <= last]
            shells = [(low, after - 1) for low, after in pairwise([*lows, last + 1])]
        counts = [self.within(self.band(answers, high)) for _, high in shells]
        return shells, [count - before for count, before in zip(counts, [0, *counts], strict=False)]

    def level(self, answers: NDArray[np.int64], units: Sequence[int]) -> int:
        counts = self.matrix.astype(np.int64) @ np.array(units, np.int64)
        return int(np.abs(self.rows * counts - self.size * answers).max())

    def band(self, answers: NDArray[np.int64], level: int) -> Band:
        m, n = self.size, self.rows
        return [(max(0, -((level - m * c) // n)), min(m, (m * c + level) // n)) for c in answers.tolist()]

    def _all_levels(self, answers: NDArray[np.int64]) -> list[int]:
        grid = np.arange(self.size + 1) * self.rows
        return np.unique(np.abs(grid[None] - self.size * answers[:, None])).tolist()

    def _least(self, answers: NDArray[np.int64]) -> int:
        """The least level that any database reaches, by as many counts as n has bits: some database is below n."""
        low, high = -1, self.rows
        for _ in range(self.rows.bit_length() + 1):
            middle = (low + high) // 2
            if self.within(self.band(answers, middle)):
                high = middle
            else:
                low = middle
        return high


def _step(rate: Fraction) -> int:
    """Width of a shell in levels."""
    return max(1, int(1 / (2 * rate)))
