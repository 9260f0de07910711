"""Every mechanism that the planner knows: its name, its width in a situation, and the theorem that gives it.

The planner knows mechanisms by name only; all mathematics is in `theory`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp, log, sqrt

from scipy import stats

from understudy.planner.situation import Promise, Situation
from understudy.privacy.compose import zcdp_rho
from understudy.theory import (
    baseline,
    compression,
    cvar,
    drift,
    guess_and_check,
    ladder,
    lecture4,
    lecture7,
    lectures9_10,
    rogers20,
    sparse_vector,
    transfer,
    universe,
)
from understudy.theory.minimise import best_on_line

Width = tuple[float, dict[str, float | int]]

MAX_HISTOGRAM = 10**7
"""Cells of a universe whose every cell can still be given noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """`width` gives the half-width, joint over all queries, and the parameters that reach it."""

    name: str
    promises: tuple[Promise, ...]
    theorem: str
    width: Callable[[Situation], Width]
    needs: tuple[str, ...] = ()
    note: str = ""
    by_name: bool = False
    """Offered, ranked, but recommended to nobody who does not ask for it."""

    def lacks(self, situation: Situation) -> str:
        """Why the mechanism does not apply; empty when it does."""
        if situation.promise not in self.promises:
            return f"promises {' or '.join(self.promises)} only"
        for need in self.needs:
            if not getattr(situation, need):
                return _LACKING[need]
        return ""


_LACKING = {
    "universe": "needs the size of the universe",
    "vc": "needs the VC dimension of the queries",
    "delta": "needs a delta",
    "guesses": "needs an analyst who brings guesses",
    "best_only": "is about the running best only",
}


def _epsilon(s: Situation) -> float:
    assert s.epsilon is not None  # Situation sees to it wherever privacy is promised
    return s.epsilon


def _rho(s: Situation) -> float:
    return zcdp_rho(_epsilon(s), s.delta)


# ---- privacy: against this table


def _laplace(s: Situation) -> Width:
    return lecture4.laplace_error(_epsilon(s), s.rows, s.queries, s.beta), {
        "scale": s.queries / (_epsilon(s) * s.rows)
    }


def _sigma(s: Situation, rho: float) -> float:
    """Of each answer, as a rate, when all of them together cost ρ."""
    return sqrt(s.queries / (2 * rho)) / s.rows


def _gaussian(s: Situation) -> Width:
    sigma = _sigma(s, _rho(s))
    return sigma * float(stats.norm.isf(s.beta / (2 * s.queries))), {"sigma": sigma, "rho": _rho(s)}


def _histogram(s: Situation) -> Width:
    """Laplace noise of scale 2/ε on each cell: a query in [0, 1] is off by at most the noise's L1 norm."""
    assert s.universe is not None
    if s.universe > MAX_HISTOGRAM:
        return 1.0, {}
    scale = 2 / (_epsilon(s) * s.rows)
    return scale * float(stats.gamma.isf(s.beta, s.universe)), {"scale": scale, "cells": s.universe}


