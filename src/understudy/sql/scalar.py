"""The scalar functions of the language, one line of the table at the end for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql import casts, choice, dates, ends, interval, words
from understudy.sql.evaluate import Evaluator, Node, arithmetic, only, shown
from understudy.sql.grid import Floats, Numbers, Scope, Value

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
        evaluator.scope, number, lambda x: interval.half_away(x * scale) / scale, "round", kind=kind
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


def _sum_or_moved(evaluator: Evaluator, node: Node) -> Value:
    """a + b and a - b, of numbers, of a date and days, or of a date and an interval."""
    left, right = node.this, node.expression
    if isinstance(right.unnest(), exp.Interval):
        return dates.moved(evaluator, left, right.unnest(), -1 if isinstance(node, exp.Sub) else 1)
    if isinstance(left.unnest(), exp.Interval) and isinstance(node, exp.Add):
        return dates.moved(evaluator, right, left.unnest(), 1)
    return arithmetic(evaluator, node)


FUNCTIONS: dict[type[Node] | str, Callable[[Evaluator, Any], Value]] = {
    exp.Add: _sum_or_moved,
    exp.Sub: _sum_or_moved,
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
    exp.Extract: dates.extract,
    exp.Year: dates.calendar("year"),
    exp.Quarter: dates.calendar("quarter"),
    exp.Month: dates.calendar("month"),
    exp.Day: dates.calendar("day"),
    exp.Hour: dates.calendar("hour"),
    exp.Minute: dates.calendar("minute"),
    exp.Second: dates.calendar("second"),
    exp.DayOfMonth: dates.calendar("day"),
    exp.Week: dates.calendar("week"),
    exp.DayOfWeek: dates.calendar("dow"),
    exp.DayOfWeekIso: dates.calendar("isodow"),
    exp.DayOfYear: dates.calendar("doy"),
    exp.TimestampTrunc: dates.truncated,
    exp.DateTrunc: dates.truncated,
    exp.Date: dates.as_day,
    exp.DateFromParts: dates.from_parts,
    exp.UnixToTime: dates.from_text,
    "date_part": dates.date_part,
    "to_date": dates.from_text,
    exp.Cast: casts.cast,
    exp.TryCast: casts.cast,
    exp.WidthBucket: ends.width_bucket,
    "bin_start": ends.bin_end("bin_start"),
    "bin_stop": ends.bin_end("bin_stop"),
    "low": ends.bound("low"),
    "high": ends.bound("high"),
}
