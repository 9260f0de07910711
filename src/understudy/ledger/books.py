"""The running totals of a ledger: a fold over its entries that decides what may still be spent."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError
from understudy.ledger.shares import Shares
from understudy.privacy.accountant import Accountant
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.event import Event
from understudy.privacy.joint import RULE_2, AccountingRule, Joint
from understudy.privacy.limits import Limits

MAX_NAME = 200
MAX_QUESTION = 2000

MAX_FREE = 1 << 15
"""A ledger holds at most so many more debits of nothing than debits of something: free questions do not fill it.

Only these two public numbers decide. A free answer is stored like any other, so that its request id means one
question and gets one answer; hence a cap, and not answers that nobody keeps.
"""


class Books:
    """What has been spent, in all and of each share, by the entries seen so far."""

    def __init__(
        self,
        budget: Budget,
        *,
        limits: Limits | None = None,
        accountant: Accountant[Any] | None = None,
        rule: AccountingRule = RULE_2,
    ) -> None:
        self.budget = budget
        self.cap = budget.cap
        self.limits = Limits() if limits is None else limits
        self.accountant: Accountant[Any] = Joint(budget, rule) if accountant is None else accountant
        self.state = self.accountant.start()
        self.shares = Shares()
        self.free = 0
        self.paid = 0

    def copy(self) -> Books:
        other = Books.__new__(Books)
        other.__dict__.update(self.__dict__)
        other.shares = self.shares.copy()
        return other

    @property
    def spent(self) -> Cost:
        return self.accountant.cost(self.state)

    @property
    def remaining(self) -> Cost:
        spent = self.spent
        return type(spent)(max(self.cap.units - spent.units, 0))

    def begin(self, before: Event) -> Cost:
        """Enter what was spent before; it belongs to no analyst and to no day."""
        self.state = self.accountant.after(self.state, before)
        if self.spent.units > self.cap.units:
            raise ParameterError("what was spent before is more than the budget")
        return self.spent

    def enter(self, event: Event, *, analyst: str, at: str) -> Cost:
        """Enter a debit that was granted; the new total."""
        before, state = self.spent, self.accountant.after(self.state, event)
        after = self.accountant.cost(state)
        self._take(state, event, after.units - before.units, analyst, at)
        return after

    def quote(self, event: Event) -> Cost:
        """What an event would be charged now."""
        before, after = self.spent, self.accountant.cost(self.accountant.after(self.state, event))
        return type(after)(after.units - before.units)

    def available(self, *, analyst: str, at: str) -> Cost:
        """The tightest of what is left: of the whole, and of every share that the analyst draws on now."""
        left = [self.remaining.units]
        left += [max(size - used, 0) for _, size, used in self._bounds(analyst, at)]
        return type(self.cap)(min(left))

    def admit(self, event: Event, *, analyst: str, at: str) -> tuple[Cost, Cost]:
        """Enter a debit if the total and every share it draws on allow it: its cost and the new total.

        A refusal names the tightest bound and changes nothing.
        """
        state = self.accountant.after(self.state, event)
        before, after = self.spent, self.accountant.cost(state)
        cost = after.units - before.units
        bounds = [("", self.cap.units, before.units), *self._bounds(analyst, at)]
        passed = [(size - used, name) for name, size, used in bounds if used + cost > size]
        if passed:
            left, name = min(passed)
            raise InsufficientBudgetError(
                requested=cost / UNITS,
                remaining=max(left, 0) / UNITS,
                currency=self.cap.currency,
                limit=name,
            )
        if self._is_free(event, cost) and self.free >= MAX_FREE + self.paid:
            raise RefusedError(
                f"this costs nothing, and the ledger holds {self.free} debits of nothing "
                f"already, which is {MAX_FREE} more than those that were paid for",
                remedy="ask again under an earlier request id, or after something was paid for. "
                "Nothing was spent",
            )
        self._take(state, event, cost, analyst, at)
        return type(after)(cost), after

    def _bounds(self, analyst: str, at: str) -> list[tuple[str, int, int]]:
        return self.shares.bounds(self.limits, analyst=analyst, at=at)

    def _is_free(self, event: Event, cost: int) -> bool:
        """Whether an event has no price even on its own; joint pricing charges nothing for many that have one."""
        return cost == 0 and self.budget.price(event).units == 0

    def _take(self, state: Any, event: Event, cost: int, analyst: str, at: str) -> None:
        self.state = state
        self.shares.enter(cost, analyst=analyst, at=at)
        if self._is_free(event, cost):
            self.free += 1
        else:
            self.paid += 1


def timestamp(now: datetime) -> str:
    """A time as text that sorts like the time: ISO 8601, UTC, microseconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def checked_name(text: str, what: str) -> str:
    """A request id or an analyst's name that every store can keep."""
    is_text = isinstance(text, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
    if not is_text or len(text) > MAX_NAME or not text.isprintable():
        raise ParameterError(f"{what} is printable text of at most {MAX_NAME} characters")
    return text


def checked_request(text: str) -> str:
    """A request id: a name, and not empty."""
    if not text:
        raise ParameterError("a request id must not be empty")
    return checked_name(text, "a request id")


def short_question(question: str) -> str:
    """The question as it is kept: a very long one by its beginning and its hash.

    What a store cannot keep (a surrogate, a NUL) is written as an escape.
    """
    text = question.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    if len(text) <= MAX_QUESTION:
        return text
    return f"{text[: MAX_QUESTION - 100]} … sha256:{sha256(text.encode()).hexdigest()}"
