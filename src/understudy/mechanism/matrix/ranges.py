"""Which combinations of one ordered attribute's counts answer all its ranges, or all its prefixes, best.

A strategy W, one row for each combination and one column w_a for each cell a, gives the histogram with covariance
S = (WᵀW)⁻¹ for noise of variance 1, and a person pays for the columns that the person's rows touch. Two problems
are solved here, each by weighing what is worst more and more:

`minimax_ranges`, `minimax_prefixes`
    Least (largest variance of a question) × (price of the worst move). For given weights of the questions and of
    the moves, with Q and D the weighted sums of their squares, the best S is the geometric mean: S·Q·S = D.
`least_sum_ranges`
    Least (sum of all ranges' variances) × max‖w_a‖², among combinations whose weights sum to 0, so that what is
    measured stays apart from the total.

Any S gives a valid strategy, at the price that its mechanism derives from W itself; a better one is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Whole = NDArray[np.int64]

MINIMAX_ROUNDS = 30
MINIMAX_RESOLUTION = 1 << 10
"""Weights of a minimax strategy are whole multiples of its largest over this."""

MINIMAX_CELLS = 256
"""Cells of an attribute up to which a minimax strategy is looked for; the work is cubic."""

LEAST_SUM_ROUNDS = 60
"""Of weighing cells; the price settles within a thousandth."""

LEAST_SUM_RESOLUTION = 1 << 7
"""Largest weight of a least-sum strategy: a product of three of them stays within a strategy's weights."""

LEAST_SUM_CELLS = 512
"""Cells of an attribute up to which a least-sum strategy is looked for; the work is cubic."""

LIFT, LEAST = 1e-10, 1e-15
"""What is added to the diagonals of weighted sums, and the least eigenvalue, where weights may vanish."""


