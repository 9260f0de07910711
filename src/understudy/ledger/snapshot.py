"""Snapshots of a ledger's books: what opening starts from, instead of from the first entry.

An entry of kind `snapshot` holds the SHA-256 of the books after the entries before it; their bytes lie beside the
chain, and only the newest are kept. They are used where they have that hash and the chain from there to its end
holds, and else not at all: then the entries are read from the first one. So whoever changes the bytes changes
nothing, and whoever changes the hash breaks the chain. The verifier works the books out again by itself and
compares the hash of every snapshot.

The bytes are one line of text, one of JSON with everything that is a number or a name, and the tables as whole
numbers of 8 bytes, the lowest first.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, insert, select, update

from understudy.ledger.books import Books
from understudy.ledger.chain import Entry, canonical, is_sealed
from understudy.ledger.recorded import Recorded
from understudy.ledger.schema import ENTRY, SNAPSHOT
from understudy.ledger.shares import Shares
from understudy.privacy.accounting_rule import AccountingRule
from understudy.privacy.clique_block import Clique, CliqueBlock, DividedCounts
from understudy.privacy.joint import Joint, JointState

BOOKS_FORMAT = b"understudy books 1\n"

DUE = 1 << 17
ROOM_WORK = 1
ENTRY_WORK = 1 << 8
JOINT_WORK = 1 << 10
SWEPT_AT_ONCE = 4
"""A snapshot is due when `DUE` is to be done again at an opening, and `ROOM_WORK` more for each number in the
books, which it writes: for each entry, more for each jointly priced event, and the work of joint pricing, of which
`SWEPT_AT_ONCE` numbers count as one.

The unit is 0.2 microseconds, in which sweeps of joint pricing touch two to four numbers; a number that a snapshot
writes takes a seventh of it. So snapshots take less than half of the time that pricing took, and what an opening
does again is less than `DUE`, a sweep over all tables, and the work of the last event."""

MAX_BYTES = 1 << 28
"""No books are larger; bytes that unpack to more are not read."""

_COUNTED = ("others", "flat", "relation", "factor", "constant", "shown", "swept", "joined", "work")
_NEWEST = select(SNAPSHOT.c.number, SNAPSHOT.c.books).where(SNAPSHOT.c.ledger == bindparam("of"))
_ENTRY_AT = select(ENTRY).where(ENTRY.c.ledger == bindparam("of"), ENTRY.c.number == bindparam("at_number"))
_REPLACE = update(SNAPSHOT).where(SNAPSHOT.c.ledger == bindparam("of"))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Books as bytes, for the side table, and the terms of their entry."""

    packed: bytes
    terms: str


def taken(books: Books) -> Snapshot:
    """The snapshot of books that are priced jointly."""
    whole = encoded(books)
    return Snapshot(zlib.compress(whole, 1), terms_of(whole))


def terms_of(whole: bytes) -> str:
    """What the entry of a snapshot says: the hash of the books."""
    return canonical({"books": sha256(whole).hexdigest()})


def is_due(recorded: Recorded) -> bool:
    """Whether the books should be kept: under rule 1, and by other accountants, they never are."""
    accountant, state = recorded.books.accountant, recorded.books.state
    if not isinstance(accountant, Joint) or accountant.rule.number == 1:
        return False
    entries, joined, work = recorded.marked
    again = ENTRY_WORK * (recorded.entries - entries) + JOINT_WORK * (state.joined - joined)
    again += (_work(state) - work) // SWEPT_AT_ONCE
    return again >= DUE + ROOM_WORK * sum(account.room for account in state.accounts)


def _work(state: JointState) -> int:
    """The work of joint pricing so far, by all rules."""
    return sum(account.work for account in state.accounts)


def mark(recorded: Recorded) -> None:
    """Count what is to be done again from here on."""
    state = recorded.books.state
    recorded.marked = (recorded.entries, state.joined, _work(state))


def write(tx: Connection, name: str, number: int, snapshot: Snapshot) -> None:
    """Put a snapshot in the place of the one before it."""
    values = {"number": number, "books": snapshot.packed}
    if not tx.execute(_REPLACE.values(**values), {"of": name}).rowcount:
        tx.execute(insert(SNAPSHOT).values(ledger=name, **values))


def newest(tx: Connection, name: str, blank: Recorded, *, seen: int, entries: int) -> Recorded | None:
    """What is known after the newest snapshot, if it lies after `seen` entries and its bytes are what was kept.

    The caller reads the chain from there to its end, which binds the snapshot's entry.
    """
    row = tx.execute(_NEWEST, {"of": name}).one_or_none()
    if row is None or type(row.number) is not int or not seen < row.number <= entries:
        return None
    found = tx.execute(_ENTRY_AT, {"of": name, "at_number": row.number}).one_or_none()
    if found is None:
        return None
    entry = Entry._make(found[1:])
    whole = unpacked(row.books)
    if whole is None or not is_sealed(entry) or (entry.kind, entry.terms) != ("snapshot", terms_of(whole)):
        return None
    recorded = blank.copy()
    try:
        _restore(recorded.books, whole)
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
    ):  # by a program that wrote other ones
        return None
    if recorded.books.spent.units != entry.total:
        return None
    recorded.entries, recorded.head, recorded.at, recorded.total = (
        entry.number,
        entry.hash,
        entry.at,
        entry.total,
    )
    mark(recorded)
    return recorded


