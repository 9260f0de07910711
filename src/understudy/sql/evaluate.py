"""What an expression is worth: read from its parse tree, on a grid of cells or over released groups.

Only the node types named here are understood, and only with the arguments named here; anything else that the
parser may produce is refused. Nothing of the text is passed on to a database.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from math import isfinite, prod
from typing import Any

import numpy as np
from sqlglot import exp

from understudy.domain.attribute import same_text
from understudy.errors import QueryError
from understudy.sql import interval, predicate
from understudy.sql.grid import (
    Bools,
    Clique,
    Nothing,
    Numbers,
    Scope,
    Texts,
    Truths,
    Value,
    constant,
    no_numbers,
    text,
    truth,
)
from understudy.sql.remedies import unknown

Node = exp.Expr
Leaf = Callable[[Node], Value | None]
Constant = str | int | float | bool | dt.date

COMPARISONS: dict[type[Node], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip

ARITHMETIC = {
    exp.Add: interval.add,
    exp.Sub: interval.subtract,
    exp.Mul: interval.multiply,
    exp.Div: interval.divide,
    exp.IntDiv: interval.whole_quotient,
    exp.Mod: interval.remainder,
    exp.Pow: interval.power,
}

MAX_WORK = 1 << 25
"""Cells of all intermediate values of one statement together."""

_EPOCH = dt.date(1970, 1, 1)


def shown(node: Node) -> str:
    """The expression as SQL, for a message; long ones are cut."""
    words = node.sql(dialect="duckdb")
    return words if len(words) <= 80 else words[:77] + "…"


def used(node: Node) -> set[str]:
    """The arguments of a node that say something."""
    return {key for key, value in node.args.items() if value not in (None, False, [], "")}


def only(node: Node, *allowed: str) -> None:
    """Refuse a node with an argument that its handler does not read."""
    if extra := used(node) - set(allowed) - {"this", "expression", "expressions", "_type"}:
        raise QueryError(
            f"{shown(node)}: {', '.join(sorted(extra))} is not supported here", remedy="leave it out"
        )


class Evaluator:
    """Values of nodes in one scope. `leaf` knows what columns and aggregates are worth there.

    `compare_attribute` compares an attribute with a constant by its own rules and with its own messages;
    `cut` explains an undecided cell. `released` says that released numbers may be compared, by their points: in
    HAVING and ORDER BY, but not in the SELECT list, where no interval would be honest.
    """

    def __init__(
        self,
        scope: Scope,
        leaf: Leaf,
        *,
        compare_attribute: Callable[[Node, str, Constant], Truths | None] | None = None,
        cut: Callable[[Node, Clique, Bools], QueryError] | None = None,
        functions: dict[type[Node], Callable[[Evaluator, Any], Value]],
        released: bool = False,
    ) -> None:
        self.scope = scope
        self._work = 0
        self._open = scope.strict or released
        self._leaf = leaf
        self._compare_attribute = compare_attribute
        self._cut = cut
        self._functions = functions

    # ---- by type

    def value(self, node: Node) -> Value:
        found = self._leaf(node)
        if found is not None:
            return found
        kind = type(node)
        handler = _HANDLERS.get(kind) or self._functions.get(kind)
        if handler is None:
            raise unknown(node, shown(node))
        value = handler(self, node)
        self.spend(value.clique)
        return value

    def spend(self, clique: Clique) -> None:
        """Take note of the cells of an intermediate value; refuse when there were too many."""
        self._work += prod(self.scope.sizes[name] for name in clique)
        if self._work > MAX_WORK:
            raise QueryError(
                "the statement is too much work over so many cells", remedy="ask about fewer attributes"
            )

    def check_open(self, node: Node) -> None:
        """Refuse a comparison of released numbers where it is not allowed."""
        if not self._open:
            raise QueryError(
                f"{shown(node)}: released numbers are compared in HAVING, not in the SELECT list"
            )

    def number(self, node: Node) -> Numbers:
        value = self.value(node)
        if isinstance(value, Nothing):
            return no_numbers(constant(0.0, "integer"))
        if not isinstance(value, Numbers):
            raise QueryError(f"{shown(node)} is not a number")
        return value

    def words(self, node: Node) -> Texts:
        value = self.value(node)
        if isinstance(value, Nothing):
            return Texts((), text("").values, null=~np.zeros((), bool))
        if not isinstance(value, Texts):
            raise QueryError(f"{shown(node)} is not a text")
        return value

    def condition(self, node: Node) -> Truths:
        value = self.value(node)
        if isinstance(value, Nothing):
            return predicate.unknown_everywhere()
        if not isinstance(value, Truths):
            raise QueryError(f"{shown(node)} is not a condition", remedy="compare it with something")
        return value

    def constant(self, node: Node, what: str) -> Constant:
        """A value that is the same in every cell, as Python writes it."""
        found = plain(self.value(node))
        if found is None:
            raise QueryError(f"{what} must be a constant, not {shown(node)}")
        return found

    # ---- operators

    def compare(self, node: Node, operator: str, left: Node, right: Node) -> Truths:
        """``left operator right``; `node` is what a message quotes."""
        self.check_open(node)
        return self.compared(node, operator, left, right)

    def compared(self, node: Node, operator: str, left: Node, right: Node) -> Truths:
        """The same, also of released numbers in the SELECT list."""
        if (found := self._with_constant(operator, left, right)) is not None:
            return found
        if (found := self._with_constant(predicate.FLIPPED[operator], right, left)) is not None:
            return found
        one, other = self.value(left), self.value(right)
        one, other = _as_date(one, other), _as_date(other, one)
        holds, undecided = predicate.compare(self.scope, operator, one, other)
        if undecided.any() and self._cut is not None:
            raise self._cut(node, holds.clique, undecided)
        return holds

    def _with_constant(self, operator: str, left: Node, right: Node) -> Truths | None:
        """The comparison of an attribute with a constant, where that is what it is."""
        if self._compare_attribute is None or not isinstance(left.unnest(), exp.Column):
            return None
        if any(True for _ in right.find_all(exp.Column)):
            return None
        value = self.value(right)
        if isinstance(value, Nothing) or (isinstance(value, Numbers) and value.null.any()):
            return predicate.unknown_everywhere()
        found = plain(value)
        return None if found is None else self._compare_attribute(left.unnest(), operator, found)


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
        return as_date(float(value.point))
    return int(value.point) if value.kind == "integer" else float(value.point)


def as_date(days: float) -> dt.date:
    """The day of a number of days since 1970-01-01."""
    try:
        return _EPOCH + dt.timedelta(days=int(np.floor(days)))
    except OverflowError:
        raise QueryError("a date lies outside the calendar, the years 1 to 9999") from None


def of_date(day: dt.date) -> Numbers:
    """A day as a constant."""
    return constant(float((day - _EPOCH).days), "date")


def read_date(words: str) -> Numbers:
    """A day written as 2024-12-31, as a constant."""
    try:
        return of_date(dt.date.fromisoformat(words.strip()))
    except ValueError:
        raise QueryError(f"{words[:40]!r} is not a day", remedy="write it as 2024-12-31") from None


def _as_date(value: Value, beside: Value) -> Value:
    """A text beside a date is a date."""
    wanted = isinstance(beside, Numbers) and beside.kind == "date"
    if wanted and isinstance(value, Texts) and not value.clique and not value.null:
        return read_date(str(value.values[()]))
    return value


# ---- the nodes that are part of the language itself


def _literal(_: Evaluator, node: Node) -> Value:
    written = str(node.this)
    if node.args.get("is_string"):
        return text(same_text(written))
    if len(written) > 40:
        raise QueryError("a number may have 40 characters")
    if re.fullmatch(r"\d+", written):
        if int(written) > 2**53:
            raise QueryError("a whole number may be at most 2^53")
        return constant(float(written), "integer")
    try:
        number = float(written)
    except ValueError:
        raise QueryError(f"{written!r} is not a number") from None
    if not isfinite(number):
        raise QueryError(f"{written} is too large a number")
    return constant(number, "real")


def _arithmetic(evaluator: Evaluator, node: Node) -> Value:
    only(node, "typed", "safe")
    operation = ARITHMETIC[type(node)]
    return operation(evaluator.scope, evaluator.number(node.this), evaluator.number(node.expression))


def _comparison(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    return evaluator.compare(node, COMPARISONS[type(node)], node.this, node.expression)


def _boolean(_: Evaluator, node: Node) -> Value:
    return truth(bool(node.this))


def _null(_evaluator: Evaluator, _node: Node) -> Value:
    return Nothing()


def _paren(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    return evaluator.value(node.this)


def _neg(evaluator: Evaluator, node: Node) -> Value:
    return interval.negative(evaluator.number(node.this))


def _not(evaluator: Evaluator, node: Node) -> Value:
    return ~evaluator.condition(node.this)


def chain(node: Node) -> list[Node]:
    """The links of a chain of AND or of OR, in order; a long one is no deep recursion."""
    links: list[Node] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if type(part) is type(node):
            stack.extend((part.expression, part.this))
        else:
            links.append(part)
    return links


def _chained(evaluator: Evaluator, node: Node) -> Value:
    join = predicate.both if isinstance(node, exp.And) else predicate.either
    whole, *more = map(evaluator.condition, chain(node))
    for part in more:
        whole = join(evaluator.scope, whole, part)
        evaluator.spend(whole.clique)
    return whole


def _between(evaluator: Evaluator, node: Node) -> Value:
    only(node, "low", "high")
    above = evaluator.compare(node, ">=", node.this, node.args["low"])
    return predicate.both(evaluator.scope, above, evaluator.compare(node, "<=", node.this, node.args["high"]))


def _in(evaluator: Evaluator, node: Node) -> Value:
    if used(node) & {"query", "unnest", "field"}:
        raise QueryError("IN needs a list of values in parentheses, such as district in ('A', 'B')")
    only(node)
    found: Truths | None = None
    for item in node.expressions:
        one = evaluator.compare(node, "=", node.this, item)
        found = one if found is None else predicate.either(evaluator.scope, found, one)
    if found is None:
        raise QueryError("IN needs at least one value")
    return found


def _is(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    evaluator.check_open(node)
    if isinstance(node.expression, exp.Null):
        return predicate.is_null(evaluator.value(node.this))
    if not isinstance(node.expression, exp.Boolean):
        raise QueryError(f"{shown(node)}: IS is followed by NULL, TRUE or FALSE")
    holds = evaluator.condition(node.this)
    wanted = holds.true if node.expression.this else holds.false
    return Truths(holds.clique, wanted, ~wanted)


def _like(evaluator: Evaluator, node: Node) -> Value:
    only(node, "negate")
    pattern = evaluator.constant(node.expression, "the pattern of LIKE")
    if not isinstance(pattern, str):
        raise QueryError("the pattern of LIKE is a text, such as 'A%'")
    holds = predicate.like(evaluator.words(node.this), pattern, fold=isinstance(node, exp.ILike))
    return ~holds if node.args.get("negate") else holds


_HANDLERS: dict[type[Node], Callable[[Evaluator, Any], Value]] = {
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Neg: _neg,
    exp.Not: _not,
    exp.And: _chained,
    exp.Or: _chained,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(COMPARISONS, _comparison),
}
