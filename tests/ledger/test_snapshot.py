"""Snapshots: opening starts from the newest one that is bound by the chain, and trusts none."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update
from sqlalchemy.engine import URL

from ledger.durable import in_child, opened, sound, witnessed
from ledger.forging import resealed
from understudy.errors import LedgerError, RefusedError
from understudy.ledger import books, catching_up, export, kept, shares, snapshot, verifier
from understudy.ledger.books import Books
from understudy.ledger.database import Database
from understudy.ledger.interface import NOTHING
from understudy.ledger.recorded import Recorded
from understudy.ledger.schema import KEPT, SNAPSHOT
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise, Located, Selection, Span
from understudy.privacy.limits import Limits

FEW = 6000
"""A snapshot after every few of the events below."""


def located(i: int, *, epsilon=Fraction(1, 1000)) -> Located:
    """A question about one or two of 5 x 7 x 3 cells, another one for each number."""
    region = (Span("a", 5, 1 << i % 5), Span("b", 7, 1 << i % 7 | 1), Span("c", 3, 1 + i % 7))
    noise = LaplaceNoise(l1=Fraction(1), scale=1 / epsilon)
    return Located(noise=noise, region=region, relation="replace", split=False)


@pytest.fixture
def often(monkeypatch):
    """Snapshots after every few events, skipped to at once."""
    monkeypatch.setattr(snapshot, "DUE", FEW)
    monkeypatch.setattr(catching_up, "SKIPPED", 1)


def charged(url: URL, first: int, last: int, **settings) -> int:
    """Charge and answer events in a ledger that is opened and closed; what is spent then."""
    ledger = opened(url, **settings)
    for i in range(first, last):
        debit = ledger.charge(located(i), question=f"q{i}", request=f"r{i}", analyst=f"ann{i % 3}")
        ledger.settle(debit, b"%d" % i)
    spent = ledger.spent.units
    ledger.close()
    return spent


def plain_spent(last: int) -> int:
    """The same in books that are kept nowhere."""
    own = Books(Budget.of(1))
    for i in range(last):
        own.enter(located(i), analyst=f"ann{i % 3}", at="2024-01-01")
    return own.spent.units


def kinds(url: URL) -> list[str]:
    return [entry["kind"] for entry in export.document(url, "t")["entries"]]


@pytest.fixture
def reads(monkeypatch):
    """The numbers of the entries that are read one by one."""
    found: list[int] = []
    read = Recorded.read

    def noted(self, entry):
        found.append(entry.number)
        return read(self, entry)

    monkeypatch.setattr(Recorded, "read", noted)
    return found


def test_opening_reads_only_what_came_after_the_newest_snapshot(store, often, reads):
    spent = charged(store, 0, 20)
    assert spent == plain_spent(20)
    entries = kinds(store)
    newest = max(i for i, kind in enumerate(entries, 1) if kind == "snapshot")
    assert entries.count("snapshot") > 2
    reads.clear()
    ledger = opened(store)
    assert reads == list(range(newest + 1, len(entries) + 1))
    assert ledger.spent.units == spent
    ledger.close()
    assert charged(store, 20, 40) == plain_spent(40)
    database = Database(store)
    with database.reading() as tx:
        assert len(tx.execute(select(SNAPSHOT)).all()) == 1  # only the newest is kept
    database.close()
    sound(store)


def _bytes(_: bytes) -> dict:
    return {"books": b"no books"}


def _other_books(found: bytes) -> dict:
    whole = zlib.decompress(found)
    shown = json.loads(whole.split(b"\n", 2)[1])["joint"]["shown"]
    return {"books": zlib.compress(whole.replace(b'"shown":%d' % shown, b'"shown":1', 1))}


def _number(_: bytes) -> dict:
    return {"number": 2}


def _cut_off(found: bytes) -> dict:
    return {"books": found[:-5]}


@pytest.mark.parametrize("change", [_bytes, _other_books, _number, _cut_off])
def test_bytes_that_were_changed_are_not_used_and_seen_by_the_verifier(store, often, reads, change):
    spent = charged(store, 0, 12)
    database = Database(store)
    with database.writing() as tx:
        row = tx.execute(select(SNAPSHOT)).one()
        tx.execute(update(SNAPSHOT).values(**change(bytes(row.books))))
    database.close()
    assert not export.verify(store, "t")["sound"]
    reads.clear()
    ledger = opened(store)
    assert ledger.spent.units == spent
    assert reads[0] == 1  # from the start: nothing was trusted
    ledger.close()
    charged(store, 12, 24)  # the next snapshot replaces it
    sound(store)


def test_bytes_that_are_gone_are_not_needed(store, often):
    spent = charged(store, 0, 12)
    database = Database(store)
    with database.writing() as tx:
        tx.execute(SNAPSHOT.delete())
    database.close()
    assert not export.verify(store, "t")["sound"]
    ledger = opened(store)
    assert ledger.spent.units == spent
    ledger.close()


def forged(url: URL, change) -> dict:
    """The exported ledger with every snapshot's entry changed and all hashes put right."""

    def each(entries):
        for entry in entries:
            if entry["kind"] == "snapshot":
                change(entry)

    return resealed(export.document(url, "t"), each)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(terms=json.dumps({"books": "0" * 64})),
        lambda entry: entry.update(terms=json.dumps({"books": "0" * 64, "more": 1})),
        lambda entry: entry.update(terms="{}"),
        lambda entry: entry.update(cost=1),
        lambda entry: entry.update(terms=None),
        lambda entry: entry.update(request="r"),
    ],
    ids=["hash", "more", "none", "cost", "missing", "field"],
)
def test_a_forged_snapshot_is_seen_although_all_hashes_fit(sqlite, often, change):
    charged(sqlite, 0, 12)
    assert verifier.verify(forged(sqlite, lambda entry: None))["sound"]
    assert not verifier.verify(forged(sqlite, change))["sound"]


