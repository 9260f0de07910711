"""Calls of functions in a statement about the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from understudy.errors import StatementError
from understudy.server.pg.catalog import kinds
from understudy.server.pg.catalog.functions import FORMS, VISIBLE
from understudy.server.pg.catalog.kinds import Kind
from understudy.server.pg.catalog.relations import CatalogRelations
from understudy.server.pg.catalog.scope import Shape, SourceScope
from understudy.server.pg.catalog.session_facts import SessionFacts

_RETURNED: dict[str, Kind] = {
    "count": "int8",
    "row_number": "int8",
    "rank": "int8",
    "dense_rank": "int8",
    "array_to_string": "text",
    "string_agg": "text",
    "bool_and": "bool",
    "bool_or": "bool",
    "version": "text",
    "format": "text",
    "concat": "text",
    "concat_ws": "text",
    "substring": "text",
    "replace": "text",
    "btrim": "text",
    "lower": "text",
    "upper": "text",
    "length": "int4",
    "now": "timestamptz",
    "generate_subscripts": "int4",
    "json_build_object": "json",
    "to_regclass": "regclass",
    "to_regtype": "regtype",
    "to_regnamespace": "regnamespace",
    "to_regrole": "regrole",
    "to_regproc": "regproc",
}
_OF_BOUNDS = ("array_lower", "array_upper", "generate_subscripts")
_OUT = {
    "regoperator": "regoper_out",
    "regproc": "regproc_out",
}


class Calls:
    """The part of a walk that rewrites calls of functions."""

    relations: CatalogRelations
    session: SessionFacts
    given: Mapping[tuple[str, str], Shape] | None
    settings: dict[str, str]

    if TYPE_CHECKING:

        def kind(self, node: exp.Expr) -> Kind: ...
        def typed(self, node: exp.Expr, kind: Kind) -> exp.Expr: ...
        def parts(self, node: exp.Expr, scope: SourceScope) -> None: ...
        def expression(self, node: exp.Expr, scope: SourceScope) -> exp.Expr: ...
        def as_text(self, node: exp.Expr) -> exp.Expr: ...

    def visible(self) -> exp.Expr:
        """The search path as a list."""
        return exp.Array(expressions=[exp.Literal.string(name) for name in self.session.visible])

    def shown(self, node: exp.Expr, kind: Kind) -> exp.Expr:
        """A value, or an array of them, as the names that Postgres shows for its numbers."""
        if kind.removeprefix("_") not in kinds.REFERENCES:
            return node
        if kind.startswith("_"):
            return self.typed(exp.Anonymous(this="us_regtypes_out", expressions=[node]), "_text")
        name = _OUT.get(kind, f"{kind}_out")
        arguments = [node, self.visible()] if kind == "regclass" else [node]
        return self.typed(exp.Anonymous(this=f"us_{name}", expressions=arguments), "text")

    def call(self, node: exp.Expr, name: str, scope: SourceScope) -> exp.Expr:
        """The call in the desk's SQL."""
        self.parts(node, scope)
        special = self._SPECIAL.get(name)
        if special is not None:
            return special(self, node)
        arguments = _arguments(node)
        kind = _RETURNED.get(name) or kinds.returned(name, [self.kind(argument) for argument in arguments])
        if self.given is not None:  # a database without the functions of the catalog
            return self.typed(node, kind)
        if name in VISIBLE:
            made = exp.Anonymous(this=f"us_{name}", expressions=[*arguments, self.visible()])
            return self.typed(made, "bool")
        if name in FORMS:
            return self.typed(self._macro(node, name, arguments), kind)
        return self.typed(node, kind)

    def _macro(self, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        if name == "to_regclass":
            arguments = [*arguments, self.visible()]
        if name in _OF_BOUNDS and arguments and self.kind(arguments[0]) in ("int2vector", "oidvector"):
            name = f"vector_{name}"  # which begins at 0
        if len(arguments) not in FORMS[name]:
            return node
        return exp.Anonymous(this=f"us_{name}", expressions=arguments)

    def _text(self, value: str, kind: Kind = "text") -> exp.Expr:
        return self.typed(exp.Literal.string(value), kind)

    def _user(self, node: exp.Expr) -> exp.Expr:
        return self._text(self.session.user, "name")

    def _database(self, node: exp.Expr) -> exp.Expr:
        return self._text(self.session.database, "name")

    def _version(self, node: exp.Expr) -> exp.Expr:
        return self._text(self.session.version)

    def _schema(self, node: exp.Expr) -> exp.Expr:
        schemas = self.session.schemas
        return self._text(schemas[0], "name") if schemas else self.typed(exp.null(), "name")

    def _schemas(self, node: exp.Expr) -> exp.Expr:
        argument = _arguments(node)[0] if _arguments(node) else exp.false()
        every = exp.Array(expressions=[exp.Literal.string(name) for name in self.session.visible])
        own = exp.Array(expressions=[exp.Literal.string(name) for name in self.session.schemas])
        return self.typed(exp.Case(ifs=[exp.If(this=argument, true=every)], default=own), "_name")

    def _setting(self, node: exp.Expr) -> exp.Expr:
        arguments = _arguments(node)
        if not arguments or not isinstance(arguments[0], exp.Literal):
            return self.typed(exp.Anonymous(this="us_setting_of", expressions=arguments[:1]), "text")
        value = self.session.setting(arguments[0].name)
        if value is not None:
            return self._text(value)
        if len(arguments) > 1 and isinstance(arguments[1], exp.Boolean) and arguments[1].this:
            return self.typed(exp.null(), "text")
        raise StatementError(
            f'unrecognized configuration parameter "{arguments[0].name[:60]}"',
            reason="value",
            remedy="pg_settings lists the settings",
        )

    def _set(self, node: exp.Expr) -> exp.Expr:
        arguments = _arguments(node)
        if len(arguments) == 3 and all(isinstance(one, exp.Literal) for one in arguments[:2]):
            self.settings[arguments[0].name.lower()] = arguments[1].name
            return self._text(arguments[1].name)
        raise StatementError(
            "set_config takes a name, a value and whether it is local",
            reason="value",
            remedy="Write them as text",
        )

    def _formatted(self, node: exp.Expr) -> exp.Expr:
        """format('%s.%I', …), where the pattern is written in the statement."""
        pattern, *values = _arguments(node)
        if not isinstance(pattern, exp.Literal):
            raise StatementError("format takes a pattern as text", reason="value", remedy="Write the pattern")
        parts: list[exp.Expr] = []
        place = 0
        for piece in re.split(r"(%[sIL%])", pattern.name):
            if piece == "%%":
                parts.append(exp.Literal.string("%"))
            elif piece in ("%s", "%I", "%L") and place < len(values):
                value = self.as_text(values[place])
                place += 1
                wrapped = {"%I": "us_quote_ident", "%L": "us_quote_nullable"}.get(piece)
                made = exp.Anonymous(this=wrapped, expressions=[value]) if wrapped else value
                parts.append(exp.func("coalesce", made, exp.Literal.string("")))
            elif piece:
                parts.append(exp.Literal.string(piece))
        made = exp.Anonymous(this="concat", expressions=parts or [exp.Literal.string("")])
        return self.typed(made, "text")

    def _unnest(self, node: exp.Expr) -> exp.Expr:
        argument = _arguments(node)[0]
        made = exp.Anonymous(this="unnest", expressions=[argument])
        return self.typed(made, kinds.element(self.kind(argument)))

    def _series(self, node: exp.Expr) -> exp.Expr:
        bounds = _arguments(node)
        kind = "int8" if any(self.kind(bound) == "int8" for bound in bounds) else "int4"
        series = exp.Anonymous(this="generate_series", expressions=bounds)
        return self.typed(exp.Anonymous(this="unnest", expressions=[series]), kind)

    def _joined(self, node: exp.Expr) -> exp.Expr:
        """array_to_string, of elements of any type."""
        array, *rest = _arguments(node)
        array = self.shown(array, self.kind(array))
        if self.kind(array) not in ("_text", "_name", "_varchar", "_char"):
            array = exp.cast(array, "VARCHAR[]", dialect="duckdb")
        joined = exp.Anonymous(this="array_to_string", expressions=[array, *rest[:1]])
        return self.typed(exp.func("coalesce", joined, _when_empty(array)), "text")

    def _described(self, node: exp.Expr) -> exp.Expr:
        """pg_typeof: the type that the statement itself tells."""
        kind = self.kind(_arguments(node)[0])
        oid = self.relations.types.get(kind or "text", 25)
        return self.typed(exp.cast(exp.Literal.number(oid), "UINTEGER", dialect="duckdb"), "regtype")

    def _every(self, node: exp.Expr) -> exp.Expr:
        return self.typed(exp.Anonymous(this="bool_and", expressions=_arguments(node)), "bool")

    def _truncated(self, node: exp.Expr) -> exp.Expr:
        """date_trunc, which makes a time of a day."""
        kinds_of = [self.kind(argument) for argument in _arguments(node)]
        kind = "timestamp" if "timestamp" in kinds_of else "timestamptz"
        return self.typed(exp.cast(node, kinds.duck(kind), dialect="duckdb"), kind)

    def _json(self, node: exp.Expr) -> exp.Expr:
        """json_build_object, whose keys and values alternate."""
        made = exp.Anonymous(this="json_object", expressions=_arguments(node))
        return self.typed(exp.cast(made, "VARCHAR", dialect="duckdb"), "json")

    _SPECIAL: ClassVar[dict[str, Callable[[Calls, exp.Expr], exp.Expr]]] = {
        "array_to_string": _joined,
        "current_catalog": _database,
        "current_database": _database,
        "current_role": _user,
        "current_schema": _schema,
        "current_schemas": _schemas,
        "current_setting": _setting,
        "current_user": _user,
        "date_trunc": _truncated,
        "every": _every,
        "format": _formatted,
        "generate_series": _series,
        "json_build_object": _json,
        "pg_typeof": _described,
        "session_user": _user,
        "set_config": _set,
        "unnest": _unnest,
        "user": _user,
        "version": _version,
    }


def _when_empty(array: exp.Expr) -> exp.Expr:
    """Postgres joins the elements of an empty array to an empty text, and those of none to none."""
    known = exp.Is(this=array.copy(), expression=exp.null())
    return exp.Case(ifs=[exp.If(this=exp.Not(this=known), true=exp.Literal.string(""))])


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call in their order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if isinstance(value, exp.Expr):
            found.append(value)
        elif isinstance(value, list):
            found.extend(part for part in value if isinstance(part, exp.Expr))
    return found
