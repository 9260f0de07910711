"""Numbers as their author wrote them.

Privacy parameters are exact rationals: ``0.1`` typed by a person means one tenth, not the nearest binary
float, and every mechanism computes with it exactly. Conversions to float happen only where a number is shown.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor, isfinite, isqrt

from understudy.errors import ParameterError

Number = int | float | Decimal | Fraction

MAX_EPSILON = 1000
"""Above this a privacy parameter protects nobody; larger ones are taken for slips."""

MIN_PARAMETER = Fraction(1, 10**12)
"""Below this a parameter buys no information in any table that fits on a disk."""

MAX_BITS = 4000
"""Of a numerator or denominator: what a ledger writes down must be read again, also after a few products."""


def exact(value: Number, name: str = "value") -> Fraction:
    """The rational number that `value` stands for when it is written down.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    if type(value) is Fraction:  # nearly all calls, and they are many
        number = value
    elif type(value) is int:
        number = Fraction(value)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    elif isinstance(value, float):
        if not isfinite(value):
            raise ParameterError(f"{name} must be finite, not {value}")
        return _written(float(value))
    elif isinstance(value, Decimal) and not value.is_finite():
        raise ParameterError(f"{name} must be finite, not {value}")
    elif isinstance(value, Decimal) and abs(value.adjusted()) > MAX_BITS // 4:
        raise ParameterError(f"{name} must be written with fewer digits")
    else:
        number = Fraction(value)
    if number.numerator.bit_length() > MAX_BITS or number.denominator.bit_length() > MAX_BITS:
        raise ParameterError(f"{name} must be written with fewer digits")  # no ledger could write it down
    return number


@lru_cache(maxsize=1024)
def _written(value: float) -> Fraction:
    """The number that the shortest decimal of a float is."""
    return Fraction(repr(value))


def positive(value: Number, name: str, *, at_most: int | None = None) -> Fraction:
    """`value` as an exact rational, refused unless 0 < value ≤ `at_most`."""
    number = exact(value, name)
    above, below = number.numerator, number.denominator  # whole numbers compare faster than rational ones
    if above <= 0:
        raise ParameterError(f"{name} must be positive, not {value}")
    if at_most is not None and above > at_most * below:
        raise ParameterError(f"{name} must be at most {at_most}, not {value}")
    if above * MIN_PARAMETER.denominator < below * MIN_PARAMETER.numerator:
        raise ParameterError(f"{name} must be at least {float(MIN_PARAMETER):g}, not {value}")
    return number


def privacy_parameter(value: Number, name: str = "epsilon") -> Fraction:
    """An epsilon or rho: positive, finite, and small enough to mean something."""
    return positive(value, name, at_most=MAX_EPSILON)


def square_root(amount: Fraction) -> Fraction:
    """sqrt(amount), rounded down to twelve digits behind the point."""
    return Fraction(isqrt(floor(amount * 10**24)), 10**12)


def probability(value: Number, name: str = "beta") -> Fraction:
    """A failure probability strictly between 0 and 1."""
    number = exact(value, name)
    if not 0 < number.numerator < number.denominator:
        raise ParameterError(f"{name} must lie strictly between 0 and 1, not {value}")
    return number
