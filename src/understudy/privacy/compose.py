"""Composition theorems, and the way from zCDP to (ε, δ).

Every function returns a number that is safe to promise: where a minimum is found numerically, any point of the
search is a valid bound, and the result is rounded away from the optimist's side.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, log1p, sqrt

from understudy.errors import ParameterError
from understudy.rational import probability

SLACK = 1e-9
"""Relative allowance for floating-point rounding, many times what the formulas below can lose."""


SMALLEST = 5e-324
"""The least positive float: what underflows is reported as this, never as 0."""


def _log_delta(rho: float, epsilon: float, excess: float) -> float:
    """ln δ from the Rényi bound of the order 1 + `excess`. [CKS20, Corollary 13]"""
    order = 1 + excess
    return excess * (order * rho - epsilon) + order * (log(excess) - log1p(excess)) - log(excess)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """A δ for which ρ-zCDP implies (ε, δ)-DP: the best order's [CKS20, Corollary 13]."""
    if not 0 <= rho < inf or not 0 <= epsilon < inf:
        raise ParameterError("rho and epsilon must be finite and not negative")
    if rho == 0:
        return 0.0
    # ln δ is convex in ln(order - 1) around its minimum near (ε + ρ)/(2ρ); golden-section search on that scale.
    centre = log(max((epsilon + rho) / (2 * rho) - 1, 1e-8) + 1e-8)
    low, high = min(centre, 0.0) - 12, max(centre, 0.0) + 12
    ratio = (sqrt(5) - 1) / 2
    for _ in range(120):
        before = low, high
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _log_delta(rho, epsilon, exp(left)) < _log_delta(rho, epsilon, exp(right)):
            high = right
        else:
            low = left
        if (low, high) == before:  # every later step would repeat this one
            break
    delta = exp(min(0.0, _log_delta(rho, epsilon, exp((low + high) / 2)))) * (1 + SLACK)
    return min(1.0, max(delta, SMALLEST))


def _representable(delta: float) -> float:
    target = float(probability(delta, "delta"))
    if target < 1e-300:
        raise ParameterError(f"delta must be at least 1e-300, not {delta}")
    return target


@lru_cache(maxsize=4096)  # a search of milliseconds, and the same prices are quoted again and again
def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest ε found for which ρ-zCDP implies (ε, δ)-DP: `zcdp_delta` inverted from above."""
    target = _representable(delta)
    if not 0 <= rho < inf:
        raise ParameterError("rho must be finite and not negative")
    if rho == 0:
        return 0.0
    low, high = 0.0, rho + 2 * sqrt(rho * log(1 / target))  # the closed form [BunSteinke16, Proposition 1.3]
    if zcdp_delta(rho, 0.0) <= target:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:  # neighbouring floats: the search is at its end
            break
        low, high = (low, middle) if zcdp_delta(rho, middle) <= target else (middle, high)
    return high


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest ρ found for which ρ-zCDP implies (ε, δ)-DP: `zcdp_delta` inverted from below."""
    target = _representable(delta)
    if not 0 < epsilon < inf:
        raise ParameterError("epsilon must be positive and finite")
    low, high = 0.0, epsilon
    while zcdp_delta(high, epsilon) <= target:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= target else (low, middle)
    return low
