"""Small databases against thresholds on a chain, in polynomial time: lattice paths within bands.

Where the queries are nested, f₁ ⊂ f₂ ⊂ …, a database of m rows is a path 0 ≤ a₁ ≤ a₂ ≤ … ≤ m of its counts,
and its level max_j |n·aⱼ - m·fⱼ(x)| is at most T if and only if the path stays within a band around the table's
own. Such paths are counted column by column with prefix sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.errors import QueryError
from understudy.mechanism.small_database.shells import Band, Counted, Kind, Shape


def chain_order(matrix: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """The classes in an order in which every query, or its complement, holds exactly the first few; else None.

    The columns must differ. The distance of two classes is the number of queries that tell them apart, so that the
    class farthest from any other is an end, and the distances from an end are 0, 1, 2, ….
    """
    queries, classes = matrix.shape
    if queries != classes - 1:
        return None
    end = int((matrix != matrix[:, :1]).sum(axis=0).argmax())
    from_end = matrix != matrix[:, end : end + 1]
    order = np.argsort(from_end.sum(axis=0), kind="stable")
    nested = from_end[:, order]
    return order if (nested[:, 1:] >= nested[:, :-1]).all() else None


@dataclass(frozen=True, eq=False)
class Chain(Counted):
    """Thresholds: one count takes O(K·w) additions of numbers below C(m+K-1, m), w the width of the band."""

    def __post_init__(self) -> None:
        if self.order is None:
            raise QueryError("these queries are not thresholds on a chain: they are not nested")
        super().__post_init__()

    @staticmethod
    def additions(shape: Shape, size: int, width: int) -> float:
        del size
        return shape.queries * (width + 4)

    @property
    def shape(self) -> Shape:
        return Shape(Kind.CHAIN, *self.matrix.shape)

    @cached_property
    def order(self) -> NDArray[np.intp] | None:
        return chain_order(self.matrix)

    @cached_property
    def _columns(self) -> list[tuple[int, bool]]:
        """The queries from the least set of first classes to the largest, and which are complemented for it."""
        assert self.order is not None
        first = self.matrix[:, self.order[0]]
        places = np.argsort((self.matrix == first[:, None]).sum(axis=1), kind="stable")
        return [(place, not first[place]) for place in places.tolist()]

    def _path_band(self, band: Band) -> Band:
        """The band of the path, column by column. Both its ends rise, as the table's own counts do."""
        m = self.size
        return [
            (m - band[place][1], m - band[place][0]) if complemented else band[place]
            for place, complemented in self._columns
        ]

    def within(self, band: Band) -> int:
        counts: list[int] = []
        for column in _sweep(self._path_band(band)):
            counts = column
        return sum(counts)

    def ranked(self, outer: Band, inner: Band, rank: int) -> list[int]:
        """From the last column back.

        Among the ways to reach a count, those that must still leave the inner band are all ways but the ways
        within it, and none is owed once it has been left.
        """
        outer, inner = self._path_band(outer), self._path_band(inner)
        ways, inside = list(_sweep(outer)), list(_sweep(inner))
        path: list[int] = []
        owed, count = True, self.size
        for column in reversed(range(len(outer))):
            (least, most), (inner_least, inner_most) = outer[column], inner[column]
            count = min(count, most)
            while True:
                held = owed and inner_least <= count <= inner_most
                here = ways[column][count - least] - (inside[column][count - inner_least] if held else 0)
                if rank < here:
                    break
                rank -= here
                count -= 1
            owed = held
            path.append(count)
        return self._units(path[::-1])

    def _units(self, path: list[int]) -> list[int]:
        assert self.order is not None
        units = [0] * len(self.order)
        for place, (before, count) in zip(self.order.tolist(), pairwise([0, *path, self.size]), strict=True):
            units[place] = count - before
        return units


def _sweep(band: Band) -> Iterator[list[int]]:
    """For each column how many paths within the band lead to each allowed count."""
    counts, low, high = [1], 0, 0
    for least, most in band:
        sums = list(accumulate(counts))
        total = sums[-1] if sums else 0
        counts = sums[least - low : most - low + 1] if least <= high else []
        counts += [total] * (most - least + 1 - len(counts))
        low, high = least, most
        yield counts
