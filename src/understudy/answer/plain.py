"""Values of answers for JSON, which has neither infinity nor dates: what has no bound is null there."""

from __future__ import annotations

import datetime as dt
from math import isfinite
from typing import Any, cast


def plain_scalar(value: Any) -> Any:
    """One value: null for a number that is not finite, and a date or a time as ISO 8601 writes it.

    >>> plain_scalar(float("inf")), plain_scalar(dt.date(2024, 5, 1)), plain_scalar(2)
    (None, '2024-05-01', 2)
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value.isoformat() if isinstance(value, dt.date) else value


def without_infinity(value: Any) -> Any:
    """Plain values, however nested, with null for every number that is not finite.

    >>> without_infinity({"low": (float("-inf"), 1.5), "unit": "people"})
    {'low': [None, 1.5], 'unit': 'people'}
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_infinity(part) for key, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [without_infinity(part) for part in cast("list[Any]", value)]
    return value
