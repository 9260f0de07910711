"""Round places at which a range of numbers, days or moments is cut into bins."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from understudy.declaration.skew import BINS
from understudy.domain.instant import instant_of, seconds_of

MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000)
"""Lengths of bins of dates."""

SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Lengths of bins of timestamps that are no longer than a day."""


def round_step(low: Fraction, high: Fraction, kind: str) -> Fraction:
    """The smallest of 1, 2 and 5 times a power of ten that cuts the range into at most `BINS` steps."""
    # No finer than a float of this size can tell.
    rough = max((high - low) / BINS, Fraction(1, 10**9), abs(high) / 10**12)
    unit = Fraction(10) ** (Decimal(rough.numerator) / Decimal(rough.denominator)).adjusted()
    step = next(unit * m for m in (1, 2, 5, 10, 20) if unit * m >= rough)
    return max(step, Fraction(1)) if kind == "integer" else step


def round_edges(low: Fraction, high: Fraction, kind: str) -> list[Fraction]:
    """Both bounds and the round numbers between them."""
    step = round_step(low, high, kind)
    high = high if high > low else low + step
    inner = [i * step for i in range(floor(low / step) + 1, ceil(high / step))]
    return [low, *inner, high]


def month_edges(low: dt.date, high: dt.date) -> list[dt.date]:
    """Both bounds, and between them the first days of months, quarters, years or more."""
    first, last = low.year * 12 + low.month, high.year * 12 + high.month
    step = next(months for months in MONTHS if last - first <= months * BINS)
    months = (month for month in range(first - first % step, last, step) if month >= 12)  # from the year 1
    starts = (dt.date(month // 12, month % 12 + 1, 1) for month in months)
    return [low, *(day for day in starts if low < day < high), high]


def time_edges(low: dt.datetime, high: dt.datetime, step: int = 1) -> list[dt.datetime]:
    """Both bounds, and between them usual begins of periods: of seconds up to days, of months or more.

    `step` is how many seconds the values are apart; lengths up to a day are multiples of it. Up to twice `BINS`
    periods are taken one by one.

    >>> [str(edge)[11:] for edge in time_edges(dt.datetime(2024, 1, 1, 9, 30), dt.datetime(2024, 1, 1, 9, 30, 3))]
    ['09:30:00', '09:30:01', '09:30:02', '09:30:03']
    """
    first, last = seconds_of(low), seconds_of(high)
    for length in SECONDS:
        if length % step == 0 and last - first <= 2 * BINS * length:
            inner = range(first // length * length + length, last, length)
            return [low, *(instant_of(second) for second in inner), high]
    days = month_edges(low.date(), high.date())
    starts = (dt.datetime.combine(day, dt.time()) for day in days[1:-1])
    return [low, *(start for start in starts if low < start < high), high]
