"""Shattering and VC dimension of classes of counting queries (Lectures 9-10, section 2.1).

A counting query f : X → {0, 1} is known on finitely many points by its *trace*, the row of its values there.
A finite class is a boolean matrix, one row per query and one column per point. Everything here is exact:
integers and fractions, no tolerance, no sampling. What would take too long is refused, never estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ParameterError

MAX_TRACES = 1 << 14
"""Largest number of distinct traces whose shattered sets are searched; the search holds up to traces²/4 bytes."""

SEARCH_LIMIT = 1 << 34
"""Steps after which a search is given up, about a minute of one core; a step handles up to 64 traces."""

_NODE_STEPS = 1 << 12  # what visiting one set costs however few its traces, in the same unit
_BLOCK_WORDS = 1 << 20  # candidates are compared in blocks of about this many words, to bound memory

BoolMatrix = NDArray[np.bool_]
Words = NDArray[np.uint64]


# Shattering -------------------------------------------------------------------------------------------------


def shatters(traces: ArrayLike, points: Sequence[int]) -> bool:
    """Whether every subset T of `points` is {x in points : f(x) = 1} for some f. [Lectures 9-10, Definition 8]

    `points` are columns. A column named twice stands for two co-located points, which no class tells apart.
    """
    matrix = _matrix(traces)
    columns = [index(point) for point in points]
    if any(not 0 <= column < matrix.shape[1] for column in columns):
        raise ParameterError(f"points must be columns 0 to {matrix.shape[1] - 1}, not {columns}")
    # Fewer than 2^|S| queries cannot do it, and 2^|S| need not be computed for an S that is far too large.
    if len(columns) >= max(matrix.shape[0], 1).bit_length():
        return False
    return len(_distinct(matrix[:, columns])) == 1 << len(columns)


def growth(traces: ArrayLike) -> int:
    """Number of distinct traces: in how many ways the class labels the points."""
    return len(_distinct(_matrix(traces)))


def vc_dimension(traces: ArrayLike, *, limit: int = SEARCH_LIMIT) -> int:
    """Size of a largest shattered set, exactly. [Lectures 9-10, Definition 9]

    Work and refusals are those of `shattered_set`.
    """
    return len(shattered_set(traces, limit=limit))


def shattered_set(traces: ArrayLike, *, limit: int = SEARCH_LIMIT) -> tuple[int, ...]:
    """A largest shattered set, as increasing columns: the witness that `vc_dimension` counts.

    Exact depth-first growth. A set is visited only if it is shattered and may lie in one that is larger than the
    best known: subsets of a shattered set are shattered; a set whose 2^k cells hold at least c traces each reaches
    size k + ⌊log₂ c⌋ at most (Lemma 10 inside the smallest cell); and the Sauer-Shelah lemma gives a size that
    is surely reached, so that smaller sets are never recorded.

    Refused before the search: a class without queries, or with more than `MAX_TRACES` distinct traces.
    Refused after `limit` steps: a search that is not over by then; the message says what it had established.
    """
    matrix = _matrix(traces)
    if not len(matrix):
        raise ParameterError(
            "a class without queries shatters nothing, not even the empty set; give it a query"
        )
    reduced, columns = _essential(matrix)
    queries, points = reduced.shape
    if queries > MAX_TRACES:
        raise ParameterError(
            f"the class has {queries:,} distinct traces on {points:,} points that differ; at most {MAX_TRACES:,} "
            f"are searched. Restrict it to fewer queries, or use the closed form of its family."
        )
    search = _Search(
        _packed(reduced.T), queries=queries, surely=_surely_shattered(queries, points), limit=limit
    )
    everything = _packed(np.ones((1, queries), dtype=np.bool_))
    if points:
        search.grow((), everything, np.array([queries]), np.arange(points))
    return tuple(sorted(int(columns[point]) for point in search.found))


@dataclass(slots=True)
class _Search:
    columns: Words
    queries: int
    surely: int
    limit: int
    found: tuple[int, ...] = ()
    spent: int = 0

    @property
    def wanted(self) -> int:
        """The least size that would be news."""
        return max(self.surely, len(self.found) + 1)

    def grow(
        self, chosen: tuple[int, ...], cells: Words, sizes: NDArray[np.int64], candidates: NDArray[np.intp]
    ) -> None:
        """Visit supersets of `chosen` within `candidates`; `cells` are the traces by their values on `chosen`."""
        self._charge(cells.size * len(candidates))
        ones = self._ones(cells, candidates)
        smallest = np.minimum(ones, sizes - ones).min(axis=1)
        size = len(chosen) + 1
        if size >= self.wanted and smallest.max() > 0:
            self.found = (*chosen, int(candidates[smallest.argmax()]))
        open_ = np.flatnonzero(smallest >> (self.wanted - size))
        for place, i in enumerate(open_):
            # `wanted` may have risen since: ask again who can still reach it.
            if not smallest[i] >> (self.wanted - size):
                continue
            rest = open_[place + 1 :]
            rest = rest[smallest[rest] >> (self.wanted - size) > 0]
            if size + len(rest) < self.wanted:
                continue
            column = self.columns[candidates[i]]
            self.grow(
                (*chosen, int(candidates[i])),
                np.concatenate([cells & column, cells & ~column]),
                np.concatenate([ones[i], sizes - ones[i]]),
                candidates[rest],
            )

    def _ones(self, cells: Words, candidates: NDArray[np.intp]) -> NDArray[np.int64]:
        """For each candidate and each cell, how many traces of the cell are 1 there."""
        step = max(1, _BLOCK_WORDS // cells.size)
        return np.concatenate(
            [
                np.bitwise_count(self.columns[candidates[i : i + step], None] & cells).sum(
                    axis=2, dtype=np.int64
                )
                for i in range(0, len(candidates), step)
            ]
        )

    def _charge(self, words: int) -> None:
        self.spent += words + _NODE_STEPS
        if self.spent > self.limit:
            raise ParameterError(
                f"the search over {self.queries:,} distinct traces on {len(self.columns):,} points was given up "
                f"after {self.limit:,} steps; the VC dimension is from {max(self.surely, len(self.found))} to "
                f"{finite_class_bound(self.queries)}. Restrict the class to fewer points or queries, raise the "
                f"limit, or use the closed form of its family."
            )


def _surely_shattered(queries: int, points: int) -> int:
    """The least d with Φ_d(points) ≥ queries: by the Sauer-Shelah lemma some set of size d is shattered."""
    dimension, ways, term = 0, 1, 1
    while ways < queries:
        term = term * (points - dimension) // (dimension + 1)
        dimension += 1
        ways += term
    return dimension


def _matrix(traces: ArrayLike) -> BoolMatrix:
    matrix = np.asarray(traces)
    if matrix.ndim != 2:
        raise ParameterError(f"traces must be a matrix, queries by points, not of {matrix.ndim} dimensions")
    if matrix.dtype == np.bool_:
        return matrix
    ones = matrix == 1
    if not np.all(ones | (matrix == 0)):
        raise ParameterError("traces must hold only 0 and 1: VC dimension is about counting queries")
    return ones


def _distinct(matrix: BoolMatrix) -> BoolMatrix:
    if 0 in matrix.shape:
        return matrix[:1]
    rows = np.unique(np.packbits(matrix, axis=1), axis=0)
    return np.unpackbits(rows, axis=1, count=matrix.shape[1]).astype(np.bool_)


def _essential(matrix: BoolMatrix) -> tuple[BoolMatrix, NDArray[np.intp]]:
    """The distinct traces on the columns that matter, and which columns those are.

    A constant column is in no shattered set. Complementing a column changes nothing, so of columns equal up to
    complement at most one is in any shattered set, and each can stand for the others.
    """
    rows = _distinct(matrix)
    rows = rows ^ rows[0]
    varying = np.flatnonzero(rows.any(axis=0))
    if not len(varying):
        return rows[:1, :0], varying
    _, first = np.unique(np.packbits(rows[:, varying].T, axis=1), axis=0, return_index=True)
    columns = varying[np.sort(first)]
    return rows[:, columns], columns


def _packed(rows: BoolMatrix) -> Words:
    padding = -rows.shape[1] % 64
    return np.packbits(np.pad(rows, ((0, 0), (0, padding))), axis=1).view(np.uint64)


# Counting ---------------------------------------------------------------------------------------------------


def finite_class_bound(queries: int) -> int:
    """⌊log₂ queries⌋, which the VC dimension of a finite class never exceeds. [Lectures 9-10, Lemma 10]

    The lecture prints log; its proof (2^d subsets need 2^d queries) gives base 2. The natural log is too small.
    """
    return _whole(queries, "queries", at_least=1).bit_length() - 1


# Closed forms -----------------------------------------------------------------------------------------------


def prefix_dimension(size: int, *, with_empty: bool = True) -> int:
    """Prefixes {x ≤ t} of a chain of `size` points: 1, once the chain is long enough (one, or two)."""
    return min(1, _whole(size, "size", at_least=0 if with_empty else 1) - (not with_empty))


def interval_dimension(size: int, *, with_empty: bool = True) -> int:
    """Intervals {s ≤ x ≤ t} of a chain of `size` points: 2, once the chain is long enough (two, or three)."""
    return min(2, _whole(size, "size", at_least=0 if with_empty else 1) - (not with_empty))


def half_space_dimension(dimension: int) -> int:
    """Half-spaces {x : a·x ≥ b} of ℝ^d: d + 1, by Radon's theorem (`radon_partition` is its witness)."""
    return _whole(dimension, "dimension", at_least=0) + 1


