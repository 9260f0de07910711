"""The smallest price that buys a given error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from understudy.errors import RefusedError
from understudy.rational import MAX_EPSILON

DIGITS = 4
"""Significant digits of a calibrated price, so that people can read it aloud."""


def cheapest(suffices: Callable[[Fraction], bool]) -> Fraction:
    """The smallest parameter that suffices, rounded up to a few digits; a larger one must suffice as well.

    >>> cheapest(lambda epsilon: 3 / epsilon <= 10)
    Fraction(3, 10)
    """
    exponent, most = (
        -12,
        10**DIGITS - 1,
    )  # candidates are digits · 10^(exponent - DIGITS + 1), 12 orders of size
    if not suffices(Fraction(MAX_EPSILON)):
        raise RefusedError("no price is high enough for this error", remedy="ask for a wider one")
    while exponent < 3 and not suffices(_price(most, exponent)):
        exponent += 1
    low, high = 10 ** (DIGITS - 1) - 1, most
    while high - low > 1:  # low does not suffice (or is a power of ten below), high does
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(_price(middle, exponent)) else (middle, high)
    return min(_price(high, exponent), Fraction(MAX_EPSILON))


def _price(digits: int, exponent: int) -> Fraction:
    return Fraction(digits) * Fraction(10) ** (exponent - DIGITS + 1)
