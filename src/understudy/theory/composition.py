"""The privacy curves δ(ε) of zCDP and of Gaussian noise, to full float precision: certificates integrate them.

`privacy.compose` computes prices that are promised to people, so it rounds every result away from the optimist's
side (by 10⁻⁹); here nothing is rounded. Other forms of composition are in `understudy_textbook.composition`.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt

from understudy.rational import Number
from understudy.theory.arguments import at_least_zero, exp_of
from understudy.theory.normal_law import log_ndtr

# zCDP -------------------------------------------------------------------------------------------------------


def zcdp_delta(rho: Number, eps: Number) -> float:
    """min over orders a > 1 of exp((a-1)(aρ-ε))·(1-1/a)^a/(a-1): ρ-zCDP implies (ε, δ)-DP with this δ.

    With x = a - 1, ln δ is least where (2x+1)ρ - ε = ln(1+1/x), which has one solution. [CKS20, Corollary 13]
    """
    amount, price = at_least_zero(rho, "rho"), at_least_zero(eps, "eps")
    if amount == 0:
        return 0.0

    x = exp(_best_order(amount, price))
    # x ln x - (1+x) ln(1+x) without the difference of large numbers
    tail = -x * log1p(1 / x) if x > 1e-300 else 0.0
    return exp_of(x * ((1 + x) * amount - price) + tail - log1p(x))


def _best_order(rho: float, eps: float) -> float:
    """u = ln x where (2eᵘ+1)ρ - ε - ln(1+e⁻ᵘ), which increases with u, is 0.

    Newton's steps where they stay between the bounds found so far, else their middle. ln δ is flat at its least,
    so u is needed to half of the digits of δ only; and any u gives a valid δ.
    """
    low, high = -3 * rho - 50, max(0.0, log(eps + 1) - log(2 * rho))
    above = eps - rho  # where x is large, ln(1+1/x) is about 1/x, which leaves a quadratic equation
    spread = sqrt(above**2 + 8 * rho)
    u = log((above + spread) / (4 * rho) if above > 0 else 2 / (spread - above))
    for _ in range(100):
        x = exp(u)
        slope = (2 * x + 1) * rho - eps - (log1p(1 / x) if u > -700 else -u)
        step = slope / (2 * x * rho + 1 / (1 + x))
        if abs(step) <= 1e-12 * max(1.0, abs(u)):
            break
        low, high = (u, high) if slope < 0 else (low, u)
        u = u - step if low < u - step < high else (low + high) / 2
    return u


# Gaussian differential privacy ------------------------------------------------------------------------------


def log_gdp_delta(eps: float, mu: float) -> float:
    """ln of `gdp_delta`, for parameters that were checked already."""
    here = float(log_ndtr(mu / 2 - eps / mu))
    there = eps + float(log_ndtr(-mu / 2 - eps / mu))
    return here + log(-expm1(there - here)) if there < here else -inf
