"""Ledgers that were put back: what a witness sees of it, and what a running program sees by itself."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from ledger.durable import charge, opened
from understudy.errors import LedgerError
from understudy.ledger import export
from understudy.ledger.witness import Witness


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
    charge(ledger)
    shutil.rmtree(witness.path.parent)
    with pytest.raises(LedgerError, match=r"witness cannot be written .* what was paid stays paid"):
        charge(ledger, request="r")
    witness.path.parent.mkdir()
    assert charge(ledger, request="r").repeated  # the debit was kept, and can be completed
    ledger.close()
