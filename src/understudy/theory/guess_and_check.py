"""GuessAndCheck(η, m): the analyst guesses, the mechanism says whether the sample agrees; exact tree counts.

A transcript is a path in a tree: at each query the guess is accepted, or rejected with an answer on a grid of G
points. Widths are union bounds over the distinct queries in that tree, whatever analyst grew it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np

from understudy.rational import Number
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, require, whole
from understudy.theory.logarithm import log_binomial

_SUMMED = 10**7
"""Terms that are added up one by one; beyond, a geometric series bounds the sum."""


def log_tree_queries(k: Whole, m: Whole, G: Whole) -> float:
    """ln Σ_{j≤m} C(k, j+1)·G^j: the queries of a tree of k rounds with at most m rejections.

    A query comes after j rejections at earlier rounds, each with one of G answers; summing over the round that
    asks it gives C(k, j+1) by the hockey-stick identity. Where m > 10⁷ a geometric series bounds it from above.
    """
    queries, most, grid = whole(k, "k"), whole(m, "m", at_least=0), whole(G, "G")
    last = min(most, queries - 1)
    if last == queries - 1:  # the whole binomial series: ((1+G)^k - 1)/G
        total = queries * log1p(grid)
        return total + log(-expm1(-total)) - log(grid)
    if last <= _SUMMED:
        j = np.arange(last, dtype=np.float64)
        steps = np.log((queries - 1 - j) / (j + 2)) + log(grid)
        terms = np.concatenate([[0.0], np.cumsum(steps)])
        peak = float(terms.max())
        return log(queries) + peak + log(float(np.exp(terms - peak).sum()))
    ratio = (queries - 1 - last) / (last + 2) * grid  # of the next term to the last
    require(
        ratio > 1,
        "with so many rejections allowed the tree is full: m must be below kG/(G+1) or at most 10^7",
    )
    return log_binomial(queries, last + 1) + last * log(grid) - log1p(-1 / ratio)


def gnc_dev(n: Whole, k: Whole, m: Whole, G: Whole, beta: Number) -> float:
    """sqrt((ln(2/β) + ln nodes)/(2n)): no query of the tree is further than this from the population."""
    return sqrt((log(2) + log_of_inverse(beta) + log_tree_queries(k, m, G)) / (2 * whole(n, "n")))


def gnc_width(n: Whole, k: Whole, m: Whole, eta: Number, beta: Number, G: Whole | None = None) -> float:
    """η + `gnc_dev`: every answer before GuessAndCheck halts, G = ⌈2/η⌉ unless given."""
    margin = above_zero(eta, "eta")
    return margin + gnc_dev(n, k, m, ceil(2 / margin) if G is None else G, beta)


def gnc_failures_width(n: Whole, k: Whole, f: Whole, eta: Number, beta: Number) -> float:
    """The width when f guesses turned out wrong: valid for all f at once, k fixed in advance; nothing halts.

    Weight 2^-(f+1) on f failures, ⌈1/(2η)⌉ grid points. n counts the rows that check; guesses must come from the
    transcript or from other rows.
    """
    queries, wrong, margin = whole(k, "k"), whole(f, "f", at_least=0), above_zero(eta, "eta")
    require(wrong < queries, "there must be fewer failures than queries")
    grid = ceil(1 / (2 * margin))
    spread = (
        log(2) * (wrong + 2) + log_binomial(queries, wrong + 1) + wrong * log(grid) + log_of_inverse(beta)
    )
    return margin + sqrt(spread / (2 * whole(n, "n")))


def mw_gnc_width(n: Whole, k: Whole, X: Whole, beta: Number) -> tuple[float, dict[str, float | int]]:
    """GuessAndCheck with multiplicative-weights guesses: the best η, with m = ⌊ln|X|/(2η²)⌋ rejections at most.

    A rejection moves the weights by 4η against a gap above η, which lowers the divergence from the sample by 2η²
    (tight constant), so there are at most ln|X|/(2η²). Every η gives a valid width; the grid of η's is fine.
    """
    rows, queries, log_universe = whole(n, "n"), whole(k, "k"), log(whole(X, "X", at_least=2))
    best: tuple[float, dict[str, float | int]] = (inf, {})
    for eta in np.geomspace(1e-3, 0.9, 600):
        if eta > best[0]:
            break
        most, grid = floor(log_universe / (2 * eta**2)), ceil(1 / (2 * eta))
        width = gnc_width(rows, queries, most, float(eta), beta, grid)
        best = min(best, (width, {"eta": float(eta), "m": most, "G": grid}), key=lambda found: found[0])
    return best


def gnc_rrsstw_beta_i(beta: Number, i: Whole, f: Whole, gammas: Sequence[Number]) -> float:
    """β·c(i)·c(f)/ν: the share of query i after f failures on grids of width γ. [RRSSTW20]

    c(j) = 6/(π²(j+1)²), ν = C(i, f)·Π ⌈1/γ⌉, with C(i, f) taken as 1 when i ≤ f.
    """
    asked, failed = whole(i, "i", at_least=0), whole(f, "f", at_least=0)
    require(len(gammas) == failed, "there must be one gamma for each failure")
    count = comb(asked, failed) if asked > failed else 1
    for gamma in gammas:
        count *= ceil(1 / above_zero(gamma, "gamma"))
    log_of_inverse(beta)
    weight = 36 / (pi**4 * (asked + 1) ** 2 * (failed + 1) ** 2)
    return float(beta) * weight / count


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
