"""Postgres's words for reading values, and for finding their cells fast."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.datatypes as dtypes

from understudy.table.dialect import MAX_TEXT, NUMBER, Expression, constant, infinite, read_day, read_seconds

ALL = 2**62
"""More rows than any table has."""

SMALLEST = 1e-300
"""Decimals nearer to zero are zero: some engines refuse to round them."""


@ibis.udf.scalar.builtin
def jsonb_object_field_text(
    object: dtypes.JSON(binary=True),  # type: ignore[valid-type]
    key: str,
) -> str:
    """Postgres: a binary search by the bytes of the key."""
    ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.float64, dtypes.dtype("array<float64>")), dtypes.int32)
)
def _real_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.int64, dtypes.dtype("array<int64>")), dtypes.int32)
)
def _whole_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.date, dtypes.dtype("array<date>")), dtypes.int32)
)
def _date_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.timestamp, dtypes.dtype("array<timestamp>")), dtypes.int32)
)
def _moment_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin
def normalize(text: str) -> str:
    """Postgres: Unicode's normal form C, of text in UTF-8."""
    ...


class Postgres:
    """Casts that fail stop the statement, so nothing is cast before it is known to be castable."""

    end = "$"

    def stripped(self, text: Expression) -> Expression:
        return text.strip()

    def staged(self, rows: Expression) -> Expression:
        return rows.limit(ALL)  # else the planner writes a subquery's expressions wherever they are used

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        # No text of this engine has a zero byte, and none may be sent to it.
        members = {spelling: cell for spelling, cell in known.items() if "\0" not in spelling}
        object = constant(json.dumps(members)).cast(dtypes.JSON(binary=True))
        return jsonb_object_field_text(object, text).cast("int32")

    def word(self, text: Expression) -> Expression:
        return text.strip().lower()

    def number(self, text: Expression) -> Expression:
        stripped = text.strip()
        plain = stripped.replace("_", "")
        small = plain.re_search("^[^eE]*([eE][+-]?0*[0-9]{1,3})?" + self.end)
        zero = ~plain.re_search("^[^eE]*[1-9]")
        negative = plain.startswith("-")
        shrinks = plain.re_search("[eE]-")
        huge = ibis.cases(
            (zero | shrinks, ibis.literal(0.0)),
            (negative, ibis.literal(float("-inf"))),
            else_=ibis.literal(float("inf")),
        )
        read = ibis.ifelse(small, self.decimal(plain.cast("decimal")), huge)
        sound = stripped.re_search(NUMBER + self.end) & (stripped.length() <= MAX_TEXT)
        return ibis.ifelse(sound, read, infinite(stripped, self.end))

    def decimal(self, column: Expression) -> Expression:
        largest = constant("1.7976931348623157e308").cast("decimal")
        nan = constant("NaN").cast("decimal")
        return ibis.cases(
            (column.isnull() | (column == nan), ibis.null("float64")),
            (column > largest, ibis.literal(float("inf"))),
            (column < -largest, ibis.literal(float("-inf"))),
            (column.abs() < constant(str(SMALLEST)).cast("decimal"), ibis.literal(0.0)),
            else_=column.cast("float64"),
        )

    def day(self, text: Expression) -> Expression:
        return read_day(text.strip(), self.end, lambda digits: digits.cast("int32"))

    def instant(self, text: Expression) -> Expression:
        return read_seconds(text.strip(), self.end, lambda digits: digits.cast("int32"))

    def is_nan(self, number: Expression) -> Expression:
        return number.isnan()

    def composed(self, text: Expression) -> Expression:
        return normalize(text)

    def place(self, number: Expression, starts: Sequence[Any]) -> Expression:
        bucket: Expression
        if isinstance(starts[0], dt.datetime):
            bucket = _moment_bucket(number, ibis.array(list(starts)))
        elif isinstance(starts[0], dt.date):
            bucket = _date_bucket(number, ibis.array(list(starts)))
        elif number.type().is_integer() and isinstance(starts[0], int):
            bucket = _whole_bucket(number.cast("int64"), constant(list(starts), "array<int64>"))
        else:
            edges = constant([float(start) for start in starts], "array<float64>")
            bucket = _real_bucket(
                number.cast("float64"), constant(edges, "array<float64>").cast("array<float64>")
            )
        return ibis.greatest(bucket - 1, 0)


POSTGRES = Postgres()
