"""Rows with typed columns: what a desk is given, and what it gives back."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Sequence
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


def shape_as_plain(rows: Rows) -> dict[str, Any]:
    """The columns as JSON holds them, with the types of DuckDB."""
    return {
        "names": [column.name for column in rows.columns],
        "types": [column.type.duck for column in rows.columns],
    }


def values_as_plain(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """The values of some rows, column by column, each column as a text of JSON; empty where there is no row."""
    return [json.dumps([_plain(value) for value in column]) for column in zip(*rows, strict=True)]


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
    """The same rows under other columns: a value becomes one of the new type where that is a number or text."""
    converters = [
        None if old.type == new.type else _converter(new.type)
        for old, new in zip(rows.columns, columns, strict=True)
    ]
    if not any(converters):
        return Rows(columns, rows.rows)
    return Rows(
        columns,
        [
            tuple(
                value if value is None or convert is None else convert(value)
                for value, convert in zip(row, converters, strict=True)
            )
            for row in rows.rows
        ],
    )


def _converter(kind: PostgresType) -> Callable[[Any], Any] | None:
    if kind.is_array:
        return None
    if kind.duck == "VARCHAR":
        return str
    if kind.duck in ("SMALLINT", "INTEGER", "BIGINT", "UINTEGER"):
        return int
    return decoder(kind) if kind.duck.startswith(("FLOAT", "DOUBLE", "DECIMAL")) else None
