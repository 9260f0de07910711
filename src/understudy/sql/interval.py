"""Arithmetic on intervals: the result holds every value that values of the operands can give.

Ends are followed exactly through sums and through products with constants, so that ``income * 2 < 1000`` still
falls on the edge 500; elsewhere an end counts as reached, which only makes an interval wider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from understudy.errors import QueryError
from understudy.sql.grid import (
    NO,
    TEMPORAL,
    Bools,
    Floats,
    Numbers,
    Scope,
    constant,
    in_one_unit,
    is_temporal,
)


def settled(scope: Scope, value: Numbers, what: str) -> Numbers:
    """The value, refused (or, of released numbers, not known) where it is not a finite number."""
    bad = value.known & ~np.isfinite(value.point)
    if scope.strict:
        finite = np.isfinite(value.point) & np.isfinite(value.low) & np.isfinite(value.high)
        if (value.known & ~finite).any():
            raise QueryError(f"{what} is not a finite number everywhere on the declared values")
        if finite.all():
            return value
        parts = {part: np.where(finite, getattr(value, part), 0.0) for part in ("point", "low", "high")}
        return replace(value, **parts)
    return replace(
        value,
        point=np.where(bad, 0.0, value.point) if bad.any() else value.point,
        low=np.where(np.isnan(value.low), -np.inf, value.low),
        high=np.where(np.isnan(value.high), np.inf, value.high),
        null=value.null | bad,
    )


def pair(scope: Scope, one: Numbers, other: Numbers) -> tuple[Numbers, Numbers, Bools, Bools]:
    """Both over their common cells, and where either is null or unknown."""
    clique = scope.union(one.clique, other.clique)
    a, b = one.over(scope, clique), other.over(scope, clique)
    null = a.null | b.null
    return a, b, null, (a.unknown | b.unknown) & ~null


def _kind(a: Numbers, b: Numbers) -> str:
    return "integer" if a.kind == b.kind == "integer" else "real"


def add(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """A sum; a date plus whole days is a date."""
    if "timestamp" in (one.kind, other.kind):
        raise QueryError("a timestamp is moved by an interval", remedy="write opened + interval '3 hours'")
    if one.kind == other.kind == "date":
        raise QueryError("two dates cannot be added", remedy="a date and a number of days can")
    a, b, null, unknown = pair(scope, one, other)
    kind = "date" if "date" in (a.kind, b.kind) else _kind(a, b)
    if kind == "date" and "real" in (a.kind, b.kind):
        raise QueryError("add whole days to a date")
    with np.errstate(all="ignore"):
        return settled(
            scope,
            Numbers(
                a.clique, a.point + b.point, a.low + b.low, a.high + b.high,
                a.low_open | b.low_open, a.high_open | b.high_open, null, unknown, kind,
            ),
            "a sum",
        )  # fmt: skip


def negative(value: Numbers) -> Numbers:
    """The ends change places."""
    if is_temporal(value):
        raise QueryError(f"a {value.kind} has no negative")
    return replace(
        value, point=-value.point, low=-value.high, high=-value.low,
        low_open=value.high_open, high_open=value.low_open,
    )  # fmt: skip


def subtract(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """A difference; that of two dates is a number of days."""
    if is_temporal(one) and is_temporal(other) and "timestamp" in (one.kind, other.kind):
        raise QueryError(
            "the difference of timestamps is an interval, which is not in the language",
            remedy="extract(epoch from a) - extract(epoch from b) is in seconds",
        )
    if is_temporal(other):
        if one.kind != "date":
            raise QueryError("a date cannot be subtracted from a number")
        return subtract(scope, replace(one, kind="integer"), replace(other, kind="integer"))
    return add(scope, one, negative(other))


def _no_dates(what: str, *values: Numbers) -> None:
    if any(map(is_temporal, values)):
        raise QueryError(
            f"{what} of a date has no meaning", remedy="use extract(year from …) or a difference of dates"
        )


def _hull(candidates: list[Floats]) -> tuple[Floats, Floats]:
    clean = [np.where(np.isnan(c), 0.0, c) for c in candidates]  # 0 times infinity is 0 here
    return reduce(np.minimum, clean), reduce(np.maximum, clean)


def multiply(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """A product, between the least and the largest product of the ends."""
    _no_dates("a product", one, other)
    a, b, null, unknown = pair(scope, one, other)
    with np.errstate(all="ignore"):
        low, high = _hull([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
        point = a.point * b.point
    (one_low, one_high), (other_low, other_high) = _scaled_ends(a, b), _scaled_ends(b, a)
    low_open, high_open = one_low | other_low, one_high | other_high
    product = Numbers(a.clique, point, low, high, low_open, high_open, null, unknown, _kind(a, b))
    return settled(scope, product, "a product")


def _scaled_ends(a: Numbers, b: Numbers) -> tuple[Bools, Bools]:
    """Which ends of a·b are open where b is one number, positive or negative."""
    up = b.exact & (b.point > 0)
    down = b.exact & (b.point < 0)
    return (up & a.low_open) | (down & a.high_open), (up & a.high_open) | (down & a.low_open)


def divide(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """A quotient; null where the divisor is 0, as in SQL."""
    _no_dates("a quotient", one, other)
    a, b, null, unknown = pair(scope, one, other)
    zero = b.point == 0
    around = (b.low <= 0) & (b.high >= 0)
    if scope.strict:
        zero = zero & b.exact
        if (around & ~zero & b.known & a.known).any():
            raise QueryError("a divisor may be 0 inside a bin", remedy="divide by something that is not")
    with np.errstate(all="ignore"):
        low, high = _hull([a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high])
        point = a.point / np.where(zero, 1.0, b.point)
        low_open, high_open = _scaled_ends(a, b)
        if not scope.strict:
            low, high = _around_zero(a, b, low, high)
    if scope.strict:
        low, high = np.where(zero, 0.0, low), np.where(zero, 0.0, high)
    null = null | zero
    quotient = Numbers(a.clique, point, low, high, low_open, high_open, null, unknown & ~zero, "real")
    return settled(scope, quotient, "a quotient")


def _around_zero(a: Numbers, b: Numbers, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of a/b where the interval of b touches 0: what the signs still say, else everything."""
    around = (b.low <= 0) & (b.high >= 0)
    above, below = around & (b.low == 0) & (b.high > 0), around & (b.high == 0) & (b.low < 0)
    plus, minus = a.low >= 0, a.high <= 0
    low = np.where(around, -np.inf, low)
    high = np.where(around, np.inf, high)
    low = np.where(above & plus, a.low / b.high, np.where(below & minus, a.high / b.low, low))
    high = np.where(above & minus, a.high / b.high, np.where(below & plus, a.low / b.low, high))
    return low, high


