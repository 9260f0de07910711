"""Prices of the elementary certificate law by law, and its widths at the best noise.

Its argument, and its widths at a given noise, live in `understudy.theory.elementary` and are imported here.
"""

from __future__ import annotations

from math import cos, log, log1p, pi, sin, sqrt

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, require, whole
from understudy.theory.cvar import cvar_noise_gauss
from understudy.theory.elementary import (
    cosine_price,
    elementary_cosine_at,
    elementary_normal_at,
    elementary_V,
    normal_price,
)
from understudy.theory.tilting import outward

__all__ = [
    "cosine_divergence",
    "cosine_price",
    "elementary_V",
    "elementary_cosine",
    "elementary_cosine_at",
    "elementary_normal",
    "elementary_normal_at",
    "normal_price",
    "pure_price",
    "table_price",
]


def table_price(sigma: Number, cells: Whole) -> float:
    """(1 - 1/C)/(2σ²): the same noise on each of C cells, of which a row counts in one."""
    return outward((1 - 1 / whole(cells, "cells")) / (2 * above_zero(sigma, "sigma") ** 2))


def pure_price(epsilon: Number) -> float:
    """ε²/8: what any ε-DP answer tells of one row."""
    return outward(above_zero(epsilon, "epsilon") ** 2 / 8)


def cosine_divergence(R: Number, x: Number) -> float:
    """KL(f_x ‖ Q) of cos² noise around x in [0, 1] from a law Q that is the same for all x.

    With θ = π/2R, Q has on the circle of length 2R the density (1 + cos θ · cos 2θ(y - 1/2))/2R, and shares
    the unit interval that has two preimages between them. The largest value, at the ends, is at most θ²/2 for
    θ ≤ 0.745.
    """
    reach, place = above_zero(R, "R"), float(x)
    require(reach >= 3 and 0 <= place <= 1, "the divergence is stated for R ≥ 3 and x in [0, 1]")
    theta = pi / (2 * reach)

    def mass(a: float) -> float:
        """∫ sin²(θw) dw / R from 0 to a."""
        return (a / 2 - sin(2 * theta * a) / (4 * theta)) / reach

    cosines = (1 - sin(theta)) / cos(theta) * cos(theta * (2 * place - 1))
    return 1 - log1p(sin(theta)) - cosines + log(2) * (mass(place) + mass(1 - place))


def elementary_normal(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ) with normal noise, at the best σ."""
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    unit = cvar_noise_gauss(1, queries, failure)
    sigma = sqrt(sqrt(queries / failure) / (4 * rows * unit))
    return elementary_normal_at(rows, queries, failure, sigma), sigma


def elementary_cosine(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, r) with cos² noise, at the best r."""
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    r = max(sqrt(pi / 4 * sqrt(queries / failure) / rows), 3 / rows)
    return elementary_cosine_at(rows, queries, failure, r), r
