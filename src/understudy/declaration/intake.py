"""Reading what ``understudy.yml`` says about how text is written: in a column, and in a whole file."""

from __future__ import annotations

import codecs
from fractions import Fraction

import yaml

from understudy.declaration.node import Node
from understudy.domain.attribute import same_text
from understudy.domain.date_format import DateFormat
from understudy.domain.intake import Intake

INTAKE_FIELDS = {
    "category": ("missing",),
    "boolean": ("missing",),
    "integer": ("missing", "strip", "decimal", "thousands", "percent"),
    "real": ("missing", "strip", "decimal", "thousands", "percent", "decimals"),
    "date": ("missing", "strip", "format"),
    "timestamp": ("missing", "strip", "format"),
}
"""What may be said about the writing of each kind of attribute."""

UTF_8 = "utf-8"


def intake_of(node: Node, fields: dict[str, Node]) -> Intake:
    """How the column of an attribute is read."""
    given = {}
    if "format" in fields:
        told = fields["format"]
        given["formats"] = tuple(
            text.guard(lambda text=text: DateFormat(text.text()), "Write it as %d/%m/%Y")
            for text in one_or_several(told)
        )
        if not given["formats"]:
            told.fail("there is no format in the list", 'Write `format: "%d/%m/%Y"`, or remove the line')
    for key in ("missing", "strip"):
        if key in fields:
            given[key] = tuple(text.text() for text in one_or_several(fields[key]))
    for key in ("decimal", "thousands"):
        if key in fields:
            given[key] = fields[key].text()
    if "percent" in fields:
        given["percent"] = fields["percent"].flag()
    return node.guard(lambda: Intake(**given), "Change how the text is declared to be written")


def one_or_several(node: Node) -> list[Node]:
    """A single value, or a list of them."""
    return list(node.items()) if isinstance(node.yaml, yaml.SequenceNode) else [node]


def share(node: Node) -> Fraction:
    """A part of all rows, between 0 and 1."""
    told = node.number()
    if not 0 <= told <= 1:
        node.fail("a share of the rows is between 0 and 1", "Write 0.01 for one row in a hundred")
    return told


def encoding(node: Node) -> str:
    """The name that Python has for an encoding of text."""
    name = encoding_name(node.text())
    if name is None:
        node.fail(
            f"{node.text()!r} is no encoding of text that is known", "Write utf-8, cp1252, latin-1 or utf-16"
        )
    return name


def encoding_name(text: str) -> str | None:
    """The one name of an encoding, whatever it was called; None where it is not known.

    >>> encoding_name("Windows-1252"), encoding_name("UTF8"), encoding_name("rot13")
    ('cp1252', 'utf-8', None)
    """
    try:
        found = codecs.lookup(text)
        "".encode(found.name)
    except (LookupError, ValueError, TypeError):
        return None
    return {"utf-8-sig": UTF_8, "iso8859-1": "latin-1"}.get(found.name, found.name)


def column_names(node: Node) -> tuple[str, ...]:
    """The names of a text file's columns, in their order."""
    names = [item.text() for item in node.items()]
    for item, name in zip(node.items(), names, strict=True):
        if not name.strip():
            item.fail("a column needs a name", "Name every column of the file, in order")
        if names.count(name) > 1 or sum(same_text(other) == same_text(name) for other in names) > 1:
            item.fail(f"{name!r} stands here twice", "Give each column a name of its own")
    if not names:
        node.fail("there is no name in the list", "Name every column of the file, in order")
    return tuple(names)
