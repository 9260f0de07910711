"""A ledger in memory: for notebooks, tests and simulations. It forgets with the process."""

from __future__ import annotations

from threading import Lock

from understudy.errors import RefusedError, RequestConflictError
from understudy.ledger.interface import Debit
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
        self._answers: dict[int, object] = {}
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

    def charge(self, event: Event, *, question: str, request: str) -> Debit:
        with self._lock:
            known = self._requests.get(request)
            if known is not None:
                if known.question != question or known.event != event:
                    raise RequestConflictError(
                        f"the request id {request!r} was used for another question; take a new one"
                    )
                return known
            total = self._budget.admit(self._spent, event)
            debit = Debit(len(self._debits), event, self._budget.price(event), question, request)
            self._debits.append(debit)
            self._requests[request] = debit
            self._spent = total
            return debit

    def settle(self, debit: Debit, answer: object) -> None:
        with self._lock:
            if debit.number in self._answers:
                raise RefusedError("this debit has its answer already")
            self._answers[debit.number] = answer

    def answered(self, debit: Debit) -> object | None:
        return self._answers.get(debit.number)
