"""Who did what at a server: entries that are chained by hashes, as those of the ledger are.

The log tells of logins, tokens, approvals, pauses, refusals and starts. It never holds an answer or a secret. A
chain shows that an entry was changed, removed or put in between; that the newest ones were cut off shows by the
last number and hash, which the store keeps apart and `head` tells, for whoever writes them down elsewhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from understudy.errors import ParameterError, StoreError
from understudy.ledger.chain import START, canonical
from understudy.server.secret import holds_secret
from understudy.server.store import ServerStore, as_text

AUDIT_FORMAT = b"understudy audit 1\n"
HEAD = "audit head"
MOST_CHARACTERS = 20_000
"""Of the facts of one entry."""

NEVER = frozenset(("answer", "answers", "value", "values", "secret", "cookie", "password", "body"))
"""Names of facts that are refused: released numbers belong into answers, and secrets nowhere."""

_MOST = (1 << 63) - 1
"""The largest number of an entry that SQLite could keep."""

Fact = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the log. `at` is ISO 8601 in UTC; `previous` is the hash of the entry before it."""

    number: int
    at: str
    who: str
    act: str
    facts: dict[str, Any]
    previous: str
    hash: str

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class AuditLog:
    """The audit log in a store."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    def write(
        self, who: str, act: str, facts: Mapping[str, Fact] | None = None, *, durable: bool = True
    ) -> AuditEntry:
        """Append an entry. Raises a ParameterError for facts that may not be kept.

        One that is not `durable` survives a kill, and perhaps not a loss of power.
        """
        with self._store.writing(durable=durable) as tx:
            return self.write_in(tx, who, act, facts)

    def write_in(
        self, tx: sqlite3.Connection, who: str, act: str, facts: Mapping[str, Fact] | None = None
    ) -> AuditEntry:
        """Append an entry in a transaction that is under way: it is kept with what it tells of, or not at all."""
        told = _checked(who, act, dict(facts or {}))
        number, previous = _head(tx)
        number += 1
        at = as_text(self._store.now())
        entry = AuditEntry(
            number, at, who, act, json.loads(told), previous, _hash(number, at, who, act, told, previous)
        )
        tx.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, at, who, act, told, previous, entry.hash),
        )
        tx.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (HEAD, f"{number} {entry.hash}"))
        return entry

    def entries(self, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """Entries with higher numbers than `after`, in order, at most `limit`."""
        after, limit = min(after, _MOST), min(max(limit, 0), _MOST)
        with self._store.reading() as tx:
            rows = tx.execute(
                "SELECT * FROM audit WHERE number > ? ORDER BY number LIMIT ?", (after, limit)
            ).fetchall()
        return [_entry(row) for row in rows]

    @property
    def head(self) -> tuple[int, str]:
        """The number of the entries and the hash of the last, for a note outside the server."""
        with self._store.reading() as tx:
            return _head(tx)

    def verify(self) -> list[str]:
        """What is wrong with the chain, in words; nothing where it is sound."""
        problems: list[str] = []
        number, previous = 0, START
        with self._store.reading() as tx:
            head = _head(tx)
            for row in tx.execute("SELECT * FROM audit ORDER BY number"):
                number += 1
                if row["number"] != number:
                    problems.append(f"entry {number} is missing")
                    number = int(row["number"])
                if row["previous"] != previous:
                    problems.append(f"entry {number} does not follow the one before it")
                fields = (row["at"], row["who"], row["act"], row["facts"], row["previous"])
                if _hash(number, *(str(field) for field in fields)) != row["hash"]:
                    problems.append(f"entry {number} was changed")
                previous = row["hash"]
        if (number, previous) != head:
            problems.append(f"the log ends with entry {number}; the last one written was {head[0]}")
        return problems


def _head(tx: sqlite3.Connection) -> tuple[int, str]:
    row = tx.execute("SELECT value FROM fact WHERE name = ?", (HEAD,)).fetchone()
    if row is None:
        return 0, START
    number, _, hashed = str(row[0]).partition(" ")
    if not number.isdecimal():
        raise StoreError("the audit log does not say where it ends", remedy="Restore a backup of server.db")
    return int(number), hashed


def _checked(who: str, act: str, facts: dict[str, Fact]) -> str:
    for name, value in facts.items():
        if name in NEVER or not isinstance(value, str | int | float | bool | None):
            raise ParameterError(
                f"the audit log keeps no {name!r}: give short facts that are neither secret nor data"
            )
    text = canonical(facts)
    if len(text) > MOST_CHARACTERS:
        raise ParameterError(f"the facts of an entry have at most {MOST_CHARACTERS:,} characters")
    if holds_secret(text) or holds_secret(who) or holds_secret(act):
        raise ParameterError("the audit log keeps no tokens")
    return text


def _hash(number: int, at: str, who: str, act: str, facts: str, previous: str) -> str:
    """SHA-256 over every field, as the ledger's rule is."""
    fields = {"number": number, "at": at, "who": who, "act": act, "facts": facts, "previous": previous}
    return sha256(AUDIT_FORMAT + canonical(fields).encode()).hexdigest()


def _entry(row: sqlite3.Row) -> AuditEntry:
    return AuditEntry(
        row["number"],
        row["at"],
        row["who"],
        row["act"],
        json.loads(row["facts"]),
        row["previous"],
        row["hash"],
    )
