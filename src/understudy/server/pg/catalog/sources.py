"""What stands after FROM: relations of the catalog, sub-queries, functions that return rows, and joins of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from understudy.errors import StatementError
from understudy.server.pg.catalog.facts import facts
from understudy.server.pg.catalog.names import function_name
from understudy.server.pg.catalog.scope import Shape, SourceScope

if TYPE_CHECKING:
    from understudy.server.pg.catalog.kinds import Kind
    from understudy.server.pg.catalog.relations import CatalogRelations
    from understudy.server.pg.catalog.session_facts import SessionFacts

HOMES = {"pg_catalog": "pgc", "information_schema": "inf"}
"""The schemas of the desk that hold the two of Postgres."""

_OF_WHO_ASKS = {
    ("pg_catalog", "pg_roles"): "rolname",
    ("pg_catalog", "pg_user"): "usename",
    ("information_schema", "enabled_roles"): "role_name",
}
"""Relations in which whoever asks stands without a name, and the column that gets it."""

_SET_SHAPES: dict[str, Shape] = {
    "pg_get_keywords": [
        ("word", "text"), ("catcode", "char"), ("barelabel", "bool"), ("catdesc", "text"), ("baredesc", "text"),
    ],
    "aclexplode": [("grantor", "oid"), ("grantee", "oid"), ("privilege_type", "text"), ("is_grantable", "bool")],
    "pg_options_to_table": [("option_name", "text"), ("option_value", "text")],
}  # fmt: skip


_ROW_SETS = {
    "aclexplode": "SELECT grantor, grantee, privilege_type, is_grantable FROM pgc.us_class_acl WHERE false",
    "pg_available_extension_versions": "SELECT '' AS name, '' AS version WHERE false",
    "pg_available_extensions": "SELECT '' AS name, '' AS default_version, '' AS comment WHERE false",
    "pg_get_keywords": "SELECT * FROM pgc.us_keywords",
    "pg_get_publication_tables": "SELECT 0::UINTEGER AS relid, '' AS attrs, '' AS qual WHERE false",
    "pg_options_to_table": "SELECT '' AS option_name, '' AS option_value WHERE false",
    "pg_partition_tree": "SELECT 0::UINTEGER AS relid, 0::UINTEGER AS parentrelid, true AS isleaf WHERE false",
    "pg_show_all_settings": "SELECT * FROM pgc.pg_settings",
    "pg_stat_get_activity": "SELECT 0::UINTEGER AS datid, 0 AS pid, 0::UINTEGER AS usesysid WHERE false",
}
"""Functions that return rows, and what they select; most have nothing to tell about a served table."""


def home(schema: str, name: str) -> str | None:
    """The schema of Postgres that has a relation of this name; None where it is none of the catalog's."""
    known = facts().relations
    if schema in ("", "pg_catalog") and name in known["pg_catalog"]:
        return "pg_catalog"
    if schema == "information_schema" and name in known["information_schema"]:
        return "information_schema"
    return None


