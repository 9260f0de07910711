"""One client's socket: whole messages in, bytes out, within limits of memory and time.

What is sent is gathered and leaves together. A client that does not read what it asked for is waited for, and then
left; one that sends faster than it is answered is not read from meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TypeVar, cast

from understudy.server.pg.frames import MOST_BODY, FrameBuffer, WireFrame

MOST_UNREAD = MOST_BODY + (1 << 18)
MOST_UNREAD_OF_STRANGERS = 1 << 14
"""Bytes that may have come and not been looked at before the socket is not read any more: of clients that have
proved who they are, and of others.
"""

MOST_UNSENT = 1 << 16
"""Bytes that are gathered before they leave."""

SLOW_SECONDS = 60.0
"""How long a client may take to read what it was sent."""

Found = TypeVar("Found")


class Gone(Exception):
    """The client is not there any more."""


class ClientTransport(asyncio.Protocol):
    """A connection that was accepted; `entered` is called with it once it stands."""

    def __init__(self, entered: Callable[[ClientTransport], None]) -> None:
        self._entered = entered
        self._transport: asyncio.Transport | None = None
        self._frames = FrameBuffer()
        self._waiting: asyncio.Future[None] | None = None
        self._draining: asyncio.Future[None] | None = None
        self._is_paused = self._is_over = False
        self._most_unread = MOST_UNREAD_OF_STRANGERS
        self._out: list[bytes] = []
        self._out_bytes = 0
        self.is_encrypted = False

    # ---- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = made = cast(asyncio.Transport, transport)  # uvloop's are of a class of their own
        made.set_write_buffer_limits(high=MOST_UNSENT)
        found = made.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._entered(self)

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        if len(self._frames) > self._most_unread and not self._is_paused:
            self._is_paused = True
            self._require().pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._is_over = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._wake()
        if self._draining is not None and not self._draining.done():
            self._draining.set_result(None)

    def pause_writing(self) -> None:
        self._draining = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._draining is not None and not self._draining.done():
            self._draining.set_result(None)
        self._draining = None

    # ---- what the connection calls

    @property
    def peer(self) -> str:
        """The client's address, or an empty text."""
        name = self._require().get_extra_info("peername")
        return name[0] if name else ""

    @property
    def is_over(self) -> bool:
        """Whether the client went away."""
        return self._is_over

    def trust(self) -> None:
        """The client has proved who it is: messages may be as long as those of statements are."""
        self._most_unread = MOST_UNREAD

    async def start(self) -> bytes:
        """The first message; raises `Gone`, or a `ProtocolError`."""
        return await self._next(self._frames.start)

    async def frame(self) -> WireFrame:
        """The next message; raises `Gone`, or a `ProtocolError`."""
        found = self._frames.next()  # most messages have come by the time they are wanted
        return found if found is not None else await self._next(self._frames.next)

    async def small_frame(self, most: int) -> WireFrame:
        """As `frame`, for one that is short."""
        return await self._next(lambda: self._frames.next(most))

    @property
    def has_more(self) -> bool:
        """Whether bytes have come that were not looked at."""
        return len(self._frames) > 0

    def write(self, data: bytes) -> None:
        """Add to what will be sent."""
        self._out.append(data)
        self._out_bytes += len(data)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0

    async def drained(self) -> None:
        """Send what was gathered where it is much, and wait until the client has room; raises `Gone`."""
        if self._out_bytes > MOST_UNSENT:
            self.flush()
        if self._draining is not None:
            try:
                async with asyncio.timeout(SLOW_SECONDS):
                    await asyncio.shield(self._draining)
            except TimeoutError:
                self.abort()
                raise Gone from None
        if self._is_over:
            raise Gone

    async def encrypt(self, context: ssl.SSLContext, seconds: float) -> None:
        """Speak TLS from here on; raises `Gone` where the client does not."""
        transport = self._require()
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError, TimeoutError):
            raise Gone from None
        if encrypted is None:
            raise Gone
        self._transport = encrypted
        encrypted.set_write_buffer_limits(high=MOST_UNSENT)
        self.is_encrypted = True

    def close(self) -> None:
        """Send what was gathered, and close."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once; what was not sent is lost."""
        self._is_over = True
        if self._transport is not None:
            self._transport.abort()

    # ---- waiting

    async def _next(self, find: Callable[[], Found | None]) -> Found:
        while True:
            found = find()
            if found is not None:
                return found
            if self._is_over:
                raise Gone
            if self._is_paused:
                self._is_paused = False
                self._require().resume_reading()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _require(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport
