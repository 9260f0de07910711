"""A session in the ledger: a journal whose steps are the purchases.

Promise     Every purchase that stands in the journal was charged, and is charged once; a process that catches up
            with the journal, after a crash too, knows what every other process knows.
Why         A purchase is written into the journal and charged in one transaction, under a request of its own.
            Where a process died between the debit and the look, the next one looks under the same request, which
            is not charged again.
Gap         Before version 0.2 a purchase was written first and charged after: one that a crash left uncharged is
            charged by the process that finds it.
"""

from __future__ import annotations

from typing import Any

from understudy.errors import ParameterError, RequestConflictError
from understudy.ledger.interface import SEPARATOR, Debit, JournalStep, Ledger
from understudy.ledger.journal import Journal
from understudy.sessions.terms import described


class PurchaseJournal(Journal):
    """The journal of one session: it names the requests of purchases, and explains a conflict about the name.

    Raises a `ParameterError` where the name has the mark that numbers requests, and a `RequestConflictError` where
    the name belongs to something else in the ledger.
    """

    def __init__(self, ledger: Ledger, terms: str, *, name: str, analyst: str, lazily: bool = False) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise ParameterError(f"a session's name is text, not {name!r}")
        if SEPARATOR in name:
            raise ParameterError(f"a session's name must not hold {SEPARATOR!r}, which numbers its purchases")
        super().__init__(ledger, terms, name=name, analyst=analyst, lazily=lazily)

    def _find(self) -> Debit | None:
        try:
            return super()._find()
        except RequestConflictError as known:
            raise self.taken(known) from None

    def _open(self) -> Debit:
        try:
            return super()._open()
        except RequestConflictError as known:
            raise self.taken(known) from None

    def taken(self, known: RequestConflictError) -> RequestConflictError:
        """The error to raise for a conflict: one about the session's name says what has the name; others are as
        they were.
        """
        if known.request != self.name:
            return known
        theirs = described(known.question, known.analyst)
        if not known.question:
            why = f"the name {self.name!r} belongs to another analyst; take another one for the session"
        elif theirs is None:
            why = f"the name {self.name!r} belongs to a request; take another one for the session"
        elif theirs == described(self._terms, self.analyst):
            why = f"session {self.name!r} was opened on another version of the table; take a new name"
        else:
            why = f"session {self.name!r} has {theirs}; ask with the same terms, or take a new name"
        return RequestConflictError(
            why, request=known.request, question=known.question, analyst=known.analyst
        )

    @property
    def request(self) -> str:
        """The request, a name, under which the next purchase is charged."""
        return f"{self.name}{SEPARATOR}{self.length + 1}"

    def plan(self, kind: str, purchase: dict[str, Any], words: str = "") -> JournalStep:
        """The journal step of the next purchase, to be written in the transaction of its debit.

        `words` are the question that needs it, as it was asked: they are shown with the step, and compared with
        nothing.
        """
        asked = f" for {' '.join(words.split())}" if words else ""
        return self.beside(f"session step {self.length + 1}: {kind}{asked}", {"kind": kind, **purchase})
