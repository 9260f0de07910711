"""Functions of texts, applied to the declared values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql.evaluate import Evaluator, Node, only
from understudy.sql.grid import MAX_TEXTS, Numbers, Texts, Truths, Value

MAX_TEXT = 10_000
"""Characters of a text that an expression makes."""


def _mapped(value: Texts, function: Callable[[str], Any], kind: Any = object) -> Any:
    mapped = np.empty(value.values.shape, kind)
    flat = mapped.reshape(-1)
    for i, word in enumerate(value.values.ravel().tolist()):
        flat[i] = function(word)
    return mapped


def on_text(function: Callable[[str], str]) -> Any:
    """A function of one text."""

    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node)
        value = evaluator.words(node.this)
        return replace(value, values=_mapped(value, function))

    return handler


def length(evaluator: Evaluator, node: Node) -> Value:
    """The number of characters."""
    only(node)
    value = evaluator.words(node.this)
    counts = _mapped(value, len, np.float64)
    return Numbers(
        value.clique, counts, counts, counts, null=value.null, unknown=value.unknown, kind="integer"
    )


def _whole(evaluator: Evaluator, node: Node | None, what: str, default: int) -> int:
    if node is None:
        return default
    number = evaluator.constant(node, what)
    if type(number) is not int:
        raise QueryError(f"{what} is a whole number")
    return number


def substring(evaluator: Evaluator, node: Node) -> Value:
    """Characters from a position on, counted from 1."""
    only(node, "start", "length")
    value = evaluator.words(node.this)
    start = _whole(evaluator, node.args.get("start"), "the start of substr", 1)
    length = _whole(evaluator, node.args.get("length"), "the length of substr", MAX_TEXT)
    if start < 1 or length < 0:
        raise QueryError("substr counts characters from 1, and its length is not negative")
    return replace(value, values=_mapped(value, lambda word: word[start - 1 : start - 1 + length]))


def side(evaluator: Evaluator, node: Node) -> Value:
    """The first or the last characters."""
    only(node)
    value = evaluator.words(node.this)
    count = _whole(evaluator, node.expression, "the number of characters", 0)
    if count < 0:
        raise QueryError("left and right take a number of characters that is not negative")
    if isinstance(node, exp.Left):
        return replace(value, values=_mapped(value, lambda word: word[:count]))
    return replace(value, values=_mapped(value, lambda word: word[len(word) - min(count, len(word)) :]))


def _joined(evaluator: Evaluator, one: Texts, other: Texts) -> Texts:
    scope = evaluator.scope
    clique = scope.union(one.clique, other.clique)
    scope.check(clique, MAX_TEXTS)
    a, b = one.over(scope, clique), other.over(scope, clique)
    values = np.empty(a.values.shape, object)
    flat = values.reshape(-1)
    for i, (left, right) in enumerate(zip(a.values.ravel().tolist(), b.values.ravel().tolist(), strict=True)):
        if len(left) + len(right) > MAX_TEXT:
            raise QueryError(f"a text may have {MAX_TEXT:,} characters")
        flat[i] = left + right
    null = a.null | b.null
    return Texts(clique, values, null, (a.unknown | b.unknown) & ~null)


def pipe(evaluator: Evaluator, node: Node) -> Value:
    """Two texts after each other, missing where either is."""
    only(node, "safe")
    return _joined(evaluator, evaluator.words(node.this), evaluator.words(node.expression))


def concat(evaluator: Evaluator, node: Node) -> Value:
    """concat passes over nulls, unlike ||."""
    only(node, "safe", "coalesce")
    parts = [evaluator.words(part) for part in node.expressions]
    filled = [replace(p, values=np.where(p.null, "", p.values), null=np.zeros((), bool)) for p in parts]
    return reduce(lambda a, b: _joined(evaluator, a, b), filled)


def found(test: Callable[[str, str], bool]) -> Any:
    """Whether a text holds another, in some place."""

    def handler(evaluator: Evaluator, node: Node) -> Value:
        only(node)
        value = evaluator.words(node.this)
        part = evaluator.constant(node.expression, "the text looked for")
        if not isinstance(part, str):
            raise QueryError("the text looked for stands in single quotes")
        held = _mapped(value, lambda word: test(word, part), np.bool_)
        known = ~(value.null | value.unknown)
        return Truths(value.clique, known & held, known & ~held)

    return handler