def test_a_forged_hash_in_the_store_breaks_the_chain(sqlite, often):
    charged(sqlite, 0, 12)
    raw = sqlite3.connect(sqlite.database)
    raw.execute("UPDATE understudy_entry SET terms = '{}' WHERE kind = 'snapshot'")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match="does not follow"):
        opened(sqlite)


def test_the_exported_file_checks_the_snapshots_with_python_alone(sqlite, often, tmp_path):
    charged(sqlite, 0, 12)
    path = tmp_path / "exported.py"
    path.write_text(export.self_contained(export.document(sqlite, "t")), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def work_of(state):
    """The work of joint pricing, by all rules."""
    return sum(account.work for account in state.accounts)


def test_what_an_opening_does_again_is_little_beside_the_tables():
    """Snapshots come as often as they are cheap: after sweeps, as of the first debits, else after some fifty."""
    recorded = Recorded(Books(Budget.of(1000)))
    most = taken = 0
    for i in range(400):
        before = recorded.books.state
        recorded.books.enter(located(i), analyst="", at="2024-01-01")
        recorded.entries += 3  # a step, a debit, and its answer
        state = recorded.books.state
        entries, joined, work = recorded.marked
        again = (
            (recorded.entries - entries) * snapshot.ENTRY_WORK
            + (state.joined - joined) * snapshot.JOINT_WORK
            + (work_of(state) - work) // snapshot.SWEPT_AT_ONCE
        )
        latest = (work_of(state) - work_of(before)) // snapshot.SWEPT_AT_ONCE
        most = max(most, again - latest - snapshot.ROOM_WORK * sum(part.room for part in state.accounts))
        if snapshot.is_due(recorded):
            snapshot.mark(recorded)
            taken += 1
    assert most <= (1 << 17) + 3 * snapshot.ENTRY_WORK + snapshot.JOINT_WORK
    assert taken <= 8 + 400 // 50 + 1  # and no more often, where there is little to sweep


def test_two_processes_take_each_other_s_snapshots(store, often, reads):
    mine, theirs = opened(store), opened(store)
    for i in range(30):
        ledger = (mine, theirs)[i // 10 % 2]
        ledger.charge(located(i), question=f"q{i}", request=f"r{i}", analyst=f"ann{i % 3}")
    reads.clear()
    assert mine.spent == theirs.spent
    assert mine.spent.units == plain_spent(30)
    assert len(reads) < 10  # of the twenty that the other wrote: a snapshot holds the rest
    mine.close(), theirs.close()
    assert in_child(lambda: charged(store, 30, 36)) == plain_spent(36)
    sound(store)


def test_a_ledger_that_was_rewritten_is_not_skipped_into(sqlite, often):
    """A program that has seen entries which are gone does not take the snapshot of the ledger in their place."""
    ledger = opened(sqlite)
    ledger.charge(located(0), question="q", request="mine")
    raw = sqlite3.connect(sqlite.database)
    raw.execute("DELETE FROM understudy_entry")
    raw.execute("DELETE FROM understudy_ledger")
    raw.commit()
    raw.close()
    charged(sqlite, 0, 12)
    with pytest.raises(LedgerError):
        ledger.charge(located(1), question="q", request="later")
    ledger.close()


KILLED = """
import sys
from ledger.test_snapshot import charged
from sqlalchemy.engine import make_url
from understudy.ledger import snapshot
import os, signal
snapshot.DUE = 6000
if sys.argv[2] != "never":
    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(snapshot, sys.argv[2], die)
charged(make_url(sys.argv[1]), 0, 12)
"""


@pytest.mark.parametrize("at", ["taken", "write", "mark"])
def test_a_kill_between_debit_and_snapshot_leaves_neither(sqlite, at):
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, sqlite.render_as_string(), at], env=here, check=False
    )
    assert done.returncode == -signal.SIGKILL
    entries = kinds(sqlite)
    assert "snapshot" not in entries
    debits = entries.count("debit")
    ledger = opened(sqlite)
    assert ledger.spent.units == plain_spent(debits)
    ledger.close()
    sound(sqlite)
    charged(sqlite, 0, 12)
    sound(sqlite)


