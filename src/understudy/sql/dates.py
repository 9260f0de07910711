"""Dates and timestamps: their parts, the periods that they begin, and intervals that move them.

Dates are whole days, and timestamps whole seconds. A cell of such an attribute is a range of them; a function of
it is exact where it is the same for all of them. A day beside a moment is its midnight.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot import exp

from understudy.domain.instant import DAY_SECONDS, instant_of, seconds_of
from understudy.errors import QueryError
from understudy.sql.constants import as_date, as_instant, read_moment
from understudy.sql.evaluate import Evaluator, Node, only, shown
from understudy.sql.grid import Numbers, Texts, Value, as_days, as_moments, constant, is_temporal

CLOCK = {"second": 1, "minute": 60, "hour": 3600}
"""Periods within a day, in seconds."""

GRAINS = (*CLOCK, "day", "week", "month", "quarter", "year", "decade")
"""Periods that `date_trunc` knows, from short to long."""

_SINGULAR = {f"{grain}s": grain for grain in GRAINS} | {
    "y": "year", "mon": "month", "d": "day", "w": "week", "h": "hour", "min": "minute", "s": "second",
}  # fmt: skip
_PARTS: dict[str, Callable[[dt.date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "decade": lambda day: day.year // 10,
    "week": lambda day: day.isocalendar().week,
    "isoyear": lambda day: day.isocalendar().year,
    "doy": lambda day: day.timetuple().tm_yday,
    "dow": lambda day: day.isoweekday() % 7,
    "isodow": lambda day: day.isoweekday(),
    "epoch": lambda day: (day - dt.date(1970, 1, 1)).days * 86_400,
}
_CLOCK_PARTS = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}
"""Parts of a time of day: the seconds of one, and how many there are before it begins again."""
_RISING = ("year", "decade", "isoyear", "epoch")
_RANGES = {
    "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "week": (1, 53), "doy": (1, 366),
    "dow": (0, 6), "isodow": (1, 7),
}  # fmt: skip
_SAME = {"dayofyear": "doy", "dayofweek": "dow", "weekday": "dow", "dayofmonth": "day", "weekofyear": "week"}
_ENUMERATED = 31
"""Days of a cell over which a part of the date is looked at one by one."""


def begin(day: dt.date, grain: str) -> dt.date:
    """The first day of the period that a day is in: of a day itself, where the period is no longer."""
    if grain in CLOCK:
        return day
    if grain == "week":
        return day - dt.timedelta(days=min(day.weekday(), day.toordinal() - 1))
    if grain == "decade":
        return dt.date(max(day.year // 10 * 10, 1), 1, 1)
    if grain == "quarter":
        return dt.date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return {"day": day, "month": day.replace(day=1), "year": dt.date(day.year, 1, 1)}[grain]


def _date(evaluator: Evaluator, node: Node, what: str) -> Numbers:
    value = evaluator.value(node)
    if isinstance(value, Texts) and not value.clique and not value.null.any():
        return read_moment(str(value.values[()]))
    if not isinstance(value, Numbers) or not is_temporal(value):
        raise QueryError(f"{what} needs a date or a timestamp, and {shown(node)} is none")
    return value


def _grain(word: str, node: Node) -> str:
    lower = word.strip().lower()
    grain = _SINGULAR.get(lower, lower)
    if grain not in GRAINS:
        raise QueryError(
            f"{shown(node)}: dates have no {word[:20]!r}",
            remedy=f"the periods are {', '.join(GRAINS)}",
            suggestions=GRAINS,
        )
    return grain


def truncated(evaluator: Evaluator, node: Node) -> Value:
    """date_trunc('month', d): the begin of the period, where the bins of d do not cross its end.

    Of a date that is a day, and of a timestamp a moment.
    """
    only(node, "unit")
    unit = node.args.get("unit")
    grain = _grain(str(unit.name if unit is not None else ""), node)
    value = _date(evaluator, node.this, "date_trunc")
    if value.kind == "date" and grain in ("day", *CLOCK):
        return value
    if grain in CLOCK:
        length = CLOCK[grain]
        return _at_each(value, lambda seconds: np.floor(seconds / length) * length)
    found = _mapped(as_days(value), lambda day: _days(begin(day, grain)), "date")
    return as_moments(found) if value.kind == "timestamp" else found


def finest_grain(value: Numbers) -> str | None:
    """The shortest period that no bin of an attribute crosses the end of; None where every one is crossed."""
    known = np.broadcast_to(value.known, np.shape(value.low))
    if value.kind == "timestamp":
        for grain, length in CLOCK.items():
            if (np.floor(value.low[known] / length) == np.floor(value.high[known] / length)).all():
                return grain
    days = as_days(value)
    ends = [
        (as_date(float(low)), as_date(float(high)))
        for low, high in zip(days.low[known].ravel(), days.high[known].ravel(), strict=True)
    ]
    for grain in GRAINS[len(CLOCK) :]:
        if all(begin(low, grain) == begin(high, grain) for low, high in ends):
            return grain
    return None


def begins(first: dt.datetime, last: dt.datetime, grain: str, most: int) -> tuple[dt.datetime, ...] | None:
    """The moments after `first`, up to `last`, at which a period begins; None where these are more than `most`."""
    if grain in CLOCK:
        length = CLOCK[grain]
        seconds = range((seconds_of(first) // length + 1) * length, seconds_of(last) + 1, length)
        return tuple(map(instant_of, seconds)) if len(seconds) <= most else None
    found: list[dt.datetime] = []
    day = begin(first.date(), grain)
    while day <= last.date():
        if (moment := dt.datetime.combine(day, dt.time())) > first and moment <= last:
            found.append(moment)
        if len(found) > most:
            return None
        day = _next(day, grain)
    return tuple(found)


def _next(day: dt.date, grain: str) -> dt.date:
    """The first day of the next period."""
    months, days = _STEPS[grain]
    if days:
        return day + dt.timedelta(days=days)
    count = day.year * 12 + day.month - 1 + months
    return dt.date(count // 12, count % 12 + 1, 1) if count < 120_000 else dt.date.max


def closed_end(value: Numbers) -> dt.date | None:
    """The last day or second of the last bin, where without it shorter periods could be groups; None elsewhere."""
    last = int(np.flatnonzero(np.broadcast_to(value.known, np.shape(value.low)))[-1])
    high = np.array(value.high, np.float64)
    high[last] = max(high[last] - 1, float(value.low[last]))
    found, without = finest_grain(value), finest_grain(replace(value, high=high))
    is_why = without is not None and (found is None or GRAINS.index(without) < GRAINS.index(found))
    end = float(value.high[last])
    return (as_instant(end) if value.kind == "timestamp" else as_date(end)) if is_why else None


def _days(day: dt.date) -> float:
    return float((day - dt.date(1970, 1, 1)).days)


def _at_each(value: Numbers, function: Callable[[Any], Any]) -> Numbers:
    """A function that never falls, of the representative and of both ends."""
    return replace(value, **{part: function(getattr(value, part)) for part in ("point", "low", "high")})


def _mapped(value: Numbers, function: Callable[[dt.date], float], kind: str) -> Numbers:
    """A function that never falls, of the representative day and of both ends."""

    def at(days: Any) -> Any:
        flat = [function(as_date(float(day))) for day in np.ravel(days)]
        return np.array(flat, np.float64).reshape(np.shape(days))

    return replace(value, point=at(value.point), low=at(value.low), high=at(value.high), kind=kind)


def part_of_date(evaluator: Evaluator, part: str, node: Node) -> Value:
    """A part of a date, as a whole number: its range over the days of each cell."""
    moments = _date(evaluator, node, part)
    if part in _CLOCK_PARTS:
        return _part_of_clock(moments, part)
    if part == "epoch" and moments.kind == "timestamp":
        return replace(_at_each(moments, np.floor), kind="integer")
    value = as_days(moments)
    function = _PARTS[part]
    if part in _RISING:
        return _mapped(value, lambda day: float(function(day)), "integer")
    shape = np.shape(value.point)
    cells = zip(value.point.ravel(), value.low.ravel(), value.high.ravel(), strict=True)
    parts = np.array([_range_of(part, function, *map(float, days)) for days in cells], np.float64)
    point, low, high = (parts.reshape(*shape, 3)[..., i] for i in range(3))
    return replace(value, point=np.asarray(point), low=np.asarray(low), high=np.asarray(high), kind="integer")


def _part_of_clock(value: Numbers, part: str) -> Numbers:
    """The hour, minute or second of moments, as a whole number: its range over the seconds of each cell."""
    if value.kind == "date":
        raise QueryError(f"a date has no {part}", remedy="declare the column as `type: timestamp`")
    length, count = _CLOCK_PARTS[part]
    point, low, high = (np.floor(ends / length) for ends in (value.point, value.low, value.high))
    same = np.floor(low / count) == np.floor(high / count)  # it never falls before it begins again
    return replace(
        value, point=point % count, low=np.where(same, low % count, 0.0),
        high=np.where(same, high % count, count - 1.0), kind="integer",
    )  # fmt: skip


def _range_of(
    part: str, function: Callable[[dt.date], int], point: float, low: float, high: float
) -> tuple[int, int, int]:
    """A part of the representative day, and its range over the days of the cell."""
    middle, first, last = function(as_date(point)), as_date(low), as_date(high)
    period = {"month": "year", "quarter": "year", "doy": "year", "day": "month"}.get(part)
    if period and begin(first, period) == begin(last, period):  # it never falls within the period
        return middle, function(first), function(last)
    if (last - first).days <= _ENUMERATED:
        found = [function(first + dt.timedelta(days=i)) for i in range((last - first).days + 1)]
        return middle, min(found), max(found)
    return middle, *_RANGES[part]


def calendar(part: str) -> Any:
    """year(d), month(d) and the like."""

    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node)
        return part_of_date(evaluator, part, node.this)

    return handler


def _known_part(word: str) -> str:
    part = _SAME.get(word.lower(), word.lower())
    known = (*_PARTS, *_CLOCK_PARTS)
    if part not in known:
        raise QueryError(f"extract takes {', '.join(known)}, not {word[:40]!r}", suggestions=known)
    return part


def extract(evaluator: Evaluator, node: Node) -> Value:
    """A part of a date: ``extract(year from d)``."""
    only(node)
    return part_of_date(evaluator, _known_part(str(node.this.name)), node.expression)


def date_part(evaluator: Evaluator, node: Node) -> Value:
    """The same as extract, ``date_part('year', d)``."""
    if len(node.expressions) != 2:
        raise QueryError("date_part takes a part and a date, date_part('year', d)")
    part = evaluator.constant(node.expressions[0], "the part of date_part")
    return part_of_date(evaluator, _known_part(str(part)), node.expressions[1])


def from_text(evaluator: Evaluator, node: Node) -> Value:
    """to_date('2024-12-31', 'YYYY-MM-DD') and to_timestamp(…): of a constant that begins with such a day."""
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    if parts and isinstance(parts[0], exp.Literal) and parts[0].is_string:
        return read_moment(str(parts[0].this))
    raise QueryError(f"{shown(node)}: a date is read from a constant", remedy="write date '2024-12-31'")


def from_parts(evaluator: Evaluator, node: Node) -> Value:
    """make_date(2024, 12, 31)."""
    only(node, "year", "month", "day")
    numbers = [
        evaluator.constant(node.args[part], "a part of make_date") for part in ("year", "month", "day")
    ]
    try:
        return constant(_days(dt.date(*(int(number) for number in numbers))), "date")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise QueryError(f"{shown(node)} is not a day", remedy="write date '2024-12-31'") from None


def as_day(evaluator: Evaluator, node: Node) -> Value:
    """date(d): a date or moment as a day."""
    only(node)
    return as_days(_date(evaluator, node.this, "date"))


_STEPS = {
    "day": (0, 1),
    "week": (0, 7),
    "month": (1, 0),
    "quarter": (3, 0),
    "year": (12, 0),
    "decade": (120, 0),
}


def moved(evaluator: Evaluator, date: Node, interval: exp.Interval, sign: int) -> Value:
    """A date or timestamp plus or minus an interval: up to weeks for all, months and years for a constant."""
    number, unit = str(interval.this.name if interval.this is not None else ""), interval.args.get("unit")
    grain = _grain(str(unit.name if unit is not None else ""), interval)
    if not re.fullmatch(r"-?\d{1,6}", number):
        raise QueryError(
            f"{shown(interval)}: an interval is a whole number of periods", remedy="interval '3 months'"
        )
    value = _date(evaluator, date, "an interval")
    if grain in CLOCK:
        return _at_each(as_moments(value), lambda seconds: seconds + sign * int(number) * CLOCK[grain])
    months, days = (sign * int(number) * step for step in _STEPS[grain])
    if not months:
        unit = DAY_SECONDS if value.kind == "timestamp" else 1
        return _at_each(value, lambda ends: ends + days * unit)
    if value.clique:
        raise QueryError(
            f"{shown(date)}: months and years are added to a constant, as bins of days do not move with them",
            remedy="move the other side of the comparison: d >= date '2024-12-31' - interval '1 year'",
        )
    whole = as_days(value)
    day = as_date(float(whole.point))
    count = day.year * 12 + day.month - 1 + months
    if not 12 <= count < 120_000:
        raise QueryError("a date lies outside the calendar, the years 1 to 9999")
    year, month = divmod(count, 12)
    last = (
        (dt.date(year + month // 11, (month + 1) % 12 + 1, 1) - dt.timedelta(days=1)).day
        if year < 9999
        else 28
    )
    moved_day = constant(_days(dt.date(year, month + 1, min(day.day, last))), "date")
    if value.kind == "date":
        return moved_day
    clock = float(value.point) - float(as_moments(whole).point)
    return _at_each(as_moments(moved_day), lambda midnight: midnight + clock)
