"""Widths without a mechanism: what fresh rows give, and what adaptivity takes away."""

from __future__ import annotations

from math import inf, log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width


def hoeffding_width(n: Whole, beta: Number, k: Whole = 1) -> float:
    """sqrt(ln(2k/β)/(2n)): k means of n independent rows, all chosen before the rows were drawn.

    Not valid for queries chosen after seeing answers, unless k counts every query that could have been asked.
    """
    return sqrt((log(2 * whole(k, "k")) + log_of_inverse(beta)) / (2 * whole(n, "n")))


def split_width(n: Whole, k: Whole, beta: Number) -> float:
    """Fresh ⌊n/k⌋ rows for each of k adaptive queries; infinite when there are more queries than rows."""
    rows, queries = whole(n, "n"), whole(k, "k")
    log_of_inverse(beta)
    return hoeffding_width(rows // queries, beta, queries) if rows >= queries else inf


def _planned_split(s: PlanInputs) -> Width:
    return split_width(s.rows, s.queries, s.beta), {"rows_per_query": s.rows // s.queries}


SPLIT = Planned(
    name="split",
    promises=VALIDITY,
    theorem="Hoeffding on fresh rows for each query",
    width=_planned_split,
)
