"""Who is logged in with a browser, and whether a form came from a page of this server.

A login is a cookie that the browser alone reads (HttpOnly) and sends to this server alone (SameSite=Strict). Where
the connection is encrypted its name begins with `__Host-`, which binds it to this host and to encryption. On plain
loopback a browser may refuse such a cookie, so there it has another name and is not marked Secure: nothing leaves
the machine.

A form is believed where the browser says that a page of this very server sent it (`Sec-Fetch-Site`), and where it
holds the token of its page: a hash of the cookie, which no other site can read or guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from understudy.server.gate import Gate
from understudy.server.http.who import check_same_origin, cookie_names, is_encrypted
from understudy.server.logins import LOGIN_SECONDS
from understudy.server.pages.rendering import page
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

MOST_FIELDS = 40
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link of a page's head: an address, its words, and the pages on which it is the current one."""

    address: str
    words: str
    current: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Visit:
    """A request of somebody who is logged in, and what a view needs to answer it.

    form is empty unless the request is a POST, and was checked then.
    """

    request: Request
    gate: Gate
    caller: Caller
    cookie: str
    door: str
    form: FormData = field(default_factory=FormData)

    @property
    def path(self) -> dict[str, str]:
        return self.request.path_params

    @property
    def is_part(self) -> bool:
        """Whether the script asks, which puts parts of the reply in place."""
        return self.request.headers.get("x-understudy-part") == "1"

    def asked(self, name: str, most: int = 200) -> str:
        """A parameter of the address; empty where there is none or where it is too long."""
        value = self.request.query_params.get(name, "")
        return value if len(value) <= most else ""

    def sent(self, name: str) -> str:
        """A text field of the form, without spaces around it; empty where it is missing."""
        value = self.form.get(name)
        return value.strip() if isinstance(value, str) else ""

    def upload(self, name: str) -> UploadFile | None:
        """A file of the form; None where no file was chosen."""
        value = self.form.get(name)
        return value if isinstance(value, UploadFile) and value.filename else None

    @property
    def tables(self) -> list[str]:
        return list(self.gate.served.tables)

    def table(self, name: str = "") -> str:
        """A table that is served: the named one, or the first; a `Problem` 404 for any other name."""
        if not name:
            return self.tables[0]
        if name not in self.tables:
            raise Problem(
                404, "no-table", "There is no such table here.", hint="Choose one that is listed.",
                suggestions=self.tables[:20],
            )  # fmt: skip
        return name

    def page(self, template: str, current: str, status: int = 200, **values: Any) -> Response:
        """A page for this visitor: `current` is the name of the page in the head's links."""
        return page(template, status, **self.chrome(current, str(values.get("table", ""))), **values)

    def chrome(self, current: str, table: str = "") -> dict[str, Any]:
        """What every page shows around its content."""
        return {
            "caller": self.caller,
            "door": self.door,
            "current": current,
            "navigation": navigation(self, table),
            "form_token": form_token(self.cookie),
            "elsewhere": elsewhere(self),
            "tables": self.tables,
        }


def navigation(visit: Visit, table: str) -> list[NavItem]:
    """The pages that a role has, in the order of the head."""
    if visit.door == "admin":
        return [
            NavItem("/", "Approvals", ("approvals",)),
            NavItem("/admin/tokens", "Tokens", ("tokens",)),
            NavItem("/admin/tables", "Tables", ("tables",)),
            NavItem("/admin/releases", "Releases", ("jobs",)),
            NavItem("/admin/health", "Health", ("health",)),
        ]
    place = f"/tables/{quote(table or visit.tables[0], safe='')}"
    items = [NavItem(f"{place}/ask", "Ask", ("ask",))] if visit.caller.role == "analyst" else []
    items += [
        NavItem(place, "Table", ("table",)),
        NavItem("/history", "History", ("history", "answer")),
        NavItem("/releases", "Releases", ("releases", "release")),
        NavItem("/boards", "Boards", ("boards", "board")),
    ]
    if visit.caller.role != "analyst":
        chosen = f"?table={quote(table, safe='')}" if table else ""
        items += [
            NavItem(f"/ledger{chosen}", "Ledger", ("ledger",)),
            NavItem("/audit", "Audit log", ("audit",)),
        ]
    return [*items, NavItem("/api", "API", ("api",))]


def elsewhere(visit: Visit) -> NavItem | None:
    """For a custodian, the way to the other port, where this server is reached without a proxy."""
    config = visit.gate.config
    if visit.caller.role != "custodian" or config.behind:
        return None
    to = config.listen.http if visit.door == "admin" else config.listen.admin
    host = visit.request.url.hostname or ""
    if not to.port or not host:
        return None
    host = f"[{host}]" if ":" in host else host
    words = "Pages" if visit.door == "admin" else "Admin"
    return NavItem(f"{visit.request.url.scheme}://{host}:{to.port}/", words, ())


# ---- logging in and out


def with_cookie(reply: Response, gate: Gate, value: str, *, door: str) -> Response:
    """The reply with the cookie of a new login at a port."""
    reply.set_cookie(
        cookie_names(gate.config, door)[0], value, max_age=int(LOGIN_SECONDS), path="/",
        secure=is_encrypted(gate.config), httponly=True, samesite="strict",
    )  # fmt: skip
    return reply


def without_cookie(reply: Response, gate: Gate, request: Request, value: str) -> Response:
    """The reply with the cookie of an ended login taken away; a login at the other port stays."""
    for name, held in request.cookies.items():
        if held == value and name in cookie_names(gate.config, "http"):
            reply.delete_cookie(
                name, path="/", secure=is_encrypted(gate.config), httponly=True, samesite="strict"
            )
    return reply


def to_login(request: Request) -> Response:
    """Where somebody who is not logged in is sent; afterwards they come back."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    query = "" if wanted == "/" else f"?next={quote(wanted, safe='/')}"
    return see(f"/login{query}")


def see(address: str) -> Response:
    """A redirection to another page of this server, which the browser fetches with GET."""
    return RedirectResponse(address, 303)


def local(address: str) -> str:
    """An address on this server as a login's form gave it; the first page where it leads anywhere else."""
    is_local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_local and "\\" not in address else "/"


# ---- forms


def form_token(cookie: str) -> str:
    """What a form of this login's pages holds."""
    return blake2b(cookie.encode(), digest_size=18, person=b"understudy form").hexdigest()


async def checked_form(request: Request, cookie: str | None, *, files: int = 0) -> FormData:
    """The fields of a form that a page of this server sent; a `Problem` 403 for any other form.

    With a cookie of None, at the login, there is no login to protect and no token is asked for.
    """
    check_same_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMS:
        raise Problem(415, "content-type", "This address takes a form.", hint="Use the page's own form.")
    form = await request.form(max_files=files, max_fields=MOST_FIELDS)
    given = form.get("form_token")
    if cookie is not None and not (isinstance(given, str) and compare_digest(given, form_token(cookie))):
        raise Problem(
            403, "form", "This form is of an earlier login, or did not come from a page of this server.",
            hint="Go back, load the page again, and send the form once more.",
        )  # fmt: skip
    return form
