"""Constants: a value that is the same in every cell as Python has it, and texts read as numbers and days."""

from __future__ import annotations

import datetime as dt
import re
from math import floor, isfinite

import numpy as np

from understudy.domain.instant import instant_of, read_instant, seconds_of
from understudy.errors import QueryError
from understudy.sql.grid import Nothing, Numbers, Texts, Truths, Value, constant, is_temporal, truth

Constant = str | int | float | bool | dt.date

_EPOCH = dt.date(1970, 1, 1)


def plain(value: Value) -> Constant | None:
    """A constant value as Python writes it; None when it varies, is missing or is not one number."""
    if value.clique or isinstance(value, Nothing):
        return None
    if isinstance(value, Truths):
        return bool(value.true) if value.true or value.false else None
    if value.null or value.unknown:
        return None
    if isinstance(value, Texts):
        return str(value.values[()])
    if not value.exact:
        return None
    if value.kind == "date":
        return as_date(float(value.point)) if float(value.point).is_integer() else None
    if value.kind == "timestamp":
        return as_instant(float(value.point))
    return int(value.point) if value.kind == "integer" else float(value.point)


def as_date(days: float) -> dt.date:
    """The day of a number of days since 1970-01-01."""
    try:
        return _EPOCH + dt.timedelta(days=int(np.floor(days)))
    except OverflowError:
        raise QueryError("a date lies outside the calendar, the years 1 to 9999") from None


def as_instant(seconds: float) -> dt.datetime:
    """The moment of a number of seconds since 1970-01-01 00:00:00, to microseconds."""
    whole = floor(seconds)
    try:
        return instant_of(whole) + dt.timedelta(microseconds=round((seconds - whole) * 1e6))
    except OverflowError:
        raise QueryError("a timestamp lies outside the calendar, the years 1 to 9999") from None


def of_date(day: dt.date) -> Numbers:
    """A day as a constant."""
    return constant(float((day - _EPOCH).days), "date")


def read_date(words: str) -> Numbers:
    """A day written as 2024-12-31, as a constant."""
    try:
        return of_date(dt.date.fromisoformat(words.strip()))
    except ValueError:
        raise QueryError(f"{words[:40]!r} is not a day", remedy="write it as 2024-12-31") from None


def read_moment(words: str) -> Numbers:
    """A day, or a moment of time in UTC: midnight is the day itself. An offset, +02:00, is brought to UTC."""
    found = read_instant(words.strip(), fraction=True)
    if found is None:
        return read_date(words)
    if found.time() == dt.time():
        return of_date(found.date())
    return constant(seconds_of(found) + found.microsecond / 1e6, "timestamp")


def is_number(words: str) -> bool:
    """Whether a text is a number in digits."""
    return (
        re.fullmatch(r"\s*[+-]?(\d{1,15}(\.\d{0,15})?|\.\d{1,15})([eE][+-]?\d{1,2})?\s*", words) is not None
    )


def read_number(words: str) -> Numbers:
    """A text in digits as a number; a `QueryError` where it is none."""
    if not is_number(words) or not isfinite(float(words)):
        raise QueryError(f"{words[:40]!r} is not a number", remedy="write it in digits, without quotes")
    whole = re.fullmatch(r"\s*[+-]?\d+\s*", words) is not None
    return constant(float(words), "integer" if whole else "real")


def alike(value: Value, beside: Value) -> Value:
    """A constant as what stands beside it in a comparison is: a text as a date, a number or a truth value."""
    if value.clique or isinstance(value, Nothing | Truths) or np.any(value.null):
        return value
    found = plain(value)
    if isinstance(beside, Numbers) and isinstance(found, str):
        if is_temporal(beside):
            return read_moment(found)
        return read_number(found) if is_number(found) else value
    if isinstance(beside, Truths) and not isinstance(found, bool):
        word = str(found).strip().lower()
        if word in ("true", "t", "1", "false", "f", "0"):
            return truth(word in ("true", "t", "1"))
    return value
