"""A ledger in memory: for notebooks, tests and simulations. It forgets with the process."""

from __future__ import annotations

from threading import Lock

from understudy.errors import RequestConflictError
from understudy.ledger.interface import Debit, Hidden
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event


class MemoryLedger:
    """Meets `Ledger`; safe for threads."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._debits: list[Debit] = []
        self._requests: dict[str, Debit] = {}
        self._answers: dict[int, bytes] = {}
        self._hidden: dict[int, Hidden] = {}
        self._spent = budget.total([])

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def debits(self) -> tuple[Debit, ...]:
        return tuple(self._debits)

    @property
    def spent(self) -> Cost:
        return self._spent

    @property
    def remaining(self) -> Cost:
        return type(self._spent)(self._budget.cap.units - self._spent.units)

    def charge(self, event: Event, *, question: str, request: str, analyst: str = "") -> Debit:
        with self._lock:
            known = self._requests.get(request)
            if known is not None:
                if (known.question, known.event, known.analyst) != (question, event, analyst):
                    raise RequestConflictError(
                        f"the request id {request!r} was used for another question; take a new one"
                    )
                return known
            total = self._budget.admit(self._spent, event)
            price = self._budget.price(event)
            debit = Debit(len(self._debits), event, price, question, request, analyst)
            self._debits.append(debit)
            self._requests[request] = debit
            self._spent = total
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
            if self._hidden[debit.number].step != step:
                return False
            self._hidden[debit.number] = Hidden(step + 1, state)
            return True
