"""Bounded noise for a holdout: a given half-width at its best α, and how many questions a width allows.

The law, its bound and its best certificate live in `understudy.theory.cosine_noise` and are imported here.
"""

from __future__ import annotations

from math import exp, inf

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, log_of_inverse, whole
from understudy.theory.capacity import last_where
from understudy.theory.cosine_noise import BoundedWidth, cosine_excess, cosine_log_bound, cosine_width
from understudy.theory.minimise import best_on_line
from understudy.theory.tilting import tilting_t

__all__ = [
    "BoundedWidth",
    "cosine_capacity",
    "cosine_excess",
    "cosine_log_bound",
    "cosine_t",
    "cosine_width",
]


def cosine_t(n: Whole, k: Whole, r: Number, beta: Number) -> tuple[float, float]:
    """(t, α) for noise of half-width r, at the best α."""
    rows, queries, reach = whole(n, "n"), whole(k, "k"), above_zero(r, "r")
    log_of_inverse(beta)

    def at(log_excess: float) -> float:
        alpha = 1 + exp(log_excess)
        bound = cosine_log_bound(rows, alpha, reach, queries)
        return tilting_t(rows, beta, alpha, bound) if bound < inf else inf

    t, place = best_on_line(at, np.linspace(-4.0, 5.0, 37).tolist())
    return t, 1 + exp(place)


def cosine_capacity(n: Whole, width: Number, beta: Number) -> int:
    """The largest k at which all of k answers on n rows are within `width`; 0 if not even one is."""
    wanted, failure = above_zero(width, "width"), float(probability(beta))
    return last_where(lambda k: cosine_width(n, k, failure).width <= wanted, 10**12)
