"""A ledger in memory: for notebooks, tests and simulations. It forgets with the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from understudy.ledger.books import Books, checked_name, checked_request, short_question, timestamp
from understudy.ledger.interface import Debit, Hidden
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, SpentBefore, unversioned
from understudy.privacy.limits import Limits
from understudy.rational import Number, exact


class MemoryLedger:
    """Meets `Ledger`; safe for threads."""

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
        self._debits: list[Debit] = []
        self._requests: dict[str, Debit] = {}
        self._answers: dict[int, bytes] = {}
        self._hidden: dict[int, Hidden] = {}
        self._steps: dict[int, list[bytes]] = {}
        self._at = ""
        self._books = Books(budget, limits=limits)
        self._books.begin(SpentBefore(epsilon=exact(opening, "opening")))

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def debits(self) -> tuple[Debit, ...]:
        return tuple(self._debits)

    @property
    def spent(self) -> Cost:
        return self._books.spent

    @property
    def remaining(self) -> Cost:
        return self._books.remaining

    def available(self, analyst: str = "") -> Cost:
        return self._books.available(analyst=analyst, at=max(self._at, timestamp(self._clock())))

    def quote(self, event: Event) -> Cost:
        return self._books.quote(event)

    def charge(self, event: Event, *, question: str, request: str, analyst: str = "") -> Debit:
        checked_request(request)
        checked_name(analyst, "an analyst's name")
        question = short_question(question)
        with self._lock:
            known = self._requests.get(request)
            if known is not None:
                if (known.question, unversioned(known.event), known.analyst) != (
                    question,
                    unversioned(event),
                    analyst,
                ):
                    raise known.conflict(analyst=analyst)
                return replace(known, repeated=True)
            at = max(self._at, timestamp(self._clock()))
            cost, _ = self._books.admit(event, analyst=analyst, at=at)
            debit = Debit(len(self._debits), event, cost, question, request, analyst)
            self._debits.append(debit)
            self._requests[request] = debit
            self._at = at
            return debit

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        with self._lock:
            if debit.number not in self._answers:
                self._answers[debit.number] = answer
                if hidden is not None:
                    self._hidden[debit.number] = Hidden(0, hidden)
            return self._answers[debit.number]

    def answered(self, debit: Debit) -> bytes | None:
        return self._answers.get(debit.number)

    def hidden(self, debit: Debit) -> Hidden | None:
        return self._hidden.get(debit.number)

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        with self._lock:
            latest = self._hidden.get(debit.number)
            if latest is None or latest.step != step:
                return False
            self._hidden[debit.number] = Hidden(step + 1, state)
            self._steps.setdefault(debit.number, []).append(answer)
            return True

    def steps(self, debit: Debit) -> list[bytes]:
        with self._lock:
            return list(self._steps.get(debit.number, ()))
