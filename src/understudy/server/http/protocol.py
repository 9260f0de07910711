"""The connections of the HTTP door: how many there may be, and how long each may take to say what it wants.

A client that opens a connection and says nothing, or sends a header a byte at a time, holds memory and a place.
So a connection has `HEAD_SECONDS` for the head of each request and `BODY_SECONDS` for its body, and where there
are too many connections, of all clients together, a new one is closed at once.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
MOST_CONNECTIONS = 256
MOST_HEAD_BYTES = 32 * 1024


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on connections, on the time of a head and of a body, and on a head's size."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_reading_head = True
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_reading_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_reading_head and self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._say_and_close(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._is_reading_head, self._head_bytes = False, 0
        # A head in a single piece is whole before its pieces were counted; four marks are about each header.
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if self._is_refused or size > MOST_HEAD_BYTES:
            if not self._is_refused:
                self._say_and_close(b"431 Request Header Fields Too Large")
            self._is_refused = True
            return
        self._expect(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:  # there is no request whose body it could be
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_reading_head = True
        self._expect(None)
        if not self._is_refused:
            super().on_message_complete()

    def _expect(self, seconds: float | None) -> None:
        """Start the clock for what has to come next, or stop it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self._say_and_close(b"408 Request Timeout")

    def _say_and_close(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
