"""Sums with weights between 0 and 1, such as those that averages are made of, from what is known of counts.

A weighted sum is a sum of counts: Σᵢ wᵢ·cᵢ = Σₖ (vₖ - vₖ₋₁)·c(w ≥ vₖ), over the levels v₁ < v₂ < … of the
weights, with v₀ = 0. Where the weights rise or fall along an ordered attribute, every set {w ≥ v} is a range
of it. So a band for all ranges, of half-width h, tells the sum to within h times the largest weight: no more
than it tells a count, and at no cost. [summation by parts; `moment_bounds` has the same for values that were
not put into bins]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import IntervalTable

MOST_LEVELS = 128
"""Different weights up to which a sum is taken apart."""

Known = Callable[[Marginal], IntervalTable | None]


def weighted_intervals(marginal: Marginal, known: Known) -> IntervalTable | None:
    """Intervals for the weighted sums of a marginal, from what is `known` of counts.

    Promise     Where the intervals of the counts hold, those of the sums do.
    Why         Summation by parts, as the module says: the differences of levels are positive, so lower ends add
                up to a lower bound and upper ends to an upper one.
    Privacy     It reads intervals that follow from released values: post-processing.
    Cost        Neither privacy nor any of β. One look into what is known for each of at most `MOST_LEVELS` levels.

    None where more than one factor of its condition has weights other than 0 and 1, or that factor is about
    several attributes or about one that the marginal groups by; and where nothing is known of one of the
    counts.
    """
    weighted = [factor for factor in marginal.where.factors if not _is_counting(factor)]
    if len(weighted) != 1 or len(weighted[0].clique) != 1 or weighted[0].clique[0] in marginal.by:
        return None
    [factor] = weighted
    others = tuple(other for other in marginal.where.factors if other is not factor)
    levels = np.unique(factor.weights)
    levels = levels[levels > 0]
    if levels.size > MOST_LEVELS:
        return None
    low, high, before = np.zeros(marginal.shape), np.zeros(marginal.shape), 0.0
    for level in levels:
        held = Factor(factor.clique, (factor.weights >= level).astype(np.float64))
        counted = known(Marginal(marginal.domain, marginal.by, LinearQuery(marginal.domain, (*others, held))))
        if counted is None:
            return None
        low = low + (level - before) * counted.low
        high = high + (level - before) * counted.high
        before = float(level)
    return IntervalTable(low, high)


def _is_counting(factor: Factor) -> bool:
    return bool(((factor.weights == 0) | (factor.weights == 1)).all())
