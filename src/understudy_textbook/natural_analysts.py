"""Natural analysts: widths under an *assumption* about the analyst. Never a certificate."""

from __future__ import annotations

from math import log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import Whole, above_zero, require, whole


def progressive_width(n: Whole, t: Whole, dimension: Whole, contraction: Number) -> float:
    """sqrt(K·d·ln(t+1)/n), K = 1 + ln(1/(1-λ))/ln(1/λ): t queries of an analyst whose memory fades like λ^i.

    Assumption-based and up to a constant that is not published: it holds if the analyst is λ-progressive, which
    nobody can check. [ZrnicHardt19]
    """
    fading = above_zero(contraction, "contraction")
    require(fading < 1, "the contraction must be below 1, or the analyst forgets nothing")
    memory = 1 + log(1 / (1 - fading)) / log(1 / fading)
    return sqrt(memory * whole(dimension, "dimension") * log(whole(t, "t") + 1) / whole(n, "n"))
