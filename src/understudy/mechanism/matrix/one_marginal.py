"""Whole combinations of a marginal's counts, each with noise: what range queries and residuals are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, QueryError
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import Event
from understudy.privacy.neighbours import Neighbours, Sensitivity, located
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact

Whole = NDArray[np.int64]

MAX_WEIGHT = 2**22
"""With 2^40 rows, the largest combination stays within 2^62."""

MAX_SQUARES = 2**58
"""Sums of squared weights, and differences of them, stay within 64 bits."""

MAX_PAIRS = 1 << 11
"""Up to so many cells every pair is looked at; beyond, a bound is taken."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """(W₁ ⊗ … ⊗ W_k)·c + noise, for the counts c of a marginal: one matrix of whole numbers for each of `by`.

    Privacy     ρ-zCDP (or ε-DP): a row in cell a adds column w_a. Adding or removing the up to m rows of a person
                moves the combinations by at most m·max‖w_a‖; replacing a row by at most max‖w_a - w_b‖, in either
                norm. Integers in, integers out: the noise is the discrete one, and its law exact.
                [CKS20, Theorem 14]
    Complexity  O(cells · Σ rows of W_i): the product is never expanded.

    Where the marginal has a condition, a row may also be replaced by one that it does not see, so that Δ² is taken
    as at least 2·max‖w_a‖² and Δ₁ as at least 2·max‖w_a‖₁ (`event.Located`).
    """

    marginal: Marginal
    matrices: tuple[Whole, ...]
    neighbours: Neighbours
    max_rows: int = 1
    epsilon: Number | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        if not self.marginal.by or not self.marginal.where.is_counting:
            raise QueryError("a strategy combines the counts of a marginal with at least one attribute")
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("give one price: epsilon for Laplace noise, or rho for Gaussian noise")
        matrices = tuple(np.array(matrix) for matrix in self.matrices)
        for matrix, size in zip(matrices, self.marginal.shape, strict=True):
            if matrix.ndim != 2 or matrix.shape[1] != size or not np.issubdtype(matrix.dtype, np.integer):
                raise ParameterError("a strategy needs a matrix of whole numbers, a column for each cell")
        largest = prod(max(int(m.max(initial=0)), -int(m.min(initial=0))) for m in matrices)
        if largest > MAX_WEIGHT or prod(len(m) for m in matrices) * max(largest, 1) ** 2 > MAX_SQUARES:
            raise ParameterError("the weights of a strategy are too many or too large to add up exactly")
        object.__setattr__(self, "matrices", tuple(matrix.astype(np.int64) for matrix in matrices))
        self.mechanism  # noqa: B018 (its parameters are checked before anything is charged)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return (self.marginal,)

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis of combinations for each attribute."""
        return tuple(len(matrix) for matrix in self.matrices)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far a person can move the combinations."""
        squares = prod(int((matrix**2).sum(axis=0).max()) for matrix in self.matrices)
        sizes = prod(int(np.abs(matrix).sum(axis=0).max()) for matrix in self.matrices)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(self.max_rows * sizes, self.max_rows**2 * squares)
        l1, l2_squared = self._farthest_pair()
        if self.marginal.where.factors:
            return Sensitivity(max(l1, 2 * sizes), max(l2_squared, 2 * squares))
        return Sensitivity(l1, l2_squared)

    def _farthest_pair(self) -> tuple[int, int]:
        """max‖w_a - w_b‖₁ and max‖w_a - w_b‖² over cells a, b: exact where they are few, else bounded."""
        if self.marginal.size <= MAX_PAIRS:
            columns = tuple((matrix.shape, matrix.tobytes()) for matrix in self.matrices)
            return _farthest_columns(columns, laplace=self.epsilon is not None)
        low, high, most, sizes = 1, 1, 1, 1
        for matrix in self.matrices:
            gram = matrix.T @ matrix
            ends = [x * y for x in (low, high) for y in (int(gram.min()), int(gram.max()))]
            low, high = min(ends), max(ends)  # of the inner product of two columns
            most *= int(np.diag(gram).max())
            sizes *= int(np.abs(matrix).sum(axis=0).max())
        return 2 * sizes, 2 * most - 2 * min(low, most)

    @cached_property
    def mechanism(self) -> LaplaceMechanism | GaussianMechanism:
        moved = self.sensitivity
        if self.epsilon is not None:
            return LaplaceMechanism(epsilon=exact(self.epsilon, "epsilon"), l1=moved.l1)
        assert self.rho is not None
        return GaussianMechanism(rho=exact(self.rho, "rho"), l2_squared=moved.l2_squared)

    @property
    def event(self) -> Event:
        return located(self.marginal, self.mechanism.event, self.neighbours, self.max_rows)

    @property
    def key(self) -> str:
        digest = sha256()
        for matrix in self.matrices:
            digest.update(repr(matrix.shape).encode() + np.ascontiguousarray(matrix).tobytes())
        return f"combinations of {self.marginal.key} {digest.hexdigest()}"

    def combine(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The combinations without noise."""
        table = np.asarray(counts, dtype=np.int64)
        for axis, matrix in enumerate(self.matrices):
            table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
        return table

    def release(self, counts: Sequence[NDArray[np.int64]], *, noise: NoiseSource) -> list[int]:
        return self.release_many(counts, 1, noise=noise)[0]

    def release_many(
        self, counts: Sequence[NDArray[np.int64]], times: int, *, noise: NoiseSource
    ) -> list[list[int]]:
        """So many independent releases; each costs as one."""
        combined = self.combine(counts[0]).ravel()
        return self.mechanism.release(np.tile(combined, (times, 1)), noise=noise).tolist()


@lru_cache(maxsize=256)
def _farthest_columns(
    matrices: tuple[tuple[tuple[int, ...], bytes], ...], *, laplace: bool
) -> tuple[int, int]:
    """max‖w_a - w_b‖₁ and max‖w_a - w_b‖² over the columns of a product of matrices.

    Only Laplace noise asks for the first: it is bounded where there is none. Equal matrices are looked at once.
    """
    each = [np.frombuffer(held, np.int64).reshape(shape) for shape, held in matrices]
    gram = np.ones((1, 1), np.int64)
    for matrix in each:
        gram = np.kron(gram, matrix.T @ matrix)
    norms = np.diag(gram)
    l2_squared = int((norms[:, None] + norms[None, :] - 2 * gram).max())
    if not laplace:
        return 2 * prod(int(np.abs(matrix).sum(axis=0).max()) for matrix in each), l2_squared
    columns = each[0]
    for matrix in each[1:]:
        columns = np.kron(columns, matrix)
    return max(int(np.abs(columns - column[:, None]).sum(axis=0).max()) for column in columns.T), l2_squared
