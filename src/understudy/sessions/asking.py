"""One question on its way through a session: who pays for what it buys, and under which request.

A session serves several analysts. What one of them buys is known to all, so that it is paid once; whose share of
the budget paid is kept with each purchase, in the journal's step and in the ledger's debit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from understudy.errors import RequestConflictError
from understudy.privacy.cost import Cost
from understudy.sessions.charge_limit import ChargeLimit

KEY = "for"
"""Where a journal's step keeps whom and which request it was bought for; version 0.1 wrote no such part."""

ASKED = "asked"
"""Where a step keeps how many questions were asked by then; versions before 0.2 wrote none."""


@dataclass(frozen=True)
class RequestRecord:
    """What was bought under one request so far: for which question, by whom, and for how much."""

    question: str
    analyst: str
    cost: Cost


@dataclass(eq=False)
class Asking:
    """A question that is being answered, and what the ledger charged for it so far.

    analyst   whose share of the budget pays; empty for nobody's
    words     the question as it was asked, shown with its purchases; empty where it was not asked in words
    request   the caller's name for the question; None without one
    question  a digest that is equal for equal questions; empty without a request
    charged   what was charged since the question, or the part of it that is answered now, was taken up, in the
              ledger's currency
    spent     what was charged for all of the question since it was taken up, in units of the ledger
    asked     which question of the session it is, from 1; 0 where it is none
    limit     the most that may be charged for it, and for others that have the same limit; None without one

    Promise     Each purchase is kept with who paid for it and under which request, and a request never stands for
                two questions, or for those of two analysts.
    Why         `plain` goes into the journal's step, which is written into the ledger before the draw, and `read`
                is its inverse; `check` compares digest and analyst with those of the request's earlier purchases.
    Privacy     It holds the question and the names that callers gave, and prices: nothing that was read from a
                table.
    Cost        Nothing by itself; a few bytes of a step.
    """

    analyst: str
    charged: Cost
    words: str = ""
    request: str | None = None
    question: str = ""
    asked: int = 0
    limit: ChargeLimit | None = None
    spent: int = 0

    def plain(self, owner: str) -> dict[str, Any]:
        """What a step keeps of this: its number, and who asked, and under which request, where that is told."""
        kept: dict[str, Any] = {} if self.analyst == owner else {"analyst": self.analyst}
        if self.request is not None:
            kept |= {"request": self.request, "question": self.question}
        return ({ASKED: self.asked} if self.asked else {}) | ({KEY: kept} if kept else {})

    @classmethod
    def read(cls, plan: Mapping[str, Any], owner: str, nothing: Cost) -> Asking:
        """For whom the purchase of a journal's step was made: the session's owner, where the step names nobody."""
        kept = plan.get(KEY, {})
        return cls(
            kept.get("analyst", owner),
            nothing,
            request=kept.get("request"),
            question=kept.get("question", ""),
            asked=plan.get(ASKED, 0),
        )

    def after(self, known: RequestRecord | None, cost: Cost) -> RequestRecord:
        """The record of the request after another purchase."""
        total = cost if known is None else known.cost + cost  # type: ignore[operator]  # one currency
        return RequestRecord(self.question, self.analyst, total)

    def check(self, known: RequestRecord | None) -> None:
        """Refuse, with a `RequestConflictError`, a request under which something else was bought before."""
        if known is None or (known.question, known.analyst) == (self.question, self.analyst):
            return
        whose = "another question" if known.analyst in ("", self.analyst) else "another analyst's question"
        raise RequestConflictError(
            f"the request id {self.request!r} was used for {whose}; take a new one",
            request=self.request or "",
        )


def digest(text: str) -> str:
    """A short name of a question's text: equal for equal texts."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
