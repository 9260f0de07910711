"""What one row adds to a vector of sums, and how long and how far apart such columns are: exact integers.

`relation.Relation.moves` makes sensitivities of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, prod

import numpy as np
from numpy.typing import NDArray

from understudy.errors import QueryError
from understudy.privacy.relation import Sensitivity
from understudy.query.disjoint import row_parts
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

Whole = NDArray[np.int64]

MAX_PAIRS = 1 << 11
"""Up to so many cells every pair of columns is looked at; beyond, a bound is taken."""


@dataclass(frozen=True, slots=True)
class CountColumns:
    """The cells of a partition: a row adds its weight, between `low` and `high`, to the one cell in which it lies.

    `low` and `high` are 1 for counts of all rows; `low` is 0 where some rows do not count, and negative for
    moments that are centred.

    The longest column has the larger of |low| and |high| in one cell. Two rows are farthest apart in different
    cells, with that in each, or in one cell, where they differ by high - low. Both are attained if there are
    rows of those weights in two cells, or in the one. As a rate of n public rows, a normalised linear query so
    has sensitivity (high - low)/(resolution·n) ≤ 1/n. [Lectures 9-10, Definition 2]
    """

    cells: int
    low: int = 1
    high: int = 1

    @classmethod
    def of(cls, marginal: Marginal, *, resolution: int = 1) -> CountColumns:
        """The sums of a marginal, in steps of 1/resolution.

        Those of a moment are rounded once, when all rows are summed: where low and high are whole numbers of
        steps, they move no further for that (`query.moment.Moment.steps`).
        """
        if (moment := marginal.moment) is not None:
            low, high = moment.low * resolution, moment.high * resolution
            return cls(marginal.size, floor(low), ceil(high))
        return cls(marginal.size, *lattice_bounds(marginal.where, resolution))

    @classmethod
    def stacked(cls, marginals: Sequence[Marginal], *, resolution: int = 1) -> CountColumns:
        """The sums of marginals side by side, if no row counts in two of them: their cells are one partition."""
        bounds = [lattice_bounds(marginal.where, resolution) for marginal in marginals]
        cells = sum(marginal.size for marginal in marginals)
        return cls(cells, min(low for low, _ in bounds), max(high for _, high in bounds))

    @classmethod
    def counting(cls, marginal: Marginal) -> CountColumns:
        """The counts of a marginal, whose condition, if it has one, only some rows may meet."""
        return cls(marginal.size, low=0 if marginal.where.factors else 1)

    @property
    def longest(self) -> Sensitivity:
        most = max(self.high, -self.low)
        return Sensitivity(most, most**2)

    @property
    def farthest(self) -> Sensitivity:
        within = self.high - self.low
        if self.cells == 1:
            return Sensitivity(within, within**2)
        most = max(self.high, -self.low)
        return Sensitivity(max(2 * most, within), max(2 * most**2, within**2))


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """Each row gives one unit of `resolution` steps to one cell, parts of it to each of `parts` sums there.

    Parts are nowhere negative and add up to 1, so that a column is a mean of the `parts` unit vectors of its
    cell. Norms are convex: without rounding no column is longer than a unit vector, and no two are farther apart
    than two of them, which is 1 and √2 in Euclidean norm, 1 and 2 in L1. Each sum is rounded when all rows are
    summed, which takes a difference of d steps to at most ⌈d⌉ < d + 1. With Σd = Q, over p parts, Σ⌈d⌉ < Q + p
    and Σ⌈d⌉² < Σd² + 2Σd + p ≤ Q² + 2Q + p; of two rows Σd ≤ 2Q and Σd² ≤ 2Q².
    """

    parts: int
    resolution: int

    @property
    def longest(self) -> Sensitivity:
        unit, parts = self.resolution, self.parts
        return Sensitivity(unit + parts - 1, unit**2 + 2 * unit + parts)

    @property
    def farthest(self) -> Sensitivity:
        """Twice the longest column, as joint accounting wants it: one row moves half of what two do."""
        longest = self.longest
        return Sensitivity(2 * longest.l1, 2 * longest.l2_squared)


@dataclass(frozen=True, eq=False)
class WeightColumns:
    """Each row adds its weights to one cell of each of several sums, and they add up to 1 at most.

    `steps` has a line for each sum, and a column for each cell: what a row there adds to the sums, w_1, …, w_p,
    in whole steps, as it is rounded when the row is counted (`query.disjoint.row_parts`). Which cell of a sum it
    goes to does not matter, since sums have no cell in common: the column v of a row has the entries w_i, each
    in a place of its own, and zeros. None is negative, so

        ‖v‖₁ = Σ w_i,     ‖v‖² = Σ w_i² ≤ max w_i · Σ w_i,

    which is one unit of Q steps, and Q², but for what rounding adds: Σ w_i ≤ Q + p/2. For two entries that are
    nowhere negative |x - y| ≤ x + y and (x - y)² ≤ x² + y²; so two rows are at most twice as far apart, in L1 and
    in squared Euclidean norm. An average's weights t and 1 - t reach both: a row at either end has the columns
    (0, Q) and (Q, 0), which are 2Q and 2Q² apart. Under `add-remove` the columns of a person's m rows add up
    (`relation`, Lemma 1).
    """

    steps: Whole

    @classmethod
    def of(cls, marginals: Sequence[Marginal], *, resolution: int) -> WeightColumns:
        """The sums of marginals side by side, in steps of 1/resolution.

        Raises a QueryError where a row could add more than 1 to all of them, or it takes too long to tell.
        """
        weights = row_parts(tuple(marginal.where for marginal in marginals))
        if weights is None:
            raise QueryError("weights that share a noise must add up to 1 at most in every row")
        return cls(np.rint(weights * resolution).astype(np.int64))

    @property
    def longest(self) -> Sensitivity:
        most, largest = int(self.steps.sum(axis=0).max()), int(self.steps.max())
        return Sensitivity(most, most * largest)

    @property
    def farthest(self) -> Sensitivity:
        longest = self.longest
        return Sensitivity(2 * longest.l1, 2 * longest.l2_squared)


ONE_COUNT = CountColumns(1, low=0)
"""The number of rows that meet a condition."""

PARTITION = CountColumns(2)
"""The counts of any marginal of all rows with more than one cell."""


def lattice_bounds(query: LinearQuery, resolution: int) -> tuple[int, int]:
    """Smallest and largest weight after rounding to multiples of 1/resolution.

    Rounding and float products of non-negative numbers are monotone, so the bounds of the product are the
    products of the bounds, exactly as the rows will see them.
    """
    return round(query.smallest * resolution), round(
        query.largest * resolution
    )  # half to even, as numpy does


@dataclass(frozen=True, eq=False)
class ProductColumns:
    """The columns of W_1 ⊗ … ⊗ W_k, matrices of whole numbers with a column for each cell of an attribute.

    The norms of a column of the product are the products of its factors' norms, so the longest column is that of
    the longest of each, exactly. The farthest pair is found among all pairs of up to `MAX_PAIRS` cells, else it is
    bounded (`_farthest_bound`). Its L1 norm is bounded by twice the longest unless `exact_l1` asks for it: only
    Laplace noise needs it.

    Where only `some` rows are combined, a row may also be replaced by one that adds nothing. No such pair is
    farther apart than the longest column is long, but joint accounting takes one row to move the combinations by
    no more than half of the sensitivity, in L1 and in squared Euclidean norm (`event.Located`); so the farthest
    pair is taken to be at least twice the longest column.
    """

    matrices: tuple[Whole, ...]
    some: bool = False
    exact_l1: bool = True

    @property
    def longest(self) -> Sensitivity:
        return Sensitivity(
            prod(int(np.abs(matrix).sum(axis=0).max()) for matrix in self.matrices),
            prod(int((matrix**2).sum(axis=0).max()) for matrix in self.matrices),
        )

    @property
    def farthest(self) -> Sensitivity:
        pair = self._farthest_pair()
        if not self.some:
            return pair
        longest = self.longest
        return Sensitivity(max(pair.l1, 2 * longest.l1), max(pair.l2_squared, 2 * longest.l2_squared))

    def _farthest_pair(self) -> Sensitivity:
        if prod(matrix.shape[1] for matrix in self.matrices) > MAX_PAIRS:
            return self._farthest_bound()
        columns = tuple((matrix.shape, matrix.tobytes()) for matrix in self.matrices)
        return _farthest_columns(columns, exact_l1=self.exact_l1)

    def _farthest_bound(self) -> Sensitivity:
        """‖v_a - v_b‖² = ‖v_a‖² + ‖v_b‖² - 2⟨v_a, v_b⟩, with each of the three at its extreme.

        The inner product of two columns of the product is the product of the factors' inner products, each between
        the least and the largest entry of its Gram matrix.
        """
        low, high = 1, 1
        for matrix in self.matrices:
            gram = matrix.T @ matrix
            ends = [x * y for x in (low, high) for y in (int(gram.min()), int(gram.max()))]
            low, high = min(ends), max(ends)
        longest = self.longest
        most = longest.l2_squared
        return Sensitivity(2 * longest.l1, 2 * most - 2 * min(low, most))


@lru_cache(maxsize=256)
def _farthest_columns(matrices: tuple[tuple[tuple[int, ...], bytes], ...], *, exact_l1: bool) -> Sensitivity:
    """max ‖v_a - v_b‖₁ and max ‖v_a - v_b‖² over all pairs of columns of a product; found once for equal ones."""
    each = [np.frombuffer(held, np.int64).reshape(shape) for shape, held in matrices]
    gram = np.ones((1, 1), np.int64)
    for matrix in each:
        gram = np.kron(gram, matrix.T @ matrix)
    norms = np.diag(gram)
    l2_squared = int((norms[:, None] + norms[None, :] - 2 * gram).max())
    if not exact_l1:
        return Sensitivity(2 * prod(int(np.abs(matrix).sum(axis=0).max()) for matrix in each), l2_squared)
    columns = each[0]
    for matrix in each[1:]:
        columns = np.kron(columns, matrix)
    l1 = max(int(np.abs(columns - column[:, None]).sum(axis=0).max()) for column in columns.T)
    return Sensitivity(l1, l2_squared)
