"""Rows from a stand-in: a table with the source's columns, made of public numbers alone.

Everything here is post-processing and costs nothing; the generator that draws rows protects nobody, so it may be
seeded, and the same seed gives the same rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum
from math import nextafter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute, Boolean, Categories, Outside, unique_label
from understudy.domain.bins import Bins
from understudy.domain.domain import CELL_LIMIT, Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.query.projection import Projection

MAX_ROWS = 10**9

Codes = dict[str, NDArray[np.int64]]
"""For each attribute, one code for each row."""

_DAY_ZERO = dt.date(1970, 1, 1)


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

    category            the declared value; the cell of all others becomes its label, other where that is not
                        declared integer, real, date a value inside the bin (`within`); `other` is missing,
                        or, where missing values have a cell of their own, a value just outside the bounds
    boolean             true or false
    null                missing
    """
    types = types or {}
    columns = [
        _values(attribute, codes[attribute.name], rng, Within(within)).cast(
            _type(attribute, types.get(attribute.column, ""))
        )
        for attribute in domain
    ]
    names = [attribute.column for attribute in domain]
    kept = {name: i for i, name in reversed([*enumerate(names)])}  # two attributes may cut one column
    return pa.table({name: columns[i] for name, i in sorted(kept.items(), key=lambda item: item[1])})


def _values(
    attribute: Attribute, codes: NDArray[np.int64], rng: np.random.Generator, within: Within
) -> pa.Array:
    missing = np.zeros(codes.shape, bool)
    if attribute.null:
        missing = codes == attribute.size - 1
    if isinstance(attribute, Bins):
        return _numbers(attribute, codes, missing, rng, within)
    if isinstance(attribute, Boolean):
        return pa.array(codes == 1, mask=missing)
    assert isinstance(attribute, Categories)
    words = [*attribute.values, *([_other_word(attribute)] if attribute.outside is Outside.OTHER else [])]
    return pa.array(words, pa.string()).take(pa.array(codes, mask=missing))


def _other_word(attribute: Categories) -> str:
    """The label of the cell, or a longer one where that is a text that stands for a missing value."""
    return unique_label(attribute.other_label, attribute.intake.missing)


def _numbers(
    attribute: Bins,
    codes: NDArray[np.int64],
    missing: NDArray[np.bool_],
    rng: np.random.Generator,
    within: Within,
) -> pa.Array:
    """Values inside their bins: integers, reals, or days since 1970 that are dates."""
    other = (codes == attribute.proper_size) & ~missing
    proper = np.where(codes < attribute.proper_size, codes, 0)
    if attribute.discrete:
        starts = np.array([_whole(start) for start in attribute.starts], np.int64)
        lasts = np.append(starts[1:] - 1, _whole(attribute.upper))
        low, high = starts[proper], lasts[proper]
        if within is Within.UNIFORM:
            values = rng.integers(low, high, endpoint=True) if proper.size else low
        else:
            values = low + (high - low) // 2
    else:
        edges = np.array([*attribute.starts, attribute.upper])
        low, high = edges[proper], edges[proper + 1]
        part = rng.random(proper.shape) if within is Within.UNIFORM else 0.5
        below = np.nextafter(high, low)  # the end belongs to the next bin
        values = np.clip(low + part * (high - low), low, below)
        if attribute.decimals is not None:
            values = _rounded(values, low, below, attribute.decimals)
    beyond = _outside(attribute)
    if beyond is None:
        missing = missing | other
    else:
        values = np.where(other, beyond, values)
    if attribute.kind == "date":
        return pa.array(values.astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(values, mask=missing)


def _rounded(
    values: NDArray[np.float64], low: NDArray[np.float64], last: NDArray[np.float64], decimals: int
) -> NDArray[np.float64]:
    """Values with so many decimals, in their own bin; a bin that has no such value keeps what was drawn."""
    step = 10.0**-decimals
    rounded, settled = values, np.zeros(values.shape, bool)
    for candidate in (values, values - step, values + step):
        near = np.round(candidate, decimals)
        fits = ~settled & (near >= low) & (near <= last)
        rounded, settled = np.where(fits, near, rounded), settled | fits
    return rounded


def _outside(attribute: Bins) -> float | int | None:
    """A value that the declaration reads as `other`; None where a missing value does that already."""
    if attribute.outside is not Outside.OTHER or not attribute.null:
        return None
    if not attribute.discrete:
        return nextafter(attribute.upper, np.inf)
    upper, lower = _whole(attribute.upper), _whole(attribute.starts[0])
    return upper + 1 if upper < 2**63 - 1 else lower - 1 if lower > -(2**63) else None


def _whole(edge: int | dt.date) -> int:
    return (edge - _DAY_ZERO).days if isinstance(edge, dt.date) else int(edge)


_INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _type(attribute: Attribute, source: str) -> pa.DataType:
    """The source's own type where it holds every declared value, else the natural one of the attribute.

    `source` is the engine's name of the type, such as int32 or timestamp(6); columns of text files are typed by
    their declaration.
    """
    source = source.lstrip("!")  # a column that promises to hold no missing value
    if attribute.kind == "date":
        return pa.timestamp("us") if source.startswith("timestamp") else pa.date32()
    if attribute.kind == "integer":
        assert isinstance(attribute, Bins)
        bounds = (_whole(attribute.starts[0]), _whole(attribute.upper) + int(attribute.null))
        if source in _INTEGERS and _holds(source, *bounds):
            return pa.type_for_alias(source)
        return pa.float64() if source.startswith("float") else pa.int64()
    if attribute.kind == "boolean":
        return pa.int64() if source in _INTEGERS else pa.bool_()
    if attribute.kind == "real":
        return pa.float64()
    return pa.string()


def _holds(name: str, low: int, high: int) -> bool:
    limits = np.iinfo(name)
    return int(limits.min) <= low and high <= int(limits.max)


def framed(table: pa.Table, backend: str) -> Any:
    """The table as a pandas, polars or Arrow frame; missing values do not turn whole numbers into reals."""
    if backend == "arrow":
        return table
    if backend == "polars":
        import polars

        return polars.from_arrow(table)
    if backend == "pandas":
        import pandas

        nullable = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        kept = [field.name for field in table.schema if not table[field.name].null_count]
        whole = table.select([name for name in table.column_names if name not in kept])
        frames = [part.to_pandas(types_mapper=mapper, date_as_object=False)
                  for part, mapper in ((table.select(kept), None), (whole, nullable.get))]  # fmt: skip
        return pandas.concat(frames, axis=1)[table.column_names]
    raise ParameterError(f"a backend is pandas, polars or arrow, not {backend!r}")
