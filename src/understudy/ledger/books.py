"""The running totals of a ledger: a fold over its entries that decides what may still be spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any

from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError, UnderstudyError
from understudy.ledger.shares import Shares
from understudy.privacy.accountant import Accountant
from understudy.privacy.accounting_rule import NEWEST, AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.cost import DELTA_UNITS, UNITS, Cost, delta_units
from understudy.privacy.event import Event
from understudy.privacy.joint import Joint
from understudy.privacy.limits import EVERYBODY_ELSE, MAX_NAME, Limits

MAX_QUESTION = 2000

MAX_FREE = 1 << 15
"""A ledger holds at most so many more debits of nothing than debits of something: free questions do not fill it.

Only these two public numbers decide. A free answer is stored like any other, so that its request id means one
question and gets one answer; hence a cap, and not answers that nobody keeps.
"""


@dataclass(frozen=True, slots=True)
class Due:
    """What an event would be charged now, and whether that could be paid.

    cost       what the ledger would charge, jointly with everything that was charged before
    available  what the analyst could spend now: the tightest of the budget and of the limits that they draw on
    limit      the name of that tightest one, such as `analyst 'ada'`; empty where it is the whole budget
    payable    whether the ledger would grant it
    """

    cost: Cost
    available: Cost
    limit: str
    payable: bool


@dataclass(frozen=True, slots=True)
class TriedCharge:
    """What an event would be charged after others that are tried before it.

    cost     what the ledger would charge, jointly with everything before it
    refusal  why it would be refused; None where it would be granted
    """

    cost: Cost
    refusal: UnderstudyError | None


class FollowingStates:
    """The states that the last few events would lead to, for an event that is priced again or charged next.

    A question is priced, checked against the budget and charged by one event, and each time the joint price may
    need sweeps over all tables. Accountants' states and events never change, so that what an event leads to is the
    same as long as the state is the same object. Copies of books share it; threads that write it at once lose a
    line.
    """

    KEPT = 4

    def __init__(self) -> None:
        self._known: tuple[tuple[Any, Event, Any], ...] = ()

    def after(self, accountant: Accountant[Any], state: Any, event: Event) -> Any:
        """The state after an event, as the accountant finds it."""
        known = self._known
        for before, priced, found in known:
            if before is state and priced == event:
                return found
        found = accountant.after(state, event)
        lines = tuple(line for line in known if line[0] is state)  # of other states nobody asks again
        self._known = (*lines, (state, event, found))[-self.KEPT :]
        return found


@dataclass(frozen=True, slots=True)
class Share:
    """A limit that an analyst draws on: its `name`, its `size`, and what was `used` of it by all who share it.

    Both costs are in the budget's currency.
    """

    name: str
    size: Cost
    used: Cost


class Books:
    """What has been spent, in all and of each share, by the entries seen so far."""

    def __init__(
        self,
        budget: Budget,
        *,
        limits: Limits | None = None,
        accountant: Accountant[Any] | None = None,
        rule: AccountingRule = NEWEST,
    ) -> None:
        self.budget = budget
        self.cap = budget.cap
        self.limits = Limits() if limits is None else limits
        self.accountant: Accountant[Any] = Joint(budget, rule) if accountant is None else accountant
        self.state = self.accountant.start()
        self._following = FollowingStates()
        self.shares = Shares()
        self.free = 0
        self.paid = 0
        self.delta = 0
        """Units of δ that events were charged themselves."""

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

    @property
    def delta_spent(self) -> Fraction:
        """The δ that events were charged themselves, all together."""
        return Fraction(self.delta, DELTA_UNITS)

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
        delta = self.budget.check_delta(event, self.delta)
        self._take(state, event, after.units - before.units, delta, analyst, at)
        return after

    def quote(self, event: Event) -> Cost:
        """What an event would be charged now."""
        if delta_units(event):
            self.budget.check_delta(event, 0)  # refused where the budget has no δ for events
        after = self.accountant.cost(self._following.after(self.accountant, self.state, event))
        return type(after)(after.units - self.spent.units)

    def available(self, *, analyst: str, at: str) -> Cost:
        """The tightest of what is left: of the whole, and of every share that the analyst draws on now."""
        return type(self.cap)(self._tightest(analyst, at, self.spent)[0])

    def shares_of(self, *, analyst: str, at: str) -> tuple[Share, ...]:
        """The limits that an analyst draws on now, and what is used of them."""
        unit = type(self.cap)
        bounds = self.shares.bounds(self.limits, analyst=analyst, at=at)
        return tuple(Share(name, unit(size), unit(used)) for name, size, used in bounds)

    def due(self, event: Event, *, analyst: str, at: str) -> Due:
        """What `admit` would charge now, and whether it would; enters nothing."""
        cost = self.quote(event)
        left, name = self._tightest(analyst, at, self.spent)
        payable = cost.units <= left and not (self._is_free(event, cost.units) and self._is_full_of_nothing)
        payable = payable and delta_units(event) <= max(self.budget.delta_cap - self.delta, 0)
        return Due(cost, type(cost)(left), name, payable)

    def tried(self, wanted: Sequence[tuple[Event, str]], *, at: str) -> list[TriedCharge]:
        """What `admit` would charge for events, each with its analyst, one after the other; enters nothing.

        One that would be refused changes nothing for those behind it.
        """
        books, found = self.copy(), list[TriedCharge]()
        for event, analyst in wanted:
            cost, refusal = books.quote(event), None
            try:
                books.admit(event, analyst=checked_name(analyst, ANALYST), at=at)
            except UnderstudyError as error:
                refusal = error
            found.append(TriedCharge(cost, refusal))
        return found

    def spent_by(self) -> dict[str, Cost]:
        """What was charged to each analyst, the largest first; what was spent before the ledger is nobody's."""
        unit = type(self.cap)
        taken = dict(self.shares.analysts)
        if self.shares.later:
            taken[EVERYBODY_ELSE] = taken.get(EVERYBODY_ELSE, 0) + self.shares.later
        return {
            name: unit(units) for name, units in sorted(taken.items(), key=lambda item: (-item[1], item[0]))
        }

    def admit(self, event: Event, *, analyst: str, at: str) -> tuple[Cost, Cost]:
        """Enter a debit if the total and every share it draws on allow it: its cost and the new total.

        A refusal names the tightest bound and changes nothing.
        """
        state = self._following.after(self.accountant, self.state, event)
        before, after = self.spent, self.accountant.cost(state)
        delta = self.budget.check_delta(event, self.delta)
        cost = after.units - before.units
        left, name = self._tightest(analyst, at, before)
        if cost > left:
            raise InsufficientBudgetError(
                requested=cost / UNITS,
                remaining=left / UNITS,
                currency=self.cap.currency,
                limit=name,
            )
        if self._is_free(event, cost) and self._is_full_of_nothing:
            raise RefusedError(
                f"this costs nothing, and the ledger holds {self.free} debits of nothing "
                f"already, which is {MAX_FREE} more than those that were paid for",
                remedy="ask again under an earlier request id, or after something was paid for. "
                "Nothing was spent",
            )
        self._take(state, event, cost, delta, analyst, at)
        return type(after)(cost), after

    @property
    def _is_full_of_nothing(self) -> bool:
        return self.free >= MAX_FREE + self.paid

    def _tightest(self, analyst: str, at: str, spent: Cost) -> tuple[int, str]:
        """The least that is left of the whole and of the shares that a request draws on, and whose it is.

        `spent` is what was spent in all.

        A limit that was lowered below what is used leaves nothing, and what costs nothing is still granted.
        """
        shares = self.shares.bounds(self.limits, analyst=analyst, at=at)
        left = max(self.cap.units - spent.units, 0), ""
        return min(left, *((max(size - used, 0), name) for name, size, used in shares)) if shares else left

    def _is_free(self, event: Event, cost: int) -> bool:
        """Whether an event has no price even on its own; joint pricing charges nothing for many that have one."""
        return cost == 0 and self.budget.price(event).units == 0 and delta_units(event) == 0

    def _take(self, state: Any, event: Event, cost: int, delta: int, analyst: str, at: str) -> None:
        self.state = state
        self.delta += delta
        self.shares.enter(cost, analyst=analyst, at=at)
        if self._is_free(event, cost):
            self.free += 1
        else:
            self.paid += 1


def timestamp(now: datetime) -> str:
    """A time as text that sorts like the time: ISO 8601, UTC, microseconds."""
    return f"{now.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def checked_name(text: str, what: str, *, least: int = 0) -> str:
    """A request id or an analyst's name that every store can keep, of at least so many characters."""
    is_text = isinstance(text, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
    if is_text and len(text) < least:
        raise ParameterError(f"{what} must not be empty")
    if not is_text or len(text) > MAX_NAME or not text.isprintable():
        raise ParameterError(f"{what} is printable text of at most {MAX_NAME} characters")
    return text


REQUEST, ANALYST = "a request id", "an analyst's name"


def short_question(question: str) -> str:
    """The question as it is kept: a very long one by its beginning and its hash.

    What a store cannot keep (a surrogate, a NUL) is written as an escape.
    """
    text = question.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    if len(text) <= MAX_QUESTION:
        return text
    return f"{text[: MAX_QUESTION - 100]} … sha256:{sha256(text.encode()).hexdigest()}"
