"""Posterior drift: the sharpest certificate for Gaussian noise.

Theorem (own; refereed, not peer reviewed). Answers a_j = q_j(S) + N(0, σ_j²), σ_j chosen adaptively, and
μ² = Σ 1/(nσ_j)² bounded by a constant fixed in advance. With probability 1 - β, for all j at once,

    |a_j - q_j(D)| ≤ CVaR_β(max_j |noise_j|) + sqrt(CVaR_β(((e^{μ|z|/2} - 1)/2)²)),   z standard normal.

Conditions of use: as for `cvar`, continuous normal noise, caps on k and σ declared in advance, μ enforced.
"""

from __future__ import annotations

from functools import lru_cache
from math import expm1, inf, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, whole
from understudy.theory.cvar import best_sigma
from understudy.theory.minimise import root

MAX_MU = 20.0
"""Above this the drift terms are infinite: they say nothing from μ = 1 on, and here they outgrow floats."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)


def drift_V_gauss(mu: Number, beta: Number) -> float:
    """sqrt((M(2a) - 2M(a) + M(0))/(2β)), a = μ/2, M(c) = e^{c²/2} Φ(c - z₀), z₀ = Φ⁻¹(1 - β/2).

    Computed as the integral it stands for, (1/(2β))∫_{z₀}^∞ (e^{az} - 1)² φ(z) dz: for small μ the closed form
    is a difference of nearly equal numbers, and would round to less than the truth.
    """
    a, failure = above_zero(mu, "mu") / 2, float(probability(beta))
    if 2 * a > MAX_MU:
        return inf
    z0 = -float(ndtri(failure / 2))
    # e^{2az}φ(z) is greatest at 2a; 12 standard deviations beyond that and beyond z₀ nothing is left
    half = (max(2 * a - z0, 0.0) + 12) / 2
    z = z0 + half * (1 + _NODES)
    density = np.expm1(a * z) ** 2 * np.exp(-z * z / 2)
    return sqrt(half * float(_WEIGHTS @ density) / (2 * failure * sqrt(2 * pi)))


def drift_V_sharp(mu: Number, beta: Number) -> float:
    """The same with μ|z|/2 replaced by R, P[R > h] = Φ(-2h/μ - μ/2) + e^{-2h} Φ(-2h/μ + μ/2)."""
    scale, failure = above_zero(mu, "mu"), float(probability(beta))
    return _sharp(scale, failure) if scale <= MAX_MU else inf


@lru_cache(maxsize=4096)
def _sharp(mu: float, beta: float) -> float:
    def tail(x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P[R > μx/2]."""
        return ndtr(-x - mu / 2) + np.exp(-mu * x) * ndtr(-x + mu / 2)

    x0 = root(lambda x: float(tail(np.array([x]))[0]) - beta, 0.0, mu / 2 + 40)
    # CVaR of ((e^R - 1)/2)²: its value at the quantile, and the tail integrated by parts
    half = (max(mu / 2 - x0, 0.0) + 12) / 2
    x = x0 + half * (1 + _NODES)
    grows = half * float(_WEIGHTS @ (tail(x) * np.expm1(mu * x / 2) * np.exp(mu * x / 2))) * mu / 4
    return sqrt((expm1(mu * x0 / 2) / 2) ** 2 + grows / beta)


def drift_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ): k adaptive queries answered with N(0, σ²) noise, at the best σ."""
    return best_sigma(n, k, beta, drift_V_gauss)


def drift_width_sharp(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ) by the sharp form."""
    return best_sigma(n, k, beta, drift_V_sharp)


def drift_weight(j: Whole, beta: Number) -> float:
    """w_j = sqrt(2 ln(2j(j+1)/β)): weights for an unbounded number of queries, fixed in advance."""
    position = whole(j, "j")
    return sqrt(2 * (log(2) + log(position) + log(position + 1) + log_of_inverse(beta)))


def drift_width_adaptive(j: Whole, sigma_j: Number, s0: Number, mu: Number, beta: Number) -> float:
    """Query j of a session of any length, with a σ_j chosen on the way: max(1, w_jσ_j/s₀)·(s₀N_β + drift).

    N_β = `adaptive_noise`(β), w_j = `drift_weight`(j, β), drift = `drift_V_sharp`(μ, β). Fixed in advance: s₀, β
    and the cap μ² ≥ Σ 1/(nσ_j)², which is enforced before an answer is drawn. All queries are covered at once.
    """
    scale, failure = above_zero(s0, "s0"), float(probability(beta))
    stretch = max(1.0, drift_weight(j, beta) * above_zero(sigma_j, "sigma_j") / scale)
    return stretch * (scale * adaptive_noise(failure) + drift_V_sharp(mu, beta))


_LISTED = 20_000


@lru_cache(maxsize=64)
def adaptive_noise(beta: float) -> float:
    """CVaR_β(sup_j |g_j|/w_j) over all j ≥ 1, independent standard normals, weights `drift_weight`; from above."""
    failure = float(probability(beta))
    j = np.arange(1, _LISTED + 1, dtype=np.float64)
    weights = np.sqrt(2 * (log(2) + np.log(j) + np.log(j + 1) - log(failure)))

    def tail(t: float) -> float:
        near = 2 * ndtr(-t * weights)
        # beyond the listed ones, 2Φ(-tw) ≤ e^{-t²w²/2} = (2j(j+1)/β)^{-t²} ≤ (2j²/β)^{-t²}, summed as an integral
        power = 2 * t * t - 1
        far = (2 / failure) ** (-t * t) * float(_LISTED) ** -power / power if power > 0 else 1.0
        return min(1.0, -expm1(float(np.log1p(-near).sum())) + far)

    quantile = root(lambda t: tail(t) - failure, 0.72, 10)
    return float(quantile + quad(tail, quantile, quantile + 6, epsrel=1e-9, limit=200)[0] / failure)
