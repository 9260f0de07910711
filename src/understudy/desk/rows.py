"""Rows with typed columns: what a desk is given, and what it gives back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from understudy.desk.postgres_type import TYPES, PostgresType, decoder


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column: its name, which need not be unique in a result, and the type of its values in Postgres."""

    name: str
    type: PostgresType

    @classmethod
    def of(cls, name: str, type_name: str) -> RowColumn:
        """A column of the type of that name in `pg_type`, such as `float8`."""
        return cls(name, TYPES[type_name])


@dataclass(frozen=True, slots=True)
class Rows:
    """Public rows, each a tuple with one value for each column.

    Values are those of Python: `bool`, `int`, `float`, `str`, `date`, `time`, `datetime`, `Decimal`, lists of them
    for arrays, and None. Types that Python has no value for, such as `interval`, are text as Postgres writes it.
    """

    columns: tuple[RowColumn, ...]
    rows: list[tuple[Any, ...]]

    @classmethod
    def of(cls, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]] = ()) -> Rows:
        """Rows of columns that are given as pairs of a name and the name of a type, such as ("n", "float8")."""
        return cls(tuple(RowColumn.of(*column) for column in columns), [tuple(row) for row in rows])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


def as_plain(rows: Rows) -> dict[str, Any]:
    """The rows as JSON holds them, column by column, with the types of DuckDB."""
    columns = list(zip(*rows.rows, strict=True)) if rows.rows else [()] * len(rows.columns)
    return {
        "names": [column.name for column in rows.columns],
        "types": [column.type.duck for column in rows.columns],
        "values": [[_plain(value) for value in column] for column in columns],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)


def from_plain(columns: tuple[RowColumn, ...], values: list[list[Any]]) -> Rows:
    """The rows of a reply, which holds them row by row."""
    decoders = [decoder(column.type) for column in columns]
    if not any(decoders):
        return Rows(columns, [tuple(row) for row in values])
    return Rows(
        columns,
        [
            tuple(
                value if value is None or decode is None else decode(value)
                for value, decode in zip(row, decoders, strict=True)
            )
            for row in values
        ],
    )


def recast(rows: Rows, columns: tuple[RowColumn, ...]) -> Rows:
    """The same rows under other columns: values stay as they are, or become text where the new type is text."""
    odd = [
        place
        for place, (old, new) in enumerate(zip(rows.columns, columns, strict=True))
        if old.type.duck != "VARCHAR" and new.type.duck == "VARCHAR"
    ]
    if not odd:
        return Rows(columns, rows.rows)
    return Rows(
        columns,
        [
            tuple(
                value if place not in odd or value is None or isinstance(value, str) else str(value)
                for place, value in enumerate(row)
            )
            for row in rows.rows
        ],
    )
