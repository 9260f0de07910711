"""Events that tell two laws apart: learnt from one half of the draws, to be counted on the other half.

Draws are rows of whole numbers. A statistic makes one number of a row; bins of it are ordered by how much likelier
they are on the first table; the best prefix of that order is the event. The order comes from one part of the draws
and what is best from the other, or many bins would look good by luck. Nothing is assumed about the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Draws = NDArray[np.int64]
"""One row for each run of a mechanism, one column for each number that it released."""

UNSAID = -(2**40)
"""Stands in a row where a shorter run said nothing: no run says it."""

MOST_BINS = (2048, 48)
"""Statistics with more values than this are cut at quantiles: finely, for many draws, and coarsely."""

MOST_COLUMNS = 24
"""So many columns are looked at one by one."""

FINE = 64
"""Steps of the linear score in one standard deviation."""


@dataclass(frozen=True, eq=False)
class OneNumber:
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
class Everything:
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
class WeightedSum:
    """A weighted sum of the released numbers; none counts as less than the least that was seen."""

    weights: NDArray[np.float64]
    least: Draws

    def __call__(self, draws: Draws) -> Draws:
        return np.rint(np.maximum(draws, self.least) @ self.weights).astype(np.int64)

    def __str__(self) -> str:
        return "a weighted sum of the released numbers"


Statistic = OneNumber | Ends | Everything | WeightedSum


@dataclass(frozen=True, eq=False)
class OutputEvent:
    """A set of values of a statistic: bin i holds those from `edges[i-1]` to below `edges[i]`."""

    statistic: Statistic
    edges: Draws
    chosen: NDArray[np.bool_]

    def count(self, draws: Draws) -> int:
        return count_all([self], draws)[0]

    def __str__(self) -> str:
        """The event in words: a half-line or an interval where it is one."""
        held = np.flatnonzero(self.chosen)
        if held.size and held.size == held[-1] - held[0] + 1:
            low = "" if held[0] == 0 else f"at least {self.edges[held[0] - 1]}"
            high = "" if held[-1] == self.edges.size else f"below {self.edges[held[-1]]}"
            return f"{self.statistic} {' and '.join(part for part in (low, high) if part) or 'anything'}"
        return f"{self.statistic} in {held.size} of {self.chosen.size} bins"


def count_all(events: Sequence[OutputEvent], draws: Draws) -> list[int]:
    """How often each event comes up in these draws; of events with the same bins, draws are put into them once."""
    bins: dict[tuple[int, int], NDArray[np.intp]] = {}
    counts: list[int] = []
    for event in events:
        same = id(event.statistic), id(event.edges)
        if same not in bins:
            bins[same] = np.searchsorted(event.edges, event.statistic(draws), side="right")
        counts.append(int(event.chosen[bins[same]].sum()))
    return counts


def as_plain(event: OutputEvent) -> dict[str, Any]:
    """An event as JSON keeps it, to be counted in another sitting."""
    match event.statistic:
        case OneNumber(index):
            statistic: dict[str, Any] = {"column": index}
        case Ends(index):
            statistic = {"ends": index}
        case Everything(low, high):
            statistic = {"low": low.tolist(), "high": high.tolist()}
        case WeightedSum(weights, least):
            statistic = {"weights": weights.tolist(), "least": least.tolist()}
    chosen = np.flatnonzero(event.chosen).tolist()
    return statistic | {"edges": event.edges.tolist(), "chosen": chosen}


def from_plain(kept: dict[str, Any]) -> OutputEvent:
    """The event that `as_plain` kept."""
    statistic: Statistic
    if "column" in kept:
        statistic = OneNumber(kept["column"])
    elif "ends" in kept:
        statistic = Ends(kept["ends"])
    elif "low" in kept:
        statistic = Everything(np.array(kept["low"], np.int64), np.array(kept["high"], np.int64))
    else:
        statistic = WeightedSum(np.array(kept["weights"], np.float64), np.array(kept["least"], np.int64))
    edges = np.array(kept["edges"], np.int64)
    chosen = np.zeros(edges.size + 1, np.bool_)
    chosen[kept["chosen"]] = True
    return OutputEvent(statistic, edges, chosen)


def learn(first: Draws, second: Draws, *, delta: float, error: float) -> OutputEvent:
    """The event that would certify the largest epsilon, as far as draws can tell that did not shape it."""
    return learn_all(first, second, [("first", delta)], error=error)[0]


def learn_all(
    first: Draws, second: Draws, tests: Sequence[tuple[str, float]], *, error: float
) -> list[OutputEvent]:
    """An event for each test: a delta, and whether it is to be likelier on the first table or on the second."""
    best: list[tuple[float, OutputEvent] | None] = [None] * len(tests)
    for statistic in _statistics(first, second):
        one, two = statistic(first), statistic(second)
        for edges in _cuts(np.concatenate([one, two])):
            halves = _halves(edges, one, two)
            for i, (order, delta) in enumerate(tests):
                turned = halves if order == "first" else [counts[::-1] for counts in halves]
                promise, chosen = _best(turned, len(one), delta, error)
                known = best[i]
                if known is None or promise > known[0]:
                    best[i] = promise, OutputEvent(statistic, edges, chosen)
    return [found[1] for found in best if found is not None]


def _statistics(first: Draws, second: Draws) -> Iterator[Statistic]:
    columns = first.shape[1]
    for i in range(min(columns, MOST_COLUMNS)):
        yield OneNumber(i)
        if columns == 1:
            yield Ends(i)
    if columns == 1:
        return
    low, high = np.minimum(_least(first), _least(second)), np.maximum(first.max(axis=0), second.max(axis=0))
    if prod(max(int(b) - int(a), 0) + 1 for a, b in zip(low, high, strict=True)) < 1 << 62:
        yield Everything(low, np.maximum(low, high))
    first, second = np.maximum(first, low), np.maximum(second, low)
    spread = (first.var(axis=0) + second.var(axis=0)) / 2
    apart = first.mean(axis=0) - second.mean(axis=0)
    weights = np.where(spread > 0, apart / np.where(spread > 0, spread, 1), 0)
    size = float(np.sqrt((weights**2 * spread).sum()))
    if size > 0:
        yield WeightedSum(weights / size * FINE, low)


def _least(draws: Draws) -> Draws:
    """The least number of each column; one less where some runs said nothing, which is then a value beside it."""
    unsaid = draws == UNSAID
    least = np.where(unsaid, np.iinfo(np.int64).max, draws).min(axis=0)
    return np.where(unsaid.all(axis=0), 0, least - unsaid.any(axis=0))


def _best(
    halves: Sequence[NDArray[np.int64]], draws: int, delta: float, error: float
) -> tuple[float, NDArray[np.bool_]]:
    """Bins ordered by each half of the draws promise what the other half says; then all draws order them."""
    seen, fresh = halves
    tried = [
        _prefix(_order(seen), fresh, draws, delta, error),
        _prefix(_order(fresh), seen, draws, delta, error),
    ]
    order = _order(seen + fresh)
    share = sum(share for _, share in tried) / 2
    size = int(np.abs(np.cumsum((seen + fresh)[0][order]) / draws - share).argmin()) + 1
    chosen = np.zeros(order.size, np.bool_)
    chosen[order[:size]] = True
    return sum(promise for promise, _ in tried) / 2, chosen


def _halves(edges: Draws, one: Draws, two: Draws) -> list[NDArray[np.int64]]:
    """How many draws of each table lie in each bin, for either half of the draws."""
    bins = [np.searchsorted(edges, values, side="right") for values in (one, two)]
    half = len(one) // 2
    return [
        np.array([np.bincount(places[part], minlength=edges.size + 1) for places in bins])
        for part in (slice(None, half), slice(half, None))
    ]


def _order(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Bins by how much likelier they are on the first table."""
    return np.argsort(-(counts[0] + 0.5) / (counts[1] + 0.5), kind="stable")


