"""The scalar functions of the language, one line of the table at the end for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql import choice, interval, words
from understudy.sql.evaluate import Evaluator, Node, as_date, only, read_date, shown
from understudy.sql.grid import (
    Floats,
    Numbers,
    Scope,
    Texts,
    Truths,
    Value,
)

# ---- numbers


def _rising(function: Callable[[Floats], Floats], name: str, kind: str = "real") -> Any:
    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node)
        return interval.rising(evaluator.scope, evaluator.number(node.this), function, name, kind=kind)

    return handler


def _on_numbers(function: Callable[[Scope, Numbers], Numbers], *allowed: str) -> Any:
    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node, *allowed)
        return function(evaluator.scope, evaluator.number(node.this))

    return handler


def half_away(values: Floats) -> Floats:
    """The nearest whole number, halves away from 0."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


def _round(evaluator: Evaluator, node: Node) -> Value:
    only(node, "decimals")
    digits = 0
    if node.args.get("decimals") is not None:
        wanted = evaluator.constant(node.args["decimals"], "the digits of round")
        if type(wanted) is not int or not -15 <= wanted <= 15:
            raise QueryError("round takes a whole number of digits between -15 and 15")
        digits = wanted
    scale = 10.0**digits
    number = evaluator.number(node.this)
    kind = "integer" if digits <= 0 or number.kind == "integer" else "real"
    return interval.rising(
        evaluator.scope, number, lambda x: half_away(x * scale) / scale, "round", kind=kind
    )


