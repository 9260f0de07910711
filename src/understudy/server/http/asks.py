"""Questions over HTTP. The route of `ask` reads its body itself: it is the one that has to be quick."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from understudy.server.http.bodies import AskBody, asked, body_of
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANYBODY
from understudy.server.tokens import Caller

router = APIRouter(tags=["questions"])


class AskRoute(APIRoute):
    """A route whose endpoint gets the request alone: nothing is validated, injected or serialised for it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


async def ask(request: Request) -> Response:
    """Ask a question. The same `request` gets the same answer again and pays once.

    Without a price the question is asked in the session of the table: free where it follows from what anybody
    bought, else at most at the price that `price` tells. With `epsilon`, `rho` or `error` it is measured by
    itself. The reply is 202 where a custodian has to approve the question first: `/v1/asks/{id}` tells what
    becomes of it.
    """
    state = request.app.state
    caller = state.doorman.caller(request)
    inquiry = asked(request.path_params["table"], await body_of(request))
    reply = await state.gate.ask(caller, inquiry)
    return Response(reply.body, 202 if reply.is_waiting else 200, media_type="application/json")


ASK: dict[str, Any] = {
    "path": "/v1/tables/{table}/ask",
    "endpoint": ask,
    "methods": ["POST"],
    "tags": ["questions"],
    "responses": {
        202: {"description": "A custodian has to approve the question first."},
        **refusals(400, 402, 404, 409, 413, 415, 422),
    },
    "openapi_extra": {
        "parameters": [{"name": "table", "in": "path", "required": True, "schema": {"type": "string"}}],
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
