"""The pages as a door: which address shows what, who may see it, and how refusals look.

Every page's reply passes one function: it finds out who is logged in, checks the role and, for a form, where it
came from; a `Problem` becomes a page that says what to do. Whoever is not logged in gets the login alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from understudy.server.gate import Gate
from understudy.server.http.who import CallerIdentification
from understudy.server.logins import LINK_PATH
from understudy.server.logs import log_failure
from understudy.server.pages.rendering import page, static_files
from understudy.server.pages.views import (
    admin,
    answers,
    api,
    ask,
    audit,
    boards,
    entrance,
    ledger,
    releases,
    table,
)
from understudy.server.pages.visitor import Visit, checked_form, to_login
from understudy.server.problems import TITLES, Problem, problem_of
from understudy.server.tokens import ROLES

KEPT = "public, max-age=31536000, immutable"
"""For how long a browser keeps a static file: its address changes with its content."""

NOBODY: dict[str, Any] = {
    "caller": None, "current": "", "navigation": [], "form_token": "", "elsewhere": None, "tables": [],
    "door": "http",
}  # fmt: skip
"""What stands around a page for somebody who is not logged in."""

View = Callable[[Visit], Awaitable[Response]]
READERS = ("auditor", "custodian")


@dataclass(frozen=True, slots=True)
class ServedPage:
    """An address, the view behind it, and who may see it. `files` is how many files its form may carry."""

    path: str
    view: View
    roles: tuple[str, ...] = ROLES
    method: str = "GET"
    files: int = 0


PAGES = (
    ServedPage("/", ask.first),
    ServedPage("/tables/{table}", table.table),
    ServedPage("/tables/{table}/ask", ask.ask, ("analyst",)),
    ServedPage("/tables/{table}/ask", ask.asked, ("analyst",), "POST"),
    ServedPage("/tables/{table}/price", ask.priced, ("analyst",), "POST"),
    ServedPage("/history", answers.history),
    ServedPage("/history.csv", answers.history_csv),
    ServedPage("/asks/{id}", answers.answer),
    ServedPage("/asks/{id}/answer.csv", answers.answer_csv),
    ServedPage("/releases", releases.releases),
    ServedPage("/releases/{release}", releases.release),
    ServedPage("/boards", boards.boards),
    ServedPage("/boards/{board}", boards.board),
    ServedPage("/boards/{board}/submissions", boards.submitted, ("analyst",), "POST", 1),
    ServedPage("/ledger", ledger.ledger, READERS),
    ServedPage("/audit", audit.audit, READERS),
    ServedPage("/api", api.api),
)
"""The pages of the analysts' port."""

CUSTODIAN = ("custodian",)
ADMIN_PAGES = (
    ServedPage("/", admin.approvals, CUSTODIAN),
    ServedPage("/admin/approvals/{id}", admin.decided, CUSTODIAN, "POST"),
    ServedPage("/admin/tokens", admin.tokens, CUSTODIAN),
    ServedPage("/admin/tokens", admin.made, CUSTODIAN, "POST"),
    ServedPage("/admin/tokens/{id}/revoke", admin.revoked, CUSTODIAN, "POST"),
    ServedPage("/admin/tables", admin.tables, CUSTODIAN),
    ServedPage("/admin/tables/{table}/pause", admin.paused, CUSTODIAN, "POST"),
    ServedPage("/admin/releases", admin.jobs, CUSTODIAN),
    ServedPage("/admin/releases", admin.started, CUSTODIAN, "POST"),
    ServedPage("/admin/health", admin.health, CUSTODIAN),
)
"""The pages of the admin port."""


