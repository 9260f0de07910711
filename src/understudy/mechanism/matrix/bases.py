"""What is measured of one attribute, and how its cells, or its ranges, come out of it.

A `Basis` is one attribute's part in a residual: combinations whose weights sum to 0, so that they stay apart from
totals. For single cells the differences from their mean are as good as anything; for all ranges of an ordered
attribute other combinations are better (`ranges.least_sum_ranges`). A `HistogramDesign` is for an attribute that
is measured by itself: all its ranges, or all sets of its cells, are answered well (`ranges.minimax_ranges`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.matrix.many_marginals import AttributeFactor, Centred, Combinations
from understudy.mechanism.matrix.ranges import (
    LEAST_SUM_CELLS,
    MINIMAX_CELLS,
    MINIMAX_RESOLUTION,
    least_sum_ranges,
    minimax_ranges,
    range_ends,
    zero_sum_basis,
)

Values = NDArray[np.float64]


class Basis(Protocol):
    """One attribute's part in a residual: what is measured, and what its noise does to what is asked.

    `factor` is measured, `unmix` gives the cells' differences from their mean back, and `along` says what a
    question with a weight for each cell, or several in rows, takes of each measured number. With noise of
    variance 1, `spread` is the variance of each cell, `reach` the largest Σ|coefficient| of one. `queries` is how
    many questions are asked along the attribute, `inside` their variance (mean, largest) and `outside` the same of
    the square of the share of the total in each.
    """

    @property
    def factor(self) -> AttributeFactor: ...
    @property
    def spread(self) -> Values: ...
    @property
    def reach(self) -> float: ...
    @property
    def queries(self) -> int: ...
    @property
    def inside(self) -> tuple[float, float]: ...
    @property
    def outside(self) -> tuple[float, float]: ...
    def unmix(self, table: Values, axis: int) -> Values: ...
    def along(self, weights: Values) -> Values: ...


@dataclass(frozen=True)
class CellBasis:
    """Differences from the mean, for questions about single cells."""

    size: int

    @property
    def factor(self) -> Centred:
        return Centred(self.size)

    @property
    def spread(self) -> Values:
        return np.full(self.size, (1 - 1 / self.size) / self.size**2)

    @property
    def reach(self) -> float:
        return 2 * (1 - 1 / self.size) / self.size

    @property
    def queries(self) -> int:
        return self.size

    @property
    def inside(self) -> tuple[float, float]:
        own = float(self.spread[0])
        return own, own

    @property
    def outside(self) -> tuple[float, float]:
        return 1 / self.size**2, 1 / self.size**2

    def unmix(self, table: Values, axis: int) -> Values:
        return (table - table.mean(axis=axis, keepdims=True)) / self.size

    def along(self, weights: Values) -> Values:
        return (weights - weights.mean(axis=-1, keepdims=True)) / self.size


@dataclass(frozen=True)
class RangeBasis:
    """Combinations for questions about all ranges of an ordered attribute."""

    factor: Combinations

    @classmethod
    def of(cls, size: int) -> RangeBasis:
        """The best combinations for so many cells."""
        return cls(_combinations(size))

    @property
    def size(self) -> int:
        return self.factor.size

    @cached_property
    def mixing(self) -> Values:
        """Differences from the mean, from the combinations, by least squares."""
        inverse = np.linalg.pinv(self.factor.matrix.astype(np.float64), rcond=1e-9)
        return np.asarray(inverse - inverse.mean(axis=0), np.float64)

    @cached_property
    def covariance(self) -> Values:
        """Of the cells' differences from their mean, with noise of variance 1."""
        return self.mixing @ self.mixing.T

    @property
    def spread(self) -> Values:
        return np.diag(self.covariance).copy()

    @property
    def reach(self) -> float:
        return float(np.abs(self.mixing).sum(axis=1).max())

    @property
    def queries(self) -> int:
        return self.size * (self.size + 1) // 2

    @cached_property
    def variances(self) -> Values:
        """Of each range, in the order of `range_ends`."""
        prefix = np.zeros((self.size + 1, self.size + 1))
        prefix[1:, 1:] = np.cumsum(np.cumsum(self.covariance, axis=0), axis=1)
        starts, ends = range_ends(self.size)
        own = np.diag(prefix)
        return np.maximum(own[starts] + own[ends] - 2 * prefix[starts, ends], 0.0)

    @property
    def inside(self) -> tuple[float, float]:
        return float(self.variances.mean()), float(self.variances.max())

    @property
    def outside(self) -> tuple[float, float]:
        starts, ends = range_ends(self.size)
        shares = ((ends - starts) / self.size) ** 2
        return float(shares.mean()), 1.0

    def unmix(self, table: Values, axis: int) -> Values:
        return np.moveaxis(np.tensordot(self.mixing, table, axes=(1, axis)), 0, axis)

    def along(self, weights: Values) -> Values:
        return weights @ self.mixing


