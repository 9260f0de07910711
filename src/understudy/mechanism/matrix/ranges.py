"""What is measured of one attribute, so that all sets of its cells, or all ranges, come out well at once.

For sets of cells of an unordered attribute the plain histogram is as good as anything. Ranges of an ordered one
are better served by combinations: the covariance S of the estimated histogram that minimises (largest variance
of a range) × (price for the worst pair of cells) is found by weighing ranges and pairs against each other, with
S the geometric mean of the two weighted sums of squares. Any S gives a valid strategy; a better one is cheaper.
Where only prefixes are asked for, S is found in the same way from those, and is cheaper again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

ROUNDS = 30
RESOLUTION = 1 << 10
"""Weights of a strategy are whole multiples of its largest over this."""

MOST_RANGES = 256
"""Ordered attributes with more cells are measured as plain histograms."""


@dataclass(frozen=True)
class Design:
    """How an attribute of `size` cells is measured.

    `centred` tells that the number of rows is known, so that only differences between cells matter.
    """

    size: int
    ordered: bool
    centred: bool
    laplace: bool = False

    @property
    def is_plain(self) -> bool:
        """The histogram itself is measured."""
        return not self.ordered or self.laplace or not 2 < self.size <= MOST_RANGES

    @cached_property
    def matrix(self) -> NDArray[np.int64]:
        """The combinations that are measured."""
        if self.is_plain:
            return np.eye(self.size, dtype=np.int64)
        return _range_strategy(self.size, self.centred)

    @cached_property
    def mixing(self) -> Values:
        """The histogram from the combinations, by least squares; where its sum is known, its differences."""
        weights = self.matrix.astype(np.float64)
        if not self.centred:
            return np.asarray(np.linalg.pinv(weights), np.float64)
        basis = _centred_basis(self.size)
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


@lru_cache(maxsize=256)
def _range_strategy(size: int, centred: bool) -> NDArray[np.int64]:  # noqa: FBT001 (cached)
    """Whole weights whose noise, unmixed, has the covariance found by `_range_covariance`."""
    basis, covariance = _range_covariance(size, centred)
    values, vectors = np.linalg.eigh(covariance)
    root = basis @ (vectors / np.sqrt(values)) @ vectors.T @ basis.T
    found = np.rint(root * (RESOLUTION / np.abs(root).max())).astype(np.int64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def prefix_strategy(size: int) -> NDArray[np.int64]:
    """Whole weights that measure all prefixes of `size` cells well, at the least price for the worst cell."""
    prefixes = np.tril(np.ones((size, size)))
    asked, seen = np.full(size, 1 / size), np.full(size, 1 / size)
    best, found = np.inf, np.eye(size)
    for _ in range(ROUNDS):
        covariance = _geometric((prefixes.T * asked) @ prefixes, np.diag(seen))
        precision = np.linalg.inv(covariance)
        variance, price = ((prefixes @ covariance) * prefixes).sum(axis=1), np.diag(precision)
        if variance.max() * price.max() < best:
            best, found = variance.max() * price.max(), np.asarray(precision, np.float64)
        asked, seen = asked * np.sqrt(variance), seen * np.sqrt(price)
        asked, seen = asked / asked.sum(), seen / seen.sum()
    root = _power(found, 0.5)
    whole = np.rint(root * (RESOLUTION / np.abs(root).max())).astype(np.int64)
    whole.flags.writeable = False
    return whole


def _range_covariance(size: int, centred: bool) -> tuple[Values, Values]:  # noqa: FBT001
    """A basis of what matters, and the best covariance found in it."""
    basis = _centred_basis(size) if centred else np.eye(size)
    prefix = np.vstack([np.zeros(size), np.tril(np.ones((size, size)))]) @ basis
    starts, ends = np.triu_indices(size + 1, 1)
    ranges = np.ones(starts.size) / starts.size
    pairs = np.ones((size, size)) / size**2
    best, found = np.inf, np.eye(basis.shape[1])
    for _ in range(ROUNDS):
        asked = prefix.T @ _laplacian(ranges, starts, ends, size + 1) @ prefix
        seen = basis.T @ _seen(pairs, centred) @ basis
        covariance = _geometric(asked, seen)
        spread = prefix @ covariance @ prefix.T
        variance = np.diag(spread)[starts] + np.diag(spread)[ends] - 2 * spread[starts, ends]
        price = _prices(basis @ np.linalg.inv(covariance) @ basis.T, centred)
        if variance.max() * price.max() < best:
            best, found = variance.max() * price.max(), covariance
        ranges = ranges * np.sqrt(np.maximum(variance, 0) / variance.max())
        pairs = pairs * np.sqrt(np.maximum(price, 0) / price.max())
        ranges, pairs = ranges / ranges.sum(), pairs / pairs.sum()
    return basis, found


def _centred_basis(size: int) -> Values:
    """An orthonormal basis of the vectors that sum to 0."""
    vectors = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))[0]
    return vectors[:, 1:]


def _laplacian(weights: Values, starts: NDArray[np.intp], ends: NDArray[np.intp], size: int) -> Values:
    """Σ w·(e_i - e_j)(e_i - e_j)ᵀ."""
    found = np.zeros((size, size))
    found[starts, ends] = -weights
    found += found.T
    return found - np.diag(found.sum(axis=1))


def _seen(pairs: Values, centred: bool) -> Values:  # noqa: FBT001
    """What a person's move shows: pairs of cells where the total is known, else cells."""
    if not centred:
        return np.diag(pairs.sum(axis=1))
    both = pairs + pairs.T
    return np.diag(both.sum(axis=1)) - both


def _prices(precision: Values, centred: bool) -> Values:  # noqa: FBT001
    own = np.diag(precision)
    if not centred:
        return np.broadcast_to(own[:, None], precision.shape)
    return own[:, None] + own[None, :] - 2 * precision


def _geometric(asked: Values, seen: Values) -> Values:
    """S with S·asked·S = seen: it minimises tr(asked·S) + tr(seen·S⁻¹)."""
    ridge = 1e-10 * np.eye(len(asked))
    root = _power(asked + ridge, 0.5)
    inverse = np.linalg.inv(root)
    return inverse @ _power(root @ (seen + ridge) @ root, 0.5) @ inverse


def _power(matrix: Values, exponent: float) -> Values:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 1e-15) ** exponent) @ vectors.T
