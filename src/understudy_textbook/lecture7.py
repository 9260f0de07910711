"""Lecture 7: the Iterative Construction (IC), database update algorithms, and the private distinguisher.

B = B(α/2) updates at most, |C| = C queries, n rows, each step ε₀-DP. Lecture's names: DUS, a database update
sequence; DUA, an algorithm whose sequences are at most B(α) long. The printed Theorems 5, 7 and 8 are false;
they are here under `_seed` names, for comparison, beside corrected ones (docs/errata.md, D6 and D8).

The statements that the product relies on live in `understudy.theory.lecture7`; they are imported here, so that
this file offers every bound of the lecture. The algorithms themselves are in `understudy.lectures` and
`understudy.releases`.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.rational import Number, exact, probability
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    exact_above_zero,
    require,
    whole,
)
from understudy.theory.lecture7 import (
    ICDesign,
    distinguisher_error,
    distinguisher_failure,
    ic_alpha,
    ic_alpha_corrected,
    ic_design,
    ic_eps0,
    ic_threshold,
    median_updates,
    mw_updates,
    noise_margin,
    stop_error,
)
from understudy_textbook.composition import drv_advanced

__all__ = [
    "ICDesign",
    "distinguisher_error",
    "distinguisher_failure",
    "frieze_kannan_updates",
    "ic_alpha",
    "ic_alpha_corrected",
    "ic_alpha_same_threshold",
    "ic_alpha_thm5_seed",
    "ic_alpha_thm7_seed",
    "ic_alpha_thm8_seed",
    "ic_cost",
    "ic_design",
    "ic_eps0",
    "ic_threshold",
    "is_update_sequence",
    "median_updates",
    "mw_updates",
    "noise_margin",
    "stop_error",
    "update_gap",
]


# Update sequences -------------------------------------------------------------------------------------------


def is_update_sequence(
    truth: Sequence[float], standin: Sequence[float], estimate: Sequence[float], alpha: Number
) -> bool:
    """Whether Q_t(D), Q_t(D^t), v_t satisfy |Q_t(D) - Q_t(D^t)| ≥ α and |Q_t(D) - v_t| < α for every t.

    Then the sign of v_t - Q_t(D^t) is that of Q_t(D) - Q_t(D^t), which is all that an update needs. The printed
    definition has lost its minus signs. [Lecture 7, Definition 1]
    """
    margin = above_zero(alpha, "alpha")
    require(len(truth) == len(standin) == len(estimate), "truth, standin and estimate must be equally long")
    return all(
        abs(q - g) >= margin and abs(q - v) < margin for q, g, v in zip(truth, standin, estimate, strict=True)
    )


def frieze_kannan_updates(X: Whole, squared_norm: Number, alpha: Number) -> int:
    """B(α) = ⌊‖D‖₂²|X|/α²⌋ of the linear DUA that starts at 0, with counts and α not divided by n.

    D^{t+1} = D^t ± (α/|X|)Q, plus if v > Q(D^t): ‖D - D^t‖₂² falls by 2α²/|X| - α²‖Q‖₂²/|X|² ≥ α²/|X|. Good for
    sparse D. [GRU12] [Lecture 7, Definition 2]
    """
    norm = exact(squared_norm, "squared_norm")
    require(norm >= 0, f"squared_norm must not be negative, not {squared_norm}")
    return int(norm * whole(X, "X") / exact_above_zero(alpha, "alpha") ** 2)


# Privacy ----------------------------------------------------------------------------------------------------


def ic_cost(eps0: Number, delta: Number, B: Whole) -> float:
    """What 2B steps of ε₀ cost: 2Bε₀, or sqrt(4B ln(1/δ))ε₀ + 2Bε₀(e^{ε₀} - 1). [Lecture 7, Theorem 4]

    >>> round(ic_cost(ic_eps0(1, 1e-6, 100), 1e-6, 100), 3)
    0.509
    """
    step, updates, slack = above_zero(eps0, "eps0"), whole(B, "B"), exact(delta, "delta")
    if slack == 0:
        return 2 * updates * step
    require(step <= 700, f"eps0 must be at most 700 for its exponential to be a number, not {eps0}")
    return drv_advanced(step, 0, 2 * updates, probability(slack, "delta"))[0]


# Accuracy ---------------------------------------------------------------------------------------------------


def update_gap(threshold: Number, margin: Number) -> float:
    """θ - λ: the least gap of a query that IC updates on; it must be α/2 or more. [Lecture 7, Theorem 5]"""
    return above_zero(threshold, "threshold") - at_least_zero(margin, "margin")


def ic_alpha_same_threshold(n: Whole, B: Whole, beta: Number, eps0: Number, F: Number) -> float:
    """4(λ + F): what the printed threshold 3α/4 needs; larger than `ic_alpha`. [Lecture 7, Theorem 5]"""
    return 4 * (noise_margin(n, B, beta, eps0) + at_least_zero(F, "F"))


def ic_alpha_thm5_seed(n: Whole, B: Whole, beta: Number, eps0: Number, F: Number) -> float:
    """max{4λ, 2F}, as printed: false, the output can be off by 1.5 times this. [Lecture 7, Theorem 5]"""
    return max(4 * noise_margin(n, B, beta, eps0), 2 * at_least_zero(F, "F"))


def ic_alpha_thm7_seed(n: Whole, B: Whole, C: Whole, beta: Number, eps0: Number) -> float:
    """max{4 ln(2B/β)/(ε₀n), (4/(nε₀)) ln(|C|/γ)} with γ = β/(2B), as printed: false. [Lecture 7, Theorem 7]"""
    return ic_alpha_thm5_seed(
        n, B, beta, eps0, distinguisher_error(n, C, eps0, distinguisher_failure(B, beta))
    )


def ic_alpha_thm8_seed(n: Whole, B: Whole, C: Whole, beta: Number, eps: Number, delta: Number = 0) -> float:
    """(8B/(nε)) ln(|C|/γ), or (16 sqrt(B ln(1/δ))/(nε)) ln(|C|/γ), γ = β/(2B), as printed: false.

    Theorem 7's second term with the ε₀ of Theorem 4; the first is never larger. [Lecture 7, Theorem 8]
    """
    return 2 * distinguisher_error(n, C, ic_eps0(eps, delta, B), distinguisher_failure(B, beta))
