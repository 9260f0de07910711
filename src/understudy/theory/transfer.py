"""Transfer theorems of the literature: privacy and accuracy on the sample give accuracy on the population."""

from __future__ import annotations

from math import e, exp, expm1, floor, inf, log, log1p, pi, sqrt, tanh

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, whole
from understudy.theory.composition import log_gdp_delta
from understudy.theory.minimise import best_from
from understudy.theory.normal_law import ndtri
from understudy.theory.normal_noise import NoiseCertificate, alone, gdp_delta_at, gdp_mu, least, quantile


def pure_dp_width(eps: Number) -> float:
    """tanh(ε/4): under pure ε-DP no query's posterior mean is further from the population's, for any transcript.

    Own, sharp: posterior densities have ratio e^ε at most and mean 1.
    """
    return tanh(above_zero(eps, "eps") / 4)


def _quantile(k: int, beta: float) -> float:
    """t with P[max of k |N(0,1)| > t] = β."""
    return -float(ndtri(-expm1(log1p(-beta) / k) / 2))


def bnsssu_seed_width(n: Whole, k: Whole, beta: Number) -> float:
    """Gaussian answers through Lecture 18's Theorem 0.2, corrected: 6ε plus the noise, σ and ε chosen best.

    Overfitting by 6ε has probability p ≤ max{4δ/ε, 2e^{-ε²n/8}} for sqrt(12/n) ≤ ε ≤ 1/8 and δ ≤ ε/16, with the
    exact Gaussian curve for δ; the noise gets the rest of β. 1 where the theorem's conditions cannot be met.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    least = sqrt(12 / rows)
    if least > 1 / 8:
        return 1.0

    def width(at: tuple[float, ...]) -> float:
        sigma, eps = exp(at[0]), at[1]
        by_chance = 2 * exp(-eps * eps * rows / 8)
        if not least <= eps <= 1 / 8 or by_chance >= failure:
            return inf
        delta = exp(log_gdp_delta(eps, sqrt(queries) / (rows * sigma)))
        overfit = max(4 * delta / eps, by_chance)
        if delta > eps / 16 or overfit >= failure:
            return inf
        return sigma * _quantile(queries, failure - overfit) + 6 * eps

    starts = [(ls, eps) for eps in np.linspace(least, 1 / 8, 40) for ls in np.linspace(log(1e-6), 0, 120)]
    return min(1.0, best_from(width, starts)[0])


def bnsssu_rrsstw_width(n: Whole, k: Whole, beta: Number) -> float:
    """Gaussian answers through the monitor argument of [BNSSSU16] with the constants of [RRSSTW20].

    (e^ε - 1 + 2⌊1/β⌋δ + sqrt(ln(4k/δ)/ρ)/n)/(1 - (1-β)^⌊1/β⌋), ε = ρk + 2 sqrt(ρk ln(sqrt(πkρ)/δ)), best ρ and δ.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    runs = floor(1 / failure)
    kept = -expm1(runs * log1p(-failure))

    def width(at: tuple[float, ...]) -> float:
        rho, delta = exp(at[0]), exp(at[1])
        ratio = sqrt(pi * queries * rho) / delta
        spread = log(max(ratio if ratio >= e else 1 / delta, 1.0))
        eps = rho * queries + 2 * sqrt(rho * queries * spread)
        if eps > 50:
            return inf
        noise = sqrt(max(log(4 * queries / delta), 0.0) / rho) / rows
        return (expm1(eps) + 2 * runs * delta + noise) / kept

    starts = [(lr, ld) for lr in np.linspace(-45, 0, 60) for ld in (-6.0, -8.0, -12.0, -16.0, -20.0)]
    return min(1.0, best_from(width, starts)[0])


