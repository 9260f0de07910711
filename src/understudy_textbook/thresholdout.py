"""Thresholdout: answer from the training set while the holdout agrees. Constants as quoted in the literature."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, require, whole


@dataclass(frozen=True, slots=True)
class ThresholdoutParams:
    """The threshold T, the noise scale s (2s on the threshold, 4s on each comparison, s on an answer)."""

    threshold: float
    scale: float


def thresholdout_params(m: Whole, tau: Number, beta: Number) -> ThresholdoutParams:
    """T = 3τ/4 and s = τ/(96 ln(4m/β)): m queries valid to τ until the budget of overfitted ones is spent.

    [DFHPRR15]; the published demonstration uses other, Gaussian, noise and is not this algorithm.
    """
    width = above_zero(tau, "tau")
    require(width < 1, "tau must be below 1")
    return ThresholdoutParams(3 * width / 4, width / (96 * (log(4 * whole(m, "m")) + log_of_inverse(beta))))


def thresholdout_rows(m: Whole, tau: Number, beta: Number, B: Whole, *, constant: Number = 1) -> float:
    """The order of n: constant · (ln(m/β)/τ²) · min(B, sqrt(B ln(ln(m/β)/τ))). The constant is not published."""
    width, budget = above_zero(tau, "tau"), whole(B, "B")
    weight = log(whole(m, "m")) + log_of_inverse(beta)
    runs = min(budget, sqrt(budget * max(log(weight / width), 1.0)))
    return above_zero(constant, "constant") * weight / width**2 * runs
