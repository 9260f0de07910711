"""What every ledger promises, in memory, a file or a database: the interface, and its values."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from understudy.errors import RequestConflictError, UnderstudyError
from understudy.ledger.books import Due, Share, TriedCharge, short_question
from understudy.privacy.accounting_rule import AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, Together, unversioned
from understudy.privacy.limits import Limits

_FRESH = re.compile(r"[0-9a-f]{12}-[0-9a-f]{20}( [0-9]+)?")

NOTHING = Together(())
"""The event of a journal that pays for nothing itself: no noise, no price."""

OPENED = b"opened"
"""The first answer of every handle and journal. It says nothing."""


@dataclass(frozen=True, slots=True)
class Debit:
    """Proof of payment: entry `number` of the ledger, in which `event` was charged `cost` for one `question`.

    `request` is the name under which the same question is never charged twice, and `analyst` who asked it.
    `repeated` tells that the request had been charged before, perhaps by a process that ended before it answered.
    """

    number: int
    event: Event
    cost: Cost
    question: str
    request: str
    analyst: str = ""
    repeated: bool = field(default=False, compare=False)

    def check_same(self, event: Event, *, question: str, analyst: str) -> None:
        """Refuse, with a `RequestConflictError`, to use this debit's request for anything else.

        `event`, `question` and `analyst` are those of the new charge. Another version of the same table is no
        other question: the versions in the events are not compared. Only the analyst who asked the recorded
        question is shown it.
        """
        recorded = (self.question, unversioned(self.event), self.analyst)
        if recorded == (short_question(question), unversioned(event), analyst):
            return
        mine = self.analyst in ("", analyst)  # what was asked without a name is everybody's
        whose = "another question" if mine else "another analyst's question"
        raise RequestConflictError(
            f"the request id {self.request!r} was used for {whose}",
            remedy="take a new one",
            request=self.request,
            question=self.question if mine else "",
            analyst=self.analyst if mine else "",
        )


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A line of a ledger, as its readers see it; no answer and no hidden state is in it.

    number    its place in the ledger, from 1
    kind      `open`, `debit`, `answer`, `step` or `snapshot`, as docs/ledger.md explains them
    at        when it was written: ISO 8601, UTC
    analyst   who asked, of a debit; empty where no name was given
    request   the id under which the question is never charged twice, of a debit
    question  the question as it was asked, of a debit or a step
    event     what was done to the table, as JSON; empty where nothing was
    cost      what the entry was charged
    total     what all entries up to this one cost together
    debit     of an answer or a step: the number of the debit that paid for it
    step      of an answer or a step: which answer of that debit it is
    hash      of a durable ledger: binds the entry to all before it
    """

    number: int
    kind: str
    at: str
    analyst: str
    request: str
    question: str
    event: str
    cost: Cost
    total: Cost
    debit: int | None = None
    step: int | None = None
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The `state` of a handle after `step` answers. Private: it never leaves the ledger but to its Curator."""

    step: int
    state: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class JournalStep:
    """A step of a journal that is kept in the transaction of a debit, or not at all.

    The journal is the debit of nothing whose request is `journal`, with the terms and the analyst given here; the
    step is its next one after `number` others. `question` is what the entry shows, `text` what the step says, and
    `state` what the journal hides after it.
    """

    journal: str
    terms: str
    analyst: str
    number: int
    question: str
    text: bytes
    state: bytes


@dataclass(frozen=True, slots=True)
class WantedCharge:
    """A charge as `charge_all` takes it: the arguments of `charge` for an event that is answered once."""

    event: Event
    question: str
    request: str
    analyst: str = ""


def fresh_request() -> str:
    """A request id that nobody used: 80 random bits behind the time, so that a store's index grows at its end."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(10)}"


SEPARATOR = "#"
"""Between a name and the number of a purchase under it: `mine 1` may be another name. No request has one."""


