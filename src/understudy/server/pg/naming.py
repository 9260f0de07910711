"""The names that Postgres gives to columns of a SELECT that have none: `count`, `avg`, `?column?`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_FUNCTIONS = {
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.StddevSamp: "stddev_samp",
    exp.Variance: "variance",
    exp.TimestampTrunc: "date_trunc",
    exp.DateTrunc: "date_trunc",
}


def given_names(tree: exp.Expr, names: Sequence[str]) -> list[str]:
    """For each column of a statement its name: as the statement says, or else as Postgres would call it.

    `names` are the columns as the library calls them; they stay where the statement lists others, such as `*`.
    """
    select = tree.find(exp.Select) if not isinstance(tree, exp.Select) else tree
    if select is None or len(select.expressions) != len(names):
        return list(names)
    return [
        name if isinstance(item, exp.Alias | exp.Star) else _name(item) or name
        for item, name in zip(select.expressions, names, strict=True)
    ]


def _name(item: exp.Expr) -> str:
    """The name of an expression without an alias; empty for a column, whose own name is its name."""
    if isinstance(item, exp.Column):
        return ""
    if isinstance(item, exp.Paren):
        return _name(item.this) or item.this.name
    if isinstance(item, exp.Cast):
        return (
            _name(item.this) or item.this.name if isinstance(item.this, exp.Column | exp.Func) else "?column?"
        )
    if isinstance(item, exp.Filter | exp.WithinGroup | exp.Window):
        return _name(item.this)
    if isinstance(item, exp.Case):
        return "case"
    if isinstance(item, exp.Extract):
        return "extract"
    if isinstance(item, exp.Anonymous):
        return str(item.name).lower()
    if isinstance(item, exp.Func) and not isinstance(item, exp.Connector):
        return _FUNCTIONS.get(type(item)) or item.sql_name().lower()
    return "?column?"
