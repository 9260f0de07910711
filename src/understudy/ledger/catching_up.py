"""The end of a stored ledger, reached from what was known of it: by the entries that others wrote since.

Entries are checked and totals worked out as they are read (`recorded`), or skipped to the newest snapshot where
they are many. A ledger that has fewer entries than were seen before, here or by its witness, was rolled back: it
would grant again what was spent, and is refused.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from understudy.errors import LedgerError
from understudy.ledger import schema, snapshot, stored_entries
from understudy.ledger.recorded import Recorded, broken
from understudy.ledger.schema import ENTRY
from understudy.ledger.witness import Witness

SKIPPED = 100
"""Fewer entries than this are read rather than skipped to a snapshot."""


def caught_up(tx: Connection, name: str, known: Recorded, blank: Recorded, *, locked: bool) -> Recorded:
    """What was known, with the entries that others wrote since: a copy, so that a failure forgets it.

    `blank` is the ledger of no entries. A reader that has it `locked` keeps others from writing until its
    transaction ends. Raises a LedgerError where the entries are not what they were, or fewer.
    """
    found = stored_entries.head(tx, name, locked=locked)
    if found is None:
        raise rolled_back(0, known.entries) if known.entries else broken(1)
    entries, head, version = found
    schema.check(version)
    if type(entries) is not int:  # SQLite keeps any type in any column
        raise broken(0)
    many = entries - known.entries >= SKIPPED
    recorded = _skipped_to_snapshot(tx, name, known, blank, entries) if many else known.copy()
    while entries > recorded.entries:
        later = stored_entries.later(tx, name, recorded.entries)
        if not later:
            break
        for entry in later:
            recorded.read(entry)
    if recorded.entries > entries:
        raise rolled_back(entries, recorded.entries)
    if (recorded.entries, recorded.head) != (entries, head):
        raise broken(entries)
    return recorded


def _skipped_to_snapshot(
    tx: Connection, name: str, known: Recorded, blank: Recorded, entries: int
) -> Recorded:
    """What was known, or what the newest snapshot adds to it without reading the entries in between."""
    found = snapshot.newest(tx, name, blank, seen=known.entries, entries=entries)
    if found is None:
        return known.copy()
    if known.entries and not snapshot.is_still_there(tx, name, known):
        raise broken(known.entries)
    return found


def check_witnessed(tx: Connection, name: str, recorded: Recorded, witness: Witness) -> None:
    """Refuse a ledger that is shorter than its witness saw it, or another one."""
    entries, head = witness.seen(name)
    if entries > recorded.entries:
        raise rolled_back(recorded.entries, entries)
    if entries == 0:
        return
    at = select(ENTRY.c.hash).where(ENTRY.c.ledger == name, ENTRY.c.number == entries)
    if tx.execute(at).scalar_one_or_none() != head:
        raise LedgerError(
            f"the ledger is not the one its witness saw: entry {entries} has another hash",
            remedy="Restore the ledger's newest copy; nothing was spent",
        )


def rolled_back(found: int, seen: int) -> LedgerError:
    """The refusal of a ledger of which more entries were seen than it has now."""
    return LedgerError(
        f"the ledger was rolled back: it has {found} entries, and {seen} were seen before",
        remedy="Restore its newest copy; nothing was spent",
    )
