"""Types of columns by their names and numbers in Postgres, and how DuckDB and JSON write their values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type of Postgres.

    name   in `pg_type`, such as `int4`; that of an array begins with an underscore
    oid    its number there, by which the wire protocol names it
    duck   the type of DuckDB that holds its values
    array  the oid of the type whose values are arrays of this one; 0 where there is none
    """

    name: str
    oid: int
    duck: str
    array: int = 0

    @property
    def is_array(self) -> bool:
        """Whether values are lists."""
        return self.duck.endswith("[]")


_SCALARS = (
    PostgresType("bool", 16, "BOOLEAN", 1000),
    PostgresType("bytea", 17, "VARCHAR", 1001),
    PostgresType("char", 18, "VARCHAR", 1002),
    PostgresType("name", 19, "VARCHAR", 1003),
    PostgresType("int8", 20, "BIGINT", 1016),
    PostgresType("int2", 21, "SMALLINT", 1005),
    PostgresType("int4", 23, "INTEGER", 1007),
    PostgresType("regproc", 24, "VARCHAR", 1008),
    PostgresType("text", 25, "VARCHAR", 1009),
    PostgresType("oid", 26, "UINTEGER", 1028),
    PostgresType("tid", 27, "VARCHAR", 1010),
    PostgresType("xid", 28, "UINTEGER", 1011),
    PostgresType("json", 114, "VARCHAR", 199),
    PostgresType("pg_node_tree", 194, "VARCHAR"),
    PostgresType("float4", 700, "FLOAT", 1021),
    PostgresType("float8", 701, "DOUBLE", 1022),
    PostgresType("unknown", 705, "VARCHAR"),
    PostgresType("inet", 869, "VARCHAR", 1041),
    PostgresType("aclitem", 1033, "VARCHAR", 1034),
    PostgresType("bpchar", 1042, "VARCHAR", 1014),
    PostgresType("varchar", 1043, "VARCHAR", 1015),
    PostgresType("date", 1082, "DATE", 1182),
    PostgresType("time", 1083, "TIME", 1183),
    PostgresType("timestamp", 1114, "TIMESTAMP", 1115),
    PostgresType("timestamptz", 1184, "TIMESTAMP WITH TIME ZONE", 1185),
    PostgresType("interval", 1186, "VARCHAR", 1187),
    PostgresType("timetz", 1266, "VARCHAR", 1270),
    PostgresType("numeric", 1700, "DECIMAL(38,9)", 1231),
    PostgresType("regprocedure", 2202, "VARCHAR", 2207),
    PostgresType("regoper", 2203, "VARCHAR", 2208),
    PostgresType("regclass", 2205, "VARCHAR", 2210),
    PostgresType("regtype", 2206, "VARCHAR", 2211),
    PostgresType("record", 2249, "VARCHAR", 2287),
    PostgresType("anyarray", 2277, "VARCHAR"),
    PostgresType("void", 2278, "VARCHAR"),
    PostgresType("uuid", 2950, "VARCHAR", 2951),
    PostgresType("pg_lsn", 3220, "VARCHAR", 3221),
    PostgresType("pg_ndistinct", 3361, "VARCHAR"),
    PostgresType("pg_dependencies", 3402, "VARCHAR"),
    PostgresType("jsonb", 3802, "VARCHAR", 3807),
    PostgresType("regnamespace", 4089, "VARCHAR", 4090),
    PostgresType("regrole", 4096, "VARCHAR", 4097),
    PostgresType("regcollation", 4191, "VARCHAR", 4192),
    PostgresType("pg_mcv_list", 5017, "VARCHAR"),
)
_AS_TEXT = {
    "cid": (29, 1012), "xml": (142, 143), "point": (600, 1017), "lseg": (601, 1018), "path": (602, 1019),
    "box": (603, 1020), "polygon": (604, 1027), "line": (628, 629), "cidr": (650, 651), "circle": (718, 719),
    "macaddr8": (774, 775), "money": (790, 791), "macaddr": (829, 1040), "bit": (1560, 1561),
    "varbit": (1562, 1563), "refcursor": (1790, 2201), "regoperator": (2204, 2209), "cstring": (2275, 1263),
    "any": (2276, 0), "trigger": (2279, 0), "language_handler": (2280, 0), "internal": (2281, 0),
    "txid_snapshot": (2970, 2949), "tsvector": (3614, 3643), "gtsvector": (3642, 3644), "tsquery": (3615, 3645),
    "regconfig": (3734, 3735), "regdictionary": (3769, 3770), "event_trigger": (3838, 0),
    "int4range": (3904, 3905), "numrange": (3906, 3907), "tsrange": (3908, 3909), "tstzrange": (3910, 3911),
    "daterange": (3912, 3913), "int8range": (3926, 3927), "jsonpath": (4072, 4073), "xid8": (5069, 271),
}  # fmt: skip
"""Types whose values are held as text, with the numbers of the type and of its arrays."""
_SCALARS += tuple(PostgresType(name, oid, "VARCHAR", array) for name, (oid, array) in _AS_TEXT.items())
_VECTORS = (
    PostgresType("int2vector", 22, "SMALLINT[]"),
    PostgresType("oidvector", 30, "UINTEGER[]"),
)
_ARRAYS = tuple(
    PostgresType(f"_{scalar.name}", scalar.array, f"{scalar.duck}[]") for scalar in _SCALARS if scalar.array
)

TYPES = {one.name: one for one in (*_SCALARS, *_VECTORS, *_ARRAYS)}
"""The types by their names in `pg_type`."""

TYPES_BY_OID = {one.oid: one for one in TYPES.values()}
"""The same types by their numbers."""


def array_of(element: PostgresType) -> PostgresType:
    """The type of arrays of a type; of text where Postgres has none."""
    return TYPES_BY_OID.get(element.array, TYPES["_text"])


_OF_DUCK = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "UTINYINT": "int2",
    "USMALLINT": "int4",
    "INTEGER": "int4",
    "UINTEGER": "int8",
    "BIGINT": "int8",
    "UBIGINT": "numeric",
    "HUGEINT": "numeric",
    "UHUGEINT": "numeric",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "VARCHAR": "text",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "TIME WITH TIME ZONE": "timetz",
    "UUID": "uuid",
    "JSON": "json",
}


def type_of_duck(duck: str) -> PostgresType:
    """The type of Postgres for a type as DuckDB writes it; text for what Postgres does not have."""
    if duck.endswith("[]"):
        element = type_of_duck(duck[:-2])
        return element if element.is_array else array_of(element)
    if duck.startswith("DECIMAL"):
        return TYPES["numeric"]
    return TYPES[_OF_DUCK.get(duck, "text")]


def _number(value: Any) -> Decimal:
    return Decimal(str(value))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "numeric": _number,
    "float4": float,
    "float8": float,
}


def decoder(kind: PostgresType) -> Callable[[Any], Any] | None:
    """What makes a value in Python of one that came as JSON; None where it is one already."""
    if not kind.is_array:
        return _DECODERS.get(kind.name)
    single = _DECODERS.get(kind.name.removeprefix("_"))
    if single is None:
        return None
    return lambda values: [None if value is None else single(value) for value in values]
