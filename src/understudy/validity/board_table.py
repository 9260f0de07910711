"""The tables of a board, which are its labels and the submissions: how a CSV or Parquet file is read.

A CSV file has no types. Ids are text, and stay as they are written: 0001 and 1 are two. Labels are numbers where
all of them are, unless one is a code such as 007, which a number would not be written as: then they are text.
Boards that were made before `as_written` was a term of theirs read codes as numbers, and go on so.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from understudy.errors import SourceError
from understudy.validity.predictions import missing

Wrong = Callable[[str, str], Exception]
"""Makes the error for a file of which something is wrong: from what it is or has, and what to do about it."""

CODE = re.compile(r"\s*(0[0-9]+|[0-9]{19,})\s*")
"""Digits that a number would not be written with again, or too many to be held exactly."""

_AGAIN = "Save it as CSV in UTF-8, or as Parquet"
_NOT_UTF_8 = ("is not written in UTF-8", _AGAIN)
_UNCLOSED = (
    "has a quotation mark that is not closed",
    "Close it, or write two for one within a quoted field",
)
_OTHER_FILES = (
    (
        b"PAR1",
        "is a Parquet file under another name",
        "Send it as Parquet, under a name that ends in .parquet",
    ),
    (b"PK\x03\x04", "is a spreadsheet or an archive", _AGAIN),
    (b"\xd0\xcf\x11\xe0", "is a spreadsheet", _AGAIN),
    (codecs.BOM_UTF16_LE, *_NOT_UTF_8),
    (codecs.BOM_UTF16_BE, *_NOT_UTF_8),
)
"""How files that are no CSV begin, what they are, and what to do."""

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(
    path: Path, wrong: Wrong, *, id: str, as_written: bool, text: Collection[str] = ()
) -> pa.Table:
    """The table of a file, with the columns in `text`, and the ids in `id` if they are `as_written`, as text.

    Raises a `SourceError` where there is no such file, and the error of `wrong` where it cannot be read. Its words
    quote no row.
    """
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        with pa.input_stream(path) as stream:
            data = stream.read()
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except (pa.ArrowException, OSError):
        kind = "Parquet file" if path.suffix == ".parquet" else "file"
        raise wrong(f"cannot be read: it is no {kind}, or damaged", "Write it anew, whole") from None
    types = dict.fromkeys((*text, id) if as_written else text, pa.string())
    try:
        table = csv.read_csv(pa.BufferReader(data), convert_options=csv.ConvertOptions(column_types=types))
        columns = dict(zip(table.column_names, table.columns, strict=True))  # names that are no UTF-8 raise
    except (pa.ArrowException, UnicodeDecodeError):
        raise wrong(*_fault(data)) from None
    if as_written and any(pa.types.is_binary(column.type) for column in columns.values()):
        raise wrong(*_NOT_UTF_8)
    if as_written and _is_open(data) and any(map(_has_lines, columns.values())):
        raise wrong(*_UNCLOSED)  # the rest of the file is in one field
    return table


def read_labels(
    path: Path, *, id: str, label: str, as_written: bool, amounts: bool
) -> tuple[list[str], NDArray[Any]]:
    """The ids and the labels of a board's own file; `amounts` are numbers, and none of them is a code.

    Raises a `SourceError` where the file cannot be read, lacks a column, repeats ids or has missing labels.
    """

    def wrong(why: str, remedy: str) -> SourceError:
        return SourceError(f"{path.name} {why}. {remedy}")

    table = read_table(path, wrong, id=id, as_written=as_written)
    for name in (id, label):
        if name not in table.column_names:
            raise wrong(*no_column(table, name))
    ids = list(map(str, table[id].to_pylist()))
    if len(set(ids)) != len(ids):
        raise SourceError(f"{path.name} repeats ids")
    labels = as_array(table[label])
    if missing(labels):
        raise SourceError(f"{path.name} has missing labels")
    if path.suffix != ".parquet" and as_written and not amounts and labels.dtype.kind in "if":
        written = read_table(path, wrong, id=id, as_written=True, text=[label])[label].to_pylist()
        if any(map(CODE.fullmatch, written)):
            return ids, np.asarray(written)
    return ids, labels


def no_column(table: pa.Table, name: str) -> tuple[str, str]:
    """What is wrong with a table that has no column `name`, or two, and what to do."""
    only = table.column_names[0] if table.num_columns == 1 else ""
    if found := _separated(only):
        return f"has no column {name}: its fields are separated by {found}", "Separate them with commas"
    if name in table.column_names:
        return f"has more than one column {name}", "Leave one"
    return f"has no column {name}", "The first line of a file has the names of its columns"


def as_array(column: pa.ChunkedArray) -> NDArray[Any]:
    """The values as they are: None makes objects of numbers, and nothing is turned into text."""
    values = column.to_pylist()
    kinds = {type(value) for value in values}
    return np.asarray(values, dtype=None if len(kinds) == 1 else object)


def _fault(data: bytes) -> tuple[str, str]:
    """Why bytes are not read as CSV, and what to do."""
    if not data.strip():
        return "is empty", "Write a line with the names of the columns, and a line for each id"
    for begins, why, remedy in _OTHER_FILES:
        if data.startswith(begins):
            return why, remedy
    try:
        first = data.decode().splitlines()[0]
    except UnicodeDecodeError:
        return _NOT_UTF_8
    if found := _separated(first):
        return f"is separated by {found}", "Separate its fields with commas"
    return _UNCLOSED if _is_open(data) else _uneven(data)


def _uneven(data: bytes) -> tuple[str, str]:
    """The first row that has more or fewer fields than the line of names."""
    found: list[csv.InvalidRow] = []

    def note(row: csv.InvalidRow) -> str:
        found.append(row)
        return "skip"

    with suppress(pa.ArrowException):
        csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(use_threads=False),  # or rows have no numbers
            parse_options=csv.ParseOptions(invalid_row_handler=note),
        )
    if not found:
        return "cannot be read as a table", _AGAIN
    row = found[0]
    return (
        f"has {row.actual_columns} fields in line {row.number} and {row.expected_columns} in its first",
        "Give each line as many, separated by commas, and put a field that holds a comma in quotation marks",
    )


def _separated(names: str) -> str:
    """What a first line is separated by, in words, where it is not by commas."""
    return next((word for mark, word in _SEPARATORS.items() if mark in names and "," not in names), "")


def _is_open(data: bytes) -> bool:
    return data.count(b'"') % 2 == 1


def _has_lines(column: pa.ChunkedArray) -> bool:
    return pa.types.is_string(column.type) and any("\n" in text for text in column.to_pylist())
