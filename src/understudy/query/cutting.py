"""Reading a question on a domain with the edges that it names: conditions may cut bins anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from understudy.domain.domain import Domain
from understudy.domain.refinement import refined
from understudy.errors import QueryError

MOST_CUTS = 64
"""Conditions of one question that may cut bins where no declared edge is."""

Question = TypeVar("Question")


def read_cutting(read: Callable[[Domain], Question], domain: Domain) -> Question:
    """What `read` makes of a question over `domain`, or over the refinement that its conditions ask for.

    A reader refuses a condition that would cut a bin with a `QueryError` that names the edges (`cuts`); it is
    asked again over a domain that has them. An attribute that rows are grouped by is cut as well: a group is then
    a part of a declared cell. Raises what `read` raises for any other reason, and a `QueryError` where there are
    more than `MOST_CUTS` such conditions.
    """
    for _ in range(MOST_CUTS):
        try:
            return read(domain)
        except QueryError as refusal:
            if refusal.cuts is None:
                raise
            domain = refined(domain, *refusal.cuts)
    raise QueryError(
        f"a question cuts bins at {MOST_CUTS} places at most",
        remedy="ask at declared edges, or in several questions",
    )
