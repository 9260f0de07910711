"""Prices, parts, numbers and times as people read them: parts of a budget, never powers of ten."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any

from understudy.percent import percent_of


def part(share: float | None, whole: float = 1) -> str:
    """A part of a budget, as `percent_of` tells it, and nothing as a word.

    >>> [part(share) for share in (0.5, 0.0312, 0.000026, 0)]
    ['50%', '3.1%', '26 millionths', 'nothing']
    """
    return "nothing" if share is None or share <= 0 else percent_of(share, whole)


def left(share: float) -> str:
    """What is left of a budget in percent; never "100%" where something was spent, nor "0%" where some is left.

    >>> [left(share) for share in (1, 0.99999, 0.732, 0.0001, 0)]
    ['100%', '99.9%', '73.2%', 'less than 0.1%', '0%']
    """
    if share >= 1 or share <= 0:
        return "100%" if share >= 1 else "0%"
    if share < 0.001:
        return "less than 0.1%"
    return f"{min(round(100 * share, 1), 99.9):g}%"


def number(value: Any) -> str:
    """A number with separators of thousands: whole where it is, else with about four digits that count.

    >>> [number(value) for value in (12345, 1234.5678, 0.123456, -0.00001, None)]
    ['12,345', '1,235', '0.1235', '-0.00001', '–']
    """
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    size = floor(log10(abs(value)))
    digits = min(max(0, 3 - size), 9)
    shown = f"{value:,.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def many(count: int, what: str, plural: str = "") -> str:
    """A number of things: `1 question`, `2,000 questions`."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def about(count: int) -> str:
    """A number that is a forecast, with two digits that count.

    >>> [about(count) for count in (7, 267, 15_480)]
    ['7', '270', '15,000']
    """
    if count < 100:
        return f"{count:,}"
    power = 10 ** (len(str(count)) - 2)
    return f"{round(count / power) * power:,}"


def time_of(at: Any) -> str:
    """A time as a page shows it, in UTC: from seconds since 1970 or from the text of ISO 8601."""
    if at is None or at == "":
        return "never"
    if isinstance(at, int | float):
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
    return str(at)[:16].replace("T", " ")


def chances(beta: float) -> str:
    """The probability with which a promise holds.

    >>> chances(0.05), chances(0.001)
    ('95%', '99.9%')
    """
    return f"{100 * (1 - beta):.6g}%"


def chance(probability: float) -> str:
    """A small probability.

    >>> chance(1e-9), chance(0.05)
    ('one in 1,000,000,000', '0.05')
    """
    return f"one in {round(1 / probability):,}" if 0 < probability < 0.001 else f"{probability:g}"


def short(text: str, most: int = 120) -> str:
    """A text on one line, cut where it is long.

    >>> short("count  by sex", 9)
    'count by…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
