"""Rényi divergences of one order, from above: what pure privacy and a selection cost a ledger that keeps an order.

For laws P and Q, and L = ln(P/Q) under P, the divergence of order a > 1 is D = ln E exp((a - 1)L) / (a - 1). Every
number here is rounded up, to a multiple of 10⁻³⁰: Decimal's exp and ln are correctly rounded, so that the number
after or before theirs is beyond them, and all else is rounded in the direction that makes the result larger.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from understudy.errors import ParameterError

DIGITS = 100
"""Significant digits of the arithmetic. Of ε ≥ 10⁻¹², the smallest, a divergence keeps more than 60 of them."""

GRID = 10**30
"""Divergences are told as whole multiples of 1/GRID."""

MAX_ORDER = 10**6
"""The largest order that a ledger keeps."""

_UP = Context(prec=DIGITS, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)


def checked_order(order: Fraction) -> Fraction:
    """An order of Rényi divergence that a ledger can keep; a ParameterError for any other."""
    if not 1 < order <= MAX_ORDER:
        raise ParameterError(f"a Rényi order is more than 1 and at most {MAX_ORDER}, not {order}")
    return order


@lru_cache(maxsize=4096)
def pure_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """At least the divergence of order a of every ε-DP mechanism, and that of randomised response up to rounding.

    Given ε-DP, L lies in [-ε, ε] and E exp(-L) is at most 1. As v ↦ v^(1-a) is convex in v = exp(-L), the mean of
    exp((a - 1)L) is largest where L takes both ends alone, which randomised response does:

        E exp((a - 1)L) = (exp(aε) + exp(-(a - 1)ε)) / (1 + exp(ε)).

    It is at most ε, and at most a·ε²/2 [BunSteinke16, Proposition 1.4]: these are told where rounding would make
    it more.
    """
    checked_order(order)
    if epsilon == 0:
        return Fraction(0)
    numerator = _UP.add(_exp_up(order * epsilon), _exp_up(-(order - 1) * epsilon))
    mean = _UP.divide(numerator, _DOWN.add(Decimal(1), _exp_down(epsilon)))
    return min(_divided_up(_ln_up(mean), order - 1), order * epsilon**2 / 2, epsilon)


@lru_cache(maxsize=4096)
def selection_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """At least the divergence of order a of a mechanism whose log-ratios lie in an interval of length ε.

    L lies in [t - ε, t] for some t that the neighbours fix, 0 ≤ t ≤ ε, and E exp(-L) is 1. By the same convexity
    the mean of exp((a - 1)L) is largest where L is t or t - ε alone. With y = exp(t) that mean is
    y^(a-1)·(A - B·y)/(exp(ε) - 1) for A = exp(ε) - exp(-(a - 1)ε) and B = 1 - exp(-(a - 1)ε). It is largest at
    y = (a - 1)A/(aB), and there

        ((a - 1)A/(aB))^(a-1) · A / (a(exp(ε) - 1)).

    It is at most ε, and at most a·ε²/8 [CesarRogers21]: these are told where rounding would make it more.
    """
    checked_order(order)
    if epsilon == 0:
        return Fraction(0)
    small_low, small_high = _exp_down(-(order - 1) * epsilon), _exp_up(-(order - 1) * epsilon)
    most = _UP.subtract(_exp_up(epsilon), small_low)
    least = _DOWN.subtract(Decimal(1), small_high)
    ratio = _UP.divide(_UP.multiply(most, _up(order - 1)), _DOWN.multiply(least, _down(order)))
    rest = _UP.divide(most, _DOWN.multiply(_down(order), _DOWN.subtract(_exp_down(epsilon), Decimal(1))))
    mean = _UP.add(_UP.multiply(_up(order - 1), _ln_up(ratio)), _ln_up(rest))
    return min(_divided_up(mean, order - 1), order * epsilon**2 / 8, epsilon)


def rounded_up(amount: Fraction) -> Fraction:
    """The least multiple of 1/GRID that is no less."""
    return Fraction(-(-amount.numerator * GRID // amount.denominator), GRID)


def _divided_up(amount: Decimal, by: Fraction) -> Fraction:
    """`amount`/`by` on the grid, from above; at least one step, since no divergence of different laws is 0."""
    return max(rounded_up(Fraction(amount) / by), Fraction(1, GRID))


def _up(number: Fraction) -> Decimal:
    return _UP.divide(Decimal(number.numerator), Decimal(number.denominator))


def _down(number: Fraction) -> Decimal:
    return _DOWN.divide(Decimal(number.numerator), Decimal(number.denominator))


def _exp_up(number: Fraction) -> Decimal:
    return _UP.next_plus(_UP.exp(_up(number)))


def _exp_down(number: Fraction) -> Decimal:
    return _DOWN.next_minus(_DOWN.exp(_down(number)))


def _ln_up(number: Decimal) -> Decimal:
    return _UP.next_plus(_UP.ln(number))
