"""Logging in with a token or with a custodian's one-time link, and logging out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from understudy.server.gate import Gate
from understudy.server.http.who import CallerIdentification
from understudy.server.pages.rendering import page
from understudy.server.pages.visitor import checked_form, form_token, local, see, with_cookie, without_cookie

MOST_SECRET = 200
"""Characters of a token that are looked at."""

WRONG = (
    "This is no valid token: it may have expired, been revoked, or be for another door. Copy it whole, "
    "or ask the custodian for a new one."
)
USED = (
    "This link was used already, or more than 15 minutes have passed. A custodian makes a token with "
    "`understudy token new`; a server that nobody has such a token for prints new links when it starts."
)


async def login(request: Request, door: str) -> Response:
    """The form for a token; with a one-time link in the address, a button that uses it.

    The link is not used by looking at it: programs that fetch links beforehand would use it up.
    """
    link = request.query_params.get("link", "")[:MOST_SECRET]
    return _shown(door, request.query_params.get("next", ""), link=link)


async def logged_in(
    request: Request, gate: Gate, identification: CallerIdentification, door: str
) -> Response:
    """Open a login for a token or a link, and go where the visitor wanted to go."""
    form = await checked_form(request, None)
    link, token, wanted = (str(form.get(name) or "").strip()[:2000] for name in ("link", "token", "next"))
    opened = identification.logins.open_by_link if link else identification.logins.open
    secret = (link or token)[:MOST_SECRET]
    found = await gate.free.run(lambda: opened(secret) if secret else None, analyst="")
    if found is None:
        identification.note_failure(request.scope)
        return _shown(door, wanted, said=USED if link else WRONG, status=401)
    return with_cookie(see(local(wanted)), gate, found[1], door=door)


async def logged_out(request: Request, gate: Gate, identification: CallerIdentification) -> Response:
    """End the login, and take the cookies away."""
    found = identification.visitor(request)
    if found is None:
        return see("/login")
    _, cookie = found
    await checked_form(request, cookie)
    await gate.free.run(lambda: identification.logins.close(cookie), analyst="")
    return without_cookie(see("/login"), gate, request, cookie)


def _shown(door: str, wanted: str, *, link: str = "", said: str = "", status: int = 200) -> Response:
    return page(
        "login.html", status, link=link, said=said, wanted=local(wanted), caller=None, current="login",
        navigation=[], form_token=form_token(""), elsewhere=None, tables=[], table="", door=door,
    )  # fmt: skip