def jlnrss_width(n: Whole, k: Whole, beta: Number, dcoef: Number = 2) -> float:
    """Gaussian answers through [JLNRSS20]: for all c, d > 0, P[off by more than α + (e^ε - 1) + c + `dcoef`·d]
    is at most β_s/c + δ/d; σ, ε and β_s chosen best, c and d in closed form. `dcoef` = 1 is our re-derivation.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    weight = above_zero(dcoef, "dcoef")

    def width(at: tuple[float, ...]) -> float:
        sigma, eps, share = (exp(x) for x in at)
        if eps > 3 or share > 0.5:
            return inf
        delta = exp(log_gdp_delta(eps, sqrt(queries) / (rows * sigma)))
        slack = (sqrt(share) + sqrt(weight * delta)) ** 2 / failure
        return sigma * _quantile(queries, share) + expm1(eps) + slack

    starts = [
        (ls, log(f) + log(sqrt(queries) / rows) - ls, lb)
        for ls in np.linspace(-14, 1, 40)
        for f in (1, 2, 3, 4, 5)
        for lb in (-6.0, -8.0, -10.0, -14.0)
    ]
    return min(1.0, best_from(width, starts)[0])


# ---- the same at a given noise


def _lecture18(n: int, k: int, beta: float, sigma: float) -> float:
    """6ε and the noise's quantile, at the best ε that the theorem allows."""
    lowest = sqrt(12 / n)

    def width(eps: float) -> float:
        if not lowest <= eps <= 1 / 8:
            return inf
        delta = gdp_delta_at(eps, gdp_mu(n, k, sigma))
        overfit = max(4 * delta / eps, 2 * exp(-eps * eps * n / 8))
        if delta > eps / 16 or overfit >= beta:
            return inf
        return sigma * quantile(k, beta - overfit) + 6 * eps

    return min(1.0, least(width, lowest, 1 / 8)) if lowest <= 1 / 8 else 1.0


def _bnsssu16(n: int, k: int, beta: float, sigma: float) -> float:
    rho, runs = 1 / (2 * (n * sigma) ** 2), floor(1 / beta)
    kept = -expm1(runs * log1p(-beta))

    def width(log_delta: float) -> float:
        ratio = sqrt(pi * k * rho) / exp(log_delta)
        spread = log(ratio) if ratio >= exp(1) else -log_delta
        eps = rho * k + 2 * sqrt(rho * k * max(spread, 0.0))
        noise = sqrt(max(log(4 * k) - log_delta, 0.0) / rho) / n
        return (expm1(eps) + 2 * runs * exp(log_delta) + noise) / kept if eps < 50 else inf

    return min(1.0, least(width, -40.0, -1e-3))


def _jlnrss20(n: int, k: int, beta: float, sigma: float) -> float:
    mu = gdp_mu(n, k, sigma)

    def width(log_share: float) -> float:
        share = exp(log_share)

        def private_part(log_eps: float) -> float:
            eps = exp(log_eps)
            slack = (sqrt(share) + sqrt(2 * gdp_delta_at(eps, mu))) ** 2 / beta
            return expm1(eps) + slack if eps < 3 else inf

        return sigma * quantile(k, share) + least(private_part, log(mu) - 2, log(3))

    return min(1.0, least(width, -30.0, log(0.5)))


LECTURE18 = NoiseCertificate(
    name="lecture18",
    theorem="Lecture 18, Theorem 0.2 (corrected)",
    best=alone(bnsssu_seed_width),
    at=_lecture18,
    plan_name="gaussian-lecture18",
)

BNSSSU16 = NoiseCertificate(
    name="bnsssu16",
    theorem="Bassily et al. 2016, constants of Rogers et al. 2020",
    best=alone(bnsssu_rrsstw_width),
    at=_bnsssu16,
    plan_name="gaussian-bnsssu16",
)

JLNRSS20 = NoiseCertificate(
    name="jlnrss20",
    theorem="Jung et al. 2020",
    best=alone(lambda n, k, beta: jlnrss_width(n, k, beta, 2)),
    at=_jlnrss20,
    plan_name="gaussian-jlnrss20",
)
