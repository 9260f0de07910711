"""Rogers, Roth, Smith, Srebro, Thakkar and Woodworth 2020: Gaussian answers through mutual information."""

from __future__ import annotations

from math import exp, expm1, log, log1p, sqrt

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, whole
from understudy.theory.minimise import best_on_line
from understudy.theory.normal_noise import NoiseCertificate, alone, least


def rz_width(n: Whole, k: Whole, beta: Number) -> float:
    """min over ρ of sqrt(min_{0<l<1} ((2ρkn - ln(1-l))/l)/(2nβ)) + (1/(2n)) sqrt(ln(4k/β)/ρ). [RRSSTW20]

    Noise N(0, 1/(8n²ρ)) for each query: given all other rows, one row moves a mean with variance 1/(4n²) at most,
    so k answers tell at most ρkn about the rows. Grows like β^{-1/2}.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))

    def width(log_rho: float) -> float:
        rho = exp(log_rho)
        information = information_term(2 * rho * queries * rows)
        return sqrt(information / (2 * rows * failure)) + sqrt(log(4 * queries / failure) / rho) / (2 * rows)

    centre = -log(rows * sqrt(queries))
    return best_on_line(width, np.linspace(centre - 15, centre + 10, 80).tolist())[0]


def information_term(x: float) -> float:
    """min over 0 < l < 1 of (x - ln(1-l))/l, at the root of l/(1-l) + ln(1-l) = x, with u = -ln(1-l)."""
    low, high = 0.0, x + 2 + log1p(x)
    while low < (u := (low + high) / 2) < high:
        low, high = (low, u) if _excess(u) > x else (u, high)
    return exp(u)  # at the minimum (x + u)/l = e^u


def _excess(u: float) -> float:
    """e^u - 1 - u: increasing from 0."""
    return exp(u) - 1 - u if u < 600 else float("inf")


def _rogers20(n: int, k: int, beta: float, sigma: float) -> float:
    rho = 1 / (8 * (n * sigma) ** 2)
    information = 2 * rho * k * n

    def at(slack: float) -> float:  # (x + u)/(1 - e^-u), u = -ln(1 - l)
        return (information + slack) / -expm1(-slack)

    best = exp(least(lambda u: log(at(exp(u))), -30.0, log(information + 60)))
    return sqrt(best / (2 * n * beta)) + sqrt(log(4 * k / beta) / rho) / (2 * n)


ROGERS20 = NoiseCertificate(
    name="rogers20",
    theorem="Rogers et al. 2020",
    best=alone(rz_width),
    at=_rogers20,
    plan_name="gaussian-rogers20",
    plan_theorem="Rogers et al. 2020, Theorem 2.1",
)
