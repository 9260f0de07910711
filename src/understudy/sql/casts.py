"""CAST and ``::``: to numbers, texts, dates, moments and conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql import interval
from understudy.sql.constants import read_moment, read_number
from understudy.sql.evaluate import TEXT_TYPES, Evaluator, Node, only, shown
from understudy.sql.grid import Numbers, Texts, Truths, Value, as_days, is_temporal, truth

_T = exp.DataType.Type
_WHOLE = (
    _T.INT, _T.BIGINT, _T.SMALLINT, _T.TINYINT, _T.INT128, _T.UINT, _T.UBIGINT, _T.USMALLINT,
    _T.UTINYINT, _T.MEDIUMINT,
)  # fmt: skip
_REAL = (_T.DOUBLE, _T.FLOAT, _T.DECIMAL)
_DATE = (_T.DATE, _T.DATE32)
_MOMENT = (_T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPNTZ, _T.TIMESTAMPLTZ, _T.DATETIME)
_UNSCALED = ("18", "3")
"""What the parser takes `numeric` without a precision for; in Postgres that is any number."""


def cast(evaluator: Evaluator, node: Node) -> Value:
    """CAST(x AS t), x::t and TRY_CAST: what changes no meaning on a cell; refused otherwise."""
    only(node, "to", "safe")
    found = _cast(evaluator, evaluator.value(node.this), node.args["to"])
    if found is None:
        raise QueryError(
            f"{shown(node)}: this cast is not in the language",
            remedy="cast numbers to numbers or text, constants to dates, and conditions to 0 and 1",
        )
    return found


def _cast(evaluator: Evaluator, value: Value, to: Node) -> Value | None:
    wanted = to.this
    if isinstance(value, Texts) and not value.clique and not value.null.any():
        return _of_constant(evaluator, str(value.values[()]), value, to)
    if isinstance(value, Truths):
        return _of_condition(value, wanted)
    if isinstance(value, Texts):
        return value if wanted in TEXT_TYPES else None
    if not isinstance(value, Numbers):
        return value  # NULL of any type
    if is_temporal(value):
        return value if wanted in _MOMENT else as_days(value) if wanted in _DATE else None
    return _of_number(evaluator, value, to)


def _of_number(evaluator: Evaluator, value: Numbers, to: Node) -> Value | None:
    wanted = to.this
    if wanted in _WHOLE:
        if value.kind == "integer":
            return value
        return interval.rising(evaluator.scope, value, np.rint, "a cast", kind="integer")
    if wanted in _REAL:
        scale = _scale(to)
        if scale is None:
            return replace(value, kind="real")
        factor = 10.0**scale
        return interval.rising(
            evaluator.scope, value, lambda x: interval.half_away(x * factor) / factor, "a cast"
        )
    if wanted in TEXT_TYPES and value.kind == "integer" and bool((value.exact | ~value.known).all()):
        words = np.empty(np.shape(value.point), object)
        flat = words.reshape(-1)
        for i, number in enumerate(np.ravel(value.point)):
            flat[i] = str(int(number)) if np.isfinite(number) else ""
        return Texts(value.clique, words, value.null, value.unknown)
    if wanted == _T.BOOLEAN and bool((value.exact | ~value.known).all()):
        known = np.broadcast_to(value.known, np.shape(value.point))
        return Truths(value.clique, known & (value.point != 0), known & (value.point == 0))
    return None


def _scale(to: Node) -> int | None:
    """The decimals of numeric(p, s), where they were written."""
    given = [str(part.name) for part in to.expressions]
    if to.this != _T.DECIMAL or not given or tuple(given) == _UNSCALED:
        return None
    scale = given[1] if len(given) > 1 else "0"
    if not scale.isdigit() or int(scale) > 15:
        raise QueryError("numeric(p, s) takes a whole number of decimals up to 15")
    return int(scale)


def _of_condition(value: Truths, wanted: object) -> Value | None:
    if wanted == _T.BOOLEAN:
        return value
    if wanted in (*_WHOLE, *_REAL):
        return zero_or_one(value)
    if wanted in TEXT_TYPES:
        words = np.where(value.true, "true", "false").astype(object)
        return Texts(value.clique, words, value.null)
    return None


def _of_constant(evaluator: Evaluator, words: str, value: Texts, to: Node) -> Value | None:
    wanted = to.this
    if wanted in TEXT_TYPES:
        return value
    if wanted in _DATE or wanted in _MOMENT:
        moment = read_moment(words)
        return as_days(moment) if wanted in _DATE else moment
    if wanted in _WHOLE or wanted in _REAL:
        return _of_number(evaluator, read_number(words), to)
    if wanted == _T.BOOLEAN and words.strip().lower() in ("true", "t", "false", "f", "1", "0", "yes", "no"):
        return truth(words.strip().lower() in ("true", "t", "1", "yes"))
    return None


def zero_or_one(value: Truths) -> Numbers:
    """A condition as a number."""
    ones = value.true.astype(np.float64)
    return Numbers(value.clique, ones, ones, ones, null=value.null, kind="integer")
