"""Attributes from what is known of a column: its values, or its lowest and highest one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from understudy.declaration.outline import OutlineEntry, scalar
from understudy.declaration.round_edges import month_edges, round_edges, time_edges
from understudy.declaration.skew import BINS


def boolean(name: str, *, null: bool) -> OutlineEntry:
    """A yes-or-no attribute."""
    return OutlineEntry(name, {"type": "boolean"} | _null(null), {})


def category(name: str, values: Iterable[str], *, null: bool) -> OutlineEntry:
    """An attribute with a cell for each listed value."""
    listed = ", ".join(scalar(value) for value in values)
    return OutlineEntry(name, {"type": "category", "values": f"[{listed}]"} | _null(null), {})


def ordered(
    name: str,
    kind: str,
    low: Fraction | dt.date,
    high: Fraction | dt.date,
    *,
    null: bool,
    cut: Sequence[Fraction] = (),
) -> OutlineEntry:
    """An integer, real, date or timestamp attribute between two bounds, cut at round places, or at `cut`."""
    if kind == "integer" and isinstance(low, Fraction) and isinstance(high, Fraction):
        low, high = Fraction(ceil(low)), Fraction(floor(high))
        if 0 < high - low < 2 * BINS:
            return OutlineEntry(name, {"type": kind, "bounds": f"[{low}, {high}]"} | _null(null), {})
    if isinstance(low, dt.datetime) and isinstance(high, dt.datetime):
        edges = [str(edge) for edge in time_edges(low, max(high, low + dt.timedelta(seconds=1)))]
    elif isinstance(low, dt.date) and isinstance(high, dt.date):
        if 0 < (high - low).days < 2 * BINS:
            return OutlineEntry(name, {"type": kind, "bounds": f"[{low}, {high}]"} | _null(null), {})
        edges = [day.isoformat() for day in month_edges(low, max(high, low + dt.timedelta(days=1)))]
    else:
        numbers = cut or round_edges(Fraction(low), Fraction(high), kind)  # type: ignore[arg-type]
        edges = [_written(edge, kind) for edge in numbers]
    remark = f"{len(edges) - 1} bins, a choice: cut where questions will cut" if len(edges) > 2 else ""
    return OutlineEntry(name, {"type": kind, "edges": f"[{', '.join(edges)}]"} | _null(null), {}, remark)


def unknown(name: str, kind: str, *, null: bool, what: str = "") -> OutlineEntry:
    """An attribute of which only the type is known."""
    lacking = {
        "category": {"values": "the values, such as [red, green]"},
        "integer": {"bounds": "the lowest and the highest value, such as [0, 120]"},
        "real": {"bounds": "the lowest and the highest value, such as [0, 1000]"},
        "timestamp": {
            "bounds": "the first and the last moment, such as [2024-01-01 00:00, 2024-12-31 23:59:59]"
        },
        "date": {"edges": "the days where bins begin and the last day, such as [1990-01-01, 2024-12-31]"},
    }[kind]
    field, usual = next(iter(lacking.items()))
    more = {"bins": str(BINS)} if kind == "real" else {}
    return OutlineEntry(name, {"type": kind} | more | _null(null), {field: what or usual})


def budget() -> OutlineEntry:
    """The budget, which no description knows."""
    what = "epsilon and delta, the total for this table, for ever, such as {epsilon: 1, delta: 1e-9}"
    return OutlineEntry("budget", {}, {"epsilon": what})


def _written(edge: Fraction, kind: str) -> str:
    """A number as text that reads back as the same number, where decimals can say it."""
    if kind == "integer" or edge.denominator == 1:
        return str(int(edge))
    exact = Decimal(edge.numerator) / Decimal(edge.denominator)
    return format(exact.normalize(), "f") if -12 < exact.adjusted() < 18 else str(exact.normalize())


def _null(null: bool) -> dict[str, str]:  # noqa: FBT001 (a column either can be empty or not)
    return {"null": "true"} if null else {}
