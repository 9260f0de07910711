"""The CVaR transfer: private answers stay close to the population, from the privacy curve alone.

Theorem (own). Let δ(·) be the privacy curve of the whole interaction, for neighbours that differ in one replaced
row. With probability 1 - β, for all adaptively chosen queries j at once,

    |a_j - q_j(D)| ≤ CVaR_β(max_j |noise_j|) + min_{s>0} { s + [δ(ln(1+2s)) + (1-2s)₊ δ(-ln(1-2s))]/(2β) }.

A quantile is at most the CVaR, CVaR is subadditive, the answers' posterior error is a conditional expectation of
the largest noise, and the posterior's drift is an f-divergence of the curve.

Conditions of use: queries are means of values in [0, 1] over independent rows; nobody else looks at the sample;
the curve is that of the budget's cap, never of what was spent so far; k is fixed in advance; the Gaussian forms
need continuous normal noise (`cvar_V_zcdp` serves the discrete Gaussian).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, whole
from understudy.theory.composition import log_gdp_delta, zcdp_delta
from understudy.theory.minimise import best_from, best_on_line, root
from understudy.theory.normal_law import ndtr
from understudy.theory.normal_noise import NoiseCertificate, gdp_mu
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width

Curve = Callable[[float], float]
"""ε to δ."""

MAX_MU = 15.0
"""Above this the Gaussian transfer term is infinite: it is vacuous from μ = 1 on, and here it outgrows floats."""

_LINEAR = 1e-8  # below, the term is proportional to μ up to rounding, and 1 + 2s has no digits left


def cvar_noise_gauss(sigma: Number, k: Whole, beta: Number) -> float:
    """CVaR_β of the largest of k independent |N(0, σ²)|."""
    return above_zero(sigma, "sigma") * _unit_noise(whole(k, "k"), float(probability(beta)))


def _unit_noise(k: int, beta: float) -> float:
    from scipy.integrate import quad  # late: it takes a quarter of a second to load

    def tail(t: float) -> float:
        return -expm1(k * log1p(-2 * float(ndtr(-t))))

    quantile = root(lambda t: tail(t) - beta, 1e-9, 60)
    rest = quad(tail, quantile, quantile + 20, epsabs=1e-15, epsrel=1e-13, limit=500)[0]
    return float(quantile + rest / beta)


def cvar_noise_laplace(scale: Number, k: Whole, beta: Number) -> float:
    """scale·(ln(k/β) + 1) ≥ CVaR_β of the largest of k |Laplace|, whose tail is at most k·e^{-t/scale}."""
    return above_zero(scale, "scale") * (log(whole(k, "k")) + log_of_inverse(beta) + 1)


def cvar_V(delta_fn: Curve, beta: Number, *, around: float | None = None) -> float:
    """The transfer term for any privacy curve; every s gives a valid bound, the best one found is returned.

    `around` tells the order of the best s, where it is known, and so where to search.
    """
    failure = float(probability(beta))
    low, high, points = (1e-9, 10.0, 140) if around is None else (around / 10, around * 30, 20)

    def bound(log_s: float) -> float:
        s = exp(log_s)
        other = (1 - 2 * s) * delta_fn(-log1p(-2 * s)) if s < 0.5 else 0.0
        return s + (delta_fn(log1p(2 * s)) + other) / (2 * failure)

    return best_on_line(bound, np.linspace(log(low), log(high), points).tolist())[0]


def cvar_V_gauss(mu: Number, beta: Number) -> float:
    """The transfer term of μ-Gaussian privacy, at the exact minimiser: where P[|r - 1|/2 > s] = β, r lognormal."""
    scale, failure = above_zero(mu, "mu"), float(probability(beta))
    if scale > MAX_MU:
        return inf
    if scale < _LINEAR:
        return scale / _LINEAR * cvar_V_gauss(_LINEAR, failure)

    def tail(s: float) -> float:
        below = float(ndtr((log1p(-2 * s) + scale**2 / 2) / scale)) if s < 0.5 else 0.0
        return float(ndtr(-(log1p(2 * s) + scale**2 / 2) / scale)) + below

    s = exp(root(lambda u: tail(exp(u)) - failure, log(scale) - 40, 40 * scale + 1))
    other = (1 - 2 * s) * _gauss_delta(scale, -log1p(-2 * s)) if s < 0.5 else 0.0
    return s + (_gauss_delta(scale, log1p(2 * s)) + other) / (2 * failure)


def _gauss_delta(mu: float, eps: float) -> float:
    return exp(log_gdp_delta(eps, mu))


def cvar_V_zcdp(rho: Number, beta: Number, *, aside: float = 0.0, steps: int = 1) -> float:
    """The transfer term of ρ-zCDP: what the discrete Gaussian, or any mechanism charged in ρ, may use.

    Where outputs of mass δ' = `aside` may have been set aside for it, for neighbours that are one step apart, the
    curve is larger by δ', and by δ'(1 + exp(ε)) for tables that are two `steps` apart.
    """
    amount = above_zero(rho, "rho")
    if not aside:
        return cvar_V(partial(zcdp_delta, amount), beta, around=sqrt(amount))

    def curve(epsilon: float) -> float:
        return min(1.0, zcdp_delta(amount, epsilon) + aside * sum(exp(epsilon * i) for i in range(steps)))

    return cvar_V(curve, beta, around=sqrt(amount))


def cvar_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ): k adaptive queries answered with N(0, σ²) noise, at the best σ."""
    return best_sigma(n, k, beta, cvar_V_gauss)


