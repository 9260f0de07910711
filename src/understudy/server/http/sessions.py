"""Sessions over HTTP: under which promise questions are answered, and how far each has come."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANALYST, ANYBODY
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

router = APIRouter(tags=["sessions"])


@router.get("/v1/tables/{table}/sessions", responses=refusals(404))
async def sessions(table: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """The session in which the caller asks: its promise, its purchases, and whether they contradict each other.

    Auditors and custodians see every session of the table that is open.
    """
    return json_reply({"sessions": await request.app.state.gate.sessions(caller, table)})


@router.post("/v1/tables/{table}/sessions", responses=refusals(404, 409), status_code=201)
async def own_session(table: str, request: Request, caller: Annotated[Caller, Depends(ANALYST)]) -> Response:
    """Open the caller's own session, where the server gives each analyst one; it costs nothing until it buys."""
    gate = request.app.state.gate
    if not gate.served.terms.own:
        raise Problem(
            409,
            "shared",
            "All analysts of this server share one session, which is open already.",
            hint="Ask: what anybody bought is free.",
        )
    return json_reply({"sessions": await gate.sessions(caller, table)}, 201)
