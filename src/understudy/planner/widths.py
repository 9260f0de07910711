"""What each mechanism promises in a situation: a half-width, and the parameters that reach it.

All mathematics is in `theory`; here it is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, log, sqrt

from scipy.special import gammainccinv, ndtri

from understudy.planner.inputs import PlanInputs
from understudy.privacy.compose import zcdp_rho
from understudy.theory.baseline import split_width
from understudy.theory.compression import truncation_width
from understudy.theory.cvar import (
    cvar_noise_gauss,
    cvar_noise_laplace,
    cvar_V_zcdp,
    cvar_width,
    cvar_width_discrete,
)
from understudy.theory.drift import drift_width, drift_width_sharp
from understudy.theory.guess_and_check import gnc_failures_width, mw_gnc_width
from understudy.theory.ladder import ladder_width, ladder_width_published
from understudy.theory.lecture4 import laplace_error, median_params, median_width
from understudy.theory.lecture7 import ic_design, median_updates, mw_updates
from understudy.theory.lectures9_10 import smalldb_best, smalldb_vc_best
from understudy.theory.minimise import best_on_line
from understudy.theory.rogers20 import rz_width
from understudy.theory.sparse_vector import numeric_sparse_alpha
from understudy.theory.transfer import bnsssu_rrsstw_width, bnsssu_seed_width, jlnrss_width, pure_dp_width
from understudy.theory.universe import universe_width

Width = tuple[float, dict[str, float | int]]

MAX_HISTOGRAM = 10**7
"""Cells of a universe whose every cell can still be given noise."""


def _epsilon(s: PlanInputs) -> float:
    assert s.epsilon is not None  # PlanInputs sees to it wherever privacy is promised
    return s.epsilon


def _rho(s: PlanInputs) -> float:
    return zcdp_rho(_epsilon(s), s.delta)


# ---- privacy: against this table


def laplace(s: PlanInputs) -> Width:
    return laplace_error(_epsilon(s), s.rows, s.queries, s.beta), {
        "scale": s.queries / (_epsilon(s) * s.rows)
    }


def _sigma(s: PlanInputs, rho: float) -> float:
    """Of each answer, as a rate, when all of them together cost ρ."""
    return sqrt(s.queries / (2 * rho)) / s.rows


def gaussian(s: PlanInputs) -> Width:
    sigma = _sigma(s, _rho(s))
    width = sigma * float(-ndtri(s.beta / (2 * s.queries))) + 1 / s.rows  # on the lattice, one count more
    return width, {"sigma": sigma, "rho": _rho(s)}


def histogram(s: PlanInputs) -> Width:
    """Laplace noise of scale 2/ε on each cell: a query in [0, 1] is off by at most the noise's L1 norm."""
    assert s.universe is not None
    if s.universe > MAX_HISTOGRAM:
        return 1.0, {}
    scale = 2 / (_epsilon(s) * s.rows)
    return scale * float(gammainccinv(s.universe, s.beta)), {"scale": scale, "cells": s.universe}


