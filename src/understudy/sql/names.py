"""Names of a SELECT list and what they stand for, as trees that can be moved into another SELECT."""

from __future__ import annotations

from sqlglot import exp

from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql.evaluate import Node
from understudy.sql.read import name_of

MAX_COPIED = 20_000
"""Nodes of all trees that are copied while sub-queries are merged: names may repeat, and trees grow with them."""


class Copier:
    """Copies trees, and refuses to when a statement that names them often would grow too large."""

    def __init__(self) -> None:
        self._grown = 0

    def copy(self, node: Node) -> Node:
        """A copy of a tree; a `QueryError` where all copies together have too many nodes."""
        self._grown += sum(1 for _ in node.walk())
        if self._grown > MAX_COPIED:
            raise QueryError("names of long expressions are used too often", remedy="ask in two statements")
        return node.copy()


def columns_of(select: exp.Select, copier: Copier) -> tuple[dict[str, Node], bool]:
    """What each column of a SELECT over a table stands for, by its name in lower case, and whether it has a ``*``.

    Their own columns are qualified by the table, so that no name of a SELECT list around them is taken for one.
    """
    table = select.args["from_"].this
    qualifier = table.alias or table.name
    columns: dict[str, Node] = {}
    has_star = False
    for item in select.expressions:
        if item.is_star and not item.find(exp.AggFunc):
            has_star = True
            continue
        node = item.this if isinstance(item, exp.Alias) else item
        copy = copier.copy(node)
        for column in copy.find_all(exp.Column):
            column.set("table", exp.to_identifier(qualifier, quoted=True))
            column.set("db", None)
            column.set("catalog", None)
        columns.setdefault((item.alias if isinstance(item, exp.Alias) else name_of(node)).lower(), copy)
    return columns, has_star


def resolved(select: exp.Select, domain: Domain, copier: Copier) -> exp.Select:
    """A copy whose GROUP BY, HAVING and ORDER BY speak of the table's columns, not of the SELECT list."""
    copy = copier.copy(select)
    assert isinstance(copy, exp.Select)
    columns, _ = columns_of(copy, copier)
    aliases = {item.alias.lower() for item in copy.expressions if isinstance(item, exp.Alias)}
    for clause in ("group", "having", "qualify", "order"):
        part = copy.args.get(clause)
        if part is None:
            continue
        for term in list(part.expressions) if clause in ("group", "order") else []:
            _at_its_place(term.this if isinstance(term, exp.Ordered) else term, copy, clause, copier)
        for column in list(part.find_all(exp.Column)):
            lower = column.name.lower()
            if column.table or lower not in aliases or (clause != "order" and column.name in domain):
                continue
            column.replace(closed(copier.copy(columns[lower])))
    return copy


def _at_its_place(term: Node, select: exp.Select, clause: str, copier: Copier) -> None:
    """Replace a position, as in ORDER BY 1, by the column that stands there."""
    if not isinstance(term, exp.Literal) or term.args.get("is_string") or not str(term.this).isdigit():
        return
    place, count = int(str(term.this)[:9]), len(select.expressions)
    if not 1 <= place <= count or select.expressions[place - 1].is_star:
        raise QueryError(f"{clause.upper()} BY {term.this[:20]}", remedy=f"there are columns 1 to {count}")
    item = select.expressions[place - 1]
    term.replace(copier.copy(item.this if isinstance(item, exp.Alias) else item))


def closed(node: Node) -> Node:
    """An expression that may stand inside another one: with parentheses around it where it needs some."""
    simple = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren)
    return node if simple and not isinstance(node, exp.Connector) else exp.Paren(this=node)


def as_item(item: Node) -> Node:
    """An item of a SELECT list under the name that it has."""
    if isinstance(item, exp.Alias) or (item.is_star and not item.find(exp.AggFunc)):
        return item
    return exp.Alias(this=item, alias=exp.to_identifier(name_of(item), quoted=True))
