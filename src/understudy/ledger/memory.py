"""A ledger in memory: for notebooks, tests and simulations. It forgets with the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, TypeVar

from understudy.errors import UnderstudyError
from understudy.ledger.books import ANALYST, Books, Due, Share, TriedCharge, checked_name, timestamp
from understudy.ledger.chain import canonical
from understudy.ledger.interface import Debit, Hidden, JournalStep, LedgerEntry, WantedCharge
from understudy.ledger.page import Advance, Charge, Operation, Page, Settle
from understudy.ledger.paging import PageRequest
from understudy.ledger.recorded import Recorded
from understudy.ledger.view import ledger_html
from understudy.privacy.accounting_rule import NEWEST, AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, SpentBefore
from understudy.privacy.limits import Limits
from understudy.privacy.recording import as_plain
from understudy.rational import Number, exact

Given = TypeVar("Given")


class MemoryPage(Page):
    """A page that is all there is: it keeps the answers and the latest states themselves."""

    def __init__(self, recorded: Recorded) -> None:
        super().__init__(recorded, "")
        self.hidden: dict[int, Hidden] = {}
        self.steps: dict[int, list[bytes]] = {}
        self.lines: list[Callable[[], LedgerEntry]] = []

    def append(self, kind: str, *, cost: int = 0, total: int | None = None, **fields: Any) -> int:
        number = super().append(kind, cost=cost, total=total, **fields)
        unit, at, total = type(self.recorded.books.cap), self.at, self.recorded.total
        given = {
            name: fields.get(name) for name in ("analyst", "request", "question", "event", "debit", "step")
        }

        def line() -> LedgerEntry:
            """What a reader sees: nobody reads most ledgers of this kind, so it is written when somebody does."""
            event = given["event"]
            return LedgerEntry(
                number,
                kind,
                at,
                given["analyst"] or "",
                given["request"] or "",
                given["question"] or "",
                "" if event is None else canonical(as_plain(event)),
                unit(cost),
                unit(total),
                given["debit"],
                given["step"],
            )

        self.lines.append(line)
        return number

    def keep(
        self, debit: Debit, step: int, answer: bytes, state: bytes | None, *, question: str | None = None
    ) -> None:
        super().keep(debit, step, answer, state, question=question)
        if state is not None:
            self.hidden[debit.number] = Hidden(step, state)
        if step:
            self.steps.setdefault(debit.number, []).append(answer)


class MemoryLedger:
    """Meets `Ledger`; safe for threads. It is one page that is never written, so it decides as a stored one."""

    def __init__(
        self,
        budget: Budget,
        *,
        opening: Number = 0,
        limits: Limits | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._budget = budget
        self._clock = clock
        self._lock = Lock()
        recorded = Recorded(Books(budget, limits=limits))
        recorded.total = recorded.books.begin(SpentBefore(epsilon=exact(opening, "opening"))).units
        self._page = MemoryPage(recorded)

    def __repr__(self) -> str:
        return f"MemoryLedger({self._budget}, {self.remaining.amount:.4g} {self.remaining.currency} left)"

    def _repr_html_(self) -> str:
        return ledger_html(self, "Ledger in memory: it forgets with this process")

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def accounting(self) -> AccountingRule:
        return NEWEST

    @property
    def is_begun(self) -> bool:
        return False

    @property
    def spent(self) -> Cost:
        return self._books.spent

    @property
    def delta_spent(self) -> Fraction:
        return self._books.delta_spent

    @property
    def remaining(self) -> Cost:
        return self._books.remaining

    def available(self, analyst: str = "") -> Cost:
        return self._books.available(analyst=analyst, at=self._latest)

    def quote(self, event: Event) -> Cost:
        return self._books.quote(event)

    def close(self) -> None:
        pass

    def due(self, event: Event, *, analyst: str = "") -> Due:
        with self._lock:
            return self._books.due(event, analyst=checked_name(analyst, ANALYST), at=self._latest)

    def tried(self, wanted: Sequence[tuple[Event, str]]) -> list[TriedCharge]:
        with self._lock:
            return self._books.tried(wanted, at=self._latest)

    @property
    def limits(self) -> Limits:
        return self._books.limits

    def impose(self, limits: Limits) -> None:
        with self._lock:
            self._books.limits = limits

    def shares(self, analyst: str = "") -> tuple[Share, ...]:
        with self._lock:
            return self._books.shares_of(analyst=analyst, at=self._latest)

    def spent_by(self) -> dict[str, Cost]:
        with self._lock:
            return self._books.spent_by()

    def entries(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        analyst: str | None = None,
        kind: str | None = None,
        newest_first: bool = False,
    ) -> list[LedgerEntry]:
        asked = PageRequest(after, limit, analyst, kind, newest_first)
        with self._lock:
            found = (
                self._page.lines[: after - 1 if after else None] if newest_first else self._page.lines[after:]
            )
        lines = (line() for line in (reversed(found) if newest_first else found))
        return list(islice(filter(asked.selects, lines), limit))

    def find(self, request: str) -> Debit | None:
        return self._page.debits.get(request)

    def debits(self, prefix: str = "") -> list[Debit]:
        with self._lock:
            return [debit for request, debit in self._page.debits.items() if request.startswith(prefix)]

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
        charge = Charge.of(event, question, request, analyst, hidden, step)
        with self._lock:
            self._page.at = max(self._page.at, timestamp(self._clock()))
            return charge.apply(self._page)

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        return self._applied(Settle(debit, answer, hidden))

    def charge_all(self, wanted: Sequence[WantedCharge]) -> list[Debit | UnderstudyError]:
        return [
            _outcome(
                partial(
                    self.charge, one.event, question=one.question, request=one.request, analyst=one.analyst
                )
            )
            for one in wanted
        ]

    def settle_all(self, answers: Sequence[tuple[Debit, bytes]]) -> list[bytes | UnderstudyError]:
        return [_outcome(partial(self.settle, debit, answer)) for debit, answer in answers]

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        return self._applied(Advance(debit, step, question, answer, state))

    def answered(self, debit: Debit) -> bytes | None:
        return self._page.answers.get(debit.number)

    def hidden(self, debit: Debit) -> Hidden | None:
        return self._page.hidden.get(debit.number)

    def steps(self, debit: Debit, *, after: int = 0) -> list[bytes]:
        with self._lock:
            return self._page.steps.get(debit.number, [])[after:]

    @property
    def _latest(self) -> str:
        return max(self._page.at, timestamp(self._clock()))

    @property
    def _books(self) -> Books:
        return self._page.recorded.books

    def _applied(self, operation: Operation) -> Any:
        with self._lock:
            return operation.apply(self._page)


def _outcome(work: Callable[[], Given]) -> Given | UnderstudyError:
    """What the work returns, or the refusal that it raises."""
    try:
        return work()
    except UnderstudyError as refusal:
        return refusal