def smalldb(s: PlanInputs) -> Width:
    design = smalldb_best(s.rows, s.universe or 2, s.queries, _epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def smalldb_vc(s: PlanInputs) -> Width:
    design = smalldb_vc_best(s.rows, s.universe or 2, s.vc or 1, _epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def _iterative(s: PlanInputs, updates: Callable[[float], int]) -> Width:
    # Theorem 4's approximate mode holds up to ε = 2 ln(1/δ); a larger budget may be left unspent.
    epsilon = min(_epsilon(s), 2 * log(1 / s.delta)) if s.delta else _epsilon(s)
    design = ic_design(s.rows, s.queries, s.beta, epsilon, s.delta, updates)
    return design.alpha, {"updates": design.B, "epsilon0": design.eps0, "threshold": design.threshold}


def iterative_mw(s: PlanInputs) -> Width:
    return _iterative(s, partial(mw_updates, s.universe or 2))


def iterative_median(s: PlanInputs) -> Width:
    return _iterative(s, lambda alpha: median_updates(s.queries, s.universe or 2, alpha))


def online(s: PlanInputs) -> Width:
    """NumericSparse right to α/4 at the threshold 3α/4: below, the stand-in is within α; above, off by α/2."""

    def needed(alpha: float) -> tuple[float, int]:
        updates = max(1, mw_updates(s.universe or 2, alpha / 2))
        return 4 * numeric_sparse_alpha(s.rows, s.queries, updates, _epsilon(s), s.beta), updates

    low, high = 0.0, 1.0
    if needed(high)[0] > 1:
        return 1.0, {}
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle)[0] <= middle else (middle, high)
    return high, {"threshold": 0.75 * high, "updates": needed(high)[1]}


# ---- validity: against the population, from exact or noisy answers


def split(s: PlanInputs) -> Width:
    return split_width(s.rows, s.queries, s.beta), {"rows_per_query": s.rows // s.queries}


def universe(s: PlanInputs) -> Width:
    return universe_width(s.rows, s.universe or 2, s.beta), {}


def truncation(s: PlanInputs) -> Width:
    width, grid = truncation_width(s.rows, s.queries, s.beta)
    return width, {"grid": grid}


def ladder(s: PlanInputs) -> Width:
    width, eta = ladder_width(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


def ladder_published(s: PlanInputs) -> Width:
    width, eta = ladder_width_published(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


def guess_and_check(s: PlanInputs) -> Width:
    """Half of the rows make guesses, the other half checks them; the best tolerance for so many failures."""
    holdout = s.rows - s.rows // 2

    def width(eta: float) -> float:
        return gnc_failures_width(holdout, s.queries, s.failures, eta, s.beta)

    grid = [0.001 * 1.02**i for i in range(320)]
    best = min(grid, key=width)
    return width(best), {"eta": best, "failures": s.failures, "holdout_rows": holdout}


def mw_guess_and_check(s: PlanInputs) -> Width:
    width, parameters = mw_gnc_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, dict(parameters)


def median(s: PlanInputs) -> Width:
    parameters = median_params(s.rows, s.queries, s.universe or 2)
    width = median_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, {"eta": parameters.eta, "n_prime": parameters.n_prime, "m": parameters.m}


def lecture18(s: PlanInputs) -> Width:
    return bnsssu_seed_width(s.rows, s.queries, s.beta), {}


def bassily(s: PlanInputs) -> Width:
    return bnsssu_rrsstw_width(s.rows, s.queries, s.beta), {}


def jung(s: PlanInputs) -> Width:
    return jlnrss_width(s.rows, s.queries, s.beta, 2), {}


def rogers(s: PlanInputs) -> Width:
    return rz_width(s.rows, s.queries, s.beta), {}


def cvar(s: PlanInputs) -> Width:
    width, sigma = cvar_width(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def cvar_discrete(s: PlanInputs) -> Width:
    width, sigma = cvar_width_discrete(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def drift(s: PlanInputs) -> Width:
    width, sigma = drift_width(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def drift_sharp(s: PlanInputs) -> Width:
    width, sigma = drift_width_sharp(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


# ---- both: private answers, and their width against the population


def private_gaussian(s: PlanInputs) -> Width:
    """The noise's CVaR, plus the CVaR transfer of the budget; less than the whole budget where that is better."""

    def width(log_rho: float) -> float:
        sigma = _sigma(s, exp(log_rho))
        noise = cvar_noise_gauss(sigma, s.queries, s.beta) + 1 / s.rows  # on the lattice, one count more
        return noise + cvar_V_zcdp(exp(log_rho), s.beta)

    found, at = best_on_line(width, _used(_rho(s)))
    return found, {"sigma": _sigma(s, exp(at)), "rho": exp(at)}


def private_laplace(s: PlanInputs) -> Width:
    """The noise's CVaR, plus tanh(ε/4) for every transcript of pure ε."""

    def width(log_epsilon: float) -> float:
        used = exp(log_epsilon)
        return cvar_noise_laplace(s.queries / (used * s.rows), s.queries, s.beta) + pure_dp_width(used)

    found, at = best_on_line(width, _used(_epsilon(s)))
    return found, {"epsilon_used": exp(at), "scale": s.queries / (exp(at) * s.rows)}


def _used(cap: float) -> list[float]:
    """Logarithms of what may be spent of a budget: nobody has to spend all of it."""
    most = log(min(cap, 10.0))  # beyond, the transfer term alone is vacuous
    return [most - 0.5 * (40 - i) for i in range(41)]
