"""A statement's canonical key: equal for two statements that ask the same, apart from how they were written."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from sqlglot import exp

from understudy.query.marginal import Marginal
from understudy.sql.evaluate import Node, chain
from understudy.sql.program import SqlProgram


def canonical_key(program: SqlProgram, marginals: list[Marginal]) -> str:
    """A hash of what a program makes of its marginals: groups, columns, conditions, order and limits."""
    statement = program.statement
    meaning = [
        [marginal.key for marginal in marginals],
        program.grouping.clique,
        sha256(program.grouping.group_of.tobytes()).hexdigest(),
        sha256(program.listed.tobytes()).hexdigest(),
        [
            names if names is not None else _canonical(program, item.node)
            for item, names in zip(statement.items, program.names, strict=True)
        ],
        None if statement.having is None else _canonical(program, statement.having),
        [(_canonical(program, o.node), o.descending, o.nulls_first) for o in statement.order],
        statement.limit,
        statement.offset,
    ]
    return sha256(repr(meaning).encode()).hexdigest()


_SORTED = (exp.Add, exp.Mul, exp.And, exp.Or, exp.EQ, exp.NEQ)


def _canonical(program: SqlProgram, node: Node) -> str:
    """An expression over released numbers, apart from how it was written."""
    while isinstance(node, exp.Paren) and id(node) not in program.fixed:
        node = node.this
    if id(node) in program.fixed:
        value = program.fixed[id(node)]
        arrays = [np.asarray(part) for part in vars(value).values() if not isinstance(part, str | tuple)]
        contents = [(a.tolist() if a.dtype == object else a.tobytes()) for a in arrays]
        return sha256(repr([value.clique, contents]).encode()).hexdigest()
    if id(node) in program.aggregates:
        return repr(program.aggregates[id(node)].key)
    if isinstance(node, exp.And | exp.Or):
        inner = [_canonical(program, link) for link in chain(node)]
    else:
        inner = [_canonical(program, part) for part in node.iter_expressions()]
    if isinstance(node, _SORTED):
        inner.sort()
    return f"{type(node).__name__}({', '.join(inner)})"
