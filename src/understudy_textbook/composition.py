"""Composition and conversion as the literature states them, to full float precision.

`understudy.privacy.compose` computes prices that are promised to people, so it rounds every result away from the
optimist's side (by 10⁻⁹). Here the formulas stand alone, so that they can be compared with one another and with
printed values to ten digits. The two that certificates use, `zcdp_delta` and `log_gdp_delta`, live in
`understudy.theory.composition` and are imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, expm1, log, sqrt, tanh

from understudy.errors import ParameterError
from understudy.rational import Number, exact, probability
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    exp_of,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.composition import log_gdp_delta, zcdp_delta

__all__ = [
    "analytic_gauss_sigma",
    "basic",
    "drv_advanced",
    "gauss_mu",
    "gauss_rho",
    "gdp_delta",
    "gdp_eps",
    "kov_style",
    "log_gdp_delta",
    "pure_to_zcdp",
    "zcdp_delta",
    "zcdp_eps",
]


# k mechanisms of (ε, δ) each --------------------------------------------------------------------------------


def basic(parts: Sequence[tuple[Number, Number]]) -> tuple[Fraction, Fraction]:
    """(Σεᵢ, Σδᵢ): independent mechanisms, or each chosen after seeing the ones before.

    [Lecture 4, Theorem 7] and [Lecture 4, Theorem 8]

    >>> basic([(0.1, 0), (0.2, 1e-6)])
    (Fraction(3, 10), Fraction(1, 1000000))
    """
    total = [(exact(epsilon, "epsilon"), exact(delta, "delta")) for epsilon, delta in parts]
    if any(epsilon < 0 or delta < 0 for epsilon, delta in total):
        raise ParameterError("epsilon and delta must not be negative")
    return sum((e for e, _ in total), Fraction(0)), sum((d for _, d in total), Fraction(0))


def drv_advanced(eps: Number, delta: Number, k: Whole, slack: Number) -> tuple[float, float]:
    """(sqrt(2k ln(1/δ'))ε + kε(e^ε - 1), kδ + δ') for k adaptively chosen (ε, δ)-DP mechanisms, δ' = `slack`.

    [DRV10, Theorem III.3]
    """
    price, count = above_zero(eps, "eps"), whole(k, "k")
    require(price <= 700, f"eps must be at most 700 for its exponential to be a number, not {eps}")
    total = _total_delta(delta, count, slack)
    spread = sqrt(2 * count * log_of_inverse(slack, "slack")) * price
    return spread + count * price * expm1(price), total


def kov_style(eps: Number, delta: Number, k: Whole, slack: Number) -> tuple[float, float]:
    """(ε sqrt(2k ln(1/δ')) + kε tanh(ε/2), kδ + δ'), or kε where that is less; δ' = `slack`.

    The mean privacy loss of an ε-DP mechanism is at most ε tanh(ε/2), which randomised response attains; the
    second term of `drv_advanced` is more than twice that. [KOV15]
    """
    price, count = above_zero(eps, "eps"), whole(k, "k")
    spread = price * sqrt(2 * count * log_of_inverse(slack, "slack")) + count * price * tanh(price / 2)
    return min(spread, count * price), _total_delta(delta, count, slack)


def _total_delta(delta: Number, k: int, slack: Number) -> float:
    each = at_least_zero(delta, "delta")
    total = k * each + float(probability(slack, "slack"))
    require(
        total < 1, f"k·delta + slack must be below 1 for the promise to mean anything, and it is {total:.3g}"
    )
    return total


# zCDP -------------------------------------------------------------------------------------------------------


def pure_to_zcdp(eps: Number) -> float:
    """ρ = ε tanh(ε/2), for which ε-DP implies ρ-zCDP, and no smaller one does; ε²/2 is the usual bound.

    Randomised response is the hardest ε-DP mechanism, and its Rényi divergence of order a satisfies
    (a-1)D_a = ln(cosh(ε(a-½))/cosh(ε/2)). Its slope in a is ε tanh((2a-1)ε/2) ≤ (2a-1)ε tanh(ε/2), because tanh is
    concave; integrate from a = 1. As a → 1 it is an equality.
    """
    price = above_zero(eps, "eps")
    return price * tanh(price / 2)


def gauss_rho(Delta: Number, sigma: Number) -> float:
    """ρ = Δ²/(2σ²) of Gaussian noise. [BunSteinke16, Proposition 1.6]"""
    return (above_zero(Delta, "Delta") / above_zero(sigma, "sigma")) ** 2 / 2


def zcdp_eps(rho: Number, delta: Number) -> float:
    """ρ + 2 sqrt(ρ ln(1/δ)), the closed form. [BunSteinke16, Proposition 1.3]"""
    amount = at_least_zero(rho, "rho")
    return amount + 2 * sqrt(amount * log_of_inverse(delta, "delta"))


# Gaussian differential privacy ------------------------------------------------------------------------------


def gauss_mu(n: Whole, k: Whole, sigma: Number) -> float:
    """μ = sqrt(k)/(nσ): k means of n values in [0, 1], each with N(0, σ²) added, are together μ-GDP.

    [DRS22, Corollary 3.3]
    """
    return sqrt(whole(k, "k")) / (whole(n, "n") * above_zero(sigma, "sigma"))


def gdp_delta(eps: Number, mu: Number) -> float:
    """δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), the exact curve of μ-GDP. [DRS22, Corollary 2.13]"""
    return exp_of(log_gdp_delta(at_least_zero(eps, "eps"), above_zero(mu, "mu")))


def gdp_eps(delta: Number, mu: Number) -> float:
    """The ε with `gdp_delta`(ε, μ) = δ; 0 where already δ(0) ≤ δ. [DRS22, Corollary 2.13]"""
    scale, target = above_zero(mu, "mu"), -log_of_inverse(delta, "delta")
    if log_gdp_delta(0.0, scale) <= target:
        return 0.0
    enough = zcdp_eps(scale**2 / 2, delta)
    return _crossing(lambda eps: log_gdp_delta(eps, scale) - target, 0.0, enough)


def analytic_gauss_sigma(eps: Number, delta: Number, Delta: Number) -> float:
    """The least σ for which N(0, σ²) on a value of sensitivity Δ is (ε, δ)-DP. [BalleWang18, Theorem 8]"""
    price, weight = above_zero(eps, "eps"), log_of_inverse(delta, "delta")
    # The largest μ that the closed form of zCDP allows is too small; double it until it is too large.
    low = sqrt(2) * price / (sqrt(weight + price) + sqrt(weight))
    high = 2 * low
    while log_gdp_delta(price, high) < -weight:
        high *= 2
    mu = exp(_crossing(lambda u: log_gdp_delta(price, exp(u)) + weight, log(low), log(high)))
    return above_zero(Delta, "Delta") / mu


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function changes sign between `low` and `high`, to the last bit."""
    below = function(low) < 0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if (function(middle) < 0) == below else (low, middle)
    return high
