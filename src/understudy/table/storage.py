"""How columns of frames and Parquet files are stored, where the engine's name of a type does not tell.

The engine reads a dictionary of texts as text, and a timestamp of milliseconds as one of microseconds. These words
say what it was:

dictionary       texts by their numbers: a categorical of pandas or polars, a dictionary of Arrow
enum             an Enum of polars
large_string     the types of Arrow for text, where it is not `string`; so does `string_view`
timestamp[ms]    the unit of moments, seconds or milliseconds, and their time zone where it is not UTC:
                 `timestamp[us, tz=Europe/Berlin]`; nanoseconds where there is a time zone
date64           days in milliseconds
nullable         a type of pandas with a place for missing values: Int64, boolean, Float64
string           the text of pandas with `pandas.NA` for missing values
arrow            a type of Arrow in a frame of pandas

Only what somebody chose is told. Which values a dictionary lists, the type of its numbers and its order may follow
from rows, and stay untold; so does the difference between the nullable types of whole and of real numbers, which
pandas may choose by the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Storage = Mapping[str, str]
"""By column, one of the words above; columns of which there is nothing to say are not in it."""


_ZONE = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)*|[+-][0-9]{2}:[0-9]{2}")
"""A time zone by a name that Arrow reads, such as Europe/Berlin, or by its distance from UTC."""


def storage_of_schema(schema: pa.Schema) -> dict[str, str]:
    """The words for the columns of a schema of Arrow, such as that of a Parquet file."""
    return _known({field.name: _arrow(field.type) for field in schema})


def storage_of_frame(frame: Any) -> dict[str, str]:
    """The words for the columns of a frame of pandas or polars, or of a table of Arrow; none of any other."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return storage_of_schema(frame.schema)
    library = type(frame).__module__.partition(".")[0]
    word: Callable[[Any], str] | None = {"pandas": _pandas, "polars": _polars}.get(library)
    if word is None or not hasattr(frame, "dtypes"):
        return {}
    return _known({str(name): word(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)})


def _known(words: dict[str, str]) -> dict[str, str]:
    return {name: word for name, word in words.items() if word}


def _arrow(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "dictionary"
    if pa.types.is_large_string(kind):
        return "large_string"
    if pa.types.is_string_view(kind):
        return "string_view"
    if pa.types.is_date64(kind):
        return "date64"
    return _moments(kind.unit, kind.tz) if pa.types.is_timestamp(kind) else ""


def _moments(unit: str, zone: str | None) -> str:
    if (unit == "us" and zone in (None, "UTC")) or (unit == "ns" and zone is None):
        return ""  # the engine's own name says it
    if zone is not None and not _ZONE.fullmatch(zone):
        zone = "UTC"  # a name that only the frame's library reads: the same moments in UTC
    return f"timestamp[{unit}]" if zone is None else f"timestamp[{unit}, tz={zone}]"


def _pandas(kind: Any) -> str:
    name = type(kind).__name__
    if name == "CategoricalDtype":
        return "dictionary"
    if name == "StringDtype":
        import pandas

        return "string" if kind.na_value is pandas.NA else ""
    if name == "ArrowDtype":
        return "arrow"
    if name == "DatetimeTZDtype":
        return _moments(kind.unit, str(kind.tz))
    if getattr(kind, "kind", "") == "M":
        import numpy as np

        return _moments(np.datetime_data(kind)[0], None)
    return "nullable" if getattr(kind, "_is_numeric", False) and hasattr(kind, "numpy_dtype") else ""


def _polars(kind: Any) -> str:
    name = type(kind).__name__
    if name == "DataTypeClass":
        name = kind.__name__
    if name == "Datetime":
        return _moments(kind.time_unit, kind.time_zone)
    return {"Categorical": "dictionary", "Enum": "enum"}.get(name, "")
