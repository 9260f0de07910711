"""What is measured of one attribute beside its total, and how cells, or ranges of cells, come out of it.

For the cells of an attribute the differences from their mean are as good as anything. Ranges of an ordered one are
better served by other combinations, still of weights that sum to 0, so that everything stays apart from totals:
of all strategies W the one that minimises Σ_r var(r)·max_a‖w_a‖² over ranges r has WᵀW = S⁻¹ with S·Q·S = D, Q the
sum of the ranges' squares and D a diagonal that is found by weighing cells against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.matrix.many_marginals import Centred, Combinations, Factor

Values = NDArray[np.float64]

ROUNDS = 60
"""Of weighing cells; the price settles within a thousandth."""

RESOLUTION = 1 << 7
"""Largest whole weight of a range strategy: three ordered attributes stay within a strategy's weights."""

MOST_RANGES = 512
"""Cells of an attribute whose ranges are optimised; the work is cubic."""


class Basis(Protocol):
    """One attribute's part in a residual: what is measured, and what its noise does to what is asked.

    `factor` is measured, `unmix` gives the cells' differences from their mean back, and `along` says what a
    question with a weight for each cell, or several in rows, takes of each measured number. With noise of
    variance 1, `spread` is the variance of each cell, `reach` the largest Σ|coefficient| of one. `queries` is how
    many questions are asked along the attribute, `inside` their variance (mean, largest) and `outside` the same of
    the square of the share of the total in each.
    """

    @property
    def factor(self) -> Factor: ...
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
class Cells:
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
class Ranges:
    """Combinations for questions about all ranges of an ordered attribute."""

    factor: Combinations

    @classmethod
    def of(cls, size: int) -> Ranges:
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
    return Ranges.of(size) if ranges and 2 < size <= MOST_RANGES else Cells(size)


def range_ends(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every range of cells as start ≤ cell < end."""
    starts, ends = np.triu_indices(size + 1, 1)
    return starts, ends


@lru_cache(maxsize=128)
def _combinations(size: int) -> Combinations:
    return Combinations(range_strategy(size))


@lru_cache(maxsize=128)
def range_strategy(size: int) -> NDArray[np.int64]:
    """Whole weights whose rows sum to 0: a column for each cell, one combination for each row."""
    ends = np.arange(size)
    both = np.minimum(ends[:, None], ends[None, :]) + 1
    asked = both * (size - np.maximum(ends[:, None], ends[None, :])).astype(
        np.float64
    )  # ranges over both cells
    centre = np.eye(size) - 1 / size
    weights = np.full(size, 1 / size)
    best, found = np.inf, centre
    for _ in range(ROUNDS):
        precision = _precision(centre @ asked @ centre, weights)
        lengths = np.diag(precision)
        spread = float(np.sum(asked * np.linalg.pinv(precision, rcond=1e-9, hermitian=True)))
        if spread * lengths.max() < best:
            best, found = spread * lengths.max(), precision
        weights = weights * np.sqrt(lengths / lengths.max())
        weights /= weights.sum()
    return _whole(_power(found, 0.5))


def _precision(asked: Values, weights: Values) -> Values:
    """WᵀW on the vectors that sum to 0, least in tr(asked·(WᵀW)⁻¹) + Σ weights_a‖w_a‖²."""
    size = len(asked)
    plane = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))[0][:, 1:]
    price = plane.T @ (weights[:, None] * plane)
    root = _power(price, 0.5)
    inverse = np.linalg.inv(root)
    inner = inverse @ _power(root @ (plane.T @ asked @ plane) @ root, 0.5) @ inverse
    return plane @ inner @ plane.T


def _power(matrix: Values, exponent: float) -> Values:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0.0) ** exponent) @ vectors.T


def _whole(weights: Values) -> NDArray[np.int64]:
    """Weights as whole numbers up to `RESOLUTION`; what rounding adds to a row's sum goes to its worst entries."""
    scaled = weights * (RESOLUTION / np.abs(weights).max())
    found = np.rint(scaled).astype(np.int64)
    for row, exact in zip(found, scaled, strict=True):
        excess = int(row.sum())
        order = np.argsort((row - exact) * (-1 if excess > 0 else 1))[: abs(excess)]
        row[order] -= np.sign(excess)
    found.flags.writeable = False
    return found