def _logarithm(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    number, base = evaluator.number(node.expression or node.this), np.e if isinstance(node, exp.Ln) else 10.0
    if node.expression is not None:
        wanted = evaluator.constant(node.this, "the base of a logarithm")
        if isinstance(wanted, bool | str) or not isinstance(wanted, int | float) or wanted <= 1:
            raise QueryError("the base of a logarithm is a number above 1")
        base = float(wanted)
    if evaluator.scope.strict and (number.known & (number.low <= 0)).any():
        raise QueryError(f"{shown(node)}: a logarithm needs positive numbers")
    return interval.rising(evaluator.scope, number, lambda x: _log(x, base), "a logarithm")


def _log(values: Floats, base: float) -> Floats:
    exactly = {2.0: np.log2, 10.0: np.log10}.get(base)
    return exactly(values) if exactly else np.log(values) / np.log(base)


def _root(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    number = evaluator.number(node.this)
    if evaluator.scope.strict and (number.known & (number.low < 0)).any():
        raise QueryError(f"{shown(node)}: a square root needs numbers that are not negative")
    if not evaluator.scope.strict:  # a released number may be below 0 where the true one is not
        number = replace(number, low=np.maximum(number.low, 0.0))
    return interval.rising(evaluator.scope, number, np.sqrt, "a square root")


def _extreme(function: Callable[[Scope, Numbers, Numbers], Numbers]) -> Any:
    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node, "ignore_nulls")
        numbers = [evaluator.number(part) for part in (node.this, *node.expressions)]
        return reduce(lambda a, b: function(evaluator.scope, a, b), numbers)

    return handler


# ---- dates

_PARTS = ("year", "quarter", "month", "day")


def _date_part(evaluator: Evaluator, part: str, node: Node) -> Value:
    value = evaluator.value(node)
    if not isinstance(value, Numbers) or value.kind != "date":
        raise QueryError(f"{part} needs a date, and {shown(node)} is none")
    shape = value.point.shape
    cells = zip(value.point.ravel(), value.low.ravel(), value.high.ravel(), strict=True)
    parts = np.array([_part_of(part, *map(float, days)) for days in cells], np.float64).reshape(*shape, 3)
    point, low, high = (np.asarray(parts[..., i]) for i in range(3))
    return replace(value, point=point, low=low, high=high, kind="integer")


def _part_of(part: str, point: float, low: float, high: float) -> tuple[int, int, int]:
    """A part of the representative day, and its range over the days of the cell."""
    middle, first, last = as_date(point), as_date(low), as_date(high)
    if part == "year":
        return middle.year, first.year, last.year
    if part == "day":
        same = (first.year, first.month) == (last.year, last.month)
        return middle.day, first.day if same else 1, last.day if same else 31
    same = first.year == last.year
    months = (middle.month, first.month if same else 1, last.month if same else 12)
    return months if part == "month" else tuple((month + 2) // 3 for month in months)  # type: ignore[return-value]


def _calendar(part: str) -> Any:
    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node)
        return _date_part(evaluator, part, node.this)

    return handler


def _extract(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    part = str(node.this.name).lower()
    if part not in _PARTS:
        raise QueryError(f"extract takes {', '.join(_PARTS)}, not {part[:40]!r}")
    return _date_part(evaluator, part, node.expression)


def _cast(evaluator: Evaluator, node: Node) -> Value:
    only(node, "to")
    wanted = node.args["to"].this
    value = evaluator.value(node.this)
    if isinstance(value, Truths) and wanted in (*_WHOLE, *_REAL):
        return zero_or_one(value)
    if wanted in _REAL and isinstance(value, Numbers) and value.kind != "date":
        return replace(value, kind="real")
    if wanted in _WHOLE and isinstance(value, Numbers) and value.kind == "integer":
        return value
    if wanted == exp.DataType.Type.DATE:
        if isinstance(value, Numbers) and value.kind == "date":
            return value
        if isinstance(value, Texts) and not value.clique and not value.null:
            return read_date(str(value.values[()]))
    if wanted in _TEXT and isinstance(value, Texts):
        return value
    raise QueryError(
        f"{shown(node)}: this cast is not in the language", remedy="use floor, round or a literal"
    )


def zero_or_one(value: Truths) -> Numbers:
    """A condition as a number."""
    ones = value.true.astype(np.float64)
    return Numbers(value.clique, ones, ones, ones, null=value.null, kind="integer")


_T = exp.DataType.Type
_WHOLE = (_T.INT, _T.BIGINT, _T.SMALLINT, _T.TINYINT)
_REAL = (_T.DOUBLE, _T.FLOAT)
_TEXT = (_T.VARCHAR, _T.TEXT)

FUNCTIONS: dict[type[Node], Callable[[Evaluator, Any], Value]] = {
    exp.Abs: _on_numbers(interval.absolute),
    exp.Floor: _on_numbers(interval.floor),
    exp.Ceil: _on_numbers(interval.ceiling),
    exp.Round: _round,
    exp.Trunc: _rising(np.trunc, "trunc", "integer"),
    exp.Sign: _rising(np.sign, "sign", "integer"),
    exp.Sqrt: _root,
    exp.Exp: _rising(np.exp, "exp"),
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Greatest: _extreme(interval.larger),
    exp.Least: _extreme(interval.smaller),
    exp.Case: choice.case,
    exp.If: choice.if_,
    exp.Coalesce: choice.coalesce,
    exp.Nullif: choice.nullif,
    exp.Lower: words.on_text(str.lower),
    exp.Upper: words.on_text(str.upper),
    exp.Trim: words.on_text(lambda word: word.strip(" ")),
    exp.Reverse: words.on_text(lambda word: word[::-1]),
    exp.Length: words.length,
    exp.Substring: words.substring,
    exp.Left: words.side,
    exp.Right: words.side,
    exp.DPipe: words.pipe,
    exp.Concat: words.concat,
    exp.StartsWith: words.found(str.startswith),
    exp.EndsWith: words.found(str.endswith),
    exp.Contains: words.found(str.__contains__),
    exp.Extract: _extract,
    exp.Year: _calendar("year"),
    exp.Quarter: _calendar("quarter"),
    exp.Month: _calendar("month"),
    exp.Day: _calendar("day"),
    exp.Cast: _cast,
}
