"""Sparse vector: how far from the threshold an answer must be to be right. Statistical queries, Δ = 1/n.

k queries, of which at most c are above the threshold less α; failure probability β of all answers together. The
mechanism itself is `mechanism.sparse_vector`.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from understudy.rational import Number, exact, probability
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, require, whole


def sparse_eps0(c: Whole, eps: Number, delta: Number = 0) -> float:
    """The price of each of c runs: ε/c, or for δ > 0 ε/sqrt(8c ln(1/δ)).

    The second needs ε ≤ 2 ln(1/δ) and a run's price of at most 1, as advanced composition does in Lecture 7.
    [DworkRoth14, Theorem 3.25]
    """
    runs, price, slack = whole(c, "c"), above_zero(eps, "eps"), exact(delta, "delta")
    if slack == 0:
        return price / runs
    weight = log_of_inverse(probability(slack, "delta"), "delta")
    require(
        price <= 2 * weight, f"advanced composition needs eps ≤ 2 ln(1/delta) = {2 * weight:.4g}, not {eps}"
    )
    each = price / sqrt(8 * runs * weight)
    require(each <= 1, f"advanced composition needs runs of eps0 ≤ 1, and these cost {each:.4g}")
    return each


def sparse_alpha(n: Whole, k: Whole, c: Whole, eps: Number, beta: Number, delta: Number = 0) -> float:
    """8c(ln k + ln(2c/β))/(εn), or for δ > 0 sqrt(512 c ln(1/δ))(ln k + ln(2c/β))/(εn): c runs.

    [DworkRoth14, Theorem 3.26]
    """
    return 8 * _alpha(n, k, c, beta) / sparse_eps0(c, eps, delta)


class NumericSplit(NamedTuple):
    """What is spent on comparing, and what on the c numeric answers; the sum is ε."""

    compare: float
    answer: float


def numeric_sparse_split(eps: Number, delta: Number = 0) -> NumericSplit:
    """8/9 of ε to compare, 1/9 to answer; for δ > 0, sqrt(512)/(sqrt(512)+1) and 1/(sqrt(512)+1).

    The shares at which both parts have the same error but for their logarithms. [DworkRoth14, Theorem 3.27]
    """
    price, slack = above_zero(eps, "eps"), exact(delta, "delta")
    if slack != 0:
        probability(slack, "delta")
    weight = 8.0 if slack == 0 else sqrt(512)
    return NumericSplit(price * weight / (weight + 1), price / (weight + 1))


def numeric_sparse_alpha(n: Whole, k: Whole, c: Whole, eps: Number, beta: Number) -> float:
    """9c(ln k + ln(4c/β))/(εn): both the comparisons and the c Laplace answers of pure ε-DP NumericSparse.

    Half of β each: the comparisons need 8c(ln k + ln(4c/β)) over 8ε/9, an answer of scale 9c/(εn) is off by
    at most 9c ln(2c/β)/(εn), which is less. [DworkRoth14, Theorem 3.28]
    """
    split = numeric_sparse_split(eps)
    return sparse_alpha(n, k, c, split.compare, probability(beta) / 2)


def _alpha(n: Whole, k: Whole, c: Whole, beta: Number) -> float:
    runs = whole(c, "c")
    return (log(whole(k, "k")) + log(2 * runs) + log_of_inverse(beta)) / whole(n, "n")
