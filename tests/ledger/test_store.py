"""The durable ledger: restarts, several programs at once, and what a disk or an operator can do to it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event as hooks
from sqlalchemy import update
from sqlalchemy.engine import URL

from understudy.errors import InsufficientBudgetError, LedgerError, RequestConflictError
from understudy.ledger import export, page, schema
from understudy.ledger.database import Database
from understudy.ledger.interface import fresh_request
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, PureDP, pure
from understudy.privacy.event import Selection, SparseVector

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))
TINY = Selection(epsilon=Fraction(1, 10**6))


def opened(url: URL, **settings) -> DurableLedger:
    return DurableLedger(url, "t", ONE, **settings)


def charge(ledger, event=TENTH, request=None):
    return ledger.charge(event, question="q", request=request or fresh_request())


def in_child(work) -> object:
    """Run `work` in a forked child and return what it says, so that limits and users stay there."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = json.dumps(work())
        except BaseException as error:  # the parent's asserts see it
            said = json.dumps({"error": type(error).__name__, "words": str(error)})
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)


def sound(url: URL) -> dict:
    verdict = export.verify(url, "t")
    assert verdict["sound"], verdict["problems"]
    return verdict


# ---- restarts


def test_a_restart_goes_on_where_it_was(store):
    first = opened(store)
    answered = charge(first, request="a")
    first.settle(answered, b"\x00\xff answer")
    charge(first, request="lost")  # a crash before its answer
    handle = charge(first, SparseVector(epsilon=Fraction(1, 10)), request="h")
    first.settle(handle, b"opened", hidden=b"secret 0")
    first.advance(handle, step=0, question="one", answer=b"true", state=b"secret 1")
    first.close()
    second = opened(store)
    assert second.spent.amount == 0.3
    again = charge(second, request="a")
    assert again == answered
    assert second.answered(again) == b"\x00\xff answer"
    lost = charge(second, request="lost")
    assert lost.repeated
    assert second.answered(lost) is None
    assert second.settle(lost, b"completed") == b"completed"
    assert second.hidden(handle).state == b"secret 1"
    assert second.advance(handle, step=1, question="two", answer=b"false", state=b"secret 2")
    second.close()
    assert sound(store)["entries"] == 9


def test_two_programs_share_one_budget(store):
    one, two = opened(store), opened(store)
    for i in range(5):
        charge(one)
        charge(two)
        assert one.spent == two.spent
        assert one.spent.units == (i + 1) * UNITS // 5
    for ledger in (one, two):
        with pytest.raises(InsufficientBudgetError):
            charge(ledger)
    one.close()
    two.close()


def test_one_store_keeps_several_tables_apart(store):
    one = DurableLedger(store, "one", ONE)
    two = DurableLedger(store, "two", Budget.of(2, 1e-6))
    charge(one, request="r")
    assert not charge(two, request="r").repeated
    assert (one.spent.amount, two.spent.amount) == (0.1, 0.00125)
    for ledger in (one, two):
        ledger.close()
        assert export.verify(store, ledger.name)["sound"]


def test_the_recorded_terms_rule(store):
    opened(store, opening=Fraction(1, 4)).close()
    with pytest.raises(LedgerError, match="epsilon 1, the declaration says epsilon 2"):
        DurableLedger(store, "t", Budget.of(2))
    with pytest.raises(LedgerError, match="opening balance"):
        opened(store)
    again = opened(store, opening=Fraction(1, 4))
    assert again.spent.amount == 0.25
    again.close()


def test_an_answer_needs_a_debit_of_this_ledger(store):
    here, there = DurableLedger(store, "here", ONE), DurableLedger(store, "there", ONE)
    debit = charge(there, request="r")
    with pytest.raises(LedgerError, match="does not hold the debit"):
        here.settle(debit, b"x")
    charge(here, TINY, request="r")
    with pytest.raises(LedgerError, match="does not hold the debit"):
        here.advance(debit, step=0, question="q", answer=b"", state=b"")
    here.close()
    there.close()


def test_a_forked_child_uses_connections_of_its_own(sqlite):
    ledger = opened(sqlite)
    charge(ledger)
    for _ in range(3):
        assert in_child(lambda: charge(ledger).cost.units) == UNITS // 10
    charge(ledger)
    assert ledger.spent.amount == 0.5
    ledger.close()
    sound(sqlite)


