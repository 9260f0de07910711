"""Posterior drift: the sharpest certificate for Gaussian noise.

Theorem (own; refereed, not peer reviewed). Answers a_j = q_j(S) + N(0, σ_j²), σ_j chosen adaptively, and
μ² = Σ 1/(nσ_j)² bounded by a constant fixed in advance. With probability 1 - β, for all j at once,

    |a_j - q_j(D)| ≤ CVaR_β(max_j |noise_j|) + sqrt(CVaR_β(((e^{μ|z|/2} - 1)/2)²)),   z standard normal.

Conditions of use: as for `cvar`, continuous normal noise, caps on k and σ declared in advance, μ enforced. A form
for sessions of any length is in `understudy_textbook.drift`.
"""

from __future__ import annotations

from functools import lru_cache
from math import expm1, inf, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero
from understudy.theory.cvar import best_sigma, cvar_noise_gauss
from understudy.theory.minimise import root
from understudy.theory.normal_law import ndtr, ndtri
from understudy.theory.normal_noise import NoiseCertificate, gdp_mu

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


def _drift(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + drift_V_gauss(gdp_mu(n, k, sigma), beta)


def _drift_sharp(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + drift_V_sharp(gdp_mu(n, k, sigma), beta)


DRIFT = NoiseCertificate(
    name="drift",
    theorem="posterior drift",
    best=drift_width,
    at=_drift,
    plan_theorem="posterior drift, Gaussian noise",
    own=True,
    by_name=True,
)

DRIFT_SHARP = NoiseCertificate(
    name="drift-sharp",
    theorem="posterior drift, sharp form",
    best=drift_width_sharp,
    at=_drift_sharp,
    own=True,
    by_name=True,
)