def test_a_witness_goes_with_snapshots(sqlite, often, tmp_path):
    witness = witnessed(tmp_path / "witness")
    spent = charged(sqlite, 0, 12, witness=witness)
    ledger = opened(sqlite, witness=witness)
    assert (ledger.end[0], ledger.spent.units) == (len(kinds(sqlite)), spent)
    ledger.close()
    raw = sqlite3.connect(sqlite.database)
    raw.execute("DELETE FROM understudy_entry WHERE number > 10")
    raw.execute("UPDATE understudy_ledger SET entries = 10")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError):
        opened(sqlite, witness=witness)


@given(st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["", "ada", "bob"])), max_size=20))
@settings(max_examples=20)
def test_books_that_are_restored_are_the_same_books(asked):
    whole, halves = Books(Budget.of(1)), Recorded(Books(Budget.of(1)))
    for i, (which, analyst) in enumerate(asked):
        for own in (whole, halves.books):
            own.enter(located(which), analyst=analyst, at=f"2024-01-{1 + i // 5:02}T")
        restored = Books(Budget.of(1))
        snapshot._restore(restored, snapshot.encoded(halves.books))
        halves.books = restored
        assert snapshot.encoded(restored) == snapshot.encoded(whole)
        assert vars(restored.state).keys() == vars(whole.state).keys()
        for name in ("rests", "peaks", "room", "tables", "shown"):
            assert getattr(restored.state, name) == getattr(whole.state, name)


# ---- shares


def test_shares_are_what_was_charged_and_add_up(sqlite, often):
    charged(sqlite, 0, 12)
    limit = Limits(analyst=Fraction(1, 100))
    ledger = opened(sqlite, limits=limit)  # declared later: the snapshot knows what everybody took
    taken = {name: 10**13 - ledger.available(name).units for name in ("ann0", "ann1", "ann2")}
    assert sum(taken.values()) == ledger.spent.units
    own = {
        name: sum(debit.cost.units for debit in ledger.debits() if debit.analyst == name) for name in taken
    }
    assert taken == own
    ledger.close()


