"""Synthetic rows as a CSV file: written as the declaration reads them, and free of formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.output import csv_text
from understudy.releases.synthetic import as_text

ROWS = 1 << 16
"""Rows that are turned into text at once."""


def write_csv(path: Path, domain: Domain, table: pa.Table) -> None:
    """Write synthetic rows as UTF-8 with commas and a line of names; missing values are empty fields.

    Days are written in the declared format, numbers with the declared marks and decimals, categories and the words
    of booleans as they are declared. A text that a spreadsheet would take for a formula, be it a name or a value,
    gets an apostrophe.
    """
    by_column: dict[str, Attribute] = {}
    for attribute in domain:
        by_column.setdefault(attribute.column, attribute)
    attributes = [by_column[name] for name in table.column_names]
    names = [csv_text(name) for name in table.column_names]
    with pyarrow.csv.CSVWriter(path, pa.schema([(name, pa.string()) for name in names])) as writer:
        for start in range(0, table.num_rows, ROWS):
            piece = table.slice(start, ROWS)
            columns = [
                _defused(as_text(attribute, _days(attribute, column)))
                for attribute, column in zip(attributes, piece.columns, strict=True)
            ]
            writer.write_table(pa.table(columns, names=names))


def _days(attribute: Attribute, column: Any) -> Any:
    """Days at midnight as days; everything else as it is."""
    is_day = pa.types.is_timestamp(column.type) and attribute.kind == "date"
    return column.cast(pa.date32()) if is_day else column


def _defused(column: Any) -> Any:
    """The text of a column with an apostrophe before what acts as a formula."""
    encoded = (
        column.combine_chunks().dictionary_encode()
        if isinstance(column, pa.ChunkedArray)
        else column.dictionary_encode()
    )
    words = [csv_text(word) for word in encoded.dictionary.to_pylist()]
    return pa.array(words, pa.string()).take(encoded.indices)
