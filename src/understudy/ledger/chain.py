"""Entries, and the chain of hashes that binds each to all before it."""

from __future__ import annotations

import json
from hashlib import sha256
from types import NoneType
from typing import Any, NamedTuple

ENTRY_FORMAT = b"understudy entry 1\n"
STATE_FORMAT = b"understudy state 1\n"
START = "0" * 64
"""What stands in the place of a previous hash before the first entry."""


class Entry(NamedTuple):
    """One line of the ledger. A field that a kind of entry does not use is None, and hashed as such.

    `open` is the first: `terms` tells the table, the budget and its cap; its event is what was spent before.
    A `debit` charges `event`. An `answer` keeps what a debit bought, by its hash, and commits to a handle's first
    state; a `step` is a later answer of that handle, with the commitment to its new state. The `terms` of a
    `snapshot` hold the hash of the books after the entries before it.
    """

    number: int
    kind: str
    at: str
    request: str | None
    question: str | None
    analyst: str | None
    event: str | None
    cost: int
    total: int
    debit: int | None
    step: int | None
    answer: str | None
    state: str | None
    terms: str | None
    previous: str
    hash: str

    def sealed(self) -> Entry:
        """The same entry with the hash of its other fields."""
        return Entry(*self[:-1], digest(self))


_HASHED = Entry._fields[:-1]
"""The names of the fields that an entry's hash is made of."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Made once: `json.dumps` would make one at every call, which takes as long as its work here."""


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, ASCII only."""
    return _ENCODER.encode(value)


def digest(entry: Entry) -> str:
    """SHA-256 over every field but the hash itself."""
    fields = dict(zip(_HASHED, entry, strict=False))  # the hash is the last one
    return sha256(ENTRY_FORMAT + canonical(fields).encode()).hexdigest()


_WHOLE, _WORDS = ("number", "cost", "total"), ("kind", "at", "previous", "hash")
_TYPES = tuple(
    (int,)
    if name in _WHOLE
    else (str,)
    if name in _WORDS
    else (int, NoneType)
    if name in ("debit", "step")
    else (str, NoneType)
    for name in Entry._fields
)
"""Of each field of an entry, in their order."""


def is_sealed(entry: Entry) -> bool:
    """Whether an entry has the hash of its other fields, and these the types of an entry's.

    SQLite keeps any type in any column, so a damaged or forged row may hold anything.
    """
    if any(type(value) not in allowed for value, allowed in zip(entry, _TYPES, strict=True)):
        return False
    return digest(entry) == entry.hash


def answer_hash(answer: bytes) -> str:
    """What an entry keeps of an answer."""
    return sha256(answer).hexdigest()


def commitment(state: bytes, salt: bytes) -> str:
    """Binds to a hidden state and tells nothing about it: `salt` has 32 random bytes and stays with the state."""
    return sha256(STATE_FORMAT + salt + state).hexdigest()
