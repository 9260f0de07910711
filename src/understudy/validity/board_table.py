"""The tables of a board, which are its labels and the submissions: how a CSV or Parquet file is read.

A CSV file has no types. Ids are text, and stay as they are written: 0001 and 1 are two. Labels are numbers where
all of them are, unless one is a code such as 007, which a number would not be written as: then they are text.
Boards that were made before `as_written` was a term of theirs read codes as numbers, and go on so.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from understudy.errors import SourceError
from understudy.validity.predictions import missing

CODE = re.compile(r"\s*(0[0-9]+|[0-9]{19,})\s*")
"""Digits that a number would not be written with again, or too many to be held exactly."""


def read_table(path: Path, *, id: str, as_written: bool, text: Collection[str] = ()) -> pa.Table:
    """The table of a file, with the columns in `text`, and the ids in `id` if they are `as_written`, as text.

    Raises a `SourceError` where there is no such file, or it cannot be read.
    """
    types = dict.fromkeys((*text, id) if as_written else text, pa.string())
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except pa.ArrowException as error:
        raise SourceError(  # its own text may quote rows
            f"{path.name} cannot be read ({type(error).__name__})",
            problem="the file cannot be read as a table",
            remedy="bring a CSV or Parquet file",
        ) from None


def read_labels(
    path: Path, *, id: str, label: str, as_written: bool, amounts: bool
) -> tuple[list[str], NDArray[Any]]:
    """The ids and the labels of a board's own file; `amounts` are numbers, and none of them is a code.

    Raises a `SourceError` where the file cannot be read, lacks a column, repeats ids or has missing labels.
    """
    table = read_table(path, id=id, as_written=as_written)
    for name in (id, label):
        if name not in table.column_names:
            raise SourceError(f"{path.name} has no column {name}")
    ids = list(map(str, table[id].to_pylist()))
    if len(set(ids)) != len(ids):
        raise SourceError(f"{path.name} repeats ids")
    labels = as_array(table[label])
    if missing(labels):
        raise SourceError(f"{path.name} has missing labels")
    if path.suffix != ".parquet" and as_written and not amounts and labels.dtype.kind in "if":
        written = read_table(path, id=id, as_written=True, text=[label])[label].to_pylist()
        if any(map(CODE.fullmatch, written)):
            return ids, np.asarray(written)
    return ids, labels


def as_array(column: pa.ChunkedArray) -> NDArray[Any]:
    """The values as they are: None makes objects of numbers, and nothing is turned into text."""
    values = column.to_pylist()
    kinds = {type(value) for value in values}
    return np.asarray(values, dtype=None if len(kinds) == 1 else object)