def box_dimension(dimension: int) -> int:
    """Axis-aligned boxes of ℝ^d, d ≥ 1: 2d. Of 2d + 1 points, 2d span the bounding box of all."""
    return 2 * _whole(dimension, "dimension", at_least=1)


def grid_box_dimension(sizes: Sequence[int]) -> int:
    """Non-empty axis-aligned boxes of a grid of chains of these sizes: Σ min(2, sᵢ − 1).

    A set of three or more is shattered only if each point alone is outermost in some direction of some axis, and a
    chain of two values has only one direction in which that can happen. Neighbours of one inner point reach it.
    """
    return sum(min(2, size - 1) for size in _sizes(sizes))


def conjunction_dimension(sizes: Sequence[int]) -> int:
    """Conjunctions of literals attribute = value, at most one per attribute, the empty (true) one included.

    The number of attributes with two or more values; except that one such attribute alone, with three or more
    values, gives 2. Of a shattered set of three or more, each point is cut off by one attribute of its own.
    """
    varying = [size for size in _sizes(sizes) if size > 1]
    return min(2, varying[0] - 1) if len(varying) == 1 else len(varying)


def monotone_conjunction_dimension(attributes: int) -> int:
    """Conjunctions of un-negated literals over d booleans, the empty (true) one included: d."""
    return _whole(attributes, "attributes", at_least=0)


