"""From what a mechanism does to what its answers are worth: each theorem as a certificate.

What a mechanism does is its noise and privacy curve at the cap, or the tree of its transcripts, or the rejections
that it has met. `gaussian` takes any noise; without one, the theorem's own best is used (`best_sigma`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np
from scipy.special import ndtri

from understudy.errors import ParameterError
from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, whole
from understudy.theory.composition import log_gdp_delta
from understudy.theory.cvar import (
    Curve,
    cvar_noise_gauss,
    cvar_V,
    cvar_V_gauss,
    cvar_width,
    cvar_width_discrete,
)
from understudy.theory.drift import drift_V_gauss, drift_V_sharp, drift_width, drift_width_sharp
from understudy.theory.guess_and_check import gnc_failures_width, gnc_width
from understudy.theory.ladder import ladder_width
from understudy.theory.minimise import best_on_line
from understudy.theory.rogers20 import rz_width
from understudy.theory.transfer import bnsssu_rrsstw_width, bnsssu_seed_width, jlnrss_width, pure_dp_width
from understudy.theory.universe import universe_width
from understudy.validity.certificate import (
    ADVANCE,
    BEST,
    BOUNDED,
    CAP,
    ELSEWHERE,
    INDEPENDENT,
    ROUNDED,
    SEALED,
    UNREVIEWED,
    Certificate,
)

_ALWAYS = (INDEPENDENT, SEALED, ADVANCE, BOUNDED)

THEOREMS = {
    "cvar": "CVaR transfer",
    "drift": "posterior drift",
    "drift-sharp": "posterior drift, sharp form",
    "lecture18": "Lecture 18, Theorem 0.2 (corrected)",
    "bnsssu16": "Bassily et al. 2016, constants of Rogers et al. 2020",
    "jlnrss20": "Jung et al. 2020",
    "rogers20": "Rogers et al. 2020",
}
"""Certificates for means with normal noise, continuous or rounded. The drift ones are used by name only."""


def gaussian(
    rows: Whole, queries: Whole, beta: Number, *, sigma: Number | None = None, theorem: str = "cvar"
) -> Certificate:
    """Means with normal noise of standard deviation `sigma`; the theorem's best where none is given."""
    if theorem not in THEOREMS:
        raise ParameterError(f"no certificate {theorem!r}; there are: {', '.join(THEOREMS)}")
    n, k, failure = whole(rows, "rows"), whole(queries, "queries"), float(probability(beta))
    width = _BEST[theorem](n, k, failure) if sigma is None else _at(theorem, n, k, failure, sigma)
    extra = (UNREVIEWED,) if theorem.startswith("drift") else ()
    return Certificate(width, failure, THEOREMS[theorem], (*_ALWAYS, ROUNDED, CAP, *extra))


def discrete_gaussian(rows: Whole, queries: Whole, beta: Number) -> Certificate:
    """Counts with discrete Gaussian noise, private as well: its curve is bounded through zCDP."""
    width = cvar_width_discrete(rows, queries, beta)[0]
    return Certificate(width, float(probability(beta)), "CVaR transfer, through zCDP", (*_ALWAYS, CAP))


def private(curve: Curve, largest_noise: Number, beta: Number) -> Certificate:
    """Any mechanism with a privacy curve for one replaced row, and the CVaR_β of its largest error.

    A mere promise (α, β_s) on the sample counts as a CVaR of α + β_s/β.
    """
    width = above_zero(largest_noise, "largest_noise") + cvar_V(curve, beta)
    return Certificate(width, float(probability(beta)), "CVaR transfer", (*_ALWAYS, CAP))


def pure(epsilon: Number, largest_noise: Number, beta: Number) -> Certificate:
    """A purely ε-DP mechanism: tanh(ε/4) beyond the CVaR_β of its largest error."""
    width = above_zero(largest_noise, "largest_noise") + pure_dp_width(epsilon)
    return Certificate(width, float(probability(beta)), "pure privacy, tanh(ε/4)", (*_ALWAYS, CAP))


def guess_and_check(
    rows: Whole, queries: Whole, rejections: Whole, eta: Number, beta: Number, *, grid: Whole | None = None
) -> Certificate:
    """GuessAndCheck(η, m): all queries that could be asked, counted; ⌈2/η⌉ grid points unless given."""
    width = gnc_width(rows, queries, rejections, eta, beta, grid)
    return Certificate(width, float(probability(beta)), "GuessAndCheck, exact tree", (*_ALWAYS, ELSEWHERE))


def realised(rows: Whole, queries: Whole, failures: Whole, eta: Number, beta: Number) -> Certificate:
    """GuessAndCheck after the rejections that it has met: valid for every number of them at once."""
    width = gnc_failures_width(rows, queries, failures, eta, beta)
    theorem = f"GuessAndCheck, {whole(failures, 'failures', at_least=0)} realised failures"
    return Certificate(width, float(probability(beta)), theorem, (*_ALWAYS, ELSEWHERE))


def universe(rows: Whole, cells: Whole, beta: Number) -> Certificate:
    """Exact means over a finite universe: any number of queries."""
    lasting = (INDEPENDENT, BOUNDED, "the universe was fixed before the rows were seen")
    return Certificate(
        universe_width(rows, cells, beta), float(probability(beta)), "union over a finite universe", lasting
    )


def ladder(rows: Whole, queries: Whole, beta: Number) -> Certificate:
    """The running best, told on a grid when it is beaten by a step."""
    width = ladder_width(rows, queries, beta)[0]
    return Certificate(width, float(probability(beta)), "Ladder, exact tree", (*_ALWAYS, BEST))


