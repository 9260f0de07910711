"""The public part of a statement: its groups and their names, and its expressions over released numbers.

A program is run on what is known of the cells (`sql.folding`). It says which groups are rows of the result, in
which order, and what stands in their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from understudy.errors import QueryError
from understudy.query.column import Column, ColumnType, type_of
from understudy.sql.aggregate import Count, Folded, Mean, Quantile, Sum
from understudy.sql.collect import Aggregate
from understudy.sql.estimate import Estimate, Key, distance, estimate
from understudy.sql.evaluate import Evaluator, Leaf, Node
from understudy.sql.folding import Folding, Noises, ReleasedCells
from understudy.sql.grid import Floats, Numbers, Scope, Value
from understudy.sql.group import AXIS, Grouping, Part, Tally
from understudy.sql.measured import MeasuredCount, MeasuredMean, MeasuredQuantile, MeasuredSum
from understudy.sql.read import Statement
from understudy.sql.scalar import FUNCTIONS
from understudy.sql.shares import SharedCount, SharedMean, SharedSum
from understudy.sql.sorting import Sorted, ranks, surely_sorted

_COUNTS = Count, SharedCount, MeasuredCount
_SUMS_AND_MEANS = Sum, SharedSum, MeasuredSum, Mean, SharedMean, MeasuredMean


@dataclass(frozen=True, eq=False)
class SqlProgram:
    """The groups of a statement, their names, and its expressions over released numbers."""

    statement: Statement
    grouping: Grouping
    aggregates: Mapping[int, Aggregate]
    fixed: Mapping[int, Value]
    names: tuple[list[Key] | None, ...]
    """For each column the names of the groups, or None where its values are released."""
    parts: Mapping[tuple[str, str], Sequence[tuple[int, Part]]]
    listed: NDArray[np.bool_]
    """The groups that WHERE leaves possible; the others are no rows of the result."""

    def rows(self, cells: ReleasedCells, alone: ReleasedCells) -> list[tuple[Key | Estimate, ...]]:
        """What `CompiledSql.evaluate` returns; `alone` are the cells less what comes from bins that are cut."""
        full = self._estimates(cells, discretised=True)
        bare = self._estimates(alone, discretised=False)
        chosen = self._chosen(full)
        columns = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            if names is not None:
                columns.append([names[i] for i in chosen])
                continue
            with_bins, without = self._column(item.node, full), self._column(item.node, bare)
            columns.append([estimate(with_bins, without, i) for i in chosen])
        return list(zip(*columns, strict=True))

    def reach(
        self, cells: ReleasedCells, expected_errors: Sequence[Floats]
    ) -> list[tuple[float | None, ...]]:
        """What `CompiledSql.reach` returns."""
        full = self._estimates(cells, discretised=True)
        wider = {"above": expected_errors, "below": expected_errors, "measured": False}
        expected = replace(cells, **wider, throughs=(), noises=())
        wide = self._estimates(expected, discretised=True)
        chosen = self._chosen(full)
        columns: list[list[float | None]] = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            ends = (called.name.lower() in ("low", "high") for called in item.node.find_all(exp.Anonymous))
            if names is not None or any(ends):  # an end of bounds says nothing of the population
                columns.append([None] * len(chosen))
                continue
            told, meant = self._column(item.node, full), self._column(item.node, wide, whole=False)
            columns.append([distance(told, meant, i) for i in chosen])
        return list(zip(*columns, strict=True))

    def _column(self, node: Node, leaf: Leaf, *, whole: bool = True) -> Numbers:
        count = self.grouping.count
        return _released(_evaluator(count, leaf, whole=whole).value(node), count)

    @cached_property
    def _folding(self) -> Folding:
        return Folding(self.grouping, self.aggregates, self.parts)

    def _estimates(self, cells: ReleasedCells, *, discretised: bool) -> Leaf:
        """What the parts of the statement's expressions are worth: sums of cells, and functions of the group.

        Functions of the group have the width of their bins where they are `discretised`.
        """
        folded: dict[tuple[str, str], Folded] = {}

        def fold(tally: Tally) -> Folded:
            if tally.key not in folded:
                folded[tally.key] = self._folding.folded(tally, cells)
            return folded[tally.key]

        known: dict[int, Value] = dict(self.fixed)
        if not discretised:
            known = {name: _representative(value) for name, value in known.items()}
        for name, aggregate in self.aggregates.items():
            known[name] = aggregate.estimate(fold, discretised=discretised)
        return lambda node: known.get(id(node))

    def error(self, errors: Sequence[Floats], noises: Noises) -> float:
        """What `CompiledSql.error` returns."""
        return self._folding.error(errors, noises, self.listed)

    @property
    def tells_people(self) -> bool:
        """Whether a released column is a number of people as it stands, or a quantile, which counts tell."""
        told = (*_COUNTS, Quantile, MeasuredQuantile)
        return any(isinstance(self.aggregates.get(id(_bare(node))), told) for node in self._released_nodes)

    @property
    def is_made_of_ratios(self) -> bool:
        """Whether every released column is a sum of counts, sums, averages, and these over numbers of rows, each
        times a constant.
        """
        return all(self._is_made_of_ratios(_bare(node)) for node in self._released_nodes)

    def _is_made_of_ratios(self, node: Node) -> bool:
        if id(node) in self.aggregates:
            return isinstance(self.aggregates[id(node)], (*_COUNTS, *_SUMS_AND_MEANS))
        match node:
            case exp.Literal():
                return True
            case exp.Paren() | exp.Neg():
                return self._is_made_of_ratios(node.this)
            case exp.Add() | exp.Sub():
                return self._is_made_of_ratios(node.left) and self._is_made_of_ratios(node.right)
            case exp.Mul():
                sides = [_bare(node.left), _bare(node.right)]
                return any(isinstance(side, exp.Literal) for side in sides) and all(
                    map(self._is_made_of_ratios, sides)
                )
            case exp.Div():
                below = _bare(node.right)
                by_rows = isinstance(self.aggregates.get(id(below)), _COUNTS)
                return (by_rows or isinstance(below, exp.Literal)) and self._is_made_of_ratios(node.left)
            case _:
                return False

    @property
    def _released_nodes(self) -> list[Node]:
        columns = zip(self.statement.items, self.names, strict=True)
        return [item.node for item, names in columns if names is None]

    @property
    def with_all_rows(self) -> SqlProgram:
        """The same for every group that WHERE leaves possible, in the order of the groups."""
        statement = replace(self.statement, having=None, order=(), limit=None, offset=0)
        return replace(self, statement=statement)

    # ---- which rows, in which order

    @property
    def sorts_released(self) -> bool:
        """Whether ORDER BY goes by released numbers."""
        return any(id(term.node) not in self.fixed for term in self.statement.order)

    def is_in_order(self, cells: ReleasedCells) -> bool:
        """What `CompiledSql.is_in_order` returns."""
        leaf = self._estimates(cells, discretised=True)
        listed, count = self._chosen(leaf, cut=False), self.grouping.count
        evaluator = _evaluator(count, leaf, released=True)
        terms = [Sorted.of(evaluator.value(term.node), term, count) for term in self.statement.order]
        start = self.statement.offset
        end = len(listed) if self.statement.limit is None else min(start + self.statement.limit, len(listed))
        return surely_sorted([term for term in terms if term is not None], listed, start, end)

    def _chosen(self, leaf: Leaf, *, cut: bool = True) -> list[int]:
        count = self.grouping.count
        evaluator = _evaluator(count, leaf, released=True)
        order = np.arange(count)
        keys: list[NDArray[np.int64]] = []
        for term in reversed(self.statement.order):
            keys.extend(ranks(evaluator.value(term.node), term, count))
        if keys:
            order = np.lexsort(keys)
        if self.statement.having is not None:
            kept = np.broadcast_to(evaluator.condition(self.statement.having).true, (count,))
            order = order[kept[order]]
        order = order[self.listed[order]]
        if not cut:
            return order.tolist()
        start = self.statement.offset
        end = None if self.statement.limit is None else start + self.statement.limit
        return order[start:end].tolist()

    def dry_run(self, leaf: Leaf) -> tuple[Column, ...]:
        """Evaluate everything once with a given leaf, so that mistakes show before anything is measured.

        Returns the columns: what they will hold does not depend on what is measured.
        """
        columns: list[Column] = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            if names is None:
                kind = self._column(item.node, leaf).kind
                released: ColumnType = (
                    "date" if kind == "date" else "timestamp" if kind == "timestamp" else "float"
                )
                columns.append(Column(item.name, "value", released))
            else:
                kept = [name for name, is_listed in zip(names, self.listed, strict=True) if is_listed]
                columns.append(Column(item.name, "key", type_of(kept)))
        self._chosen(leaf)
        return tuple(columns)


def _evaluator(count: int, leaf: Leaf, *, released: bool = False, whole: bool = True) -> Evaluator:
    scope = Scope({AXIS: count}, strict=False, whole=whole)
    return Evaluator(scope, leaf, functions=FUNCTIONS, released=released)


def _released(value: Value, count: int) -> Numbers:
    if not isinstance(value, Numbers):
        raise QueryError(
            "a column of released values must be a number", remedy="conditions belong into HAVING"
        )
    whole = {
        part: np.broadcast_to(getattr(value, part), (count,))
        for part in ("point", "low", "high", "null", "unknown")
    }
    return replace(value, **whole)


def _representative(value: Value) -> Value:
    """A function of the group without the width of its bins."""
    return replace(value, low=value.point, high=value.point) if isinstance(value, Numbers) else value


def _bare(node: Node) -> Node:
    """An expression without the name and the parentheses around it."""
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node
