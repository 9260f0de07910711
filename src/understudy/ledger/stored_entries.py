"""Reading the entries of a stored ledger: debits by their requests, and what was answered under them.

Every function reads within a transaction that its caller holds, and believes no entry whose hash is not that of
what it says. The names of requests, answers and states are those of `interface.Ledger`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, collate, select

from understudy.errors import LedgerError
from understudy.ledger.chain import Entry, commitment, is_sealed
from understudy.ledger.interface import Debit, Hidden
from understudy.ledger.kept import released
from understudy.ledger.recorded import broken
from understudy.ledger.schema import ENTRY, KEPT, LEDGER, SCHEMA

_HEAD = select(LEDGER.c.entries, LEDGER.c.head, select(SCHEMA.c.version).scalar_subquery()).where(
    LEDGER.c.name == bindparam("of")
)
_LOCKED_HEAD = _HEAD.with_for_update(of=LEDGER)
_LATER = (
    select(ENTRY)
    .where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.number > bindparam("seen"))
    .order_by(ENTRY.c.number)
    .limit(bindparam("most"))
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
_KEPT = select(KEPT).where(KEPT.c.ledger == bindparam("of"), KEPT.c.number == bindparam("number"))

READ_AT_ONCE = 5000
"""Entries that one statement reads of a long chain."""


def head(tx: Connection, name: str, *, locked: bool) -> tuple[Any, Any, Any] | None:
    """The number of entries, the hash of the last, and the schema's version; None where there is no ledger.

    `locked`, nobody else writes to the ledger until the transaction ends.
    """
    row = tx.execute(_LOCKED_HEAD if locked else _HEAD, {"of": name}).one_or_none()
    return None if row is None else tuple(row)


def later(tx: Connection, name: str, seen: int, *, most: int = READ_AT_ONCE) -> list[Entry]:
    """The next entries after the first `seen`, as they are stored: whether they follow, the caller has to see."""
    rows = tx.execute(_LATER, {"of": name, "seen": seen, "most": most}).all()
    return [Entry._make(row[1:]) for row in rows]


def requested(tx: Connection, name: str, request: str) -> list[Entry]:
    """The debit of a request, where there is one."""
    return _sealed(tx.execute(_REQUESTED, {"of": name, "request": request}).all())


def prefixed(tx: Connection, name: str, prefix: str) -> list[Entry]:
    """The debits of all requests whose names begin with `prefix`, in their order."""
    statement = _PREFIXED["sqlite" if tx.dialect.name == "sqlite" else "postgresql"]
    beyond = f"{prefix}{chr(sys.maxunicode)}"
    return _sealed(tx.execute(statement, {"of": name, "first": prefix, "beyond": beyond}).all())


def _sealed(rows: Iterable[Any]) -> list[Entry]:
    entries = [Entry._make(row[1:]) for row in rows]
    for entry in entries:
        if not is_sealed(entry):
            raise broken(entry.number)
    return entries


def answered(tx: Connection, name: str, debit: Debit) -> bytes | None:
    """The one answer of a debit; None where it was never answered."""
    entry, kept = _kept(tx, name, _FIRST, debit)
    if entry is None:
        return None
    answer = None if kept is None else released(kept.answer, entry.answer)
    if answer is None:
        raise _changed("an answer")
    return answer


def steps(tx: Connection, name: str, debit: Debit, *, after: int) -> list[bytes]:
    """The answers of a handle or the steps of a journal, those after the first `after`."""
    found: list[bytes] = []
    for row in tx.execute(_STEPS, {"of": name, "debit": debit.number, "after": after}).all():
        entry = Entry._make(row[1:-1])
        if not is_sealed(entry):
            raise broken(entry.number)
        answer = released(row[-1], entry.answer)
        if answer is None:
            raise _changed("an answer")
        found.append(answer)
    return found


def hidden(tx: Connection, name: str, debit: Debit) -> Hidden | None:
    """The state that the last answer of a handle left; None where it left none."""
    entry, kept = _kept(tx, name, _LAST, debit)
    if entry is None or entry.state is None:
        return None
    if kept is None or None in (kept.state, kept.salt):
        raise _changed("a handle's state")
    if commitment(bytes(kept.state), bytes(kept.salt)) != entry.state:
        raise _changed("a handle's state")
    return Hidden(entry.step or 0, bytes(kept.state))


def _kept(tx: Connection, name: str, which: Any, debit: Debit) -> tuple[Entry | None, Any]:
    """An entry that keeps an answer of a debit, and what it keeps."""
    row = tx.execute(which, {"of": name, "debit": debit.number}).one_or_none()
    if row is None:
        _check_unbroken(tx, name, debit)
        return None, None
    entry = Entry._make(row[1:])
    kept = tx.execute(_KEPT, {"of": name, "number": entry.number}).one_or_none()
    if not is_sealed(entry):
        raise broken(entry.number)
    return entry, kept


def _check_unbroken(tx: Connection, name: str, debit: Debit) -> None:
    """Refuse to believe that a debit was never answered where an entry after it is missing or changed.

    Who believes it looks at the table again, for nothing. An opening reads entries from the newest snapshot on
    only, so the older ones are looked at here.
    """
    entries, last, _ = tx.execute(_HEAD, {"of": name}).one()
    number, previous = debit.number - 1, None
    while number < entries:
        found = later(tx, name, number)
        for entry in found:
            follows = previous is None or entry.previous == previous
            if entry.number != number + 1 or not follows or not is_sealed(entry):
                raise broken(number + 1)
            number, previous = entry.number, entry.hash
            if number == entries:  # others may write on meanwhile
                break
        if not found:
            break
    if (number, previous) != (entries, last):
        raise broken(number + 1)


def _changed(what: str) -> LedgerError:
    return LedgerError(
        f"{what} in the ledger is not the one that was stored",
        remedy="Run `understudy ledger verify`; it was not released",
    )
