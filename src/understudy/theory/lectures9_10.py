"""Lectures 9-10, as far as the product relies on them: SmallDB and its error, for finite classes and for classes
of VC dimension d.

n = ||x||₁ rows, |X| = X values a row can have, |Q| = Q linear queries. Logarithms are natural. Errors are against
the sample, simultaneous over the class, except with probability β = `beta`. Neighbours differ by substitution of
one row, so that every score has sensitivity 1/n. What the lecture prints otherwise is in docs/errata.md;
the other statements are in `understudy_textbook.lectures9_10`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, log, log1p, sqrt

from understudy.rational import Number
from understudy.theory.arguments import (
    Whole,
    above_zero,
    require,
    whole,
)
from understudy.theory.lecture4 import claim1_size_min
from understudy.theory.lecture18 import em_error_log
from understudy.theory.logarithm import log_binomial

MAX_TERMS = 1 << 16
"""Largest number of binomial coefficients that `sauer_shelah` adds up."""


# How large a small database is ------------------------------------------------------------------------------


def smalldb_size(Q: Whole, alpha: Number) -> int:
    """m = ⌊ln(2|Q|)/(2α²)⌋ + 1 rows: some database of m rows is within α on all of Q, for every |Q| ≥ 1.

    The same count as Claim 1's of Lecture 4. [Lectures 9-10, Theorem 5]

    >>> [smalldb_size(Q, 0.1) for Q in (1, 2, 3, 10, 100)]
    [35, 70, 90, 150, 265]
    """
    return claim1_size_min(whole(Q, "Q"), alpha)


def smalldb_log_candidates(X: Whole, m: Whole) -> float:
    """ln C(m+|X|-1, m): SmallDB chooses among that many multisets of m rows (the lecture bounds it by m ln|X|)."""
    size = whole(m, "m")
    return log_binomial(size + whole(X, "X") - 1, size)


# How good it is ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SmallDBDesign:
    """An error, and the α and size m of SmallDB that reach it."""

    error: float
    alpha: float
    m: int


def smalldb_best(n: Whole, X: Whole, Q: Whole, eps: Number, beta: Number) -> SmallDBDesign:
    """The least error of SmallDB over all sizes m.

    At size m the best α is sqrt(ln(2|Q|)/(2m)). The error first falls and then rises with m: m^{3/2} times its
    slope increases, because ln C(m+|X|-1, m) = Σᵢ ln(1+m/i) and each m/(i+m) increases. So bisection on the sign
    of one step finds the minimum, also at |X| = 10^100. For |X| far below m it is of order |X|ln(εn)/(εn), and not
    n^{-1/3}.
    [Lectures 9-10, Theorem 7]
    """
    universe, queries = whole(X, "X", at_least=2), whole(Q, "Q")
    return _best(n, universe, eps, beta, sqrt(log(2 * queries) / 2), partial(smalldb_size, queries))


def _best(
    n: Whole, X: int, eps: Number, beta: Number, slope: float, size: Callable[[float], int]
) -> SmallDBDesign:
    """The best m, if `size(alpha)` rows reach α and size(slope/sqrt(m)) is m up to rounding."""
    price = 2 / (above_zero(eps, "eps") * whole(n, "n"))

    def rises(m: int) -> bool:
        """Whether m + 1 rows are no better than m; C(m+|X|, m+1) is (m+|X|)/(m+1) times C(m+|X|-1, m)."""
        dearer = log1p((X - 1) / (m + 1)) if X.bit_length() < 1000 else log(m + X) - log(m + 1)
        return price * dearer >= slope / (sqrt(m) * sqrt(m + 1) * (sqrt(m) + sqrt(m + 1)))

    low, high = 0, 1
    while not rises(high):
        low, high = high, 2 * high
        require(high.bit_length() < 900, "the best size is beyond every database; n·eps must be smaller")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    alpha, last_bits = slope / sqrt(high), 2.0**-53
    while size(alpha) > high:  # α is rounded up until it can be handed on as it is
        alpha, last_bits = alpha * (1 + last_bits), 2 * last_bits
    return SmallDBDesign(smalldb_error(n, X, size(alpha), eps, alpha, beta), alpha, size(alpha))


def smalldb_error(n: Whole, X: Whole, m: int, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln C(m+|X|-1, m) + ln(1/β)): the error of SmallDB over databases of m rows, one of which is
    within α on the whole class. [Lectures 9-10, Proposition 6]
    """
    return above_zero(alpha, "alpha") + em_error_log(
        Fraction(1, whole(n, "n")), eps, smalldb_log_candidates(X, m), beta
    )


