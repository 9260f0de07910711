"""Who calls over HTTP: a bearer token, or the cookie of a browser that logged in with one.

The analyst's name comes from the token and from nothing in the request. A cookie is sent by a browser whatever
page it shows, so that a request that changes something counts under a cookie only where the browser says that a
page of this very server sent it. Whoever tries tokens that are none is slowed down by address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from understudy.server.config import ServerConfig
from understudy.server.gate import Gate
from understudy.server.http.security import Scope
from understudy.server.logins import Logins
from understudy.server.pace import RateLimiter
from understudy.server.problems import Problem
from understudy.server.tokens import ROLES, Caller, Tokens

DOOR = "http"
COOKIES = {"http": "understudy", "admin": "understudy-admin"}
"""The names of the cookies of the two ports. A browser sends a host's cookies to all of its ports, so that each
port has a name of its own: somebody can be an analyst at one and a custodian at the other.
"""

ENCRYPTED = "__Host-"
"""How the names begin on an encrypted connection; a browser takes such a cookie from no other, and from this host
alone.
"""

FAILURES = 5.0
"""Wrong tokens a second that one address may try."""


def is_encrypted(config: ServerConfig) -> bool:
    """Whether browsers reach this server encrypted: it ends TLS itself, or a declared proxy does."""
    return config.tls is not None or bool(config.behind)


def cookie_names(config: ServerConfig, door: str) -> tuple[str, str]:
    """The names of the cookies that count at a port: its own, and after it the other port's.

    Where the server is reached encrypted, a cookie without the prefix is not looked at: whoever can speak
    unencrypted in a server's name could set one.
    """
    other = "admin" if door == "http" else "http"
    prefix = ENCRYPTED if is_encrypted(config) else ""
    return prefix + COOKIES[door], prefix + COOKIES[other]


class CallerIdentification:
    """Finds out who calls at one port of a server, `http` or `admin`."""

    def __init__(self, gate: Gate, door: str = "http") -> None:
        self._tokens = gate.tokens
        self._cookies = cookie_names(gate.config, door)
        self._door = door
        self.logins = Logins(gate.store, gate.tokens)
        self._failures = RateLimiter(FAILURES)

    def caller(self, scope: Scope) -> Caller:
        """Who calls; a `Problem` 401 where nobody known does, 403 where a cookie came from another site."""
        if header(scope, b"authorization"):
            found = bearer(self._tokens, scope, door=DOOR)
        else:
            found = self._logged_in(Request(scope))
        if found is None:
            self.note_failure(scope)
            raise Problem(
                401,
                "token",
                "There is no valid token in this request.",
                hint="Send the header `Authorization: Bearer TOKEN`; a custodian makes tokens.",
            )
        scope["analyst"] = found.analyst
        return found

    def note_failure(self, scope: Scope) -> None:
        """Count a token that was none; a `Problem` 429 where its address has tried too many."""
        self._failures.admit(scope["client"][0] if scope.get("client") else "")

    def visitor(self, request: Request) -> tuple[Caller, str] | None:
        """Who is logged in with a browser, and the cookie that says so; None where nobody is.

        At the admin port the other port's cookie counts for custodians alone: there is nothing else to see.
        """
        own, other = self._cookies
        for name in (own, other):
            cookie = request.cookies.get(name)
            found = self.logins.find(cookie) if cookie else None
            if cookie and found is not None:
                if name == other and self._door == "admin" and found.role != "custodian":
                    continue
                return found, cookie
        return None

    def _logged_in(self, request: Request) -> Caller | None:
        found = self.visitor(request)
        if found is not None and request.method not in ("GET", "HEAD"):
            check_same_origin(request)
        return None if found is None else found[0]


def bearer(tokens: Tokens, scope: Scope, *, door: str) -> Caller | None:
    """Whose token a request carries, if it is valid at this door; None where it carries none that is."""
    kind, _, secret = header(scope, b"authorization").partition(" ")
    return tokens.find(secret.strip(), door=door) if kind.lower() == "bearer" else None


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
        found = request.app.state.identification.caller(request.scope)
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
