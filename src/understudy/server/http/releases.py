"""Releases over HTTP: what was published, and its files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, Response

from understudy.releases.folder import REPORT
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANYBODY
from understudy.server.tokens import Caller

router = APIRouter(tags=["releases"])

REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
"""A report is a page of its own: it may show itself inside a page of this server, and run and load nothing."""


@router.get("/v1/releases", responses=refusals())
async def releases(request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """The releases that were published: method, price, and the files of each."""
    state = request.app.state
    return json_reply({"releases": await state.gate.on_free(caller, state.releases.listed)})


@router.get("/v1/releases/{release}/{file}", responses=refusals(404), response_class=FileResponse)
async def release_file(
    release: str, file: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]
) -> Response:
    """A file of a release: report.html, certificate.json, answers.parquet, synthetic.parquet or its stand-in."""
    state = request.app.state
    path, kind = await state.gate.on_free(caller, lambda: state.releases.file(release, file))
    if file == REPORT:
        headers = {"content-security-policy": REPORT_POLICY, "x-frame-options": "SAMEORIGIN"}
        return FileResponse(path, media_type=kind, headers=headers)
    return FileResponse(path, media_type=kind, filename=f"{release}-{file}")
