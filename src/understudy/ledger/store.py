"""The durable ledger: SQLite for one machine, Postgres for several; one schema, one chain of entries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, collate, insert, select
from sqlalchemy.engine import URL

from understudy.errors import LedgerError, UnderstudyError
from understudy.ledger import schema, snapshot
from understudy.ledger.books import Books, Due, Share, checked_analyst, short_question, timestamp
from understudy.ledger.chain import START, Entry, commitment, is_sealed
from understudy.ledger.database import TIMEOUT, Database
from understudy.ledger.group import GroupCommit, Ticket
from understudy.ledger.interface import Debit, Hidden, JournalStep, LedgerEntry, Wanted
from understudy.ledger.kept import released
from understudy.ledger.page import Advance, Charge, Operation, Page, Settle
from understudy.ledger.paging import PageRequest, readable
from understudy.ledger.recorded import Recorded, broken, budget_of, opening_event, rule_of, terms
from understudy.ledger.schema import ENTRY, KEPT, LEDGER, SCHEMA
from understudy.ledger.stored_page import StoredPage
from understudy.ledger.view import ledger_html
from understudy.ledger.witness import Witness
from understudy.privacy.accountant import Accountant
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.privacy.joint import RULE_2
from understudy.privacy.limits import Limits
from understudy.rational import Number, exact

_HEAD = select(LEDGER.c.entries, LEDGER.c.head, select(SCHEMA.c.version).scalar_subquery()).where(
    LEDGER.c.name == bindparam("of")
)
_LOCKED_HEAD = _HEAD.with_for_update(of=LEDGER)
_LATER = (
    select(ENTRY)
    .where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.number > bindparam("seen"))
    .order_by(ENTRY.c.number)
    .limit(5000)
)
_OF_DEBIT = select(ENTRY).where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.debit == bindparam("debit"))
_FIRST = _OF_DEBIT.where(ENTRY.c.step == 0)
_LAST = _OF_DEBIT.order_by(ENTRY.c.step.desc()).limit(1)
_STEPS = (
    select(ENTRY, KEPT.c.answer)
    .join_from(
        ENTRY, KEPT, (KEPT.c.ledger == ENTRY.c.ledger) & (KEPT.c.number == ENTRY.c.number), isouter=True
    )
    .where(
        ENTRY.c.ledger == bindparam("of"),
        ENTRY.c.debit == bindparam("debit"),
        ENTRY.c.step > bindparam("after"),
    )
    .order_by(ENTRY.c.step)
)
_REQUESTED = select(ENTRY).where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.request == bindparam("request"))
# Text in the order of its bytes, in which all that begins with a prefix stands together and before the prefix
# with the last of all characters, which no request holds. SQLite's index has that order; Postgres reads the rows
# of this ledger and sends those that fit.
_PREFIXED = {
    backend: select(ENTRY)
    .where(
        ENTRY.c.ledger == bindparam("of"),
        ENTRY.c.request.is_not(None),
        collate(ENTRY.c.request, order) >= bindparam("first"),
        collate(ENTRY.c.request, order) < bindparam("beyond"),
    )
    .order_by(ENTRY.c.number)
    for backend, order in (("sqlite", "BINARY"), ("postgresql", "C"))
}
SKIPPED = 100
"""Fewer entries than this are read rather than skipped to a snapshot."""

MOST_UNANSWERED = 1 << 12
"""Debits without an answer that an open ledger remembers; it reads others back."""

_KEPT = select(KEPT).where(KEPT.c.ledger == bindparam("of"), KEPT.c.number == bindparam("number"))


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
        limits: Limits | None = None,
        accountant: Accountant[Any] | None = None,
        witness: Witness | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timeout: float = TIMEOUT,
    ) -> None:
        self._name = name
        self._budget = budget
        self._witness = witness
        self._clock = clock
        self._database = Database(url, timeout=timeout)
        self._rule = RULE_2
        self._limits = Limits() if limits is None else limits
        self._accountant = accountant
        self._blank = self._empty()
        self._recorded = self._blank  # of no entries, until the ledger is found or begun
        self._opening, self._opening_text = opening_event(exact(opening, "opening"))
        self._declared = self._blank.copy()
        self._declared.books.begin(self._opening)
        self._unanswered: dict[str, Debit] = {}
        """Debits that this object committed, so that they need not be read back when their answers come."""
        self._group: GroupCommit[Operation] = GroupCommit(self._commit)
        self._process = os.getpid()
        try:
            self._is_held()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"DurableLedger({self._name!r} in {self._database.place})"

    def _repr_html_(self) -> str:
        return ledger_html(self, f"Ledger of {self._name} in {self._database.place}")

    @property
    def name(self) -> str:
        return self._name

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
    def budget(self) -> Budget:
        return self._budget

    @property
    def spent(self) -> Cost:
        return self._now().books.spent

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
        return books.due(event, analyst=checked_analyst(analyst), at=at)

    @property
    def limits(self) -> Limits:
        return self._limits

    def impose(self, limits: Limits) -> None:
        self._limits = limits

    def shares(self, analyst: str = "") -> tuple[Share, ...]:
        books, at = self._ruled()
        return books.shares_of(analyst=analyst, at=at)

    def spent_by(self) -> dict[str, Cost]:
        return self._now().books.spent_by()

    def _ruled(self) -> tuple[Books, str]:
        """The books under the limits of now, and the time of a charge that came now."""
        recorded = self._now()
        books = recorded.books.copy()
        books.limits = self._limits
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
        found = self._debits(_REQUESTED, request=request)
        return found[0] if found else None

    def debits(self, prefix: str = "") -> list[Debit]:
        statement = _PREFIXED["sqlite" if self._database.is_sqlite else "postgresql"]
        return self._debits(statement, first=prefix, beyond=f"{prefix}{chr(sys.maxunicode)}")

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
        if not self._is_held():
            return []
        with self._database.reading() as tx:
            rows = tx.execute(*asked.statement(self._name)).all()
        unit = type(self._budget.cap)
        return [readable(Entry._make(row[1:]), unit) for row in rows]

    def _debits(self, which: Any, **values: str) -> list[Debit]:
        if not self._is_held():
            return []
        with self._database.reading() as tx:
            entries = [Entry._make(row[1:]) for row in tx.execute(which, {"of": self._name, **values}).all()]
        for entry in entries:
            if not is_sealed(entry):
                raise broken(entry.number)
        return [self._blank.debit(entry) for entry in entries]

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
        return self._submit(Charge.of(event, question, request, analyst, hidden, step))

    def settle(self, debit: Debit, answer: bytes, *, hidden: bytes | None = None) -> bytes:
        return self._submit(Settle(debit, answer, hidden))

    def charge_all(self, wanted: Sequence[Wanted]) -> list[Debit | UnderstudyError]:
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
        return self._submit(Advance(debit, step, short_question(question), answer, state))

    def answered(self, debit: Debit) -> bytes | None:
        entry, kept = self._kept(_FIRST, debit)
        if entry is None:
            return None
        answer = None if kept is None else released(kept.answer, entry.answer)
        if answer is None:
            raise _changed("an answer")
        return answer

    def steps(self, debit: Debit, *, after: int = 0) -> list[bytes]:
        if not self._is_held():
            return []
        with self._database.reading() as tx:
            rows = tx.execute(_STEPS, {"of": self._name, "debit": debit.number, "after": after}).all()
        found: list[bytes] = []
        for row in rows:
            entry = Entry._make(row[1:-1])
            if not is_sealed(entry):
                raise broken(entry.number)
            answer = released(row[-1], entry.answer)
            if answer is None:
                raise _changed("an answer")
            found.append(answer)
        return found

    def hidden(self, debit: Debit) -> Hidden | None:
        entry, kept = self._kept(_LAST, debit)
        if entry is None or entry.state is None:
            return None
        if kept is None or None in (kept.state, kept.salt):
            raise _changed("a handle's state")
        if commitment(bytes(kept.state), bytes(kept.salt)) != entry.state:
            raise _changed("a handle's state")
        return Hidden(entry.step or 0, bytes(kept.state))

    def _kept(self, which: Any, debit: Debit) -> tuple[Entry | None, Any]:
        """An entry that keeps an answer of a debit, and what it keeps."""
        if not self._is_held():
            return None, None
        with self._database.reading() as tx:
            row = tx.execute(which, {"of": self._name, "debit": debit.number}).one_or_none()
            if row is None:
                self._check_unbroken(tx, debit)
                return None, None
            entry = Entry._make(row[1:])
            kept = tx.execute(_KEPT, {"of": self._name, "number": entry.number}).one_or_none()
        if not is_sealed(entry):
            raise broken(entry.number)
        return entry, kept

    def _check_unbroken(self, tx: Connection, debit: Debit) -> None:
        """Refuse to believe that a debit was never answered where an entry after it is missing or changed.

        Who believes it looks at the table again, for nothing. An opening reads entries from the newest snapshot on
        only, so the older ones are looked at here.
        """
        entries, head, _ = tx.execute(_HEAD, {"of": self._name}).one()
        number, previous = debit.number - 1, None
        while number < entries:
            later = tx.execute(_LATER, {"of": self._name, "seen": number}).all()
            for found in later:
                entry = Entry._make(found[1:])
                follows = previous is None or entry.previous == previous
                if entry.number != number + 1 or not follows or not is_sealed(entry):
                    raise broken(number + 1)
                number, previous = entry.number, entry.hash
                if number == entries:  # others may write on meanwhile
                    break
            if not later:
                break
        if (number, previous) != (entries, head):
            raise broken(number + 1)

    # ---- the transaction

    def _submit(self, operation: Operation) -> Any:
        return self._own_group().submit(operation)

    def _submit_all(self, operations: Sequence[Operation]) -> list[Any]:
        """What each operation came to, or the refusal that it raised; raises what failed their transaction."""
        tickets = self._own_group().submit_all(operations)
        if tickets and tickets[0].is_lost and tickets[0].error is not None:
            raise tickets[0].error
        return [ticket.result if ticket.error is None else ticket.error for ticket in tickets]

    def _own_group(self) -> GroupCommit[Operation]:
        if os.getpid() != self._process:  # a child has its own queue: its parent's threads do not live here
            self._group = GroupCommit(self._commit)
            self._process = os.getpid()
        return self._group

    def _commit(self, tickets: list[Ticket[Operation]]) -> None:
        """One durable transaction for a batch. A refused request leaves the others alone."""
        found = self._is_held()
        if not found and not self._would_grant(tickets):
            return
        if self._witness is not None:
            self._witness.check(self._name)  # while nothing is spent yet
        with self._database.writing() if found else self._database.making(new=True) as tx:
            recorded = self._caught_up(tx, self._recorded, locked=True) if found else self._begun(tx)
            recorded.books.limits = self._limits
            page = StoredPage(tx, self._name, recorded, timestamp(self._clock()))
            page.look_up([ticket.work for ticket in tickets], self._unanswered)
            _apply(tickets, page)
            page.take_snapshot()
            wrote = page.write()
        self._recorded = recorded
        self._note_unanswered(tickets)
        if page.erases:
            self._database.wipe()
        if wrote and self._witness is not None:
            kept = "what was paid stays paid, and no answer was released"
            self._witness.note(self._name, recorded.entries, recorded.head, kept=kept)

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
        declared.books.limits = self._limits
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
            recorded = self._caught_up(tx, known, locked=False)
        if recorded.entries > self._recorded.entries:
            self._recorded = recorded
        return recorded

    def _caught_up(self, tx: Connection, known: Recorded, *, locked: bool) -> Recorded:
        """What was known, with the entries that others wrote since: a copy, so that a failure forgets it."""
        row = tx.execute(_LOCKED_HEAD if locked else _HEAD, {"of": self._name}).one_or_none()
        if row is None:
            raise _rolled_back(0, known.entries) if known.entries else broken(1)
        entries, head, version = row
        schema.check(version)
        if type(entries) is not int:  # SQLite keeps any type in any column
            raise broken(0)
        recorded = self._skipped_to_snapshot(tx, known, entries)
        while entries > recorded.entries:
            later = tx.execute(_LATER, {"of": self._name, "seen": recorded.entries}).all()
            if not later:
                break
            for found in later:
                recorded.read(Entry._make(found[1:]))
        if recorded.entries > entries:
            raise _rolled_back(entries, recorded.entries)
        if (recorded.entries, recorded.head) != (entries, head):
            raise broken(entries)
        return recorded

    def _skipped_to_snapshot(self, tx: Connection, known: Recorded, entries: int) -> Recorded:
        """What was known, or what the newest snapshot adds to it without reading the entries in between."""
        if entries - known.entries < SKIPPED:
            return known.copy()
        found = snapshot.newest(tx, self._name, self._blank, seen=known.entries, entries=entries)
        if found is None:
            return known.copy()
        if known.entries and not snapshot.is_still_there(tx, self._name, known):
            raise broken(known.entries)
        return found

    # ---- opening

    def _is_held(self) -> bool:
        """Whether the store holds this ledger; one that it holds is opened. Looking for one writes nothing."""
        self._database.check_open()
        if self._recorded.entries:
            return True
        if not self._is_stored():
            if self._witness is not None and self._witness.knows(self._name):
                seen, _ = self._witness.seen(self._name)
                if seen:
                    raise _rolled_back(0, seen)
            return False
        with self._database.making() as tx:
            schema.migrate(tx)
            recorded = self._stored(tx)
        if recorded.entries > self._recorded.entries:  # another thread may have come further
            self._recorded = recorded
        if self._witness is not None:
            self._witness.note(self._name, recorded.entries, recorded.head, kept="nothing was spent")
        return True

    def _is_stored(self) -> bool:
        if self._database.is_sqlite and not _is_there(Path(self._database.place)):
            return False  # to connect would make the file
        self._database.check()
        with self._database.reading() as tx:
            return schema.holds(tx, self._name)

    def _begun(self, tx: Connection) -> Recorded:
        """The ledger, begun in this transaction unless others just did: whoever comes first sets the terms."""
        schema.migrate(tx)
        return self._stored(tx) if schema.holds(tx, self._name) else self._begin(tx)

    def _stored(self, tx: Connection) -> Recorded:
        """The ledger as the store has it, which must be as declared, and as the witness saw it."""
        self._check_terms(tx)
        recorded = self._caught_up(tx, self._recorded, locked=True)
        if self._witness is not None:
            self._check_witness(tx, recorded, self._witness)
        return recorded

    def _begin(self, tx: Connection) -> Recorded:
        """Write the first entry: the terms, and what was spent before."""
        tx.execute(insert(LEDGER).values(name=self._name, entries=0, head=START))
        recorded = self._blank.copy()
        total = recorded.books.begin(self._opening).units
        page = StoredPage(tx, self._name, recorded, timestamp(self._clock()))
        page.append(
            "open",
            event=self._opening,
            cost=total,
            total=total,
            terms=terms(self._name, self._budget, self._rule),
        )
        page.write()
        return recorded

    def _empty(self) -> Recorded:
        books = Books(self._budget, limits=self._limits, accountant=self._accountant, rule=self._rule)
        return Recorded(books)

    def _check_terms(self, tx: Connection) -> None:
        """The recorded budget rules; a declaration that says another is refused. So does the accounting."""
        found = tx.execute(_LATER.limit(1), {"of": self._name, "seen": 0}).one_or_none()
        if found is None:
            raise broken(1)
        first = Entry._make(found[1:])
        budget, rule = budget_of(first), rule_of(first)
        if rule != self._rule and not self._recorded.entries:
            self._rule = rule
            self._blank = self._recorded = self._empty()
        if budget != self._budget or first.terms != terms(self._name, budget, rule):
            raise LedgerError(
                f"the ledger of {self._name!r} was opened with a budget of {budget}, the declaration says "
                f"{self._budget}",
                remedy="The recorded budget rules: declare it again; nothing was spent",
            )
        if first.event != self._opening_text:
            raise LedgerError(
                f"the ledger of {self._name!r} was opened with another opening balance than the declaration says",
                remedy="The recorded one rules: declare it again; nothing was spent",
            )

    def _check_witness(self, tx: Connection, recorded: Recorded, witness: Witness) -> None:
        entries, head = witness.seen(self._name)
        if entries > recorded.entries:
            raise _rolled_back(recorded.entries, entries)
        if entries == 0:
            return
        at = select(ENTRY.c.hash).where(ENTRY.c.ledger == self._name, ENTRY.c.number == entries)
        if tx.execute(at).scalar_one_or_none() != head:
            raise LedgerError(
                f"the ledger is not the one its witness saw: entry {entries} has another hash",
                remedy="Restore the ledger's newest copy; nothing was spent",
            )


def _apply(tickets: list[Ticket[Operation]], page: Page) -> None:
    for ticket in tickets:
        try:
            ticket.result, ticket.error = ticket.work.apply(page), None
        except UnderstudyError as refusal:
            ticket.error = refusal


def _is_there(file: Path) -> bool:
    """Whether there is a ledger's file; what cannot be looked at, or has lost its half, is not called absent."""
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        size = 0
    except OSError as error:
        raise LedgerError(
            f"the ledger {file} cannot be looked at: {error.strerror}", remedy="Ask whoever keeps it"
        ) from error
    log = file.with_name(file.name + "-wal")
    if size == 0 and log.exists() and log.stat().st_size:
        raise LedgerError(
            f"half of the ledger is missing: {log.name} is there, and {file.name} is not",
            remedy="Put the file back, and do not remove the other; nothing was spent",
        )
    return file.exists()


def _rolled_back(found: int, seen: int) -> LedgerError:
    return LedgerError(
        f"the ledger was rolled back: it has {found} entries, and {seen} were seen before",
        remedy="Restore its newest copy; nothing was spent",
    )


def _changed(what: str) -> LedgerError:
    return LedgerError(
        f"{what} in the ledger is not the one that was stored",
        remedy="Run `understudy ledger verify`; it was not released",
    )
