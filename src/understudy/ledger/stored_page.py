"""One transaction's work on a stored ledger: look up what the operations need, apply them in order, write once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from understudy.ledger import snapshot
from understudy.ledger.chain import Entry, answer_hash, canonical, commitment, is_sealed
from understudy.ledger.interface import Debit
from understudy.ledger.kept import packed, released
from understudy.ledger.page import Advance, Latest, Operation, Page, Settle
from understudy.ledger.recorded import Recorded, broken
from understudy.ledger.schema import ENTRY, KEPT, LEDGER
from understudy.privacy.event import Event
from understudy.privacy.recording import as_plain

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


_EMPTY: dict[str, Any] = dict.fromkeys(Entry._fields)


class StoredPage(Page):
    """The entries of one transaction: sealed as they are added, not yet written."""

    def __init__(self, tx: Connection, name: str, recorded: Recorded, now: str) -> None:
        super().__init__(recorded, now)
        self._tx = tx
        self._name = name
        self._entries: list[Entry] = []
        self._kept: list[dict[str, Any]] = []
        self.erased: list[dict[str, Any]] = []
        """States that the store holds and this page supersedes."""
        self._snapshot: snapshot.Snapshot | None = None

    def look_up(self, operations: Sequence[Operation], committed: Mapping[str, Debit]) -> None:
        """Fetch, in a few statements for all of them, what the store already knows about the requests.

        `committed` are debits that were written, by their requests: entries before the end of the chain that this
        transaction found, so that they are there. They are not read again to have their answers kept.
        """
        needs = [operation.needs for operation in operations]
        requests = {request for debits, _ in needs for request in debits}
        for one in operations:
            if isinstance(one, Settle) and (written := committed.get(one.debit.request)) is not None:
                self.debits[one.debit.request] = written
                requests.discard(one.debit.request)
        # Of a debit that the caller has, none is made of the stored entry.
        held = {one.debit.request: one.debit for one in operations if isinstance(one, Settle | Advance)}
        for entry in self._entries_at(number for (number,) in self._fetch(_NUMBERS, requests)):
            request = entry.request or ""
            mine = held.get(request)
            same = mine is not None and _says(entry, mine)
            self.debits[request] = mine if mine is not None and same else self.recorded.debit(entry)
        continued = {request for _, answers in needs for request in answers}
        numbers = {self.debits[request].number for request in continued if request in self.debits}
        ends = [tuple(row) for row in self._fetch(_ENDS, numbers)]
        for entry in self._entries_at(last for _, last in ends):
            self.latest[entry.debit or 0] = Latest(entry.step or 0, entry.number, entry.state is not None)
        kept: dict[int, Any] = dict(self._fetch(_ANSWERS, {first for first, _ in ends}))
        for entry in self._entries_at(kept):
            answer = released(kept[entry.number], entry.answer)
            if answer is None:
                raise broken(entry.number)
            self.answers[entry.debit or 0] = answer

    def _entries_at(self, numbers: Iterable[int]) -> Iterator[Entry]:
        for row in self._fetch(_ENTRIES, numbers):
            entry = Entry._make(row[1:])
            if not is_sealed(entry):
                raise broken(entry.number)
            yield entry

    def _fetch(self, statement: Any, values: Iterable[Any]) -> Iterator[Any]:
        wanted = sorted(values)
        for start in range(0, len(wanted), CHUNK):
            chunk = {"of": self._name, "values": wanted[start : start + CHUNK]}
            yield from self._tx.execute(statement, chunk).all()

    def append(
        self,
        kind: str,
        *,
        cost: int = 0,
        total: int | None = None,
        event: Event | None = None,
        answer: bytes | None = None,
        state: bytes | None = None,
        **fields: Any,
    ) -> int:
        """Add an entry to the end of the chain. The state before a new one is erased."""
        salt = None if state is None else secrets.token_bytes(32)
        previous, number = self.recorded.head, super().append(kind, total=total)
        written: dict[str, Any] = {
            **_EMPTY,
            "number": number,
            "kind": kind,
            "at": self.at,
            "cost": cost,
            "total": self.recorded.total,
            "event": None if event is None else canonical(as_plain(event)),
            "answer": None if answer is None else answer_hash(answer),
            "state": None if state is None or salt is None else commitment(state, salt),
            "previous": previous,
            **fields,
        }
        entry = Entry(**written).sealed()
        self.recorded.head = entry.hash
        self._entries.append(entry)
        if answer is not None:
            before = self.latest.get(entry.debit or 0)
            if before is not None:
                self._erase(before.number)
            self._kept.append(
                {
                    "ledger": self._name,
                    "number": number,
                    "answer": packed(answer),
                    "state": state,
                    "salt": salt,
                }
            )
        return number

    def _erase(self, number: int) -> None:
        for row in self._kept:  # not written yet: another step of the same transaction
            if row["number"] == number:
                row["state"] = row["salt"] = None
                return
        self.erased.append({"of": self._name, "at_number": number})

    def take_snapshot(self) -> None:
        """End the page with a snapshot of the books, if one is due."""
        if self._entries and snapshot.is_due(self.recorded):
            self._snapshot = snapshot.taken(self.recorded.books)
            self.append("snapshot", terms=self._snapshot.terms)
            snapshot.mark(self.recorded)

    def write(self) -> bool:
        """Send everything to the store; False if there was nothing."""
        if not self._entries:
            return False
        self._tx.execute(
            _INSERT_ENTRY, [{"ledger": self._name, **entry._asdict()} for entry in self._entries]
        )
        if self._kept:
            self._tx.execute(_INSERT_KEPT, self._kept)
        if self.erased:
            self._tx.execute(_ERASE, self.erased)
        if self._snapshot is not None:
            snapshot.write(self._tx, self._name, self.recorded.entries, self._snapshot)
        moved = {"of": self._name, "new_entries": self.recorded.entries, "new_head": self.recorded.head}
        self._tx.execute(_MOVE_HEAD, moved)
        return True


def _says(entry: Entry, debit: Debit) -> bool:
    """Whether an entry records a debit just as it is; its event is compared as it is written down."""
    recorded = (entry.number, entry.cost, entry.question, entry.request, entry.analyst, entry.event)
    event = canonical(as_plain(debit.event))
    return recorded == (debit.number, debit.cost.units, debit.question, debit.request, debit.analyst, event)