def is_fresh(request: str) -> bool:
    """Whether a request id was drawn by `fresh_request`, not given as a name; one of several has its number."""
    return _FRESH.fullmatch(request) is not None


class Ledger(Protocol):
    """The record of what was spent on a table, which lets nobody spend more than its budget.

    An event says what is done to the table, and a debit that it was paid for. Who looks at the data keeps to one
    order: validate without data, `charge`, look, `settle` (or `advance`), release. A crash between two steps
    keeps the debit; nothing is ever refunded. A handle is a debit that answers many questions, one step for each,
    such as a sparse vector. Answers and states are bytes: what was stored is what comes back. All costs are in
    the budget's currency, ε or ρ.

    Three calls write: `charge`, `settle` and `advance`; `charge_all` and `settle_all` are many of the first two at
    once. Each is one transaction, durable when it returns where the ledger is durable, and one that raises has
    changed nothing. All others read what is stored at that moment,
    by any process, and write nothing. Every call raises a `LedgerError` where the store cannot be reached, or
    holds something else than what was written.
    """

    @property
    def budget(self) -> Budget:
        """The budget, which is the total that everything charged here stays under."""
        ...

    @property
    def accounting(self) -> AccountingRule:
        """The rule of joint accounting by which events are added up: the first entry's, where there is one."""
        ...

    @property
    def is_begun(self) -> bool:
        """Whether entries are stored that fix the budget: from then on no declaration changes it.

        It is false of a ledger in memory, whose budget is whatever the next one is given.
        """
        ...

    @property
    def spent(self) -> Cost:
        """What all events charged so far cost together: a deterministic function of their list."""
        ...

    @property
    def delta_spent(self) -> Fraction:
        """The δ that events were charged themselves, beside their price: at most the budget's `key_delta`."""
        ...

    @property
    def remaining(self) -> Cost:
        """What is left of the budget, for all analysts together; never negative."""
        ...

    def available(self, analyst: str = "") -> Cost:
        """What an `analyst` could spend now: what remains, or less where a limit on analyst, day or month binds.

        The cost is in the budget's currency, and never negative. An empty name is of somebody without a name.
        """
        ...

    def quote(self, event: Event) -> Cost:
        """What an `event` would be charged now: no more than this, unless another one comes first.

        Raises a `RefusedError` for an event that this budget has no price for. Charges nothing.
        """
        ...

    def due(self, event: Event, *, analyst: str = "") -> Due:
        """What an `event` would be charged now, and whether an `analyst` could pay it; joint accounting included.

        `charge` would charge exactly this, unless something is charged first or a day ends. Raises as `quote`.
        Charges nothing.
        """
        ...

    def tried(self, wanted: Sequence[tuple[Event, str]]) -> list[TriedCharge]:
        """What each event of `wanted` would cost its analyst, one after the other, or why it would be refused.

        `charge` would charge exactly this, unless something else is charged first or a day ends. Raises as
        `quote`. Charges nothing.
        """
        ...

    @property
    def limits(self) -> Limits:
        """The limits by which this object decides; the ledger itself records none."""
        ...

    def impose(self, limits: Limits) -> None:
        """Decide by other `limits` from the next charge on.

        Limits are policy of whoever opens a ledger: they are not stored, and other processes decide by theirs.
        What was charged before counts under the new ones.
        """
        ...

    def shares(self, analyst: str = "") -> tuple[Share, ...]:
        """The limits that an `analyst` draws on now, and what is used of each, in the budget's currency."""
        ...

    def spent_by(self) -> dict[str, Cost]:
        """What was charged to each analyst, the largest first; questions without a name stand under ``""``.

        Names that are new after 4,096 others stand together under `*`. With what was spent before the ledger
        began, the amounts add up to `spent`.
        """
        ...

    def entries(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        analyst: str | None = None,
        kind: str | None = None,
        newest_first: bool = False,
    ) -> list[LedgerEntry]:
        """A page of entries: at most `limit` of those beyond number `after`, in their order.

        With `newest_first` they come in the opposite order, and `after` is the number that they are below; 0 is
        the end of the ledger. `analyst` selects the debits of one analyst (``""``: those without a name), `kind`
        those of one kind. A durable ledger reads the page alone, and raises a `LedgerError` where an entry of it
        was changed.
        """
        ...

    def close(self) -> None:
        """Let go of the store's connections; a durable ledger that was closed refuses every call.

        Closing twice does nothing, and a ledger in memory has nothing to let go of.
        """
        ...

    def find(self, request: str) -> Debit | None:
        """The debit of a `request`, or None where nothing was charged under it. Charges nothing."""
        ...

    def debits(self, prefix: str = "") -> list[Debit]:
        """The debits whose requests begin with `prefix`, in the order in which they were charged.

        One look at the ledger: no debit that was charged before it is missing. A durable ledger selects them in
        its store.
        """
        ...

    def charge(
        self,
        event: Event,
        *,
        question: str,
        request: str,
        analyst: str = "",
        hidden: bytes | None = None,
        step: JournalStep | None = None,
    ) -> Debit:
        """Debit an `event`, or refuse and change nothing. Returns the debit.

        The entry is written under the name `request` with the text of the `question`; `analyst` is whose share
        pays. A request that was charged before gets its old debit back, with `repeated` true, and pays nothing.

        `hidden` opens a handle that needs no look at the data: the answer `OPENED` and this first state are kept
        with the debit, unless the debit has an answer already. `step` is a step of a journal that belongs to this
        debit: both are kept, or neither; a journal that is not there yet is opened with its first step.

        Raises an `InsufficientBudgetError` when the total or a share of it cannot pay; a `RequestConflictError`
        when the request, or the journal's name, was used with another question, event or analyst; an
        `OvertakenError` when another step of the journal came first; a `ParameterError` for a request or a name
        that no store can keep.
        """
        ...

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        """Keep the `answer` that the `debit` paid for and, for a handle, its first state, `hidden`.

        A debit keeps one answer, the first; that one is returned, and nothing else may be released. Raises a
        `LedgerError` for a debit that this ledger does not hold.
        """
        ...

    def charge_all(self, wanted: Sequence[WantedCharge]) -> list[Debit | UnderstudyError]:
        """Charge for several questions, `wanted`, in this order: the debit of each, or what `charge` would raise.

        One that is refused leaves the others alone. A durable ledger writes all of them in one transaction; where
        that fails, a `LedgerError` is raised for all of them.
        """
        ...

    def settle_all(self, answers: Sequence[tuple[Debit, bytes]]) -> list[bytes | UnderstudyError]:
        """Keep the `answers` of several debits: for each what `settle` would return, or would raise.

        A durable ledger writes all of them in one transaction; where that fails, a `LedgerError` is raised for all
        of them.
        """
        ...

    def answered(self, debit: Debit) -> bytes | None:
        """The answer that is kept for a `debit`, as bytes; None where it has none yet."""
        ...

    def hidden(self, debit: Debit) -> Hidden | None:
        """The latest state of the handle that a `debit` opened; None where it opened none.

        It is private: only the Curator that looks at the data may read it.
        """
        ...

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        """Keep a handle's next `answer` and its new `state`, if `step` is still the latest; else change nothing.

        The handle is that of the `debit`; the entry shows the `question`. Returns whether they were kept. False
        says that somebody else's answer came first, so that the state has to be read again, or that there is no
        such handle. Raises a `LedgerError` for a debit that this ledger does not hold.
        """
        ...

    def steps(self, debit: Debit, *, after: int = 0) -> list[bytes]:
        """The answers of the steps of a `debit`'s handle beyond the first `after`, in order.

        The handle's first answer, kept by `settle` or `charge`, is not among them.
        """
        ...
