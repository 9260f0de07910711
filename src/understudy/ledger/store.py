"""The durable ledger: SQLite for one machine, Postgres for several; one schema, one chain of entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, insert
from sqlalchemy.engine import URL

from understudy.errors import LedgerError, UnderstudyError
from understudy.ledger import schema, stored_entries
from understudy.ledger.books import (
    ANALYST,
    Books,
    Due,
    Share,
    TriedCharge,
    checked_name,
    short_question,
    timestamp,
)
from understudy.ledger.catching_up import caught_up, check_witnessed, rolled_back
from understudy.ledger.chain import START, Entry, canonical
from understudy.ledger.database import TIMEOUT, Database
from understudy.ledger.file import is_there
from understudy.ledger.group import GroupCommit, Ticket
from understudy.ledger.interface import Debit, Hidden, JournalStep, LedgerEntry, WantedCharge
from understudy.ledger.page import Advance, Charge, Operation, Page, Settle
from understudy.ledger.paging import PageRequest, readable
from understudy.ledger.recorded import Recorded, broken, budget_of, promise_of, rule_of, terms
from understudy.ledger.schema import LEDGER
from understudy.ledger.stored_page import StoredPage
from understudy.ledger.view import ledger_html
from understudy.ledger.witness import Witness
from understudy.privacy.accountant import Accountant
from understudy.privacy.accounting_rule import NEWEST, AccountingRule
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, SpentBefore
from understudy.privacy.limits import Limits
from understudy.privacy.recording import as_plain
from understudy.rational import Number, exact

Result = TypeVar("Result")

MOST_UNANSWERED = 1 << 12
"""Debits without an answer that an open ledger remembers; it reads others back."""


class DurableLedger:
    """Meets `Ledger`; safe for threads, processes and machines that share one store.

    A debit is durable before `charge` returns, and an answer before `settle` or `advance` does. Requests of one
    process that arrive together share a transaction. The totals are recomputed from the events in the store, other
    processes' included, inside the transaction that decides.

    The first charge that is granted writes the first entry as well, in one transaction: before it, everything is
    worked out from the declared budget, and the store is not touched.
    """

    def __init__(
        self,
        url: URL,
        name: str,
        budget: Budget,
        *,
        opening: Number = 0,
        promise: str = "",
        limits: Limits | None = None,
        accountant: Accountant[Any] | None = None,
        witness: Witness | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timeout: float = TIMEOUT,
    ) -> None:
        self.name = name
        self.budget = budget
        self._promise = promise
        self._witness = witness
        self._clock = clock
        self._database = Database(url, timeout=timeout)
        self._rule = NEWEST
        self.limits = Limits() if limits is None else limits
        self._accountant = accountant
        self._blank = self._empty()
        self._recorded = self._blank  # of no entries, until the ledger is found or begun
        self._opening = SpentBefore(epsilon=exact(opening, "opening"))
        self._declared = self._blank.copy()
        self._declared.books.begin(self._opening)
        self._unanswered: dict[str, Debit] = {}
        """Debits that this object committed, so that they need not be read back when their answers come."""
        self._group: GroupCommit[Operation] = GroupCommit(self._commit)
        try:
            self._is_held()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"DurableLedger({self.name!r} in {self._database.place})"

    def _repr_html_(self) -> str:
        return ledger_html(self, f"Ledger of {self.name} in {self._database.place}")

    @property
    def url(self) -> URL:
        return self._database.url

    @property
    def place(self) -> str:
        """The store, without a password."""
        return self._database.place

    @property
    def is_begun(self) -> bool:
        """Whether anything was ever charged; before that nothing is stored, and the declared budget rules."""
        return self._is_held()

    @property
    def spent(self) -> Cost:
        return self._now().books.spent

    @property
    def delta_spent(self) -> Fraction:
        return self._now().books.delta_spent

    @property
    def accounting(self) -> AccountingRule:
        self._now()  # what was recorded rules, also where another process has begun the ledger
        return self._rule

    @property
    def remaining(self) -> Cost:
        return self._now().books.remaining

    def available(self, analyst: str = "") -> Cost:
        books, at = self._ruled()
        return books.available(analyst=analyst, at=at)

    def quote(self, event: Event) -> Cost:
        return self._now().books.quote(event)

    def due(self, event: Event, *, analyst: str = "") -> Due:
        books, at = self._ruled()
        return books.due(event, analyst=checked_name(analyst, ANALYST), at=at)

    def tried(self, wanted: Sequence[tuple[Event, str]]) -> list[TriedCharge]:
        books, at = self._ruled()
        return books.tried(wanted, at=at)

    def impose(self, limits: Limits) -> None:
        self.limits = limits

    def shares(self, analyst: str = "") -> tuple[Share, ...]:
        books, at = self._ruled()
        return books.shares_of(analyst=analyst, at=at)

    def spent_by(self) -> dict[str, Cost]:
        return self._now().books.spent_by()

    def _ruled(self) -> tuple[Books, str]:
        """The books under the limits of now, and the time of a charge that came now."""
        recorded = self._now()
        books = recorded.books.copy()
        books.limits = self.limits
        return books, max(recorded.at, timestamp(self._clock()))

    @property
    def end(self) -> tuple[int, str]:
        """The number of the entries and the hash of the last, as a witness keeps them."""
        recorded = self._now()
        return (recorded.entries, recorded.head) if self.is_begun else (0, START)

    @property
    def seen(self) -> tuple[int, str]:
        """The end of the ledger as this object last saw it, without another look; (0, …) where it saw none."""
        return self._recorded.entries, self._recorded.head

    def close(self) -> None:
        """Let go of the store's connections; what is asked of the ledger afterwards is refused."""
        self._database.close()

    def let_go(self) -> None:
        """Close the store's connections; the next call makes another."""
        self._database.let_go()

    # ---- reading what was charged

    def find(self, request: str) -> Debit | None:
        found = self._read(lambda tx: stored_entries.requested(tx, self.name, request))
        return self._blank.debit(found[0]) if found else None

    def debits(self, prefix: str = "") -> list[Debit]:
        found = self._read(lambda tx: stored_entries.prefixed(tx, self.name, prefix)) or []
        return [self._blank.debit(entry) for entry in found]

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
        rows = self._read(lambda tx: tx.execute(*asked.statement(self.name)).all()) or []
        unit = type(self.budget.cap)
        return [readable(Entry._make(row[1:]), unit) for row in rows]

    def _read(self, how: Callable[[Connection], Result]) -> Result | None:
        """What is read in one transaction; None where nothing was ever charged, and so nothing is stored."""
        if not self._is_held():
            return None
        with self._database.reading() as tx:
            return how(tx)

    # ---- the four steps

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
        return self._group.submit(Charge.of(event, question, request, analyst, hidden, step))

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        return self._group.submit(Settle(debit, answer, hidden))

    def charge_all(self, wanted: Sequence[WantedCharge]) -> list[Debit | UnderstudyError]:
        found, charges = list[Debit | UnderstudyError](), list[Operation]()
        refused: dict[int, UnderstudyError] = {}
        for place, one in enumerate(wanted):
            try:
                charges.append(Charge.of(one.event, one.question, one.request, one.analyst, None, None))
            except UnderstudyError as error:  # a name that no store can keep
                refused[place] = error
        outcomes = iter(self._submit_all(charges))
        for place in range(len(wanted)):
            found.append(refused[place] if place in refused else next(outcomes))
        return found

    def settle_all(self, answers: Sequence[tuple[Debit, bytes]]) -> list[bytes | UnderstudyError]:
        return self._submit_all([Settle(debit, answer, None) for debit, answer in answers])

    def advance(self, debit: Debit, *, step: int, question: str, answer: bytes, state: bytes) -> bool:
        return self._group.submit(Advance(debit, step, short_question(question), answer, state))

    def answered(self, debit: Debit) -> bytes | None:
        return self._read(lambda tx: stored_entries.answered(tx, self.name, debit))

    def steps(self, debit: Debit, *, after: int = 0) -> list[bytes]:
        return self._read(lambda tx: stored_entries.steps(tx, self.name, debit, after=after)) or []

    def hidden(self, debit: Debit) -> Hidden | None:
        return self._read(lambda tx: stored_entries.hidden(tx, self.name, debit))

    # ---- the transaction

    def _submit_all(self, operations: Sequence[Operation]) -> list[Any]:
        """What each operation came to, or the refusal that it raised; raises what failed their transaction."""
        tickets = self._group.submit_all(operations)
        if tickets and tickets[0].is_lost and tickets[0].error is not None:
            raise tickets[0].error
        return [ticket.result if ticket.error is None else ticket.error for ticket in tickets]

    def _commit(self, tickets: list[Ticket[Operation]]) -> None:
        """One durable transaction for a batch. A refused request leaves the others alone."""
        found = self._is_held()
        if not found and not self._would_grant(tickets):
            return
        if self._witness is not None:
            self._witness.check(self.name)  # while nothing is spent yet
        with self._database.writing(tables=not found, new=not found) as tx:
            if found:
                recorded = caught_up(tx, self.name, self._recorded, self._blank, locked=True)
            else:  # it is begun here, unless others just did: whoever comes first sets the terms
                schema.migrate(tx)
                recorded = self._stored(tx) if schema.holds(tx, self.name) else self._begin(tx)
            recorded.books.limits = self.limits
            page = StoredPage(tx, self.name, recorded, timestamp(self._clock()))
            page.look_up([ticket.work for ticket in tickets], self._unanswered)
            _apply(tickets, page)
            page.take_snapshot()
            wrote = page.write()
        self._recorded = recorded
        self._note_unanswered(tickets)
        if page.erased:
            self._database.wipe()
        if wrote and self._witness is not None:
            kept = "what was paid stays paid, and no answer was released"
            self._witness.note(self.name, recorded.entries, recorded.head, kept=kept)

    def _note_unanswered(self, tickets: list[Ticket[Operation]]) -> None:
        """Remember what was charged and is not answered yet; a debit whose answer was kept is forgotten."""
        for ticket in tickets:
            if isinstance(ticket.result, Debit) and not ticket.result.repeated:
                self._unanswered[ticket.result.request] = ticket.result
            elif isinstance(ticket.work, Settle):
                self._unanswered.pop(ticket.work.debit.request, None)
        while len(self._unanswered) > MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]

    def _would_grant(self, tickets: list[Ticket[Operation]]) -> bool:
        """Whether a ledger that nothing was charged to would grant any of them; the others are told why not."""
        declared = self._declared.copy()
        declared.books.limits = self.limits
        page = Page(declared, timestamp(self._clock()))
        _apply(tickets, page)
        return page.added > 0

    def _now(self) -> Recorded:
        if not self._is_held():
            return self._declared
        known = (
            self._recorded
        )  # before the transaction, which does not see what other threads commit meanwhile
        with self._database.reading() as tx:
            recorded = caught_up(tx, self.name, known, self._blank, locked=False)
        if recorded.entries > self._recorded.entries:
            self._recorded = recorded
        return recorded

    # ---- opening

    def _is_held(self) -> bool:
        """Whether the store holds this ledger; one that it holds is opened. Looking for one writes nothing."""
        self._database.check_open()
        if self._recorded.entries:
            return True
        # To connect to a file that is not there would make it.
        stored = not self._database.is_sqlite or is_there(Path(self._database.place))
        if stored:
            self._database.check()
            with self._database.reading() as tx:
                stored = schema.holds(tx, self.name)
        if not stored:
            if self._witness is not None and self._witness.knows(self.name):
                seen, _ = self._witness.seen(self.name)
                if seen:
                    raise rolled_back(0, seen)
            return False
        with self._database.writing(tables=True) as tx:
            schema.migrate(tx)
            recorded = self._stored(tx)
        if recorded.entries > self._recorded.entries:  # another thread may have come further
            self._recorded = recorded
        if self._witness is not None:
            self._witness.note(self.name, recorded.entries, recorded.head, kept="nothing was spent")
        return True

    def _stored(self, tx: Connection) -> Recorded:
        """The ledger as the store has it, which must be as declared, and as the witness saw it."""
        self._check_terms(tx)
        recorded = caught_up(tx, self.name, self._recorded, self._blank, locked=True)
        if self._witness is not None:
            check_witnessed(tx, self.name, recorded, self._witness)
        return recorded

    def _begin(self, tx: Connection) -> Recorded:
        """Write the first entry: the terms, and what was spent before."""
        tx.execute(insert(LEDGER).values(name=self.name, entries=0, head=START))
        recorded = self._blank.copy()
        total = recorded.books.begin(self._opening).units
        page = StoredPage(tx, self.name, recorded, timestamp(self._clock()))
        page.append(
            "open",
            event=self._opening,
            cost=total,
            total=total,
            terms=terms(self.name, self.budget, self._rule, self._promise),
        )
        page.write()
        return recorded

    def _empty(self) -> Recorded:
        books = Books(self.budget, limits=self.limits, accountant=self._accountant, rule=self._rule)
        return Recorded(books)

    def _check_terms(self, tx: Connection) -> None:
        """The recorded budget rules; a declaration that says another is refused. So does the accounting."""
        found = stored_entries.later(tx, self.name, 0, most=1)
        if not found:
            raise broken(1)
        first = found[0]
        budget, rule, promise = budget_of(first), rule_of(first), promise_of(first)
        if rule != self._rule and not self._recorded.entries:
            self._rule = rule
            self._blank = self._recorded = self._empty()
        if budget != self.budget or first.terms != terms(self.name, budget, rule, promise):
            raise LedgerError(
                f"the ledger of {self.name!r} was opened with a budget of {budget}, the declaration says "
                f"{self.budget}",
                remedy="The recorded budget rules: declare it again; nothing was spent",
            )
        if promise and self._promise and promise != self._promise:
            raise LedgerError(
                f"the ledger of {self.name!r} was begun under another promise ({promise}) than the declaration "
                f"makes ({self._promise}), and what was charged under one does not count under the other",
                remedy="The recorded one rules: declare `protect`, `neighbours` and `unit` as they were; nothing "
                "was spent",
            )
        if first.event != canonical(as_plain(self._opening)):
            raise LedgerError(
                f"the ledger of {self.name!r} was opened with another opening balance than the declaration says",
                remedy="The recorded one rules: declare it again; nothing was spent",
            )


def _apply(tickets: list[Ticket[Operation]], page: Page) -> None:
    for ticket in tickets:
        try:
            ticket.result, ticket.error = ticket.work.apply(page), None
        except UnderstudyError as refusal:
            ticket.error = refusal
