"""One transaction's work on a ledger: look up what the requests need, apply them in order, write once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlalchemy import Connection, bindparam, func, insert, select, update

from understudy.errors import LedgerError
from understudy.ledger.chain import Entry, answer_hash, canonical, commitment, is_sealed
from understudy.ledger.interface import Debit
from understudy.ledger.recorded import Recorded, broken
from understudy.ledger.schema import ENTRY, KEPT, LEDGER
from understudy.privacy.event import Event, as_plain, unversioned

CHUNK = 500
"""Values in one IN list; stores bound the number of parameters of a statement."""

_INSERT_ENTRY = insert(ENTRY)
_INSERT_KEPT = insert(KEPT)
_ERASE = (
    update(KEPT)
    .where(KEPT.c.ledger == bindparam("of"), KEPT.c.number == bindparam("at_number"))
    .values(state=None, salt=None)
)
_MOVE_HEAD = (
    update(LEDGER)
    .where(LEDGER.c.name == bindparam("of"))
    .values(entries=bindparam("new_entries"), head=bindparam("new_head"))
)
# Two simple statements instead of one join: without statistics both SQLite and Postgres find nothing better for
# the join than to read the whole ledger, and each of these names all columns of a unique index.
_NUMBERS = select(ENTRY.c.number).where(
    ENTRY.c.ledger == bindparam("of"), ENTRY.c.request.in_(bindparam("values", expanding=True))
)
_ENTRIES = select(ENTRY).where(
    ENTRY.c.ledger == bindparam("of"), ENTRY.c.number.in_(bindparam("values", expanding=True))
)
_ENDS = (
    select(func.min(ENTRY.c.number), func.max(ENTRY.c.number))
    .where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.debit.in_(bindparam("values", expanding=True)))
    .group_by(ENTRY.c.debit)
)
_ANSWERS = select(KEPT.c.number, KEPT.c.answer).where(
    KEPT.c.ledger == bindparam("of"), KEPT.c.number.in_(bindparam("values", expanding=True))
)


@dataclass(frozen=True, slots=True)
class Latest:
    """The last answer of a debit: its step, its entry's number, and whether it left a state."""

    step: int
    number: int
    is_handle: bool


class Operation(Protocol):
    """A request to the ledger. `apply` runs inside the transaction; a refusal it raises changes nothing."""

    @property
    def request(self) -> str | None: ...

    @property
    def debit_number(self) -> int | None: ...

    def apply(self, page: Page) -> Any: ...


