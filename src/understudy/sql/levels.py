"""Quantiles at a list of levels: quantile_cont(x, [0.25, 0.5]) in a SELECT list is a column for each level."""

from __future__ import annotations

from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql.evaluate import Node, shown

_LEVEL_OF: dict[type[Node], str] = {
    exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "quantile",
}
"""Where the level of a quantile stands; before WITHIN GROUP it is what the quantile is `this` of."""


def with_single_levels(select: exp.Select) -> exp.Select:
    """The statement with a column for each level of a list; the statement itself where there is none.

    A column that was named q is called q_0.25 then. Raises a `QueryError` for a list without levels.
    """
    if not any(_list_of(item) for item in select.expressions):
        return select
    found = select.copy()
    found.set("expressions", [one for item in found.expressions for one in _apart(item)])
    return found


def _list_of(item: Node) -> exp.Array | None:
    """The list of levels of a column of the SELECT list, if it is a quantile that has one."""
    node = item.this if isinstance(item, exp.Alias) else item
    node = node.this if isinstance(node, exp.Filter) else node
    if isinstance(node, exp.WithinGroup):
        level = node.this.args.get("this") if type(node.this) in _LEVEL_OF else None
    else:
        level = node.args.get(_LEVEL_OF[type(node)]) if type(node) in _LEVEL_OF else None
    return level if isinstance(level, exp.Array) else None


def _apart(item: Node) -> list[Node]:
    """The columns that a column is: itself, or one for each of its levels."""
    listed = _list_of(item)
    if listed is None:
        return [item]
    if not listed.expressions:
        raise QueryError(f"{shown(item)}: the list has no levels", remedy="write [0.25, 0.5, 0.75]")
    found: list[Node] = []
    for level in listed.expressions:
        one = item.copy()
        mine = _list_of(one)
        assert mine is not None
        mine.replace(level.copy())
        if isinstance(one, exp.Alias):
            one.set("alias", exp.to_identifier(f"{item.alias}_{level.sql(dialect='duckdb')}", quoted=True))
        found.append(one)
    return found
