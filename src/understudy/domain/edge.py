"""The edge of a bin: a number, a date or a timestamp, as people write it and as a number."""

from __future__ import annotations

import datetime as dt
from typing import Any

from understudy.domain.instant import seconds_of

Ordered = Any
"""An int, a float, a date or a datetime; all edges of one attribute are of one type (checked when it is made)."""


def shown(edge: Ordered) -> str:
    """An edge as people write it: a whole number without decimals, a timestamp in quotes."""
    if isinstance(edge, dt.datetime):
        return f"'{edge}'"
    return f"{edge:.0f}" if isinstance(edge, float) and edge.is_integer() and abs(edge) < 1e15 else str(edge)


def as_number(edge: Ordered) -> float:
    """An edge as a number; a date as days, and a timestamp as seconds, since 1970-01-01 00:00:00."""
    if isinstance(edge, dt.datetime):
        return float(seconds_of(edge))
    return float((edge - dt.date(1970, 1, 1)).days) if isinstance(edge, dt.date) else float(edge)
