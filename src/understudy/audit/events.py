"""Events that tell two laws apart: learnt from one half of the draws, to be counted on the other half.

Draws are rows of whole numbers. A statistic makes one number of a row; bins of it are ordered by how much likelier
they are on the first table; the best prefix of that order is the event. Nothing is assumed about the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Draws = NDArray[np.int64]
"""One row for each run of a mechanism, one column for each number that it released."""

MOST_BINS = 2048
"""Statistics with more values than this are cut at quantiles."""

MOST_COLUMNS = 24
"""So many columns are looked at one by one."""

FINE = 64
"""Steps of the linear score in one standard deviation."""


@dataclass(frozen=True, eq=False)
class Column:
    """One released number."""

    index: int

    def __call__(self, draws: Draws) -> Draws:
        return draws[:, self.index]

    def __str__(self) -> str:
        return f"number {self.index + 1}"


@dataclass(frozen=True, eq=False)
class Ends:
    """The highest and the lowest bits of one released number: of a float's pattern, its size and its rounding.

    A sum that was rounded after noise was added has zeros at the end where it is small; noise alone does not.
    """

    index: int

    def __call__(self, draws: Draws) -> Draws:
        numbers = draws[:, self.index]
        return (numbers >> 52 << 3) | (numbers & 7)

    def __str__(self) -> str:
        return f"the first and last bits of number {self.index + 1}"


@dataclass(frozen=True, eq=False)
class Whole:
    """The whole row as one number; what lies outside the range that was seen is moved to its edge."""

    low: Draws
    high: Draws

    def __call__(self, draws: Draws) -> Draws:
        code = np.zeros(len(draws), np.int64)
        for i, (low, high) in enumerate(zip(self.low.tolist(), self.high.tolist(), strict=True)):
            code = code * (high - low + 1) + (np.clip(draws[:, i], low, high) - low)
        return code

    def __str__(self) -> str:
        return "everything released"


@dataclass(frozen=True, eq=False)
class Score:
    """A weighted sum of the released numbers."""

    weights: NDArray[np.float64]

    def __call__(self, draws: Draws) -> Draws:
        return np.rint(draws @ self.weights).astype(np.int64)

    def __str__(self) -> str:
        return "a weighted sum of the released numbers"


Statistic = Column | Ends | Whole | Score


@dataclass(frozen=True, eq=False)
class Event:
    """A set of values of a statistic: bin i holds those from `edges[i-1]` to below `edges[i]`."""

    statistic: Statistic
    edges: Draws
    chosen: NDArray[np.bool_]

    def count(self, draws: Draws) -> int:
        bins = np.searchsorted(self.edges, self.statistic(draws), side="right")
        return int(self.chosen[bins].sum())

    def __str__(self) -> str:
        """The event in words: a half-line or an interval where it is one."""
        held = np.flatnonzero(self.chosen)
        if held.size and held.size == held[-1] - held[0] + 1:
            low = "" if held[0] == 0 else f"at least {self.edges[held[0] - 1]}"
            high = "" if held[-1] == self.edges.size else f"below {self.edges[held[-1]]}"
            return f"{self.statistic} {' and '.join(part for part in (low, high) if part) or 'anything'}"
        return f"{self.statistic} in {held.size} of {self.chosen.size} bins"


def learn(first: Draws, second: Draws, *, delta: float, error: float) -> Event:
    """The event that would certify the largest epsilon if the draws it is learnt from were the ones counted."""
    found = [_best(statistic, first, second, delta, error) for statistic in _statistics(first, second)]
    return max(found, key=lambda pair: pair[0])[1]


def _statistics(first: Draws, second: Draws) -> Iterator[Statistic]:
    columns = first.shape[1]
    for i in range(min(columns, MOST_COLUMNS)):
        yield Column(i)
        if columns == 1:
            yield Ends(i)
    if columns == 1:
        return
    low = np.minimum(first.min(axis=0), second.min(axis=0))
    high = np.maximum(first.max(axis=0), second.max(axis=0))
    if prod(int(b) - int(a) + 1 for a, b in zip(low, high, strict=True)) < 1 << 62:
        yield Whole(low, high)
    spread = (first.var(axis=0) + second.var(axis=0)) / 2
    apart = first.mean(axis=0) - second.mean(axis=0)
    weights = np.where(spread > 0, apart / np.where(spread > 0, spread, 1), 0)
    size = float(np.sqrt((weights**2 * spread).sum()))
    if size > 0:
        yield Score(weights / size * FINE)


def _best(
    statistic: Statistic, first: Draws, second: Draws, delta: float, error: float
) -> tuple[float, Event]:
    one, two = statistic(first), statistic(second)
    edges = _edges(np.concatenate([one, two]))
    hits_one = np.bincount(np.searchsorted(edges, one, side="right"), minlength=edges.size + 1)
    hits_two = np.bincount(np.searchsorted(edges, two, side="right"), minlength=edges.size + 1)
    order = np.argsort(-(hits_one + 0.5) / (hits_two + 0.5), kind="stable")
    promise = _promise(
        np.cumsum(hits_one[order]), len(one), np.cumsum(hits_two[order]), len(two), delta, error
    )
    best = int(np.argmax(promise))
    chosen = np.zeros(edges.size + 1, np.bool_)
    chosen[order[: best + 1]] = True
    return float(promise[best]), Event(statistic, edges, chosen)


def _edges(values: Draws) -> Draws:
    """Every value that occurs, or quantiles of them where they are many."""
    distinct = np.unique(values)
    if distinct.size <= MOST_BINS:
        return distinct
    return np.unique(np.quantile(values, np.linspace(0, 1, MOST_BINS), method="lower")).astype(np.int64)


def _promise(
    first: NDArray[np.int64], n: int, second: NDArray[np.int64], m: int, delta: float, error: float
) -> NDArray[np.float64]:
    """About what each prefix would certify (Wilson's interval: exact bounds are for the one that is chosen)."""
    z = float(norm.isf(error / 2))
    low = _wilson(first / n, n, -z) - delta
    high = _wilson(second / m, m, z)
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


def _wilson(share: NDArray[np.float64], n: int, z: float) -> NDArray[np.float64]:
    reach = abs(z)
    centre = share + reach**2 / (2 * n)
    spread = reach * np.sqrt(share * (1 - share) / n + reach**2 / (4 * n * n))
    return (centre + np.sign(z) * spread) / (1 + reach**2 / n)