def _smalldb(s: Situation) -> Width:
    design = lectures9_10.smalldb_best(s.rows, s.universe or 2, s.queries, _epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def _smalldb_vc(s: Situation) -> Width:
    design = lectures9_10.smalldb_vc_best(s.rows, s.universe or 2, s.vc or 1, _epsilon(s), s.beta)
    return design.error, {"alpha": design.alpha, "m": design.m}


def _iterative(s: Situation, updates: Callable[[float], int]) -> Width:
    # Theorem 4's approximate mode holds up to ε = 2 ln(1/δ); a larger budget may be left unspent.
    epsilon = min(_epsilon(s), 2 * log(1 / s.delta)) if s.delta else _epsilon(s)
    design = lecture7.ic_design(s.rows, s.queries, s.beta, epsilon, s.delta, updates)
    return design.alpha, {"updates": design.B, "epsilon0": design.eps0, "threshold": design.threshold}


def _iterative_mw(s: Situation) -> Width:
    return _iterative(s, partial(lecture7.mw_updates, s.universe or 2))


def _iterative_median(s: Situation) -> Width:
    return _iterative(s, lambda alpha: lecture7.median_updates(s.queries, s.universe or 2, alpha))


def _online(s: Situation) -> Width:
    """NumericSparse right to α/4 at the threshold 3α/4: below, the stand-in is within α; above, off by α/2."""

    def needed(alpha: float) -> tuple[float, int]:
        updates = max(1, lecture7.mw_updates(s.universe or 2, alpha / 2))
        return 4 * sparse_vector.numeric_sparse_alpha(
            s.rows, s.queries, updates, _epsilon(s), s.beta
        ), updates

    low, high = 0.0, 1.0
    if needed(high)[0] > 1:
        return 1.0, {}
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if needed(middle)[0] <= middle else (middle, high)
    return high, {"threshold": 0.75 * high, "updates": needed(high)[1]}


# ---- validity: against the population, from exact or noisy answers


def _split(s: Situation) -> Width:
    return baseline.split_width(s.rows, s.queries, s.beta), {"rows_per_query": s.rows // s.queries}


def _universe(s: Situation) -> Width:
    return universe.universe_width(s.rows, s.universe or 2, s.beta), {}


def _truncation(s: Situation) -> Width:
    width, grid = compression.truncation_width(s.rows, s.queries, s.beta)
    return width, {"grid": grid}


def _ladder(s: Situation) -> Width:
    width, eta = ladder.ladder_width(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


def _ladder_published(s: Situation) -> Width:
    width, eta = ladder.ladder_width_published(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


def _guess_and_check(s: Situation) -> Width:
    """Half of the rows make guesses, the other half checks them; the best tolerance for so many failures."""
    holdout = s.rows - s.rows // 2

    def width(eta: float) -> float:
        return guess_and_check.gnc_failures_width(holdout, s.queries, s.failures, eta, s.beta)

    grid = [0.001 * 1.02**i for i in range(320)]
    best = min(grid, key=width)
    return width(best), {"eta": best, "failures": s.failures, "holdout_rows": holdout}


def _mw_guess_and_check(s: Situation) -> Width:
    width, parameters = guess_and_check.mw_gnc_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, dict(parameters)


def _median(s: Situation) -> Width:
    parameters = lecture4.median_params(s.rows, s.queries, s.universe or 2)
    width = lecture4.median_width(s.rows, s.queries, s.universe or 2, s.beta)
    return width, {"eta": parameters.eta, "n_prime": parameters.n_prime, "m": parameters.m}


def _lecture18(s: Situation) -> Width:
    return transfer.bnsssu_seed_width(s.rows, s.queries, s.beta), {}


def _bassily(s: Situation) -> Width:
    return transfer.bnsssu_rrsstw_width(s.rows, s.queries, s.beta), {}


def _jung(s: Situation) -> Width:
    return transfer.jlnrss_width(s.rows, s.queries, s.beta, 2), {}


def _rogers(s: Situation) -> Width:
    return rogers20.rz_width(s.rows, s.queries, s.beta), {}


def _cvar(s: Situation) -> Width:
    width, sigma = cvar.cvar_width(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def _cvar_discrete(s: Situation) -> Width:
    width, sigma = cvar.cvar_width_discrete(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def _drift(s: Situation) -> Width:
    width, sigma = drift.drift_width(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


def _drift_sharp(s: Situation) -> Width:
    width, sigma = drift.drift_width_sharp(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


# ---- both: private answers, and their width against the population


def _private_gaussian(s: Situation) -> Width:
    """The noise's CVaR, plus the CVaR transfer of the budget; less than the whole budget where that is better."""

    def width(log_rho: float) -> float:
        sigma = _sigma(s, exp(log_rho))
        return cvar.cvar_noise_gauss(sigma, s.queries, s.beta) + cvar.cvar_V_zcdp(exp(log_rho), s.beta)

    found, at = best_on_line(width, _used(_rho(s)))
    return found, {"sigma": _sigma(s, exp(at)), "rho": exp(at)}


def _private_laplace(s: Situation) -> Width:
    """Laplace noise within its bound except with β, plus tanh(ε/4) for every transcript of pure ε."""

    def width(log_epsilon: float) -> float:
        used = exp(log_epsilon)
        return lecture4.laplace_error(used, s.rows, s.queries, s.beta) + transfer.pure_dp_width(used)

    found, at = best_on_line(width, _used(_epsilon(s)))
    return found, {"epsilon_used": exp(at), "scale": s.queries / (exp(at) * s.rows)}


def _used(cap: float) -> list[float]:
    """Logarithms of what may be spent of a budget: nobody has to spend all of it."""
    most = log(min(cap, 10.0))  # beyond, the transfer term alone is vacuous
    return [most - 0.5 * (40 - i) for i in range(41)]


_PRIVACY, _VALIDITY, _BOTH = (Promise.PRIVACY,), (Promise.VALIDITY,), (Promise.BOTH,)
_INVALID_ALONE = "gives validity only: it looks at exact values"

MECHANISMS = (
    Mechanism(
        name="laplace", promises=_PRIVACY, theorem="Lecture 4, Theorems 5 and 8, Claim 6", width=_laplace
    ),
    Mechanism(
        name="gaussian",
        promises=_PRIVACY,
        theorem="Canonne, Kamath and Steinke 2020, Theorem 14; zCDP composition",
        width=_gaussian,
        needs=("delta",),
    ),
    Mechanism(
        name="histogram",
        promises=_PRIVACY,
        theorem="Lecture 4, Theorem 5, on every cell",
        width=_histogram,
        needs=("universe",),
        note="answers any number of queries",
    ),
    Mechanism(
        name="smalldb",
        promises=_PRIVACY,
        theorem="Lectures 9-10, Proposition 6 (corrected)",
        width=_smalldb,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="smalldb-vc",
        promises=_PRIVACY,
        theorem="Lectures 9-10, Theorem 11 (explicit constants)",
        width=_smalldb_vc,
        needs=("universe", "vc"),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="iterative-mw",
        promises=_PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), multiplicative weights",
        width=_iterative_mw,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="iterative-median",
        promises=_PRIVACY,
        theorem="Lecture 7, Theorem 8 (corrected), median",
        width=_iterative_median,
        needs=("universe",),
        note="queries are fixed in advance",
    ),
    Mechanism(
        name="online-mw",
        promises=_PRIVACY,
        theorem="Lecture 7 with NumericSparse (Dwork and Roth 2014, Theorem 3.28)",
        width=_online,
        needs=("universe",),
    ),
    Mechanism(
        name="split", promises=_VALIDITY, theorem="Hoeffding on fresh rows for each query", width=_split
    ),
    Mechanism(
        name="universe",
        promises=_VALIDITY,
        theorem="union over all subsets of a finite universe",
        width=_universe,
        needs=("universe",),
        note="exact answers, any number of queries",
    ),
    Mechanism(
        name="truncation", promises=_VALIDITY, theorem="transcript compression, exact tree", width=_truncation
    ),
    Mechanism(
        name="guess-and-check",
        promises=_VALIDITY,
        theorem="GuessAndCheck, realised failures",
        width=_guess_and_check,
        needs=("guesses",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="mw-guess-and-check",
        promises=_VALIDITY,
        theorem="GuessAndCheck tree with multiplicative-weights guesses",
        width=_mw_guess_and_check,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="median",
        promises=_VALIDITY,
        theorem="Lecture 4, Theorem 2 (exact form)",
        width=_median,
        needs=("universe",),
        note=_INVALID_ALONE,
    ),
    Mechanism(
        name="ladder",
        promises=_VALIDITY,
        theorem="Ladder, exact tree",
        width=_ladder,
        needs=("best_only",),
        note="certifies the running best only",
    ),
    Mechanism(
        name="ladder-published",
        promises=_VALIDITY,
        theorem="Blum and Hardt 2015, Theorem 3.1",
        width=_ladder_published,
        needs=("best_only",),
        note="certifies the running best only",
    ),
    Mechanism(
        name="gaussian-lecture18",
        promises=_VALIDITY,
        theorem="Lecture 18, Theorem 0.2 (corrected)",
        width=_lecture18,
    ),
    Mechanism(
        name="gaussian-bnsssu16",
        promises=_VALIDITY,
        theorem="Bassily et al. 2016, constants of Rogers et al. 2020",
        width=_bassily,
    ),
    Mechanism(name="gaussian-jlnrss20", promises=_VALIDITY, theorem="Jung et al. 2020", width=_jung),
    Mechanism(
        name="gaussian-rogers20", promises=_VALIDITY, theorem="Rogers et al. 2020, Theorem 2.1", width=_rogers
    ),
    Mechanism(name="cvar", promises=_VALIDITY, theorem="CVaR transfer, Gaussian noise", width=_cvar),
    Mechanism(
        name="drift",
        promises=_VALIDITY,
        theorem="posterior drift, Gaussian noise",
        width=_drift,
        note="own theorem, refereed, not peer reviewed; cvar is the conservative choice",
        by_name=True,
    ),
    Mechanism(
        name="cvar-discrete",
        promises=_VALIDITY,
        theorem="CVaR transfer, discrete Gaussian noise through zCDP",
        width=_cvar_discrete,
        note="private as well: the noise is the one that protects people",
    ),
    Mechanism(
        name="drift-sharp",
        promises=_VALIDITY,
        theorem="posterior drift, sharp form",
        width=_drift_sharp,
        note="own theorem, refereed, not peer reviewed; cvar is the conservative choice",
        by_name=True,
    ),
    Mechanism(
        name="private-laplace",
        promises=_BOTH,
        theorem="Lecture 4, Theorem 5 and tanh(epsilon/4) for pure privacy",
        width=_private_laplace,
    ),
    Mechanism(
        name="private-gaussian",
        promises=_BOTH,
        theorem="zCDP composition and CVaR transfer",
        width=_private_gaussian,
        needs=("delta",),
    ),
)
