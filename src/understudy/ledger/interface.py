"""What every ledger promises, wherever it keeps its books."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event


@dataclass(frozen=True, slots=True)
class Debit:
    """Proof of payment: entry `number` of the ledger, for one question."""

    number: int
    event: Event
    cost: Cost
    question: str
    request: str


class Ledger(Protocol):
    """A budget that cannot be overspent.

    The order is fixed: validate without data, `charge`, look at the data, `settle`, release. A crash between
    two steps keeps the debit; nothing is ever refunded.
    """

    @property
    def budget(self) -> Budget: ...

    @property
    def spent(self) -> Cost:
        """The total of all events: a deterministic function of their list."""
        ...

    @property
    def remaining(self) -> Cost: ...

    def charge(self, event: Event, *, question: str, request: str) -> Debit:
        """Debit an event, or refuse with an `InsufficientBudgetError` and change nothing.

        A request that was charged before gets its old debit back, and pays nothing; the same request with
        another question is refused.
        """
        ...

    def settle(self, debit: Debit, answer: object) -> None:
        """Keep the answer that the debit paid for; one answer for each debit."""
        ...

    def answered(self, debit: Debit) -> object | None:
        """The answer kept for a debit, or None."""
        ...
