"""Families of sets of cells of one attribute, and the strategy that measures them well: ranges, or all subsets.

A class of questions is a product of families: all rectangles, or all conjunctions on a few attributes. Its
strategy is the product of the families' own, so that variances multiply, and so does the price of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from understudy.interactive.conjunction import Cells
from understudy.interactive.design import MOST_RANGES, Design
from understudy.interactive.simulation import continuous, draws_for, extended_quantile, safe_quantile
from understudy.mechanism.strategy import MAX_WEIGHT

Values = NDArray[np.float64]

DRAWS = 1 << 12
MOST_DRAWS = 1 << 15
USUAL_WORK = 1 << 24
WORK = 1 << 30
"""Numbers that a simulation goes through, and may go through."""

MOST_MEMBERS = 1 << 11


@dataclass(frozen=True)
class Family:
    """All ranges of an ordered attribute's cells, or all subsets of an unordered one's; empty ones apart."""

    size: int
    ordered: bool
    laplace: bool = False

    @property
    def members(self) -> int:
        return self.size * (self.size + 1) // 2 if self.ordered else 2**self.size - 1

    def holds(self, cells: Cells) -> bool:
        return not self.ordered or int(np.abs(np.diff(np.r_[0, cells.astype(np.int8), 0])).sum()) == 2

    def matrix(self, resolution: int) -> NDArray[np.int64]:
        """What is measured: whole weights, the largest of them `resolution`."""
        if self.laplace or self.size == 1:
            return np.eye(self.size, dtype=np.int64)
        if self.ordered and 2 < self.size <= MOST_RANGES:
            whole = Design(self.size, ordered=True, centred=False).matrix.astype(np.float64)
        else:
            even = np.full((self.size, self.size), 1 / self.size)
            whole = np.eye(self.size) + (_tilt(self.size) - 1) * even
        return np.rint(whole * (resolution / np.abs(whole).max())).astype(np.int64)

    @cached_property
    def sets(self) -> Values:
        """Every member, as a row of 0s and 1s."""
        if self.members > MOST_MEMBERS:
            raise ValueError("too many members to list")
        if not self.ordered:
            codes = np.arange(1, 2**self.size)
            return (codes[:, None] >> np.arange(self.size) & 1).astype(np.float64)
        starts, ends = np.triu_indices(self.size + 1, 1)
        at = np.arange(self.size)
        return ((at >= starts[:, None]) & (at < ends[:, None])).astype(np.float64)

    @cached_property
    def largest(self) -> Values:
        """Members among which the extremes of any norm are found: by symmetry one subset of each size."""
        if self.ordered:
            return self.sets if self.members <= MOST_MEMBERS else np.tri(self.size)
        return np.tri(self.size)

    def extreme(self, noise: Values) -> Values:
        """The largest |sum| over the members, for noise on the cells along the last axis."""
        if not self.ordered:
            return np.maximum(np.maximum(noise, 0).sum(axis=-1), np.maximum(-noise, 0).sum(axis=-1))
        prefix = np.cumsum(noise, axis=-1)
        return np.maximum(prefix.max(axis=-1), 0) - np.minimum(prefix.min(axis=-1), 0)


@lru_cache(maxsize=64)
def _tilt(size: int) -> float:
    """The weight of the whole beside the differences, for the least (largest variance) × (price of a row)."""
    sizes = np.arange(1, size + 1)

    def cost(tilt: float) -> float:
        variance = sizes * (size - sizes) / size + sizes**2 / size / tilt**2
        return float(variance.max() * (1 - 1 / size + tilt**2 / size))

    return float(minimize_scalar(cost, bounds=(0.3, 8.0), method="bounded").x)  # type: ignore[union-attr]


@dataclass(frozen=True)
class Product:
    """A product of families, one for each axis of a table."""

    families: tuple[Family, ...]

    @cached_property
    def matrices(self) -> tuple[NDArray[np.int64], ...]:
        each = min(1024, int(MAX_WEIGHT ** (1 / len(self.families))))
        return tuple(family.matrix(each) for family in self.families)

    @cached_property
    def inverses(self) -> tuple[Values, ...]:
        """The cells from the combinations, along each axis."""
        return tuple(
            np.asarray(np.linalg.pinv(matrix.astype(np.float64)), np.float64) for matrix in self.matrices
        )

    @property
    def work(self) -> int:
        """Numbers that one draw of the noise takes."""
        others = sorted(family.members for family in self.families)[:-1]
        return prod(others) * max(family.size for family in self.families)

    @property
    def is_feasible(self) -> bool:
        others = sorted(family.members for family in self.families)[:-1]
        return self.work * DRAWS <= WORK and all(members <= MOST_MEMBERS for members in others)

    def cells(self, combinations: Values) -> Values:
        """The table from its noisy combinations."""
        table = combinations
        for axis, inverse in enumerate(self.inverses):
            table = np.moveaxis(np.tensordot(inverse, table, axes=(1, axis)), 0, axis)
        return table

    def norm(self, order: int) -> float:
        """The largest `order`-norm of a member's coefficients on the combinations."""
        parts = zip(self.families, self.inverses, strict=True)
        return prod(
            float(np.linalg.norm(family.largest @ inverse, ord=order, axis=1).max())
            for family, inverse in parts
        )

    def suprema(self, noise: Values) -> Values:
        """The largest |noise| over all members, for draws (along the first axis) of noise on the combinations."""
        last = max(range(len(self.families)), key=lambda i: self.families[i].members)
        for axis, (family, inverse) in enumerate(zip(self.families, self.inverses, strict=True)):
            through = inverse if axis == last else family.sets @ inverse
            noise = np.moveaxis(np.tensordot(noise, through, axes=(axis + 1, 1)), -1, axis + 1)
        found = self.families[last].extreme(np.moveaxis(noise, last + 1, -1))
        return found.reshape(len(found), -1).max(axis=1)


@lru_cache(maxsize=256)
def band(product: Product, beta: float) -> float | None:
    """All members are within so many deviations (or scales) of the noise on a combination, except with `beta`.

    On the lattice add `slack` steps (`simulation`). None where too many draws would be needed.
    """
    sample = _sample(product)
    if not product.families[0].laplace:
        return extended_quantile(sample, beta, product.norm(2))
    return safe_quantile(sample, beta) if draws_for(beta) <= sample.size else None


@lru_cache(maxsize=64)
def _sample(product: Product) -> Values:
    """Simulated suprema over all members."""
    laplace = product.families[0].laplace
    draws = min(max(USUAL_WORK // product.work, DRAWS), MOST_DRAWS)
    block = max(1, (1 << 22) // product.work)
    noise = continuous((draws, *(len(matrix) for matrix in product.matrices)), laplace=laplace)
    return np.concatenate([product.suprema(noise[at : at + block]) for at in range(0, draws, block)])


def slack(product: Product) -> float:
    """How far one step of noise in every combination can move a member."""
    return product.norm(1)


def product_of(sizes: Sequence[int], ordered: Sequence[bool], *, laplace: bool) -> Product:
    """The ranges of ordered attributes, the subsets of the others."""
    return Product(
        tuple(Family(size, is_ordered, laplace) for size, is_ordered in zip(sizes, ordered, strict=True))
    )
