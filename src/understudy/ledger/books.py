"""The running totals of a ledger: a fold over its entries that decides what may still be spent."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from understudy.errors import InsufficientBudgetError, ParameterError
from understudy.privacy.accountant import Accountant
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.event import Event
from understudy.privacy.joint import Joint
from understudy.privacy.limits import Limits

MAX_NAME = 200
MAX_QUESTION = 2000


class Books:
    """What has been spent, in all and of each share, by the entries seen so far."""

    def __init__(
        self, budget: Budget, *, limits: Limits | None = None, accountant: Accountant[Any] | None = None
    ) -> None:
        self.budget = budget
        self.cap = budget.cap
        self._limits = Limits() if limits is None else limits
        self._accountant: Accountant[Any] = Joint(budget) if accountant is None else accountant
        self._state = self._accountant.start()
        self._shares: dict[str, Any] = {}

    def copy(self) -> Books:
        other = Books.__new__(Books)
        other.__dict__.update(self.__dict__)
        other._shares = dict(self._shares)
        return other

    @property
    def spent(self) -> Cost:
        return self._accountant.cost(self._state)

    @property
    def remaining(self) -> Cost:
        spent = self.spent
        return type(spent)(max(self.cap.units - spent.units, 0))

    def begin(self, before: Event) -> Cost:
        """Enter what was spent before; it belongs to no analyst and to no day."""
        self._state = self._accountant.after(self._state, before)
        if self.spent.units > self.cap.units:
            raise ParameterError("what was spent before is more than the budget")
        return self.spent

    def enter(self, event: Event, *, analyst: str, at: str) -> Cost:
        """Enter a debit that was granted; the new total."""
        self._state = self._accountant.after(self._state, event)
        self._shares = self._after(event, analyst, at)
        return self.spent

    def quote(self, event: Event) -> Cost:
        """What an event would be charged now."""
        before, after = self.spent, self._accountant.cost(self._accountant.after(self._state, event))
        return type(after)(after.units - before.units)

    def available(self, *, analyst: str, at: str) -> Cost:
        """The tightest of what is left: of the whole, and of every share that the analyst draws on now."""
        left = [self.remaining.units]
        for name, size in self._limits.binding(analyst=analyst, at=at):
            used = self._accountant.cost(self._shares.get(name, self._accountant.start())).units
            left.append(max(size - used, 0))
        return type(self.cap)(min(left))

    def admit(self, event: Event, *, analyst: str, at: str) -> tuple[Cost, Cost]:
        """Enter a debit if the total and every share it draws on allow it: its cost and the new total.

        A refusal names the tightest bound and changes nothing.
        """
        state = self._accountant.after(self._state, event)
        shares = self._after(event, analyst, at)
        before, after = self.spent, self._accountant.cost(state)
        bounds = [("", after.units, before.units, self.cap.units)]
        for name, size in self._limits.binding(analyst=analyst, at=at):
            old = self._shares.get(name, self._accountant.start())
            bounds.append(
                (name, self._accountant.cost(shares[name]).units, self._accountant.cost(old).units, size)
            )
        passed = [(size - used, new - used, name) for name, new, used, size in bounds if new > size]
        if passed:
            left, asked, name = min(passed)
            raise InsufficientBudgetError(
                requested=asked / UNITS,
                remaining=max(left, 0) / UNITS,
                currency=self.cap.currency,
                limit=name,
            )
        self._state, self._shares = state, shares
        return type(after)(after.units - before.units), after

    def _after(self, event: Event, analyst: str, at: str) -> dict[str, Any]:
        """The shares after an event. Time never runs backwards, so past days and months are forgotten."""
        names = [name for name, _ in self._limits.binding(analyst=analyst, at=at)]
        if not names:
            return self._shares
        kept = {
            name: state
            for name, state in self._shares.items()
            if name.startswith("analyst ") or name in names
        }
        for name in names:
            kept[name] = self._accountant.after(kept.get(name, self._accountant.start()), event)
        return kept


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
