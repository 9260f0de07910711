"""All cards, found by themselves: a mechanism's module has a `CARD`; a package has it in its module `card`.

Only what plans, audits or documents all mechanisms imports this module, since it imports every mechanism. Nothing
but files of this room is ever imported: no name comes from data.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import understudy.mechanism as room
from understudy.mechanism.card import Card


@cache
def cards() -> tuple[Card, ...]:
    """The cards of all mechanisms, by family and name."""
    modules = iter_modules(room.__path__, f"{room.__name__}.")
    homes = (f"{module.name}.card" if module.ispkg else module.name for module in modules)
    found = (getattr(import_module(home), "CARD", None) for home in homes if find_spec(home))
    return tuple(sorted((c for c in found if isinstance(c, Card)), key=lambda c: (c.family, c.name.lower())))


def table() -> str:
    """The mechanisms as a table of Markdown: the one in docs/mechanisms.md."""
    lines = ["| mechanism | privacy | accuracy | source |", "|---|---|---|---|"]
    lines += [f"| {c.name} | {c.privacy} | {c.accuracy} | {c.source} |" for c in cards()]
    return "\n".join(lines) + "\n"
