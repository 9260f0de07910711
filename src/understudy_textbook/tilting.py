"""Theorem T for any law of noise whose Λ is known: the theorem itself, its inverse, and Λ law by law.

The theorem with its proof, and the forms that the product relies on, live in `understudy.theory.tilting` and
are imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, at_least_zero, exp_of, log_of_inverse, whole
from understudy.theory.minimise import best_from, best_on_line
from understudy.theory.tilting import (
    above_one,
    discrete_gaussian_log_bound,
    outward,
    tilting_gauss_t,
    tilting_split,
    tilting_t,
    tilting_width,
    tilting_width_at,
    tilting_width_discrete,
    transfer_log_bound,
    transfer_order,
)

__all__ = [
    "above_one",
    "best_tilting_t",
    "discrete_gaussian_log_bound",
    "laplace_log_bound",
    "normal_log_bound",
    "outward",
    "table_log_bound",
    "tilting_failure",
    "tilting_gauss_alpha",
    "tilting_gauss_t",
    "tilting_split",
    "tilting_t",
    "tilting_transfer_t",
    "tilting_width",
    "tilting_width_at",
    "tilting_width_discrete",
    "tilting_width_laplace",
    "transfer_log_bound",
    "transfer_order",
]

_ALPHAS = np.linspace(-5.0, 15.0, 81).tolist()
"""ln(α - 1) of the scan for the best α; every α gives a valid bound."""


def tilting_failure(n: Whole, t: Number, alpha: Number, log_bound: Number) -> float:
    """min(1, exp(Λ - 2nt²(α-1)/α)): the probability that a question exceeds its expectation by t."""
    rows, order = whole(n, "n"), above_one(alpha)
    exponent = (
        at_least_zero(log_bound, "log_bound") - 2 * rows * above_zero(t, "t") ** 2 * (order - 1) / order
    )
    return min(1.0, outward(exp_of(min(exponent, 0.0))))


def best_tilting_t(n: Whole, beta: Number, log_bound: Callable[[float], float]) -> tuple[float, float]:
    """(t, α) at the best α, for a Λ that is a function of α, infinite where it says nothing."""
    rows, failure = whole(n, "n"), probability(beta)

    def at(log_excess: float) -> float:
        bound = log_bound(1 + exp(log_excess))
        return tilting_t(rows, failure, 1 + exp(log_excess), bound) if bound < inf else inf

    t, place = best_on_line(at, _ALPHAS)
    return t, 1 + exp(place)


def normal_log_bound(n: Whole, alpha: Number, mu: Number) -> float:
    """nαμ²/8: normal noise, rounded or not, with Σ 1/σ_j² ≤ μ² in counts."""
    return outward(whole(n, "n") * above_one(alpha) * above_zero(mu, "mu") ** 2 / 8)


def laplace_log_bound(n: Whole, alpha: Number, scale: Number, k: Whole = 1) -> float:
    """knα/(8b²): k answers with Laplace noise of scale b, continuous or discrete."""
    return outward(whole(k, "k") * whole(n, "n") * above_one(alpha) / (8 * above_zero(scale, "scale") ** 2))


def table_log_bound(n: Whole, alpha: Number, sigma: Number, cells: Whole) -> float:
    """nα(1 - 1/C)/(2σ²): normal noise, rounded or not, on the C cells of a table, as of a GROUP BY."""
    among = whole(cells, "cells")
    return outward(whole(n, "n") * above_one(alpha) * (1 - 1 / among) / (2 * above_zero(sigma, "sigma") ** 2))


def tilting_gauss_alpha(mu: Number, n: Whole, beta: Number) -> float:
    """1 + sqrt(1 + 8 ln(1/β)/(nμ²)): the α of `tilting_gauss_t`, to be fixed in advance."""
    return 1 + sqrt(1 + 8 * log_of_inverse(beta) / (whole(n, "n") * above_zero(mu, "mu") ** 2))


def tilting_width_laplace(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, scale) with Laplace noise on scores, continuous or discrete on counts, at the best scale and split.

    The largest of k is beyond b·ln(1/(1 - (1-β)^{1/k})) with probability β; a discrete one a count further at
    most.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))

    def width(at: tuple[float, ...]) -> float:
        scale, share = exp(at[0]), failure / (1 + exp(-at[1]))
        if not 0 < share < failure:
            return inf
        t = tilting_gauss_t(
            sqrt(queries) / (rows * scale), rows, failure - share
        )  # the same Λ as normal noise
        return scale * -log(-expm1(log1p(-share) / queries)) + 1 / rows + t

    centre = log(queries**0.25 / sqrt(8 * rows))
    starts = [(centre + step, logit) for step in (-1.5, -0.7, 0.0, 0.7) for logit in (0.0, 2.0, 4.0, 7.0)]
    found, place = best_from(width, starts)
    return min(1.0, outward(found)), exp(place[0])


def tilting_transfer_t(rho: Number, n: Whole, beta: Number) -> float:
    """sqrt(ρ)/2 + sqrt(ρ/4 + ln(1/β)/(2n)) for a flat sum ρ of prices, one row replaced, of noise on counts.

    A normal answer moved by Δ when a row is replaced costs ρ = Δ²/(2σ²) and adds nαρ/2 to Λ; a Laplace answer
    of that sensitivity in total costs ρ = ε²/2 and adds nαε²/8, which is less. It is the sum of prices that
    enters: a joint price counts several answers about the same row once.

    >>> round(tilting_transfer_t(0.02, 10**5, 0.05), 4)
    0.1415
    """
    return tilting_gauss_t(2 * sqrt(above_zero(rho, "rho")), n, beta)
