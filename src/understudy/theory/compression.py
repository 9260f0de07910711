"""Short transcripts generalise: exact means that are rounded to few values, whatever was asked."""

from __future__ import annotations

from math import expm1, inf, log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width


def truncation_width(n: Whole, k: Whole, beta: Number) -> tuple[float, int]:
    """(width, G): exact means rounded to the middles of G cells, G chosen best.

    1/(2G) + sqrt((ln(2/β) + ln N)/(2n)) with N = Σ_{i<k} G^i, the queries that can be asked at all.
    """
    rows, queries, weight = whole(n, "n"), whole(k, "k"), log(2) + log_of_inverse(beta)

    def width(grid: int) -> float:
        return 1 / (2 * grid) + sqrt((weight + _log_queries(grid, queries)) / (2 * rows))

    best, grid, worse = (inf, 1), 1, 0
    # one minimum: the first term falls, the second rises; of a single query nothing is gained beyond 1/(8n)
    while worse < 64 and grid <= 4 * rows:
        found = width(grid)
        best, worse = ((found, grid), 0) if found < best[0] else (best, worse + 1)
        grid += max(1, grid // 400)
    return best


def _log_queries(grid: int, queries: int) -> float:
    """ln Σ_{i<k} G^i."""
    if grid == 1:
        return log(queries)
    total = queries * log(grid)
    return total + log(-expm1(-total)) - log(grid - 1)


def _planned_truncation(s: PlanInputs) -> Width:
    width, grid = truncation_width(s.rows, s.queries, s.beta)
    return width, {"grid": grid}


TRUNCATION = Planned(
    name="truncation",
    promises=VALIDITY,
    theorem="transcript compression, exact tree",
    width=_planned_truncation,
)
