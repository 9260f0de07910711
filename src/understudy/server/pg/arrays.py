"""Arrays of one dimension, as text (`{1,2,NULL}`) and as binary."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from understudy.desk.postgres_type import TYPES

VECTORS = {22: 21, 30: 26}
"""`int2vector` and `oidvector` with the types of their elements: arrays from 0 on, written with spaces."""

ARRAYS = {scalar.oid: scalar.array for scalar in TYPES.values() if scalar.array and scalar.oid not in VECTORS}
"""The type of the arrays of an element's type."""

ELEMENTS = {array: element for element, array in ARRAYS.items()} | VECTORS
"""The type of an array's elements, by the array's own."""

MOST_ELEMENTS = 10_000

_QUOTED = re.compile(r'^$|[{}",\\\s]|^null$', re.I)
_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^",{}\\]*?))\s*([,}])', re.S)


def text_array(values: Sequence[Any], make: Callable[[Any], bytes], *, is_vector: bool = False) -> bytes:
    """An array as Postgres writes it. A text is passed on: it is one that was written so already."""
    if isinstance(values, str):
        return values.encode()
    if is_vector:
        return b" ".join(make(value) for value in values)
    return b"{" + b",".join(_item(value, make) for value in values) + b"}"


def _item(value: Any, make: Callable[[Any], bytes]) -> bytes:
    if value is None:
        return b"NULL"
    if isinstance(value, list | tuple):
        return text_array(value, make)
    told = make(value).decode()
    if not _QUOTED.search(told):
        return told.encode()
    return b'"' + told.replace("\\", "\\\\").replace('"', '\\"').encode() + b'"'


def binary_array(
    values: Sequence[Any], element: int, make: Callable[[Any], bytes], *, is_vector: bool = False
) -> bytes:
    """An array in binary: dimensions, whether there are nulls, the elements' type, and each with its length."""
    if isinstance(values, str):
        values = items_of(values) if not is_vector else values.split()
    head = struct.pack("!iiI", 1 if values else 0, int(any(v is None for v in values)), element)
    if not values:
        return head
    parts = [head, struct.pack("!ii", len(values), 0 if is_vector else 1)]
    for value in values:
        if value is None:
            parts.append(struct.pack("!i", -1))
        else:
            made = make(value)
            parts += (struct.pack("!i", len(made)), made)
    return b"".join(parts)


def items_of(text: str) -> list[str | None]:
    """The elements of an array that was written as text; a `ValueError` where it is none of one dimension.

    >>> items_of('{a,"b, c",NULL,"NULL"}')
    ['a', 'b, c', None, 'NULL']
    """
    text = text.strip()
    if text[:1] != "{":
        raise ValueError("an array begins with {")
    if text[1:].strip() == "}":
        return []
    found: list[str | None] = []
    place = 1
    while True:
        item = _ITEM.match(text, place)
        if item is None or len(found) >= MOST_ELEMENTS:
            raise ValueError("this is no array of one dimension")
        quoted, bare, mark = item.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.S))
        elif not bare:
            raise ValueError("an element of an array is missing")
        else:
            found.append(None if bare.lower() == "null" else bare)
        place = item.end()
        if mark == "}":
            break
    if text[place:].strip():
        raise ValueError("text follows an array")
    return found


def read_binary_array(raw: bytes) -> tuple[int, list[bytes | None]]:
    """The type of the elements and their bytes; a `ValueError` where it is no array of one dimension."""
    try:
        dimensions, _, element = struct.unpack_from("!iiI", raw)
        if dimensions == 0:
            return element, []
        count, _ = struct.unpack_from("!ii", raw, 12)
        if dimensions != 1 or not 0 <= count <= MOST_ELEMENTS:
            raise ValueError("arrays of one dimension are read")
        found: list[bytes | None] = []
        place = 20
        for _ in range(count):
            (length,) = struct.unpack_from("!i", raw, place)
            place += 4
            if length == -1:
                found.append(None)
                continue
            if length < 0 or place + length > len(raw):
                raise ValueError("an array is shorter than it says")
            found.append(raw[place : place + length])
            place += length
    except struct.error:
        raise ValueError("an array is shorter than it says") from None
    if place != len(raw):
        raise ValueError("an array is longer than it says")
    return element, found
