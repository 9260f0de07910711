"""How a question stands in the ledger: as it was asked, then what was measured for it, then the table's edition.

    count age < 30 by sex -> measure age in (0-17, 18-29) by sex #9f86d0… @4e07408562bedb8b

What was measured identifies the question: a request that comes again with other words for it is the same question.
Version 0.1 wrote no words, and those who ask with a marginal have none.
"""

from __future__ import annotations

import re

from understudy.errors import RequestConflictError
from understudy.ledger.books import MAX_QUESTION

BEFORE = " -> "
"""Between the words and what was measured."""

ROOM = 40
"""Characters that are left for the edition."""

_EDITION = re.compile(r" @[0-9a-f]+$")


def spelt(words: str, question: str) -> str:
    """The question with the words in which it was asked, shortened to what the ledger keeps in full.

    An arrow in the words is written otherwise: the first one ends them.
    """
    told = f" {' '.join(words.split())} ".replace(BEFORE, " → ").strip()
    room = MAX_QUESTION - ROOM - len(question) - len(BEFORE)
    if not told or room < ROOM:
        return question
    return f"{told if len(told) <= room else f'{told[: room - 2]} …'}{BEFORE}{question}"


def respelt(known: str, question: str) -> str:
    """The question with the words that the ledger has for it, if `known` is the same question; else as it is."""
    plain = _EDITION.sub("", known)
    return plain if plain.endswith(f"{BEFORE}{question}") else question


def changed_since(conflict: RequestConflictError, question: str, edition: str) -> RequestConflictError:
    """The conflict; where the recorded question is this one about another version of the table, it says so."""
    recorded = conflict.question
    plain = _EDITION.sub("", recorded)
    same = plain == question or plain.endswith(f"{BEFORE}{question}")
    if not same or not edition or recorded.endswith(edition):
        return conflict
    return RequestConflictError(
        f"the table, or how it is declared, has changed since the request {conflict.request!r} was answered",
        remedy="Nothing was spent. Take a new request id to ask about the table as it is now",
        request=conflict.request,
        question=conflict.question,
        analyst=conflict.analyst,
    )
