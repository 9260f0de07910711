"""What a ledger decides: its operations, applied in order to a page.

A page holds what the operations need to know and takes what they decide. The durable ledger's page is read from
its store and written there in one transaction (`stored_page`); a ledger in memory is one page that is never
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from understudy.errors import LedgerError, OvertakenError
from understudy.ledger.books import ANALYST, REQUEST, checked_name, short_question
from understudy.ledger.interface import NOTHING, OPENED, Debit, JournalStep
from understudy.ledger.recorded import Recorded
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event


@dataclass(frozen=True, slots=True)
class Latest:
    """The last answer of a debit: its step, its entry's number, and whether it left a state."""

    step: int
    number: int
    is_handle: bool


class Operation(Protocol):
    """A request to the ledger. A refusal that `apply` raises has changed nothing on the page."""

    @property
    def needs(self) -> tuple[Sequence[str], Sequence[str]]:
        """The requests whose debits must be on the page, and those whose first answer and last step must be."""
        ...

    def apply(self, page: Page) -> Any: ...


class Page:
    """The end of a ledger, and what it knows of the requests at hand: enough to decide."""

    def __init__(self, recorded: Recorded, now: str) -> None:
        self.recorded = recorded
        self.at = max(now, recorded.at)
        self.added = 0
        self.debits: dict[str, Debit] = {}
        self.answers: dict[int, bytes] = {}
        self.latest: dict[int, Latest] = {}

    def append(self, kind: str, *, cost: int = 0, total: int | None = None, **fields: Any) -> int:
        """Add an entry to the end of the ledger: its number."""
        del kind, cost, fields
        end = self.recorded
        end.entries, end.at, end.total = end.entries + 1, self.at, end.total if total is None else total
        self.added += 1
        return end.entries

    def debit(
        self, event: Event, *, question: str, request: str, analyst: str, cost: Cost, total: Cost
    ) -> Debit:
        """Add a debit that the books have admitted."""
        number = self.append(
            "debit",
            request=request,
            question=question,
            analyst=analyst,
            event=event,
            cost=cost.units,
            total=total.units,
        )
        self.debits[request] = Debit(number, event, cost, question, request, analyst)
        return self.debits[request]

    def keep(
        self, debit: Debit, step: int, answer: bytes, state: bytes | None, *, question: str | None = None
    ) -> None:
        """Add an answer, and the state that it leaves: a debit's one answer is step 0, a handle has later ones."""
        if step == 0:
            number = self.append("answer", debit=debit.number, step=step, answer=answer, state=state)
            self.answers[debit.number] = answer
        else:
            number = self.append(
                "step", debit=debit.number, step=step, answer=answer, state=state, question=question
            )
        self.latest[debit.number] = Latest(step, number, state is not None)


