"""A stored ledger as a document, verified or not, and as one file that anybody can verify with Python alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import URL

from understudy.errors import LedgerError, RefusedError
from understudy.ledger import schema, snapshot, verifier
from understudy.ledger.chain import Entry, commitment
from understudy.ledger.database import Database
from understudy.ledger.file import is_there
from understudy.ledger.kept import released
from understudy.ledger.schema import ENTRY, KEPT, LEDGER, SNAPSHOT
from understudy.ledger.witness import Witness

SNAPSHOTS_SINCE = 3
"""The version of the tables that first had one for snapshots."""

_ENDING = """
if __name__ == "__main__":
    import sys

    words, status = report(DOCUMENT, sys.argv[1] if len(sys.argv) > 1 else "")
    sys.stdout.write(words + "\\n")
    for problem in FOUND_AT_EXPORT:
        sys.stdout.write("WRONG when it was exported  " + problem + "\\n")
    sys.exit(1 if FOUND_AT_EXPORT else status)
"""

NOT_SOUND = (
    "# NOT SOUND: this ledger did not verify when it was exported, and proves nothing but what it lacks.\n"
)
"""How an export begins whose ledger did not verify."""

SHOWN = 3
"""Problems that a refusal names."""


@dataclass(frozen=True)
class ExportedLedger:
    """A ledger as one file: its `text`, the number of its `entries`, its last hash, and what is wrong with it."""

    text: str
    entries: int
    head: str
    problems: tuple[str, ...]


def exported(
    url: URL, name: str, *, answers: bool = True, witness: Witness | None = None, as_it_is: bool = False
) -> ExportedLedger:
    """The ledger of a table as one file that verifies itself, after it was verified here.

    A ledger that does not verify is refused with a `RefusedError`, unless it is wanted `as_it_is`: then the file
    begins with what it is (`NOT_SOUND`), holds what was found, also of hidden states and of the witness, which
    it cannot check itself, and never calls itself sound.
    """
    found, verdict = _verified(url, name, witness)
    problems = tuple(verdict["problems"])
    if problems and not as_it_is:
        more = f" (and {len(problems) - SHOWN:,} more)" if len(problems) > SHOWN else ""
        wrong = (
            f"the ledger of {name!r} is not sound, and was not exported: {'; '.join(problems[:SHOWN])}{more}"
        )
        remedy = (
            "`understudy ledger verify` lists all of it. Restore a sound copy; to have what is there, for whoever "
            "examines it, take it with `as_it_is=True`: the file then says that it is not sound"
        )
        raise RefusedError(wrong, remedy=remedy, text=f"{wrong}. {remedy}")
    whole = found if answers else {**found, "answers": None}
    text = self_contained(whole, problems=problems)
    return ExportedLedger(text, len(found["entries"]), verdict["head"], problems)


def document(url: URL, name: str, *, answers: bool = True) -> dict[str, Any]:
    """The ledger of a table as plain values: every entry, the head, and the answers. No hidden state."""
    return _read(url, name, answers=answers)[0]


def holds(url: URL, name: str) -> bool:
    """Whether the store holds a ledger of that table; looking for one makes none."""
    database = Database(url)
    if database.is_sqlite and not is_there(Path(database.place)):
        return False
    try:
        with database.reading() as tx:
            return schema.holds(tx, name)
    finally:
        database.close()


def verify(url: URL, name: str, *, witness: Witness | None = None) -> dict[str, Any]:
    """The verifier's verdict on a stored ledger, with what only its owner can check: states, and the witness."""
    return _verified(url, name, witness)[1]


