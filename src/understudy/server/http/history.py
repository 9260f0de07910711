"""The history over HTTP: pages of questions, the newest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANYBODY
from understudy.server.tokens import Caller

router = APIRouter(tags=["questions"])

Word = Annotated[str, Query(max_length=200)]


@router.get("/v1/history", responses=refusals(422))
async def history(
    request: Request,
    caller: Annotated[Caller, Depends(ANYBODY)],
    table: Word = "",
    analyst: Word = "",
    state: Word = "",
    after: Word = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Questions, the newest first: the caller's own; for auditors and custodians anybody's.

    `after` is the `next` of the page before; it is empty on the last page.
    """
    told = await request.app.state.gate.history(
        caller, table=table, analyst=analyst, state=state, after=after, limit=limit
    )
    return json_reply(told)