def whole_quotient(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """``//``: the quotient of whole numbers, rounded towards 0."""
    if one.kind != "integer" or other.kind != "integer":
        raise QueryError("// divides whole numbers", remedy="use floor(a / b)")
    return rising(scope, divide(scope, one, other), np.trunc, "a quotient", kind="integer")


def remainder(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """``%``: what is left of a division by a constant, with the sign of the dividend."""
    _no_dates("a remainder", one, other)
    if other.clique or not other.known or other.point == 0 or other.point != np.trunc(other.point):
        raise QueryError("% needs a whole number other than 0 on its right")
    divisor = abs(float(other.point))
    point, low, high = (np.fmod(part, divisor) for part in (one.point, one.low, one.high))
    same = np.trunc(one.low / divisor) == np.trunc(one.high / divisor)
    same &= (one.low >= 0) | (one.high <= 0)
    most = divisor - (1 if one.kind == "integer" and scope.whole else 0)
    return replace(
        one, point=point,
        low=np.where(same, low, np.where(one.low >= 0, 0.0, -most)),
        high=np.where(same, high, np.where(one.high <= 0, 0.0, most)),
        low_open=one.low_open & same, high_open=one.high_open & same, kind=_kind(one, other),
    )  # fmt: skip


def rising(
    scope: Scope, value: Numbers, function: Callable[[Floats], Floats], what: str, *, kind: str = "real"
) -> Numbers:
    """A function that never falls, at both ends."""
    _no_dates(what, value)
    with np.errstate(all="ignore"):
        mapped = replace(
            value, point=function(value.point), low=function(value.low), high=function(value.high),
            low_open=NO, high_open=NO, kind=kind,
        )  # fmt: skip
    return settled(scope, mapped, what)


def half_away(values: Floats) -> Floats:
    """The nearest whole number, halves away from 0."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def floor(scope: Scope, value: Numbers) -> Numbers:
    """The floor; just below a whole number that is not reached, it is one less."""
    rounded = rising(scope, value, np.floor, "floor", kind="integer")
    below = value.high_open & (rounded.high == value.high)
    return replace(rounded, high=rounded.high - below)


def ceiling(scope: Scope, value: Numbers) -> Numbers:
    """The floor, seen from below."""
    return negative(floor(scope, negative(value)))


def absolute(scope: Scope, value: Numbers) -> Numbers:
    """The distance from 0, which is 0 where 0 lies inside."""
    _no_dates("abs", value)
    low, high = np.abs(value.low), np.abs(value.high)
    inside = (value.low < 0) & (value.high > 0)
    falling = value.high <= 0
    return replace(
        value, point=np.abs(value.point),
        low=np.where(inside, 0.0, np.minimum(low, high)), high=np.maximum(low, high),
        low_open=np.where(falling, value.high_open, value.low_open) & ~inside,
        high_open=np.where(falling, value.low_open, value.high_open) & ~inside,
    )  # fmt: skip


def power(scope: Scope, base: Numbers, exponent: Numbers) -> Numbers:
    """A constant power: whole and not negative, or any of a number that is not negative."""
    if exponent.clique or not exponent.known or is_temporal(exponent):
        raise QueryError("a power needs a constant exponent")
    degree = float(exponent.point)
    whole = degree == np.trunc(degree) and degree >= 0
    if not whole and scope.strict and (base.known & (base.low <= 0)).any():
        raise QueryError("a power that is not a whole number needs a positive base")
    kind = base.kind if whole else "real"
    if whole and degree % 2 == 0:
        base = absolute(scope, base)
    if degree < 0:
        base = divide(scope, constant(1.0, "integer"), base)
        degree = -degree
    return rising(scope, base, lambda part: np.power(part, degree), "a power", kind=kind)


def larger(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """greatest(a, b), which passes over nulls."""
    one, other = in_one_unit(one, other)
    if is_temporal(one) != is_temporal(other):
        raise QueryError("greatest and least compare dates with dates and numbers with numbers")
    a, b, _, _ = pair(scope, one, other)
    kind = a.kind if a.kind == b.kind else "real"
    low_open = np.where(
        a.low == b.low, a.low_open | b.low_open, np.where(a.low > b.low, a.low_open, b.low_open)
    )
    high_open = np.where(
        a.high == b.high, a.high_open & b.high_open, np.where(a.high > b.high, a.high_open, b.high_open)
    )
    both = Numbers(
        a.clique, np.maximum(a.point, b.point), np.maximum(a.low, b.low), np.maximum(a.high, b.high),
        low_open, high_open, a.null & b.null, a.unknown | b.unknown, kind,
    )  # fmt: skip
    found = chosen(scope, [(a.null, b), (b.null, a)], both)
    if scope.strict:
        return found
    # Of released numbers nobody knows which ones are missing in truth: the other one alone stays possible.
    low, high = found.low, found.high
    for part, beside in ((one, b), (other, a)):
        if part.clique:
            low, high = np.minimum(low, beside.low), np.maximum(high, beside.high)
    return replace(found, low=low, high=high)


def smaller(scope: Scope, one: Numbers, other: Numbers) -> Numbers:
    """least(a, b), which passes over nulls."""
    one, other = in_one_unit(one, other)
    kind = one.kind
    if kind == other.kind and is_temporal(one):
        one, other = replace(one, kind="integer"), replace(other, kind="integer")
    least = negative(larger(scope, negative(one), negative(other)))
    return replace(least, kind=kind) if kind in TEMPORAL else least


def chosen(scope: Scope, cases: list[tuple[Bools, Numbers]], default: Numbers) -> Numbers:
    """The first case that applies, cell by cell; everything is over the same cells already."""
    value = default
    for applies, other in reversed(cases):
        value = Numbers(
            default.clique,
            *(
                np.where(applies, getattr(other, part), getattr(value, part))
                for part in ("point", "low", "high", "low_open", "high_open", "null", "unknown")
            ),
            kind=value.kind if value.kind == other.kind else "real",
        )
    return value