def range_ends(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every range of cells as start ≤ cell < end."""
    starts, ends = np.triu_indices(size + 1, 1)
    return starts, ends


def zero_sum_basis(size: int) -> Values:
    """An orthonormal basis, in columns, of the vectors that sum to 0."""
    vectors = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, : size - 1]]))[0]
    return vectors[:, 1:]


# ---- the least largest variance


@lru_cache(maxsize=256)
def minimax_ranges(size: int, *, centred: bool) -> Whole:
    """Whole weights for all ranges of `size` cells.

    `centred` says that the number of rows is public: differences between cells are measured, and a person moves
    from one cell to another. Otherwise a person is added to a cell, or removed.
    """
    basis = zero_sum_basis(size) if centred else np.eye(size)
    prefixes = np.vstack([np.zeros(size), np.tril(np.ones((size, size)))]) @ basis
    starts, ends = range_ends(size)

    def asked(weights: Values) -> Values:
        return prefixes.T @ _laplacian(weights, starts, ends, size + 1) @ prefixes

    def variances(covariance: Values) -> Values:
        spread = prefixes @ covariance @ prefixes.T
        return np.diag(spread)[starts] + np.diag(spread)[ends] - 2 * spread[starts, ends]

    def moved(weights: Values) -> Values:
        if not centred:
            return np.diag(weights.sum(axis=1))
        both = weights + weights.T
        return basis.T @ (np.diag(both.sum(axis=1)) - both) @ basis

    def prices(precision: Values) -> Values:
        precision = basis @ precision @ basis.T
        own = np.diag(precision)
        if not centred:
            return np.broadcast_to(own[:, None], precision.shape)
        return own[:, None] + own[None, :] - 2 * precision

    uniform = np.ones(starts.size) / starts.size, np.ones((size, size)) / size**2
    covariance = _minimax(*uniform, asked=asked, variances=variances, moved=moved, prices=prices)
    values, vectors = np.linalg.eigh(covariance)
    return _whole(basis @ (vectors / np.sqrt(values)) @ vectors.T @ basis.T)


@lru_cache(maxsize=64)
def minimax_prefixes(size: int) -> Whole:
    """Whole weights for all prefixes of `size` cells, where a person is added to a cell or removed."""
    prefixes = np.tril(np.ones((size, size)))
    covariance = _minimax(
        np.full(size, 1 / size),
        np.full(size, 1 / size),
        asked=lambda weights: (prefixes.T * weights) @ prefixes,
        variances=lambda covariance: ((prefixes @ covariance) * prefixes).sum(axis=1),
        moved=np.diag,
        prices=np.diag,
    )
    return _whole(_power(_inverse(covariance), 0.5, least=LEAST))


def _minimax(
    questions: Values,
    moves: Values,
    *,
    asked: Callable[[Values], Values],
    variances: Callable[[Values], Values],
    moved: Callable[[Values], Values],
    prices: Callable[[Values], Values],
) -> Values:
    """The best covariance found: least largest variance times largest price.

    `questions` and `moves` are first weights, which sum to 1. `asked` and `moved` give the weighted sums of their
    squares; `variances` gives those of all questions under a covariance, `prices` those of all moves under a
    precision.
    """
    best, found = np.inf, None
    for _ in range(MINIMAX_ROUNDS):
        covariance = _geometric_mean(asked(questions), moved(moves), lift=LIFT, least=LEAST)
        variance, price = variances(covariance), prices(_inverse(covariance))
        if found is None or variance.max() * price.max() < best:
            best, found = variance.max() * price.max(), covariance
        questions = questions * np.sqrt(np.maximum(variance, 0) / variance.max())
        moves = moves * np.sqrt(np.maximum(price, 0) / price.max())
        questions, moves = questions / questions.sum(), moves / moves.sum()
    assert found is not None
    return found


def _laplacian(weights: Values, starts: NDArray[np.intp], ends: NDArray[np.intp], size: int) -> Values:
    """Σ w·(e_i - e_j)(e_i - e_j)ᵀ."""
    found = np.zeros((size, size))
    found[starts, ends] = -weights
    found += found.T
    return found - np.diag(found.sum(axis=1))


def _whole(root: Values) -> Whole:
    found = np.rint(root * (MINIMAX_RESOLUTION / np.abs(root).max())).astype(np.int64)
    found.flags.writeable = False
    return found


# ---- the least sum of variances


@lru_cache(maxsize=128)
def least_sum_ranges(size: int) -> Whole:
    """Whole weights for all ranges of `size` cells; every row sums to 0."""
    ends = np.arange(size)
    both = np.minimum(ends[:, None], ends[None, :]) + 1
    shared = size - np.maximum(ends[:, None], ends[None, :])
    asked = both * shared.astype(np.float64)  # ranges over both cells
    plane, centre = zero_sum_basis(size), np.eye(size) - 1 / size
    inner = plane.T @ (centre @ asked @ centre) @ plane
    weights = np.full(size, 1 / size)
    best, found = np.inf, centre
    for _ in range(LEAST_SUM_ROUNDS):
        price = plane.T @ (weights[:, None] * plane)
        precision = plane @ _geometric_mean(price, inner) @ plane.T
        lengths = np.diag(precision)
        spread = float(np.sum(asked * np.linalg.pinv(precision, rcond=1e-9, hermitian=True)))
        if spread * lengths.max() < best:
            best, found = spread * lengths.max(), precision
        weights = weights * np.sqrt(lengths / lengths.max())
        weights /= weights.sum()
    return _whole_zero_sums(_power(found, 0.5))


def _whole_zero_sums(weights: Values) -> Whole:
    """Whole numbers up to the resolution; what rounding adds to a row's sum goes to its worst entries."""
    scaled = weights * (LEAST_SUM_RESOLUTION / np.abs(weights).max())
    found = np.rint(scaled).astype(np.int64)
    for row, exact in zip(found, scaled, strict=True):
        excess = int(row.sum())
        order = np.argsort((row - exact) * (-1 if excess > 0 else 1))[: abs(excess)]
        row[order] -= np.sign(excess)
    found.flags.writeable = False
    return found


# ---- matrices


def _geometric_mean(a: Values, b: Values, *, lift: float = 0.0, least: float = 0.0) -> Values:
    """S with S·a·S = b, for symmetric matrices: it minimises tr(a·S) + tr(b·S⁻¹)."""
    ridge = lift * np.eye(len(a))
    root = _power(a + ridge, 0.5, least=least)
    inverse = np.linalg.inv(root)
    return inverse @ _power(root @ (b + ridge) @ root, 0.5, least=least) @ inverse


def _power(matrix: Values, exponent: float, *, least: float = 0.0) -> Values:
    """The power of a symmetric matrix, whose eigenvalues are raised to `least` first."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, least) ** exponent) @ vectors.T


def _inverse(matrix: Values) -> Values:
    return np.asarray(np.linalg.inv(matrix), np.float64)
