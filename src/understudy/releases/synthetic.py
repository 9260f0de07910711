"""Rows from a stand-in: a table with the source's columns, made of public numbers alone.

Everything here is post-processing and costs nothing; the generator that draws rows protects nobody, so it may be
seeded, and the same seed gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import floor, nextafter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute, Boolean, Categories, Outside, unique_label
from understudy.domain.bins import Bins
from understudy.domain.domain import CELL_LIMIT, Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.query.projection import Projection
from understudy.releases.column_types import (
    as_single,
    bin_ends,
    column_type,
    rounded,
    whole_values,
)
from understudy.releases.written_moments import Drawable

pc: Any = pyarrow.compute  # its functions are made at run time

MAX_ROWS = 10**9

Codes = dict[str, NDArray[np.int64]]
"""For each attribute, one code for each row."""


class Within(StrEnum):
    """Which value of its bin an ordered attribute shows: any one with equal chance, or the middle one."""

    UNIFORM = "uniform"
    MIDDLE = "middle"


def as_rule(text: str) -> Within:
    """The rule of that name."""
    if text not in tuple(Within):
        raise ParameterError(f"values are drawn within their bins by uniform or middle, not {text!r}")
    return Within(text)


def sample_codes(standin: Projection, rows: int, rng: np.random.Generator) -> Codes:
    """Rows that follow the stand-in, in random order.

    A stand-in with a sampler of its own (`sample_codes(rows, rng=…)`) uses it. Any other is spread over all cells
    of its domain and rounded systematically.
    """
    if not 0 <= rows <= MAX_ROWS:
        raise ParameterError(f"a synthetic table has between 0 and {MAX_ROWS:,} rows, not {rows:,}")
    domain = standin.domain
    own = getattr(standin, "sample_codes", None)
    if own is not None:
        return _by_name(domain, own(rows, rng=rng), rows)
    if (cells := domain.size()) > CELL_LIMIT:
        raise TooLargeError("a stand-in that cannot draw rows itself", cells=cells, limit=CELL_LIMIT)
    cell = systematic(standin.project(domain.names).ravel(), rows, rng)
    rng.shuffle(cell)
    codes = np.unravel_index(cell, domain.shape())
    return {name: column.astype(np.int64) for name, column in zip(domain.names, codes, strict=True)}


def systematic(rates: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The cells of `rows` rows, in order: any run of consecutive cells of mass p gets ⌊p·rows⌋ or ⌈p·rows⌉ rows.

    So every cell, and every marginal over the first attributes of a table in C order, is off by less than one
    row. One random number sets the comb that reads the cumulated rates.
    """
    total = np.cumsum(np.maximum(rates, 0.0))
    if not (total.size and np.isfinite(total[-1]) and total[-1] > 0):
        raise ParameterError("a stand-in's rates must be finite and sum to more than 0")
    ends = np.floor(total / total[-1] * rows + rng.random()).astype(np.int64)
    ends[total == total[-1]] = rows  # the last cells that hold mass end the comb, whatever was rounded
    return np.repeat(np.arange(rates.size), np.diff(np.minimum(ends, rows), prepend=0))


def _by_name(domain: Domain, drawn: Any, rows: int) -> Codes:
    """Codes by attribute, from a mapping or from a matrix whose columns are in domain order."""
    if isinstance(drawn, Mapping):
        columns = {name: np.asarray(drawn[name], dtype=np.int64) for name in domain.names}
    else:
        matrix = np.asarray(drawn, dtype=np.int64)
        columns = {name: matrix[:, i] for i, name in enumerate(domain.names)}
    if any(column.shape != (rows,) for column in columns.values()):
        raise ParameterError(f"the stand-in drew another number of rows than {rows:,}")
    return columns


def as_table(
    domain: Domain,
    codes: Mapping[str, NDArray[np.int64]],
    rng: np.random.Generator,
    *,
    within: Within = Within.UNIFORM,
    types: Mapping[str, str] | None = None,
) -> pa.Table:
    """Codes as values, in columns named and typed as the source's (`types`: of each column, where known).

    The rules are such that the declaration reads the very same codes back from the table:

    category             the declared value; the cell of all others becomes its label, other where that is not
                         declared, and in a column of numbers one that is not declared
    integer, real, date  a value inside the bin (`within`); `other` is missing, or, where missing values have a
                         cell of their own, a value just outside the bounds. In a column of text it is written as
                         the declaration says that it is read
    boolean              true or false; in a column of text the declared words for that
    null                 missing
    """
    types = types or {}
    columns = [
        _column(attribute, codes[attribute.name], rng, Within(within), types.get(attribute.column, ""))
        for attribute in domain
    ]
    names = [attribute.column for attribute in domain]
    kept = {name: i for i, name in reversed([*enumerate(names)])}  # two attributes may cut one column
    return pa.table({name: columns[i] for name, i in sorted(kept.items(), key=lambda item: item[1])})


def _column(
    attribute: Attribute, codes: NDArray[np.int64], rng: np.random.Generator, within: Within, source: str
) -> pa.Array:
    target = column_type(attribute, source)
    missing = np.zeros(codes.shape, bool)
    if attribute.null:
        missing = codes == attribute.size - 1
    if isinstance(attribute, Bins):
        values = _numbers(attribute, codes, missing, rng, within, target)
        return (
            _written(attribute, values, target)
            if target in (pa.string(), *_DIGITS)
            else _cast(values, target)
        )
    if isinstance(attribute, Boolean):
        values = pa.array(codes == 1, mask=missing)
        return as_text(attribute, values) if target == pa.string() else values.cast(target)
    assert isinstance(attribute, Categories)
    return cell_values(attribute, target).take(pa.array(codes, mask=missing))


