"""Lecture 7, as far as the product relies on it: the Iterative Construction (IC), database update algorithms, and
the private distinguisher.

B = B(α/2) updates at most, |C| = C queries, n rows, each step ε₀-DP. A DUA, database update algorithm, is one
whose update sequences are at most B(α) long. The printed Theorems 5, 7 and 8 are false; here are corrected ones
(docs/errata.md, D6 and D8). The printed ones and the lecture's other statements are in
`understudy_textbook.lecture7`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import Literal

from understudy.errors import ParameterError
from understudy.rational import Number, exact, probability
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    exact_above_zero,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.lecture4 import claim1_size_min
from understudy.theory.lecture18 import em_error
from understudy.theory.logarithm import floor_log2_binomial, floor_log2_power, floor_log_over

# Update sequences -------------------------------------------------------------------------------------------


def mw_updates(X: Whole, alpha: Number, const: Literal["tight", "textbook"] = "tight") -> int:
    """B(α) of multiplicative weights from the uniform distribution: ⌊ln|X|/(2α²)⌋, or the textbook's ⌊4 ln|X|/α²⌋.

    The tight one steps by 4α: KL(D‖D^t) starts at ln|X| at most, and a step s against a gap g ≥ α lowers it by
    sg - s²/8 (Hoeffding's lemma), which is 2α² or more at s = 4α. The textbook's step is α/2 [GRU12].
    [Lecture 7, Definition 2]
    """
    universe, margin = whole(X, "X"), exact_above_zero(alpha, "alpha")
    if const == "tight":
        return floor_log_over(universe, 2 * margin**2)
    if const == "textbook":
        return floor_log_over(universe, margin**2 / 4)
    raise ParameterError(f"const must be 'tight' or 'textbook', not {const!r}")


def median_updates(C: Whole, X: Whole, alpha: Number, *, multiset: bool = True) -> int:
    """B(α) of the median DUA: ⌊log₂ of the number of databases of n' rows⌋, n' = `claim1_size_min`(|C|, α).

    Cut by sign: if v < Q(D^t), with D^t the median, drop every candidate with Q ≥ Q(D^t); else every one with
    Q ≤ Q(D^t). That halves the set, and keeps a candidate within less than α of the truth on all of C, which
    exists at this n'. Candidates are multisets, or with `multiset=False` the |X|^n' sequences.
    [Lecture 7, Definition 2]
    """
    size, universe = claim1_size_min(whole(C, "C"), alpha), whole(X, "X")
    if multiset:
        return floor_log2_binomial(size + universe - 1, size)
    return floor_log2_power(universe, size)


# Privacy ----------------------------------------------------------------------------------------------------


def ic_eps0(eps: Number, delta: Number, B: Whole) -> float:
    """The price ε₀ of each of the 2B steps for which IC is ε-DP (`delta` 0) or (ε, δ)-DP.

    ε/(2B), or ε/(4 sqrt(B ln(1/δ))). The second needs what the lecture does not say: ε ≤ 2 ln(1/δ) and ε₀ ≤ 1, so
    that 2Bε₀(e^{ε₀} - 1) ≤ ε/2. [Lecture 7, Theorem 4]
    """
    price, updates, slack = above_zero(eps, "eps"), whole(B, "B"), exact(delta, "delta")
    if slack == 0:
        return price / (2 * updates)
    weight = log_of_inverse(probability(slack, "delta"), "delta")
    require(
        price <= 2 * weight, f"advanced composition needs eps ≤ 2 ln(1/delta) = {2 * weight:.4g}, not {eps}"
    )
    step = price / (4 * sqrt(updates * weight))
    require(step <= 1, f"advanced composition needs steps of eps0 ≤ 1, and these cost {step:.4g}")
    return step


# Accuracy ---------------------------------------------------------------------------------------------------


def distinguisher_error(n: Whole, C: Whole, eps: Number, gamma: Number) -> float:
    """F(ε) = (2/(nε)) ln(|C|/γ): the exponential mechanism finds a query whose gap is within F of the largest.

    Except with probability γ. The score |Q(D) - Q(D^t)| has sensitivity 1/n. [Lecture 7, Theorem 6]
    """
    return em_error(Fraction(1, whole(n, "n")), eps, whole(C, "C"), probability(gamma, "gamma"))


def noise_margin(n: Whole, B: Whole, beta: Number, eps0: Number) -> float:
    """λ = ln(2B/β)/(ε₀n): all B noisy answers are that close, up to a failure of β/2. [Lecture 7, Theorem 5]"""
    return (log(2 * whole(B, "B")) + log_of_inverse(beta)) / (above_zero(eps0, "eps0") * whole(n, "n"))


def stop_error(threshold: Number, margin: Number, F: Number) -> float:
    """θ + λ + F: the largest error of the database that IC outputs because |v - Q(D^{t-1})| < θ.

    With the printed θ = 3α/4, λ = α/4 and F = α/2 this is 1.5α, not α. [Lecture 7, Theorem 5]
    """
    return above_zero(threshold, "threshold") + at_least_zero(margin, "margin") + at_least_zero(F, "F")


def ic_threshold(alpha: Number, margin: Number) -> float:
    """θ = α/2 + λ, the threshold with which `ic_alpha` holds, in the place of the printed 3α/4.

    It is chosen before the run and public: λ depends on n, B, β and ε₀ only. [Lecture 7, Theorem 5]
    """
    return above_zero(alpha, "alpha") / 2 + at_least_zero(margin, "margin")


def ic_alpha(n: Whole, B: Whole, beta: Number, eps0: Number, F: Number) -> float:
    """4λ + 2F: IC with threshold α/2 + λ is (α, β)-accurate for this α and above.

    An update has a gap of α/2 or more; a stop leaves an error below α/2 + 2λ + F ≤ α. F is the distinguisher's,
    with γ ≤ β/(2B). [Lecture 7, Theorem 5]
    """
    return 4 * noise_margin(n, B, beta, eps0) + 2 * at_least_zero(F, "F")


def ic_alpha_corrected(n: Whole, B: Whole, C: Whole, beta: Number, eps0: Number) -> float:
    """(4/(nε₀))(ln(2B/β) + ln(|C|/γ)) with γ = β/(2B): `ic_alpha` with the exponential mechanism.

    At most twice the printed value. [Lecture 7, Theorem 7]
    """
    return ic_alpha(n, B, beta, eps0, distinguisher_error(n, C, eps0, distinguisher_failure(B, beta)))


# The α that is on both sides --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ICDesign:
    """α, and the updates B(α/2), the price ε₀ of a step, and the threshold that reach it."""

    alpha: float
    B: int
    eps0: float
    threshold: float


def ic_design(
    n: Whole, C: Whole, beta: Number, eps: Number, delta: Number, updates: Callable[[float], int]
) -> ICDesign:
    """The least α ≤ 1 with α ≥ `ic_alpha_corrected` at B(α/2) updates, by bisection.

    `updates` is B(·) of the DUA, which must not increase, such as ``partial(mw_updates, 256)``. A larger α needs
    fewer updates and so less noise, hence the two sides cross once. Refused if even α = 1 is not reached.
    [Lecture 7, Theorem 8]

    >>> from functools import partial
    >>> design = ic_design(10**6, 1000, 0.05, 1, 0, partial(mw_updates, 256))
    >>> design.B, round(design.alpha, 4)
    (617, 0.134)
    """

    def needed(alpha: float) -> tuple[float, int, float]:
        # B = 0 says that the start is accurate already; one step is paid for all the same.
        most = max(1, updates(alpha / 2))
        step = ic_eps0(eps, delta, most)
        return ic_alpha_corrected(n, most, C, beta, step), most, step

    low, high = 0.0, 1.0
    least = needed(high)[0]
    require(
        least <= 1, f"no alpha up to 1 is reached; even alpha = 1 needs {least:.3g}. More rows or eps help"
    )
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle)[0] <= middle else (middle, high)
    _, most, step = needed(high)
    return ICDesign(high, most, step, ic_threshold(high, noise_margin(n, most, beta, step)))


def distinguisher_failure(B: Whole, beta: Number) -> Fraction:
    """γ = β/(2B), the failure probability of each of B searches; the noisy answers share the other half of β.

    [Lecture 7, Theorem 7]
    """
    return probability(beta) / (2 * whole(B, "B"))