_BEST: dict[str, Callable[[int, int, float], float]] = {
    "cvar": lambda n, k, beta: cvar_width(n, k, beta)[0],
    "drift": lambda n, k, beta: drift_width(n, k, beta)[0],
    "drift-sharp": lambda n, k, beta: drift_width_sharp(n, k, beta)[0],
    "lecture18": bnsssu_seed_width,
    "bnsssu16": bnsssu_rrsstw_width,
    "jlnrss20": lambda n, k, beta: jlnrss_width(n, k, beta, 2),
    "rogers20": rz_width,
}


# ---- the same at a given noise


def _at(theorem: str, n: int, k: int, beta: float, sigma: Number) -> float:
    return _GIVEN[theorem](n, k, beta, above_zero(sigma, "sigma"))


def quantile(k: int, beta: float) -> float:
    """t with P[max of k |N(0, 1)| > t] = β."""
    return -float(ndtri(-expm1(log1p(-beta) / k) / 2))


def _mu(n: int, k: int, sigma: float) -> float:
    return sqrt(k) / (n * sigma)


def _delta(eps: float, mu: float) -> float:
    return exp(log_gdp_delta(eps, mu))


def _cvar(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + cvar_V_gauss(_mu(n, k, sigma), beta)


def _drift(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + drift_V_gauss(_mu(n, k, sigma), beta)


def _drift_sharp(n: int, k: int, beta: float, sigma: float) -> float:
    return cvar_noise_gauss(sigma, k, beta) + drift_V_sharp(_mu(n, k, sigma), beta)


def _lecture18(n: int, k: int, beta: float, sigma: float) -> float:
    """6ε and the noise's quantile, at the best ε that the theorem allows."""
    least = sqrt(12 / n)

    def width(eps: float) -> float:
        if not least <= eps <= 1 / 8:
            return inf
        delta = _delta(eps, _mu(n, k, sigma))
        overfit = max(4 * delta / eps, 2 * exp(-eps * eps * n / 8))
        if delta > eps / 16 or overfit >= beta:
            return inf
        return sigma * quantile(k, beta - overfit) + 6 * eps

    return min(1.0, _least(width, least, 1 / 8)) if least <= 1 / 8 else 1.0


def _bnsssu16(n: int, k: int, beta: float, sigma: float) -> float:
    rho, runs = 1 / (2 * (n * sigma) ** 2), floor(1 / beta)
    kept = -expm1(runs * log1p(-beta))

    def width(log_delta: float) -> float:
        ratio = sqrt(pi * k * rho) / exp(log_delta)
        spread = log(ratio) if ratio >= exp(1) else -log_delta
        eps = rho * k + 2 * sqrt(rho * k * max(spread, 0.0))
        noise = sqrt(max(log(4 * k) - log_delta, 0.0) / rho) / n
        return (expm1(eps) + 2 * runs * exp(log_delta) + noise) / kept if eps < 50 else inf

    return min(1.0, _least(width, -40.0, -1e-3))


def _jlnrss20(n: int, k: int, beta: float, sigma: float) -> float:
    mu = _mu(n, k, sigma)

    def width(log_share: float) -> float:
        share = exp(log_share)

        def private_part(log_eps: float) -> float:
            eps = exp(log_eps)
            slack = (sqrt(share) + sqrt(2 * _delta(eps, mu))) ** 2 / beta
            return expm1(eps) + slack if eps < 3 else inf

        return sigma * quantile(k, share) + _least(private_part, log(mu) - 2, log(3))

    return min(1.0, _least(width, -30.0, log(0.5)))


def _rogers20(n: int, k: int, beta: float, sigma: float) -> float:
    rho = 1 / (8 * (n * sigma) ** 2)
    information = 2 * rho * k * n

    def at(slack: float) -> float:  # (x + u)/(1 - e^-u), u = -ln(1 - l)
        return (information + slack) / -expm1(-slack)

    best = exp(_least(lambda u: log(at(exp(u))), -30.0, log(information + 60)))
    return sqrt(best / (2 * n * beta)) + sqrt(log(4 * k / beta) / rho) / (2 * n)


def _least(width: Callable[[float], float], low: float, high: float) -> float:
    return best_on_line(width, np.linspace(low, high, 80).tolist())[0]


_GIVEN: dict[str, Callable[[int, int, float, float], float]] = {
    "cvar": _cvar,
    "drift": _drift,
    "drift-sharp": _drift_sharp,
    "lecture18": _lecture18,
    "bnsssu16": _bnsssu16,
    "jlnrss20": _jlnrss20,
    "rogers20": _rogers20,
}


@lru_cache(maxsize=256)
def best_sigma(n: int, k: int, beta: float, theorem: str = "cvar") -> float:
    """The noise at which a theorem certifies least."""
    if theorem in ("cvar", "drift", "drift-sharp"):
        found = {"cvar": cvar_width, "drift": drift_width, "drift-sharp": drift_width_sharp}[theorem]
        return found(n, k, beta)[1]
    if theorem not in THEOREMS:
        raise ParameterError(f"no certificate {theorem!r}; there are: {', '.join(THEOREMS)}")
    centre = log(sqrt(k) / n) / 2
    line = np.linspace(centre - 5, min(centre + 5, 1.0), 40).tolist()
    return exp(best_on_line(lambda x: _at(theorem, n, k, beta, exp(x)), line)[1])
