"""The rows of COPY … TO STDOUT: as text, as CSV, and in Postgres' binary form."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from understudy.server.pg import wire
from understudy.server.pg.commands import CopyOptions
from understudy.server.pg.values import encoded, encoders

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_TRAILER = struct.pack("!h", -1)
_ESCAPED = re.compile(rb"[\\\b\f\n\r\t\v]")
_ESCAPES = {
    b"\\": b"\\\\",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\v": b"\\v",
}


def copied(
    columns: Sequence[wire.ResultColumn], rows: Sequence[Sequence[Any]], options: CopyOptions
) -> Iterator[bytes]:
    """The messages of a whole COPY, up to where it is complete."""
    is_binary = options.format == "binary"
    yield wire.copy_out(len(columns), binary=is_binary)
    made = encoders([column.oid for column in columns], [int(is_binary)] * len(columns))
    if is_binary:
        head = _SIGNATURE  # goes with the first row, as Postgres sends it
        for row in rows:
            yield wire.copy_data(head + wire.tuple_of(encoded(row, made)))
            head = b""
        if head:
            yield wire.copy_data(head)
        yield wire.copy_data(_TRAILER)
    else:
        line = _Csv(columns, options) if options.format == "csv" else _Text(options)
        if options.header:
            yield wire.copy_data(line.of([column.name.encode() for column in columns], is_header=True))
        for row in rows:
            yield wire.copy_data(line.of(encoded(row, made)))
    yield wire.COPY_DONE
    yield wire.complete(f"COPY {len(rows)}")


class _Text:
    """A line of the text format: fields between tabs, and a mark where a value is missing."""

    def __init__(self, options: CopyOptions) -> None:
        self._null = ("\\N" if options.null is None else options.null).encode()
        self._delimiter = options.delimiter.encode()

    def of(self, cells: Sequence[bytes | None], *, is_header: bool = False) -> bytes:
        return self._delimiter.join(self._null if c is None else self._escaped(c) for c in cells) + b"\n"

    def _escaped(self, cell: bytes) -> bytes:
        told = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], cell)
        if self._delimiter == b"\t":
            return told
        return told.replace(self._delimiter, b"\\" + self._delimiter)


class _Csv:
    """A line of CSV: quoted where a field holds a mark of the format, or would be read as missing."""

    def __init__(self, columns: Sequence[wire.ResultColumn], options: CopyOptions) -> None:
        self._null = (options.null or "").encode()
        self._delimiter, self._quote = options.delimiter.encode(), options.quote.encode()
        self._escape = options.escape.encode()
        names = options.force_quote
        self._forced = [names is None or column.name in names for column in columns]

    def of(self, cells: Sequence[bytes | None], *, is_header: bool = False) -> bytes:
        told = [
            self._null if cell is None else self._field(cell, forced=forced and not is_header)
            for cell, forced in zip(cells, self._forced, strict=True)
        ]
        return self._delimiter.join(told) + b"\n"

    def _field(self, cell: bytes, *, forced: bool) -> bytes:
        marks = (self._delimiter, self._quote, b"\n", b"\r")
        alone_dot = len(self._forced) == 1 and cell == b"\\."
        if not forced and not alone_dot and cell != self._null and not any(mark in cell for mark in marks):
            return cell
        told = cell.replace(self._escape, 2 * self._escape) if self._escape != self._quote else cell
        return self._quote + told.replace(self._quote, self._escape + self._quote) + self._quote
