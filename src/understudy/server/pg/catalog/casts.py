"""Casts of Postgres in the SQL of the desk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from understudy.desk.postgres_type import TYPES
from understudy.errors import StatementError
from understudy.server.pg.catalog import kinds
from understudy.server.pg.catalog.kinds import REFERENCES, Kind
from understudy.server.pg.catalog.names import cast_name
from understudy.server.pg.catalog.sources import undefined

if TYPE_CHECKING:
    from understudy.server.pg.catalog.expressions import Expressions

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


def casted(walk: Expressions, value: exp.Expr, to: exp.Expr) -> exp.Expr:
    """A value as another type; a `StatementError` where there is no such type, or no such object."""
    target, kind = cast_name(to), walk.kind(value)
    if target not in TYPES and target not in REFERENCES:
        raise StatementError(
            f'type "{target[:60]}" does not exist', reason="undefined-type", remedy="pg_type lists the types"
        )
    literal = value.name if isinstance(value, exp.Literal) and value.is_string else None
    if target in REFERENCES:
        return walk.typed(_reference(walk, value, literal, target), target)
    if target == "oid":
        made = exp.Literal.number(literal) if literal and literal.isdigit() else value
        if kind not in ("oid", *REFERENCES):
            made = exp.cast(made, "UINTEGER", dialect="duckdb")
        return walk.typed(made, "oid")
    if kinds.is_array(target):
        return _as_array(walk, value, literal, target)
    if kinds.is_text(target):
        return walk.typed(_as_text(walk, value, to), target)
    if target in ("json", "jsonb", "void", "record", "unknown"):
        return walk.typed(value, target)
    if target == "interval":
        return walk.typed(exp.cast(value, "INTERVAL", dialect="duckdb"), target)
    if target == "numeric" and not to.expressions:
        return walk.typed(exp.cast(value, "DOUBLE" if kind.startswith("float") else "DECIMAL(38,9)"), target)
    return walk.typed(exp.cast(value, kinds.duck(target), dialect="duckdb"), target)


def _reference(walk: Expressions, value: exp.Expr, literal: str | None, target: Kind) -> exp.Expr:
    if literal is not None:
        return exp.cast(exp.Literal.number(_found(walk, literal, target)), "UINTEGER", dialect="duckdb")
    if kinds.is_text(walk.kind(value)):
        arguments = [value, walk.visible()] if target == "regclass" else [value]
        return exp.Anonymous(this=f"us_to_{target}", expressions=arguments)
    return value


def _found(walk: Expressions, text: str, target: Kind) -> int:
    """The number of the object that a text names."""
    if text.isdigit():
        return int(text)
    if text == "-":
        return 0
    relations, parts = walk.relations, _parts(text)
    name = parts[-1]
    if target == "regclass":
        schemas = [parts[-2]] if len(parts) > 1 else walk.session.visible
        for schema in schemas:
            if (schema, name) in relations.relations:
                return relations.relations[schema, name]
        raise undefined(text)
    if target == "regtype":
        whole = text.strip().lower().removeprefix("pg_catalog.")
        oid = relations.types.get(whole, relations.types.get(name))
        if oid is None:
            base = cast_name(exp.DataType.build(whole, dialect="postgres", udt=True))
            oid = relations.types.get(base)
    else:
        known = {
            "regproc": relations.functions,
            "regprocedure": relations.functions,
            "regnamespace": relations.namespaces,
            "regrole": relations.roles,
        }.get(target, {})
        oid = known.get(name.split("(")[0])
        if target == "regproc" and name in relations.overloaded:
            raise StatementError(
                f'more than one function named "{name[:60]}"',
                reason="ambiguous",
                remedy="pg_proc lists them with their arguments",
            )
    if oid is None:
        raise StatementError(
            f'{target.removeprefix("reg")} "{text[:60]}" does not exist',
            reason="undefined-type" if target == "regtype" else "undefined-function",
            remedy="The catalog lists what there is",
        )
    return oid


def _parts(text: str) -> list[str]:
    """The parts of a qualified name, without their quotes; what is not quoted is in small letters."""
    found = re.findall(r'"((?:[^"]|"")*)"|([^."]+)', text)
    return [quoted.replace('""', '"') if quoted else word.strip().lower() for quoted, word in found] or [text]


def _as_text(walk: Expressions, value: exp.Expr, to: exp.Expr) -> exp.Expr:
    kind = walk.kind(value)
    if kind.removeprefix("_") in REFERENCES:
        value = walk.shown(value, kind)
        kind = "_text" if kind.startswith("_") else "text"
    if kinds.is_array(kind):
        elements = exp.cast(value, "VARCHAR[]", dialect="duckdb")
        if kind.endswith("vector"):
            return exp.Anonymous(this="array_to_string", expressions=[elements, exp.Literal.string(" ")])
        return exp.Anonymous(this="us_array_out", expressions=[elements])
    made = (
        value if kinds.is_text(kind) and kind != "unknown" else exp.cast(value, "VARCHAR", dialect="duckdb")
    )
    length = to.expressions[0].name if isinstance(to, exp.DataType) and to.expressions else ""
    if not length.isdigit():
        return made
    cut = exp.Anonymous(this="left", expressions=[made, exp.Literal.number(length)])
    if cast_name(to) != "bpchar":
        return cut
    return exp.Anonymous(this="rpad", expressions=[cut, exp.Literal.number(length), exp.Literal.string(" ")])


def _as_array(walk: Expressions, value: exp.Expr, literal: str | None, target: Kind) -> exp.Expr:
    kind = walk.kind(value)
    if literal is not None:
        return walk.typed(array_literal(walk, literal, kinds.element(target)), target)
    if kind.removeprefix("_") in REFERENCES and kinds.element(target) not in REFERENCES:
        return walk.typed(walk.shown(value, kind), target)
    if kind == target or (kind, target) in (("int2vector", "_int2"), ("oidvector", "_oid")):
        return walk.typed(value, target)
    return walk.typed(exp.cast(value, kinds.duck(target), dialect="duckdb"), target)


def array_literal(walk: Expressions, text: str, element: Kind) -> exp.Expr:
    """An array that is written as text, such as '{r,v}'; its elements are of a type."""
    elements: list[exp.Expr] = []
    for quoted, plain in _ELEMENT.findall(text.strip().removeprefix("{").removesuffix("}")):
        part = plain.strip() if plain else re.sub(r"\\(.)", r"\1", quoted)
        if plain and part.lower() == "null":
            elements.append(exp.null())
        elif element in REFERENCES:
            elements.append(exp.Literal.number(_found(walk, part, element)))
        else:
            elements.append(exp.Literal.string(part))
    made = exp.cast(exp.Array(expressions=elements), f"{kinds.duck(element)}[]", dialect="duckdb")
    return walk.typed(made, kinds.array(element))
