"""Posterior drift for a session of any length, with noise that is chosen on the way.

The theorem and its forms for a fixed number of queries, which the product relies on, live in
`understudy.theory.drift` and are imported here.
"""

from __future__ import annotations

from functools import lru_cache
from math import expm1, log, sqrt

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, whole
from understudy.theory.drift import MAX_MU, drift_V_gauss, drift_V_sharp, drift_width, drift_width_sharp
from understudy.theory.minimise import root

__all__ = [
    "MAX_MU",
    "adaptive_noise",
    "drift_V_gauss",
    "drift_V_sharp",
    "drift_weight",
    "drift_width",
    "drift_width_adaptive",
    "drift_width_sharp",
]


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