# Classes of VC dimension d ----------------------------------------------------------------------------------


def sauer(X: Whole, d: Whole) -> int:
    """Φ_d(|X|) = Σ_{i≤d} C(|X|, i): a class of VC dimension d acts on |X| points in at most that many ways."""
    return sauer_shelah(whole(X, "X"), whole(d, "d", at_least=0))


def sauer_shelah(points: int, dimension: int) -> int:
    """Φ_d(m) = Σ_{i≤d} C(m, i): a class of VC dimension d has at most that many traces on m points.

    An exact integer, for a universe of any size. At most `MAX_TERMS` binomials are summed; more are refused.
    """
    m = whole(points, "points", at_least=0)
    d = min(whole(dimension, "dimension", at_least=0), m)
    require(d <= MAX_TERMS, f"the sum has {d + 1:,} terms; at most {MAX_TERMS:,} are added")
    if d == m:
        return 1 << m
    total = term = 1
    for i in range(d):
        term = term * (m - i) // (i + 1)
        total += term
    return total


def chaining_constant(d: Whole, *, ratio: Number = Fraction(1, 5)) -> float:
    """c_d with E sup_f |f(x) - f(y)| ≤ c_d/sqrt(m) for m rows y drawn from x, whatever |X|.

    Symmetrisation costs 2. Then chain: at distance rʲ the class has a net of at most e(d+1)(2e/r²ʲ)^d traces, its
    packing number by [Haussler95]; a step from level j to j-1 is no longer than rʲ⁻¹; and the largest of N signed
    sums of length s is sqrt(2 ln(2N))·s on average. So c_d = 2 Σⱼ rʲ⁻¹ sqrt(2 ln(2e(d+1)(2e/r²ʲ)^d)), which holds
    for every `ratio` r in (0, 1); 1/5 is within 6% of the best for d ≥ 1. [Lectures 9-10, Theorem 12]

    >>> [round(chaining_constant(d), 2) for d in (1, 3, 10)]
    [10.01, 15.79, 27.44]
    """
    dimension, r = whole(d, "d", at_least=0), above_zero(ratio, "ratio")
    require(r < 1, f"ratio must be below 1, not {ratio}")
    base, total, level = log(2) + 1 + log(dimension + 1) + dimension * (log(2) + 1), 0.0, 0
    while r**level > 1e-18:
        total += r**level * sqrt(2 * (base - 2 * dimension * (level + 1) * log(r)))
        level += 1
    return 2 * total


def vc_size_chaining(d: Whole, alpha: Number) -> int:
    """m = ⌈(c_d/α)²⌉: some y of m rows is within α on the whole class, because the average one is.

    Independent of |X|; smaller than `vc_size_sauer` only if ln|X| is above about 150. [Lectures 9-10, Theorem 11]
    """
    ratio = chaining_constant(d) / above_zero(alpha, "alpha")
    require(ratio < 1e150, f"alpha = {alpha} asks for more rows than a float can count")
    return ceil(ratio**2 * (1 + 1e-12))  # the allowance covers the rounding of c_d


def smalldb_vc_best(n: Whole, X: Whole, d: Whole, eps: Number, beta: Number) -> SmallDBDesign:
    """`smalldb_vc` at its best α. [Lectures 9-10, Theorem 11]"""
    universe = whole(X, "X", at_least=2)
    traces, constant = sauer(universe, d), chaining_constant(d)
    return min(
        _best(n, universe, eps, beta, sqrt(log(2 * traces) / 2), partial(smalldb_size, traces)),
        _best(n, universe, eps, beta, constant, partial(vc_size_chaining, d)),
        key=lambda design: design.error,
    )
