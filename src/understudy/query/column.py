"""The columns of an answer, which are known before anything is paid for: names, kinds and types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

ColumnKind = Literal["key", "value", "derived"]
ColumnType = Literal["int", "float", "text", "bool", "date", "timestamp"]

_TYPES: dict[type, ColumnType] = {
    bool: "bool", int: "int", float: "float", str: "text", dt.date: "date", dt.datetime: "timestamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer.

    name  unique in its answer
    kind  `key`: what groups are called, which the declaration makes public; `value`: released numbers, with
          bounds; or `derived`: what a statement made of released rows, without bounds
    type  of its values in Python: `int`, `float`, `text`, `bool`, `date` or `timestamp` (a `datetime` in UTC).
          Released numbers are `float`, and quantiles of dates and timestamps are such themselves; any value may be
          missing. Labels of bins are `text`, and so is a column of keys of which some are labels, such as the cell
          of all other values beside whole numbers
    """

    name: str
    kind: ColumnKind
    type: ColumnType


def type_of(keys: Iterable[object]) -> ColumnType:
    """The type of a column of keys, from the public values that it can show."""
    found: set[ColumnType] = {_TYPES[type(key)] for key in keys if key is not None}
    return found.pop() if len(found) == 1 else "text"


def cell_columns(by: tuple[str, ...], measure: str = "value") -> tuple[Column, ...]:
    """The columns of an answer with one number for each cell of a marginal: labels, and the number.

    They are those that the answer's frame begins with: `measure` is what heads the numbers, with an underscore
    where an attribute has that name.
    """
    while measure in by:
        measure += "_"
    return (*(Column(label, "key", "text") for label in by), Column(measure, "value", "float"))
