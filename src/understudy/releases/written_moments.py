"""Days and moments that a declared format can write, bin by bin: synthetic values are drawn among these.

A format may say less than a moment has (minutes without seconds), a year of two digits is one of 1969 to 2068, and
a column of whole numbers loses the zeros that a text would begin with. What is written otherwise, the declaration
would not read back.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from understudy.domain.attribute import Outside
from understudy.domain.bins import Bins
from understudy.domain.date_format import PIVOT, DateFormat
from understudy.domain.instant import DAY_SECONDS, seconds_of

Whole = NDArray[np.int64]

_DAY_ZERO = dt.date(1970, 1, 1)


def whole(edge: int | dt.date) -> int:
    """An edge as a whole number: of a date, the days since 1970, and of a timestamp the seconds."""
    if isinstance(edge, dt.datetime):
        return seconds_of(edge)
    return (edge - _DAY_ZERO).days if isinstance(edge, dt.date) else int(edge)


@dataclass(frozen=True)
class Drawable:
    """The whole numbers that each bin of a discrete attribute shows, those of missing and other values apart.

    They are the multiples of `step` from `low` to `high`, in units of `whole`, one element for each bin;
    `is_written` says of each whether the declared writing gives such a number back. `beyond` is the nearest number
    outside the bounds that is told so, and None where there is none.
    """

    low: Whole
    high: Whole
    step: Whole
    is_written: NDArray[np.bool_]
    beyond: int | None

    @classmethod
    def of(cls, attribute: Bins, *, digits: bool = False) -> Drawable:
        """What the bins of a discrete `attribute` show; with `digits`, in a column of whole numbers."""
        own = int(attribute.spacing)
        starts = [whole(start) for start in attribute.starts]
        lasts = [*(start - own for start in starts[1:]), whole(attribute.upper) // own * own]
        ways = [*_ways(attribute, digits=digits)]
        found = [next(_cut(ways, low, high), None) for low, high in zip(starts, lasts, strict=True)]
        kept = [
            (low, high, own) if cut is None else cut
            for cut, low, high in zip(found, starts, lasts, strict=True)
        ]
        low, high, step = (np.array(column, np.int64) for column in zip(*kept, strict=True))
        written = np.array([cut is not None for cut in found])
        return cls(low, high, step, written, _beyond(ways, starts[0], lasts[-1], own))


def can_be_digits(attribute: Bins) -> bool:
    """Whether a column of whole numbers can show a day or a moment of every cell, as 20241231 is read."""
    if not attribute.intake.formats:
        return False
    found = Drawable.of(attribute, digits=True)
    needs_beyond = attribute.null and attribute.outside is Outside.OTHER
    return bool(found.is_written.all()) and not (needs_beyond and found.beyond is None)


_Way = tuple[int, int, int]
"""The first and the last number that can be written, and the distance from one to the next."""


def _ways(attribute: Bins, *, digits: bool) -> Iterator[_Way]:
    """The runs of numbers that can be written; of several formats that can, one that says most."""
    own = int(attribute.spacing)
    formats = [format for format in attribute.intake.formats if not digits or _is_a_number(format)]
    if attribute.kind not in ("date", "timestamp"):
        yield -(2**63), 2**63 - 1, own
        return
    finest = min(formats, key=lambda format: format.seconds, default=None)
    if finest is None and attribute.intake.formats:
        return
    unit, least = (1, 1) if attribute.kind == "date" else (DAY_SECONDS, finest.seconds if finest else 1)
    for first, last in _years(finest, digits=digits):
        end = whole(dt.date(last, 12, 31)) + 1
        yield whole(dt.date(first, 1, 1)) * unit, end * unit - 1, lcm(own, least)


def _years(format: DateFormat | None, *, digits: bool) -> list[tuple[int, int]]:
    """The years that the format tells; a number has no zero before its first digit."""
    if format is None or "Y" in format.fields:
        return [(1000 if digits else 1, 9999)]
    pivot = 1900 + PIVOT
    return [(pivot, 1999), (2010, pivot + 99)] if digits else [(pivot, pivot + 99)]


def _is_a_number(format: DateFormat) -> bool:
    """Whether it writes digits alone, those of the year first, and no more than a column of numbers holds."""
    return format.has_digits_alone and format.fields[0] in "Yy" and "f" not in format.fields


def _cut(ways: list[_Way], low: int, high: int) -> Iterator[_Way]:
    """What of each run lies between two numbers, where something does."""
    for first, last, step in ways:
        start, end = -(-max(low, first) // step) * step, min(high, last) // step * step
        if start <= end:
            yield start, end, step


def _beyond(ways: list[_Way], lower: int, upper: int, own: int) -> int | None:
    """The first number above the last bin that can be written, else the last one below the first bin."""
    above = (start for start, _, _ in _cut(ways, upper + own, 2**63 - 1))
    below = (end for _, end, _ in _cut(ways, -(2**63), lower - own))
    return next(above, next(below, None))
