"""Lectures 9-10: Chernoff bounds, SmallDB and its error, for finite classes and for classes of VC dimension d.

n = ||x||₁ rows, |X| = X values a row can have, |Q| = Q linear queries. Logarithms are natural. Errors are against
the sample, simultaneous over the class, except with probability β = `beta`. Neighbours differ by substitution of
one row, so that every score has sensitivity 1/n. What the lecture prints otherwise is in docs/errata.md.

The statements that the product relies on live in `understudy.theory.lectures9_10`; they are imported here, so
that this file offers every bound of the lectures. Shattering and VC dimension are in `understudy_textbook.vc`
and `understudy_textbook.half_space`, the mechanisms in `understudy.lectures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log

import numpy as np

from understudy.errors import QueryError
from understudy.query.linear import LinearQuery
from understudy.query.projection import Projection
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
from understudy.theory.lecture18 import em_error, em_error_log
from understudy.theory.lectures9_10 import (
    MAX_TERMS,
    SmallDBDesign,
    chaining_constant,
    sauer,
    sauer_shelah,
    smalldb_best,
    smalldb_error,
    smalldb_log_candidates,
    smalldb_size,
    smalldb_vc_best,
    vc_size_chaining,
)

__all__ = [
    "MAX_TERMS",
    "SmallDBDesign",
    "chaining_constant",
    "chernoff_additive",
    "chernoff_lower",
    "chernoff_upper",
    "net_error",
    "query_release_error",
    "sauer",
    "sauer_shelah",
    "smalldb_best",
    "smalldb_error",
    "smalldb_exact",
    "smalldb_log_candidates",
    "smalldb_prop6_seed",
    "smalldb_size",
    "smalldb_size_printed",
    "smalldb_thm7_seed",
    "smalldb_vc",
    "smalldb_vc_best",
    "talagrand_tail",
    "vc_size",
    "vc_size_chaining",
    "vc_size_sauer",
]


# What is asked ---------------------------------------------------------------------------------------------


def query_release_error(answers: Sequence[float], queries: Sequence[LinearQuery], table: Projection) -> float:
    """max_i |a_i - f_i(x)|: what the query release problem asks to be small.

    [Lectures 9-10, Definition 1]
    """
    if len(answers) != len(queries):
        raise QueryError(f"{len(queries)} queries need {len(queries)} answers, not {len(answers)}")
    truths = np.array([query.answer(table) for query in queries])
    return float(np.abs(np.asarray(answers, dtype=float) - truths).max(initial=0.0))


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


def smalldb_size_printed(Q: Whole, alpha: Number) -> float:
    """ln|Q|/α², the printed size: no integer, too small to exist for |Q| ≤ 2, larger than needed from |Q| = 3 on.

    [Lectures 9-10, Algorithm 1]
    """
    return log(whole(Q, "Q")) / above_zero(alpha, "alpha") ** 2


# How good it is ---------------------------------------------------------------------------------------------


def net_error(n: Whole, N: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln|N| + ln(1/β)): the Net mechanism, an exponential mechanism over an α-net N of databases."""
    return above_zero(alpha, "alpha") + em_error(Fraction(1, whole(n, "n")), eps, whole(N, "N"), beta)


def smalldb_exact(n: Whole, X: Whole, Q: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln C(m+|X|-1, m) + ln(1/β)) with m = `smalldb_size`: the error of SmallDB(x, Q, ε, α).

    Needs n public. [Lectures 9-10, Proposition 6]
    """
    return smalldb_error(n, X, smalldb_size(Q, alpha), eps, alpha, beta)


def smalldb_prop6_seed(n: Whole, X: Whole, Q: Whole, eps: Number, alpha: Number, beta: Number) -> float:
    """α + (2/(εn))(ln|X| ln|Q|/α² + ln(1/β)), as printed; for |Q| ≥ 3, where the printed size is large enough.

    [Lectures 9-10, Proposition 6]
    """
    _enough_queries(Q)
    printed = log(whole(X, "X")) * smalldb_size_printed(Q, alpha)
    return above_zero(alpha, "alpha") + em_error_log(Fraction(1, whole(n, "n")), eps, printed, beta)


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


def _enough_queries(Q: Whole) -> None:
    require(
        whole(Q, "Q") >= 3,
        f"the printed size ln|Q|/alpha² needs |Q| ≥ 3 for a good database to exist, not {Q}",
    )


# Classes of VC dimension d ----------------------------------------------------------------------------------


def vc_size_sauer(X: Whole, d: Whole, alpha: Number) -> int:
    """m = ⌊ln(2Φ_d(|X|))/(2α²)⌋ + 1: `smalldb_size` of the class's traces, on which all its answers depend.

    |X| may be replaced by the number of distinct rows. [Lectures 9-10, Theorem 11]

    >>> [vc_size_sauer(1024, d, 0.1) for d in (1, 3, 10)]
    [382, 985, 2744]
    """
    return smalldb_size(sauer(X, d), alpha)


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
    return smalldb_error(n, X, vc_size(X, d, alpha), eps, alpha, beta)
