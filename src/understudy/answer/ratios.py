"""Counts made into shares of all rows and rates within groups, with the least and the most that each can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, Floats, RowBounds
from understudy.answer.cut_bins import CutBins

Ends: TypeAlias = tuple[Floats, Floats]
"""The least and the largest that numbers can be."""


def share(cells: CellCounts, rows: RowBounds) -> Answer:
    """Counts as shares of all rows, within every ratio that the intervals of the counts and of `rows` allow.

    Where the number of rows is known it is one scale for all. Where it is not, the value is the ratio of the two
    estimates, or the middle where there is none of the rows, and the noise of both is in the interval. Where there
    may be no rows at all nothing is known of a share: 1/2 ± 1/2. What nobody vouches for stays so.

    The population error of counts, n·(population's share) ± e, is e/n where n is known. Else it is the one that
    the source derives for shares (`sessions.population`), or None; that of counts may have been told before n was
    known, and then was None.
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
    vouched = np.isfinite(cells.half_width)
    reach = rows.share_population() if rows.share_population is not None and vouched.all() else None
    expected = None if reach is None else np.full(counted.value.shape, reach.error)
    low, high = _ends_of_share(cells, rows)
    scale = rows.estimate or rows.bound or max(rows.least, 1.0)
    noisy = (low + high) / 2 if rows.estimate is None or rows.least <= 0 else cells.centre / scale
    noisy = np.where(vouched, noisy, counted.noisy / scale)
    value = np.clip(noisy, low, high)
    return replace(
        counted,
        value=value,
        error=np.where(vouched, np.maximum(high - value, value - low), np.inf),
        noisy=noisy,
        population_error=expected,
        population_beta=None if reach is None else reach.beta,
        population_theorem=None if reach is None else reach.theorem,
        cut_bins=_cut_bins((low, high), vouched, lambda: _ends_of_share(cells.without_bins(), rows), cells),
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
    vouched = np.isfinite(meeting.half_width) & np.isfinite(others.half_width)
    low, high = _ends_of_rate(meeting, others)
    centre, rest = np.maximum(meeting.centre, 0.0), np.maximum(others.centre, 0.0)
    noisy = (low + high) / 2
    np.divide(centre, centre + rest, out=noisy, where=centre + rest > 0)
    value = np.clip(noisy, low, high)
    error = np.where(vouched, np.maximum(high - value, value - low), np.inf)
    has_middles = meeting.answer.low is None or others.answer.low is None

    def bare() -> Ends:
        return _ends_of_rate(meeting.without_bins(), others.without_bins())

    return replace(
        meeting.answer,
        value=value,
        error=error,
        noisy=noisy,
        population_error=None,
        population_beta=None,
        population_theorem=None,
        cut_bins=_cut_bins((low, high), vouched, bare, meeting, others),
        low=None if has_middles else low,
        high=None if has_middles else high,
    )


def _ends_of_share(cells: CellCounts, rows: RowBounds) -> Ends:
    """The least and the largest shares that counts and rows allow: 0 and 1 where nobody vouches for the counts."""
    vouched = np.isfinite(cells.half_width)
    low, high = np.zeros(vouched.shape), np.ones(vouched.shape)
    if rows.least > 0:
        least, most = _ends(cells, vouched)
        low = np.where(vouched, np.minimum(least / rows.most, 1.0), low)
        high = np.where(vouched, np.minimum(most / rows.least, 1.0), high)
    return low, high


def _ends_of_rate(meeting: CellCounts, others: CellCounts) -> Ends:
    """The least and the largest rates that two counts allow: 0 and 1 where nobody vouches for one of them."""
    vouched = np.isfinite(meeting.half_width) & np.isfinite(others.half_width)
    low, high = np.zeros(vouched.shape), np.ones(vouched.shape)
    least, most = _ends(meeting, vouched)
    fewest, largest = _ends(others, vouched)
    np.divide(least, least + largest, out=low, where=vouched & (least + largest > 0))
    np.divide(most, most + fewest, out=high, where=vouched & (most + fewest > 0))
    return low, high


def _cut_bins(
    ends: Ends, vouched: NDArray[np.bool_], bare: Callable[[], Ends], *cells: CellCounts
) -> CutBins | None:
    """What is certain of numbers that are made of counts with cut bins; None where no bin was cut.

    `bare` gives the ends that there would be if rows were spread evenly in their bins.
    """
    if all(one.cut_bins is None for one in cells):
        return None
    least, most = bare()
    return CutBins.beyond(*ends, np.where(vouched, (most - least) / 2, np.inf))


def _ends(cells: CellCounts, known: NDArray[np.bool_]) -> Ends:
    """The least and the most that counts can be, never below 0; the counts themselves where nothing is known."""
    below, above = (np.where(known, off, 0.0) for off in (cells.below, cells.above))
    return np.maximum(cells.centre - below, 0.0), np.maximum(cells.centre + above, 0.0)
