"""What a bound may be asked about. Each refusal is one sentence that names the condition."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, isfinite, log
from operator import index
from sys import float_info
from typing import SupportsIndex

from understudy.errors import ParameterError
from understudy.rational import Number, exact, probability

Whole = int | float
"""A whole number, of any size; 1e5 is one, and 1e100 means ten to the hundredth."""


def whole(value: Whole, name: str, *, at_least: int = 1) -> int:
    """`value` as an integer of at least `at_least`.

    >>> whole(1e5, "n")
    100000
    """
    if type(value) is int and value >= at_least:
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = Fraction(index(value))  # integers of numpy too
    else:
        number = exact(value, name)
    if number.denominator != 1:
        raise ParameterError(f"{name} must be a whole number, not {value!r}")
    if number < at_least:
        raise ParameterError(f"{name} must be at least {at_least}, not {value!r}")
    return int(number)


def above_zero(value: Number, name: str) -> float:
    """`value` as a float, refused unless 0 < value < ∞, also after rounding."""
    number = _float(value, name)
    if not 0 < number < inf:
        raise ParameterError(f"{name} must be positive, not {value!r}")
    return number


def at_least_zero(value: Number, name: str) -> float:
    """`value` as a float, refused unless 0 ≤ value < ∞."""
    number = _float(value, name)
    if number < 0:
        raise ParameterError(f"{name} must not be negative, not {value!r}")
    return number


def exact_above_zero(value: Number, name: str) -> Fraction:
    """`value` as the rational it was written as, refused unless positive."""
    number = exact(value, name)
    if number <= 0:
        raise ParameterError(f"{name} must be positive, not {value!r}")
    return number


def log_of_inverse(value: Number, name: str = "beta") -> float:
    """ln(1/value) of a failure probability strictly between 0 and 1."""
    number = probability(value, name)
    return log(number.denominator) - log(number.numerator)


def exp_of(exponent: float) -> float:
    """e^exponent of a bound on a probability: where it would round to 0, the least float that has all its digits.

    A theorem that says "at most 10^-400" must not be read as "never".
    """
    return max(exp(exponent), float_info.min)


def power_of_e(exponent: float, name: str = "eps") -> float:
    """e^exponent, refused where the result would not be a number."""
    require(
        exponent <= 700, f"{name} must be at most 700 for its exponential to be a number, not {exponent:g}"
    )
    return exp(exponent)


def require(condition: bool, sentence: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Refuse with `sentence` unless the condition holds."""
    if not condition:
        raise ParameterError(sentence)


def _float(value: Number, name: str) -> float:
    """`value` as the nearest float, refused where it is no finite number."""
    if type(value) is float and isfinite(value):  # what `exact` would write down and read back
        return value
    try:
        return float(exact(value, name))
    except OverflowError:
        raise ParameterError(f"{name} must be below 10^308") from None
