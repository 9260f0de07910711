"""The certificates side by side: half-widths at β = 0.05, simultaneous over k adaptive queries on n rows."""

from __future__ import annotations

from collections.abc import Callable

from understudy.theory.baseline import hoeffding_width, split_width
from understudy.theory.compression import truncation_width
from understudy.theory.cosine_noise import cosine_width
from understudy.theory.cvar import cvar_width, pmw_cvar_width
from understudy.theory.drift import drift_width
from understudy.theory.guess_and_check import gnc_best_case, gnc_typical, mw_gnc_width
from understudy.theory.ladder import ladder_width
from understudy.theory.lecture4 import median_width
from understudy.theory.rogers20 import rz_width
from understudy.theory.tilting import tilting_width
from understudy.theory.transfer import bnsssu_rrsstw_width, bnsssu_seed_width, jlnrss_width

BETA = 0.05
ROWS = (10**3, 10**4, 10**5, 10**6)
QUERIES = (10, 10**2, 10**3, 10**4, 10**5)

COLUMNS: dict[str, Callable[[int, int], float]] = {
    "split": lambda n, k: split_width(n, k, BETA),
    "naive": lambda n, k: hoeffding_width(n, BETA, k),
    "c1": lambda n, k: bnsssu_seed_width(n, k, BETA),
    "c2": lambda n, k: bnsssu_rrsstw_width(n, k, BETA),
    "d": lambda n, k: jlnrss_width(n, k, BETA, 2),
    "rz": lambda n, k: rz_width(n, k, BETA),
    "CVaR": lambda n, k: cvar_width(n, k, BETA)[0],
    "DRIFT": lambda n, k: drift_width(n, k, BETA)[0],
    "T": lambda n, k: tilting_width(n, k, BETA)[0],
    "T*": lambda n, k: cosine_width(n, k, BETA).width,
    "e": lambda n, k: gnc_best_case(n, k, BETA),
    "e'": lambda n, k: gnc_typical(n, k, BETA),
    "f": lambda n, k: median_width(n, k, 1024, BETA),
    "f*": lambda n, k: mw_gnc_width(n, k, 2**20, BETA)[0],
    "g": lambda n, k: pmw_cvar_width(n, k, 1024, BETA),
    "Lad": lambda n, k: ladder_width(n, k, BETA)[0],
    "Tr": lambda n, k: truncation_width(n, k, BETA)[0],
}
"""split: fresh rows. naive: NOT valid under adaptivity, for reference. c1: Gaussian noise and Lecture 18's
theorem, corrected. c2: Bassily et al. with Rogers et al.'s constants. d: Jung et al. rz: Rogers et al. T, T*:
Theorem T with normal noise, and with bounded noise. e: GuessAndCheck with no wrong guess, half of the rows
checking; e': its guesses typically off. f: median mechanism,
|X| = 1024. f*: GuessAndCheck with multiplicative weights, |X| = 2^20. g: private multiplicative weights,
|X| = 1024. Lad: the running best only. Tr: rounded exact means. 1 says nothing."""


def certificates() -> list[dict[str, float | int]]:
    """One row for each n and k, one entry for each column, at most 1."""
    return [
        {"n": n, "k": k} | {name: min(1.0, width(n, k)) for name, width in COLUMNS.items()}
        for n in ROWS
        for k in QUERIES
    ]