def cvar_width_discrete(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ) with discrete Gaussian noise on counts, whose curve is bounded through zCDP.

    P[X ≥ m] of the discrete Gaussian is at most P[N ≥ m - 1] of the continuous one for m ≥ 1 [CKS20], so that the
    largest noise is at most one count, 1/n, larger.
    """
    found, sigma = best_sigma(n, k, beta, _discrete_term)
    return found + 1 / whole(n, "n"), sigma


@lru_cache(maxsize=1024)
def _discrete_term(mu: float, beta: float) -> float:
    """The transfer term of noise of which the continuous kind would be μ-Gaussian private: μ²/2-zCDP."""
    return cvar_V_zcdp(mu**2 / 2, beta)


def best_sigma(
    n: Whole, k: Whole, beta: Number, transfer: Callable[[float, float], float]
) -> tuple[float, float]:
    """The best σ for a transfer term that is a function of μ = sqrt(k)/(nσ).

    The search is along μ, over the same points for all n and k, so that a transfer term that remembers its values
    computes them there once.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    noise = _unit_noise(queries, failure)

    def sigma(x: float) -> float:
        return sqrt(queries) / (rows * 5) * exp(x)

    def width(x: float) -> float:
        return sigma(x) * noise + transfer(5 * exp(-x), failure) if x > 0 else inf

    found, at = best_on_line(width, np.linspace(0, 14, 60).tolist())
    return found, sigma(at)


def pmw_cvar_width(n: Whole, k: Whole, X: Whole, beta: Number) -> float:
    """Private multiplicative weights behind sparse vector, and the transfer of its budget; noise chosen best.

    Threshold 3α/4; comparisons and told answers right to α/4 except with β_s; so the stand-in is within α where it
    is not updated, and off by α/2 where it is, which happens B = ⌊ln|X|/(2(α/2)²)⌋ times at most. A run of
    AboveThreshold with Lap(2/ε₀n) and Lap(4/ε₀n) is right to (2 ln(3B/β_s) + 4 ln(3k/β_s))/(ε₀n), an answer with
    Lap(1/ε₁n) to ln(3B/β_s)/(ε₁n); together B(ε₀² + ε₁²)/2-zCDP. A mere promise (α, β_s) enters the CVaR as
    α + β_s/β. 1 where nothing is promised.
    """
    rows, queries, log_universe = whole(n, "n"), whole(k, "k"), log(whole(X, "X", at_least=2))
    failure = float(probability(beta))

    def width(at: tuple[float, ...], transfer: Callable[[float], float]) -> float:
        alpha, share = exp(at[0]), exp(at[1])
        if alpha > 1 or share > failure:
            return inf
        updates = max(1, int(2 * log_universe / alpha**2))
        often, rare = log(3 * queries / share), log(3 * updates / share)
        compare, answer = (4 * x / (alpha * rows) for x in (2 * rare + 4 * often, rare))
        rho = updates * (compare**2 + answer**2) / 2
        return alpha + share / failure + transfer(rho) if rho < 20 else inf

    # the transfer term is nearly proportional to sqrt(ρ): that finds the place, the true term gives the width
    unit = cvar_V_zcdp(1e-4, failure) / sqrt(1e-4)
    starts = [(log(a), log(failure * f)) for a in np.geomspace(0.005, 0.9, 24) for f in (1e-2, 1e-3)]
    _, (at, share) = best_from(lambda place: width(place, lambda rho: unit * sqrt(rho)), starts)
    nearby = [at + 0.05 * i for i in range(-3, 4)]
    return min(
        1.0, best_on_line(lambda x: width((x, share), lambda rho: cvar_V_zcdp(rho, failure)), nearby)[0]
    )


def _cvar(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + cvar_V_gauss(gdp_mu(n, k, sigma), beta)


def _planned_discrete(s: PlanInputs) -> Width:
    width, sigma = cvar_width_discrete(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


CVAR = NoiseCertificate(
    name="cvar",
    theorem="CVaR transfer",
    best=cvar_width,
    at=_cvar,
    plan_theorem="CVaR transfer, Gaussian noise",
)

CVAR_DISCRETE = Planned(
    name="cvar-discrete",
    promises=VALIDITY,
    theorem="CVaR transfer, discrete Gaussian noise through zCDP",
    width=_planned_discrete,
    note="private as well: the noise is the one that protects people",
)
