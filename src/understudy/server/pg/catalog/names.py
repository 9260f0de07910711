"""What Postgres calls things: a column that has no name of its own, and a function that the parser renamed."""

from __future__ import annotations

from sqlglot import exp

UNNAMED = "?column?"

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.AnyValue: "any_value",
    exp.ApproxDistinct: "count",
    exp.ArrayPosition: "array_position",
    exp.CurrentDatabase: "current_database",
    exp.CurrentSchema: "current_schema",
    exp.CurrentSchemas: "current_schemas",
    exp.CurrentTimestamp: "now",
    exp.CurrentUser: "current_user",
    exp.CurrentVersion: "version",
    exp.Explode: "unnest",
    exp.ExplodingGenerateSeries: "generate_series",
    exp.GenerateSeries: "generate_series",
    exp.GroupConcat: "string_agg",
    exp.JSONExtractScalar: UNNAMED,
    exp.JSONExtract: UNNAMED,
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Pow: "power",
    exp.SessionUser: "session_user",
    exp.StrPosition: "position",
    exp.TimeToStr: "to_char",
    exp.TimestampTrunc: "date_trunc",
    exp.Trim: "btrim",
    exp.Unnest: "unnest",
}
_OPERATORS = (exp.And, exp.Or, exp.Xor, exp.RegexpLike, exp.RegexpILike, exp.Between, exp.Binary, exp.Unary)


def function_name(node: exp.Expr) -> str:
    """The name in Postgres of the function that a node calls; empty where it calls none."""
    if isinstance(node, exp.Pad):
        return "lpad" if node.args.get("is_left") else "rpad"
    if isinstance(node, exp.ArraySize):
        return "array_length" if node.args.get("expression") else "cardinality"
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if type(node) in _FUNCTIONS:
        return _FUNCTIONS[type(node)]
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Cast, exp.Case, exp.Array, *_OPERATORS)):
        return node.sql_name().lower()
    return ""


def column_name(node: exp.Expr) -> str:
    """The name of the column that an item of a SELECT list makes."""
    return _figured(node)[0]


def _figured(node: exp.Expr) -> tuple[str, int]:
    """A name, and how good it is: 2 for that of a column or function, 1 for that of a type, 0 for none."""
    if isinstance(node, exp.Alias):
        return node.alias, 2
    if isinstance(node, exp.Column | exp.Identifier):
        return node.name, 2
    if isinstance(node, exp.Dot):
        return _figured(node.expression)
    if isinstance(node, exp.Paren | exp.Bracket | exp.Filter | exp.Window | exp.Collate | exp.WithinGroup):
        return _figured(node.this)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Case):
        name, good = _figured(node.args["default"]) if node.args.get("default") else ("", 0)
        return (name, good) if good > 1 else ("case", 1)
    if isinstance(node, exp.Exists):
        return "exists", 2
    if isinstance(node, exp.Subquery | exp.Select):
        query = node.this if isinstance(node, exp.Subquery) else node
        items = query.selects if isinstance(query, exp.Query) else []
        return (column_name(items[0]), 2) if items else (UNNAMED, 0)
    if isinstance(node, exp.Array):
        return "array", 2
    if isinstance(node, exp.Interval):
        return "interval", 1
    if isinstance(node, exp.CurrentDate):
        return "current_date", 2
    name = function_name(node)
    return (name, 2) if name and name != UNNAMED else (UNNAMED, 0)


def _cast(node: exp.Cast) -> tuple[str, int]:
    name, good = _figured(node.this)
    return (name, good) if good > 1 else (cast_name(node.to).removeprefix("_") or UNNAMED, 1)


_SQL_TYPES = {
    "bigint": "int8",
    "bool": "bool",
    "boolean": "bool",
    "char": "char",
    "character": "bpchar",
    "character varying": "varchar",
    "decimal": "numeric",
    "double": "float8",
    "double precision": "float8",
    "float": "float8",
    "int": "int4",
    "integer": "int4",
    "real": "float4",
    "serial": "int4",
    "smallint": "int2",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time with time zone": "timetz",
    "time without time zone": "time",
    "cardinal_number": "int4",
    "character_data": "varchar",
    "sql_identifier": "name",
    "time_stamp": "timestamptz",
    "yes_or_no": "varchar",
}


def cast_name(to: exp.Expr) -> str:
    """The name in `pg_type` of the type of a cast: `int4` of `integer`, `_text` of `text[]`."""
    text = to.sql(dialect="postgres").lower().replace('"', "").strip()
    dimensions = text.count("[")
    text = text.split("[")[0].strip().removeprefix("pg_catalog.").removeprefix("information_schema.")
    base = text.split("(")[0].strip()
    if base == "char" and "(" in text:
        base = "character"
    name = _SQL_TYPES.get(base, base)
    return f"_{name}" if dimensions and not name.startswith("_") else name
