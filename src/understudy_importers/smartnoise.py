"""SmartNoise metadata: a collection of schemas of tables, each with its privacy unit and its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from understudy.declaration import cells
from understudy.declaration.node import Node
from understudy.declaration.outline import Outline, OutlineEntry, name_from, objection, placed, scalar
from understudy_importers.document import (
    day,
    entries,
    is_mapping,
    number,
    rising,
    shown,
    text,
    truth,
)

KINDS = {"int": "integer", "float": "real", "string": "category", "boolean": "boolean", "datetime": "date"}

TABLE_KEYS = {
    "rows": "a rough number, and no bound; if one is public, add `rows: {at_least: …, at_most: …}`",
    "rows_exact": "",
    "max_ids": "",
    "max_contributions": "",
    "row_privacy": "",
    "sample_max_ids": "`unit` keeps at most max_rows of each person always",
    "censor_dims": "rare groups need no hiding: every cell is declared, and answered whether it is empty or not",
    "clamp_counts": "answers are clipped to what is possible always; the unclipped ones are kept beside them",
    "clamp_columns": "values outside of the bounds go to the nearest bin; `outside: other` gives them a cell",
    "use_dpsu": "groups are declared, so none has to be discovered",
}
"""The options of a table: why an option is not taken over; empty where it is."""

COLUMN_KEYS = {
    "name": "the key is the name",
    "type": "",
    "lower": "",
    "upper": "",
    "bounds": "",
    "nullable": "",
    "private_id": "",
    "cardinality": "",
    "sensitivity": "questions are counts; a bound on one value's weight plays no part",
    "missing_value": "missing values have a cell of their own; nothing is put in their place",
    "bounded": "which values can occur is said by the attribute",
}

SHAPE = "SmartNoise metadata is collection, schema, table, column; Frictionless has `fields` or `resources`"

OLD_KEYS = {"min": "lower", "max": "upper", "is_key": "private_id"}
"""What keys of a column were called in early versions."""


@dataclass(frozen=True)
class Table:
    """A table of the collection, and where its columns and options stand."""

    schema: str
    name: str
    node: Node

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


def outline(root: Node, *, table: str = "") -> Outline:
    """The draft of a declaration for one table of a collection."""
    chosen = _chosen(root, _tables(root), table)
    said = _level(chosen.node, "columns")
    options = {key: node for key, node in said.items() if not is_mapping(node)}
    columns = {key: node for key, node in said.items() if is_mapping(node)}
    if not columns:
        chosen.node.fail("the table has no columns", "Write `column: {type: int, lower: 0, upper: 10}`")
    dropped = [_dropped("table", key, node, TABLE_KEYS) for key, node in options.items()]
    dropped += [
        f"{key}: nothing is said about it"
        for key in chosen.node.mapping(None)
        if key not in options | columns
    ]
    owners = [name for name, node in columns.items() if _flag(_fields(node), "private_id", usual=False)]
    attributes = []
    for name, node in columns.items():
        dropped += [_dropped(f"column {name}", key, item, COLUMN_KEYS) for key, item in _fields(node).items()]
        if name in owners:
            attributes.append(
                OutlineEntry.without(name, "private_id says whose row it is: nothing to ask about")
            )
        else:
            attributes.append(_attribute(name, node))
    return Outline(
        heading=(
            f"Drafted by `understudy init --from {root.file}`: SmartNoise metadata, table {chosen.full_name}.",
            "Lines marked MISSING must be filled in; `understudy check` refuses the file until they are.",
        ),
        settings=(
            OutlineEntry.of("name", scalar(name_from(chosen.name))),
            OutlineEntry.lacking("source", "where the table is: a file such as people.csv"),
            OutlineEntry.of("protect", "privacy"),
            *_whose(options, owners),
            cells.budget(),
        ),
        attributes=tuple(attributes),
        dropped=tuple(line for line in dropped if line),
    )


def _tables(root: Node) -> list[Table]:
    found = []
    collections = {key: node for key, node in entries(root).items() if key != "engine"}
    for collection in collections.values():
        for schema, tables in _level(collection, "schemas").items():
            found += [Table(schema, name, node) for name, node in _level(tables, "tables").items()]
    if not found:
        root.fail("there is no table", SHAPE)
    return found


def _level(node: Node, what: str) -> dict[str, Node]:
    if not is_mapping(node):
        node.fail(f"this is no description that is known: {what} were expected here", SHAPE)
    return entries(node)


def _chosen(root: Node, tables: list[Table], wanted: str) -> Table:
    matching = [table for table in tables if not wanted or wanted in (table.name, table.full_name)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(table.full_name for table in tables[:20])
    if matching:
        root.fail(f"there are several tables: {names}", "Say which one with --table")
    root.fail(f"there is no table {wanted!r}", f"Say one of these with --table: {names}")


def _dropped(where: str, key: str, node: Node, known: dict[str, str]) -> str:
    """The line that says why an option plays no part; empty where it does."""
    if key not in known:
        if shown(node) in KINDS:
            node.fail("a column is a mapping", f"Write `{key}: {{type: {shown(node)}}}`")
        return f"{where}, {key}: {shown(node)} (line {node.yaml.start_mark.line + 1}): not understood"
    return f"{where}, {key}: {shown(node)}: {known[key]}" if known[key] else ""


def _flag(fields: dict[str, Node], key: str, *, usual: bool) -> bool:
    return truth(fields[key]) if key in fields else usual


def _whose(options: dict[str, Node], owners: list[str]) -> list[OutlineEntry]:
    """The neighbours, and the privacy unit where it is not the row."""
    if _flag(options, "row_privacy", usual=False):
        rows = OutlineEntry.of("neighbours", "add-remove", "the number of rows is private, as in SmartNoise")
        if "rows_exact" in options:
            rows = OutlineEntry.of("neighbours", "replace", "rows_exact: the number of rows is public")
        return [
            replace(rows, remark=f"{rows.remark}; row_privacy: no private_id and no max_ids plays a part")
        ]
    if not owners:
        return [
            OutlineEntry.lacking(
                "neighbours",
                "no column is private_id and row_privacy is not set: write replace or add-remove if every row is "
                "another person's, else add-remove and a line `unit: {column: person, max_rows: 3}`",
            )
        ]
    limit = options.get("max_ids", options.get("max_contributions"))
    most = "1" if limit is None else str(limit.integer())
    unit = OutlineEntry("unit", {"column": scalar(owners[0]), "max_rows": most}, {})
    if limit is None:
        unit = replace(unit, remark="SmartNoise's default: one row of each person is kept")
    elif problem := objection(unit, attribute=False):
        limit.fail(problem, "Write how many rows of one person may count")
    if len(owners) > 1:
        which = f"the one column that says whose row it is, of {', '.join(owners[:5])}"
        unit = OutlineEntry("unit", {"max_rows": most}, {"column": which})
    remark = "a person comes or goes with all of their rows"
    remark += "; rows_exact plays no part" if "rows_exact" in options else ""
    neighbours = OutlineEntry.of("neighbours", "add-remove", remark)
    return [neighbours, unit]


def _fields(node: Node) -> dict[str, Node]:
    """What is said about a column, by today's names."""
    return {OLD_KEYS.get(key, key): item for key, item in entries(node).items()}