def _prefix(
    order: NDArray[np.intp], counts: NDArray[np.int64], draws: int, delta: float, error: float
) -> tuple[float, float]:
    """What the best prefix would certify in so many draws, by these counts, and its share on the first table."""
    first, second = (np.cumsum(row[order]) / row.sum() for row in counts)
    promise = _promise(first, second, draws, delta, error)
    best = int(np.argmax(promise))
    return float(promise[best]), float(first[best])


def _cuts(values: Draws) -> Iterator[Draws]:
    """Every value that occurs, or quantiles of them where they are many; finely and, if that differs, coarsely."""
    values = np.sort(values)
    distinct = values[np.append(True, values[1:] != values[:-1])]
    for bins in MOST_BINS:
        if distinct.size <= bins:
            yield distinct
            return
        yield np.unique(values[np.linspace(0, values.size - 1, bins).astype(np.intp)])


def _promise(
    first: NDArray[np.float64], second: NDArray[np.float64], draws: int, delta: float, error: float
) -> NDArray[np.float64]:
    """About what each prefix would certify (Wilson's interval: exact bounds are for the one that is chosen)."""
    z = -float(ndtri(error / 2))
    low = _wilson(first, draws, -z) - delta
    high = _wilson(second, draws, z)
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


def _wilson(share: NDArray[np.float64], n: int, z: float) -> NDArray[np.float64]:
    reach = abs(z)
    centre = share + reach**2 / (2 * n)
    spread = reach * np.sqrt(share * (1 - share) / n + reach**2 / (4 * n * n))
    return (centre + np.sign(z) * spread) / (1 + reach**2 / n)
