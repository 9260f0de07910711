"""Moments of time as text and as numbers: ISO 8601, in UTC, counted in whole seconds since 1970-01-01 00:00:00.

A text with an offset (``+02:00``) or with ``Z`` is the moment in UTC; one without is taken as it stands, which is
UTC as well. Fractions of a second are read over, downwards: 09:30:00.7 lies in the second 09:30:00. Every engine
is given the same regular expression (`INSTANT`), so that all of them read the same moments.
"""

from __future__ import annotations

import datetime as dt
import re

SECOND = dt.timedelta(seconds=1)
DAY_SECONDS = 86_400

EPOCH = dt.datetime(1970, 1, 1)

DAY_PART = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-([0-9]{1,2})-([0-9]{1,2})"
TIME_PART = "([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,][0-9]{1,9})?)?"
ZONE_PART = "(?:[zZ]|[uU][tT][cC]|([+-])(0[0-9]|1[0-8])(?::?([0-5][0-9]))?)"
INSTANT = f"^{DAY_PART}(?:(?:[Tt]|[ ]+){TIME_PART}[ ]*{ZONE_PART}?)?"
"""A moment from the beginning of a text, without the engine's mark for its end.

Groups: year, month, day, hour, minute, second, and of the offset the sign, the hours and the minutes.
"""

_WHOLE = re.compile(INSTANT + r"\Z")
_FRACTION = re.compile(r":[0-9]{2}[.,]([0-9]{1,9})")


def seconds_of(moment: dt.date) -> int:
    """Whole seconds from 1970-01-01 00:00:00 to a moment in UTC, rounded down; of a day, to its midnight.

    A moment with a time zone is brought to UTC first.

    >>> seconds_of(dt.datetime(1970, 1, 2, 0, 0, 1)), seconds_of(dt.datetime(1969, 12, 31, 23, 59, 59, 500_000))
    (86401, -1)
    """
    return (naive(moment) - EPOCH) // SECOND


def naive(moment: dt.date) -> dt.datetime:
    """A moment in UTC, without a mark for it; a day as its midnight. The ends of the calendar are not passed."""
    if not isinstance(moment, dt.datetime):
        return dt.datetime.combine(moment, dt.time())
    offset = moment.utcoffset()
    return moment if offset is None else _shifted(moment.replace(tzinfo=None), -offset)


def instant_of(seconds: int) -> dt.datetime:
    """The moment so many seconds after 1970-01-01 00:00:00; raises an `OverflowError` beyond the calendar.

    >>> instant_of(-1)
    datetime.datetime(1969, 12, 31, 23, 59, 59)
    """
    return EPOCH + dt.timedelta(seconds=seconds)


def read_instant(text: str, *, fraction: bool = False) -> dt.datetime | None:
    """The moment in UTC that a text without blanks around it says; None where it says none.

    A day alone is its midnight. Fractions of a second are left out, unless `fraction` asks for microseconds.

    >>> read_instant("2024-02-29T09:30:15.7+02:00"), read_instant("2023-02-29 09:30")
    (datetime.datetime(2024, 2, 29, 7, 30, 15), None)
    """
    found = _WHOLE.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    part = _FRACTION.search(text) if fraction else None
    try:
        local = dt.datetime(
            year, month, day, hour, minute, second, int(part[1].ljust(6, "0")[:6]) if part else 0
        )
    except ValueError:
        return None
    sign, hours, minutes = found.groups()[6:]
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return _shifted(local, offset if sign == "-" else -offset)


def _shifted(local: dt.datetime, by: dt.timedelta) -> dt.datetime:
    try:
        return local + by
    except OverflowError:
        return dt.datetime.min if by < dt.timedelta() else dt.datetime.max.replace(microsecond=0)
