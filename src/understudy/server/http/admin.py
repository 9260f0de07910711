"""The admin port: tokens, approvals, limits, pauses, releases and metrics, for custodians alone.

It is an application of its own on a port of its own, so that a network can be told apart from the analysts'. What
a custodian does here is written into the audit log, which auditors read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from understudy.errors import ParameterError
from understudy.releases.method_names import OFFERED
from understudy.server.http.bodies import body_of
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import CUSTODIAN
from understudy.server.problems import Problem
from understudy.server.tokens import DAYS, DOORS, Caller

router = APIRouter(tags=["admin"])

Custodian = Annotated[Caller, Depends(CUSTODIAN)]


class _AdminBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TokenBody(_AdminBody):
    """A new token."""

    analyst: str = Field(min_length=1, max_length=64)
    role: Literal["analyst", "auditor", "custodian"] = "analyst"
    doors: list[Literal["http", "pg", "mcp"]] = Field(
        default_factory=lambda: list(DOORS), min_length=1, max_length=3
    )
    days: float = Field(DAYS, gt=0, le=3660, allow_inf_nan=False)
    agent: bool = False
    read_only: bool = False


class DecisionBody(_AdminBody):
    """A decision about a question that waits; a denial needs a reason, which the analyst reads."""

    decision: Literal["approve", "deny"]
    reason: str = Field("", max_length=1000)


class PauseBody(_AdminBody):
    """A table to pause, and why, which analysts read."""

    table: str = Field(max_length=200)
    reason: str = Field("", max_length=500)


class TableBody(_AdminBody):
    """A table by its name."""

    table: str = Field(max_length=200)


def _offered(method: str) -> str:
    if method and method not in OFFERED:
        raise ValueError(f"a method is one of {', '.join(OFFERED)}")
    return method


class ReleaseBody(_AdminBody):
    """A release to make: its name, the table, what it may spend, and options of `understudy release`.

    `yes` lets it take more than a quarter of the budget.
    """

    name: str = Field(max_length=100)
    table: str = Field(max_length=200)
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    workload: str = Field("", max_length=200, pattern=r"^((all-)?[1-9]-way)?$")
    method: Annotated[str, AfterValidator(_offered), Field(json_schema_extra={"enum": ["", *OFFERED]})] = ""
    rows: int | None = Field(None, ge=0, le=10**9)
    seconds: float | None = Field(None, gt=0, allow_inf_nan=False)
    yes: bool = False


def _described(body: type[BaseModel]) -> dict[str, Any]:
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body.model_json_schema()}},
        }
    }


async def _read(request: Request, kind: type[_AdminBody]) -> Any:
    try:
        return kind.model_validate(await body_of(request))
    except ValueError as error:
        first = getattr(error, "errors", list)()[:1]
        place = ".".join(map(str, first[0]["loc"]))[:100] if first else ""
        word = str(first[0]["msg"])[:200] if first else "it has another form"
        raise Problem(
            422, "body", f"The field {place!r} is not valid: {word}.", hint="See /openapi.json."
        ) from None


@router.get("/tokens", responses=refusals())
async def tokens(request: Request, caller: Custodian) -> Response:
    """Every token without its secret: whose it is, its role, doors, expiry and last use."""
    gate = request.app.state.gate

    def told() -> list[dict[str, Any]]:
        return [token.as_dict(gate.store.now()) for token in gate.tokens.all()]

    return json_reply({"tokens": await gate.on_free(caller, told)})


@router.post(
    "/tokens", responses=refusals(400, 415, 422), status_code=201, openapi_extra=_described(TokenBody)
)
async def make_token(request: Request, caller: Custodian) -> Response:
    """Make a token. Its secret is in this reply and nowhere else."""
    gate, body = request.app.state.gate, await _read(request, TokenBody)

    def made() -> dict[str, Any]:
        token, secret = gate.tokens.make(
            body.analyst, role=body.role, doors=body.doors, days=body.days, agent=body.agent,
            read_only=body.read_only, by=caller.analyst,
        )  # fmt: skip
        return {**token.as_dict(gate.store.now()), "secret": secret}

    return json_reply(await gate.on_free(caller, made), 201)


@router.delete("/tokens/{id}", responses=refusals(404))
async def revoke(id: str, request: Request, caller: Custodian) -> Response:
    """Revoke a token, and the browser logins that were opened with it; a server notices within a second."""
    gate = request.app.state.gate

    def revoked() -> dict[str, Any]:
        if gate.tokens.get(id) is None:
            raise Problem(404, "no-token", "There is no such token.", hint="GET /tokens lists them.")
        return gate.tokens.revoke(id, by=caller.analyst).as_dict(gate.store.now())

    return json_reply(await gate.on_free(caller, revoked))


@router.get("/approvals", responses=refusals(422))
async def approvals(
    request: Request,
    caller: Custodian,
    state: Literal["waiting", "approved", "denied", "expired", "answered"] | None = None,
) -> Response:
    """Questions that need, or needed, an approval: who asks, why, the price, and its part of the budget."""
    gate = request.app.state.gate
    found = await gate.on_free(caller, lambda: [one.as_dict() for one in gate.approvals.all(state)])
    return json_reply({"approvals": found})


@router.post(
    "/approvals/{id}", responses=refusals(400, 404, 409, 415, 422), openapi_extra=_described(DecisionBody)
)
async def decide(id: str, request: Request, caller: Custodian) -> Response:
    """Approve a waiting question, which the server then asks, or deny it with a reason that the analyst reads."""
    gate, body = request.app.state.gate, await _read(request, DecisionBody)
    if body.decision == "deny" and not body.reason.strip():
        raise Problem(422, "reason", "A denial needs a reason.", hint="The analyst reads it.")

    def decided() -> dict[str, Any]:
        found = gate.approvals.get(id)
        if found is None:
            raise Problem(404, "no-approval", "No such question waits.", hint="GET /approvals lists them.")
        try:
            if body.decision == "approve":
                return gate.approvals.approve(id, caller.analyst).as_dict()
            return gate.approvals.deny(id, caller.analyst, body.reason).as_dict()
        except ParameterError:
            raise Problem(
                409,
                "decided",
                f"The question is {found.state} already.",
                hint="GET /approvals lists what waits.",
            ) from None

    return json_reply(await gate.on_free(caller, decided))


@router.get("/limits", responses=refusals())
async def limits(request: Request, caller: Custodian) -> Response:
    """The limits of every table, and what each analyst has spent of it."""
    return json_reply({"tables": await request.app.state.gate.limits(caller)})


@router.post("/limits", responses=refusals(400, 404, 415, 422), openapi_extra=_described(TableBody))
async def reload_limits(request: Request, caller: Custodian) -> Response:
    """Read a table's declaration again, so that limits which were changed in it hold from now on."""
    gate, body = request.app.state.gate, await _read(request, TableBody)
    return json_reply(await gate.reload(caller, body.table))


