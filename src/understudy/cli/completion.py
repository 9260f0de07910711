"""What a shell proposes while a question is typed: from the declaration alone; no table and no ledger is opened.

A shell takes the whole question for one word, in quotation marks, so every proposal is the question so far with
its last word completed. Whatever goes wrong, nothing is proposed: somebody is in the middle of a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from understudy.domain.domain import Domain

BEGINNINGS = ("count ", "share ", "rate ")
LINKS = {"count": ("by ", "and ", "or "), "share": ("by ", "and ", "or "), "rate": ("within ", "and ", "or ")}
"""Words that may stand where an attribute may not: after a comparison, or before the groups."""

_LAST = re.compile(r"""[^\s,()=<>!'"]*$""")
_COMPARED = re.compile(r"""(?:"([^"]+)"|([^\s,()=<>!'"]+))\s*(?:!=|=)\s*$""")
_PLAIN = re.compile(r"[^\s'\"=<>!(),]+")
MOST = 200
"""Proposals; more help nobody."""


def complete_question(context: typer.Context, incomplete: str) -> list[str]:
    """The question so far with its last word completed, in every way that the declaration knows."""
    try:
        return proposals(incomplete, _domain(context))[:MOST]
    except Exception:  # a shell is waiting, and shows nothing of an error
        return []


def _domain(context: typer.Context) -> Domain:
    from understudy.declaration.file import located, read

    return read(located(context.params.get("project") or Path("understudy.yml"))).domain


def proposals(begun: str, domain: Domain) -> list[str]:
    """The ways to go on with a question.

    >>> from understudy.domain.attribute import Categories
    >>> from understudy.domain.domain import Domain
    >>> named = {"sex": ("F", "M"), "smoker": ("yes", "no")}
    >>> domain = Domain(tuple(Categories(name=name, values=values) for name, values in named.items()))
    >>> proposals("sh", domain), proposals("count s", domain)
    (['share '], ['count sex', 'count smoker'])
    >>> proposals("count sex = F b", domain), proposals("count sex = ", domain)
    (['count sex = F by '], ['count sex = F', 'count sex = M'])
    """
    head = begun[: _LAST.search(begun).start()]  # type: ignore[union-attr]  # it finds an empty word at least
    word = begun[len(head) :]
    if not head.strip():
        return [head + first for first in BEGINNINGS if first.startswith(word.lower())]
    aggregate = head.split()[0].lower()
    if aggregate not in LINKS:
        return []
    if compared := _COMPARED.search(head):
        found = _values(domain, compared[1] or compared[2])
    else:
        found = [*(_written(name, '"') for name in domain.names), *LINKS[aggregate]]
    return [head + one for one in found if one.lower().startswith(word.lower()) and one.strip() != word]


def _values(domain: Domain, name: str) -> list[str]:
    """The declared values of an attribute that has few; those of bins are compared otherwise."""
    attribute = domain[name]
    if attribute.kind not in ("category", "boolean"):
        return []
    return [_written(label, "'") for label in attribute.proper_labels]


def _written(text: str, mark: str) -> str:
    """A name or a value as a question writes it."""
    return text if _PLAIN.fullmatch(text) else mark + text.replace(mark, mark * 2) + mark
