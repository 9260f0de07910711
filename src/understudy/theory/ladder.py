"""The Ladder: a leaderboard that cannot be climbed by noise. Statements are about the running best alone."""

from __future__ import annotations

from math import floor, inf, log, sqrt

import numpy as np

from understudy.rational import Number
from understudy.theory.arguments import Whole, log_of_inverse, whole
from understudy.theory.logarithm import log_binomial


def ladder_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, η): releases fall strictly on G = ⌊1/η⌋ + 1 grid values: Σ_j C(k, j+1)·C(G, j) queries in the tree.

    η + sqrt((ln(2/β) + ln queries)/(2n)) at the best η of a grid; every η gives a valid width.
    """
    rows, queries, weight = whole(n, "n"), whole(k, "k"), log(2) + log_of_inverse(beta)
    best = (inf, 1.0)
    for eta in np.geomspace(1e-3, 0.9, 500):
        width = eta + sqrt((weight + _log_queries(queries, floor(1 / eta) + 1)) / (2 * rows))
        best = min(best, (float(width), float(eta)))
    return best


def _log_queries(queries: int, grid: int) -> float:
    last = min(grid, queries - 1)
    j = np.arange(last, dtype=np.float64)
    steps = np.log((queries - 1 - j) / (j + 2)) + np.log((grid - j) / (j + 1))
    terms = np.concatenate([[0.0], np.cumsum(steps)])
    peak = float(terms.max())
    return log_binomial(queries, 1) + peak + log(float(np.exp(terms - peak).sum()))


def ladder_width_published(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, η): e + η with exp(-2e²n + (1/η + 2) ln(4k/η) + 1) = β, at the best η of a grid. [BlumHardt15]"""
    rows, queries, weight = whole(n, "n"), whole(k, "k"), log_of_inverse(beta)
    best = (inf, 1.0)
    for eta in np.geomspace(1e-3, 0.9, 500):
        spread = (1 / eta + 2) * log(4 * queries / eta) + 1 + weight
        best = min(best, (float(eta + sqrt(spread / (2 * rows))), float(eta)))
    return best