_DIGITS = (pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
"""Types in which a day may be a number, such as 20241231."""


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(38, target.scale))
    return values.cast(target)


def _written(attribute: Bins, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Numbers and days as the declaration reads them: as text, or days as numbers of digits."""
    if attribute.kind not in ("date", "timestamp") and target != pa.string():
        return values.cast(target)
    return as_text(attribute, values, digits=target != pa.string()).cast(target)


def as_text(
    attribute: Attribute, values: pa.Array | pa.ChunkedArray, *, digits: bool = False
) -> pa.Array | pa.ChunkedArray:
    """Values of an attribute as the text that its declaration reads as these values; missing ones stay missing.

    With `digits`, days and moments are written as whole numbers, such as 20241231.
    """
    if isinstance(attribute, Boolean) and values.type == pa.bool_():
        return pc.if_else(values, *attribute.words)
    if not isinstance(attribute, Bins) or values.type == pa.string():
        return values.cast(pa.string())
    if attribute.kind in ("date", "timestamp") and pa.types.is_integer(values.type):
        return values.cast(pa.string())
    if attribute.kind == "timestamp":
        values = values.cast(pa.timestamp("s"))
    kinds = values.unique().to_pylist()
    written = [
        None if value is None else attribute.intake.written(value, attribute.decimals, digits=digits)
        for value in kinds
    ]
    return pa.array(written, pa.string()).take(pc.index_in(values, pa.array(kinds, values.type)))


def cell_values(attribute: Categories, target: pa.DataType) -> pa.Array:
    """What the cells of a category show, that of missing values apart."""
    other = attribute.outside is Outside.OTHER
    if target == pa.string():
        return pa.array([*attribute.values, *([_other_word(attribute)] if other else [])], target)
    numbers = whole_values(attribute)
    if target == pa.bool_() or numbers is None:
        return pa.array(
            [*(value == "true" for value in attribute.values), *([None] if other else [])], target
        )
    beyond = (
        max(numbers) + 1 if attribute.null else None
    )  # without a null cell, what is missing counts as other
    return pa.array([*numbers, *([beyond] if other else [])], target)


def _other_word(attribute: Categories) -> str:
    """The label of the cell, or a longer one where that is a text that stands for a missing value."""
    return unique_label(attribute.other_label, attribute.intake.missing)


def _numbers(
    attribute: Bins,
    codes: NDArray[np.int64],
    missing: NDArray[np.bool_],
    rng: np.random.Generator,
    within: Within,
    target: pa.DataType,
) -> pa.Array:
    """Values inside their bins: integers, reals that the type holds, days, or moments in whole steps."""
    other = (codes == attribute.proper_size) & ~missing
    proper = np.where(codes < attribute.proper_size, codes, 0)
    if attribute.discrete:
        shown = Drawable.of(attribute, digits=target in _DIGITS)
        step = shown.step[proper]
        low, high = shown.low[proper] // step, shown.high[proper] // step
        if within is Within.UNIFORM:
            values = rng.integers(low, high, endpoint=True) if proper.size else low
        else:
            values = low + (high - low) // 2
        values, outer = values * step, shown.beyond
    else:
        values, outer = _reals(attribute, proper, rng, within, target), _next_real(attribute, target)
    # Where missing values have no cell of their own, a missing value is one of `other`.
    beyond = outer if attribute.outside is Outside.OTHER and attribute.null else None
    if beyond is None:
        missing = missing | other
    else:
        values = np.where(other, beyond, values)
    if attribute.kind == "date":
        return pa.array(values.astype(np.int32), mask=missing).cast(pa.date32())
    if attribute.kind == "timestamp":
        return pa.array(values, mask=missing).cast(pa.timestamp("s"))
    return pa.array(values, mask=missing)


def _reals(
    attribute: Bins,
    cells: NDArray[np.int64],
    rng: np.random.Generator,
    within: Within,
    target: pa.DataType,
) -> NDArray[np.float64]:
    """A real number of each cell, with as many digits as the declaration and the type let it have."""
    edges = np.array([*attribute.starts, attribute.upper])
    low, high = edges[cells], edges[cells + 1]
    last = bin_ends(attribute)[1][cells]
    part = rng.random(cells.shape) if within is Within.UNIFORM else 0.5
    values = np.clip(low + part * (high - low), low, last)
    if attribute.decimals is not None:
        values = rounded(values, low, last, attribute.decimals)
    if pa.types.is_decimal(target):
        values = rounded(values, low, last, target.scale)
    return as_single(values, low, last) if target == pa.float32() else values


def _next_real(attribute: Bins, target: pa.DataType) -> float:
    """A number above all bins that the type holds."""
    if pa.types.is_decimal(target):
        return floor(attribute.upper) + 1.0
    beyond = nextafter(attribute.upper, np.inf)
    if target == pa.float32():
        beyond = float(np.nextafter(np.float32(beyond), np.float32(np.inf)))
    return beyond