def test_superseded_states_are_erased(sqlite):
    ledger = opened(sqlite)
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"secret-0")
    for step in range(3):
        ledger.advance(debit, step=step, question="q", answer=b"", state=b"secret-%d" % (step + 1))
    ledger.close()
    rows = sqlite3.connect(sqlite.database).execute("SELECT state, salt FROM understudy_kept").fetchall()
    assert [state for state, _ in rows] == [None, None, None, b"secret-3"]
    assert [salt is None for _, salt in rows] == [True, True, True, False]


def test_every_look_up_uses_an_index(sqlite):
    ledger = opened(sqlite)
    seen: list[str] = []
    hooks.listen(
        ledger._database._engine, "before_cursor_execute", lambda c, k, text, p, x, m: seen.append(text)
    )
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"")
    ledger.advance(debit, step=0, question="q", answer=b"", state=b"")
    ledger.answered(debit)
    ledger.hidden(debit)
    ledger.close()
    plans = sqlite3.connect(sqlite.database)
    for text in {t for t in seen if t.startswith("SELECT")}:
        plan = plans.execute(f"EXPLAIN QUERY PLAN {text}", ["x"] * text.count("?")).fetchall()
        for *_, line in plan:
            if "understudy_entry" in line or "understudy_kept" in line or "other" in line:
                assert "SEARCH" in line, (text, plan)
                assert "=? AND" in line, (text, plan)


# ---- versions


def test_a_newer_program_s_ledger_is_left_alone(store):
    ledger = opened(store)
    charge(ledger)
    database = Database(store)
    with database.writing() as tx:
        tx.execute(update(schema.SCHEMA).values(version=schema.VERSION + 1))
    with pytest.raises(LedgerError, match="newer program"):
        charge(ledger)  # it was upgraded while we had it open
    with pytest.raises(LedgerError, match="newer program"):
        opened(store)
    with pytest.raises(LedgerError, match="newer program"):
        export.verify(store, "t")
    with database.writing() as tx:
        tx.execute(update(schema.SCHEMA).values(version=schema.VERSION))
    database.close()
    assert ledger.spent.amount == 0.1
    ledger.close()


VERSION_1 = Path(__file__).with_name("version_1.sql")


def test_a_file_of_version_1_is_upgraded(sqlite):
    raw = sqlite3.connect(sqlite.database)
    raw.executescript(VERSION_1.read_text(encoding="utf-8"))
    assert raw.execute("SELECT count(*) FROM understudy_kept WHERE state IS NOT NULL").fetchone() == (3,)
    raw.close()
    with pytest.raises(LedgerError, match="schema 1"):
        export.verify(sqlite, "t")
    ledger = opened(sqlite, opening=Fraction(1, 4))
    handle = ledger.charge(
        SparseVector(epsilon=Fraction(1, 4)), question="sparse", request="h", analyst="ada"
    )
    assert handle.repeated
    assert (ledger.spent.amount, ledger.hidden(handle).step) == (0.6, 2)
    assert ledger.hidden(handle).state == b"state 2"
    answered = ledger.charge(TENTH, question="count", request="a")
    assert ledger.answered(answered) == b"[42]"
    charge(ledger)
    ledger.close()
    sound(sqlite)
    raw = sqlite3.connect(sqlite.database)
    assert raw.execute("SELECT version FROM understudy_schema").fetchone() == (schema.VERSION,)
    assert raw.execute("SELECT count(*) FROM understudy_kept WHERE state IS NOT NULL").fetchone() == (1,)
    indices = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"understudy_one_answer", "understudy_one_request"} <= indices
    raw.close()


def test_a_postgres_store_of_version_1_is_upgraded(postgres):
    ledger = opened(postgres)
    handle = charge(ledger, request="h")
    ledger.settle(handle, b"", hidden=b"state 0")
    ledger.advance(handle, step=0, question="q", answer=b"", state=b"state 1")
    ledger.close()
    database = Database(postgres)
    with database.writing() as tx:
        schema.ONE_ANSWER.drop(tx)
        tx.execute(update(schema.SCHEMA).values(version=1))
        tx.execute(update(schema.KEPT).where(schema.KEPT.c.number == 3).values(state=b"state 0", salt=b"s"))
    database.close()
    again = opened(postgres)
    assert again.hidden(handle).state == b"state 1"
    again.close()
    sound(postgres)


# ---- disks