class Sources:
    """The part of a walk that rewrites FROM."""

    relations: CatalogRelations
    session: SessionFacts
    given: Mapping[tuple[str, str], Shape] | None

    if TYPE_CHECKING:

        def query(self, node: exp.Expr, outer: SourceScope | None) -> Shape: ...
        def expression(self, node: exp.Expr, scope: SourceScope) -> exp.Expr: ...
        def kind(self, node: exp.Expr) -> Kind: ...
        def element_of(self, node: exp.Expr) -> Kind: ...

    def sources(self, node: exp.Select, scope: SourceScope) -> set[str]:
        """Rewrite FROM and the joins of a SELECT; returns the columns that joins share by USING."""
        shared: set[str] = set()
        if (clause := node.args.get("from_")) is not None:
            clause.set("this", self._source(clause.this, scope, shared))
        self._joins(node, scope, shared)
        for lateral in node.args.get("laterals") or []:
            self._lateral(lateral, scope)
        return shared

    def _joins(self, node: exp.Expr, scope: SourceScope, shared: set[str]) -> None:
        for join in node.args.get("joins") or []:
            join.set("this", self._source(join.this, scope, shared))
            if join.args.get("on") is not None:
                join.set("on", self.expression(join.args["on"], scope))
            shared |= {column.name for column in join.args.get("using") or []}
            if (join.args.get("method") or "").upper() == "NATURAL":
                shared |= {name for shape in scope.sources.values() for name, _ in shape}

    def values(self, node: exp.Values, scope: SourceScope) -> Shape:
        """Rewrite VALUES; returns its columns."""
        kinds: list[Kind] = []
        for row in node.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            made = [self.expression(cell, scope) for cell in cells]
            row.set("expressions", made)
            found = [self.kind(cell) for cell in made]
            kinds = [
                old if old and old != "unknown" else new
                for old, new in zip(kinds or found, found, strict=False)
            ]
        return [(f"column{place}", kind) for place, kind in enumerate(kinds, 1)]

    def _source(self, node: exp.Expr, scope: SourceScope, shared: set[str]) -> exp.Expr:
        if isinstance(node, exp.Subquery) and isinstance(node.unnest(), exp.Table):  # joins in parentheses
            node.set("this", self._source(node.this, scope, shared))
            made: exp.Expr = node
        else:
            joins = node.args.pop("joins", None)
            made = self._single(node, scope)
            if joins:
                made.set("joins", joins)
        self._joins(made, scope, shared)
        return made

    def _single(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        if isinstance(node, exp.Subquery):
            shape = self.query(node.this, scope)
            return self._added(node, shape, scope)
        if isinstance(node, exp.Values):
            return self._added(node, self.values(node, scope), scope)
        if isinstance(node, exp.Lateral):
            return self._lateral(node, scope)
        if isinstance(node, exp.Unnest):
            place = node.args.get("offset")
            alias = node.args.get("alias")
            if isinstance(place, exp.Identifier) and alias is not None:  # the name of the places
                alias.append("columns", place)
            return self._unnested(node, node.expressions, scope, ordinal=bool(place))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            function = node.this.expression if isinstance(node.this, exp.Dot) else node.this
            ordinal = bool(node.args.get("ordinality"))
            return self._function(node, function, scope, ordinal=ordinal)
        if isinstance(node, exp.Table):
            return self._relation(node, scope)
        raise StatementError("a source after FROM cannot be read", reason="syntax", remedy="Name a relation")

    # ---- relations

    def _relation(self, node: exp.Table, scope: SourceScope) -> exp.Expr:
        schema, name = node.db.lower(), node.name
        if node.catalog and node.catalog.lower() != self.session.database.lower():
            raise StatementError(
                f"there is no database {node.catalog[:60]!r} here",
                reason="undefined-table",
                remedy="Leave it out",
            )
        shape = scope.cte(name.lower()) if not schema else None
        if shape is not None:
            return self._added(node, shape, scope)
        if self.given is not None:
            return self._given(node, schema, name, scope)
        found = home(schema, name)
        if found is None:
            raise undefined(f"{schema}.{name}" if schema else name)
        shape = [(column, kind) for column, kind in facts().relations[found][name]]
        alias = node.alias or name
        scope.oids[alias] = self.relations.relations.get((found, name), 0)
        if (found, name) in _OF_WHO_ASKS or (found, name) == ("pg_catalog", "pg_settings"):
            made = exp.Subquery(this=self._of_who_asks(found, name), alias=node.args.get("alias"))
            self._named(made, alias)
            return self._added(made, shape, scope)
        node.set("db", exp.to_identifier(HOMES[found], quoted=True))
        node.set("catalog", None)
        self._named(node, alias)
        return self._added(node, shape, scope)

    def _given(self, node: exp.Table, schema: str, name: str, scope: SourceScope) -> exp.Expr:
        """One of the tables that stand in the place of the catalog's."""
        shape = (self.given or {}).get((schema, name))
        if shape is None:
            raise undefined(f"{schema}.{name}" if schema else name)
        node.set("catalog", None)
        self._named(node, node.alias or name)
        return self._added(node, shape, scope)

    def _of_who_asks(self, schema: str, name: str) -> exp.Query:
        """A relation with the name of whoever asks, or with the settings of the connection."""
        relation = exp.to_table(f"{HOMES[schema]}.{name}")
        if name == "pg_settings":
            column, case = "setting", exp.Case(this=exp.func("lower", exp.column("name")))
            for key, value in self.session.changed().items():
                case = case.when(exp.Literal.string(key), exp.Literal.string(value))
            shown: exp.Expr = case.else_(exp.column("setting"))
        else:
            column = _OF_WHO_ASKS[schema, name]
            shown = exp.func("coalesce", exp.column(column), exp.Literal.string(self.session.user))
        star = exp.Star(replace=[exp.alias_(shown, column)])
        return exp.select(star).from_(relation)

    # ---- functions

    def _function(self, node: exp.Expr, function: exp.Expr, scope: SourceScope, *, ordinal: bool) -> exp.Expr:
        name = function_name(function)
        if name == "unnest":
            arguments = function.expressions or [function.this]
            return self._unnested(node, arguments, scope, ordinal=ordinal)
        if name in _ROW_SETS:
            inner = sqlglot.parse_one(_ROW_SETS[name], read="duckdb")
            shape = _SET_SHAPES.get(name) or [(item.alias_or_name, "") for item in inner.expressions]
            made = exp.Subquery(this=inner, alias=node.args.get("alias"))
            self._named(made, node.alias or name)
            return self._added(made, shape, scope)
        if name == "_pg_expandarray":
            value = self.expression(function.expressions[0], scope)
            shape = [("x", self.element_of(value)), ("n", "int4")]
            return self._numbered(node, value, shape, scope)
        if name == "generate_series":
            return self._series_source(node, function, scope)
        alias = node.alias or name
        value = self.expression(function, scope)
        inner = exp.select(exp.alias_(value, alias, quoted=True))
        made = exp.Subquery(this=inner, alias=node.args.get("alias"))
        self._named(made, alias)
        return self._added(made, [(alias, self.kind(value))], scope)

    def _series_source(self, node: exp.Expr, function: exp.Expr, scope: SourceScope) -> exp.Expr:
        bounds = [self.expression(part, scope) for part in _arguments(function)]
        kind = "int8" if any(self.kind(bound) == "int8" for bound in bounds) else "int4"
        alias = node.alias or "generate_series"
        series = exp.Anonymous(
            this="unnest", expressions=[exp.Anonymous(this="generate_series", expressions=bounds)]
        )
        made = exp.Subquery(
            this=exp.select(exp.alias_(series, alias, quoted=True)), alias=node.args.get("alias")
        )
        self._named(made, alias)
        return self._added(made, [(alias, kind)], scope)

    def _unnested(
        self, node: exp.Expr, arguments: list[exp.Expr], scope: SourceScope, *, ordinal: bool
    ) -> exp.Expr:
        values = [self.expression(argument, scope) for argument in arguments]
        alias = node.alias or "unnest"
        if ordinal:
            shape: Shape = [(alias, self.element_of(values[0])), ("ordinality", "int8")]
            return self._numbered(node, values[0], shape, scope)
        items = [exp.alias_(_unnest(value), alias, quoted=True) for value in values]
        made = exp.Subquery(this=exp.select(*items), alias=node.args.get("alias"))
        self._named(made, alias)
        return self._added(made, [(alias, self.element_of(value)) for value in values], scope)

    def _numbered(self, node: exp.Expr, value: exp.Expr, shape: Shape, scope: SourceScope) -> exp.Expr:
        """The elements of an array with their places."""
        places = exp.Anonymous(this="generate_subscripts", expressions=[value.copy(), exp.Literal.number(1)])
        names = [name for name, _ in shape]
        inner = exp.select(
            exp.alias_(_unnest(value), names[0], quoted=True), exp.alias_(places, names[1], quoted=True)
        )
        made = exp.Subquery(this=inner, alias=node.args.get("alias"))
        self._named(made, node.alias or names[0])
        return self._added(made, shape, scope)

    def _lateral(self, node: exp.Lateral, scope: SourceScope) -> exp.Expr:
        inner = node.this
        if isinstance(inner, exp.Subquery | exp.Query):
            shape = self.query(inner, scope)
            return self._added(node, shape, scope)
        if isinstance(inner, exp.Unnest):
            held = inner.expressions
            return self._unnested(node, held, scope, ordinal=bool(node.args.get("ordinality")))
        function = inner.expression if isinstance(inner, exp.Dot) else inner
        return self._function(node, function, scope, ordinal=bool(node.args.get("ordinality")))

    # ---- names

    def _named(self, node: exp.Expr, alias: str) -> None:
        if node.args.get("alias") is None:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))

    def _added(self, node: exp.Expr, shape: Shape, scope: SourceScope) -> exp.Expr:
        """Put a source into scope under its alias, with the columns that the alias renames."""
        alias = node.args.get("alias")
        columns = [column.name for column in (alias.args.get("columns") or [])] if alias else []
        named = [
            (columns[place] if place < len(columns) else name, kind)
            for place, (name, kind) in enumerate(shape)
        ]
        name = (node.alias_or_name or f"#{len(scope.sources)}").lower()
        scope.sources[name] = named
        return node


def undefined(name: str) -> StatementError:
    """The error for a relation that there is not."""
    return StatementError(
        f'relation "{name[:120]}" does not exist', reason="undefined-table", remedy="\\d lists the relations"
    )


def _unnest(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="unnest", expressions=[value])


def _arguments(function: exp.Expr) -> list[exp.Expr]:
    if isinstance(function, exp.Anonymous):
        return list(function.expressions)
    return [function.args[key] for key in ("start", "end", "step") if function.args.get(key) is not None]