def parity_dimension(attributes: int) -> int:
    """The 2^d parities x ↦ a·x mod 2 over d booleans: d. Unit vectors are shattered; Lemma 10 allows no more."""
    return _whole(attributes, "attributes", at_least=0)


def one_way_marginal_dimension(attributes: int) -> int:
    """Cells attribute = value of d ≥ 1 attributes, each with two or more values: 1 + ⌊log₂ d⌋.

    If m points are shattered, then of each of the 2^{m−1} pairs of complementary subsets the larger one is where
    some attribute has some value. No attribute serves two pairs; points can be chosen so that each serves one.
    """
    return _whole(attributes, "attributes", at_least=1).bit_length()


def marginal_dimension_bound(sizes: Sequence[int], k: int) -> int:
    """An upper bound for the cells of all k-way marginals (conjunctions of exactly k literals attribute = value).

    The largest m that passes what a shattered set of m points needs: 2^m traces, when each attribute shows at most
    min(sᵢ, m) of its values on m points and all other cells are empty there; 2^{m−1} attributes, if k = 1; if
    m = 2, k attributes constant on the set and one that is not; if m ≥ 3, k constant ones and m that cut one off.
    Attained, if every size is at least 2, for k = 1, and for k + 3 ≤ d ≤ 2k + 2, where it is d − k. Not always:
    two-way marginals of seven booleans have VC dimension 4, and the bound is 5.
    """
    values = _sizes(sizes)
    k = _whole(k, "k", at_least=0)
    if k > len(values):
        raise ParameterError(f"k = {k} attributes cannot be chosen from {len(values)}")
    varying = sum(size > 1 for size in values)

    def possible(m: int) -> bool:
        cutting = m if m > 2 else 1
        constant = k if m > 1 else 0
        if varying < cutting or len(values) < cutting + constant or (k == 1 and len(values) < 1 << (m - 1)):
            return False
        return 1 << m <= 1 + _chosen_products([min(size, m) for size in values], k)

    m = 0
    while k and possible(m + 1):
        m += 1
    return m


def singleton_dimension(size: int) -> int:
    """The `size` queries x = v on a universe of `size` points: 1, or 0 on a single point."""
    return min(1, _whole(size, "size", at_least=1) - 1)


def subset_dimension(size: int) -> int:
    """All subsets of a universe: its size."""
    return _whole(size, "size", at_least=0)


def _chosen_products(values: Sequence[int], k: int) -> int:
    """Sum over all choices of k of the values of their product: how many cells the k-way marginals have."""
    sums = [1] + [0] * k
    for value in values:
        for i in range(k, 0, -1):
            sums[i] += value * sums[i - 1]
    return sums[k]


def _sizes(sizes: Sequence[int]) -> list[int]:
    return [_whole(size, "each size", at_least=1) for size in sizes]


def _whole(value: int, name: str, *, at_least: int) -> int:
    if isinstance(value, bool):
        raise ParameterError(f"{name} must be a whole number, not {value!r}")
    try:
        number = index(value)
    except TypeError:
        raise ParameterError(f"{name} must be a whole number, not {value!r}") from None
    if number < at_least:
        raise ParameterError(f"{name} must be at least {at_least}, not {number}")
    return number