def add_pages(app: FastAPI, gate: Gate, *, door: str = "http") -> None:
    """Add the pages of a door, `http` or `admin`, to its application."""
    identification: CallerIdentification = app.state.identification
    routes = [
        _route("/login", "GET", lambda request: entrance.login(request, door)),
        _route(LINK_PATH, "GET", lambda request: entrance.login(request, door)),
        _route("/login", "POST", lambda request: entrance.logged_in(request, gate, identification, door)),
        _route("/logout", "POST", lambda request: entrance.logged_out(request, gate, identification)),
        Route("/static/{name}", _static, include_in_schema=False),
    ]
    for one in PAGES if door == "http" else ADMIN_PAGES:
        routes.append(_route(one.path, one.method, _visited(one, gate, identification, door)))
    app.router.routes.extend(routes)
    told = app.exception_handlers.get(HTTPException)

    async def no_page(request: Request, error: Exception) -> Response:
        """Where there is nothing: a page for browsers, JSON for programs."""
        if is_for_people(request) and isinstance(error, HTTPException):
            problem = Problem(
                error.status_code if error.status_code in TITLES else 404, "no-page",
                "There is no page at this address.", hint="Go to the first page and take one of the links.",
            )  # fmt: skip
            found = identification.visitor(request)
            if found is None:
                return problem_page(problem)
            visit = Visit(request=request, gate=gate, caller=found[0], cookie=found[1], door=door)
            return problem_page(problem, **visit.chrome(""))
        assert told is not None
        return await told(request, error)  # pyright: ignore[reportGeneralTypeIssues]

    app.exception_handlers[HTTPException] = no_page


def _route(path: str, method: str, reply: Callable[[Request], Awaitable[Response]]) -> Route:
    named = SimpleNamespace(path=path)

    async def endpoint(request: Request) -> Response:
        request.scope["route"] = named  # for the metrics and the log
        try:
            return await reply(request)
        except Problem as problem:
            return problem_page(problem, part=request.headers.get("x-understudy-part") == "1")
        except HTTPException:  # a form that cannot be read
            unread = Problem(
                400, "form", "The form cannot be read.", hint="Load the page again and send it again."
            )
            return problem_page(unread)
        except Exception as error:
            failed = problem_of(error)
            failed.more["reference"] = log_failure(error, "pages")
            return problem_page(failed)

    return Route(path, endpoint, methods=[method], include_in_schema=False)


def _visited(
    one: ServedPage, gate: Gate, identification: CallerIdentification, door: str
) -> Callable[[Request], Awaitable[Response]]:
    async def reply(request: Request) -> Response:
        found = identification.visitor(request)
        if found is None:
            if request.method in ("GET", "HEAD"):
                return to_login(request)
            raise Problem(
                401, "login", "You are not logged in any more.", hint="Log in, and send the form again."
            )
        caller, cookie = found
        request.scope["analyst"] = caller.analyst
        visit = Visit(request=request, gate=gate, caller=caller, cookie=cookie, door=door)
        if one.method == "POST":
            visit.form = await checked_form(request, cookie, files=one.files)
        try:
            if caller.role not in one.roles:
                raise Problem(
                    403, "role", f"A login of the role {caller.role} does not see this page.",
                    hint=f"It takes a token of the role {' or '.join(one.roles)}.",
                )  # fmt: skip
            with gate.one_request(caller):
                return await one.view(visit)
        except Problem as problem:
            return problem_page(problem, part=visit.is_part, **visit.chrome(""))

    return reply


async def _static(request: Request) -> Response:
    request.scope["route"] = SimpleNamespace(path="/static/{name}")
    found = static_files().get(request.path_params["name"])
    if found is None:
        return problem_page(Problem(404, "no-page", "There is no such file.", hint="Go to the first page."))
    body, kind = found
    return Response(body, media_type=kind, headers={"cache-control": KEPT})


def is_for_people(request: Request) -> bool:
    """Whether a browser shows the reply: it accepts pages, and the address is not one for programs."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")


def problem_page(problem: Problem, *, part: bool = False, **chrome: Any) -> Response:
    """A refusal as a page, or for the script as the part of a page that tells it."""
    told = {"problem": problem.as_plain(), "table": ""}
    if part:
        reply = page("problem_part.html", problem.status, **told)
    else:
        reply = page("problem.html", problem.status, **told, **(NOBODY | chrome))
    if problem.retry_after is not None:
        reply.headers["retry-after"] = str(max(1, round(problem.retry_after + 0.499)))
    return reply
