"""Minima of functions whose every value is a valid bound: a search may miss the best, never promise too much.

scipy's searches are imported by the first that is made: they take a quarter of a second to load, and most programs
that import a bound never look for the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a continuous function changes sign between `low` and `high`."""
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-14))  # type: ignore[arg-type]  # the stub's overload


def best_on_line(function: Callable[[float], float], points: Iterable[float]) -> tuple[float, float]:
    """(value, place) of the least value: a scan of evenly spaced `points`, refined around the best of them."""
    from scipy.optimize import minimize_scalar

    scanned = list(points)
    values = [function(x) for x in scanned]
    at = values.index(min(values))
    if values[at] == inf:
        return inf, scanned[at]
    low, high = scanned[max(at - 1, 0)], scanned[min(at + 1, len(scanned) - 1)]
    # the parabola through three points must not meet an infinite one
    found: Any = minimize_scalar(
        lambda x: min(function(x), 1e9), bounds=(low, high), method="bounded", options={"xatol": 1e-10}
    )
    return min((float(found.fun), float(found.x)), (values[at], scanned[at]))


def best_from(
    function: Callable[[tuple[float, ...]], float], starts: Iterable[tuple[float, ...]]
) -> tuple[float, tuple[float, ...]]:
    """(value, place) of the least value near the best of some starting points (Nelder-Mead)."""
    from scipy.optimize import minimize

    value, start = min((function(start), start) for start in starts)
    if value == inf:
        return inf, start
    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
    found = minimize(lambda x: min(function(tuple(x)), 1e9), start, method="Nelder-Mead", options=options)
    return min((float(found.fun), tuple(map(float, found.x))), (value, start))
