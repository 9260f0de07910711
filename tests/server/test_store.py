"""`server.db`: what it promises where disks fill up, files vanish and processes are killed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from understudy.errors import StoreError
from understudy.server import schema
from understudy.server.approvals import Approvals
from understudy.server.asked import Asked
from understudy.server.audit_log import AuditLog
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens

NOTE = "INSERT OR IGNORE INTO fact VALUES (?, ?)"


def facts(store: ServerStore) -> set[str]:
    with store.reading() as tx:
        return {row[0] for row in tx.execute("SELECT name FROM fact")}


def test_only_its_owner_reads_it_and_its_log(store, state):
    with store.writing() as tx:
        tx.execute(NOTE, ("a", "1"))
    for path in (state, Path(f"{state}-wal"), Path(f"{state}-shm")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_file_that_others_could_read_is_closed_to_them(state):
    ServerStore(state).close()
    state.chmod(0o644)
    ServerStore(state).close()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_what_raises_inside_a_transaction_changes_nothing(store):
    def fail() -> None:
        with store.writing() as tx:
            tx.execute(NOTE, ("a", "1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "a" not in facts(store)
    with store.writing() as tx:
        tx.execute(NOTE, ("b", "1"))
    assert "b" in facts(store)


def test_a_full_disk_is_told_and_passes(store):
    with store.writing() as tx:
        (pages,) = tx.execute("PRAGMA page_count").fetchone()
        tx.execute(f"PRAGMA max_page_count={pages}")
    with (
        pytest.raises(StoreError, match="disk that holds the server's state is full") as told,
        store.writing() as tx,
    ):
        tx.execute(NOTE, ("a", "x" * 100_000))
    assert "Free some space" in str(told.value)  # for the custodian; an analyst is told to try again later
    with store.writing() as tx:  # a new connection, as after space was made
        tx.execute(NOTE, ("b", "x" * 100_000))
    assert facts(store) & {"a", "b"} == {"b"}


def test_writes_of_later_outlive_a_disk_that_was_full(store):
    store.later(NOTE, ("a", "x" * 100_000))
    store.flush()
    with store.writing() as tx:
        (pages,) = tx.execute("PRAGMA page_count").fetchone()
        tx.execute(f"PRAGMA max_page_count={pages}")
    store._waiting.append((NOTE, ("b", "x" * 100_000)))
    with pytest.raises(StoreError, match="full"):
        store.flush()
    store.flush()
    assert {"a", "b"} <= facts(store)


def test_a_file_that_is_gone_or_replaced_is_refused_until_it_is_back(store, state):
    moved = state.with_name("moved.db")
    state.rename(moved)
    with pytest.raises(StoreError, match="is gone"):
        facts(store)
    state.write_bytes(b"")
    with pytest.raises(StoreError, match="was replaced"), store.writing():
        pass
    moved.rename(state)
    with store.writing() as tx:
        tx.execute(NOTE, ("a", "1"))
    assert "a" in facts(store)


def test_a_missing_folder_and_a_missing_file_say_what_to_do(tmp_path):
    with pytest.raises(StoreError, match="folder must exist"):
        ServerStore(tmp_path / "absent" / "server.db")
    with pytest.raises(StoreError, match="understudy serve"):
        ServerStore(tmp_path / "server.db", new=False)
    assert not (tmp_path / "server.db").exists()


def test_a_damaged_file_is_told_without_a_drivers_words(state):
    state.write_bytes(b"no database, but long enough to be looked at " * 100)
    with pytest.raises(StoreError, match=r"server\.db is damaged\. Restore a backup"):
        ServerStore(state)


def test_files_of_newer_programs_and_of_others_are_left_alone(state, tmp_path):
    ServerStore(state).close()
    with sqlite3.connect(state) as raw:
        raw.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    raw.close()
    with pytest.raises(StoreError, match="newer program"):
        ServerStore(state)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as raw:
        raw.execute("CREATE TABLE mine (a)")
    raw.close()
    with pytest.raises(StoreError, match="something else"):
        ServerStore(other)
    with sqlite3.connect(other) as raw:
        assert raw.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    raw.close()


def test_what_was_committed_survives_a_kill_and_nothing_else_does(state):
    program = f"""
import os, signal
from pathlib import Path
from understudy.server.store import ServerStore
store = ServerStore(Path({str(state)!r}))
for durable in (True, False):
    with store.writing(durable=durable) as tx:
        tx.execute({NOTE!r}, (f"kept {{durable}}", "1"))
with store.writing() as tx:
    tx.execute({NOTE!r}, ("lost", "1"))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, env=os.environ)
    assert done.returncode == -9
    with ServerStore(state) as store:
        assert {"kept True", "kept False"} <= facts(store)
        assert "lost" not in facts(store)


