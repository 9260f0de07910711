"""Lecture 4, as far as the product relies on it: small databases, the MedianMechanism, Laplace noise.

Widths are half-widths. n rows, k queries with values in [0, 1], |X| = X, failure probability β = `beta` of all
statements of one call together. What the lecture prints otherwise is in docs/errata.md;
its other statements are in `understudy_textbook.lecture4`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from math import log

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, exact_above_zero, log_of_inverse, whole
from understudy.theory.guess_and_check import gnc_width
from understudy.theory.logarithm import (
    floor_irrational,
    floor_log2_power,
    floor_log_over,
)

# Small databases --------------------------------------------------------------------------------------------


def claim1_size_min(k: Whole, alpha: Number) -> int:
    """n' = ⌊ln(2k)/(2α²)⌋ + 1, the least n' with 2k·exp(-2n'α²) < 1: enough for a small database to exist.

    Since the inequality is strict, the same n' also serves some α' < α. [Lecture 4, Claim 1]

    >>> claim1_size_min(100, 0.1)
    265
    """
    return floor_log_over(2 * whole(k, "k"), 2 * exact_above_zero(alpha, "alpha") ** 2) + 1


# The MedianMechanism ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MedianParams:
    """η, the size n' of the small databases (before and after rounding up), and m rejections at most."""

    eta: float
    n_prime: int
    n_prime_real: float
    m: int


def median_params(n: Whole, k: Whole, X: Whole) -> MedianParams:
    """η = (ln(4k)/(2n))^¼, n' = ⌈8 ln(4k)/η²⌉ = ⌈8·sqrt(2n ln(4k))⌉, m = ⌊n' log₂|X|⌋, the lecture's choice.

    n' is Claim 1's size at accuracy η/4. Every rejection halves the candidates X^n' and one of them is never
    removed, so that there are at most log₂|X|^n' rejections. [Lecture 4, Theorem 2]
    """
    rows, queries, universe = whole(n, "n"), whole(k, "k"), whole(X, "X")

    def size(context: Context) -> Decimal:
        return context.sqrt(context.multiply(Decimal(128 * rows), context.ln(Decimal(4 * queries))))

    n_prime = floor_irrational(size) + 1
    return MedianParams(
        eta=float(log(4 * queries) / (2 * rows)) ** 0.25,
        n_prime=n_prime,
        n_prime_real=float(size(Context(prec=40))),
        m=floor_log2_power(universe, n_prime),
    )


def median_width(n: Whole, k: Whole, X: Whole, beta: Number) -> float:
    """How far an answer of the MedianMechanism is from the population, with the lecture's parameters.

    η + sqrt((ln(2/β) + ln N)/(2n)), where N counts the queries that can be asked at all with m rejections and
    rejected answers on a grid of ⌈2/η⌉ points: the explicit form of the lecture's O(). 1/2 or more says nothing.
    [Lecture 4, Theorem 2]
    """
    chosen = median_params(n, k, X)
    return gnc_width(whole(n, "n"), whole(k, "k"), chosen.m, chosen.eta, float(probability(beta)))


# Laplace noise and composition ------------------------------------------------------------------------------


def laplace_error(eps: Number, n: Whole, k: Whole, beta: Number) -> float:
    """(k/(εn))·ln(k/β): the largest of k Laplace errors when all k queries, adaptively chosen, together cost ε.

    Each answer gets ε/k, hence Lap(k/(εn)) [Lecture 4, Theorem 5]; the sum is ε [Lecture 4, Theorem 8]; Claim 6
    and a union bound give the error. It is against the sample: the population is another statement.
    [Lecture 4, Claim 6]
    """
    queries = whole(k, "k")
    scale = queries / (above_zero(eps, "eps") * whole(n, "n"))
    return scale * (log(queries) + log_of_inverse(beta))
