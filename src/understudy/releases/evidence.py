"""Intervals that noisy counts prove, and answers inside them with their error bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.query.merging import Merging
from understudy.releases.run import MarginalAnswer

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Counts of a clique's cells lie between `low` and `high`, all of them, jointly with the other intervals."""

    clique: Clique
    low: Table
    high: Table
    basis: str

    @classmethod
    def around(
        cls, merging: Merging, clique: Clique, counts: Table, error: float | Table, basis: str
    ) -> Interval:
        """Of values, from counts of groups that are off by at most `error`, in all cells or in each.

        A value that is alone in its group has the group's interval; one of several is between 0 and the upper end.
        """
        low = merging.spread(clique, np.maximum(counts - error, 0.0))
        alone = merging.spread(clique, _alone(merging, clique))
        return cls(clique, low * alone, merging.spread(clique, counts + error), basis)

    def meet(self, other: Interval) -> Interval:
        """Both hold."""
        return Interval(
            self.clique, np.maximum(self.low, other.low), np.minimum(self.high, other.high), self.basis
        )


def _alone(merging: Merging, clique: Clique) -> Table:
    alone = np.ones(())
    for name in clique:
        widths = merging.widths[merging.domain.position(name)]
        alone = np.multiply.outer(alone, (widths == 1).astype(np.float64))
    return alone


class Knowledge:
    """All intervals of a run, by clique."""

    def __init__(self) -> None:
        self._known: dict[Clique, Interval] = {}
        self._holding: dict[str, list[Clique]] = {}

    def add(self, interval: Interval) -> None:
        known = self._known.get(interval.clique)
        self._known[interval.clique] = interval if known is None else known.meet(interval)
        if known is None and interval.clique:
            self._holding.setdefault(interval.clique[0], []).append(interval.clique)

    @property
    def cliques(self) -> list[Clique]:
        """Of which something was measured, in that order."""
        return [clique for clique in self._known if clique]

    def inside(self, clique: Clique) -> Iterable[Interval]:
        """What is known of parts of a clique, and of the clique itself."""
        names = set(clique)
        for name in clique:
            for part in self._holding.get(name, ()):
                if names.issuperset(part):
                    yield self._known[part]

    def answer(self, clique: Clique, counts: Table, bound: Interval | None) -> MarginalAnswer:
        """The counts, moved into every interval about the clique; their errors reach to the farther end.

        A cell is never more than the cells of smaller marginals that hold it.
        """
        own = self._known.get(clique)
        low = np.zeros(counts.shape) if own is None else own.low
        high = np.full(counts.shape, np.inf) if own is None else own.high
        basis = "bounded" if own is None else own.basis
        if bound is not None:
            low, high = np.maximum(low, bound.low), np.minimum(high, bound.high)
        for part in self.inside(clique):
            if part.clique != clique:
                kept = [n if a in part.clique else 1 for a, n in zip(clique, counts.shape, strict=True)]
                high = np.minimum(high, part.high.reshape(kept))
        high = np.maximum(high, low)
        value = np.clip(counts, low, high)
        error = np.maximum(high - value, value - low)
        return MarginalAnswer(clique, value, error, basis if np.isfinite(error).all() else "uncertified")


def answers(
    knowledge: Knowledge, counts: Mapping[Clique, Table], bounds: Mapping[Clique, Interval]
) -> tuple[MarginalAnswer, ...]:
    """The workload's answers, in its order."""
    return tuple(knowledge.answer(c, table, bounds.get(c)) for c, table in counts.items())
