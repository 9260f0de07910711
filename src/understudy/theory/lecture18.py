"""Lecture 18, as far as the product relies on it: the exponential mechanism, and the two sides of the Monitor.

The transfer theorem that they prove, and the lecture's other statements, are in `understudy_textbook.lecture18`.
"""

from __future__ import annotations

from math import expm1, log, log1p

from understudy.rational import Number
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    log_of_inverse,
    power_of_e,
    require,
    whole,
)

# The exponential mechanism ----------------------------------------------------------------------------------


def em_error(Delta: Number, eps: Number, Y: Whole, beta: Number) -> float:
    """(2Δ/ε)(ln|Y| + ln(1/β)): the chosen score is that close to the best, except with probability β.

    [Lecture 18, Theorem 0.1]
    """
    return em_error_log(Delta, eps, log(whole(Y, "Y")), beta)


def em_error_log(Delta: Number, eps: Number, log_candidates: float, beta: Number) -> float:
    """`em_error` of so many candidates that only the logarithm of their number is known."""
    return 2 * above_zero(Delta, "Delta") / above_zero(eps, "eps") * (log_candidates + log_of_inverse(beta))


# The Monitor, step by step ----------------------------------------------------------------------------------


def monitor_gain(alpha: Number, p: Number, T: Whole) -> float:
    """α(1 - (1-p)^T), at most the expected largest score of T runs.

    p = Pr[|q(S) - q(D)| ≥ α] of one run, two-sided: each run offers q and 1 - q, so that the largest score is
    the largest absolute error and never negative. [Lecture 18, Claim 0.3]
    """
    chance = at_least_zero(p, "p")
    require(chance <= 1, f"p must be a probability, not {p}")
    rounds = monitor_samples(T)
    return above_zero(alpha, "alpha") * (1.0 if chance == 1 else -expm1(rounds * log1p(-chance)))


def monitor_ceiling(eps: Number, delta: Number, T: Whole) -> float:
    """(e^ε - 1) + Tδ, at least the expected q(S_t) - q(D) of an (ε, δ)-DP monitor of T samples.

    [Lecture 18, Lemma 0.4]
    """
    return power_of_e(at_least_zero(eps, "eps")) - 1 + monitor_samples(T) * at_least_zero(delta, "delta")


# The transfer theorem ---------------------------------------------------------------------------------------


def monitor_samples(T: Whole) -> int:
    """T, the number of samples that the Monitor looks at, as an integer below 10^300."""
    rounds = whole(T, "T")
    require(rounds.bit_length() <= 1000, "T must be below 10^300")
    return rounds
