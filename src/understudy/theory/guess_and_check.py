"""GuessAndCheck(η, m): the analyst guesses, the mechanism says whether the sample agrees; exact tree counts.

A transcript is a path in a tree: at each query the guess is accepted, or rejected with an answer on a grid of G
points. Widths are union bounds over the distinct queries in that tree, whatever analyst grew it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, exp, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.rational import Number
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, require, whole
from understudy.theory.baseline import hoeffding_width
from understudy.theory.logarithm import log_binomial
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width

MAX_QUERIES = 10**15
"""Trees of more rounds are refused: beyond, a round's number is no longer exact as a float."""

_LEAST_SHARE = 1e-300


def log_tree_queries(k: Whole, m: Whole, G: Whole) -> float:
    """ln Σ_{j≤m} C(k, j+1)·G^j: the queries of a tree of k rounds with at most m rejections.

    A query comes after j rejections at earlier rounds, each with one of G answers; summing over the round that
    asks it gives C(k, j+1) by the hockey-stick identity. Terms are added from the largest that counts: up to it
    where the tree is far from full, else beyond it, and taken off the whole ((1+G)^k - 1)/G.
    """
    queries, most, grid = whole(k, "k"), whole(m, "m", at_least=0), whole(G, "G")
    require(queries <= MAX_QUERIES, f"k must be at most {MAX_QUERIES:,}, not {k!r}")
    full = queries * log1p(grid)  # of Σ_{j≥0} C(k, j)·G^j
    if most >= queries - 1:
        return full + log(-expm1(-full)) - log(grid)
    last = most + 1
    if last * (1 + grid) >= queries * grid:  # at or above the mean of Binomial(k, G/(1+G))
        beyond = _falling_sum(lambda j: grid * (queries - last - 1 - j) / (last + 2 + j), queries - last)
        missing = log_binomial(queries, last + 1) + (last + 1) * log(grid) + log(beyond) - full
        # the median is at most the mean rounded up, so that no more than half can be missing
        return full + log1p(-min(exp(min(missing, 0.0)), 0.5) - exp(-full)) - log(grid)
    up_to = _falling_sum(lambda j: (last - j) / (grid * (queries - last + 1 + j)), last)
    return log_binomial(queries, last) + most * log(grid) + log(up_to)


def _falling_sum(ratio: Callable[[NDArray[np.float64]], NDArray[np.float64]], terms: int) -> float:
    """1 + r(0) + r(0)r(1) + … of at most `terms` terms, for falling ratios below 1, to the last bit."""
    total, product, start, size = 1.0, 1.0, 0, 64
    while start < terms - 1 and product > 0:
        ratios = ratio(np.arange(start, min(start + size, terms - 1), dtype=np.float64))
        products = product * np.cumprod(ratios)
        total += float(products.sum())
        product, last = float(products[-1]), float(ratios[-1])
        if product * last <= 1e-17 * total * (1 - last):
            break
        start, size = start + size, min(4 * size, 1 << 20)
    return total


def gnc_dev(n: Whole, k: Whole, m: Whole, G: Whole, beta: Number) -> float:
    """sqrt((ln(2/β) + ln nodes)/(2n)): no query of the tree is further than this from the population."""
    return sqrt((log(2) + log_of_inverse(beta) + log_tree_queries(k, m, G)) / (2 * whole(n, "n")))


def gnc_width(n: Whole, k: Whole, m: Whole, eta: Number, beta: Number, G: Whole | None = None) -> float:
    """η + `gnc_dev`: every answer before GuessAndCheck halts, G = ⌈2/η⌉ unless given.

    An accepted guess is within η of the sample, a rejected round's answer within 1/(2G): that must not be more.
    """
    margin = above_zero(eta, "eta")
    grid = ceil(2 / margin) if G is None else whole(G, "G")
    require(
        2 * grid * margin >= 1 - 1e-12,
        f"a grid of G points is right to 1/(2G): G = {G} is too coarse for eta",
    )
    return margin + gnc_dev(n, k, m, grid, beta)


