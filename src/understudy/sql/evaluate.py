"""What an expression is worth: read from its parse tree, on a grid of cells or over released groups.

Only the node types named here are understood, and only with the arguments named here; anything else that the
parser may produce is refused. Nothing of the text is passed on to a database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np
from sqlglot import ErrorLevel, exp

from understudy.domain.attribute import same_text
from understudy.errors import QueryError
from understudy.sql import interval, predicate
from understudy.sql.constants import Constant, alike, plain
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

_T = exp.DataType.Type
TEXT_TYPES = (_T.VARCHAR, _T.TEXT, _T.CHAR, _T.NVARCHAR, _T.NCHAR, _T.NAME, _T.BPCHAR)
"""The types of texts, whatever a database calls them."""

MAX_WORK = 1 << 25
"""Cells of all intermediate values of one statement together."""


def shown(node: Node) -> str:
    """The expression as SQL, for a message; long ones are cut."""
    words = node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)
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


def uncast(node: Node) -> Node:
    """A column, also where it is cast to text: it is compared, and names groups, as what it is."""
    node = node.unnest()
    if (
        isinstance(node, exp.Cast)
        and node.to.this in TEXT_TYPES
        and isinstance(node.this.unnest(), exp.Column)
    ):
        return node.this.unnest()
    return node


@dataclass(frozen=True)
class Comparison:
    """``left operator right``, which a message may quote as a part of something else."""

    operator: str
    left: Node
    right: Node


class Evaluator:
    """Values of nodes in one scope. `leaf` knows what columns and aggregates are worth there.

    `compare_attribute` compares an attribute with a constant by its own rules and with its own messages;
    `cut` explains an undecided cell. `bins` says between which edges the cells of a
    binned attribute lie. `functions` are by type or, those that the parser does not know, by name. `released` says
    that released numbers may be compared, by their points: in HAVING and ORDER BY, but not in the SELECT list,
    where no interval would be honest.
    """

    def __init__(
        self,
        scope: Scope,
        leaf: Leaf,
        *,
        compare_attribute: Callable[[Node, str, Constant], Truths | None] | None = None,
        cut: Callable[[Node, Comparison, Clique, Bools], QueryError] | None = None,
        bins: Callable[[Node], tuple[Numbers, Numbers] | None] | None = None,
        functions: Mapping[type[Node] | str, Callable[[Evaluator, Any], Value]],
        released: bool = False,
    ) -> None:
        self.scope = scope
        self._work = 0
        self._open = scope.strict or released
        self._leaf = leaf
        self._compare_attribute = compare_attribute
        self._cut = cut
        self._bins = bins
        self._functions = functions

    # ---- by type

    def value(self, node: Node) -> Value:
        found = self._leaf(node)
        if found is not None:
            return found
        kind = type(node)
        name = node.name.lower() if isinstance(node, exp.Anonymous) else kind
        handler = self._functions.get(name) or _HANDLERS.get(kind)
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

    def bins(self, node: Node) -> tuple[Numbers, Numbers] | None:
        """Where the bin of each cell starts and stops, where a node is an attribute with bins; None elsewhere."""
        return None if self._bins is None else self._bins(node.unnest())

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
        holds, undecided = self.decided(operator, left, right)
        if undecided.any() and self._cut is not None:
            raise self._cut(node, Comparison(operator, left, right), holds.clique, undecided)
        return holds

    def decided(self, operator: str, left: Node, right: Node) -> tuple[Truths, Bools]:
        """Where a comparison holds and where it does not, and the cells in which it does both."""
        one, other = self.value(left), self.value(right)
        return predicate.compare(self.scope, operator, alike(one, other), alike(other, one))

    def _with_constant(self, operator: str, left: Node, right: Node) -> Truths | None:
        """The comparison of an attribute with a constant, where that is what it is."""
        left = uncast(left)
        if self._compare_attribute is None or not isinstance(left, exp.Column):
            return None
        if any(True for _ in right.find_all(exp.Column)):
            return None
        value = self.value(right)
        if isinstance(value, Nothing) or (isinstance(value, Numbers) and value.null.any()):
            return predicate.unknown_everywhere()
        found = plain(value)
        return None if found is None else self._compare_attribute(left, operator, found)


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


def arithmetic(evaluator: Evaluator, node: Node) -> Value:
    """An operator between two numbers."""
    only(node, "typed", "safe")
    operation = ARITHMETIC[type(node)]
    return operation(evaluator.scope, evaluator.number(node.this), evaluator.number(node.expression))


def _comparison(evaluator: Evaluator, node: Node) -> Value:
    only(node)
    if isinstance(node.expression, exp.Any):  # x = ANY (ARRAY[…])
        listed = node.expression.this.unnest()
        if not isinstance(node, exp.EQ) or not isinstance(listed, exp.Array | exp.Tuple):
            raise QueryError(f"{shown(node)}: ANY is not in the language", remedy="write x IN ('a', 'b')")
        return _one_of(evaluator, node, listed.expressions)
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
    return _one_of(evaluator, node, node.expressions)


def _one_of(evaluator: Evaluator, node: Node, items: list[Node]) -> Value:
    found: Truths | None = None
    for item in items:
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


def _distinct_from(evaluator: Evaluator, node: Node) -> Value:
    """IS [NOT] DISTINCT FROM: a comparison in which two missing values are equal."""
    only(node)
    evaluator.check_open(node)
    equal = evaluator.compared(node, "=", node.this, node.expression)
    one, other = (predicate.is_null(evaluator.value(part)) for part in (node.this, node.expression))
    both = predicate.both(evaluator.scope, one, other)
    clique = evaluator.scope.union(equal.clique, both.clique)
    same = equal.over(evaluator.scope, clique).true | both.over(evaluator.scope, clique).true
    found = Truths(clique, same, ~same)
    return ~found if isinstance(node, exp.NullSafeNEQ) else found


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
    exp.NullSafeEQ: _distinct_from,
    exp.NullSafeNEQ: _distinct_from,
    exp.Like: _like,
    exp.ILike: _like,
    **dict.fromkeys(ARITHMETIC, arithmetic),
    **dict.fromkeys(COMPARISONS, _comparison),
}
