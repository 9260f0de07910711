"""Values to codes, inside the engine: an Ibis expression for each attribute.

The expression is total: every value of every type that passes `check_type`, missing or not a number included,
gets a code, and no cast can fail. So no error, and no row count, depends on what a column holds. The rule is
`Attribute.code`; tests hold the two equal.
"""

from __future__ import annotations

import datetime as dt
from functools import singledispatch
from typing import Any

import ibis
import ibis.expr.datatypes as dtypes
import numpy as np

from understudy.attribute import Attribute, Boolean, Categories, Outside, spellings
from understudy.bins import Bins
from understudy.errors import SourceError

Expression = Any
"""An Ibis column; Ibis types its columns at run time."""


def code_type(attribute: Attribute) -> str:
    """The smallest unsigned type that holds every code."""
    return str(np.min_scalar_type(attribute.size - 1))


def check_type(attribute: Attribute, dtype: dtypes.DataType) -> None:
    """Refuse a column whose declared type cannot be read as the attribute. Looks at the schema only."""
    readable = {
        "category": dtype.is_string() or dtype.is_integer() or dtype.is_boolean(),
        "boolean": dtype.is_boolean() or dtype.is_string() or dtype.is_integer(),
        "integer": dtype.is_numeric() or dtype.is_string(),
        "real": dtype.is_numeric() or dtype.is_string(),
        "date": dtype.is_date() or dtype.is_timestamp() or dtype.is_string(),
    }
    if not readable[attribute.kind]:
        raise SourceError(
            f"the column {attribute.column!r} has type {dtype}, which cannot be read as {attribute.kind}; "
            f"change the type of {attribute.name!r} in the declaration, or the column"
        )


@singledispatch
def encode(attribute: Attribute, column: Expression) -> Expression:
    """The code of each value of `column`, as an integer of whatever width the engine likes."""
    raise TypeError(f"no encoding for {type(attribute).__name__}")


@encode.register
def _(attribute: Categories, column: Expression) -> Expression:
    text = column if column.type().is_string() else column.cast("string")
    known = {spelling: cell for cell, value in enumerate(attribute.values) for spelling in spellings(value)}
    # One search in a constant array: many times faster than a condition for each value.
    place: Expression = ibis.array(list(known)).index(text)
    cell = place if list(known.values()) == [*range(len(known))] else ibis.array(list(known.values()))[place]
    return ibis.cases(
        (column.isnull(), _code(attribute.null_cell)),
        (place >= 0, cell),
        else_=_code(attribute.outside_cell),
    )


@encode.register
def _(attribute: Boolean, column: Expression) -> Expression:
    text = column.cast("string").strip().lower()
    return ibis.cases(
        (text.isin(attribute.TRUE), _code(1)),
        (text.isin(attribute.FALSE), _code(0)),
        else_=_code(attribute.null_cell),
    )


@encode.register
def _(attribute: Bins, column: Expression) -> Expression:
    number = _comparable(attribute, column)
    missing = number.isnull() | number.isnan() if number.type().is_floating() else number.isnull()
    cell = _bin(attribute, number)
    if attribute.outside is not Outside.CLAMP:
        inside = (number >= _edge(attribute.starts[0])) & (number <= _edge(attribute.upper))
        cell = ibis.ifelse(inside, cell, _code(attribute.outside_cell))
    return ibis.ifelse(missing, _code(attribute.null_cell), cell)


def _bin(attribute: Bins, number: Expression) -> Expression:
    first, last = attribute.starts[0], attribute.starts[-1]
    if number.type().is_integer() and isinstance(first, int):
        width = attribute.starts[1] - first if attribute.proper_size > 1 else 1
        if attribute.starts == tuple(range(first, last + 1, width)):  # equal bins: arithmetic will do
            inside = ibis.greatest(ibis.least(number, last), first)
            # A narrow column's own type may overflow in the subtraction, and an error would tell of its values.
            steps = inside.cast("int64") - first
            return steps if width == 1 else steps // width
    return _search(attribute, number, 0, attribute.proper_size)


def _search(attribute: Bins, number: Expression, low: int, high: int) -> Expression:
    """Binary search over the starts low..high-1, as nested conditions."""
    if high - low == 1:
        return _code(low)
    middle = (low + high) // 2
    return ibis.ifelse(
        number < _edge(attribute.starts[middle]),
        _search(attribute, number, low, middle),
        _search(attribute, number, middle, high),
    )


def _comparable(attribute: Bins, column: Expression) -> Expression:
    """The column as something that can be compared with the edges; what cannot be read becomes null."""
    dtype = column.type()
    if attribute.kind == "date":
        return column.try_cast("date") if dtype.is_string() else column.cast("date")
    if dtype.is_string():
        return column.try_cast("float64")
    return column.cast("float64") if dtype.is_decimal() else column  # wide decimals overflow in comparisons


def _edge(edge: int | float | dt.date) -> Expression:
    return ibis.literal(edge)


def _code(cell: int) -> Expression:
    return ibis.literal(cell, type="int32")
