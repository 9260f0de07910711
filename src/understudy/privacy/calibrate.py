"""The smallest price that buys a given error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from understudy.errors import RefusedError
from understudy.rational import MAX_EPSILON, MIN_PARAMETER

DIGITS = 4
"""Significant digits of a calibrated price, so that people can read it aloud."""


def cheapest(suffices: Callable[[Fraction], bool]) -> Fraction:
    """The smallest parameter that suffices, rounded up to a few digits; a larger one must suffice as well.

    >>> cheapest(lambda epsilon: 3 / epsilon <= 10)
    Fraction(3, 10)
    """
    low, high = MIN_PARAMETER, Fraction(MAX_EPSILON)
    if not suffices(high):
        raise RefusedError("no price is high enough for this error; ask for a wider one")
    if suffices(low):
        return low
    while high > low * Fraction(10**DIGITS + 1, 10**DIGITS):
        middle = _rounded_up((low + high) / 2 if high < 4 * low else _geometric_middle(low, high))
        if not low < middle < high:
            break
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _geometric_middle(low: Fraction, high: Fraction) -> Fraction:
    return Fraction((float(low) * float(high)) ** 0.5)


def _rounded_up(value: Fraction) -> Fraction:
    """`value` to a few significant digits, upwards."""
    exponent = 0
    while value * 10**exponent < 10 ** (DIGITS - 1):
        exponent += 1
    return Fraction(-(-value * 10**exponent // 1), 10**exponent)
