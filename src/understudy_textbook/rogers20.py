"""Rogers et al. 2020, and their route with one β for noise and information together.

The printed theorem, `rz_width`, is in `understudy.theory.rogers20` and is imported here.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, whole
from understudy.theory.cvar import cvar_noise_gauss
from understudy.theory.minimise import best_on_line
from understudy.theory.rogers20 import information_term, rz_width

__all__ = ["information_term", "rz_cvar_width", "rz_width"]


def rz_cvar_width(n: Whole, k: Whole, beta: Number) -> float:
    """min over ρ of sqrt(min_{0<l<1} ((2ρkn - ln(1-l))/l)/(4nβ)) + CVaR_β of the largest of k noises.

    The mean square of the gap between sample and population, of whichever query is chosen, is at most the bracket
    over 4n. So its CVaR_β is at most the root of that over β (Jensen), and as in `theory.cvar` all answers are
    within the CVaR_β of the noise and that of the gap, except with probability β. The printed theorem shares β
    between the two by a union, and so has twice the bracket.

    >>> round(rz_width(10**5, 10**4, 0.05), 4), round(rz_cvar_width(10**5, 10**4, 0.05), 4)
    (0.1845, 0.1479)
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    largest = cvar_noise_gauss(1, queries, failure)

    def width(log_rho: float) -> float:
        rho = exp(log_rho)
        gap = sqrt(information_term(2 * rho * queries * rows) / (4 * rows * failure))
        return gap + largest / sqrt(8 * rows**2 * rho)

    centre = -log(rows * sqrt(queries))
    return min(1.0, best_on_line(width, np.linspace(centre - 15, centre + 10, 80).tolist())[0])