class Page:
    """The entries of one transaction, not yet written; without a transaction, what would be granted."""

    def __init__(self, tx: Connection | None, name: str, recorded: Recorded, now: str) -> None:
        self._tx = tx
        self._name = name
        self._entries: list[Entry] = []
        self._kept: list[dict[str, Any]] = []
        self._erased: list[dict[str, Any]] = []
        self.recorded = recorded
        self.at = max(now, recorded.at)
        self.debits: dict[str, Debit] = {}
        self.answers: dict[int, bytes] = {}
        self.latest: dict[int, Latest] = {}

    @property
    def is_empty(self) -> bool:
        return not self._entries

    def look_up(self, operations: Sequence[Operation]) -> None:
        """Fetch, in a few statements for all of them, what the store already knows about the requests."""
        requests = {o.request for o in operations if o.request is not None}
        for entry in self._entries_at(number for (number,) in self._fetch(_NUMBERS, requests)):
            self.debits[entry.request or ""] = self.recorded.debit(entry)
        numbers = {o.debit_number for o in operations if o.debit_number is not None}
        ends = [tuple(row) for row in self._fetch(_ENDS, numbers)]
        for entry in self._entries_at(last for _, last in ends):
            self.latest[entry.debit or 0] = Latest(entry.step or 0, entry.number, entry.state is not None)
        kept = {
            number: bytes(answer) for number, answer in self._fetch(_ANSWERS, {first for first, _ in ends})
        }
        for entry in self._entries_at(kept):
            if answer_hash(kept[entry.number]) != entry.answer:
                raise broken(entry.number)
            self.answers[entry.debit or 0] = kept[entry.number]

    def _entries_at(self, numbers: Iterable[int]) -> Iterator[Entry]:
        for row in self._fetch(_ENTRIES, numbers):
            entry = Entry._make(row[1:])
            if not is_sealed(entry):
                raise broken(entry.number)
            yield entry

    def _fetch(self, statement: Any, values: Iterable[Any]) -> Iterator[Any]:
        assert self._tx is not None
        wanted = sorted(values)
        for start in range(0, len(wanted), CHUNK):
            chunk = {"of": self._name, "values": wanted[start : start + CHUNK]}
            yield from self._tx.execute(statement, chunk).all()

    def append(self, kind: str, *, cost: int = 0, total: int | None = None, **fields: Any) -> Entry:
        """Add an entry to the end of the chain."""
        blank = dict.fromkeys(Entry._fields)
        entry = Entry(
            **{
                **blank,
                "number": self.recorded.entries + 1,
                "kind": kind,
                "at": self.at,
                "cost": cost,
                "total": self.recorded.total if total is None else total,
                "previous": self.recorded.head,
                **fields,
            }
        ).sealed()
        self.recorded.append(entry)
        self._entries.append(entry)
        return entry

    def keep(
        self, kind: str, debit: int, step: int, answer: bytes, state: bytes | None, **fields: Any
    ) -> None:
        """Add an answer, and the state it left; the state before it is erased."""
        salt = None if state is None else secrets.token_bytes(32)
        entry = self.append(
            kind,
            debit=debit,
            step=step,
            answer=answer_hash(answer),
            state=None if state is None or salt is None else commitment(state, salt),
            **fields,
        )
        before = self.latest.get(debit)
        if before is not None:
            self._erase(before.number)
        self._kept.append(
            {"ledger": self._name, "number": entry.number, "answer": answer, "state": state, "salt": salt}
        )
        self.latest[debit] = Latest(step, entry.number, state is not None)

    def _erase(self, number: int) -> None:
        for row in self._kept:  # not written yet: another step of the same transaction
            if row["number"] == number:
                row["state"] = row["salt"] = None
                return
        self._erased.append({"of": self._name, "at_number": number})

    def write(self) -> bool:
        """Send everything to the store; False if there was nothing."""
        if self.is_empty:
            return False
        assert self._tx is not None
        self._tx.execute(
            _INSERT_ENTRY, [{"ledger": self._name, **entry._asdict()} for entry in self._entries]
        )
        if self._kept:
            self._tx.execute(_INSERT_KEPT, self._kept)
        if self._erased:
            self._tx.execute(_ERASE, self._erased)
        moved = {"of": self._name, "new_entries": self.recorded.entries, "new_head": self.recorded.head}
        self._tx.execute(_MOVE_HEAD, moved)
        return True


@dataclass(frozen=True, slots=True)
class Charge:
    """Debit an event, or find the debit that the request has."""

    event: Event
    question: str
    request: str
    analyst: str

    debit_number = None

    def apply(self, page: Page) -> Debit:
        known = page.debits.get(self.request)
        if known is not None:
            if (known.question, unversioned(known.event), known.analyst) != (
                self.question,
                unversioned(self.event),
                self.analyst,
            ):
                raise known.conflict(analyst=self.analyst)
            return replace(known, repeated=True)
        cost, total = page.recorded.books.admit(self.event, analyst=self.analyst, at=page.at)
        entry = page.append(
            "debit",
            request=self.request,
            question=self.question,
            analyst=self.analyst,
            event=canonical(as_plain(self.event)),
            cost=cost.units,
            total=total.units,
        )
        debit = Debit(entry.number, self.event, cost, self.question, self.request, self.analyst)
        page.debits[self.request] = debit
        return debit


@dataclass(frozen=True, slots=True)
class Settle:
    """Keep a debit's one answer."""

    debit: Debit
    answer: bytes
    hidden: bytes | None

    @property
    def request(self) -> str:
        return self.debit.request

    @property
    def debit_number(self) -> int:
        return self.debit.number

    def apply(self, page: Page) -> bytes:
        _check_debit(page, self.debit)
        known = page.answers.get(self.debit.number)
        if known is not None:
            return known
        page.keep("answer", self.debit.number, 0, self.answer, self.hidden)
        page.answers[self.debit.number] = self.answer
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
    def request(self) -> str:
        return self.debit.request

    @property
    def debit_number(self) -> int:
        return self.debit.number

    def apply(self, page: Page) -> bool:
        _check_debit(page, self.debit)
        latest = page.latest.get(self.debit.number)
        if latest is None or not latest.is_handle or latest.step != self.step:
            return False
        page.keep("step", self.debit.number, self.step + 1, self.answer, self.state, question=self.question)
        return True


def _check_debit(page: Page, debit: Debit) -> None:
    """An answer is kept only under a debit that this ledger holds."""
    if page.debits.get(debit.request) != debit:
        raise LedgerError(
            "the ledger does not hold the debit of this answer: it was rolled back, or it is another ledger",
            remedy="The answer was not released; restore the ledger's newest copy",
        )
