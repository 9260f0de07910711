"""ORDER BY: by which numbers rows are sorted, and whether the order is sure although they are released ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.sql.grid import Floats, Nothing, Numbers, Truths, Value
from understudy.sql.read import Order


def ranks(value: Value, term: Order, count: int) -> list[NDArray[np.int64]]:
    """Two sort keys of a term, the weaker one first: the rank of the value, and whether it is missing."""
    if isinstance(value, Nothing):
        return []
    missing = np.broadcast_to(value.null, (count,))
    if isinstance(value, Truths):
        ranks = np.broadcast_to(value.true, (count,)).astype(np.int64)
    else:
        raw = value.point if isinstance(value, Numbers) else value.values.astype(str)
        _, ranks = np.unique(np.broadcast_to(raw, (count,)), return_inverse=True)
        ranks = np.where(np.broadcast_to(value.unknown, (count,)), count, ranks.reshape(-1))
    ranks = -ranks if term.descending else ranks
    first = missing.astype(np.int64) * (-1 if term.nulls_first else 1)
    return [np.where(missing, 0, ranks), first]


@dataclass(frozen=True, eq=False)
class Sorted:
    """A term of ORDER BY in each group: between `low` and `high` in the direction of the order; `known` or not.

    Names of groups are public: their ends are equal, so that they are always told apart.
    """

    low: Floats
    high: Floats
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, value: Value, term: Order, count: int) -> Sorted | None:
        """The term; None where it is NULL everywhere."""
        if isinstance(value, Nothing):
            return None
        if isinstance(value, Numbers):
            low, high = (np.broadcast_to(part, (count,)) for part in (value.low, value.high))
            known = np.broadcast_to(value.known, (count,))
            return cls(-high, -low, known) if term.descending else cls(low, high, known)
        rank, missing = ranks(value, term, count)
        place = (rank + missing * (2 * count + 2)).astype(np.float64)
        return cls(place, place, np.ones(count, bool))

    def compared(self, one: int, other: int) -> int:
        """1 where one surely comes before the other, 0 where they are surely equal, else -1."""
        if not (self.known[one] and self.known[other]):
            return -1
        if self.high[one] < self.low[other]:
            return 1
        return 0 if self.low[one] == self.high[one] == self.low[other] == self.high[other] else -1


def surely_sorted(terms: Sequence[Sorted], listed: Sequence[int], start: int, end: int) -> bool:
    """Whether the rows `listed[start:end]` are surely in order, and no row outside belongs between them."""
    shown, before, after = listed[start:end], listed[:start], listed[end:]
    if not shown:
        return True
    pairs = [*pairwise(shown)]
    pairs += [(row, shown[0]) for row in before] + [(shown[-1], row) for row in after]
    return all(_is_before(terms, one, other) for one, other in pairs)


def _is_before(terms: Sequence[Sorted], one: int, other: int) -> bool:
    for term in terms:
        found = term.compared(one, other)
        if found:
            return found > 0
    return True  # equal in all terms: either order is right
