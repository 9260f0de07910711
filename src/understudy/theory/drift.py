"""Posterior drift: the sharpest certificate for Gaussian noise.

Theorem (own; refereed, not peer reviewed). Answers a_j = q_j(S) + N(0, σ_j²), σ_j chosen adaptively, and
μ² = Σ 1/(nσ_j)² bounded by a constant fixed in advance. With probability 1 - β, for all j at once,

    |a_j - q_j(D)| ≤ CVaR_β(max_j |noise_j|) + sqrt(CVaR_β(((e^{μ|z|/2} - 1)/2)²)),   z standard normal.

Conditions of use: as for `cvar`, continuous normal noise, caps on k and σ declared in advance, μ enforced.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, log, sqrt

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero
from understudy.theory.cvar import best_sigma
from understudy.theory.minimise import root


def drift_V_gauss(mu: Number, beta: Number) -> float:
    """sqrt((M(2a) - 2M(a) + M(0))/(2β)), a = μ/2, M(c) = e^{c²/2} Φ(c - z₀), z₀ = Φ⁻¹(1 - β/2)."""
    a, failure = above_zero(mu, "mu") / 2, float(probability(beta))
    z0 = -float(ndtri(failure / 2))

    def moment(c: float) -> float:
        return exp(c * c / 2) * float(ndtr(c - z0))

    return sqrt((moment(2 * a) - 2 * moment(a) + moment(0.0)) / (2 * failure))


def drift_V_sharp(mu: Number, beta: Number) -> float:
    """The same with μ|z|/2 replaced by R, P[R > h] = Φ(-2h/μ - μ/2) + e^{-2h} Φ(-2h/μ + μ/2)."""
    return _sharp(above_zero(mu, "mu"), float(probability(beta)))


@lru_cache(maxsize=4096)
def _sharp(mu: float, beta: float) -> float:
    def tail(h: float) -> float:
        return float(ndtr(-2 * h / mu - mu / 2)) + exp(-2 * h) * float(ndtr(-2 * h / mu + mu / 2))

    quantile = root(lambda h: tail(h) - beta, 0.0, 40 * mu + 1)
    # CVaR of ((e^R - 1)/2)²: its value at the quantile, and the tail integrated by parts
    grows = quad(
        lambda h: tail(h) * expm1(h) * exp(h) / 2, quantile, quantile + 20 * mu, epsrel=1e-11, limit=400
    )[0]
    return sqrt((expm1(quantile) / 2) ** 2 + grows / beta)


def drift_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ): k adaptive queries answered with N(0, σ²) noise, at the best σ."""
    return best_sigma(n, k, beta, drift_V_gauss)


def drift_width_sharp(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ) by the sharp form."""
    return best_sigma(n, k, beta, drift_V_sharp)


def drift_weight(j: Whole, beta: Number) -> float:
    """w_j = sqrt(2 ln(2j(j+1)/β)): weights for an unbounded number of queries, fixed in advance."""
    position = above_zero(j, "j")
    return sqrt(2 * (log(2) + log(position) + log(position + 1) - log(float(probability(beta)))))


def adaptive_noise(beta: Number) -> float:
    """CVaR_β(sup_j |g_j|/w_j) over all j ≥ 1, independent standard normals, weights `drift_weight`."""
    failure = float(probability(beta))
    weights = np.array([drift_weight(j, failure) for j in range(1, 20_001)])

    def tail(t: float) -> float:
        near = 2 * ndtr(-t * weights)
        # beyond the listed ones, 2Φ(-tw) ≤ e^{-t²w²/2} = (2j(j+1)/β)^{-t²} ≤ (2j²/β)^{-t²}, summed as an integral
        far = (
            (2 / failure) ** (-t * t) * 20_000.0 ** (1 - 2 * t * t) / (2 * t * t - 1) if t * t > 0.5 else 1.0
        )
        return min(1.0, -expm1(float(np.log1p(-near).sum())) + far)

    quantile = root(lambda t: tail(t) - failure, 0.72, 10)
    return float(quantile + quad(tail, quantile, quantile + 6, epsrel=1e-9, limit=200)[0] / failure)
