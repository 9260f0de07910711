"""Releases over HTTP: what was published, its files, and answers from it, which cost nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, Response

from understudy.releases.files import REPORT
from understudy.server.http.bodies import ReleaseAskBody, asked_of_release, body_of
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANYBODY
from understudy.server.tokens import Caller

router = APIRouter(tags=["releases"])

_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def report_policy(body: bytes) -> str:
    """The content policy of a report: a sandbox in which it shows itself, alone or in a page of this server.

    Its own style sheets are permitted by their hashes, whatever version of the program wrote it; it runs, loads
    and sends nothing.
    """
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(sheet).digest()).decode()}'" for sheet in _STYLE.findall(body)
    )
    styles = hashes or "'none'"
    return (
        f"sandbox; default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    )


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
        body = await state.gate.on_free(caller, path.read_bytes)
        headers = {"content-security-policy": report_policy(body), "x-frame-options": "SAMEORIGIN"}
        return Response(body, media_type=kind, headers=headers)
    return FileResponse(path, media_type=kind, filename=f"{release}-{file}")


@router.post(
    "/v1/releases/{release}/ask",
    responses=refusals(400, 404, 409, 413, 415, 422),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ReleaseAskBody.model_json_schema()}},
        },
    },
)
async def ask_release(
    release: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]
) -> Response:
    """Ask a release. It is public: no table is looked at, and nothing is charged.

    The answer is that of `understudy ask --release`: `measured` or `checked` where the release certifies its
    error, `uncertified` where it comes from the model alone.
    """
    state = request.app.state
    question = asked_of_release(await body_of(request))
    told = await state.gate.on_free(
        caller, lambda: state.releases.answers.answer(release, question), alone=f"release {release}"
    )
    return json_reply(told)
