"""Filters: may the next mechanism run, when mechanisms and their prices are chosen adaptively?

Each predicate is asked about everything that has run *and* the mechanism that would be next; as long as the answer
is yes for every prefix, the whole run keeps the promised total. Odometers, which report a total at any time,
without a limit, cost a log-log factor more and are not offered.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import expm1, log, log1p, sqrt

from understudy.rational import Number, exact
from understudy.theory.arguments import Whole, above_zero, exact_above_zero, log_of_inverse, require, whole

Prices = Iterable[tuple[Number, Number]]
"""(ε, δ) of each mechanism, the next one included."""


def rruv_epsilon(prices: Prices, eps_g: Number, delta_g: Number) -> float:
    """Σεᵢ(e^{εᵢ}-1)/2 + sqrt(2(E + H)(1 + ½ ln(1 + E/H)) ln(2/δ_g)), E = Σεᵢ², H = ε_g²/(28.04 ln(1/δ_g)).

    For 0 < δ_g < 1/e. [RRUV16, Theorem 5.1]
    """
    limit, weight = above_zero(eps_g, "eps_g"), log_of_inverse(delta_g, "delta_g")
    require(weight > 1, f"the filter needs delta_g < 1/e, not {delta_g}")
    spent, _ = _checked(prices)
    squares = sum(e * e for e in spent)
    spare = limit**2 / (28.04 * weight)
    bracket = 2 * (squares + spare) * (1 + log1p(squares / spare) / 2) * (weight + log(2))
    return sum(e * expm1(e) / 2 for e in spent) + sqrt(bracket)


def rruv_filter(prices: Prices, eps_g: Number, delta_g: Number) -> bool:
    """Whether to go on: Σδᵢ ≤ δ_g/2 and `rruv_epsilon` ≤ ε_g. The run is (ε_g, δ_g)-DP. [RRUV16, Theorem 5.1]"""
    listed = list(prices)
    _, slack = _checked(listed)
    return rruv_epsilon(listed, eps_g, delta_g) <= float(eps_g) and 2 * slack <= exact(delta_g, "delta_g")


def whitehouse_epsilon(prices: Prices, delta_prime: Number) -> float:
    """sqrt(2 ln(1/δ') Σεᵢ²) + ½Σεᵢ²: the same as for prices fixed in advance. [WRRW23]

    For δᵢ = 0 it is also the zCDP filter with ρᵢ = εᵢ²/2, converted by ρ + 2 sqrt(ρ ln(1/δ')).
    """
    spent, _ = _checked(prices)
    squares = sum(e * e for e in spent)
    return sqrt(2 * log_of_inverse(delta_prime, "delta_prime") * squares) + squares / 2


def whitehouse_filter(prices: Prices, eps: Number, delta_prime: Number, delta_second: Number) -> bool:
    """Whether to go on: `whitehouse_epsilon` ≤ ε and Σδᵢ ≤ δ''. The run is (ε, δ' + δ'')-DP. [WRRW23]"""
    listed, limit = list(prices), exact(delta_second, "delta_second")
    require(0 <= limit < 1, f"delta_second must lie in [0, 1), not {delta_second}")
    _, slack = _checked(listed)
    return whitehouse_epsilon(listed, delta_prime) <= above_zero(eps, "eps") and slack <= limit


def zcdp_filter(rhos: Iterable[Number], rho: Number) -> bool:
    """Whether to go on: Σρᵢ ≤ ρ, decided exactly. The run is ρ-zCDP. [FeldmanZrnic21]"""
    return sum((_not_negative(r, "each rho") for r in rhos), Fraction(0)) <= exact_above_zero(rho, "rho")


def gaussian_filter(n: Whole, sigmas: Iterable[Number], mu: Number) -> bool:
    """Whether to go on: Σ 1/(nσᵢ)² ≤ μ², decided exactly. The run is μ-GDP, for means of n values in [0, 1].

    [SmithThakurta22]
    """
    rows = whole(n, "n")
    spent = sum((1 / (rows * exact_above_zero(s, "each sigma")) ** 2 for s in sigmas), Fraction(0))
    return spent <= exact_above_zero(mu, "mu") ** 2


def _checked(prices: Prices) -> tuple[list[float], Fraction]:
    spent: list[float] = []
    slack = Fraction(0)
    for eps, delta in prices:
        price = _not_negative(eps, "each epsilon")
        require(price <= 700, f"each epsilon must be at most 700, not {eps}")
        spent.append(float(price))
        slack += _not_negative(delta, "each delta")
    return spent, slack


def _not_negative(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    require(number >= 0, f"{name} must not be negative, not {value}")
    return number
