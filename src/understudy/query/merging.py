"""Adjacent rare values taken together: a coarser domain to look at, and the way back to the declared one.

Which values are rare is read off noisy counts that were released, so everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError

Values = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Merging:
    """For each attribute where its groups of adjacent values start, and each value's share of its group."""

    domain: Domain
    starts: tuple[Whole, ...]
    shares: tuple[Values, ...]

    def __post_init__(self) -> None:
        starts = tuple(np.array(begin, np.int64) for begin in self.starts)
        if len(starts) != len(self.domain):
            raise ParameterError("a merging says where the groups of every attribute start")
        for begin, size in zip(starts, self.domain.shape(), strict=True):
            rising = begin.ndim == 1 and begin.size > 0 and begin[0] == 0 and begin[-1] < size
            if not rising or (np.diff(begin) <= 0).any():
                raise ParameterError(
                    "groups of values start at 0 and follow each other: every value is in one"
                )
            begin.flags.writeable = False  # what was checked stays so
        object.__setattr__(self, "starts", starts)

    @classmethod
    def none(cls, domain: Domain) -> Merging:
        """Every value is a group of its own."""
        sizes = domain.shape()
        return cls(domain, tuple(np.arange(n) for n in sizes), tuple(np.ones(n) for n in sizes))

    @classmethod
    def of(
        cls, domain: Domain, counts: Iterable[Values], threshold: float, likely: Iterable[Values]
    ) -> Merging:
        """Values whose noisy count is below the threshold, joined with rare neighbours until they reach it.

        Shares in a group are those of `likely` counts, none of which is negative.
        """
        starts, shares = [], []
        for noisy, expected in zip(counts, likely, strict=True):
            begin = rare_together(noisy, threshold)
            held = expected + 1e-9
            starts.append(begin)
            shares.append(held / np.repeat(np.add.reduceat(held, begin), _widths(begin, noisy.size)))
        return cls(domain, tuple(starts), tuple(shares))

    @cached_property
    def coarse(self) -> Domain:
        """The domain of groups, under the declared names."""
        return Domain(
            tuple(
                Bins.integers(name, 0, len(begin) - 1)
                for name, begin in zip(self.domain.names, self.starts, strict=True)
            )
        )

    @cached_property
    def widths(self) -> tuple[Whole, ...]:
        """Values in each group."""
        return tuple(
            _widths(begin, size) for begin, size in zip(self.starts, self.domain.shape(), strict=True)
        )

    @cached_property
    def groups(self) -> tuple[Whole, ...]:
        """The group of each value."""
        return tuple(np.repeat(np.arange(w.size), w) for w in self.widths)

    def merge(self, clique: Clique, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of groups from counts of values."""
        for axis, name in enumerate(clique):
            begin = self.starts[self.domain.position(name)]
            if begin.size < counts.shape[axis]:
                counts = np.add.reduceat(counts, begin, axis=axis)
        return counts

    def expand(self, clique: Clique, table: Values) -> Values:
        """Counts (or rates) of values from those of groups, by the values' shares."""
        for axis, name in enumerate(clique):
            i = self.domain.position(name)
            if self.starts[i].size < self.groups[i].size:
                shape = [-1 if k == axis else 1 for k in range(len(clique))]
                table = np.take(table, self.groups[i], axis=axis) * self.shares[i].reshape(shape)
        return table

    def spread(self, clique: Clique, table: Values) -> Values:
        """The group's number for each of its values."""
        for axis, name in enumerate(clique):
            i = self.domain.position(name)
            if self.starts[i].size < self.groups[i].size:
                table = np.take(table, self.groups[i], axis=axis)
        return table


def _widths(begin: Whole, size: int) -> Whole:
    return np.diff(begin, append=size)


def rare_together(noisy: Values, threshold: float) -> Whole:
    """Starts of groups: a frequent value stands alone, a run of rare ones is cut when it reaches the threshold."""
    starts: list[int] = []
    held: float | None = None
    for code, count in enumerate(noisy):
        if count >= threshold:
            starts.append(code)
            held = None
            continue
        if held is None:
            starts.append(code)
            held = 0.0
        held += max(float(count), 0.0)
        if held >= threshold:
            held = None
    return np.array(starts, np.int64)


def simplex(values: Values, total: float) -> Values:
    """The nearest vector of numbers that are not negative and sum to `total`, which is not negative either."""
    if total == 0:
        return np.zeros(values.shape)
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    return np.maximum(values - excess[last], 0.0)
