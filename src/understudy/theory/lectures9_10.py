"""Lectures 9-10: Chernoff bounds, SmallDB and its error, for finite classes and for classes of VC dimension d.

n = ||x||₁ rows, |X| = X values a row can have, |Q| = Q linear queries. Logarithms are natural. Errors are against
the sample, simultaneous over the class, except with probability β = `beta`. Neighbours differ by substitution of
one row, so that every score has sensitivity 1/n. What the lecture prints otherwise is in docs/errata.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, log, log1p, sqrt

from understudy.query.vc import sauer_shelah
from understudy.rational import Number
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    exp_of,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.lecture4 import claim1_size_min
from understudy.theory.lecture18 import em_error, em_error_log
from understudy.theory.logarithm import log_binomial

# Chernoff bounds --------------------------------------------------------------------------------------------


def chernoff_additive(n: Whole, alpha: Number) -> float:
    """e^{-2nα²}, at least Pr[S > μ + α] and Pr[S < μ - α] of a mean S of n independent values in [0, 1].

    [Lectures 9-10, Theorem 4]
    """
    return exp_of(-2 * whole(n, "n") * above_zero(alpha, "alpha") ** 2)


def chernoff_upper(n: Whole, mu: Number, alpha: Number) -> float:
    """e^{-nμα²/3}, at least Pr[S > (1+α)μ], for 0 < α ≤ 1.

    The lecture states no range, and for large α the bound is false. [Lectures 9-10, Theorem 4]
    """
    return exp_of(-_multiplicative(n, mu, alpha) / 3)


def chernoff_lower(n: Whole, mu: Number, alpha: Number) -> float:
    """e^{-nμα²/2}, at least Pr[S < (1-α)μ], for 0 < α ≤ 1. [Lectures 9-10, Theorem 4]"""
    return exp_of(-_multiplicative(n, mu, alpha) / 2)


def _multiplicative(n: Whole, mu: Number, alpha: Number) -> float:
    mean, margin = at_least_zero(mu, "mu"), above_zero(alpha, "alpha")
    require(mean <= 1, f"mu must be a mean of values in [0, 1], not {mu}")
    require(margin <= 1, f"the multiplicative bounds need 0 < alpha ≤ 1, not {alpha}")
    return whole(n, "n") * mean * margin**2


# How large a small database is ------------------------------------------------------------------------------


def smalldb_size(Q: Whole, alpha: Number) -> int:
    """m = ⌊ln(2|Q|)/(2α²)⌋ + 1 rows: some database of m rows is within α on all of Q, for every |Q| ≥ 1.

    The same count as Claim 1's of Lecture 4. [Lectures 9-10, Theorem 5]

    >>> [smalldb_size(Q, 0.1) for Q in (1, 2, 3, 10, 100)]
    [35, 70, 90, 150, 265]
    """
    return claim1_size_min(whole(Q, "Q"), alpha)


def smalldb_size_printed(Q: Whole, alpha: Number) -> float:
    """ln|Q|/α², the printed size: no integer, too small to exist for |Q| ≤ 2, larger than needed from |Q| = 3 on.

    [Lectures 9-10, Algorithm 1]
    """
    return log(whole(Q, "Q")) / above_zero(alpha, "alpha") ** 2


def smalldb_log_candidates(X: Whole, m: Whole) -> float:
    """ln C(m+|X|-1, m): SmallDB chooses among that many multisets of m rows (the lecture bounds it by m ln|X|)."""
    size = whole(m, "m")
    return log_binomial(size + whole(X, "X") - 1, size)


# How good it is ---------------------------------------------------------------------------------------------


def net_error(n: Whole, N: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln|N| + ln(1/β)): the Net mechanism, an exponential mechanism over an α-net N of databases."""
    return above_zero(alpha, "alpha") + em_error(_unit(n), eps, whole(N, "N"), beta)


def smalldb_exact(n: Whole, X: Whole, Q: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln C(m+|X|-1, m) + ln(1/β)) with m = `smalldb_size`: the error of SmallDB(x, Q, ε, α).

    Needs n public. [Lectures 9-10, Proposition 6]
    """
    return _error(n, X, smalldb_size(Q, alpha), eps, alpha, beta)


def smalldb_prop6_seed(n: Whole, X: Whole, Q: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln|X| ln|Q|/α² + ln(1/β)), as printed; for |Q| ≥ 3, where the printed size is large enough.

    [Lectures 9-10, Proposition 6]
    """
    _enough_queries(Q)
    printed = log(whole(X, "X")) * smalldb_size_printed(Q, alpha)
    return above_zero(alpha, "alpha") + em_error_log(_unit(n), eps, printed, beta)


