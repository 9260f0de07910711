"""Conditions on the public grid, in SQL's three-valued logic.

A comparison must be constant on every cell. Whether it is, is decided from the ends of the two intervals; where
it is not, the cell is reported back as undecided and the question is refused.
"""

from __future__ import annotations

import numpy as np

from understudy.errors import QueryError
from understudy.sql.grid import Bools, Nothing, Numbers, Scope, Texts, Truths, Value, in_one_unit, is_temporal
from understudy.sql.interval import pair

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def both(scope: Scope, one: Truths, other: Truths) -> Truths:
    """AND: true where both are, false where either is."""
    clique = scope.union(one.clique, other.clique)
    a, b = one.over(scope, clique), other.over(scope, clique)
    return Truths(clique, a.true & b.true, a.false | b.false)


def either(scope: Scope, one: Truths, other: Truths) -> Truths:
    """OR, by De Morgan."""
    return ~both(scope, ~one, ~other)


def unknown_everywhere() -> Truths:
    """NULL as a condition."""
    return Truths((), np.zeros((), bool), np.zeros((), bool))


def is_null(value: Value) -> Truths:
    """Where a value is missing; `other` is not."""
    if isinstance(value, Nothing):
        return Truths((), np.ones((), bool), np.zeros((), bool))
    shape = value.true.shape if isinstance(value, Truths) else _shape(value)
    null = np.broadcast_to(value.null, shape)
    return Truths(value.clique, null, ~null)


def _shape(value: Numbers | Texts) -> tuple[int, ...]:
    return value.point.shape if isinstance(value, Numbers) else value.values.shape


def compare(scope: Scope, operator: str, one: Value, other: Value) -> tuple[Truths, Bools]:
    """Where ``one operator other`` holds and where not, and the cells that it would cut.

    Of released numbers (a scope that is not strict) the points are compared.
    """
    if isinstance(one, Nothing) or isinstance(other, Nothing):
        return unknown_everywhere(), np.zeros((), bool)
    if isinstance(one, Numbers) and isinstance(other, Numbers):
        return _numbers(scope, operator, one, other)
    if isinstance(one, Texts) and isinstance(other, Texts):
        return _texts(scope, operator, one, other)
    if isinstance(one, Truths) and isinstance(other, Truths):
        same = either(scope, both(scope, one, other), both(scope, ~one, ~other))
        if operator not in ("=", "!="):
            raise QueryError("conditions are not ordered", remedy="compare them with = or !=")
        return (same if operator == "=" else ~same), np.zeros((), bool)
    raise QueryError(f"{_word(one)} cannot be compared with {_word(other)}")


def _word(value: Value) -> str:
    if isinstance(value, Numbers):
        return f"a {value.kind}" if is_temporal(value) else "a number"
    return "a text" if isinstance(value, Texts) else "a condition"


def _texts(scope: Scope, operator: str, one: Texts, other: Texts) -> tuple[Truths, Bools]:
    if operator not in ("=", "!="):
        raise QueryError("texts are not ordered", remedy="compare them with =, !=, in or like")
    clique = scope.union(one.clique, other.clique)
    a, b = one.over(scope, clique), other.over(scope, clique)
    known = ~(a.null | a.unknown | b.null | b.unknown)
    equal = np.asarray(a.values == b.values, bool)
    same = Truths(clique, known & equal, known & ~equal)
    return (same if operator == "=" else ~same), np.zeros((), bool)


def _numbers(scope: Scope, operator: str, one: Numbers, other: Numbers) -> tuple[Truths, Bools]:
    if is_temporal(one) != is_temporal(other):
        raise QueryError("a date is compared with a date", remedy="write date '2024-12-31'")
    one, other = in_one_unit(one, other)
    if operator in (">", ">="):
        return _numbers(scope, FLIPPED[operator], other, one)
    a, b, null, unknown = pair(scope, one, other)
    known = ~(null | unknown)
    if not scope.strict:
        a = Numbers(a.clique, a.point, a.point, a.point)
        b = Numbers(b.clique, b.point, b.point, b.point)
    if operator in ("=", "!="):
        true = a.exact & b.exact & (a.low == b.low)
        false = _below(a, b) | _below(b, a)
    elif operator == "<":
        true, false = _below(a, b), b.high <= a.low
    else:
        true, false = a.high <= b.low, _below(b, a)
    holds = Truths(a.clique, known & true, known & false)
    return (~holds if operator == "!=" else holds), known & ~(true | false)


def _below(a: Numbers, b: Numbers) -> Bools:
    """Every value of a is below every value of b."""
    return (a.high < b.low) | ((a.high == b.low) & (a.high_open | b.low_open))


def like(value: Texts, pattern: str, *, fold: bool) -> Truths:
    """``value LIKE pattern``: % stands for any characters, _ for one."""
    pattern = pattern.casefold() if fold else pattern
    known = ~(value.null | value.unknown)
    matched = np.array(
        [_matches(text.casefold() if fold else text, pattern) for text in value.values.ravel().tolist()], bool
    ).reshape(value.values.shape)
    return Truths(value.clique, known & matched, known & ~matched)


def _matches(text: str, pattern: str) -> bool:
    """Greedy, going back to the last % only: at most len(text)·len(pattern) steps."""
    at = to = 0
    last, resume = -1, 0
    while at < len(text):
        if to < len(pattern) and pattern[to] == "%":
            last, resume = to, at
            to += 1
        elif to < len(pattern) and pattern[to] in ("_", text[at]):
            at, to = at + 1, to + 1
        elif last >= 0:
            resume += 1
            at, to = resume, last + 1
        else:
            return False
    return all(character == "%" for character in pattern[to:])
