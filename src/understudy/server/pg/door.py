"""The port for programs that speak Postgres: who comes in, how many, who may cancel what, and stopping."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from collections import Counter

from understudy.server.gate import Gate
from understudy.server.logs import log_failure, log_request
from understudy.server.metrics import Metrics
from understudy.server.pace import RateLimiter
from understudy.server.pg.asking import SharedDesk
from understudy.server.pg.connection import DOOR, PgConnection
from understudy.server.pg.frames import ProtocolError
from understudy.server.pg.start import (
    START_SECONDS,
    CancelRequest,
    StartMessage,
    authenticated,
    first_message,
    greeting,
    negotiated,
    no_token,
    settings_of,
)
from understudy.server.pg.states import Refusal, refusal_of, stopping
from understudy.server.pg.transport import ClientTransport, Gone
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

MOST_CONNECTIONS = 128
"""Connections of all clients together that have proved who they are."""

MOST_STARTING = 256
MOST_STARTING_OF_AN_ADDRESS = 32
"""Connections that have not, of all addresses together and of one. Where there are as many, the oldest of the
newcomer's address is closed for the newcomer; where its address has none, the oldest of the address with the most.
"""

MOST_OF_A_TOKEN = 16

FAILURES = 5.0
"""Proofs a second that fit no token, from one address."""

STOP_SECONDS = 25.0
"""Within which connections end when the server stops: what is debited is finished first."""


class PgInterface:
    """A listening socket and the connections behind it."""

    def __init__(self, gate: Gate, shared: SharedDesk, metrics: Metrics) -> None:
        self._gate = gate
        self._shared = shared
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[ClientTransport, str] = {}  # with their addresses; the oldest come first
        self._open: dict[int, tuple[int, PgConnection]] = {}
        self._of_token: Counter[str] = Counter()
        self._next_process = 1
        self._failures = RateLimiter(FAILURES)
        self._is_stopping = False
        self._context = _context(gate)

    async def open(self, listening: socket.socket) -> None:
        """Take connections on a socket that listens."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ClientTransport(self._entered), sock=listening)

    @property
    def connections(self) -> int:
        """How many connections have proved who they are."""
        return len(self._open)

    async def close(self) -> None:
        """Take no more connections, and end those that are open: at once, or after what they are doing."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for _, connection in list(self._open.values()):
            connection.stop()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _entered(self, transport: ClientTransport) -> None:
        if self._is_stopping:
            transport.abort()
            return
        self._make_room(transport.peer)
        self._starting[transport] = transport.peer
        task = asyncio.get_running_loop().create_task(self._served(transport))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _make_room(self, address: str) -> None:
        """Close a connection that is starting where one more of this address would be too many."""
        counts = Counter(self._starting.values())
        if counts[address] < MOST_STARTING_OF_AN_ADDRESS and len(self._starting) < MOST_STARTING:
            return
        if not counts[address]:
            address = counts.most_common(1)[0][0]
        oldest = next(found for found, its in self._starting.items() if its == address)
        del self._starting[oldest]
        oldest.abort()

    async def _served(self, transport: ClientTransport) -> None:
        """One connection from its first byte to its last; whatever happens, the others go on."""
        process = 0
        try:
            async with asyncio.timeout(START_SECONDS):
                found = await self._started(transport)
            self._starting.pop(transport, None)
            if found is None:
                return
            process, connection = found
            await connection.converse()
        except Refusal as refusal:
            refusal.fatal = True
            transport.write(refusal.encoded())
        except Problem as problem:
            refusal = refusal_of(problem)
            refusal.fatal = True
            transport.write(refusal.encoded())
        except ProtocolError as error:
            transport.write(Refusal("08P01", str(error), fatal=True).encoded())
        except (Gone, TimeoutError, ConnectionError):
            pass
        except asyncio.CancelledError:
            transport.write(stopping().encoded())
        except Exception as error:  # a mistake of ours: this connection ends, and the log tells where
            log_failure(error, DOOR)
        finally:
            self._starting.pop(transport, None)
            if process:
                _, connection = self._open.pop(process)
                self._of_token[connection.caller.token_id] -= 1
                self._of_token += Counter()  # forgets those at nothing
            transport.close()

    async def _started(self, transport: ClientTransport) -> tuple[int, PgConnection] | None:
        """A connection that proved who it is, and was let in; None for one that came to cancel another."""
        start = await first_message(transport, self._gate.config, self._context)
        if isinstance(start, CancelRequest):
            self._cancelled(start)
            return None
        transport.write(negotiated(start))
        caller = await self._known(transport, start)
        if self._is_stopping:
            raise stopping()
        if len(self._open) >= MOST_CONNECTIONS:
            raise Refusal(
                "53300", "sorry, too many clients already", hint="Close connections that you do not use."
            )
        if self._of_token[caller.token_id] >= MOST_OF_A_TOKEN:
            raise Refusal(
                "53300",
                f"this token has {MOST_OF_A_TOKEN} connections already",
                hint="Close connections that you do not use, or make the pool smaller.",
            )
        settings = settings_of(start, caller, self._terms())
        connection = PgConnection(transport, self._shared, caller, settings, self._metrics)
        process, secret = self._fresh_process(), secrets.randbits(32)
        self._open[process] = secret, connection
        self._of_token[caller.token_id] += 1
        transport.trust()
        transport.write(greeting(start, settings, process, secret))
        transport.flush()
        return process, connection

    async def _known(self, transport: ClientTransport, start: StartMessage) -> Caller:
        if not start.user:
            raise Refusal("28000", "no user name was given", hint="The user is the analyst's name.")
        try:
            caller = await authenticated(transport, start, self._gate.tokens)
        except ProtocolError:
            self._failures.admit(transport.peer)
            raise
        if caller is None:
            log_request(DOOR, "SQL", "start", 401, 0.0, "")
            self._failures.admit(transport.peer)
            raise no_token(start.user)
        return caller

    def _cancelled(self, request: CancelRequest) -> None:
        secret, connection = self._open.get(request.process, (0, None))
        if connection is not None and secrets.compare_digest(
            secret.to_bytes(4, "big"), request.secret.to_bytes(4, "big")
        ):
            connection.cancel()

    def _fresh_process(self) -> int:
        """A number for a connection, in the place where Postgres tells that of a process."""
        while self._next_process in self._open:
            self._next_process = self._next_process % 0x7FFFFFFF + 1
        found = self._next_process
        self._next_process = self._next_process % 0x7FFFFFFF + 1
        return found

    def _terms(self) -> dict[str, str]:
        terms = self._gate.served.terms
        return {
            "alpha": f"{terms.alpha:g}",
            "beta": f"{terms.beta:g}",
            "session": "own" if terms.own else "shared",
        }


def _context(gate: Gate) -> ssl.SSLContext | None:
    """How TLS is spoken; None where the server has no certificate."""
    tls = gate.config.tls
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key)
    return context
