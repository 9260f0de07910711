"""Under which names a charge is recorded."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.ledger.interface import JournalStep


@dataclass(frozen=True, slots=True)
class ChargeTerms:
    """What the ledger is told beside an event and a question.

    request  the caller's name for the purchase, under which it is charged once; None for a new one each time
    analyst  whose share of the budget pays
    step     a journal's step that is kept in the transaction of the debit
    words    the question as it was asked, empty where it was not asked in words: kept for readers of the ledger,
             and not compared. None where no readers are meant
    """

    request: str | None = None
    analyst: str = ""
    step: JournalStep | None = None
    words: str | None = None
