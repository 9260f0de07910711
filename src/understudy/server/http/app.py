"""The HTTP application: routes, what they say about themselves, and problems in one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import understudy
from understudy.server.auditing import Auditing
from understudy.server.gate import Gate
from understudy.server.http import admin, asks, boards, history, ledger, releases, sessions, tables
from understudy.server.http.replying import ProblemBody, json_reply, problem_reply
from understudy.server.http.who import CallerIdentification
from understudy.server.logs import log_failure
from understudy.server.metrics import Metrics
from understudy.server.problems import Problem, problem_of
from understudy.server.served_boards import ServedBoards
from understudy.server.served_releases import ServedReleases

DESCRIPTION = (
    "Questions to declared tables, each answered from one privacy budget. Every answer has an error and a price; "
    "every refusal says what to do instead."
)


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes of both ports call: the gate, and what stands behind it beside questions."""

    gate: Gate
    auditing: Auditing
    boards: ServedBoards
    releases: ServedReleases
    metrics: Metrics

    @classmethod
    def behind(cls, gate: Gate, metrics: Metrics) -> Services:
        return cls(gate, Auditing(gate), ServedBoards(gate), ServedReleases(gate.config.releases), metrics)


def http_app(services: Services) -> FastAPI:
    """The application of the analysts' port. `Guard` stands before it."""
    app = bare_app(services, title="Understudy")
    app.add_api_route(**asks.ASK)
    for part in (tables, asks, sessions, history, releases, boards, ledger):
        app.include_router(part.router)
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    app.add_api_route("/readyz", _ready, include_in_schema=False)
    return app


def admin_app(services: Services) -> FastAPI:
    """The application of the custodians' port."""
    app = bare_app(services, title="Understudy, for custodians", door="admin")
    app.include_router(admin.router)
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    return app


def bare_app(services: Services, *, title: str, door: str = "http") -> FastAPI:
    """An application without routes: who calls, how problems are told, and its own description at /openapi.json.

    FastAPI's pages of documentation load programs from elsewhere, which the content policy forbids: they are off.
    """
    app = FastAPI(
        title=title,
        description=DESCRIPTION,
        version=understudy.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.gate = services.gate
    app.state.auditing = services.auditing
    app.state.boards = services.boards
    app.state.releases = services.releases
    app.state.metrics = services.metrics
    app.state.identification = CallerIdentification(services.gate, door)
    app.add_exception_handler(Problem, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_route)
    document: dict[str, Any] = {}

    async def openapi(_: Request) -> Response:
        if not document:
            document.update(described(app))
        return json_reply(document)

    app.add_api_route("/openapi.json", openapi, include_in_schema=False)
    return app


def described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the scheme of tokens and the schema of problems."""
    told = app.openapi()
    parts = told.setdefault("components", {})
    parts.setdefault("schemas", {})["ProblemBody"] = ProblemBody.model_json_schema()
    parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    told["security"] = [{"bearer": []}]
    return told


async def _alive(_: Request) -> Response:
    """Whether the process answers at all."""
    return json_reply({"alive": True})


async def _ready(request: Request) -> Response:
    """Whether every table's ledger can be read; which ones cannot is the custodian's to know, and in the log."""
    gate: Gate = request.app.state.gate
    ready = await gate.free.run(
        lambda: all(table.is_open for table in gate.served.tables.values()), analyst=""
    )
    return json_reply({"ready": ready}, 200 if ready else 503)


async def _told(_: Request, problem: Exception) -> Response:
    told = problem_of(problem)
    if told.status >= 500 and problem.__cause__ is not None:
        log_failure(problem, "gate")
    return problem_reply(told)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0] if error.errors() else {}
    place = ".".join(str(part) for part in first.get("loc", ())[1:])[:100]
    detail = f"The parameter {place!r} is not valid: {first.get('msg', 'it has another form')}."
    return problem_reply(Problem(422, "parameter", detail, hint="See /openapi.json."))


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        problem = Problem(405, "method", "This address takes another method.", hint="See /openapi.json.")
    elif error.status_code == 404:
        problem = Problem(404, "no-address", "There is nothing at this address.", hint="See /openapi.json.")
    else:
        problem = Problem(error.status_code, "http", "The request cannot be read.", hint="See /openapi.json.")
    reply = problem_reply(problem)
    for name, value in (error.headers or {}).items():
        reply.headers[name] = value
    return reply
