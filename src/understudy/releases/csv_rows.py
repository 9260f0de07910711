"""Synthetic rows as a CSV file: written as the declaration reads them, and free of formulas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.output import csv_text
from understudy.releases.synthetic import as_text

pc: Any = pyarrow.compute  # its functions are made at run time

ROWS = 1 << 16
"""Rows that are turned into text at once."""

_NEEDS_QUOTES = re.compile(r'[,"\r\n]|^\s|\s$')


def write_csv(path: Path, domain: Domain, table: pa.Table) -> None:
    """Write synthetic rows as UTF-8 with commas and a line of names; missing values are empty fields.

    Days are written in the declared format, numbers with the declared marks and decimals, categories and the words
    of booleans as they are declared. A text that a spreadsheet would take for a formula, be it a name or a value,
    gets an apostrophe. A field stands in quotation marks only where it needs them (`field`). In a file of one
    column missing values are `""`: readers skip empty lines.
    """
    by_column: dict[str, Attribute] = {}
    for attribute in domain:
        by_column.setdefault(attribute.column, attribute)
    attributes = [by_column[name] for name in table.column_names]
    missing = "" if len(attributes) > 1 else '""'
    with path.open("wb") as file:
        file.write((",".join(field(csv_text(name)) for name in table.column_names) + "\n").encode())
        for start in range(0, table.num_rows, ROWS):
            piece = table.slice(start, ROWS)
            columns = [
                _fields(as_text(attribute, _days(attribute, column)), missing)
                for attribute, column in zip(attributes, piece.columns, strict=True)
            ]
            file.write(_lines(columns))


def _days(attribute: Attribute, column: Any) -> Any:
    """Days at midnight as days; everything else as it is."""
    is_day = pa.types.is_timestamp(column.type) and attribute.kind == "date"
    return column.cast(pa.date32()) if is_day else column


def field(text: str) -> str:
    """A text as a field of a CSV file: in quotation marks where it has a comma, a quotation mark, a line's end,
    or a blank at one of its ends, and where it is empty, as an empty field says that there is no value.

    >>> print(field("01067"), field("-12.5"), field("1.250,00"), field('5" nail'))
    01067 -12.5 "1.250,00" "5"" nail"
    """
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _fields(column: Any, missing: str) -> Any:
    """The fields of a column of text, each value turned into one once."""
    encoded = (
        column.combine_chunks().dictionary_encode()
        if isinstance(column, pa.ChunkedArray)
        else column.dictionary_encode()
    )
    words = [field(csv_text(word)) for word in encoded.dictionary.to_pylist()]
    return pc.fill_null(pa.array(words, pa.large_string()).take(encoded.indices), missing)


def _lines(columns: list[Any]) -> Any:
    """The bytes of all rows, each with the end of its line."""
    joined = pc.binary_join_element_wise(*columns, pa.scalar(",", pa.large_string()))
    ended = pc.binary_join_element_wise(
        joined, pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
    )
    return ended.buffers()[2]
