"""Lecture 4: small databases, the MedianMechanism, Laplace noise and composition.

Widths are half-widths. n rows, k queries with values in [0, 1], |X| = X, failure probability β = `beta` of all
statements of one call together. What the lecture prints otherwise is in docs/errata.md.

The statements that the product relies on live in `understudy.theory.lecture4`; they are imported here, so that
this file offers every bound of the lecture. (ε, δ)-stability and post-processing are in
`understudy_textbook.stability`, composition in `understudy_textbook.composition`, the mechanisms in
`understudy.lectures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import ParameterError
from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, exact_above_zero, exp_of, whole
from understudy.theory.guess_and_check import gnc_width
from understudy.theory.lecture4 import (
    MedianParams,
    claim1_size_min,
    laplace_error,
    median_params,
    median_width,
)
from understudy.theory.logarithm import (
    floor_log2_binomial,
    floor_log2_power,
    floor_log_over,
)
from understudy_textbook.composition import basic

__all__ = [
    "MedianDesign",
    "MedianParams",
    "Resampling",
    "claim1_resample",
    "claim1_size",
    "claim1_size_min",
    "laplace_composition",
    "laplace_density",
    "laplace_error",
    "laplace_ratio",
    "laplace_tail",
    "median_params",
    "median_width",
    "median_width_opt",
]


# Small databases --------------------------------------------------------------------------------------------


def claim1_size(k: Whole, alpha: Number) -> int:
    """n' = ⌈ln(4k)/(2α²)⌉ rows drawn from S with replacement: all k queries are within α with probability ½.

    By Hoeffding and a union bound, 2k·exp(-2n'α²) ≤ ½. α is read as it is written (0.1 is one tenth), and the
    integer is exact for every k. [Lecture 4, Claim 1]

    >>> claim1_size(100, 0.1)
    300
    """
    return floor_log_over(4 * whole(k, "k"), 2 * exact_above_zero(alpha, "alpha") ** 2) + 1


@dataclass(frozen=True, slots=True)
class Resampling:
    """How often a random small database was good."""

    size: int
    trials: int
    successes: int

    @property
    def frequency(self) -> float:
        return self.successes / self.trials


def claim1_resample(
    values: ArrayLike,
    alpha: Number,
    *,
    trials: int,
    generator: np.random.Generator,
    size: Whole | None = None,
) -> Resampling:
    """The experiment in the proof of Claim 1: draw S' from S with replacement, and see if all queries agree.

    `values[i, j]` is qᵢ of row j of S; `size` is n', by default that of `claim1_size`, at which at least half of
    the trials succeed in the long run. A simulation for study: the generator is a parameter, not a source of
    privacy. [Lecture 4, Claim 1]
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape or not ((matrix >= 0) & (matrix <= 1)).all():
        raise ParameterError("values must be a matrix, queries by rows, of numbers from 0 to 1")
    k, n = matrix.shape
    margin = above_zero(alpha, "alpha")
    drawn = claim1_size(k, alpha) if size is None else whole(size, "size")
    runs = whole(trials, "trials")
    successes, step = 0, max(1, 2**22 // n)
    for start in range(0, runs, step):
        counts = generator.multinomial(drawn, np.full(n, 1 / n), size=min(step, runs - start))
        gaps = np.abs(counts @ matrix.T / drawn - matrix.mean(axis=1)).max(axis=1)
        # Sums of floats: a gap of exactly α must not fail for its last bit.
        successes += int((gaps <= margin * (1 + 1e-12) + 1e-12).sum())
    return Resampling(drawn, runs, successes)


# The MedianMechanism ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MedianDesign:
    """A width, and the parameters that reach it."""

    width: float
    eta: float
    n_prime: int
    m: int


def median_width_opt(n: Whole, k: Whole, X: Whole, beta: Number, *, multiset: bool = True) -> MedianDesign:
    """The least width found over η: Claim 1's least size at η/4, and candidates counted as multisets.

    The halving argument holds for any prior weights. Uniform weights on the C(n'+|X|-1, n') multisets allow only
    ⌊log₂ C(n'+|X|-1, n')⌋ rejections; `multiset=False` counts the lecture's |X|^n' sequences. Every η gives a
    valid width, so that the search can miss the best one but cannot promise too much. [Lecture 4, Theorem 2]
    """
    rows, queries, universe = whole(n, "n"), whole(k, "k"), whole(X, "X")
    failure = float(probability(beta))

    def better(eta: float, known: MedianDesign) -> MedianDesign:
        size = claim1_size_min(queries, Fraction(eta) / 4)
        count = (
            floor_log2_binomial(size + universe - 1, size) if multiset else floor_log2_power(universe, size)
        )
        # The tree has at least (2/η)^m queries; where that is too many already, it need not be counted.
        least = eta + sqrt(min(count, queries - 1) * log(2 / eta) / (2 * rows))
        if known.width <= least:
            return known
        found = MedianDesign(gnc_width(rows, queries, count, eta, failure), eta, size, count)
        return min(known, found, key=lambda design: design.width)

    printed = min(median_params(rows, queries, universe).eta, 1.0)
    best = better(printed, MedianDesign(inf, printed, 0, 0))
    low, high, steps = min(printed / 32, 0.01), min(32 * printed, 1.0), 48
    for _ in range(4):
        ratio = (high / low) ** (1 / steps)
        for i in range(steps + 1):
            best = better(min(high / ratio**i, 1.0), best)
        low, high, steps = best.eta / ratio, min(best.eta * ratio, 1.0), 16
    return best


# Laplace noise and composition ------------------------------------------------------------------------------


def laplace_density(x: float, mu: float, b: float) -> float:
    """exp(-|x-μ|/b)/(2b), the density of Lap(μ, b) for b > 0. [Lecture 4, Definition 1]"""
    scale = above_zero(b, "b")
    return exp(-abs(x - mu) / scale) / (2 * scale)


def laplace_ratio(shift: float, b: float) -> tuple[float, float]:
    """(e^{-λ/b}, e^{λ/b}): between these lie h_{μ'}(y)/h_μ(y), for every y, if |μ-μ'| ≤ λ = `shift`.

    The lecture says b ∈ ℝ; the statement needs b > 0. [Lecture 4, Claim 3]
    """
    exponent = above_zero(shift, "shift") / above_zero(b, "b")
    if exponent > 700:
        raise ParameterError(
            f"shift/b must be at most 700 for its exponential to be a number, not {exponent:g}"
        )
    return exp(-exponent), exp(exponent)


def laplace_tail(eps: Number, n: Whole, D: Number) -> float:
    """Pr[|Y| > D] = exp(-εnD) for Y ~ Lap(1/(εn)), both tails together.

    [Lecture 4, Claim 6]
    """
    return exp_of(-above_zero(eps, "eps") * whole(n, "n") * above_zero(D, "D"))


def laplace_composition(eps: Number, k: Whole) -> tuple[Fraction, Fraction]:
    """(kε, 0): what k Laplace answers of ε each cost together, exactly.

    The same whether the queries are fixed [Lecture 4, Theorem 7] or each is chosen after the answers before
    [Lecture 4, Theorem 8]. The lecture proves both for δ = 0 on countable ranges; they hold in general.
    """
    price, unspent = basic([(exact_above_zero(eps, "eps"), 0)])
    return whole(k, "k") * price, unspent
