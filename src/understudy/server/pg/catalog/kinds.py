"""Types of expressions: which type of Postgres a function returns, and how values of one become another's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from understudy.desk.postgres_type import TYPES, TYPES_BY_OID
from understudy.server.pg.catalog.facts import facts

Kind = str
"""The name of a type in `pg_type`; empty where it is not known."""

REFERENCES = frozenset(
    [
        "regclass",
        "regcollation",
        "regconfig",
        "regdictionary",
        "regnamespace",
        "regoper",
        "regoperator",
        "regproc",
        "regprocedure",
        "regrole",
        "regtype",
    ]
)
"""Types whose values are numbers of objects that Postgres shows by name. They are held as numbers."""

_TEXTS = frozenset(["bpchar", "char", "name", "text", "unknown", "varchar"])
_POLYMORPHIC = {"anyelement", "anycompatible", "anynonarray", "anyenum"}
_POLYMORPHIC_ARRAYS = {"anyarray", "anycompatiblearray"}
_SAME_AS_ARGUMENT = frozenset(
    [
        "coalesce",
        "greatest",
        "least",
        "max",
        "min",
        "nullif",
        "first_value",
        "last_value",
        "lag",
        "lead",
        "mode",
    ]
)


def is_text(kind: Kind) -> bool:
    """Whether values are text."""
    return kind in _TEXTS


def is_array(kind: Kind) -> bool:
    """Whether values are arrays."""
    return kind in TYPES and TYPES[kind].is_array


def element(kind: Kind) -> Kind:
    """The type of the elements of an array; empty where it is not known."""
    if kind == "int2vector":
        return "int2"
    if kind == "oidvector":
        return "oid"
    return kind[1:] if kind.startswith("_") else ""


def array(kind: Kind) -> Kind:
    """The type of arrays of a type; empty where it is not known."""
    if is_array(kind) or not kind:
        return kind
    name = "_text" if kind == "unknown" else f"_{kind}"
    return name if name in TYPES else ""


def duck(kind: Kind) -> str:
    """The type of DuckDB that holds values of a type inside the catalog; text where it has none."""
    if kind in REFERENCES:
        return "UINTEGER"
    if kind.startswith("_") and kind[1:] in REFERENCES:
        return "UINTEGER[]"
    return TYPES[kind].duck if kind in TYPES else "VARCHAR"


@cache
def _returns() -> dict[str, list[tuple[int, Kind]]]:
    """By the name of a function, how many arguments each of its forms takes, and what it returns."""
    held = facts()
    columns = [name for name, _ in held.relations["pg_catalog"]["pg_proc"]]
    rows = held.rows["pg_proc"]
    names, counts = rows[columns.index("proname")], rows[columns.index("pronargs")]
    results = rows[columns.index("prorettype")]
    pseudo = {
        2276: "any",
        2277: "anyarray",
        2283: "anyelement",
        5077: "anycompatible",
        5078: "anycompatiblearray",
    }
    found: dict[str, list[tuple[int, Kind]]] = {}
    for name, count, result in zip(names, counts, results, strict=True):
        kind = pseudo.get(result) or (TYPES_BY_OID[result].name if result in TYPES_BY_OID else "")
        found.setdefault(name, []).append((count, kind))
    return found


def returned(name: str, arguments: Sequence[Kind]) -> Kind:
    """The type that a function returns for arguments of these types; empty where it is not known."""
    if name in ("max", "min") and arguments and is_text(arguments[0]):
        return "text"
    if name in _SAME_AS_ARGUMENT:
        return next((kind for kind in arguments if kind and kind != "unknown"), "text")
    if name == "sum":
        return {"int2": "int8", "int4": "int8", "int8": "numeric"}.get(arguments[0] if arguments else "", "")
    if name in ("array_agg",):
        return array(arguments[0]) if arguments else ""
    if name == "unnest":
        return element(arguments[0]) if arguments else ""
    forms = _returns().get(name, [])
    found = {kind for count, kind in forms if count == len(arguments)} or {kind for _, kind in forms}
    if len(found) > 1 and "text" in found and all(is_text(kind) or not kind for kind in arguments):
        return "text"
    if len(found) != 1:
        return ""
    (kind,) = found
    if kind in _POLYMORPHIC:
        return next((one if not is_array(one) else element(one) for one in arguments if one), "")
    if kind in _POLYMORPHIC_ARRAYS:
        return next((one if is_array(one) else array(one) for one in arguments if one), "")
    return kind
