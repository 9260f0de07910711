"""The groups of GROUP BY: attributes, and expressions that are the same for all values of each declared bin.

An expression that varies inside a bin makes no groups. The refusal says what would, and where a finer cut of
the bins, by periods that the question itself names, makes it constant, it holds that cut (`QueryError.cuts`).
"""

from __future__ import annotations

from sqlglot import exp

from understudy.domain.domain import Domain
from understudy.domain.edge import Ordered
from understudy.domain.instant import seconds_of
from understudy.domain.instants import Instants
from understudy.domain.refinement import refined
from understudy.errors import QueryError
from understudy.sql.attributes import attribute_of, grid_evaluator
from understudy.sql.dates import GRAINS, begins, closed_end, finest_grain
from understudy.sql.evaluate import Evaluator, Node, shown
from understudy.sql.grid import Numbers, Value, is_temporal
from understudy.sql.group import Grouping, grouping
from understudy.sql.read import Statement

MOST_PERIODS = 4096
"""Periods into which a question may cut the bins of a timestamp in order to group by them."""


def groups_of(statement: Statement, domain: Domain, grid: Evaluator, *, disjoint: bool = False) -> Grouping:
    """The groups that a statement asks for; QueryError where an expression of it makes none.

    `disjoint` is that of `group.grouping`.
    """
    attributes: list[str] = []
    expressions: list[tuple[str, Value]] = []
    for node in statement.group:
        of = node.unnest()
        if isinstance(of, exp.Column):
            attributes.append(attribute_of(domain, of).name)
        else:
            value = grid.value(of)
            if isinstance(value, Numbers) and bool((value.known & ~value.exact).any()):
                raise _crosses(domain, grid, of)
            expressions.append((shown(of), value))
    return grouping(domain, grid.scope, attributes, expressions, disjoint=disjoint)


def _finer(domain: Domain, node: Node) -> tuple[str, tuple[Ordered, ...]] | None:
    """The begins of the longest periods that make groups of a function of one timestamp; None where nothing does.

    The periods are public: the question names them. More than `MOST_PERIODS` of them are not made.
    """
    names = {attribute_of(domain, column).name for column in node.find_all(exp.Column)}
    attribute = domain[names.pop()] if len(names) == 1 else None
    if not isinstance(attribute, Instants):
        return None
    for grain in reversed(GRAINS):
        edges = begins(attribute.starts[0], attribute.upper, grain, MOST_PERIODS)
        if edges is None:
            return None
        edges = tuple(edge for edge in edges if seconds_of(edge) % attribute.step == 0)
        value = grid_evaluator(refined(domain, attribute.name, edges)).value(node)
        if isinstance(value, Numbers) and bool((value.exact | ~value.known).all()):
            return attribute.name, edges
    return None


def _crosses(domain: Domain, grid: Evaluator, node: Node) -> QueryError:
    """Why an expression makes no groups: it is not the same for all values of a bin; and what would make some.

    Where only the upper edge that the last bin of a date holds is in another period, as 1 January is in another
    year, that day can be cut off.
    """
    column = next(column for column in node.find_all(exp.Column))
    name = shown(column)
    tries = [f"bin_start({name})"]
    value = grid.value(column)
    why, cuts = "", None
    if isinstance(value, Numbers) and is_temporal(value):
        if (grain := finest_grain(value)) is not None:
            tries.insert(0, f"date_trunc('{grain}', {name})")
        if (day := closed_end(value)) is not None:
            step = "a day" if value.kind == "date" else "a step"
            why = f" (the last bin of {column.name} holds its upper edge {day}; {step} earlier, it would not)"
            cuts = column.name, (day,)
    refusal = QueryError(
        f"{shown(node)} varies inside a bin of {column.name}, so it makes no groups{why}",
        remedy=f"group by {' or by '.join(tries)}, or by a CASE on its edges",
        suggestions=tries,
    )
    refusal.cuts = _finer(domain, node) or cuts
    return refusal