def smalldb_thm7_seed(n: Whole, X: Whole, Q: Whole, eps: Number, beta: Number) -> float:
    """((16 ln|X| ln|Q| + 4 ln(1/β))/(εn))^{1/3}, as printed: the error when α is set to this very value.

    For |Q| ≥ 3, and only where the value is at most 1, because the proof uses α² ≤ 1.
    [Lectures 9-10, Theorem 7]
    """
    _enough_queries(Q)
    total = 16 * log(whole(X, "X")) * log(whole(Q, "Q")) + 4 * log_of_inverse(beta)
    cubed = total / (above_zero(eps, "eps") * whole(n, "n"))
    require(cubed <= 1, f"the theorem needs its right side to be at most 1, and it is {cubed ** (1 / 3):.3g}")
    return cubed ** (1 / 3)


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
    return SmallDBDesign(_error(n, X, size(alpha), eps, alpha, beta), alpha, size(alpha))


def _error(n: Whole, X: Whole, m: int, eps: Number, alpha: Number, beta: Number) -> float:
    return above_zero(alpha, "alpha") + em_error_log(_unit(n), eps, smalldb_log_candidates(X, m), beta)


def _unit(n: Whole) -> Fraction:
    return Fraction(1, whole(n, "n"))


def _enough_queries(Q: Whole) -> None:
    require(
        whole(Q, "Q") >= 3,
        f"the printed size ln|Q|/alpha² needs |Q| ≥ 3 for a good database to exist, not {Q}",
    )


# Classes of VC dimension d ----------------------------------------------------------------------------------


def sauer(X: Whole, d: Whole) -> int:
    """Φ_d(|X|) = Σ_{i≤d} C(|X|, i): a class of VC dimension d acts on |X| points in at most that many ways."""
    return sauer_shelah(whole(X, "X"), whole(d, "d", at_least=0))


def vc_size_sauer(X: Whole, d: Whole, alpha: Number) -> int:
    """m = ⌊ln(2Φ_d(|X|))/(2α²)⌋ + 1: `smalldb_size` of the class's traces, on which all its answers depend.

    |X| may be replaced by the number of distinct rows. [Lectures 9-10, Theorem 11]

    >>> [vc_size_sauer(1024, d, 0.1) for d in (1, 3, 10)]
    [382, 985, 2744]
    """
    return smalldb_size(sauer(X, d), alpha)


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


def vc_size(X: Whole, d: Whole, alpha: Number) -> int:
    """The smaller of the two sizes with explicit constants. [Lectures 9-10, Theorem 11]"""
    return min(vc_size_sauer(X, d, alpha), vc_size_chaining(d, alpha))


def talagrand_tail(d: Whole, m: Whole, t: Number, C: Number, K: Number) -> float:
    """C·e^d·e^{-Kmt²} for given constants, at least Pr[sup_f |E f(S₁) - (1/m)Σ_{i≤m} f(Sᵢ)| ≥ t].

    The lecture leaves C and K open and so does the literature; the sizes above avoid them. The printed statement
    averages over n instead of m. Refused where the bound exceeds 1 and says nothing. [Lectures 9-10, Theorem 12]
    """
    exponent = (
        log(above_zero(C, "C"))
        + whole(d, "d", at_least=0)
        - above_zero(K, "K") * whole(m, "m") * above_zero(t, "t") ** 2
    )
    require(exponent <= 0, "the bound is above 1; it needs m ≥ (d + ln C)/(K t²)")
    return exp_of(exponent)


def smalldb_vc(n: Whole, X: Whole, d: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln C(m+|X|-1, m) + ln(1/β)) with m = `vc_size`: SmallDB with its size replaced.

    The lecture's statement runs SmallDB(x, Q, ε, α/2), whose size is ln|Q|/α² and may be infinite.
    [Lectures 9-10, Theorem 11]
    """
    return _error(n, X, vc_size(X, d, alpha), eps, alpha, beta)


def smalldb_vc_best(n: Whole, X: Whole, d: Whole, eps: Number, beta: Number) -> SmallDBDesign:
    """`smalldb_vc` at its best α. [Lectures 9-10, Theorem 11]"""
    universe = whole(X, "X", at_least=2)
    traces, constant = sauer(universe, d), chaining_constant(d)
    return min(
        _best(n, universe, eps, beta, sqrt(log(2 * traces) / 2), partial(smalldb_size, traces)),
        _best(n, universe, eps, beta, constant, partial(vc_size_chaining, d)),
        key=lambda design: design.error,
    )
