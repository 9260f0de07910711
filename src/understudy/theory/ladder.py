"""The Ladder: a leaderboard that cannot be climbed by noise. Statements are about the running best alone."""

from __future__ import annotations

from math import floor, inf, log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.baseline import hoeffding_width
from understudy.theory.guess_and_check import step_grid
from understudy.theory.logarithm import log_binomial
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width


def ladder_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, η): releases fall strictly on the G = ⌊1/η⌋ + 1 multiples of η in [0, 1].

    η + sqrt((ln(2/β) + ln N)/(2n)) at the best η of a grid; every η gives a valid width. A query comes after j
    releases at earlier rounds: N = Σ_j C(k, j+1)·C(G, j) = C(k+G, G+1) queries in the tree (Vandermonde). A loss
    above the last multiple is released as that multiple, less than η off; one above 1 would be one more value.
    """
    rows, queries, weight = whole(n, "n"), whole(k, "k"), log(2) + log_of_inverse(beta)
    best = (inf, 1.0)
    for eta in step_grid(hoeffding_width(rows, beta, queries), 500):
        width = eta + sqrt((weight + _log_queries(queries, floor(1 / eta) + 1)) / (2 * rows))
        best = min(best, (width, eta))
    return best


def _log_queries(queries: int, grid: int) -> float:
    """ln C(k+G, G+1)."""
    return log_binomial(queries + grid, grid + 1)


def ladder_width_published(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, η): e + η with exp(-2e²n + (1/η + 2) ln(4k/η) + 1) = β, at the best η of a grid. [BlumHardt15]"""
    rows, queries, weight = whole(n, "n"), whole(k, "k"), log_of_inverse(beta)
    best = (inf, 1.0)
    for eta in step_grid(hoeffding_width(rows, beta, queries), 500):
        spread = (1 / eta + 2) * log(4 * queries / eta) + 1 + weight
        best = min(best, (eta + sqrt(spread / (2 * rows)), eta))
    return best


def _planned_ladder(s: PlanInputs) -> Width:
    width, eta = ladder_width(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


def _planned_published(s: PlanInputs) -> Width:
    width, eta = ladder_width_published(s.rows, s.queries, s.beta)
    return width, {"eta": eta}


LADDER = Planned(
    name="ladder",
    promises=VALIDITY,
    theorem="Ladder, exact tree",
    width=_planned_ladder,
    needs=("best_only",),
    note="certifies the running best only",
)

LADDER_PUBLISHED = Planned(
    name="ladder-published",
    promises=VALIDITY,
    theorem="Blum and Hardt 2015, Theorem 3.1",
    width=_planned_published,
    needs=("best_only",),
    note="certifies the running best only",
)
