"""What a disk can do to a ledger: be full, read-only, or give back other bytes than it was given."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import event as hooks
from sqlalchemy.engine import URL

from ledger.durable import TINY, charge, in_child, opened, sound
from understudy.errors import LedgerError
from understudy.ledger import export, stored_page
from understudy.privacy.cost import UNITS


def test_a_full_disk_refuses_and_recovers(sqlite):
    ledger = opened(sqlite)
    ledger.let_go()

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
    ledger.let_go()
    hooks.remove(ledger._database._engine, "connect", fill)
    charge(ledger, TINY)
    assert ledger.spent.units == (granted + 1) * UNITS // 10**6
    ledger.close()
    sound(sqlite)


def test_a_used_up_quota_refuses_and_recovers(sqlite):
    def spend_to_the_limit():
        ledger = opened(sqlite)
        charge(ledger, TINY)
        size = Path(sqlite.database).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60_000, resource.RLIM_INFINITY))
        granted = 1
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
    assert granted > 2
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
    ledger = opened(URL.create("sqlite", database=str(tmp_path / "no" / "such" / "folder")))
    with pytest.raises(LedgerError, match="cannot be opened"):
        charge(ledger)


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
        patch.setattr(stored_page.StoredPage, "write", fails)
        with pytest.raises(OSError, match="burns"):
            charge(ledger, request="r")
    assert ledger.spent.amount == 0.1
    assert not charge(ledger, request="r").repeated
    ledger.close()
    sound(store)
