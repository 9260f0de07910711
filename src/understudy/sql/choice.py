"""Choices between values: CASE, IF, COALESCE, NULLIF."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from understudy.errors import QueryError
from understudy.sql import interval, predicate
from understudy.sql.evaluate import Evaluator, Node, only
from understudy.sql.grid import (
    Bools,
    Nothing,
    Numbers,
    Texts,
    Truths,
    Value,
    as_moments,
    is_temporal,
    no_numbers,
    text,
)


def _merged(evaluator: Evaluator, cases: list[tuple[Truths, Value]], default: Value) -> Value:
    """The value of the first case whose condition is true, cell by cell."""
    scope = evaluator.scope
    values = [value for _, value in cases] + [default]
    kinds = {type(value) for value in values} - {Nothing}
    if not kinds:
        return Nothing()
    if any(isinstance(v, Numbers) and v.kind == "timestamp" for v in values):
        values = [as_moments(v) if isinstance(v, Numbers) else v for v in values]
    if len(kinds) > 1 or len({is_temporal(v) for v in values if isinstance(v, Numbers)}) > 1:
        raise QueryError(
            "the branches of a choice must be all numbers, all texts, all dates or all conditions"
        )
    clique = scope.union(*(c.clique for c, _ in cases), *(v.clique for v in values))
    for _ in cases:
        evaluator.spend(clique)
    conditions = [condition.over(scope, clique).true for condition, _ in cases]
    (kind,) = kinds
    if kind is Numbers:
        like = next(v for v in values if isinstance(v, Numbers))
        numbers = [no_numbers(like) if isinstance(v, Nothing) else v for v in values]
        over = [n.over(scope, clique) for n in numbers if isinstance(n, Numbers)]
        return interval.chosen(scope, list(zip(conditions, over, strict=False)), over[-1])
    if kind is Truths:
        known = [predicate.unknown_everywhere() if isinstance(v, Nothing) else v for v in values]
        spread = [v.over(scope, clique) for v in known if isinstance(v, Truths)]
        return Truths(
            clique, *(_select(conditions, [getattr(v, p) for v in spread]) for p in ("true", "false"))
        )
    none = replace(text(""), null=~np.zeros((), bool))
    texts = [none if isinstance(v, Nothing) else v for v in values]
    wide = [v.over(scope, clique) for v in texts if isinstance(v, Texts)]
    return Texts(
        clique, *(_select(conditions, [getattr(v, p) for v in wide]) for p in ("values", "null", "unknown"))
    )


def _select(conditions: list[Bools], values: list[Any]) -> Any:
    result = values[-1]
    for applies, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
        result = np.where(applies, value, result)
    return result


def case(evaluator: Evaluator, node: Node) -> Value:
    """CASE, searched or simple."""
    only(node, "ifs", "default")
    cases = []
    for branch in node.args["ifs"]:
        if node.this is None:
            condition = evaluator.condition(branch.this)
        else:
            condition = evaluator.compare(node, "=", node.this, branch.this)
        cases.append((condition, evaluator.value(branch.args["true"])))
    default = node.args.get("default")
    return _merged(evaluator, cases, Nothing() if default is None else evaluator.value(default))


def if_(evaluator: Evaluator, node: Node) -> Value:
    """if(condition, then, otherwise)."""
    only(node, "true", "false")
    otherwise = node.args.get("false")
    return _merged(
        evaluator,
        [(evaluator.condition(node.this), evaluator.value(node.args["true"]))],
        Nothing() if otherwise is None else evaluator.value(otherwise),
    )


def coalesce(evaluator: Evaluator, node: Node) -> Value:
    """The first value that is not missing."""
    only(node)
    values = [evaluator.value(part) for part in (node.this, *node.expressions)]
    merged = _merged(evaluator, [(~predicate.is_null(v), v) for v in values[:-1]], values[-1])
    if evaluator.scope.strict or not isinstance(merged, Numbers):
        return merged
    # Of released numbers nobody knows which ones are missing in truth: every alternative stays possible.
    numbers = [v.over(evaluator.scope, merged.clique) for v in values if isinstance(v, Numbers)]
    return replace(
        merged,
        low=reduce(np.minimum, [n.low for n in numbers]),
        high=reduce(np.maximum, [n.high for n in numbers]),
    )


def nullif(evaluator: Evaluator, node: Node) -> Value:
    """Missing where the two are equal."""
    only(node)
    value = evaluator.value(node.this)
    return _merged(evaluator, [(evaluator.compared(node, "=", node.this, node.expression), Nothing())], value)
