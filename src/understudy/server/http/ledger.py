"""The ledgers and the audit log over HTTP, for auditors and custodians."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import AUDITOR
from understudy.server.tokens import Caller

router = APIRouter(tags=["audit"])

Table = Annotated[str, Query(max_length=200, description="The name of the table.")]
Number = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/v1/ledger/entries", responses=refusals(404, 422))
async def entries(
    request: Request,
    caller: Annotated[Caller, Depends(AUDITOR)],
    table: Table,
    after: Number = 0,
    limit: Limit = 100,
    analyst: Annotated[str | None, Query(max_length=200)] = None,
    newest_first: bool = False,  # noqa: FBT001, FBT002  # a parameter of the query
) -> Response:
    """A page of a table's ledger: what was done, for whom, at what cost, with running totals and hashes.

    `after` is the `next` of the page before.
    """
    told = await request.app.state.auditing.entries(
        caller, table, after=after, limit=limit, analyst=analyst, newest_first=newest_first
    )
    return json_reply(told)


@router.get("/v1/ledger/verify", responses=refusals(404, 422))
async def verify(request: Request, caller: Annotated[Caller, Depends(AUDITOR)], table: Table) -> Response:
    """The verdict of the verifier, which shares no code with the ledger, on every entry, hash and total."""
    return json_reply(await request.app.state.auditing.verdict(caller, table))


@router.get("/v1/ledger/export", responses=refusals(404, 422))
async def export(
    request: Request,
    caller: Annotated[Caller, Depends(AUDITOR)],
    table: Table,
    as_it_is: bool = False,  # noqa: FBT001, FBT002  # a parameter of the query
) -> Response:
    """The ledger as one Python file that verifies itself: `python FILE`. Without the released answers.

    A ledger that does not verify is refused; with `as_it_is` it comes as `ledger-not-sound.py`, and says so.
    """
    found = await request.app.state.auditing.export(caller, table, as_it_is=as_it_is)
    name = "ledger-not-sound.py" if found.problems else "ledger.py"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(found.text, media_type="text/x-python; charset=utf-8", headers=headers)


@router.get("/v1/audit", responses=refusals(422))
async def audit(
    request: Request,
    caller: Annotated[Caller, Depends(AUDITOR)],
    after: Number = 0,
    limit: Limit = 100,
) -> Response:
    """Entries of the audit log beyond number `after`: who did what at this server, chained by hashes."""
    return json_reply(await request.app.state.auditing.log(caller, after=after, limit=limit))


@router.get("/v1/audit/verify", responses=refusals())
async def verify_audit(request: Request, caller: Annotated[Caller, Depends(AUDITOR)]) -> Response:
    """Whether the audit log's chain is whole, and its last number and hash."""
    return json_reply(await request.app.state.auditing.log_verdict(caller))