def basis(size: int, *, ranges: bool = False) -> Basis:
    """The basis of an attribute; ranges of too few or too many cells are sums of cells."""
    return RangeBasis.of(size) if ranges and 2 < size <= LEAST_SUM_CELLS else CellBasis(size)


@lru_cache(maxsize=128)
def _combinations(size: int) -> Combinations:
    return Combinations(least_sum_ranges(size))


@dataclass(frozen=True)
class HistogramDesign:
    """How the histogram of an attribute of `size` cells is measured.

    The histogram itself is as good as anything for sets of cells, and is what is measured under Laplace noise; for
    ranges of an `ordered` attribute under Gaussian noise combinations are measured. `centred` says that the number
    of rows is public, so that only differences between cells matter. `resolution` is the largest weight of a
    combination; at 1 the histogram itself is measured.

    Everything here is made of the whole weights after rounding, so that any resolution gives a valid design as
    long as the weights tell the cells apart; where they do not, the histogram itself is measured.
    """

    size: int
    ordered: bool
    centred: bool
    laplace: bool = False
    resolution: int = MINIMAX_RESOLUTION

    @cached_property
    def is_plain(self) -> bool:
        """Whether the histogram itself is measured."""
        if not self.ordered or self.laplace or not 2 < self.size <= MINIMAX_CELLS or self.resolution == 1:
            return True
        if self.resolution == MINIMAX_RESOLUTION:
            return False
        apart = self._combinations @ zero_sum_basis(self.size) if self.centred else self._combinations
        return bool(np.linalg.matrix_rank(apart) < apart.shape[1])

    @property
    def _combinations(self) -> NDArray[np.int64]:
        whole = minimax_ranges(self.size, centred=self.centred)
        if self.resolution == MINIMAX_RESOLUTION:
            return whole
        return np.rint(whole * (self.resolution / MINIMAX_RESOLUTION)).astype(np.int64)

    @cached_property
    def matrix(self) -> NDArray[np.int64]:
        """The combinations that are measured."""
        return np.eye(self.size, dtype=np.int64) if self.is_plain else self._combinations

    @cached_property
    def mixing(self) -> Values:
        """The histogram from the combinations, by least squares; where its sum is known, its differences."""
        weights = self.matrix.astype(np.float64)
        if not self.centred:
            return np.asarray(np.linalg.pinv(weights), np.float64)
        basis = zero_sum_basis(self.size)
        return np.asarray(basis @ np.linalg.pinv(weights @ basis), np.float64)

    def noise_of(self, noise: Values) -> Values:
        """What noise on the combinations does to the histogram, for each row of simulated noise."""
        if not self.is_plain:
            return noise @ self.mixing.T
        return np.subtract(noise, noise.mean(axis=1, keepdims=True)) if self.centred else noise

    def histogram(self, combinations: Values, total: float) -> Values:
        """The histogram from noisy combinations; with its sum, where that is known."""
        if self.is_plain:
            even = (total - combinations.sum()) / self.size if self.centred else 0.0
            return combinations + even
        if not self.centred:
            return self.mixing @ combinations
        even = total / self.size
        return even + self.mixing @ (combinations - even * self.matrix.sum(axis=1))