def _attribute(name: str, node: Node) -> OutlineEntry:
    fields = _fields(node)
    null = _flag(fields, "nullable", usual=True)
    if "type" not in fields:
        node.fail("'type' is missing", f"Write `type:` and one of {', '.join(KINDS)}")
    kind = KINDS.get(text(fields["type"]).strip().lower())
    if kind is None:
        return OutlineEntry.without(name, f"its type is {shown(fields['type'])}, which has no cells")
    if kind == "boolean":
        return cells.boolean(name, null=null)
    if kind == "category":
        count = f"{text(fields['cardinality'])} " if "cardinality" in fields else ""
        return cells.unknown(name, kind, null=null, what=f"the {count}values, such as [red, green]")
    low, high = _bounds(kind, fields)
    if low is None or high is None:
        return cells.unknown(name, kind, null=null)
    return placed(node, cells.ordered(name, kind, low, high, null=null))


def _bounds(kind: str, fields: dict[str, Node]) -> tuple[Any, Any]:
    """The lowest and the highest value; None where they are not given."""
    low, high = fields.get("lower"), fields.get("upper")
    if "bounds" in fields:
        both = list(fields["bounds"].items())
        if len(both) != 2:
            fields["bounds"].fail("bounds are two values", "Write `bounds: [0, 100]`")
        low, high = both
    if low is None or high is None:
        return None, None
    return rising(low, high, day if kind == "date" else number)
