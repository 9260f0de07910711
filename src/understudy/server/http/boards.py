"""Leaderboards over HTTP: standings, and submissions of up to 64 MiB."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from understudy.answer.plain import without_infinity
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANALYST, ANYBODY
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

router = APIRouter(tags=["boards"])

PART = 1 << 16


@router.get("/v1/boards", responses=refusals())
async def boards(request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """The leaderboards, and how many submissions each still takes."""
    return json_reply({"boards": await request.app.state.boards.listed(caller)})


@router.get("/v1/boards/{board}", responses=refusals(404))
async def standings(board: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """A leaderboard: its terms, and every score that was given with its certified width."""
    return json_reply(without_infinity(await request.app.state.boards.standings(caller, board)))


@router.post(
    "/v1/boards/{board}/submissions",
    responses=refusals(404, 409, 413, 415, 422),
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def submit(
    board: str,
    request: Request,
    caller: Annotated[Caller, Depends(ANALYST)],
    name: Annotated[str, Query(max_length=80)] = "",
    guess: Annotated[float | None, Query(allow_inf_nan=False)] = None,
) -> Response:
    """Score a file of predictions: the ids, and one column of predictions. A malformed one is not counted.

    The body is the file, as CSV or Parquet, or a form with the field `file` (and `name`, `guess`).
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    boards = request.app.state.boards
    if kind == "multipart/form-data":
        try:
            form = await request.form(max_files=1, max_fields=4, max_part_size=4096)
        except HTTPException:
            raise Problem(
                400, "form", "The form cannot be read.", hint="Send the file in the field `file`."
            ) from None
        try:
            file, label = form.get("file"), form.get("name")
            if not isinstance(file, UploadFile):
                raise Problem(
                    422, "form", "There is no file in the form.", hint="Send it in the field `file`."
                )
            is_parquet = (file.filename or "").lower().endswith(".parquet")
            told = await boards.submit(
                caller,
                board,
                label=label if isinstance(label, str) else name,
                kind="application/vnd.apache.parquet" if is_parquet else "text/csv",
                guess=guess,
                parts=_parts(file),
            )
        finally:
            await form.close()
    else:
        told = await boards.submit(caller, board, label=name, kind=kind, guess=guess, parts=request.stream())
    return json_reply(without_infinity(told), 201)


async def _parts(file: UploadFile) -> AsyncIterator[bytes]:
    while part := await file.read(PART):
        yield part
