"""`/mcp` on the port of HTTP: who calls, from where, and the first request that loads the protocol.

A request carries a bearer token that was made for the door `mcp`; a browser's cookie counts for nothing here,
and a page of another site is refused by its origin. Both are checked before the body is read and before the
protocol is loaded, so that nobody without a token makes the server work. One request has one reply: there are no
sessions and no streams that stay open.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from understudy.server.gate import Gate
from understudy.server.http.replying import problem_reply
from understudy.server.http.security import App, Message, Receive, RoutePath, Scope, Send, body_from
from understudy.server.http.who import CallerIdentification, bearer, header
from understudy.server.mcp.tools import Toolbox
from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases
from understudy.server.tokens import Caller

PATH = "/mcp"
DOOR = "mcp"

UNREAD = -32600
"""The code of what is no message, in JSON-RPC."""

_ROUTE = RoutePath(PATH)


class AgentInterface:
    """An application before the others that takes `/mcp` alone; `close` ends what it began."""

    def __init__(
        self,
        app: App,
        gate: Gate,
        releases: ServedReleases,
        identification: CallerIdentification,
        *,
        hosts: frozenset[str],
    ) -> None:
        self._app = app
        self._gate = gate
        self._releases = releases
        self._identification = identification
        self._hosts = hosts
        self._loading: asyncio.Future[Any] | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        _check_origin(scope)
        scope["caller"] = self._caller(scope)
        if scope["method"] != "POST":
            reply = problem_reply(
                Problem(
                    405, "method", "This door takes POST alone.", hint="There are no streams to listen to."
                )
            )
            reply.headers["allow"] = "POST"
            await reply(scope, receive, send)
            return
        body = await body_from(receive)
        wrong = _unread(body)
        if wrong:
            await _send_unread(wrong, send)
            return
        manager = await self._manager()
        await manager.handle_request(scope, _again(body, receive), send)

    @property
    def is_loaded(self) -> bool:
        """Whether the protocol was loaded, or is being loaded."""
        return self._loading is not None

    async def close(self) -> None:
        """End the protocol, where it was begun."""
        self._stop.set()
        if self._running is not None:
            with suppress(asyncio.CancelledError):
                await self._running

    def _caller(self, scope: Scope) -> Caller:
        found = bearer(self._gate.tokens, scope, door=DOOR)
        if found is None:
            self._identification.note_failure(scope)
            raise Problem(
                401,
                "token",
                "There is no token in this request that is valid for agents.",
                hint="Send the header `Authorization: Bearer TOKEN`; a custodian makes one with "
                "`understudy token new NAME --agent --doors mcp`.",
            )
        scope["analyst"] = found.analyst
        return found

    async def _manager(self) -> Any:
        """The protocol, which the first request loads on a thread while the others wait for it."""
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._loading))
        return await asyncio.shield(self._loading)

    async def _run(self, ready: asyncio.Future[Any]) -> None:
        try:
            manager = await asyncio.to_thread(self._loaded)
            async with manager.run():
                ready.set_result(manager)
                await self._stop.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def _loaded(self) -> Any:
        from understudy.server.mcp.protocol import http_manager, protocol_server

        server = protocol_server(
            self._gate,
            Toolbox(self._gate, self._releases),
            lambda context: context.request.scope["caller"],  # pyright: ignore[reportOptionalMemberAccess]
        )
        return http_manager(server, self._hosts)


def _check_origin(scope: Scope) -> None:
    """Refuse what a page of another site had a browser send; programs send no origin."""
    origin = header(scope, b"origin").lower()
    host = header(scope, b"host").lower()
    if origin and origin not in (f"http://{host}", f"https://{host}"):
        raise Problem(
            403,
            "cross-site",
            "This request did not come from a program or a page of this server.",
            hint="Connect without the header `Origin`, as programs do.",
        )


def _unread(body: bytes) -> str:
    """Why a body is no message of JSON-RPC; empty where it is one. The protocol sees nothing else."""
    try:
        found = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode()  # lone halves of characters cannot be sent back
    except (ValueError, RecursionError):
        return "The body is not JSON. Send one JSON-RPC 2.0 message in UTF-8."
    if type(found) is not dict or found.get("jsonrpc") != "2.0":
        return "The body is not one JSON-RPC 2.0 message. Send one object at a time; there are no batches."
    if type(found.get("method")) is not str or type(found.get("params") or {}) is not dict:
        return "The message is no request. It needs a method, which is a text, and params that are an object."
    return ""


async def _send_unread(wrong: str, send: Send) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": UNREAD, "message": wrong}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _again(body: bytes, receive: Receive) -> Receive:
    """The messages of a request whose body was read already."""
    sent = False

    async def received() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received
