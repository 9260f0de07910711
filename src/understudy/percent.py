"""A part of the whole in percent, for people: never "100%" for less than all, nor "0%" for more than nothing."""

from __future__ import annotations

from math import floor, log10

MILLIONTH = 1e-6
"""The least part that is told by a number."""

LEAST_PERCENT = 1e-4
"""Parts below this, 0.01%, are told in millionths: percent would be mostly zeros."""

MOST_TIMES = 100
"""Amounts above so many times the whole are told no closer."""


def percent_of(amount: float, whole: float = 1) -> str:
    """The part of a `whole` that an `amount` is: with two digits that count, and more of them just below all.

    Whole numbers are compared as they are, so that one of any size that is not all is told so. Of a whole of 0
    nothing is "0%", and all else more than 100%.

    >>> [percent_of(share) for share in (0, 0.0000004, 0.0000026, 0.000026, 0.00042, 0.02, 0.031, 0.67)]
    ['0%', 'less than a millionth', '2.6 millionths', '26 millionths', '0.042%', '2%', '3.1%', '67%']
    >>> [percent_of(share) for share in (0.994, 0.9996, 0.99999, 1, 1.001, 1.2, 12.5, 1e9)]
    ['99.4%', '99.96%', 'more than 99.99%', '100%', 'more than 100%', '120%', '1,250%', 'more than 10,000%']
    >>> percent_of(10**20 - 1, 10**20), percent_of(1, 0)
    ('more than 99.99%', 'more than 100%')
    """
    if amount <= 0:
        return "0%"
    if amount >= whole:
        return _all_or_more(amount, whole)
    share = float(amount / whole)
    if share < MILLIONTH:
        return "less than a millionth"
    if share < LEAST_PERCENT:
        count = _rounded(share / MILLIONTH, _two_digits(share / MILLIONTH))
        return "a millionth" if count == "1" else f"{count} millionths"
    if share > 0.9999:
        return "more than 99.99%"
    percent = 100 * share
    digits = _two_digits(percent) if percent <= 99 else 1 if percent <= 99.9 else 2
    return f"{_rounded(percent, digits)}%"


def _all_or_more(amount: float, whole: float) -> str:
    if amount == whole:
        return "100%"
    if whole <= 0:
        return "more than 100%"
    if amount > MOST_TIMES * whole:
        return f"more than {100 * MOST_TIMES:,}%"
    percent = round(100 * float(amount / whole))
    return "more than 100%" if percent == 100 else f"{percent:,}%"


def _two_digits(number: float) -> int:
    """How many digits after the point leave two that count; none of a number of two digits or more."""
    return max(0, 1 - floor(log10(number) + 1e-9))


def _rounded(number: float, digits: int) -> str:
    shown = f"{number:.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