def test_a_full_disk_refuses_and_recovers(sqlite):
    ledger = opened(sqlite)
    ledger.close()

    def fill(connection, _):
        connection.execute("PRAGMA max_page_count=24")

    hooks.listen(ledger._database._engine, "connect", fill)
    granted, words = 0, ""
    while not words:
        try:
            charge(ledger, TINY)
            granted += 1
        except LedgerError as error:
            words = str(error)
    assert "full" in words
    assert "no look happened" in words
    assert granted > 10
    with pytest.raises(LedgerError, match="full"):
        charge(ledger, TINY)
    assert ledger.spent.units == granted * UNITS // 10**6
    ledger.close()
    hooks.remove(ledger._database._engine, "connect", fill)
    charge(ledger, TINY)
    assert ledger.spent.units == (granted + 1) * UNITS // 10**6
    ledger.close()
    sound(sqlite)


def test_a_used_up_quota_refuses_and_recovers(sqlite):
    opened(sqlite).close()

    def spend_to_the_limit():
        ledger = opened(sqlite)
        size = Path(sqlite.database).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60_000, resource.RLIM_INFINITY))
        granted = 0
        try:
            while True:
                charge(ledger, TINY)
                granted += 1
        except LedgerError as error:
            words = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        charge(ledger, TINY)
        return granted + 1, words, ledger.spent.units

    granted, words, spent = in_child(spend_to_the_limit)
    assert "no look happened" in words
    assert granted > 1
    assert spent == granted * UNITS // 10**6
    assert sound(sqlite)["debits"] == granted


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_ledger_is_refused(what):
    folder = Path(tempfile.mkdtemp(prefix="understudy-read-only-"))
    url = URL.create("sqlite", database=str(folder / "understudy.ledger"))
    ledger = opened(url)
    charge(ledger)
    ledger.close()
    read_only = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
    (folder / "understudy.ledger").chmod(read_only if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else read_only | stat.S_IXUSR | stat.S_IXOTH)

    def try_to_spend():
        if os.geteuid() == 0:
            os.setegid(65534)
            os.seteuid(65534)
        charge(opened(url))

    said = in_child(try_to_spend)
    assert said["error"] == "LedgerError"
    assert "read-only" in said["words"] or "cannot be opened" in said["words"]
    folder.chmod(0o777)
    assert sound(url)["debits"] == 1
    shutil.rmtree(folder)