def is_still_there(tx: Connection, name: str, recorded: Recorded) -> bool:
    """Whether the last entry that was read is still the one at its place."""
    found = tx.execute(_ENTRY_AT, {"of": name, "at_number": recorded.entries}).one_or_none()
    return found is not None and found.hash == recorded.head


def unpacked(packed: Any) -> bytes | None:
    """The books' bytes; None where they cannot be unpacked."""
    if not isinstance(packed, bytes):
        return None
    reader = zlib.decompressobj()
    try:
        whole = reader.decompress(packed, MAX_BYTES)
    except zlib.error:
        return None
    return whole if reader.eof and not reader.unused_data else None


def encoded(books: Books) -> bytes:
    """Books in one spelling."""
    shares, plain, numbers = books.shares, dict[str, Any](), b""
    if isinstance(books.accountant, Joint):
        plain, numbers = _written(books.state, books.accountant.rule)
    whole = {
        "analysts": shares.analysts,
        "later": shares.later,
        "day": list(shares.day),
        "month": list(shares.month),
        "free": books.free,
        "paid": books.paid,
        "joint": plain,
        **({"delta": books.delta} if books.delta else {}),
    }
    return BOOKS_FORMAT + canonical(whole).encode() + b"\n" + numbers


def _written(state: JointState, rule: AccountingRule) -> tuple[dict[str, Any], bytes]:
    """A state of joint accounting as plain values, and its tables as whole numbers of 8 bytes."""
    plain: dict[str, Any] = {name: getattr(state, name) for name in _COUNTED}
    plain["blocks"] = [
        [
            [list(attribute) for attribute in clique],
            list(block.table.shape),
            block.largest,
            *([len(block.counts)] if rule.divided else []),  # older rules have none to write down
        ]
        for clique, block in state.blocks.items()
    ]
    plain["beliefs"] = [list(attribute) for attribute in sorted(state.beliefs)]
    arrays = [part for block in state.blocks.values() for part in _numbers(block)]
    arrays += [state.beliefs[attribute] for attribute in sorted(state.beliefs)]
    numbers = b"".join(np.ascontiguousarray(part, "<i8").tobytes() for part in arrays)
    if rule.beside is None or state.undivided is None:
        return plain, numbers
    plain["undivided"], others = _written(state.undivided, rule.beside)
    return plain, numbers + others


def _numbers(block: CliqueBlock) -> tuple[NDArray[Any], ...]:
    """The arrays of a block, in the order in which they are written."""
    counts = block.counts
    return block.table, *block.labels, *block.messages, counts.prices, counts.weights, *counts.members


def _restore(books: Books, whole: bytes) -> None:
    """Set books to what `encoded` has written."""
    if not whole.startswith(BOOKS_FORMAT):
        raise ValueError("other books")
    line = whole.index(b"\n", len(BOOKS_FORMAT))
    plain = json.loads(whole[len(BOOKS_FORMAT) : line])
    numbers = np.frombuffer(whole[line + 1 :], "<i8").astype(np.int64)
    parts = plain["analysts"], plain["later"], tuple(plain["day"]), tuple(plain["month"])
    books.shares = Shares(*parts)
    books.free, books.paid = plain["free"], plain["paid"]
    books.delta = plain.get("delta", 0)
    if not isinstance(books.accountant, Joint):
        raise ValueError("only joint books are kept")
    books.state, rest = _read(plain["joint"], numbers, books.accountant.rule)
    if len(rest):
        raise ValueError("too many numbers")


def _read(plain: dict[str, Any], numbers: Any, rule: AccountingRule) -> tuple[JointState, Any]:
    """The state that `_written` has written, and the numbers behind it."""
    at = 0

    def read(size: int) -> Any:
        nonlocal at
        part, at = numbers[at : at + size], at + size
        if len(part) != size:
            raise ValueError("too few numbers")
        return part

    blocks: dict[Clique, CliqueBlock] = {}
    for attributes, shape, largest, *count in plain["blocks"]:
        clique = tuple((name, size) for name, size in attributes)
        widths = [rule.parts(size) for _, size in clique]
        table = read(prod(shape)).reshape(shape)
        labels = tuple(read(width) for width in widths)
        messages = tuple(read(width) for width in widths)
        some = sum(count)
        prices, weights = read(some), read(some)
        members = tuple(read(some * size).reshape(some, size).astype(np.bool_) for size in shape)
        blocks[clique] = CliqueBlock(
            table, labels, messages, largest, DividedCounts(prices, weights, members, rule.soft > 0)
        )
    beliefs = {(name, size): read(rule.parts(size)) for name, size in plain["beliefs"]}
    undivided, rest = None, numbers[at:]
    if rule.beside is not None:
        undivided, rest = _read(plain["undivided"], rest, rule.beside)
    state = JointState(
        **{name: plain[name] for name in _COUNTED},
        blocks=blocks,
        beliefs=beliefs,
        rests=sum(block.largest for block in blocks.values()),
        peaks=sum(int(belief.max()) for belief in beliefs.values()),
        room=sum(block.room for block in blocks.values()),
        tables=sum(prod(size for _, size in clique) for clique in blocks),
        dividing=sum(block.dividing for block in blocks.values()),
        undivided=undivided,
    )
    return state, rest