def test_names_beyond_the_first_thousands_share_one_share(monkeypatch):
    monkeypatch.setattr(shares, "MAX_NAMES", 2)
    own = Books(Budget.of(1), limits=Limits(analyst=Fraction(1, 10)))
    tenth = Selection(epsilon=Fraction(1, 10))
    for name in ("a", "b", "c"):
        own.admit(tenth, analyst=name, at="")
    for name in ("c", "d", "a"):
        with pytest.raises(RefusedError):
            own.admit(Selection(epsilon=Fraction(1, 100)), analyst=name, at="")


# ---- what costs nothing, and what is long


def test_debits_of_nothing_do_not_fill_a_ledger(sqlite, monkeypatch):
    monkeypatch.setattr(books, "MAX_FREE", 3)
    ledger = opened(sqlite)
    for i in range(3):
        ledger.charge(NOTHING, question="count", request=f"free{i}")
    with pytest.raises(RefusedError, match="costs nothing"):
        ledger.charge(NOTHING, question="count", request="free3")
    assert ledger.charge(NOTHING, question="count", request="free0").repeated
    for i in range(5):  # the price of its own counts, not what joint pricing makes of it
        ledger.charge(located(0), question="q", request=f"paid{i}")
    for i in range(5):
        ledger.charge(NOTHING, question="count", request=f"more{i}")
    with pytest.raises(RefusedError, match="costs nothing"):
        ledger.charge(NOTHING, question="count", request="last")
    ledger.close()
    sound(sqlite)


@pytest.mark.parametrize("answer", [b"[]", b"x" * 5000, kept.PACKED + b"y" * 5000, os.urandom(3000)])
def test_a_long_answer_is_kept_compressed_and_given_back_as_it_was(store, answer):
    ledger = opened(store)
    debit = ledger.charge(located(0), question="q", request="r")
    ledger.settle(debit, answer)
    assert ledger.answered(debit) == answer
    assert ledger.settle(debit, b"another") == answer
    ledger.close()
    database = Database(store)
    with database.reading() as tx:
        (stored,) = tx.execute(select(KEPT.c.answer)).one()
    database.close()
    assert len(stored) <= len(answer)
    sound(store)


def test_noisy_counts_take_less_than_half_of_their_digits(sqlite):
    digits = json.dumps([int.from_bytes(os.urandom(4)) - 2**31 for _ in range(20_000)]).encode()
    ledger = opened(sqlite)
    before = Path(sqlite.database)
    debit = ledger.charge(located(0), question="q", request="r")
    ledger.settle(debit, digits)
    assert ledger.answered(debit) == digits
    ledger.close()
    assert before.stat().st_size < 0.55 * len(digits) + 100_000


def test_an_answer_deleted_behind_a_snapshot_is_noticed_before_anything_is_looked_at(tmp_path, often):
    """Who believed that a debit was never answered would look again, with fresh noise, for nothing."""
    place = tmp_path / "ledger"
    url = URL.create("sqlite", database=str(place))
    charged(url, 0, 40)
    with sqlite3.connect(place) as store_file:
        (number,) = store_file.execute(
            "SELECT number FROM understudy_entry WHERE debit IS NOT NULL"
        ).fetchone()
        store_file.execute("DELETE FROM understudy_entry WHERE number = ?", (number,))
        store_file.execute("DELETE FROM understudy_kept WHERE number = ?", (number,))
    ledger = opened(url)
    debit = ledger.find("r0")
    assert debit is not None
    with pytest.raises(LedgerError, match="changed or lost"):
        ledger.answered(debit)
    with pytest.raises(LedgerError, match="changed or lost"):
        ledger.hidden(debit)
    ledger.close()


def test_a_debit_that_was_never_answered_is_believed(tmp_path, often):
    url = URL.create("sqlite", database=str(tmp_path / "ledger"))
    ledger = opened(url)
    debit = ledger.charge(located(0), question="q", request="unanswered")
    charged(url, 1, 30)
    assert ledger.answered(debit) is None
    ledger.close()
