"""Counts made into shares of all rows and rates within groups, with the least and the most that each can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, Floats, RowBounds
from understudy.answer.cut_bins import CutBins


def share(cells: CellCounts, rows: RowBounds) -> Answer:
    """Counts as shares of all rows, within every ratio that the intervals of the counts and of `rows` allow.

    Where the number of rows is known it is one scale for all. Where it is not, the value is the ratio of the two
    estimates, or the middle where there is none of the rows, and the noise of both is in the interval. Where there
    may be no rows at all nothing is known of a share: 1/2 ± 1/2. What nobody vouches for stays so.

    The population error of counts, n·(population's share) ± e, is e/n where n is known. Else it is the one that
    the source derives for shares (`sessions.population`), or None.
    """
    counted = cells.answer
    if rows.least == rows.most:
        n = max(rows.most, 1.0)
        expected = None if counted.population_error is None else counted.population_error / n
        scaled = {
            name: told / n
            for name in ("value", "error", "noisy", "low", "high")
            if (told := getattr(counted, name)) is not None
        }
        cut = None if cells.cut_bins is None else cells.cut_bins.divided(n)
        return replace(counted, **scaled, population_error=expected, cut_bins=cut)
    told = None if counted.population_error is None else rows.share_population
    reach = None if told is None else told()
    expected = None if reach is None else np.full(counted.value.shape, reach.error)
    vouched = np.isfinite(cells.half_width)
    below, above = (np.where(vouched, off, 0.0) for off in (cells.below, cells.above))
    low, high = np.zeros(below.shape), np.ones(below.shape)
    if rows.least > 0:
        low = np.clip((cells.centre - below) / rows.most, 0, 1)
        high = np.clip((cells.centre + above) / rows.least, 0, 1)
    scale = rows.estimate or rows.bound or max(rows.least, 1.0)
    noisy = (low + high) / 2 if rows.estimate is None or rows.least <= 0 else cells.centre / scale
    value = np.clip(noisy, low, high)
    return replace(
        counted,
        value=np.where(vouched, value, counted.value / scale),
        error=np.where(vouched, np.maximum(high - value, value - low), np.inf),
        noisy=np.where(vouched, noisy, counted.noisy / scale),
        population_error=expected,
        population_beta=None if reach is None else reach.beta,
        population_theorem=None if reach is None else reach.theorem,
        cut_bins=_cut_bins(low, high, lambda: share(cells.without_bins(), rows), cells),
        low=None if counted.low is None else low,
        high=None if counted.high is None else high,
    )


def rate(meeting: CellCounts, others: CellCounts) -> Answer:
    """The part of each group's rows that meets a condition, from the counts of those that do and do not.

    With a of a group's rows meeting it and b not, the rate is a/(a + b), which grows with a and falls with b.
    So where a and b are within their half-widths, it lies between the values at the ends. The value is the
    ratio of the two estimates, cut to that interval; of a group that may be empty nothing is known: the
    interval is wide, at most 0 to 1, and the value its middle where no estimate is left. No theorem gives the
    population error of a ratio here.
    """
    known = np.isfinite(meeting.half_width) & np.isfinite(others.half_width)
    low, high = np.zeros(known.shape), np.ones(known.shape)
    least, most = _ends(meeting, known)
    fewest, largest = _ends(others, known)
    np.divide(least, least + largest, out=low, where=known & (least + largest > 0))
    np.divide(most, most + fewest, out=high, where=known & (most + fewest > 0))
    centre, rest = np.maximum(meeting.centre, 0.0), np.maximum(others.centre, 0.0)
    noisy = (low + high) / 2
    np.divide(centre, centre + rest, out=noisy, where=centre + rest > 0)
    value = np.clip(noisy, low, high)
    error = np.where(known, np.maximum(high - value, value - low), np.inf)
    has_middles = meeting.answer.low is None or others.answer.low is None
    return replace(
        meeting.answer,
        value=value,
        error=error,
        noisy=noisy,
        population_error=None,
        population_beta=None,
        population_theorem=None,
        cut_bins=_cut_bins(
            low, high, lambda: rate(meeting.without_bins(), others.without_bins()), meeting, others
        ),
        low=None if has_middles else low,
        high=None if has_middles else high,
    )


def _cut_bins(low: Floats, high: Floats, bare: Callable[[], Answer], *cells: CellCounts) -> CutBins | None:
    """What is certain of numbers that are made of counts with cut bins; None where no bin was cut."""
    if all(one.cut_bins is None for one in cells):
        return None
    return CutBins.beyond(low, high, bare().error)


def _ends(cells: CellCounts, known: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the most that counts can be, never below 0; the counts themselves where nothing is known."""
    below, above = (np.where(known, off, 0.0) for off in (cells.below, cells.above))
    return np.maximum(cells.centre - below, 0.0), np.maximum(cells.centre + above, 0.0)
