"""A statement about the catalog, rewritten from Postgres' SQL into that of the desk.

The tree is walked once. Every expression gets its type in Postgres on the way, since casts depend on it (the
number of a table becomes its name in `oid::regclass::text`), and since the columns of the result must be described
in Postgres' types. Values of types such as `regclass` are held as numbers, and shown by name at the very end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from understudy.errors import StatementError
from understudy.server.pg.catalog.expressions import Expressions
from understudy.server.pg.catalog.kinds import REFERENCES, Kind
from understudy.server.pg.catalog.names import column_name
from understudy.server.pg.catalog.relations import CatalogRelations
from understudy.server.pg.catalog.scope import Shape, SourceScope
from understudy.server.pg.catalog.session_facts import SessionFacts
from understudy.server.pg.catalog.sources import Sources


@dataclass
class Rewritten:
    """A statement that the desk can run.

    tree      in the dialect of DuckDB
    shape     the columns of its result, in Postgres' types; an empty type is what DuckDB says
    settings  what the statement sets by `set_config`, which its connection has to remember
    """

    tree: exp.Expr
    shape: Shape
    settings: dict[str, str] = field(default_factory=dict)


def rewritten(
    tree: exp.Query,
    relations: CatalogRelations,
    session: SessionFacts,
    given: Mapping[tuple[str, str], Shape] | None = None,
) -> Rewritten:
    """The statement for the desk; a `StatementError` where it names what there is not.

    `given` are tables, by schema and name, that the statement is about instead of the catalog.
    """
    tree = tree.copy()
    for identifier in tree.find_all(exp.Identifier):
        if not identifier.args.get("quoted"):
            identifier.set("this", identifier.name.lower())
    walk = Walk(relations, session, given)
    try:
        shape = walk.query(tree, None)
    except RecursionError:
        raise StatementError(
            "the statement is nested too deep", reason="size", remedy="Write it more simply"
        ) from None
    return Rewritten(_shown(tree, shape, walk), [(name, _told(kind)) for name, kind in shape], walk.settings)


def _told(kind: Kind) -> Kind:
    return "text" if kind == "unknown" else kind


def _shown(tree: exp.Query, shape: Shape, walk: Walk) -> exp.Expr:
    """The statement with references shown by name."""
    if not any(kind.removeprefix("_") in REFERENCES for _, kind in shape):
        return tree
    columns = [exp.to_identifier(f"c{place}") for place in range(len(shape))]
    shown = [
        exp.alias_(walk.shown(exp.column(column.copy()), kind), name, quoted=True)
        for column, (name, kind) in zip(columns, shape, strict=True)
    ]
    alias = exp.TableAlias(this=exp.to_identifier("shown"), columns=columns)
    return exp.select(*shown).from_(exp.Subquery(this=tree, alias=alias))


class Walk(Sources, Expressions):
    """One statement on its way: queries here, what stands after FROM in `Sources`, the rest in `Expressions`."""

    def query(self, node: exp.Expr, outer: SourceScope | None) -> Shape:
        """Rewrite a SELECT, a set operation, VALUES or one of them in parentheses; returns its columns."""
        scope = SourceScope(outer)
        self._with(node, scope)
        if isinstance(node, exp.Subquery):
            shape = self.query(node.this, scope)
            self._tail(node, SourceScope(scope, sources={"": shape}))
            return shape
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, scope, "")
        if isinstance(node, exp.Values):
            return self.values(node, scope)
        if not isinstance(node, exp.Select):
            raise StatementError(
                "only SELECT is answered about the catalog", reason="not-select", remedy="Write a SELECT"
            )
        return self._select(node, scope)

    def _with(self, node: exp.Expr, scope: SourceScope) -> None:
        clause = node.args.get("with_")
        if clause is None:
            return
        for cte in clause.expressions:
            name = cte.alias.lower()
            columns = [column.name for column in cte.args["alias"].args.get("columns") or []]
            if clause.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
                inner = SourceScope(scope)
                self._with(cte.this, inner)
                shape = self._set_operation(cte.this, inner, name, columns)
            else:
                shape = self.query(cte.this, scope)
            scope.ctes[name] = _renamed(shape, columns)

    def _set_operation(
        self, node: exp.SetOperation, scope: SourceScope, own: str, columns: list[str] | None = None
    ) -> Shape:
        left = self.query(node.this, scope)
        if own:
            scope.ctes[own] = _renamed(left, columns or [])
        right = self.query(node.expression, scope)
        shape = [
            (name, kind if kind and kind != "unknown" else other)
            for (name, kind), (_, other) in zip(left, right or left, strict=False)
        ]
        self._tail(node, SourceScope(scope, sources={"": shape}))
        return shape

    def _select(self, node: exp.Select, scope: SourceScope) -> Shape:
        shared = self.sources(node, scope)
        shape: Shape = []
        items: list[exp.Expr] = []
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                shape.extend(_starred(inner, scope, shared))
                inner.set("db", None)
                items.append(item)
                continue
            name = column_name(item)
            new = self.expression(inner, scope)
            shape.append((name, self.kind(new)))
            plain = isinstance(new, exp.Column) and new.name == name
            items.append(
                new if plain and not isinstance(item, exp.Alias) else exp.alias_(new, name, quoted=True)
            )
        node.set("expressions", items or [exp.Literal.number(1)])
        for key in ("where", "having", "qualify", "group", "distinct"):
            if (part := node.args.get(key)) is not None:
                self.parts(part, scope)
        for window in node.args.get("windows") or []:
            self.parts(window, scope)
        self._tail(node, scope)
        for key in ("locks", "into"):
            if node.args.get(key):
                raise StatementError(
                    "nothing is written here", reason="not-select", remedy="Leave that clause out"
                )
        return shape

    def _tail(self, node: exp.Expr, scope: SourceScope) -> None:
        for key in ("order", "limit", "offset"):
            if (part := node.args.get(key)) is not None:
                self.parts(part, scope)


def _starred(node: exp.Expr, scope: SourceScope, shared: set[str]) -> Shape:
    """The columns that a star stands for; those that USING joins are there once."""
    if isinstance(node, exp.Column) and node.table:
        return list(scope.sources.get(node.table.lower(), []))
    found: Shape = []
    seen: set[str] = set()
    for shape in scope.sources.values():
        for name, kind in shape:
            if name in shared and name in seen:
                continue
            seen.add(name)
            found.append((name, kind))
    return found


def _renamed(shape: Shape, columns: list[str]) -> Shape:
    return [
        (columns[place] if place < len(columns) else name, kind) for place, (name, kind) in enumerate(shape)
    ]
