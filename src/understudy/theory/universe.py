"""A finite universe: the exact mean is valid for every query at once."""

from __future__ import annotations

from math import log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width


def universe_width(n: Whole, X: Whole, beta: Number) -> float:
    """sqrt((|X| ln 2 + ln(1/β))/(2n)): a union over the 2^|X| subsets; any number of queries, any adaptivity.

    A query in [0, 1] is furthest from its mean at a vertex of the cube, and the complement of a subset gives the
    other sign. Every mechanism that pays ln|X| must be compared with this one.
    """
    cells = whole(X, "X", at_least=2)
    return sqrt((cells * log(2) + log_of_inverse(beta)) / (2 * whole(n, "n")))


def _planned_universe(s: PlanInputs) -> Width:
    return universe_width(s.rows, s.universe or 2, s.beta), {}


UNIVERSE = Planned(
    name="universe",
    promises=VALIDITY,
    theorem="union over all subsets of a finite universe",
    width=_planned_universe,
    needs=("universe",),
    note="exact answers, any number of queries",
)
