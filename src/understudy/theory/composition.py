"""The privacy curves δ(ε) of zCDP and of Gaussian noise, to full float precision: certificates integrate them.

`privacy.compose` computes prices that are promised to people, so it rounds every result away from the optimist's
side (by 10⁻⁹); here nothing is rounded. Other forms of composition are in `understudy_textbook.composition`.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p

from scipy.special import log_ndtr

from understudy.rational import Number
from understudy.theory.arguments import (
    at_least_zero,
    exp_of,
)
from understudy.theory.minimise import crossing

# zCDP -------------------------------------------------------------------------------------------------------


def zcdp_delta(rho: Number, eps: Number) -> float:
    """min over orders a > 1 of exp((a-1)(aρ-ε))·(1-1/a)^a/(a-1): ρ-zCDP implies (ε, δ)-DP with this δ.

    With x = a - 1, ln δ is least where (2x+1)ρ - ε = ln(1+1/x), which has one solution. [CKS20, Corollary 13]
    """
    amount, price = at_least_zero(rho, "rho"), at_least_zero(eps, "eps")
    if amount == 0:
        return 0.0

    def slope(u: float) -> float:
        return (2 * exp(u) + 1) * amount - price - (log1p(exp(-u)) if u > -700 else -u)

    u = crossing(slope, -3 * amount - 50, max(0.0, log(price + 1) - log(2 * amount)))
    x = exp(u)
    # x ln x - (1+x) ln(1+x) without the difference of large numbers
    tail = -x * log1p(1 / x) if x > 1e-300 else 0.0
    return exp_of(x * ((1 + x) * amount - price) + tail - log1p(x))


# Gaussian differential privacy ------------------------------------------------------------------------------


def log_gdp_delta(eps: float, mu: float) -> float:
    """ln of `gdp_delta`, for parameters that were checked already."""
    here = float(log_ndtr(mu / 2 - eps / mu))
    there = eps + float(log_ndtr(-mu / 2 - eps / mu))
    return here + log(-expm1(there - here)) if there < here else -inf
