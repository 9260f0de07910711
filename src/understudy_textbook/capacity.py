"""How many queries, or rows, a width allows: certificates inverted by monotone search.

`rows_needed`, which the product relies on, lives in `understudy.theory.capacity` and is imported here.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.rational import Number
from understudy.theory.arguments import above_zero
from understudy.theory.capacity import last_where, rows_needed

__all__ = [
    "capacity",
    "last_where",
    "rows_needed",
]


def capacity(fn: Callable[[int], float], target: Number, *, limit: int = 10**15) -> int:
    """The largest k with fn(k) ≤ target, for a width that grows with k; 0 when even one query is too wide."""
    width = above_zero(target, "target")
    return last_where(lambda k: fn(k) <= width, limit)
