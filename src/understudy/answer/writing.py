"""Answers as files: Parquet, CSV or JSON, written piece by piece, however many cells there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any

from understudy.answer.answer import Answer
from understudy.answer.frames import told_numbers
from understudy.answer.plain import plain_scalar
from understudy.answer.sql_answer import SqlAnswer
from understudy.errors import ParameterError
from understudy.output import csv_text, new_file

FORMATS = (".parquet", ".csv", ".json")

ROWS = 1 << 16
"""Rows of an answer that are turned into a table at once."""


def check_format(path: Path) -> None:
    """Refuse, before anything is asked, a file that nobody here writes."""
    if path.suffix.lower() not in FORMATS:
        raise ParameterError(
            f"answers are written as {', '.join(FORMATS)}, not as {path.suffix or path.name!r}"
        )


def write_answer(path: Path, answer: Answer | SqlAnswer, *, overwrite: bool = False) -> int:
    """Write an answer's rows, with their errors or bounds, into a new file; how many rows there are.

    Columns are those of `to_frame`. JSON is a list with an object for each row; what has no bound is null there.
    In CSV a text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    check_format(path)
    written = 0
    with new_file(path, overwrite=overwrite) as file:
        pieces = tables(answer)
        if path.suffix.lower() == ".json":
            return _write_json(file, pieces)
        writer: Any = None
        for table in map(_defused, pieces) if path.suffix.lower() == ".csv" else pieces:
            if writer is None:
                writer = _writer(file, table.schema, path.suffix.lower())
            writer.write_table(table)
            written += table.num_rows
        if writer is not None:
            writer.close()
    return written


def _writer(file: IO[bytes], schema: Any, ending: str) -> Any:
    if ending == ".csv":
        return import_module("pyarrow.csv").CSVWriter(file, schema)
    return import_module("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")


def _defused(table: Any) -> Any:
    """The table with names and texts that a spreadsheet does not take for formulas."""
    pa: Any = import_module("pyarrow")
    columns = [
        pa.array([None if word is None else csv_text(word) for word in column.to_pylist()], column.type)
        if pa.types.is_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[csv_text(name) for name in table.column_names])


def _write_json(file: IO[bytes], pieces: Iterator[Any]) -> int:
    written = 0
    file.write(b"[")
    for table in pieces:
        for row in table.to_pylist():
            text = json.dumps({key: plain_scalar(value) for key, value in row.items()}, ensure_ascii=False)
            file.write((",\n" if written else "\n").encode() + text.encode())
            written += 1
    file.write(b"\n]\n")
    return written


def tables(answer: Answer | SqlAnswer) -> Iterator[Any]:
    """The rows of an answer as Arrow tables of at most `ROWS` rows each, with the same columns; at least one."""
    if isinstance(answer, SqlAnswer):
        whole: Any = answer.to_frame()  # a statement's rows are values already
        yield from (whole.slice(i, ROWS) for i in range(0, max(whole.num_rows, 1), ROWS))
        return
    pa: Any = import_module("pyarrow")
    by, labels = answer.query.by, answer.query.cell_labels()
    numbers = {name: told.reshape(-1) for name, told in told_numbers(answer).items()}
    names = list(by)
    for name in numbers:
        names.append(name + "_" * sum(other.rstrip("_") == name for other in by))
    for start in range(0, answer.value.size, ROWS):
        cells = list(islice(labels, ROWS))
        columns = [pa.array([cell[i] for cell in cells], pa.string()) for i in range(len(by))]
        columns += [pa.array(values[start : start + ROWS]) for values in numbers.values()]
        yield pa.table(columns, names=names)
