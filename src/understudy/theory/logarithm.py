"""Logarithms of integers that no float can hold, and exact integer parts of what is computed from them.

Sizes in the lectures are integers made of logarithms, such as ⌈ln(4k)/(2α²)⌉, and a float may fall on the
wrong side of one. The logarithm of an integer above 1 is irrational, and so is its quotient by a rational or by
the logarithm of an integer that is not a power of the same base: with enough digits the side is always decided.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import comb, lgamma, log, log1p, pi

from understudy.errors import ParameterError

MAX_DIGITS = 5000
"""Sizes of more digits than this are refused: nobody can hold such a database."""

_EXACT_BITS = 1 << 20  # binomial coefficients up to this many bits are multiplied out
_SMALL = 256  # below this, lgamma is more precise than the tail of Stirling's series


def floor_irrational(value: Callable[[Context], Decimal]) -> int:
    """⌊v⌋ of an irrational v, from a recipe that computes v in a given precision in at most a dozen steps."""
    digits = 40
    while digits <= MAX_DIGITS:
        near = value(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX))
        wide = Context(prec=2 * digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
        margin = wide.multiply(abs(near), Decimal(10) ** (4 - digits))
        low = wide.subtract(near, margin).to_integral_value(ROUND_FLOOR)
        if low == wide.add(near, margin).to_integral_value(ROUND_FLOOR) and low.adjusted() < digits:
            return int(low)
        digits *= 2
    raise ParameterError(f"the size has more than {MAX_DIGITS:,} digits; ask for a wider error")


def floor_log_over(count: int, divisor: Fraction) -> int:
    """⌊ln(count)/divisor⌋, exactly, for count ≥ 1 and divisor > 0."""
    if count == 1:
        return 0

    def value(context: Context) -> Decimal:
        product = context.multiply(context.ln(Decimal(count)), Decimal(divisor.denominator))
        return context.divide(product, Decimal(divisor.numerator))

    return floor_irrational(value)


def floor_log2_power(base: int, exponent: int) -> int:
    """⌊exponent · log₂ base⌋, exactly, without the power."""
    if base & (base - 1) == 0:
        return exponent * (base.bit_length() - 1)

    def value(context: Context) -> Decimal:
        ratio = context.divide(context.ln(Decimal(base)), context.ln(Decimal(2)))
        return context.multiply(ratio, Decimal(exponent))

    return floor_irrational(value)


def floor_log2_binomial(n: int, r: int) -> int:
    """⌊log₂ C(n, r)⌋; exact up to a million bits, beyond that never below and at most 10⁻¹² (relative) above."""
    r = min(r, n - r)
    if r * n.bit_length() <= _EXACT_BITS:
        return comb(n, r).bit_length() - 1
    return int(log_binomial(n, r) / log(2) * (1 + 1e-12)) + 1


def log_binomial(n: int, r: int) -> float:
    """ln C(n, r) for 0 ≤ r ≤ n, with relative error below 10⁻¹², also where n or C(n, r) exceeds every float.

    With b = n - r: r·ln(n/r) + b·ln(n/b) + ½ln(n/(2πbr)) and the tails of Stirling's series. The large terms
    are positive, so that nothing cancels, unlike in a difference of three values of lgamma.

    >>> round(log_binomial(10**100, 265), 6)
    59801.167443
    """
    r = min(r, n - r)
    if r < 0:
        raise ParameterError("a binomial coefficient needs 0 ≤ r ≤ n")
    if r == 0:
        return 0.0
    if r * n.bit_length() <= 1 << 14:
        return log(comb(n, r))
    if r.bit_length() > 1000:
        raise ParameterError(
            "the number of candidates is beyond what a float can measure, even as a logarithm"
        )
    rest = n - r
    ratio = r / rest  # rounds to 0 where n is beyond every multiple of r
    spread = r * (log1p(ratio) / ratio) if ratio else float(r)
    half = (_log_ratio(n, rest) - log(2 * pi * r)) / 2
    return r * _log_ratio(n, r) + spread + half + _stirling_tail(n) - _stirling_tail(rest) - _stirling_tail(r)


def _log_ratio(numerator: int, denominator: int) -> float:
    try:
        return log(numerator / denominator)
    except OverflowError:
        return log(numerator) - log(denominator)


def _stirling_tail(x: int) -> float:
    """lnΓ(x + 1) less (x + ½)ln x - x + ½ln 2π."""
    if x < _SMALL:
        return lgamma(x + 1) - ((x + 0.5) * log(x) - x + 0.5 * log(2 * pi))
    inverse = 1 / x if x.bit_length() < 1000 else 0.0
    return inverse / 12 - inverse**3 / 360 + inverse**5 / 1260
