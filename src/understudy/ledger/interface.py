"""What every ledger promises, wherever it keeps its books."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Protocol

from understudy.errors import RequestConflictError
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event

_FRESH = re.compile(r"[0-9a-f]{12}-[0-9a-f]{20}")


@dataclass(frozen=True, slots=True)
class Debit:
    """Proof of payment: entry `number` of the ledger, for one question.

    `repeated` tells that the request had been charged before, perhaps by a process that did not live to answer.
    """

    number: int
    event: Event
    cost: Cost
    question: str
    request: str
    analyst: str = ""
    repeated: bool = field(default=False, compare=False)

    def conflict(self, *, analyst: str) -> RequestConflictError:
        """Why another question under this request is refused; only its own analyst is shown the recorded one."""
        mine = analyst == self.analyst
        whose = "another question" if mine else "another analyst's question"
        return RequestConflictError(
            f"the request id {self.request!r} was used for {whose}; take a new one",
            question=self.question if mine else "",
            analyst=self.analyst if mine else "",
        )


@dataclass(frozen=True, slots=True)
class Hidden:
    """The state of a handle after `step` answers. Private: it never leaves the ledger but to its Curator."""

    step: int
    state: bytes = field(repr=False)


def fresh_request() -> str:
    """A request id that nobody used: 80 random bits behind the time, so that a store's index grows at its end."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(10)}"


SEPARATOR = "#"
"""Between a name and the number of a purchase under it: `mine 1` may be another name. No request has one."""


def is_fresh(request: str) -> bool:
    """Whether a request id was drawn by `fresh_request`, not given as a name."""
    return _FRESH.fullmatch(request) is not None


class Ledger(Protocol):
    """A budget that cannot be overspent.

    The order is fixed: validate without data, `charge`, look at the data, `settle` (or `advance`), release. A
    crash between two steps keeps the debit; nothing is ever refunded. Answers and states are bytes: what was
    stored is what comes back.
    """

    @property
    def budget(self) -> Budget: ...

    @property
    def spent(self) -> Cost:
        """The total of all events: a deterministic function of their list."""
        ...

    @property
    def remaining(self) -> Cost: ...

    def available(self, analyst: str = "") -> Cost:
        """What an analyst could spend now: what remains, or less where a limit binds."""
        ...

    def quote(self, event: Event) -> Cost:
        """What an event would be charged now: no more than this, unless another one comes first."""
        ...

    def charge(self, event: Event, *, question: str, request: str, analyst: str = "") -> Debit:
        """Debit an event, or refuse with an `InsufficientBudgetError` and change nothing.

        A request that was charged before gets its old debit back, and pays nothing; the same request with
        another question or event is refused.
        """
        ...

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        """Keep the answer that the debit paid for and, for a handle, its first state.

        A debit keeps one answer, the first; that one is returned, and nothing else may be released.
        """
        ...

    def answered(self, debit: Debit) -> bytes | None:
        """The answer kept for a debit, or None."""
        ...

    def hidden(self, debit: Debit) -> Hidden | None:
        """The latest state of the handle that a debit opened, or None."""
        ...

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        """Keep a handle's answer and its new state, if `step` is still the latest; else change nothing.

        False tells that somebody else's answer came first, or that there is no such handle: read the state again.
        """
        ...

    def steps(self, debit: Debit) -> list[bytes]:
        """The answers of a handle's steps, in order; its first answer, kept by `settle`, is not among them."""
        ...
