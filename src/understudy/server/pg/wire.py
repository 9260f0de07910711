"""Messages from the server to a client, as bytes: protocol 3.0 of Postgres. Nothing here reads or writes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROTOCOL = 3 << 16
"""Version 3.0. A client that wants a later minor version is told this one."""

_HEAD = struct.Struct("!ci")
_COLUMN = struct.Struct("!ihihih")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name, the number of its type in Postgres, and the type's size (-1: varies)."""

    name: str
    oid: int
    size: int = -1


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message: its kind, its length and its body."""
    return _HEAD.pack(kind, len(body) + 4) + body


def text(words: str) -> bytes:
    """A text as the protocol writes it, with a zero at its end; a zero inside, which would end it, is left out."""
    return words.replace("\0", "").encode(errors="replace") + b"\0"


def authentication(code: int, body: bytes = b"") -> bytes:
    """A step of the authentication: 0 is its end, 10 to 12 are those of SASL."""
    return message(b"R", struct.pack("!i", code) + body)


AUTHENTICATED = authentication(0)
NO_DATA = message(b"n")
PARSED = message(b"1")
BOUND = message(b"2")
CLOSED = message(b"3")
SUSPENDED = message(b"s")
EMPTY = message(b"I")
COPY_DONE = message(b"c")


def negotiate(unknown: Sequence[str]) -> bytes:
    """That the server speaks 3.0, and does not know these options of the protocol."""
    return message(b"v", struct.pack("!ii", PROTOCOL, len(unknown)) + b"".join(map(text, unknown)))


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting."""
    return message(b"S", text(name) + text(value))


def key_data(process: int, secret: int) -> bytes:
    """What a client sends back to have its statement cancelled."""
    return message(b"K", struct.pack("!iI", process, secret))


_READY = {state: message(b"Z", state) for state in (b"I", b"T", b"E")}


def ready(state: bytes) -> bytes:
    """That the next statement may come: `I` outside of a transaction, `T` inside, `E` inside one that failed."""
    return _READY[state]


def complete(tag: str) -> bytes:
    """That a statement was executed."""
    return message(b"C", text(tag))


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    """The names and types of a result's columns; a format is 0 for text and 1 for binary."""
    body = [struct.pack("!h", len(columns))]
    for column, form in zip(columns, formats, strict=True):
        body.append(text(column.name) + _COLUMN.pack(0, 0, column.oid, column.size, -1, form))
    return message(b"T", b"".join(body))


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", struct.pack(f"!h{len(oids)}I", len(oids), *oids))


_MISSING = struct.pack("!i", -1)
_LENGTH = struct.Struct("!i")
_COUNT = struct.Struct("!h")


def tuple_of(cells: Sequence[bytes | None]) -> bytes:
    """A row as both DataRow and binary COPY write it: the number of cells, and each with its length."""
    parts = [_COUNT.pack(len(cells))]
    for cell in cells:
        if cell is None:
            parts.append(_MISSING)
        else:
            parts += (_LENGTH.pack(len(cell)), cell)
    return b"".join(parts)


def data_row(cells: Sequence[bytes | None]) -> bytes:
    """A row of a result."""
    return message(b"D", tuple_of(cells))


def copy_out(columns: int, *, binary: bool) -> bytes:
    """That a COPY begins, with its number of columns and their format."""
    form = int(binary)
    return message(b"H", struct.pack(f"!bh{columns}h", form, columns, *[form] * columns))


def copy_data(chunk: bytes) -> bytes:
    """A part of what COPY sends."""
    return message(b"d", chunk)


def _fields(severity: str, state: str, given: Mapping[str, str]) -> bytes:
    told = [("S", severity), ("V", severity), ("C", state), *((k, v) for k, v in given.items() if v)]
    return b"".join(key.encode() + text(value) for key, value in told) + b"\0"


def error(
    state: str, words: str, *, hint: str = "", detail: str = "", severity: str = "ERROR", position: int = 0
) -> bytes:
    """An error: its SQLSTATE, what is wrong, what to do, and more about it. FATAL ends the connection."""
    given = {"M": words, "D": detail, "H": hint, "P": str(position) if position else ""}
    return message(b"E", _fields(severity, state, given))


def notice(
    words: str, *, severity: str = "NOTICE", state: str = "00000", detail: str = "", hint: str = ""
) -> bytes:
    """Something that a client is told beside its result."""
    return message(b"N", _fields(severity, state, {"M": words, "D": detail, "H": hint}))
