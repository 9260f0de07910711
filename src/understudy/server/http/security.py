"""What every request passes before a route sees it, and what every reply carries.

The host must be one of the server's own names, so that a page on another site cannot reach a server on loopback
under a name of its own. A body has at most `MOST_BODY` bytes, counted as they arrive and before anything parses
them. Every reply has headers that keep browsers from guessing, framing, caching and from loading anything from
elsewhere; nothing allows another origin. What happened is counted by route and logged without bodies, answers or
tokens.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

from understudy.server.logs import log_failure, log_request
from understudy.server.metrics import Metrics
from understudy.server.problems import Problem, problem_of

MOST_BODY = 64 * 1024
MOST_UPLOAD = 64 * 1024 * 1024

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RoutePath:
    """What metrics and logs call a request that no router has named, in the scope's `route`."""

    path: str


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
"""Of every reply; a route that sends one of them itself, such as the policy of a report, keeps its own."""

STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")


class Guard:
    """An ASGI application before another one: host, size, headers, metrics and the log of requests.

    `hosts` are the names under which the server may be called; where it is empty any name may, which is right
    behind a proxy that checks them or on an address of a network. `is_encrypted` tells browsers to come back
    encrypted.
    """

    def __init__(
        self, app: App, *, hosts: Collection[str], metrics: Metrics, door: str, is_encrypted: bool
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._metrics = metrics
        self._door = door
        self._headers = (*HEADERS, STRICT_TRANSPORT) if is_encrypted else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        began = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in self._headers if header[0] not in own),
                ]
            await send(message)

        try:
            limit = MOST_UPLOAD if _is_upload(scope) else MOST_BODY
            self._check(scope, limit)
            await self._app(scope, _CountedBody(receive, limit).receive, sending)
        except Problem as problem:
            if problem.status >= 500 and problem.__cause__ is not None:
                log_failure(problem, self._door)
            if not status:
                await send_problem(problem, sending)
        except Exception as error:
            reference = log_failure(error, self._door)
            if not status:
                failed = problem_of(error)
                failed.more["reference"] = reference
                await send_problem(failed, sending)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "unknown")
            self._metrics.note_request(self._door, scope["method"], route, status, seconds)
            log_request(self._door, scope["method"], route, status, seconds, scope.get("analyst", ""))

    def _check(self, scope: Scope, limit: int) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            raise Problem(
                421,
                "host",
                "This server does not answer under that name.",
                hint="Use the address that `understudy serve` printed.",
            )
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > limit):
                raise too_large(limit)

    def _is_own(self, host: bytes) -> bool:
        if not self._hosts:
            return True
        name = host.decode("latin-1").lower()
        name = (
            name[: name.rindex("]") + 1] if name.startswith("[") and "]" in name else name.partition(":")[0]
        )
        return name in self._hosts


class _CountedBody:
    """The messages of a request, refused as soon as their bodies are too large together."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._seen = 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self._limit:
                raise too_large(self._limit)
        return message


async def body_from(receive: Receive) -> bytes:
    """The whole body of a request, of which `Guard` bounds the size."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Problem(400, "gone", "The request was not sent to its end.", hint="Send it again.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def hosts_of(address: str) -> frozenset[str]:
    """The names under which a server that listens on `address` may be called: loopback's own, else any."""
    if ipaddress.ip_address(address).is_loopback:
        return frozenset({"localhost", "127.0.0.1", "[::1]", f"[{address}]" if ":" in address else address})
    return frozenset()


def too_large(limit: int) -> Problem:
    """The refusal of a body of more than `limit` bytes."""
    return Problem(413, "too-large", f"The body has more than {limit:,} bytes.", hint="Send less at a time.")


def problem_headers(problem: Problem) -> list[tuple[bytes, bytes]]:
    """The headers of a problem's reply."""
    headers = [(b"content-type", b"application/problem+json")]
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="understudy"'))
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(max(1, round(problem.retry_after + 0.499))).encode()))
    return headers


async def send_problem(problem: Problem, send: Send) -> None:
    """Send a problem as the whole reply."""
    body = problem.encoded()
    headers = [*problem_headers(problem), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "POST" and scope["path"].endswith("/submissions")
