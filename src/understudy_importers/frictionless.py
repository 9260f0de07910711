"""Frictionless table schemas, resources and data packages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

from understudy.declaration import cells
from understudy.declaration.node import Node
from understudy.declaration.outline import Outline, OutlineEntry, name_from, placed, scalar
from understudy.domain.attribute import Boolean, same_text
from understudy_importers.document import (
    day,
    entries,
    is_list,
    is_mapping,
    load,
    number,
    rising,
    shown,
    text,
    truth,
)

KINDS = {
    "string": "category", "integer": "integer", "year": "integer", "number": "real", "boolean": "boolean",
    "date": "date", "datetime": "date",
}  # fmt: skip

IDENTIFIERS = ("email", "uri", "uuid", "binary")
"""Formats of text that tell one row from another."""

SILENT = {
    "name", "title", "description", "example", "rdfType", "profile", "$schema", "type", "constraints",
    "missingValues", "fields", "id", "keywords", "version", "created", "licenses", "sources", "contributors",
    "homepage", "image", "resources", "path", "schema", "format", "mediatype", "hash", "bytes", "dialect",
    "primaryKey", "foreignKeys", "categories", "trueValues", "falseValues", "encoding", "scheme", "package",
    "stats", "data",
}  # fmt: skip
"""Keys that are read, or that say nothing about which values can occur."""

NUMBERS = dict.fromkeys(
    ("decimalChar", "groupChar", "bareNumber"),
    "text is read as numbers like 1234.5; what is none counts as missing",
)
"""How numbers are written in text: keys that cannot be followed, and what happens instead."""

DIALECT = {
    "delimiter": "", "header": "true", "quoteChar": '"', "doubleQuote": "true", "lineTerminator": "",
    "csvddfVersion": "", "caseSensitiveHeader": "", "$schema": "", "type": "", "format": "",
}  # fmt: skip
"""Options of a dialect with the value that this program reads; empty where the value plays no part."""


@dataclass(frozen=True)
class Described:
    """A table schema, and what its resource says about the file."""

    schema: Node
    name: str
    source: str = ""
    delimiter: str = ""
    dropped: tuple[str, ...] = ()


def is_frictionless(root: Node) -> bool:
    """Whether a file is a table schema, a resource or a package."""
    if not is_mapping(root):
        return False
    top = entries(root)
    resource = "schema" in top and ("path" in top or "data" in top)
    return is_list(top.get("fields")) or is_list(top.get("resources")) or resource


def outline(root: Node, *, folder: Path, table: str = "") -> Outline:
    """The draft of a declaration for a schema, or for one resource of a package in `folder`."""
    found = _described(root, folder, table)
    schema = entries(found.schema)
    if not is_list(schema.get("fields")):
        found.schema.fail("'fields' is missing", "A table schema has a list of fields")
    dropped = [*found.dropped, *_unread("schema", schema), *_foreign(schema)]
    missing = _listed(schema["missingValues"]) if "missingValues" in schema else [""]
    keys = _primary(schema)
    attributes: list[OutlineEntry] = []
    names: set[str] = set()
    for node in schema["fields"].items():
        field = Field.read(node, keys, missing)
        if same_text(field.name) in names:
            node.fail(f"there are two fields {field.name!r}", "Rename one of them")
        names.add(same_text(field.name))
        attributes.append(field.entry())
        dropped += field.dropped()
    source = OutlineEntry.lacking("source", "where the table is: a file such as people.csv")
    return Outline(
        heading=(
            f"Drafted by `understudy init --from {root.file}`: a Frictionless schema, table {found.name}.",
            "Lines marked MISSING must be filled in; `understudy check` refuses the file until they are.",
        ),
        settings=(
            OutlineEntry.of("name", scalar(name_from(found.name))),
            OutlineEntry.of("source", scalar(found.source)) if found.source else source,
            *(
                [OutlineEntry.of("delimiter", scalar(found.delimiter))]
                if found.delimiter not in ("", ",")
                else []
            ),
            OutlineEntry.of("protect", "privacy"),
            OutlineEntry.lacking(
                "neighbours",
                "write replace (the number of rows is public) or add-remove (it is private); if a person can have "
                "several rows, add-remove and a line `unit: {column: person, max_rows: 3}`",
            ),
            cells.budget(),
        ),
        attributes=tuple(attributes),
        dropped=tuple(dropped),
    )


def _described(root: Node, folder: Path, table: str) -> Described:
    top = entries(root)
    if is_list(top.get("resources")):
        return _resource(_chosen(root, list(top["resources"].items()), table), folder)
    if "schema" in top:
        return _resource(root, folder)
    return Described(root, text(top["name"]) if "name" in top else Path(root.file).name.split(".")[0])


def _chosen(root: Node, resources: list[Node], wanted: str) -> Node:
    names = [text(entries(node)["name"]) if "name" in entries(node) else "" for node in resources]
    matching = [node for node, name in zip(resources, names, strict=True) if wanted in ("", name)]
    if len(matching) == 1:
        return matching[0]
    if not resources:
        root.fail("the package has no resources", "Name a package with a tabular resource")
    listed = ", ".join(name or "(no name)" for name in names[:20])
    if matching:
        root.fail(f"there are several resources: {listed}", "Say which one with --table")
    root.fail(f"there is no resource {wanted!r}", f"Say one of these with --table: {listed}")


def _resource(node: Node, folder: Path) -> Described:
    fields = entries(node)
    if "schema" not in fields:
        node.fail("the resource has no schema", "Only tabular resources can be declared")
    schema = fields["schema"]
    if not is_mapping(schema):
        if not _is_safe(text(schema)):
            schema.fail("the schema lies elsewhere", "Fetch it, and name a file beside this one")
        schema = load(folder / text(schema))
    dropped = _unread("resource", fields)
    source = ""
    if "path" in fields:
        path = fields["path"]
        parts = [text(item) for item in path.items()] if is_list(path) else [text(path)]
        if len(parts) == 1 and _is_safe(parts[0]):
            source = parts[0]
        else:
            dropped.append(
                f"resource, path: {', '.join(parts[:3])}: one file below this folder can be named here"
            )
    encoding = text(fields["encoding"]).lower() if "encoding" in fields else "utf-8"
    if encoding.replace("-", "") not in ("utf8", "ascii", "utf8sig"):
        dropped.append(f"resource, encoding: {encoding}: text files are read as UTF-8; convert it")
    delimiter, odd = _dialect(fields.get("dialect"))
    name = text(fields["name"]) if "name" in fields else Path(source or node.file).name.split(".")[0]
    return Described(schema, name, source, delimiter, (*dropped, *odd))


def _dialect(node: Node | None) -> tuple[str, list[str]]:
    """The delimiter, and the options that this program does not follow."""
    if node is None:
        return "", []
    if not is_mapping(node):
        return "", [
            f"resource, dialect: {shown(node)}: not followed; write the delimiter here if it is no comma"
        ]
    fields = entries(node)
    if is_mapping(fields.get("csv")):
        fields = fields | entries(fields.pop("csv"))
    odd = [
        f"dialect, {key}: {shown(value)}: not followed; text files have a header and double quotes"
        for key, value in fields.items()
        if key not in DIALECT or (DIALECT[key] and shown(value).lower() != DIALECT[key])
    ]
    if "delimiter" not in fields:
        return "", odd
    mark = text(fields["delimiter"])
    entry = OutlineEntry.of("delimiter", scalar({"\\t": "\t"}.get(mark, mark)))
    placed(fields["delimiter"], entry, attribute=False)
    return mark, odd


def _is_safe(path: str) -> bool:
    """Whether a path stays below the folder of its package, as the specification asks."""
    parts = PurePosixPath(path).parts
    return (
        bool(path)
        and "://" not in path
        and "\\" not in path
        and not path.startswith(("/", "~"))
        and ".." not in parts
    )


def _unread(where: str, fields: dict[str, Node]) -> list[str]:
    return [
        f"{where}, {key}: {shown(node)}: plays no part" for key, node in fields.items() if key not in SILENT
    ]


def _primary(schema: dict[str, Node]) -> list[str]:
    key = schema.get("primaryKey")
    if key is None:
        return []
    return [text(item) for item in key.items()] if is_list(key) else [text(key)]


def _foreign(schema: dict[str, Node]) -> list[str]:
    if "foreignKeys" not in schema:
        return []
    return [
        "schema, foreignKeys: one table is declared; a key that names a person may be the column of `unit`"
    ]


@dataclass(frozen=True)
class Field:
    """A field of a table schema."""

    node: Node
    name: str
    type: str
    fields: dict[str, Node]
    constraints: dict[str, Node]
    missing: tuple[str, ...]
    alone_in_key: bool

    @classmethod
    def read(cls, node: Node, keys: list[str], missing: list[str]) -> Field:
        fields = entries(node)
        if "name" not in fields:
            node.fail("'name' is missing", "Every field has a name")
        own = (
            [text(item) for item in fields["missingValues"].items()] if "missingValues" in fields else missing
        )
        return cls(
            node=node,
            name=text(fields["name"]),
            type=text(fields["type"]) if "type" in fields else "string",
            fields=fields,
            constraints=entries(fields["constraints"]) if "constraints" in fields else {},
            missing=tuple(own),
            alone_in_key=keys == [text(fields["name"])],
        )

    @property
    def null(self) -> bool:
        return not ("required" in self.constraints and truth(self.constraints["required"]))

    def entry(self) -> OutlineEntry:
        """The attribute that this field becomes."""
        values = self._values()
        kind = KINDS.get(self.type)
        unique = "unique" in self.constraints and truth(self.constraints["unique"])
        if kind is None:
            return OutlineEntry.without(self.name, f"its type is {self.type}, which has no cells")
        if values is not None:
            entry = self._marked_missing(cells.category(self.name, values, null=self.null))
            remark = "" if kind == "category" else f"type {self.type}: the listed values are compared as text"
            return placed(self.node, replace(entry, remark=remark))
        if self.alone_in_key or unique:
            return OutlineEntry.without(self.name, "its values name the rows (primaryKey or unique)")
        if kind == "boolean":
            return cells.boolean(self.name, null=self.null, words=self._written_words())
        if kind == "category":
            if "format" in self.fields and text(self.fields["format"]) in IDENTIFIERS:
                return OutlineEntry.without(self.name, f"its format is {text(self.fields['format'])}")
            return cells.unknown(self.name, kind, null=self.null)
        return self._ordered(kind)

    def dropped(self) -> list[str]:
        """What this field says that its attribute does not."""
        known = {"required", "unique", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
        lines = [
            f"field {self.name}, {key}: {shown(node)}: plays no part"
            for key, node in self.constraints.items()
            if key not in known
        ]
        for key, node in self.fields.items():
            if key == "format" and KINDS.get(self.type) == "date" and text(node) not in ("default", "any"):
                lines.append(f"field {self.name}, format: {text(node)}: text must hold days like 2024-12-31")
            elif key in NUMBERS:
                lines.append(f"field {self.name}, {key}: {shown(node)}: {NUMBERS[key]}")
            elif key not in SILENT:
                lines.append(f"field {self.name}, {key}: {shown(node)}: plays no part")
        return lines

    def _values(self) -> list[str] | None:
        """The listed values, where there is a list; those of a boolean where they are not the usual words."""
        listed = self.constraints.get("enum", self.fields.get("categories"))
        if self.type == "boolean":
            words = [*self._words("falseValues", "false"), *self._words("trueValues", "true")]
            usual = all(word.strip().lower() in Boolean.TRUE + Boolean.FALSE for word in words)
            return None if usual else words
        return None if listed is None else _listed(listed)

    def _words(self, key: str, usual: str) -> list[str]:
        """The words for one side of a boolean; the specification's own where the field has none."""
        if key in self.fields:
            return [text(item) for item in self.fields[key].items()]
        return [usual, usual.capitalize(), usual.upper(), str(int(usual == "true"))]

    def _written_words(self) -> tuple[str, str]:
        """The first words that are listed for true and for false, where both lists are there and read as such."""
        if not {"trueValues", "falseValues"} <= self.fields.keys():
            return Boolean.words

        def first(key: str, known: Sequence[str]) -> str:
            words = (word.strip() for word in self._words(key, ""))
            return next((word for word in words if word.lower() in known), "")

        true, false = first("trueValues", Boolean.TRUE), first("falseValues", Boolean.FALSE)
        return (true, false) if true and false else Boolean.words

    def _ordered(self, kind: str) -> OutlineEntry:
        read: Callable[[Node], Any] = day if kind == "date" else number
        low = self.constraints.get("minimum", self.constraints.get("exclusiveMinimum"))
        high = self.constraints.get("maximum", self.constraints.get("exclusiveMaximum"))
        if low is None or high is None:
            half = f" (only one is given: {text(low or high)})" if low or high else ""  # type: ignore[arg-type]
            entry = cells.unknown(self.name, kind, null=self.null)
            return replace(entry, lacks={field: what + half for field, what in entry.lacks.items()})
        bounds = rising(low, high, read)
        if kind != "real":  # a bound that is excluded has a neighbour; that of a real is kept
            step = dt.timedelta(days=1) if kind == "date" else 1
            bounds = (
                bounds[0] if "minimum" in self.constraints else bounds[0] + step,
                bounds[1] if "maximum" in self.constraints else bounds[1] - step,
            )
        if bounds[0] > bounds[1]:
            high.fail("no value lies between the bounds", "Change one of them")
        return placed(
            self.node, self._marked_missing(cells.ordered(self.name, kind, *bounds, null=self.null), bounds)
        )

    def _marked_missing(self, entry: OutlineEntry, bounds: tuple[Any, Any] | None = None) -> OutlineEntry:
        """A word for a missing value is sent to the null cell; a number among the values cannot be."""
        words = [word for word in self.missing if word]
        if not words or not self.null:
            return entry
        if entry.fields["type"] == "category":
            return replace(entry, fields=entry.fields | {"outside": "null"})
        numbers = [word for word in words if _number(word) is not None]
        if entry.fields["type"] == "date" or not numbers or bounds is None:
            return entry
        inside = [word for word in numbers if bounds[0] <= (_number(word) or 0) <= bounds[1]]
        if inside:
            return replace(
                entry,
                remark=f"WATCH OUT: the missing value {', '.join(inside)} lies within the bounds and counts",
            )
        return replace(entry, fields=entry.fields | {"outside": "null"})


def _listed(node: Node) -> list[str]:
    """The values of a list, each alone or with a label."""
    values = []
    for item in node.items():
        fields = entries(item) if is_mapping(item) else {"value": item}
        if "value" not in fields:
            item.fail("'value' is missing", "Write a value, or {value: 1, label: low}")
        values.append(text(fields["value"]))
    return values


def _number(word: str) -> Fraction | None:
    try:
        return Fraction(word.strip())
    except (ValueError, ZeroDivisionError):
        return None
