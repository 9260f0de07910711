"""Values of results in the types of Postgres, as text and as binary.

A value may come as Python's own (a date) or as the text that Postgres writes for it (`2020-01-31`): answers of the
gate are JSON, where dates are texts.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import isinf, isnan
from typing import Any

from understudy.server.pg.arrays import ELEMENTS, VECTORS, binary_array, text_array
from understudy.server.pg.numerics import binary_numeric

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 18, 19, 20, 21, 23, 25, 26
JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 114, 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 1082, 1083, 1114, 1184, 1700

SIZES = {
    BOOL: 1, CHAR: 1, NAME: 64, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIME: 8,
    TIMESTAMP: 8, TIMESTAMPTZ: 8, 24: 4, 28: 4, 29: 4, 2205: 4, 2206: 4,
}  # fmt: skip
"""Bytes of the types of fixed size; -1 is said of all others."""

PACKED = {
    BOOL: "!?", INT8: "!q", INT2: "!h", INT4: "!i", OID: "!I", FLOAT4: "!f", FLOAT8: "!d", 28: "!I", 29: "!I",
}  # fmt: skip

EPOCH = dt.date(2000, 1, 1)
EPOCH_TIME = dt.datetime(2000, 1, 1)

Encoder = Callable[[Any], bytes]


def encoders(oids: Sequence[int], formats: Sequence[int]) -> list[Encoder]:
    """For each column what makes bytes of a value that is not missing."""
    return [_encoder(oid, form) for oid, form in zip(oids, formats, strict=True)]


def _encoder(oid: int, form: int) -> Encoder:
    element = ELEMENTS.get(oid)
    if element is not None:
        inner = _encoder(element, form)
        if not form:
            return lambda value: text_array(value, inner, is_vector=oid in VECTORS)
        return lambda value: binary_array(value, element, inner, is_vector=oid in VECTORS)
    return _BINARY.get(oid, as_text) if form else _TEXT.get(oid, as_text)


def encoded(row: Sequence[Any], made: Sequence[Encoder]) -> list[bytes | None]:
    """A row as bytes; None where a value is missing."""
    return [None if value is None else make(value) for value, make in zip(row, made, strict=True)]


def as_text(value: Any) -> bytes:
    """A value as Postgres writes it, whatever its type."""
    if isinstance(value, str):
        return value.encode(errors="replace")
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").encode()
    if isinstance(value, Decimal):
        return format(value, "f").encode()
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, list | tuple):
        return text_array(value, as_text)
    return str(value).encode()


def float_text(value: float) -> bytes:
    """The shortest text that reads back as the same number; Postgres writes an exponent from 10¹⁵ on.

    >>> [float_text(x).decode() for x in (12.0, 0.1, 1e15, 1234567890123456.0, 1e-05, float("inf"))]
    ['12', '0.1', '1e+15', '1.234567890123456e+15', '1e-05', 'Infinity']
    """
    if isnan(value):
        return b"NaN"
    if isinf(value):
        return b"Infinity" if value > 0 else b"-Infinity"
    told = repr(value).removesuffix(".0")
    if abs(value) >= 1e15 and "e" not in told:
        sign, digits = told[: told[0] == "-"], told.lstrip("-").rstrip("0")
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        told = f"{sign}{digits[0]}{rest}e+15"
    return told.encode()


def _number_text(value: Any) -> bytes:
    return float_text(float(value))


def _bool_text(value: Any) -> bytes:
    return b"t" if value else b"f"


def _packed(code: str) -> Encoder:
    layout = struct.Struct(code)
    kind = float if code[1] in "df" else bool if code[1] == "?" else int
    return lambda value: layout.pack(kind(value))


def date_of(value: Any) -> dt.date:
    """A date from a date, a time, or the text of one."""
    if isinstance(value, dt.datetime):
        return value.date()
    return value if isinstance(value, dt.date) else dt.date.fromisoformat(value)


def time_of(value: Any) -> dt.datetime:
    """A time without a zone; one with a zone is told in UTC."""
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def _date_binary(value: Any) -> bytes:
    return struct.pack("!i", (date_of(value) - EPOCH).days)


def _timestamp_binary(value: Any) -> bytes:
    return struct.pack("!q", (time_of(value) - EPOCH_TIME) // dt.timedelta(microseconds=1))


def _timestamp_text(value: Any) -> bytes:
    return time_of(value).isoformat(" ").encode()


def _timestamptz_text(value: Any) -> bytes:
    return (time_of(value).isoformat(" ") + "+00").encode()


def _regproc_binary(value: Any) -> bytes:
    """A function is sent by its name as text; its number, which nobody here knows, is 0 where it is no number."""
    return struct.pack("!I", int(value) if str(value).isdecimal() else 0)


_TEXT: dict[int, Encoder] = {
    BOOL: _bool_text,
    FLOAT8: _number_text,
    TIMESTAMP: _timestamp_text,
    TIMESTAMPTZ: _timestamptz_text,
}

_BINARY: dict[int, Encoder] = {
    **{oid: _packed(code) for oid, code in PACKED.items()},
    DATE: _date_binary,
    TIMESTAMP: _timestamp_binary,
    TIMESTAMPTZ: _timestamp_binary,
    NUMERIC: binary_numeric,
    24: _regproc_binary,
    2205: _regproc_binary,
    2206: _regproc_binary,
}
