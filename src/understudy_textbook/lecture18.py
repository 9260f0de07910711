"""Lecture 18: the exponential mechanism, indistinguishability, and why privacy is generalisation (the Monitor).

m rows in each of T samples, statistical queries with values in [0, 1]. The theorem is proved for those; the
lecture states it for all queries of sensitivity 1/m. What it prints otherwise is in docs/errata.md.

The statements that the product relies on live in `understudy.theory.lecture18`; they are imported here, so that
this file offers every bound of the lecture. The Monitor as a program is `understudy.lectures.monitor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any, NamedTuple

from understudy.rational import Number, exact
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    exact_above_zero,
    exp_of,
    power_of_e,
    require,
    whole,
)
from understudy.theory.lecture18 import em_error, em_error_log, monitor_ceiling, monitor_gain, monitor_samples
from understudy_textbook.stability import Law, privacy_curve

__all__ = [
    "Transfer",
    "em_error",
    "em_error_log",
    "em_expected_error",
    "expectation_bound",
    "indistinguishable",
    "monitor_ceiling",
    "monitor_excess",
    "monitor_gain",
    "monitor_loss",
    "monitor_privacy",
    "monitor_rounds",
    "monitor_samples",
    "seed_transfer",
    "seed_transfer_adaptive",
    "seed_transfer_printed",
]


# The exponential mechanism ----------------------------------------------------------------------------------


def em_expected_error(Delta: Number, eps: Number, Y: Whole) -> float:
    """(2Δ/ε) ln|Y|: how far the score is from the best on average.

    By Gibbs' variational principle: with weights e^{λf}, E f + (1/λ)·entropy ≥ max f, and the entropy is at
    most ln|Y|. It replaces the lecture's assumption that the mechanism never fails. [Lecture 18, Theorem 0.1]
    """
    return 2 * above_zero(Delta, "Delta") / above_zero(eps, "eps") * log(whole(Y, "Y"))


# Indistinguishability ---------------------------------------------------------------------------------------


def indistinguishable(first: Law, second: Law, eps: Number, delta: Number) -> bool:
    """Whether Pr[X ∈ T] ≤ e^ε Pr[Y ∈ T] + δ and Pr[Y ∈ T] ≤ e^ε Pr[X ∈ T] + δ for every set T of outcomes.

    Both directions, which the lecture's definition needs and does not say. Exact for laws with Fractions.
    [Lecture 18, Definition 0.5]
    """
    laws: Mapping[tuple[Any, ...], Law] = {("X",): first, ("Y",): second}
    return privacy_curve(lambda rows: laws[rows], [(("X",), ("Y",))]).is_stable(eps, delta)


def expectation_bound(expectation: Number, eps: Number, delta: Number) -> float:
    """e^ε E[f(Y)] + δ, which E[f(X)] never exceeds when X and Y are (ε, δ)-indistinguishable and 0 ≤ f ≤ 1.

    [Lecture 18, Lemma 0.6]
    """
    mean, slack = at_least_zero(expectation, "expectation"), at_least_zero(delta, "delta")
    require(mean <= 1, f"the expectation of a function with values in [0, 1] is at most 1, not {expectation}")
    return power_of_e(at_least_zero(eps, "eps")) * mean + slack


# The Monitor, step by step ----------------------------------------------------------------------------------


def monitor_privacy(eps: Number, eps_prime: Number, delta: Number) -> tuple[float, float]:
    """(ε + ε', δ): the T runs look at disjoint samples and cost as much as one; the selection adds ε'."""
    return above_zero(eps, "eps") + above_zero(eps_prime, "eps_prime"), at_least_zero(delta, "delta")


def monitor_loss(m: Whole, eps_prime: Number, T: Whole) -> float:
    """2 ln(2T)/(ε'm): what the exponential mechanism misses on average, among the 2T queries of T runs.

    The lecture counts T of them.
    """
    return em_expected_error(1 / exact(whole(m, "m")), eps_prime, 2 * monitor_samples(T))


def monitor_excess(m: Whole, eps: Number, delta: Number, alpha: Number, p: Number, T: Whole) -> float:
    """Gain less loss less ceiling, with ε' = ε. Positive: no (ε, δ)-DP mechanism overfits by α with probability p.

    Because the monitor is (2ε, δ)-DP, and its expected error is at least gain less loss and at most the ceiling.
    """
    total, slack = monitor_privacy(eps, eps, delta)
    return monitor_gain(alpha, p, T) - monitor_loss(m, eps, T) - monitor_ceiling(total, slack, T)


def monitor_rounds(p: Number) -> int:
    """How many samples the proof takes: ⌊1/p⌋ if p ≤ 1/4, else 3 (the case that the lecture leaves out)."""
    chance = exact_above_zero(p, "p")
    require(chance <= 1, f"p must be a probability, not {p}")
    return int(1 / chance) if chance * 4 <= 1 else 3


# The transfer theorem ---------------------------------------------------------------------------------------


class Transfer(NamedTuple):
    """An error, and the probability that it is reached."""

    width: float
    probability: float


def seed_transfer(n: Whole, eps: Number, delta: Number) -> Transfer:
    """(6ε, max{4δ/ε, 2e^{-ε²n/8}}): Pr[|q(S) - q(D)| ≥ 6ε] of one query chosen by an (ε, δ)-DP algorithm.

    Needs sqrt(12/n) ≤ ε ≤ 1/8 and δ ≤ ε/16, n rows drawn independently, and a statistical query. The lecture
    prints e^{-ε²n/8}, for which its proof counts T instead of 2T candidates. [Lecture 18, Theorem 0.2]

    >>> seed_transfer(1e5, 0.05, 1e-5)
    Transfer(width=0.30000000000000004, probability=0.0008)
    """
    return _transfer(n, eps, delta, factor=2)


def seed_transfer_printed(n: Whole, eps: Number, delta: Number) -> Transfer:
    """(6ε, max{4δ/ε, e^{-ε²n/8}}), as it is printed; for comparison, its proof does not reach it.

    [Lecture 18, Theorem 0.2]
    """
    return _transfer(n, eps, delta, factor=1)


def seed_transfer_adaptive(n: Whole, eps: Number, delta: Number, alpha_s: Number, beta_s: Number) -> Transfer:
    """(α_s + 6ε, β_s + p): all answers of an adaptive session against the population, however many.

    For answers that are all within α_s of the sample except with probability β_s. The query with the largest
    |a_j - q_j(D)| is post-processing of the transcript, because D and the answers are not data; choosing by
    |q_j(S) - q_j(D)| would look at S. No union over queries. [Lecture 18, Theorem 0.2]
    """
    single = seed_transfer(n, eps, delta)
    failure = at_least_zero(beta_s, "beta_s")
    require(failure < 1, f"beta_s must be below 1, not {beta_s}")
    return Transfer(at_least_zero(alpha_s, "alpha_s") + single.width, failure + single.probability)


def _transfer(n: Whole, eps: Number, delta: Number, *, factor: int) -> Transfer:
    rows, price, slack = whole(n, "n"), exact_above_zero(eps, "eps"), exact(delta, "delta")
    require(price * price * rows >= 12, f"the theorem needs eps ≥ sqrt(12/n), and eps = {eps} is below that")
    require(8 * price <= 1, f"the theorem needs eps ≤ 1/8, not {eps}")
    require(0 <= 16 * slack <= price, f"the theorem needs 0 ≤ delta ≤ eps/16, not {delta}")
    tail = factor * exp_of(-float(price * price * rows / 8))
    return Transfer(6 * float(price), max(float(4 * slack / price), tail))
