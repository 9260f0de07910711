"""All cards, found by themselves: every module of this room that has a `CARD` is a mechanism with one.

Only what plans, audits or documents all mechanisms imports this module: it imports the whole room.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import understudy.mechanism as room
from understudy.mechanism.card import Card


@cache
def cards() -> tuple[Card, ...]:
    """The cards of all mechanisms, by family and name."""
    names = (found.name for found in walk_packages(room.__path__, f"{room.__name__}."))
    found = (getattr(import_module(name), "CARD", None) for name in names)
    return tuple(sorted((c for c in found if isinstance(c, Card)), key=lambda c: (c.family, c.name.lower())))


def table() -> str:
    """The mechanisms as a table of Markdown: the one in README."""
    lines = ["| mechanism | privacy | accuracy | source |", "|---|---|---|---|"]
    lines += [f"| {c.name} | {c.privacy} | {c.accuracy} | {c.source} |" for c in cards()]
    return "\n".join(lines) + "\n"