WRITE_ON = """
import sys
from pathlib import Path
from understudy.server.approvals import Approvals
from understudy.server.asked import Asked, KeptReply
from understudy.server.store import ServerStore
from understudy.server.tokens import Caller, Tokens
from understudy.privacy.cost import ZCDP
store = ServerStore(Path(sys.argv[1]))
tokens, asked, approvals = Tokens(store), Asked(store), Approvals(store)
start = int(sys.argv[2])
for i in range(start, start + 10_000):
    token, _ = tokens.make("ada", doors=["http"])
    id = approvals.ask(token.caller, "town", "count", f"r{i}", {}, ZCDP(1), 0.1)
    approvals.approve(id, "cy")
    answer = asked.keep(
        KeptReply(
            table="town", analyst="ada", question="count", request=f"r{i}", terms={}, answer='{"value": %d}' % i,
            price=ZCDP(1), share=0.1, source="bought",
        )
    )
    print(token.id, id, answer.id, i, flush=True)
"""


def killed_again_and_again(state: Path, times: int) -> None:
    """Kill a program that writes, at a moment of no choice of its own; what it has said must be there."""
    said: list[list[str]] = []
    for run in range(times):
        words = [sys.executable, "-c", WRITE_ON, str(state), str(run * 10_000)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(1 + run % 7):
                said.append(writer.stdout.readline().split())
            time.sleep(0.001 * (run % 5))
            writer.kill()
            said += [line.split() for line in writer.stdout if line.endswith("\n")]
        with ServerStore(state) as store:
            assert AuditLog(store).verify() == []
    with ServerStore(state) as store:
        tokens, asked, approvals = Tokens(store), Asked(store), Approvals(store)
        for token, approval, answer, number in said:
            assert tokens.get(token) is not None
            assert approvals.get(approval).state == "approved"
            assert asked.get(answer).answer == {"value": int(number)}
        acts = [entry.act for entry in AuditLog(store).entries(limit=10**6)]
        assert len(said) <= acts.count("approve") == len(approvals.all("approved", limit=10**6))
        assert acts.count("make token") == len(tokens.all())


def test_what_was_said_survives_kills_and_is_all_in_the_log(state):
    killed_again_and_again(state, 4)


@pytest.mark.slow("300 kills of a program that writes")
def test_what_was_said_survives_very_many_kills(state):
    killed_again_and_again(state, 300)


def test_threads_write_one_after_the_other(store):
    log = AuditLog(store)

    def write(who: str) -> None:
        for _ in range(20):
            log.write(who, "try", durable=False)

    threads = [threading.Thread(target=write, args=(f"thread {i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.head[0] == 160
    assert log.verify() == []


def test_two_programs_can_make_the_file_at_once(state):
    program = f"""
from pathlib import Path
from understudy.server.audit_log import AuditLog
from understudy.server.store import ServerStore
with ServerStore(Path({str(state)!r})) as store:
    for _ in range(20):
        AuditLog(store).write("a program", "try", durable=False)
"""
    started = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    with ServerStore(state) as store:
        assert AuditLog(store).head[0] == 60
        assert AuditLog(store).verify() == []


def test_what_is_written_later_is_written_soon_and_when_closed(state):
    with ServerStore(state) as store:
        store.later(NOTE, ("soon", "1"))
        until = time.monotonic() + 10
        while "soon" not in facts(store) and time.monotonic() < until:
            time.sleep(0.02)
        assert "soon" in facts(store)
        store.later(NOTE, ("at the end", "1"))
    with ServerStore(state) as store:
        assert "at the end" in facts(store)


def test_time_never_goes_back_even_in_another_program(state, clock):
    with ServerStore(state, clock=clock) as store:
        clock.days(10)
        late = store.now()
        clock.days(-10)
        assert store.now() == late
        assert store.clock_is_behind == 10 * 86400
    with ServerStore(state, clock=clock) as store:
        assert store.now() == late
        store.accept_clock()
        assert store.now() == clock() < late
        assert store.clock_is_behind == 0


def test_a_secret_of_the_store_is_drawn_once(state):
    with ServerStore(state) as store:
        drawn = store.secret("forms")
        assert len(drawn) == 32
        assert drawn != store.secret("other")
    with ServerStore(state) as store:
        assert store.secret("forms") == drawn


def test_a_copy_of_a_store_in_use_is_whole(store, tmp_path):
    log = AuditLog(store)
    for i in range(50):
        log.write("a", "try", {"i": i})
    copy = tmp_path / "copy.db"
    store.copy_to(copy)
    log.write("a", "after")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with ServerStore(copy) as found:
        assert AuditLog(found).head[0] == 50
        assert AuditLog(found).verify() == []
