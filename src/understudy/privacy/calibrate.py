"""The smallest price that buys a given error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, log10

from understudy.errors import RefusedError
from understudy.rational import MAX_EPSILON

DIGITS = 4
"""Significant digits of a calibrated price, so that people can read it aloud."""


LEAST_EXPONENT, LARGEST_EXPONENT = -12, 3
"""Of ten, in the prices that are tried: the largest is `MAX_EPSILON`."""

_A_SIZE = 9 * 10 ** (DIGITS - 1)
"""Prices of one exponent."""


def cheapest(suffices: Callable[[Fraction], bool], *, near: float | None = None) -> Fraction:
    """The smallest parameter that suffices, rounded up to a few digits; a larger one must suffice as well.

    It is the same whatever it is looked for `near` to: a good guess saves most of the trials.

    >>> cheapest(lambda epsilon: 3 / epsilon <= 10)
    Fraction(3, 10)
    >>> cheapest(lambda epsilon: 3 / epsilon <= 10, near=0.2)
    Fraction(3, 10)
    """
    if not suffices(Fraction(MAX_EPSILON)):
        raise RefusedError("no price is high enough for this error", remedy="ask for a wider one")
    last = (LARGEST_EXPONENT - LEAST_EXPONENT) * _A_SIZE  # of `MAX_EPSILON`: no higher price is ever tried
    # `fails` does not suffice or is below all prices, `success` does
    if near is None:
        fails, success = -1, _A_SIZE - 1
        while success < last and not suffices(_price(success)):
            fails, success = success, min(success + _A_SIZE, last)
    else:
        fails, success = _around(suffices, min(max(_place(near), 0), last - 1), last)
    while success - fails > 1:
        middle = (fails + success) // 2
        fails, success = (fails, middle) if suffices(_price(middle)) else (middle, success)
    return _price(success)


def _around(suffices: Callable[[Fraction], bool], start: int, last: int) -> tuple[int, int]:
    """A place whose price does not suffice and a later one whose price does: steps that grow from `start` on."""
    step = 1
    if suffices(_price(start)):
        fails, success = start - 1, start
        while fails >= 0 and suffices(_price(fails)):
            fails, success, step = fails - step, fails, 2 * step
        return max(fails, -1), success
    fails, success = start, min(start + 1, last)
    while success < last and not suffices(_price(success)):
        fails, success, step = success, min(success + step, last), 2 * step
    return fails, success


def _price(place: int) -> Fraction:
    """The price at a place in the order of all prices of `DIGITS` digits."""
    exponent, digits = divmod(place, _A_SIZE)
    return Fraction(digits + 10 ** (DIGITS - 1)) * Fraction(10) ** (exponent + LEAST_EXPONENT - DIGITS + 1)


def _place(amount: float) -> int:
    """About the place of a price."""
    amount = min(max(amount, 10.0**LEAST_EXPONENT), 10.0**LARGEST_EXPONENT)
    exponent = floor(log10(amount))
    digits = int(amount * 10.0 ** (DIGITS - 1 - exponent)) - 10 ** (DIGITS - 1)
    return (exponent - LEAST_EXPONENT) * _A_SIZE + digits
