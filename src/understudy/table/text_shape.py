"""How a file of text is made: its encoding, its delimiter, and whether its first line names the columns.

For a custodian's eyes: all of it is found out by reading the file, and what is asked or refused quotes the
first line.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from understudy.declaration.declaration import SourceSpec
from understudy.declaration.intake import encoding_name
from understudy.errors import SourceError
from understudy.table.text_file import DetectedEncoding, detect_encoding, read_header, read_records
from understudy.table.writing import reads_as_value

LOOKED_AT = 1000
"""Records that are compared with the first one."""

SHOWN = 8
"""Cells of the first line that are shown."""


@dataclass(frozen=True, slots=True)
class Custodian:
    """Who can be asked: `confirm` puts a question for yes or no, `enter` one with a usual answer."""

    confirm: Callable[[str], bool]
    enter: Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class TextShape:
    """What a declaration has to say about a file of text, and in words what was found out and why."""

    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def spec(self, location: str) -> SourceSpec:
        """The source of a file of this shape."""
        return SourceSpec(
            location,
            delimiter=self.delimiter,
            encoding=self.encoding,
            header=self.header,
            columns=self.columns,
        )


def shape_of(
    path: Path,
    *,
    encoding: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    custodian: Custodian | None = None,
) -> TextShape:
    """The shape of a file of text; what is given is believed, and what is doubtful is asked, where anybody can be.

    Raises a `SourceError` where the first line looks like a row and nobody says what it is.
    """
    notes: list[str] = []
    name = _named(encoding, path) if encoding is not None else _detected(path, custodian, notes)
    mark = _delimiter(path, name) if delimiter is None else delimiter
    try:
        records = list(islice(read_records(path, mark, name), LOOKED_AT + 1))
    except (csv.Error, UnicodeError, zlib.error, EOFError, OSError, SourceError):
        records = [read_header(path, mark, name)]
    first, rest = (records[0], records[1:]) if records else ([], [])
    if header is None:
        header = _has_header(path, first, rest, custodian)
    if header:
        named = read_header(path, mark, name)
        columns = _unique(named)
        if columns:
            filled = [cell.strip() for cell in named if cell.strip()]
            what = " and ".join(
                ["names a column more than once"] * (len(set(filled)) < len(filled))
                + ["has no name for a column"] * (len(filled) < len(named))
            )
            notes.append(f"the header {what}: `columns` gives each a name of its own")
        return TextShape(name, mark, columns=columns, notes=tuple(notes))
    width = max([len(first), *(len(record) for record in rest[:20])], default=0)
    if not width:
        raise SourceError(f"{path.name} is empty")
    notes.append("there is no header: `columns` numbers the columns, give them their names there")
    names = tuple(f"column_{i}" for i in range(1, width + 1))
    return TextShape(name, mark, header=False, columns=names, notes=tuple(notes))


def _named(encoding: str, path: Path) -> str:
    name = encoding_name(encoding)
    if name is None:
        raise SourceError(
            f"{encoding!r} is no encoding of text that is known; "
            f"for {path.name} try utf-8, cp1252, latin-1 or utf-16"
        )
    return name


def _detected(path: Path, custodian: Custodian | None, notes: list[str]) -> str:
    found = detect_encoding(path)
    if found.name == "utf-8" and not found.bad:
        return found.name
    name = found.name
    if custodian is not None:
        example = _example(path, found)
        asked = f"{path.name}: {found.why}{example}. Which encoding is it in?"
        name = _named(custodian.enter(asked, found.name), path)
    notes.append(f"encoding {name}: {found.why}")
    return name


def _example(path: Path, found: DetectedEncoding) -> str:
    """A word of the file that is not ASCII, as the encoding would read it."""
    try:
        records = islice(read_records(path, ",", found.name), 10_000)
        words = (word[0] for record in records for cell in record if (word := _STRANGE_WORD.search(cell)))
        word = next(words, "")
    except (csv.Error, UnicodeError, SourceError, OSError):
        return ""
    return f", such as {word[:30]!r}" if word else ""


_STRANGE_WORD = re.compile(r"[a-zA-Z]*[^\W\x00-\x7f]\w*")
"""A word with a letter that is not ASCII."""


def _delimiter(path: Path, encoding: str) -> str:
    """The delimiter that cuts the first line into most columns."""
    return max(",;\t|", key=lambda mark: len(read_header(path, mark, encoding)))


def _has_header(path: Path, first: list[str], rest: list[list[str]], custodian: Custodian | None) -> bool:
    why = row_not_names(first, rest)
    if not why:
        return True
    shown = ", ".join(first[:SHOWN]) + (", …" if len(first) > SHOWN else "")
    said = (
        f"the first line of {path.name} looks like a row and not like the names of columns ({why}): {shown}"
    )
    if custodian is not None:
        return custodian.confirm(f"{said[0].upper()}{said[1:]}. Does it name the columns?")
    raise SourceError(
        f"{said}. A header that is somebody's row would be published as names: say --no-header if the file "
        f"has no header, or --header if these are names"
    )


def row_not_names(first: list[str], rest: list[list[str]]) -> str:
    """Why the first record looks like a row; empty where it can be a header.

    >>> row_not_names(["51", "M"], [["34", "F"]])
    "'51' is a number or a date"
    >>> row_not_names(["town", "sex"], [["Bree", "F"], ["Bree", "M"]])
    ''
    """
    if first == [str(i) for i in range(len(first))]:  # how frames number columns without names
        return ""
    for cell in first:
        if reads_as_value(cell):
            return f"{cell!r} is a number or a date"
    others = [
        record for record in rest if record != first
    ]  # files that were put together repeat their header
    for i, cell in enumerate(first):
        if cell.strip() and any(i < len(record) and record[i] == cell for record in others):
            return f"{cell!r} stands in its column again"
    return ""


def _unique(header: list[str]) -> tuple[str, ...]:
    """Names of which no two are alike, where the header has two that are, or one is empty; else nothing."""
    if len(set(header)) == len(header) and all(name.strip() for name in header):
        return ()
    taken: set[str] = set()
    names = []
    for i, name in enumerate(header, 1):
        name = name.strip() or f"column_{i}"
        number, tried = 2, name
        while tried in taken:
            tried, number = f"{name}_{number}", number + 1
        taken.add(tried)
        names.append(tried)
    return tuple(names)
