"""How many rows a width needs: certificates inverted by monotone search."""

from __future__ import annotations

from collections.abc import Callable

from understudy.rational import Number
from understudy.theory.arguments import above_zero, require


def rows_needed(fn: Callable[[int], float], target: Number, *, limit: int = 10**15) -> int:
    """The smallest n with fn(n) ≤ target, for a width that falls with n."""
    width = above_zero(target, "target")
    found = last_where(lambda n: fn(n) > width, limit)
    require(found < limit, f"no number of rows up to {limit:,} reaches this width")
    return found + 1


def last_where(holds: Callable[[int], bool], limit: int) -> int:
    """The last whole number from 1 on at which a condition holds that stays false once it is; 0 if none."""
    good, bad = 0, 1
    while holds(bad):
        if bad == limit:
            return limit
        good, bad = bad, min(2 * bad, limit)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
