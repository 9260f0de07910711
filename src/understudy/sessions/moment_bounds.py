"""What counts say about sums of measured values: bounds that cost nothing.

A moment that rises with its measure is, for a row, a sum of rises: from bin to bin it grows by what the bins' ends
allow, for each bin that the row lies in or beyond. So the sum over rows lies between sums of such rises times the
counts of the rows that lie in a bin or beyond it, which a histogram's band tells. What is left is the width of the
bins. [summation by parts]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import RISING, Moment
from understudy.sessions.knowledge import IntervalTable

MOST_BINS = 128
"""Bins of a measure whose counts are looked at; of one with more, only the number of all rows is used."""

Known = Callable[[Marginal], IntervalTable | None]


def moment_intervals(marginal: Marginal, known: Known) -> IntervalTable | None:
    """Intervals for the sums of a moment, from what is `known` of counts; None where nothing is.

    Promise     Where the intervals of the counts hold, those of the sums do.
    Why         Summation by parts, as the module says: a rise is not negative, so each count's lower end gives a
                lower bound and its upper end an upper one. For other moments, and for more than `MOST_BINS` bins,
                a row adds between 0 and 1, and the number of rows is the bound.
    Privacy     It reads intervals that follow from released values: post-processing.
    Cost        Neither privacy nor any of β. One look into what is known for each bin.
    """
    moment = marginal.moment
    assert isinstance(moment, Moment)
    rows = known(replace(marginal, moment=None))
    if rows is None or moment.low < 0:
        return None
    everything = IntervalTable(np.zeros(marginal.shape), np.maximum(rows.high, 0.0))
    if moment.kind not in RISING or len(moment.names) > 1:
        return everything
    (measure,) = moment.measures(marginal.domain)
    bins = measure.proper_size
    if bins > MOST_BINS:
        return everything
    low_ends, high_ends = (
        np.maximum.accumulate(moment.value([ends[:bins]])) for ends in measure.position_ends
    )
    low, high = low_ends[0] * rows.low, high_ends[0] * rows.high
    for place in range(1, bins):
        beyond = (np.arange(measure.size) >= place) & (np.arange(measure.size) < bins)
        later = LinearQuery(marginal.domain, (Factor((measure.name,), beyond.astype(np.float64)),))
        tail = known(Marginal(marginal.domain, marginal.by, marginal.where & later))
        if tail is None:
            return everything
        low = low + (low_ends[place] - low_ends[place - 1]) * np.maximum(tail.low, 0.0)
        high = high + (high_ends[place] - high_ends[place - 1]) * np.maximum(tail.high, 0.0)
    return IntervalTable(np.maximum(low, everything.low), np.minimum(high, everything.high))