def gnc_failures_width(n: Whole, k: Whole, f: Whole, eta: Number, beta: Number) -> float:
    """All answers of a session in which f guesses turned out wrong: valid for all f at once; nothing halts.

    η + sqrt((ln(2/β) + (j+1) ln 2 + ln C(k, j+1) + j ln G)/(2n)) for a query that comes after j failures, with
    G = ⌈1/(2η)⌉ grid points and weight 2^-(j+1) on j; the largest of these up to j = f, which is the last unless
    nearly every guess was wrong. k is fixed in advance. n counts the rows that check; guesses must come from the
    transcript or from other rows.
    """
    queries, wrong, margin = whole(k, "k"), whole(f, "f", at_least=0), above_zero(eta, "eta")
    require(wrong <= queries, f"there must be at most as many failures as queries, not {f} of {k}")
    grid = ceil(1 / (2 * margin))
    # the next term is larger while 2G(k - j - 1) > j + 2
    peak = max(0, (2 * grid * (queries - 1) - 2) // (2 * grid + 1) + 1)
    j = min(wrong, peak, queries - 1)
    spread = log(2) * (j + 2) + log_binomial(queries, j + 1) + j * log(grid) + log_of_inverse(beta)
    return margin + sqrt(spread / (2 * whole(n, "n")))


def mw_gnc_width(n: Whole, k: Whole, X: Whole, beta: Number) -> tuple[float, dict[str, float | int]]:
    """GuessAndCheck with multiplicative-weights guesses: the best η, with m = ⌊ln|X|/(2η²)⌋ rejections at most.

    A rejection moves the weights by 4η against a gap above η, which lowers the divergence from the sample by 2η²
    (tight constant), so there are at most ln|X|/(2η²). Every η gives a valid width; the grid of η's is fine, and
    starts at 0.001 or, for many rows, at the width of independent queries.
    """
    rows, queries, log_universe = whole(n, "n"), whole(k, "k"), log(whole(X, "X", at_least=2))
    best: tuple[float, dict[str, float | int]] = (inf, {})
    for eta in step_grid(hoeffding_width(rows, beta, queries), 600):
        if eta > best[0]:
            break
        most, grid = floor(log_universe / (2 * eta**2)), ceil(1 / (2 * eta))
        width = gnc_width(rows, queries, most, float(eta), beta, grid)
        best = min(best, (width, {"eta": float(eta), "m": most, "G": grid}), key=lambda found: found[0])
    return best


def step_grid(scale: float, points: int) -> list[float]:
    """Steps η to try, from 0.001 to 0.9, evenly in ln η; and from `scale`, where that is less, equally dense."""
    usual = [float(eta) for eta in np.geomspace(1e-3, 0.9, points)]
    ratio = usual[1] / usual[0]
    finer = [1e-3 / ratio**i for i in range(1, 1 + max(0, ceil(log(1e-3 / scale) / log(ratio))))]
    return [*reversed(finer), *usual]


def gnc_rrsstw_beta_i(beta: Number, i: Whole, f: Whole, gammas: Sequence[Number]) -> float:
    """β·c(i)·c(f)/ν: the share of query i after f failures on grids of width γ. [RRSSTW20]

    c(j) = 6/(π²(j+1)²), ν = C(i, f)·Π ⌈1/γ⌉: i queries were answered before, f of them from the holdout, each
    rounded to the middle of one of ⌈1/γ⌉ equal cells. (Multiples of γ would be ⌊1/γ⌋ + 1 values.)
    """
    asked, failed = whole(i, "i", at_least=0), whole(f, "f", at_least=0)
    require(failed <= asked, f"there must be at most as many failures as queries so far, not {f} of {i}")
    require(len(gammas) == failed, "there must be one gamma for each failure")
    cells = sum(log(ceil(1 / above_zero(gamma, "gamma"))) for gamma in gammas)
    share = log(36 / pi**4) - 2 * log(asked + 1) - 2 * log(failed + 1) - log_binomial(asked, failed) - cells
    share -= log_of_inverse(beta)
    require(
        share > log(_LEAST_SHARE),
        "the share must be at least 1e-300; so many failures leave nothing to share",
    )
    return exp(share)


def gnc_rrsstw_holdout_tol(n_h: Whole, beta_i: Number) -> float:
    """sqrt(ln(2/βᵢ)/(2n_h)): what a holdout of n_h rows, not the guesser's, adds to a guess. [RRSSTW20]"""
    return sqrt((log(2) + log_of_inverse(beta_i, "beta_i")) / (2 * whole(n_h, "n_h")))


def gnc_best_case(n: Whole, k: Whole, beta: Number) -> float:
    """The width of the k-th query when no guess ever failed and half of the rows check. [RRSSTW20]"""
    rows, queries = whole(n, "n", at_least=2), whole(k, "k")
    return gnc_rrsstw_holdout_tol(rows // 2, gnc_rrsstw_beta_i(beta, queries - 1, 0, ()))


def gnc_typical(n: Whole, k: Whole, beta: Number) -> float:
    """The same with guesses from the other half, three standard deviations of a half off: 3/sqrt(n) more."""
    return gnc_best_case(n, k, beta) + 3 / sqrt(whole(n, "n"))


def _planned_failures(s: PlanInputs) -> Width:
    """Half of the rows make guesses, the other half checks them; the best tolerance for so many failures."""
    holdout = s.rows - s.rows // 2

    def width(eta: float) -> float:
        return gnc_failures_width(holdout, s.queries, s.failures, eta, s.beta)

    grid = [0.001 * 1.02**i for i in range(320)]
    best = min(grid, key=width)
    return width(best), {"eta": best, "failures": s.failures, "holdout_rows": holdout}


GUESS_AND_CHECK = Planned(
    name="guess-and-check",
    promises=VALIDITY,
    theorem="GuessAndCheck, realised failures",
    width=_planned_failures,
    needs=("guesses",),
    note="gives validity only: it looks at exact values",
)
