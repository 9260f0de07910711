"""The types of synthetic columns: those of the source's columns, where every declared value has a place in them.

The type of a column is taken for public: neighbouring tables have the same schema. Some programs choose between
two types by the values, and then one row could change the schema: pandas stores whole numbers as floats of 64 bits
where one is missing. These two are not told apart here: what is declared as whole numbers is int64 in both cases,
and what is declared as real numbers is float64.
"""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute, Categories, Outside
from understudy.domain.bins import Bins
from understudy.releases.written_moments import can_be_digits, whole

INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}

_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")
_TIMESTAMP = re.compile(r"timestamp(?:\((?:'UTC')?(?:, )?(\d)?\))?")
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_NANOSECONDS = (dt.date(1678, 1, 1), dt.date(2262, 1, 1))
"""Days that a timestamp of nanoseconds holds."""


def column_type(attribute: Attribute, source: str) -> pa.DataType:
    """The source's own type where it holds a value of every declared cell, else the natural one of the attribute.

    `source` is the engine's name of the type, such as int32, decimal(9, 2) or timestamp(6); empty where it is not
    known, as of the columns of text files, which are typed by their declaration.
    """
    source = source.lstrip("!")  # a column that promises to hold no missing value
    if source == "string":
        return pa.string()
    if isinstance(attribute, Bins):
        of = {"date": _of_dates, "timestamp": _of_instants, "integer": _of_integers, "real": _of_reals}
        return of[attribute.kind](attribute, source)
    if attribute.kind == "boolean":
        return _whole_numbers(source, 0, 1) or pa.bool_()
    assert isinstance(attribute, Categories)
    return _of_categories(attribute, source)


def _whole_numbers(source: str, low: int, high: int) -> pa.DataType | None:
    """The type of a column of whole numbers, where it holds both bounds; int64 for floats, which may be such."""
    if source in INTEGERS and np.iinfo(source).min <= low and high <= np.iinfo(source).max:
        return pa.type_for_alias(source)
    return pa.int64() if source in INTEGERS or source.startswith("float") else None


def _of_dates(attribute: Bins, source: str) -> pa.DataType:
    found = _TIMESTAMP.fullmatch(source)
    if found is not None:
        unit = _UNITS.get(int(found[1] or 6), "us")
        if unit == "ns" and not holds_nanoseconds(attribute):
            unit = "us"
        return pa.timestamp(unit, "UTC" if "UTC" in source else None)
    if source in INTEGERS and can_be_digits(attribute):  # days such as 20241231
        short = all(len(format.fields) == 3 for format in attribute.intake.formats)  # without a time of day
        return pa.type_for_alias(source) if INTEGERS[source] >= (32 if short else 64) else pa.int64()
    return pa.date32()


def holds_nanoseconds(attribute: Bins) -> bool:
    """Whether a timestamp of nanoseconds holds all days or moments of an attribute, and those beside them."""
    first, last = (
        edge.date() if isinstance(edge, dt.datetime) else edge
        for edge in (attribute.starts[0], attribute.upper)
    )
    return _NANOSECONDS[0] <= first <= last < _NANOSECONDS[1]


def _of_instants(attribute: Bins, source: str) -> pa.DataType:
    """The source's timestamp, in its own unit where that holds all moments; days only where all edges are such."""
    found = _TIMESTAMP.fullmatch(source)
    if found is not None:
        unit = _UNITS.get(int(found[1] or 6), "us")
        if unit == "ns" and not holds_nanoseconds(attribute):
            unit = "us"
        return pa.timestamp(unit, "UTC" if "UTC" in source else None)
    if source in INTEGERS and can_be_digits(attribute):  # moments such as 20241231093000
        return pa.int64()
    return pa.timestamp("s")


def _of_integers(attribute: Bins, source: str) -> pa.DataType:
    low, high = whole(attribute.starts[0]), whole(attribute.upper) + int(attribute.null)
    found = _DECIMAL.fullmatch(source)
    if found is not None and _fits(low, high, int(found[1]), int(found[2])):
        return pa.decimal128(int(found[1]), int(found[2]))
    return _whole_numbers(source, low, high) or pa.int64()


def _of_reals(attribute: Bins, source: str) -> pa.DataType:
    found = _DECIMAL.fullmatch(source)
    low, last = bin_ends(attribute)
    if found is not None:
        precision, scale = int(found[1]), int(found[2])
        near = rounded((low + last) / 2, low, last, scale)
        if (
            _fits(float(low[0]), float(last[-1]) + 1, precision, scale)
            and (near == np.round(near, scale)).all()
        ):
            return pa.decimal128(precision, scale)
    if source == "float32":
        near = as_single((low + last) / 2, low, last)
        if np.isfinite(near).all() and ((near >= low) & (near <= last)).all():
            return pa.float32()
    return pa.float64()


def _fits(low: float, high: float, precision: int, scale: int) -> bool:
    """Whether a decimal type holds both bounds; of more than 15 digits floats do not tell the last."""
    return precision <= 38 and scale <= 12 and max(abs(low), abs(high)) < 10.0 ** min(precision - scale, 15)


def _of_categories(attribute: Categories, source: str) -> pa.DataType:
    if source == "boolean" and not (attribute.outside is Outside.OTHER and attribute.null):
        return pa.bool_() if set(attribute.values) <= {"true", "false"} else pa.string()
    numbers = whole_values(attribute)
    if numbers is None:
        return pa.string()
    return _whole_numbers(source, min(numbers), max(numbers) + 1) or pa.string()


def whole_values(attribute: Categories) -> list[int] | None:
    """The declared values as whole numbers of 64 bits; None where one of them is not written as such a number."""
    if not all(re.fullmatch(r"-?[1-9][0-9]{0,17}|0", value) for value in attribute.values):
        return None
    return [int(value) for value in attribute.values]


# ---- numbers of a type, in their own bin


def bin_ends(attribute: Bins) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first and the last float of each bin of a real attribute: the end of a bin belongs to the next."""
    edges = np.array([*attribute.starts, attribute.upper])
    return edges[:-1], np.nextafter(edges[1:], edges[:-1])


def rounded(
    values: NDArray[np.float64], low: NDArray[np.float64], last: NDArray[np.float64], decimals: int
) -> NDArray[np.float64]:
    """Values with so many decimals, in their own bin; a bin that has no such value keeps what was drawn."""
    step = 10.0**-decimals
    found, settled = values, np.zeros(values.shape, bool)
    for candidate in (values, values - step, values + step):
        near = np.round(candidate, decimals)
        fits = ~settled & (near >= low) & (near <= last)
        found, settled = np.where(fits, near, found), settled | fits
    return found


def as_single(
    values: NDArray[np.float64], low: NDArray[np.float64], last: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values that floats of 32 bits hold, in their own bin where it has one."""
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
        near = np.where(near < low, np.nextafter(near, np.float32(np.inf)), near)
        near = np.where(near > last, np.nextafter(near, np.float32(-np.inf)), near)
    return near.astype(np.float64)