@dataclass(frozen=True, slots=True)
class Charge:
    """Debit an event, or find the debit that the request has; with it, open a handle or take a journal's step."""

    event: Event
    question: str
    request: str
    analyst: str
    hidden: bytes | None = None
    step: JournalStep | None = None

    @classmethod
    def of(
        cls,
        event: Event,
        question: str,
        request: str,
        analyst: str,
        hidden: bytes | None,
        step: JournalStep | None,
    ) -> Charge:
        """A charge with names and questions that every store can keep."""
        if step is not None:
            step = replace(
                step,
                journal=checked_name(step.journal, REQUEST, least=1),
                terms=short_question(step.terms),
                analyst=checked_name(step.analyst, ANALYST),
                question=short_question(step.question),
            )
        return cls(
            event,
            short_question(question),
            checked_name(request, REQUEST, least=1),
            checked_name(analyst, ANALYST),
            hidden,
            step,
        )

    @property
    def needs(self) -> tuple[Sequence[str], Sequence[str]]:
        journal = () if self.step is None else (self.step.journal,)
        opened = () if self.hidden is None else (self.request,)
        return (self.request, *journal), (*opened, *journal)

    def apply(self, page: Page) -> Debit:
        known, step = page.debits.get(self.request), self.step
        # The journal first: a request that its next step numbers may be another process's, who was quicker.
        journal = None if step is None else _journal(page, step)
        if known is not None:
            known.check_same(self.event, question=self.question, analyst=self.analyst)
        books, opening, admitted = page.recorded.books, None, None
        before = books.spent
        if step is not None and journal is None:
            books = books.copy()  # dropped where the debit or the journal is refused: then neither is entered
        if known is None:
            admitted = books.admit(self.event, analyst=self.analyst, at=page.at)
        if step is not None and journal is None:  # after the debit that makes room for one of nothing
            opening = books.admit(NOTHING, analyst=step.analyst, at=page.at)[0], before
        page.recorded.books = books
        if step is not None:
            _keep_step(page, step, journal, opening)
        if admitted is None:
            assert known is not None
            debit = replace(known, repeated=True)
        else:
            cost, total = admitted
            debit = page.debit(
                self.event,
                question=self.question,
                request=self.request,
                analyst=self.analyst,
                cost=cost,
                total=total,
            )
        if self.hidden is not None and debit.number not in page.answers:
            page.keep(debit, 0, OPENED, self.hidden)
        return debit


def _journal(page: Page, step: JournalStep) -> Debit | None:
    """The journal of a step that is its next one; None where the journal is not opened yet."""
    journal = page.debits.get(step.journal)
    if journal is None:
        if step.number:
            raise _missing("journal")
        return None
    journal.check_same(NOTHING, question=step.terms, analyst=step.analyst)
    latest = page.latest.get(journal.number)
    if (0 if latest is None else latest.step) != step.number:
        raise OvertakenError(f"another step of {step.journal!r} came first")
    return journal


def _keep_step(
    page: Page, step: JournalStep, journal: Debit | None, opening: tuple[Cost, Cost] | None
) -> None:
    if journal is None:
        assert opening is not None
        cost, total = opening
        journal = page.debit(
            NOTHING, question=step.terms, request=step.journal, analyst=step.analyst, cost=cost, total=total
        )
    if journal.number not in page.latest:
        page.keep(journal, 0, OPENED, step.state)
    page.keep(journal, step.number + 1, step.text, step.state, question=step.question)


@dataclass(frozen=True, slots=True)
class Settle:
    """Keep a debit's one answer."""

    debit: Debit
    answer: bytes
    hidden: bytes | None

    @property
    def needs(self) -> tuple[Sequence[str], Sequence[str]]:
        return (self.debit.request,), (self.debit.request,)

    def apply(self, page: Page) -> bytes:
        _check_debit(page, self.debit)
        known = page.answers.get(self.debit.number)
        if known is not None:
            return known
        page.keep(self.debit, 0, self.answer, self.hidden)
        return self.answer


@dataclass(frozen=True, slots=True)
class Advance:
    """Keep a handle's next answer and state, if nobody else's came first."""

    debit: Debit
    step: int
    question: str
    answer: bytes
    state: bytes

    @property
    def needs(self) -> tuple[Sequence[str], Sequence[str]]:
        return (self.debit.request,), (self.debit.request,)

    def apply(self, page: Page) -> bool:
        _check_debit(page, self.debit)
        latest = page.latest.get(self.debit.number)
        if latest is None or not latest.is_handle or latest.step != self.step:
            return False
        page.keep(self.debit, self.step + 1, self.answer, self.state, question=self.question)
        return True


def _check_debit(page: Page, debit: Debit) -> None:
    """An answer is kept only under a debit that this ledger holds."""
    if page.debits.get(debit.request) != debit:
        raise _missing("debit")


def _missing(what: str) -> LedgerError:
    return LedgerError(
        f"the ledger does not hold the {what} of this answer: it was rolled back, or it is another ledger",
        remedy="The answer was not released; restore the ledger's newest copy",
    )
