"""What mechanisms of the lectures promise in a situation: a half-width, and the parameters that reach it.

All mathematics is in `theory`; here it is applied. What a mechanism or a certificate says of itself stands in its
own file (`mechanism.cards`, `theory.certificates`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, log, sqrt

from scipy.special import gammainccinv

from understudy.privacy.compose import zcdp_rho
from understudy.theory.cvar import cvar_noise_gauss, cvar_noise_laplace, cvar_V_zcdp
from understudy.theory.guess_and_check import mw_gnc_width
from understudy.theory.lecture4 import median_params, median_width
from understudy.theory.lecture7 import ic_design, median_updates, mw_updates
from understudy.theory.minimise import best_on_line
from understudy.theory.planned import PlanInputs, Width, planned_epsilon
from understudy.theory.sparse_vector import numeric_sparse_alpha
from understudy.theory.transfer import pure_dp_width

MAX_HISTOGRAM = 10**7
"""Cells of a universe whose every cell can still be given noise."""


def _rho(s: PlanInputs) -> float:
    return zcdp_rho(planned_epsilon(s), s.delta)


# ---- privacy: against this table


def _sigma(s: PlanInputs, rho: float) -> float:
    """Of each answer, as a rate, when all of them together cost ρ."""
    return sqrt(s.queries / (2 * rho)) / s.rows


def histogram(s: PlanInputs) -> Width:
    """Laplace noise of scale 2/ε on each cell: a query in [0, 1] is off by at most the noise's L1 norm."""
    assert s.universe is not None
    if s.universe > MAX_HISTOGRAM:
        return 1.0, {}
    scale = 2 / (planned_epsilon(s) * s.rows)
    return scale * float(gammainccinv(s.universe, s.beta)), {"scale": scale, "cells": s.universe}


def _iterative(s: PlanInputs, updates: Callable[[float], int]) -> Width:
    # Theorem 4's approximate mode holds up to ε = 2 ln(1/δ); a larger budget may be left unspent.
    epsilon = min(planned_epsilon(s), 2 * log(1 / s.delta)) if s.delta else planned_epsilon(s)
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
        return 4 * numeric_sparse_alpha(s.rows, s.queries, updates, planned_epsilon(s), s.beta), updates

    low, high = 0.0, 1.0
    if needed(high)[0] > 1:
        return 1.0, {}
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle)[0] <= middle else (middle, high)
    return high, {"threshold": 0.75 * high, "updates": needed(high)[1]}


# ---- validity: against the population, from exact answers


def mw_guess_and_check(s: PlanInputs) -> Width:
    width, parameters = mw_gnc_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, dict(parameters)


def median(s: PlanInputs) -> Width:
    parameters = median_params(s.rows, s.queries, s.universe or 2)
    width = median_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, {"eta": parameters.eta, "n_prime": parameters.n_prime, "m": parameters.m}


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

    found, at = best_on_line(width, _used(planned_epsilon(s)))
    return found, {"epsilon_used": exp(at), "scale": s.queries / (exp(at) * s.rows)}


def _used(cap: float) -> list[float]:
    """Logarithms of what may be spent of a budget: nobody has to spend all of it."""
    most = log(min(cap, 10.0))  # beyond, the transfer term alone is vacuous
    return [most - 0.5 * (40 - i) for i in range(41)]