def _verified(url: URL, name: str, witness: Witness | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """A stored ledger, with its answers, and the verdict on it."""
    seen = None if witness is None else witness.seen(name)
    try:
        found, problems = _read(url, name, answers=True)
    except LedgerError:
        if seen is None or not seen[0]:
            raise
        raise LedgerError(
            f"there is no ledger of {name!r}, and the witness saw {seen[0]} entries of it",
            remedy="Put the ledger back",
        ) from None
    verdict: dict[str, Any] = verifier.verify(found)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    verdict["problems"] += problems
    if seen is not None:
        entries, head = seen
        if entries > len(found["entries"]):
            verdict["problems"].append(
                f"rolled back: the witness saw {entries} entries, the ledger has {len(found['entries'])}"
            )
        elif entries and found["entries"][entries - 1]["hash"] != head:
            verdict["problems"].append(f"entry {entries}: the witness saw another hash there")
    verdict["sound"] = not verdict["problems"]
    return found, verdict


def self_contained(found: dict[str, Any], *, problems: Sequence[str] = ()) -> str:
    """The verifier's source and the document in one Python file: `python FILE [EXPECTED LAST HASH]`.

    `problems` are what its owner found to be wrong with it, which the file tells, and is never sound with.
    """
    source = resources.files("understudy.ledger").joinpath("verifier.py").read_text(encoding="utf-8")
    head = {key: value for key, value in found.items() if key not in ("entries", "answers")}
    lines = [f"    {_quoted(entry)}," for entry in found["entries"]]
    kept = found["answers"]
    answers = (
        "None" if kept is None else "{\n" + "".join(f"    {k!r}: {v!r},\n" for k, v in kept.items()) + "}"
    )
    parts = [
        source.rstrip("\n"),
        "",
        "",
        f"DOCUMENT = json.loads({_quoted(head)})",
        "ENTRIES = [",
        *lines,
        "]",
        'DOCUMENT["entries"] = [json.loads(line) for line in ENTRIES]',
        f'DOCUMENT["answers"] = {answers}',
        f"FOUND_AT_EXPORT = json.loads({_quoted(list(problems))})",
        _ENDING,
    ]
    return (NOT_SOUND if problems else "") + "\n".join(parts)


def _quoted(value: Any) -> str:
    """JSON as a Python literal."""
    return repr(json.dumps(value, ensure_ascii=True))


def _read(url: URL, name: str, *, answers: bool) -> tuple[dict[str, Any], list[str]]:
    database = Database(url)
    if database.is_sqlite and not is_there(Path(database.place)):  # looking must not make one
        raise _missing(name, database.place)
    try:
        with database.reading() as tx:
            if schema.version(tx) == 0:
                raise _missing(name, database.place)
            version = schema.version(tx)
            schema.check(version, oldest=schema.READABLE)
            head = tx.execute(select(LEDGER).where(LEDGER.c.name == name)).one_or_none()
            rows = tx.execute(select(ENTRY).where(ENTRY.c.ledger == name).order_by(ENTRY.c.number)).all()
            kept = tx.execute(select(KEPT).where(KEPT.c.ledger == name).order_by(KEPT.c.number)).all()
            books = (
                tx.execute(select(SNAPSHOT).where(SNAPSHOT.c.ledger == name)).one_or_none()
                if version >= SNAPSHOTS_SINCE
                else None
            )
    finally:
        database.close()
    if head is None and not rows:
        raise _missing(name, database.place)
    entries = [Entry._make(row[1:]) for row in rows]
    hashes = {entry.number: entry.answer for entry in entries}
    plain = {
        "format": 1,
        "table": name,
        "head": {} if head is None else {"entries": head.entries, "hash": head.head},
        "entries": [entry._asdict() for entry in entries],
        "answers": (
            {str(row.number): _as_text(row.answer, hashes.get(row.number)) for row in kept}
            if answers
            else None
        ),
    }
    return plain, _state_problems(entries, kept) + _snapshot_problems(entries, books)


def _state_problems(entries: list[Entry], kept: Any) -> list[str]:
    """The latest state of each handle must be there and fit its commitment; older ones must be erased."""
    last = {entry.debit: entry for entry in entries if entry.debit is not None}
    committed = {entry.number: entry.state for entry in last.values()}
    problems: list[str] = []
    for row in kept:
        promise = committed.get(row.number)
        if promise is None:
            if row.state is not None or row.salt is not None:
                problems.append(f"entry {row.number}: a state is kept that should not be")
        elif row.state is None or row.salt is None or commitment(_raw(row.state), _raw(row.salt)) != promise:
            problems.append(f"entry {row.number}: the handle's state is not the one that was stored")
    return problems


def _snapshot_problems(entries: list[Entry], books: Any) -> list[str]:
    """The books that are kept must be those of the newest snapshot."""
    taken = [entry for entry in entries if entry.kind == "snapshot"]
    if books is None:
        return [f"entry {taken[-1].number}: the books of this snapshot are gone"] if taken else []
    newest = taken[-1] if taken else None
    if newest is None or books.number != newest.number:
        return [
            f"the books that are kept are those of entry {books.number}, which is not the newest snapshot"
        ]
    whole = snapshot.unpacked(books.books)
    if whole is None or snapshot.terms_of(whole) != newest.terms:
        return [f"entry {newest.number}: the books that are kept are not those of this snapshot"]
    return []


def _as_text(kept: Any, wanted: str | None) -> str:
    """An answer as base64; what is not the answer that was hashed is shown as it is, for the verifier to see."""
    answer = released(kept, wanted)
    return base64.b64encode(_raw(kept) if answer is None else answer).decode()


def _raw(value: Any) -> bytes:
    """SQLite lets a hand put anything where bytes belong; `bytes` of a number would be that many zeros."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _missing(name: str, place: str) -> LedgerError:
    return LedgerError(
        f"there is no ledger of {name!r} in {place}",
        remedy="The first charge makes it; if something was charged before, put the ledger back",
    )
