"""Whole combinations of a marginal's counts, each with noise: what range queries and residuals are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, QueryError
from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.look import decided
from understudy.privacy.columns import ProductColumns
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.region import located
from understudy.privacy.relation import Columns, Relation, Sensitivity
from understudy.query.marginal import Marginal

Whole = NDArray[np.int64]

MAX_WEIGHT = 2**22
"""With 2^40 rows, the largest combination stays within 2^62."""

MAX_SQUARES = 2**58
"""Sums of squared weights, and differences of them, stay within 64 bits."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """(W₁ ⊗ … ⊗ W_k)·c + noise, for the counts c of a marginal: one matrix of whole numbers for each of `by`.

    Privacy     The price, in ρ-zCDP or ε-DP: a row in cell a adds column w_a of the product, and neighbours move
                such sums by no more than the noise is made for (`privacy.relation`, `privacy.columns`). Integers
                in, integers out: the noise is the discrete one, and its law exact. [CKS20, Theorem 14]
    Complexity  O(cells · Σ rows of W_i): the product is never expanded.
    """

    marginal: Marginal
    matrices: tuple[Whole, ...]
    relation: Relation
    price: Price

    def __post_init__(self) -> None:
        if not self.marginal.by or not self.marginal.where.is_counting:
            raise QueryError("a strategy combines the counts of a marginal with at least one attribute")
        matrices = tuple(np.array(matrix) for matrix in self.matrices)
        for matrix, size in zip(matrices, self.marginal.shape, strict=True):
            if matrix.ndim != 2 or matrix.shape[1] != size or not np.issubdtype(matrix.dtype, np.integer):
                raise ParameterError("a strategy needs a matrix of whole numbers, a column for each cell")
        largest = prod(max(int(m.max(initial=0)), -int(m.min(initial=0))) for m in matrices)
        if largest > MAX_WEIGHT or prod(len(m) for m in matrices) * max(largest, 1) ** 2 > MAX_SQUARES:
            raise ParameterError("the weights of a strategy are too many or too large to add up exactly")
        object.__setattr__(self, "matrices", tuple(matrix.astype(np.int64) for matrix in matrices))
        decided(self.mechanism)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return (self.marginal,)

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis of combinations for each attribute."""
        return tuple(len(matrix) for matrix in self.matrices)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far a person can move the combinations; in L1 from above, where the price is not in epsilon."""
        return self.relation.moves(self.columns)

    @property
    def columns(self) -> Columns:
        """What one row adds to the combinations."""
        some, exact_l1 = bool(self.marginal.where.factors), self.price.currency == "epsilon"
        return ProductColumns(self.matrices, some=some, exact_l1=exact_l1)

    @property
    def mechanism(self) -> Additive:
        return self._mechanism

    @cached_property
    def _mechanism(self) -> Additive:
        return noise_for(self.price, self.sensitivity)

    @property
    def event(self) -> Event:
        return located(self.marginal, self.mechanism.event, self.relation)

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(relation.moves(self.columns))

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

    def values(self, counts: Sequence[Whole]) -> Whole:
        """The combinations of the marginal's counts."""
        return self.combine(counts[0]).ravel()
