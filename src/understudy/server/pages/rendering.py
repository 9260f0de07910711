"""Pages made of templates: every word is escaped, and there is one style sheet and one script.

The style sheet is the one of all pages of the product (`understudy.pages`) followed by what only a server's pages
need. Its address holds its hash, so that a browser keeps it until it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

import understudy
from understudy.pages.markup import visible
from understudy.pages.shell import style
from understudy.server.pages import words

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

STATES = {
    "answered": ("good", "answered"),
    "waiting": ("warn", "waiting for approval"),
    "approved": ("good", "approved"),
    "asking": ("", "being asked"),
    "refused": ("bad", "refused"),
    "denied": ("bad", "denied"),
    "expired": ("", "expired"),
    "valid": ("good", "valid"),
    "revoked": ("bad", "revoked"),
    "running": ("warn", "running"),
    "done": ("good", "done"),
    "failed": ("bad", "failed"),
}
"""How a state is said, and in which colour."""

SOURCES = {
    "measured": ("paid", "measured", "Noise was bought for this answer."),
    "repeat": ("free", "asked before", "Somebody asked this before: the same answer, for nothing."),
    "implied": ("free", "deduced", "It follows from what was bought before, for nothing."),
    "pinned": ("free", "deduced", "It follows exactly from what was bought before, for nothing."),
    "checked": ("free", "proved", "A release proves a bound for it."),
    "public": ("free", "public", "No row of the table can change it."),
    "uncertified": ("warn", "uncertified", "The budget cannot pay: an estimate that nobody vouches for."),
}
"""How the source of an answer is said: the kind of its badge, its word, and what it means."""


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """The static files by name: their bytes and their type."""
    folder = resources.files("understudy.server.pages").joinpath("static")
    found: dict[str, tuple[bytes, str]] = {}
    for file in folder.iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            found[file.name] = file.read_bytes(), kind
    found["page.css"] = style().encode() + found["page.css"][0], KINDS["css"]
    return found


@cache
def static_address(name: str) -> str:
    """Where a static file is: its hash is part of the address."""
    digest = sha256(static_files()[name][0]).hexdigest()[:12]
    return f"/static/{name}?{digest}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("understudy.server", "pages/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    for filter in (
        words.part,
        words.left,
        words.number,
        words.about,
        words.chance,
        words.chances,
        words.short,
    ):
        made.filters[filter.__name__] = filter
    made.filters["time"] = words.time_of
    made.globals |= {
        "static": static_address,
        "many": words.many,
        "version": understudy.__version__,
        "STATES": STATES,
        "SOURCES": SOURCES,
    }
    return made


def _finalized(value: Any) -> Any:
    """Text without characters that no page can hold or that turn the text around them."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


def rendered(template: str, **values: Any) -> str:
    """The text of a template with these values."""
    return _environment().get_template(template).render(**values)


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A whole page as a reply."""
    return Response(rendered(template, **values), status, media_type="text/html")


def markup(body: str) -> Markup:
    """What a function of `understudy.pages` made: it has escaped every word itself."""
    return Markup(body)
