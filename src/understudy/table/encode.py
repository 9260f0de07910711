"""Values to codes, inside the engine: an Ibis expression for each attribute.

The expression is total: every value of every type that passes `check_type`, missing or not a number included,
gets a code, and no cast can fail. So no error, and no row count, depends on what a column holds. The rule is
`Attribute.code`; tests hold the two equal.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from functools import singledispatch
from hashlib import sha256

import ibis
import ibis.expr.datatypes as dtypes
import numpy as np

from understudy.domain.attribute import WHOLE_FLOAT, Attribute, Boolean, Categories, Outside, spellings
from understudy.domain.bins import Bins
from understudy.domain.instant import seconds_of
from understudy.domain.instants import Instants
from understudy.errors import SourceError
from understudy.table.dialect import EXACT, Dialect, Edge, Expression, day_number, int32
from understudy.table.duckdb_dialect import DUCKDB
from understudy.table.intake import taken_in

NO_MOMENT = -(2**62)
"""Stands in the place of the seconds of a text that cannot be read as a timestamp."""


def code_type(attribute: Attribute) -> str:
    """The smallest unsigned type that holds every code."""
    return str(np.min_scalar_type(attribute.size - 1))


def check_type(attribute: Attribute, dtype: dtypes.DataType, *, candid: bool = False) -> None:
    """Refuse a column whose declared type cannot be read as the attribute. Looks at the schema only.

    The type is named to the custodian only (`candid`): a structure's type lists names of its fields.
    """
    readable = {
        "category": dtype.is_string() or dtype.is_integer() or dtype.is_boolean() or dtype.is_floating(),
        "boolean": dtype.is_boolean() or dtype.is_string() or dtype.is_integer() or dtype.is_floating(),
        "integer": dtype.is_numeric() or dtype.is_string(),
        "real": dtype.is_numeric() or dtype.is_string(),
        "date": dtype.is_date()
        or dtype.is_timestamp()
        or dtype.is_string()
        or (dtype.is_integer() and bool(attribute.intake.formats)),
        "timestamp": dtype.is_date()
        or dtype.is_timestamp()
        or dtype.is_string()
        or (dtype.is_integer() and bool(attribute.intake.formats)),
    }
    if not readable[attribute.kind]:
        what = f"the column {attribute.column!r} has "
        if not candid:
            what += f"a type which cannot be read as {attribute.kind}"
            raise SourceError(f"{what}: the custodian can see it with `understudy check`")
        raise SourceError(
            f"{what}type {dtype}, which cannot be read as {attribute.kind}; "
            f"change the type of {attribute.name!r} in the declaration, or the column"
        )


def encode(attribute: Attribute, column: Expression, dialect: Dialect = DUCKDB) -> Expression:
    """The code of each value of `column`, as an integer of whatever width the engine likes."""
    return cell_of(attribute, taken_in(attribute, column, dialect), dialect)


def staged(rows: Expression, attributes: Iterable[Attribute], dialect: Dialect) -> Expression:
    """The rows with a column for each attribute whose text is written otherwise than an engine reads it.

    The engine makes that column once, where an expression would be made at every place where it is used.
    """
    listed = list(attributes)
    taken = {taken_name(a): taken_in(a, rows[a.column], dialect) for a in listed if a.intake}
    rows = dialect.staged(rows.mutate(**taken)) if taken else rows
    written = {a: taken_column(rows, a) for a in listed if a.kind == "timestamp"}
    timed = {
        _timed_name(a): _seconds(text, dialect) for a, text in written.items() if text.type().is_string()
    }
    return dialect.staged(rows.mutate(**timed)) if timed else rows


def taken_column(rows: Expression, attribute: Attribute) -> Expression:
    """The column of an attribute in rows that were `staged`."""
    if attribute.kind == "timestamp" and _timed_name(attribute) in rows.columns:
        return rows[_timed_name(attribute)]
    return rows[taken_name(attribute) if attribute.intake else attribute.column]


def taken_name(attribute: Attribute) -> str:
    """A short name for a column that was taken in, of which no attribute has the same."""
    return f"taken_{sha256(attribute.identity.encode()).hexdigest()[:24]}"


def _timed_name(attribute: Attribute) -> str:
    """The same for the seconds that the text of a timestamp says."""
    return f"timed_{taken_name(attribute)}"


def _seconds(text: Expression, dialect: Dialect) -> Expression:
    """The seconds that texts say; null where there is no text, and `NO_MOMENT` where one cannot be read."""
    read = ibis.coalesce(dialect.instant(text), ibis.literal(NO_MOMENT, type="int64"))
    return ibis.ifelse(text.isnull(), ibis.null("int64"), read)


@singledispatch
def cell_of(attribute: Attribute, column: Expression, dialect: Dialect) -> Expression:
    """The code of each value of a column that was taken in."""
    raise TypeError(f"no encoding for {type(attribute).__name__}")


@cell_of.register
def _(attribute: Categories, column: Expression, dialect: Dialect) -> Expression:
    cell = find_cell(attribute, column, dialect)
    missing = is_missing(column, dialect)
    return ibis.ifelse(
        missing, int32(attribute.null_cell), ibis.coalesce(cell, int32(attribute.outside_cell))
    )


@cell_of.register
def _(attribute: Boolean, column: Expression, dialect: Dialect) -> Expression:
    if column.type().is_boolean():
        return ibis.coalesce(column.cast("int32"), int32(attribute.null_cell))
    word = dialect.word(as_text(column))
    return ibis.cases(
        (word.isin(attribute.TRUE), int32(1)),
        (word.isin(attribute.FALSE), int32(0)),
        else_=int32(attribute.null_cell),
    )


@cell_of.register
def _(attribute: Bins, column: Expression, dialect: Dialect) -> Expression:
    number, missing = as_number(attribute, column, dialect)
    cell = _bin(attribute, number, dialect)
    if attribute.outside is not Outside.CLAMP:
        cell = ibis.ifelse(within(attribute, number), cell, int32(attribute.outside_cell))
    return ibis.ifelse(missing, int32(attribute.null_cell), cell)


def as_number(attribute: Bins, column: Expression, dialect: Dialect) -> tuple[Expression, Expression]:
    """The column as what is compared with the edges, and where that is missing or not a number."""
    dtype = column.type()
    if attribute.kind == "timestamp":
        if dtype.is_string():
            number = dialect.instant(column)
        elif dtype.is_integer():  # seconds, of text that was staged
            number = column.nullif(ibis.literal(NO_MOMENT, type="int64"))
        else:
            number = column.cast("timestamp")
    elif attribute.kind == "date":
        number = dialect.day(column) if dtype.is_string() else column.cast("date")
    elif dtype.is_string():
        number = dialect.number(column)  # null, where it cannot be read
    else:
        number = (
            dialect.decimal(column) if dtype.is_decimal() else column
        )  # wide ones overflow in comparisons
    if number.type().is_floating():  # a narrow float would be compared with edges as narrow as itself
        number = number.cast("float64")
    missing = number.isnull()
    if number.type().is_floating():
        missing = missing | dialect.is_nan(number)
    return number, missing


def within(attribute: Bins, number: Expression) -> Expression:
    """Whether a number lies between the first and the last edge; a moment, before the step after the last one."""
    if isinstance(attribute, Instants):
        begin, end = _edges((attribute.starts[0], attribute.end), number)
        return (number >= ibis.literal(begin)) & (number < ibis.literal(end))
    first, last = _edges((attribute.starts[0], attribute.upper), number)
    return (number >= ibis.literal(first)) & (number <= ibis.literal(last))


def is_missing(column: Expression, dialect: Dialect) -> Expression:
    """Whether there is no value, or a number that is not one."""
    if column.type().is_floating():
        return column.isnull() | dialect.is_nan(column.cast("float64"))
    return column.isnull()


def as_text(column: Expression) -> Expression:
    """How a value is written; of a float, the whole number that it is, and null where it is none."""
    if column.type().is_string():
        return column
    if not column.type().is_floating():
        return column.cast("string")
    number = column.cast("float64")  # NaN is above every bound, and so is left out
    whole = (number >= -WHOLE_FLOAT) & (number <= WHOLE_FLOAT) & (number == number.floor())
    return ibis.ifelse(whole, number, ibis.null("float64")).cast("int64").cast("string")


def find_cell(attribute: Categories, column: Expression, dialect: Dialect) -> Expression:
    """The declared cell of each text; null where it is none."""
    text = as_text(column)
    known = {spelling: cell for cell, value in enumerate(attribute.values) for spelling in spellings(value)}
    return dialect.find(text, known)


def _bin(attribute: Bins, number: Expression, dialect: Dialect) -> Expression:
    first, last = attribute.starts[0], attribute.starts[-1]
    if number.type().is_integer() and isinstance(first, int) and last - first < EXACT:
        width = attribute.starts[1] - first if attribute.proper_size > 1 else 1
        if attribute.starts == tuple(range(first, last + 1, width)):  # equal bins: arithmetic will do
            inside = ibis.greatest(ibis.least(number, last), first)
            # A narrow column's own type may overflow in the subtraction, and an error would tell of its values.
            steps = inside.cast("int64") - first
            return steps if width == 1 else steps // width
    return dialect.place(number, _edges(attribute.starts, number))


def step_of(attribute: Bins, column: Expression, dialect: Dialect) -> Expression:
    """The step of a measure nearest to each value of a column that was taken in: the rule of `Bins.step_of`.

    Values are cut to the bounds before anything is computed, in a type that holds both, so that nothing overflows
    and no cast fails; a number that is not one lies above every bound for the engines, and is replaced at the end.
    """
    assert attribute.resolution is not None
    number, missing = as_number(attribute, column, dialect)
    if number.type().is_integer() and attribute.kind == "integer":
        first, step = int(attribute.starts[0]), int(attribute.resolution)
        inside: Expression = (
            ibis.greatest(ibis.least(number, int(attribute.upper)), first).cast("int64") - first
        )
        steps = (
            inside
            if step == 1
            else ((inside + step // 2).cast("float64") / float(step)).floor().cast("int64")
        )
    else:
        low, high = float(attribute.starts[0]), float(attribute.upper)
        inside = ibis.greatest(ibis.least(number.cast("float64"), ibis.literal(high)), ibis.literal(low))
        steps = ((inside - low) / float(attribute.resolution) + 0.5).floor().cast("int64")
    cut = ibis.greatest(ibis.least(steps, attribute.steps), 0).cast("int64")
    return ibis.ifelse(missing, ibis.literal(0, type="int64"), cut)


def _edges(edges: tuple[Edge, ...], number: Expression) -> list[Edge]:
    """Edges as the numbers that they are compared with: days as `day_number`, or moments as seconds."""
    if number.type().is_integer() and isinstance(edges[0], dt.datetime):
        return [seconds_of(edge) for edge in edges if isinstance(edge, dt.datetime)]
    if number.type().is_integer():
        return [day_number(edge) if isinstance(edge, dt.date) else edge for edge in edges]
    return list(edges)