@router.get("/pause", responses=refusals())
async def pauses(request: Request, caller: Custodian) -> Response:
    """The tables that are paused, by whom and why."""
    gate = request.app.state.gate
    found = await gate.on_free(caller, gate.pauses.all)
    return json_reply({"paused": [{"table": one.table, "by": one.by, "reason": one.reason} for one in found]})


@router.post("/pause", responses=refusals(400, 404, 415, 422), openapi_extra=_described(PauseBody))
async def pause(request: Request, caller: Custodian) -> Response:
    """Pause a table: its questions are refused with a 503 that tells the reason, until it is resumed."""
    gate, body = request.app.state.gate, await _read(request, PauseBody)
    gate.table(body.table)
    await gate.on_free(caller, lambda: gate.pauses.pause(body.table, by=caller.analyst, reason=body.reason))
    return json_reply({"table": body.table, "paused": True})


@router.delete("/pause/{table}", responses=refusals(404))
async def resume(table: str, request: Request, caller: Custodian) -> Response:
    """Serve a table again."""
    gate = request.app.state.gate
    gate.table(table)
    await gate.on_free(caller, lambda: gate.pauses.resume(table, by=caller.analyst))
    return json_reply({"table": table, "paused": False})


@router.get("/releases", responses=refusals())
async def release_runs(request: Request, caller: Custodian) -> Response:
    """The releases that this server is making or made since it started."""
    request.app.state.gate.admit(caller)
    return json_reply({"runs": [run.as_dict() for run in request.app.state.releases.runs.values()]})


@router.post(
    "/releases",
    responses=refusals(400, 404, 409, 415, 422),
    status_code=202,
    openapi_extra=_described(ReleaseBody),
)
async def start_release(request: Request, caller: Custodian) -> Response:
    """Make a release of a table in a process of its own; GET /releases tells how far it is."""
    gate, body = request.app.state.gate, await _read(request, ReleaseBody)
    gate.admit(caller)
    given = {"workload": body.workload, "method": body.method, "rows": body.rows, "seconds": body.seconds}
    options = {name: str(value) for name, value in given.items() if value not in (None, "")}
    facts = {"release": body.name, "table": body.table, "epsilon": body.epsilon}
    path = gate.table(body.table).path
    run = await request.app.state.releases.start(
        body.name,
        table=body.table,
        declaration=path,
        by=caller.analyst,
        epsilon=body.epsilon,
        options=options,
        sure=body.yes,
    )
    await gate.on_free(caller, lambda: gate.audit.write(caller.analyst, "start release", facts))
    return json_reply(run.as_dict(), 202)


@router.get("/metrics", responses=refusals())
async def metrics(request: Request, caller: Custodian) -> Response:
    """Requests by route, the queues, and what is left of each budget, as Prometheus reads them."""
    gate, told = request.app.state.gate, request.app.state.metrics
    for name, queue in (("look", gate.looks), ("free", gate.free)):
        told.note_queue(name, active=queue.active, waiting=queue.length)
    for line in await gate.tables(caller):
        if line["left"] is not None:
            told.note_left(line["name"], line["left"])
    return Response(told.page(), media_type="text/plain; version=0.0.4; charset=utf-8")
