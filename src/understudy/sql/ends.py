"""Ends: of the bins of an attribute, of buckets of equal width, and of the bounds of a released number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from understudy.errors import QueryError
from understudy.sql import interval
from understudy.sql.evaluate import Evaluator, Node, only, shown
from understudy.sql.grid import Numbers, Value, constant


def _argument(node: Node, name: str) -> Node:
    if len(node.expressions) != 1:
        raise QueryError(f"{name} takes one column, {name}(x)")
    return node.expressions[0]


def bin_end(name: str) -> Any:
    """bin_start(a) and bin_stop(a): where the bin of an attribute begins, and the edge at which the next one does.

    Each is one number, or day, for each declared cell; it is missing for missing values and in the cell `other`.
    """

    def handler(evaluator: Evaluator, node: Node) -> Value:
        of = _argument(node, name)
        found = evaluator.bins(of)
        if found is None:
            raise QueryError(
                f"{shown(node)}: {name} takes a numeric or date attribute, as it is declared",
                remedy=f"write {name}(age), of a column with bins",
            )
        start, stop = found
        return start if name == "bin_start" else stop

    return handler


def bound(name: str) -> Any:
    """low(x) and high(x): the ends of the interval of a released number, as columns of their own.

    They are released numbers themselves, known exactly; missing where x has no such bound.
    """

    def handler(evaluator: Evaluator, node: Node) -> Value:
        of = _argument(node, name)
        value = evaluator.value(of)
        if evaluator.scope.strict or not isinstance(value, Numbers):
            raise QueryError(
                f"{shown(node)}: {name} is the end of the bounds of an aggregate",
                remedy=f"write {name}(count(*)); bin_start(a) is where a bin begins",
            )
        end = np.asarray(value.low if name == "low" else value.high)
        missing = ~np.isfinite(end)
        shown_end = np.where(missing, 0.0, end)
        return replace(
            value, point=shown_end, low=shown_end, high=shown_end, null=value.null * False | missing,
            unknown=value.unknown * False,
        )  # fmt: skip

    return handler


def width_bucket(evaluator: Evaluator, node: Node) -> Value:
    """The number, from 1, of the bucket of equal width between two ends; 0 below and n + 1 above them."""
    only(node, "min_value", "max_value", "num_buckets", "threshold")
    low, high, count = (
        evaluator.constant(node.args[part], "an argument of width_bucket")
        for part in ("min_value", "max_value", "num_buckets")
    )
    numbers = (low, high, count)
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers) or type(count) is not int:
        raise QueryError("width_bucket takes numbers, width_bucket(age, 0, 100, 10)")
    if not low < high or not 1 <= count <= 10**6:  # type: ignore[operator]
        raise QueryError("width_bucket takes a lower end, an upper end above it, and a number of buckets")
    scope, value = evaluator.scope, evaluator.number(node.this)
    above = interval.subtract(scope, value, constant(float(low), "real"))  # type: ignore[arg-type]
    scaled = interval.divide(
        scope,
        interval.multiply(scope, above, constant(float(count), "integer")),
        constant(float(high) - float(low), "real"),  # type: ignore[arg-type]
    )
    place = interval.floor(scope, scaled)
    ends = {part: np.clip(getattr(place, part) + 1, 0, count + 1) for part in ("point", "low", "high")}
    return replace(place, **ends, kind="integer")
