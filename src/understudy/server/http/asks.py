"""Questions over HTTP. `ask` has a lane of its own before the routes: it is the one that has to be quick."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import State
from starlette.responses import Response

from understudy.server.gate_reply import GateReply
from understudy.server.http.bodies import AskBody, asked, check_json, parsed
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.security import App, Receive, RoutePath, Scope, Send, body_from
from understudy.server.http.who import ANYBODY, header
from understudy.server.tokens import Caller

router = APIRouter(tags=["questions"])


class AskLane:
    """An application before the others that takes questions alone: no routing, validation or serialising."""

    def __init__(self, app: App, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or (table := _table(scope["path"])) is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = ROUTE
        reply = await _asked(self._state, scope, table, await body_from(receive))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(reply.body)).encode())]
        await send({"type": "http.response.start", "status": _status(reply), "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


ROUTE = RoutePath("/v1/tables/{table}/ask")


async def ask(table: str, request: Request) -> Response:
    """Ask a question. The same `request` gets the same answer again and pays once.

    Without a price the question is asked in the session of the table: free where it follows from what anybody
    bought, else at most at the price that `price` tells. With `epsilon`, `rho` or `error` it is measured by
    itself, with the noise that is best for it or the one that `noise` names. The
    reply is 202 where a custodian has to approve the question first: `/v1/asks/{id}` tells what becomes of it.
    """
    reply = await _asked(request.app.state, request.scope, table, await request.body())
    return Response(reply.body, _status(reply), media_type="application/json")


async def _asked(state: State, scope: Scope, table: str, body: bytes) -> GateReply:
    caller = state.identification.caller(scope)
    check_json(header(scope, b"content-type"))
    return await state.gate.ask(caller, asked(table, parsed(body)))


def _status(reply: GateReply) -> int:
    return 202 if reply.is_waiting else 200


def _table(path: str) -> str | None:
    """The name of the table to which a path puts a question; None for every other path."""
    if not path.startswith("/v1/tables/") or not path.endswith("/ask"):
        return None
    name = path[11:-4]
    return name if name and "/" not in name else None


ASK: dict[str, Any] = {
    "path": ROUTE.path,
    "endpoint": ask,
    "methods": ["POST"],
    "tags": ["questions"],
    "responses": {
        202: {"description": "A custodian has to approve the question first."},
        **refusals(400, 402, 404, 409, 413, 415, 422),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": AskBody.model_json_schema()}},
        },
        "security": [{"bearer": []}],
    },
}
"""How the application adds the route, before all others."""


@router.get("/v1/asks/{id}", responses=refusals(404))
async def one_asked(id: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """One question: its state, its answer or why there is none, and the approval that it needs or needed."""
    return json_reply(await request.app.state.gate.one_asked(caller, id))
