"""Messages from a client to the server: cut out of the stream of bytes, and read field by field.

A frame is never held that is longer than the server would read: of a longer one the bytes are dropped as they
come, and the frame is handed on without a body, so that it can be refused in its place. What violates the protocol
is a `ProtocolError`, after which the connection ends.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MOST_BODY = 1 << 20
"""Bytes of a message that is read."""

MOST_DROPPED = 1 << 26
"""Bytes of a message that is dropped on its way; a longer one ends the connection."""

MOST_START = 10_000
"""Bytes of the first message, as in Postgres."""

KINDS = frozenset(b"QPBDECHSFXpdcf")
"""What a client may send after the start."""


class ProtocolError(Exception):
    """The bytes are no message of the protocol."""


class WireFrame(NamedTuple):
    """A message: its kind, a letter, and its body; None where it was too long to be kept."""

    kind: int
    body: bytes | None


class FrameBuffer:
    """Bytes as they come, and the whole messages at their beginning."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._place = 0
        self._dropping = 0
        self._dropped_kind = 0

    def __len__(self) -> int:
        return len(self._bytes) - self._place

    def feed(self, data: bytes) -> None:
        if self._dropping:
            dropped = min(self._dropping, len(data))
            self._dropping -= dropped
            data = data[dropped:]
        self._bytes += data

    def start(self) -> bytes | None:
        """The first message, which has no kind, without its length; None while it is not whole."""
        if len(self) < 4:
            return None
        (length,) = struct.unpack_from("!i", self._bytes, self._place)
        if not 8 <= length <= MOST_START:
            raise ProtocolError("the length of the start-up message is invalid")
        return self._taken(4, length - 4)

    def next(self, most: int = MOST_BODY) -> WireFrame | None:
        """The next message; None while it is not whole."""
        if self._dropping:
            return None
        if self._dropped_kind:
            kind, self._dropped_kind = self._dropped_kind, 0
            return WireFrame(kind, None)
        if len(self) < 5:
            return None
        kind, length = struct.unpack_from("!Bi", self._bytes, self._place)
        if kind not in KINDS:
            raise ProtocolError("the type of a message is invalid")
        if not 4 <= length <= MOST_DROPPED:
            raise ProtocolError("the length of a message is invalid")
        if length - 4 > most:
            self._drop(kind, length - 4)
            return self.next(most)
        body = self._taken(5, length - 4)
        return None if body is None else WireFrame(kind, body)

    def _drop(self, kind: int, length: int) -> None:
        self._place += 5
        here = min(length, len(self))
        self._place += here
        self._dropping = length - here
        self._dropped_kind = kind
        self._compact()

    def _taken(self, head: int, length: int) -> bytes | None:
        begin = self._place + head
        end = begin + length
        if len(self._bytes) < end:
            return None
        body = bytes(memoryview(self._bytes)[begin:end])
        self._place = end
        self._compact()
        return body

    def _compact(self) -> None:
        if self._place == len(self._bytes):
            self._bytes.clear()
            self._place = 0
        elif self._place > 1 << 16:
            del self._bytes[: self._place]
            self._place = 0


class Fields:
    """The fields of a message's body, in order. Too short a body is a `ProtocolError`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._place = 0

    def take(self, length: int) -> bytes:
        end = self._place + length
        if length < 0 or end > len(self._body):
            raise ProtocolError("a message is shorter than it says")
        taken = self._body[self._place : end]
        self._place = end
        return taken

    def text(self) -> str:
        end = self._body.find(b"\0", self._place)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        taken = self._body[self._place : end]
        self._place = end + 1
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text in a message is not UTF-8") from None

    def byte(self) -> int:
        return self.take(1)[0]

    def int16(self) -> int:
        return struct.unpack("!h", self.take(2))[0]

    def int32(self) -> int:
        return struct.unpack("!i", self.take(4))[0]

    def count(self) -> int:
        """A number of things that follow; each of them takes at least two bytes."""
        number = self.int16()
        if number < 0:
            number += 1 << 16
        if 2 * number > len(self._body) - self._place:
            raise ProtocolError("a message is shorter than it says")
        return number

    def bytes_or_none(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.take(length)

    def end(self) -> None:
        if self._place != len(self._body):
            raise ProtocolError("a message is longer than it says")


class ParseMessage(NamedTuple):
    """A statement to prepare, under a name (empty: until the next), with the types that the client knows."""

    name: str
    statement: str
    oids: tuple[int, ...]

    @classmethod
    def read(cls, body: bytes) -> ParseMessage:
        fields = Fields(body)
        name, statement = fields.text(), fields.text()
        oids = tuple(fields.int32() & 0xFFFFFFFF for _ in range(fields.count()))
        fields.end()
        return cls(name, statement, oids)


class BindMessage(NamedTuple):
    """A portal: a prepared statement with values for its parameters and formats for its result."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]

    @classmethod
    def read(cls, body: bytes) -> BindMessage:
        fields = Fields(body)
        portal, statement = fields.text(), fields.text()
        formats = tuple(_format(fields) for _ in range(fields.count()))
        values = tuple(fields.bytes_or_none() for _ in range(fields.count()))
        wanted = tuple(_format(fields) for _ in range(fields.count()))
        fields.end()
        return cls(portal, statement, formats, values, wanted)


def _format(fields: Fields) -> int:
    code = fields.int16()
    if code not in (0, 1):
        raise ProtocolError("a format code is neither 0 nor 1")
    return code


def formats_of(given: tuple[int, ...], count: int) -> tuple[int, ...]:
    """A format for each of `count` things: given one by one, once for all, or not at all (text)."""
    if len(given) == count:
        return given
    if len(given) > 1:
        raise ProtocolError("there are more or fewer format codes than columns or parameters")
    return (given[0] if given else 0,) * count
