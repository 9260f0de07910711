"""Synthetic rows stored as the source stores its own: dictionaries, units of moments, the types of frames.

`table.storage` has the words. A dictionary lists the declared values, in the order of the declaration and all of
them, whichever rows were drawn; what the source's own lists is not told. Numbers and days stay plain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute

from understudy.domain.attribute import Attribute, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.releases.column_types import holds_nanoseconds
from understudy.releases.synthetic import cell_values

pc: Any = pyarrow.compute  # its functions are made at run time

_MOMENTS = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")
_TEXT = {"large_string": pa.large_string(), "string_view": pa.string_view()}


def as_stored(table: pa.Table, domain: Domain, storage: Mapping[str, str]) -> pa.Table:
    """The rows in the source's own types of Arrow, where they have a place in them."""
    attributes: dict[str, Attribute] = {}
    for attribute in domain:
        attributes.setdefault(attribute.column, attribute)
    columns = {
        name: _stored(table[name], attributes[name], storage.get(name, "")) for name in table.column_names
    }
    return pa.table(columns)


def _stored(column: pa.ChunkedArray, attribute: Attribute, word: str) -> pa.ChunkedArray:
    kind = column.type
    if word in ("dictionary", "enum") and isinstance(attribute, Categories):
        return _as_dictionary(column, attribute)
    if word in _TEXT and kind == pa.string():
        return column.cast(_TEXT[word])
    if word == "date64" and kind == pa.date32():
        return column.cast(pa.date64())
    if (found := _MOMENTS.fullmatch(word)) is not None and pa.types.is_timestamp(kind):
        zone = found[2] if kind.tz else None
        fine = found[1] == "ns" and isinstance(attribute, Bins) and holds_nanoseconds(attribute)
        unit = found[1] if found[1] in ("s", "ms") or fine else kind.unit
        return column.cast(pa.timestamp(unit, zone))
    return column


def _as_dictionary(column: pa.ChunkedArray, attribute: Categories) -> pa.ChunkedArray:
    """The same values, by their numbers in the list of what the cells of the declaration show."""
    values = pc.drop_null(cell_values(attribute, column.type))
    places = pc.index_in(column, values).combine_chunks()
    return pa.chunked_array([pa.DictionaryArray.from_arrays(places, values)])


def framed(table: pa.Table, backend: str, storage: Mapping[str, str]) -> Any:
    """Stored rows as a pandas, polars or Arrow frame; missing values do not turn whole numbers into reals."""
    if backend == "arrow":
        return table
    if backend == "polars":
        return _polars_frame(table, storage)
    if backend == "pandas":
        import pandas

        return pandas.DataFrame(
            {name: _series(table[name], storage.get(name, "")) for name in table.column_names}
        )
    raise ParameterError(f"a backend is pandas, polars or arrow, not {backend!r}")


def _series(column: pa.ChunkedArray, word: str) -> Any:
    """A column as pandas has it; whole numbers and truth values of which some are missing are nullable always."""
    import pandas

    kind = column.type
    if word == "arrow":
        return pandas.Series(pandas.array(column, dtype=pandas.ArrowDtype(kind)))
    if word == "string" and kind == pa.string():
        return column.to_pandas(types_mapper={kind: pandas.StringDtype()}.get)
    needed = column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind))
    mapper = _nullable_types().get if word == "nullable" or needed else None
    return column.to_pandas(types_mapper=mapper, date_as_object=False)


def _nullable_types() -> dict[pa.DataType, Any]:
    import pandas

    whole = {
        pa.type_for_alias(f"{sign}int{bits}"): pandas.array([], dtype=f"{'U' if sign else ''}Int{bits}").dtype
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    reals = {pa.float32(): pandas.Float32Dtype(), pa.float64(): pandas.Float64Dtype()}
    return {**whole, **reals, pa.bool_(): pandas.BooleanDtype()}


def _polars_frame(table: pa.Table, storage: Mapping[str, str]) -> Any:
    import polars

    kinds: dict[str, Any] = {}
    for field in table.schema:
        if pa.types.is_dictionary(field.type):
            text = pa.types.is_string(field.type.value_type)
            if storage.get(field.name) == "enum" and text:
                kinds[field.name] = polars.Enum(table[field.name].chunk(0).dictionary.to_pylist())
            elif text:
                kinds[field.name] = polars.Categorical
    plain = pa.table(
        {
            field.name: table[field.name].cast(field.type.value_type)
            if pa.types.is_dictionary(field.type)
            else table[field.name]
            for field in table.schema
        }
    )
    frame: Any = polars.from_arrow(plain)
    return frame.with_columns(**{name: polars.col(name).cast(kind) for name, kind in kinds.items()})
