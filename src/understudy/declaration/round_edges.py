"""Round places at which a range of numbers is cut into bins."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from understudy.declaration.skew import BINS


def round_step(low: Fraction, high: Fraction, kind: str) -> Fraction:
    """The smallest of 1, 2 and 5 times a power of ten that cuts the range into at most `BINS` steps."""
    # No finer than a float of this size can tell.
    rough = max((high - low) / BINS, Fraction(1, 10**9), abs(high) / 10**12)
    unit = Fraction(10) ** (Decimal(rough.numerator) / Decimal(rough.denominator)).adjusted()
    step = next(unit * m for m in (1, 2, 5, 10, 20) if unit * m >= rough)
    return max(step, Fraction(1)) if kind == "integer" else step


def round_edges(low: Fraction, high: Fraction, kind: str) -> list[Fraction]:
    """Both bounds and the round numbers between them."""
    step = round_step(low, high, kind)
    high = high if high > low else low + step
    inner = [i * step for i in range(floor(low / step) + 1, ceil(high / step))]
    return [low, *inner, high]
