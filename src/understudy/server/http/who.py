"""Who calls over HTTP: a bearer token, or the cookie of a browser that logged in with one.

The analyst's name comes from the token and from nothing in the request. A cookie is sent by a browser whatever
page it shows, so that a request that changes something counts under a cookie only where the browser says that a
page of this very server sent it. Whoever tries tokens that are none is slowed down by address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from understudy.server.gate import Gate
from understudy.server.http.security import Scope
from understudy.server.logins import Logins
from understudy.server.pace import RateLimiter
from understudy.server.problems import Problem
from understudy.server.tokens import ROLES, Caller

DOOR = "http"
COOKIE = "__Host-understudy"
"""The name of the cookie on an encrypted connection; a browser refuses it on any other."""

PLAIN_COOKIE = "understudy"
"""The name on loopback, where there is no encryption."""

FAILURES = 5.0
"""Wrong tokens a second that one address may try."""


class Doorman:
    """Finds out who calls, for one server."""

    def __init__(self, gate: Gate) -> None:
        self._tokens = gate.tokens
        self.logins = Logins(gate.store, gate.tokens)
        self._failures = RateLimiter(FAILURES)

    def caller(self, scope: Scope) -> Caller:
        """Who calls; a `Problem` 401 where nobody known does, 403 where a cookie came from another site."""
        given = header(scope, b"authorization")
        if given:
            kind, _, secret = given.partition(" ")
            found = self._tokens.find(secret.strip(), door=DOOR) if kind.lower() == "bearer" else None
        else:
            found = self._logged_in(Request(scope))
        if found is None:
            self._failures.admit(scope["client"][0] if scope.get("client") else "")
            raise Problem(
                401,
                "token",
                "There is no valid token in this request.",
                hint="Send the header `Authorization: Bearer TOKEN`; a custodian makes tokens.",
            )
        scope["analyst"] = found.analyst
        return found

    def _logged_in(self, request: Request) -> Caller | None:
        cookie = request.cookies.get(COOKIE) or request.cookies.get(PLAIN_COOKIE)
        if not cookie:
            return None
        found = self.logins.find(cookie)
        if found is not None and request.method not in ("GET", "HEAD"):
            check_same_origin(request)
        return found


def header(scope: Scope, name: bytes) -> str:
    """The value of a request's header; empty where it has none."""
    for found, value in scope["headers"]:
        if found == name:
            return value.decode("latin-1")
    return ""


def check_same_origin(request: Request) -> None:
    """Refuse a request that another site had a browser send."""
    if request.headers.get("sec-fetch-site") != "same-origin":
        raise Problem(
            403,
            "cross-site",
            "This request did not come from a page of this server.",
            hint="Use the server's own pages, or a token in the header `Authorization`.",
        )


def allowed(*roles: str) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency of a route: the caller, whose role must be one of these."""
    unknown = set(roles) - set(ROLES)
    assert not unknown, unknown

    async def caller(request: Request) -> Caller:
        found = request.app.state.doorman.caller(request.scope)
        if found.role not in roles:
            raise Problem(
                403,
                "role",
                f"A token of the role {found.role} may not do this.",
                hint=f"It takes one of the role {' or '.join(roles)}.",
            )
        return found

    return caller


ANYBODY = allowed(*ROLES)
ANALYST = allowed("analyst")
AUDITOR = allowed("auditor", "custodian")
CUSTODIAN = allowed("custodian")