def test_a_missing_folder_is_a_clear_error(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened"):
        opened(URL.create("sqlite", database=str(tmp_path / "no" / "such" / "folder")))


def damaged_copy(sqlite: URL, change) -> URL:
    ledger = opened(sqlite)
    for i in range(40):
        debit = charge(ledger, TINY, request=f"r{i}")
        ledger.settle(debit, b"the answer %02d" % i)
    ledger.close()  # the log is folded into the file
    path = Path(sqlite.database)
    path.write_bytes(change(path.read_bytes()))
    return sqlite


def test_a_damaged_page_is_found_at_opening(sqlite):
    def scribble(whole: bytes) -> bytes:
        return b"".join(
            whole[i : i + 4096] if i < 8192 else b"\xa5" * 100 + whole[i + 100 : i + 4096]
            for i in range(0, len(whole), 4096)
        )

    with pytest.raises(LedgerError, match="damaged"):
        opened(damaged_copy(sqlite, scribble))


def test_what_is_no_database_is_refused(sqlite):
    with pytest.raises(LedgerError, match="damaged"):
        opened(damaged_copy(sqlite, lambda whole: b"not a database, " * (len(whole) // 16)))


def test_a_flipped_bit_in_an_entry_is_found_at_opening(sqlite):
    url = damaged_copy(sqlite, lambda whole: whole.replace(b"r17", b"r71"))
    with pytest.raises(LedgerError, match=r"damaged|changed or lost"):
        opened(url)


def test_a_flipped_bit_in_an_answer_is_never_released(sqlite):
    ledger = opened(damaged_copy(sqlite, lambda whole: whole.replace(b"answer 17", b"answer 18")))
    debit = charge(ledger, TINY, request="r17")
    with pytest.raises(LedgerError, match="not the one that was stored"):
        ledger.answered(debit)
    with pytest.raises(LedgerError, match="changed or lost"):
        ledger.settle(debit, b"another")
    assert ledger.answered(charge(ledger, TINY, request="r16")) == b"the answer 16"
    ledger.close()


def test_a_changed_state_is_never_used(sqlite):
    ledger = opened(sqlite)
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"threshold 7")
    raw = sqlite3.connect(sqlite.database)
    with raw:
        raw.execute("UPDATE understudy_kept SET state = ?", (b"threshold 0",))
    raw.close()
    with pytest.raises(LedgerError, match="not the one that was stored"):
        ledger.hidden(debit)
    ledger.close()
    assert not export.verify(sqlite, "t")["sound"]


def test_a_failed_write_spends_nothing(store, monkeypatch):
    ledger = opened(store)
    charge(ledger)

    def fails(self):
        raise OSError("the machine burns")

    with monkeypatch.context() as patch:
        patch.setattr(page.Page, "write", fails)
        with pytest.raises(OSError, match="burns"):
            charge(ledger, request="r")
    assert ledger.spent.amount == 0.1
    assert not charge(ledger, request="r").repeated
    ledger.close()
    sound(store)


# ---- locks, clocks, copies


def test_a_lock_held_for_too_long(sqlite):
    ledger = opened(sqlite, timeout=0.2)
    other = sqlite3.connect(sqlite.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked for too long"):
        charge(ledger, request="r")
    assert ledger.spent.units == 0  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    assert not charge(ledger, request="r").repeated
    ledger.close()


def test_a_row_locked_for_too_long(postgres):
    ledger = opened(postgres, timeout=0.2)
    database = Database(postgres)
    with database.writing() as tx:
        tx.exec_driver_sql("SELECT * FROM understudy_ledger FOR UPDATE")
        with pytest.raises(LedgerError, match="locked for too long"):
            charge(ledger, request="r")
    database.close()
    assert not charge(ledger, request="r").repeated
    ledger.close()


def test_time_never_runs_backwards(store):
    now = [datetime(2024, 5, 1, tzinfo=UTC)]
    ledger = opened(store, clock=lambda: now[0])
    for hours in (0, -5, 1, -100, 2):
        now[0] = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=hours)
        charge(ledger)
    ledger.close()
    times = [entry["at"][8:13] for entry in export.document(store, "t")["entries"]]
    assert times == ["01T00", "01T00", "01T00", "01T01", "01T01", "01T02"]
    sound(store)


def copied(url: URL, to: Path) -> None:
    source, target = sqlite3.connect(url.database), sqlite3.connect(to)
    source.backup(target)
    source.close()
    target.close()


def restore(url: URL, backup: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(url.database + ending).unlink(missing_ok=True)
    shutil.copy(backup, url.database)


def test_a_restored_backup_is_refused_by_its_witness(sqlite, tmp_path):
    witness = Witness(tmp_path / "elsewhere" / "witness.json")
    witness.path.parent.mkdir()
    ledger = opened(sqlite, witness=witness)
    charge(ledger)
    copied(sqlite, tmp_path / "backup")
    charge(ledger)
    ledger.close()
    opened(sqlite, witness=witness).close()
    newest = Path(sqlite.database).read_bytes()
    restore(sqlite, tmp_path / "backup")
    with pytest.raises(LedgerError, match="rolled back: it has 2 entries, and 3 were seen before"):
        opened(sqlite, witness=witness)
    assert "rolled back" in export.verify(sqlite, "t", witness=witness)["problems"][0]
    unaware = opened(sqlite)  # without a witness nobody can know
    charge(unaware)
    charge(unaware)
    unaware.close()
    with pytest.raises(LedgerError, match="not the one its witness saw"):
        opened(sqlite, witness=witness)
    assert not export.verify(sqlite, "t", witness=witness)["sound"]
    Path(sqlite.database).write_bytes(newest)
    assert export.verify(sqlite, "t", witness=witness)["sound"]


def test_a_running_program_notices_a_rollback_by_itself(sqlite, tmp_path):
    ledger = opened(sqlite)
    charge(ledger)
    copied(sqlite, tmp_path / "backup")
    charge(ledger)
    ledger.close()
    restore(sqlite, tmp_path / "backup")
    with pytest.raises(LedgerError, match="rolled back"):
        charge(ledger)
    with pytest.raises(LedgerError, match="rolled back"):
        _ = ledger.spent
    ledger.close()


def test_a_witness_only_goes_forward(tmp_path):
    witness = Witness(tmp_path / "w.json")
    assert witness.seen("t") is None
    witness.note("t", 5, "five")
    witness.note("t", 4, "four")
    witness.note("u", 1, "one")
    assert (witness.seen("t"), witness.seen("u")) == ((5, "five"), (1, "one"))
    witness.path.write_text("{half a fi")
    with pytest.raises(LedgerError, match="not readable"):
        witness.seen("t")


def test_a_witness_that_cannot_be_written_stops_the_look(sqlite, tmp_path):
    witness = Witness(tmp_path / "w" / "witness.json")
    witness.path.parent.mkdir()
    ledger = opened(sqlite, witness=witness)
    shutil.rmtree(witness.path.parent)
    with pytest.raises(LedgerError, match="witness cannot be written"):
        charge(ledger, request="r")
    witness.path.parent.mkdir()
    assert charge(ledger, request="r").repeated  # the debit was kept, and can be completed
    ledger.close()


# ---- Postgres


def test_an_idle_connection_that_died_is_replaced(postgres):
    ledger = opened(postgres)
    charge(ledger)
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    charge(ledger)
    assert ledger.spent.amount == 0.2
    ledger.close()


def reloaded(server: psycopg.Connection, fsync: str) -> None:
    server.execute("SELECT pg_reload_conf()")
    for _ in range(500):
        if server.execute("SHOW fsync").fetchone() == (fsync,):
            return
        time.sleep(0.02)
    raise AssertionError("the server did not reload its settings")


def test_a_server_that_forgets_is_refused(postgres):
    plain = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as server:
        assert server.execute("SHOW fsync").fetchone() == ("on",)
        server.execute("ALTER SYSTEM SET fsync = off")
        try:
            reloaded(server, "off")
            with pytest.raises(LedgerError, match="fsync off"):
                opened(postgres)
        finally:
            server.execute("ALTER SYSTEM RESET fsync")
            reloaded(server, "on")


def test_commits_are_synchronous_whatever_the_server_s_default(postgres):
    hasty = postgres.update_query_dict({"options": postgres.query["options"] + " -csynchronous_commit=off"})
    database = Database(hasty)
    with database.reading() as tx:
        assert tx.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
    database.close()


def test_no_message_holds_a_password(postgres_server):
    closed = postgres_server.set(port=1, password="hunter2")
    with pytest.raises(LedgerError) as refused:
        opened(closed)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_conflict_is_told_across_programs(store):
    one, two = opened(store), opened(store)
    charge(one, request="r")
    with pytest.raises(RequestConflictError):
        charge(two, TINY, request="r")
    one.close()
    two.close()


def test_a_child_keeps_its_debits_when_its_parent_lets_go(sqlite):
    """SQLite's locks do not cross a fork: no connection may be open while one happens."""
    ledger = opened(sqlite)
    charge(ledger)
    (asked, ask), (said, say) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            charge(ledger, request="child 1")
            os.write(say, b"x")
            os.read(asked, 1)
            charge(ledger, request="child 2")
        finally:
            os._exit(0)
    os.read(said, 1)
    charge(ledger)
    ledger.close()  # the last connection folds the log into the file and removes it
    os.write(ask, b"x")
    os.waitpid(child, 0)
    for handle in (asked, ask, said, say):
        os.close(handle)
    other = opened(sqlite)
    assert charge(other, request="child 1").repeated
    assert charge(other, request="child 2").repeated
    assert other.spent.amount == 0.4
    other.close()
    sound(sqlite)


def test_a_fork_waits_for_transactions_and_hinders_nobody(sqlite):
    ledger = opened(sqlite)
    stop = threading.Event()
    spent = []

    def spend():
        while not stop.is_set():
            spent.append(charge(ledger, TINY).cost.units)

    crowd = [threading.Thread(target=spend) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for _ in range(10):
        spent.append(in_child(lambda: charge(ledger, TINY).cost.units))
    stop.set()
    for thread in crowd:
        thread.join()
    assert ledger.spent.units == sum(spent)
    ledger.close()
    sound(sqlite)


# ---- joint prices


class WorseNeighbour:
    """A family priced jointly: each event hurts one of two neighbours, and the total is the worse one's sum."""

    def start(self):
        return (0, 0)

    def after(self, state, event):
        left, right = state
        units = pure(event).units
        return (left + units, right) if isinstance(event, Selection) else (left, right + units)

    def cost(self, state):
        return PureDP(max(state))


def test_a_family_may_be_priced_jointly(store):
    ledger = opened(store, accountant=WorseNeighbour())
    other = opened(store, accountant=WorseNeighbour())
    half = Fraction(1, 2)
    assert charge(ledger, Selection(epsilon=half)).cost.amount == 0.5
    assert charge(other, SparseVector(epsilon=half)).cost.amount == 0  # the other neighbour's, so far
    assert charge(ledger, SparseVector(epsilon=half)).cost.amount == 0.5
    assert charge(other, Selection(epsilon=half)).cost.amount == 0
    for opened_one in (ledger, other):
        assert opened_one.remaining.units == 0
        with pytest.raises(InsufficientBudgetError):
            charge(opened_one, TINY)
        opened_one.close()
