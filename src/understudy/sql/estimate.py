"""A released number with its bounds, as it stands in a row of a result, and the public names beside it."""

from __future__ import annotations

import datetime as dt
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

from understudy.domain.attribute import Attribute, unique_label
from understudy.sql.constants import as_date, as_instant
from understudy.sql.grid import Nothing, Numbers, Texts, Truths, Value

Key = str | int | float | bool | dt.date | None
"""A value that comes from the declaration: what a group is called."""


class Estimate(NamedTuple):
    """A released number, its `value`, between `low` and `high` in truth; None where it is missing or has no bound.

    `discretisation` is the part of the error that comes from bins: no budget makes it smaller.
    """

    value: float | dt.date | None
    low: float | dt.date | None
    high: float | dt.date | None
    discretisation: float


def estimate(full: Numbers, bare: Numbers, i: int) -> Estimate:
    """One number with its bounds; the error of the bins is how much wider they make the interval.

    It is a part of the half-width, and so never more than that, also where bins move one end alone.
    """
    low, high = float(full.low[i]), float(full.high[i])
    inner_low, inner_high = max(float(bare.low[i]), low), min(float(bare.high[i]), high)
    point = min(max(float(full.point[i]), low), high)
    wider = max(inner_low - low, high - inner_high, 0.0) if low > -inf and high < inf else 0.0
    wider = max(min(wider, (high - low) / 2), 0.0) if low > -inf and high < inf else wider
    missing = bool(full.null[i] or full.unknown[i])
    if full.kind == "date":
        days = [as_date(part) for part in (point, low, high)]
        return Estimate(None if missing else days[0], days[1], days[2], wider)
    if full.kind == "timestamp":
        moments = [
            as_instant(float(round_to(part)))
            for part, round_to in ((point, floor), (low, floor), (high, ceil))
        ]
        return Estimate(None if missing else moments[0], moments[1], moments[2], wider)
    bounds = [None if part in (inf, -inf) else part + 0.0 for part in (low, high)]
    return Estimate(None if missing else point + 0.0, bounds[0], bounds[1], wider)


def distance(released: Numbers, expected: Numbers, i: int) -> float | None:
    """How far a released number is from the further end of the interval of its expected one."""
    if released.null[i] or released.unknown[i] or expected.null[i] or expected.unknown[i]:
        return None
    point = min(max(float(released.point[i]), float(released.low[i])), float(released.high[i]))
    off = max(float(expected.high[i]) - point, point - float(expected.low[i]), 0.0)
    return off if off < inf else None


def group_names(value: Value, count: int, attribute: Attribute | None = None) -> list[Key] | None:
    """What an exact value over groups is called in each; None where it is not exact.

    Where the value is that of an attribute, its cell of all other values bears the label that it has everywhere.
    """
    if isinstance(value, Nothing):
        return list[Key]([None]) * count
    null = np.broadcast_to(value.null, (count,))
    if isinstance(value, Truths):
        true = np.broadcast_to(value.true, (count,))
        return [None if n else bool(t) for t, n in zip(true, null, strict=True)]
    unknown = np.broadcast_to(value.unknown, (count,))
    if isinstance(value, Texts):
        plain: list[Key] = np.broadcast_to(value.values, (count,)).tolist()
    elif (value.known & ~value.exact).any():
        return None
    else:
        points = np.broadcast_to(value.point, (count,)).tolist()
        form = {"integer": int, "date": as_date, "timestamp": as_instant, "real": float}[value.kind]
        plain = [form(point) for point in points]
    taken = {
        name
        for name, n, u in zip(plain, null, unknown, strict=True)
        if isinstance(name, str) and not (n or u)
    }
    other = unique_label("other", taken) if attribute is None else attribute.other_label
    return [None if n else other if u else name for name, n, u in zip(plain, null, unknown, strict=True)]
