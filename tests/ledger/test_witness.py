"""Ledgers that were put back: what a witness sees of it, and what a running program sees by itself."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from ledger.durable import charge, opened, witnessed
from understudy.errors import LedgerError
from understudy.ledger import export
from understudy.ledger.chain import START
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
    (tmp_path / "elsewhere").mkdir()
    witness = witnessed(tmp_path / "elsewhere" / "witness.json")
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
    ledger.let_go()
    restore(sqlite, tmp_path / "backup")
    with pytest.raises(LedgerError, match="rolled back"):
        charge(ledger)
    with pytest.raises(LedgerError, match="rolled back"):
        _ = ledger.spent
    ledger.close()


def test_a_witness_only_goes_forward(tmp_path):
    witness = Witness(tmp_path / "w.json")
    witness.make("t", 2, "two")
    witness.make("u", 0, START)
    witness.note("t", 5, "five")
    witness.note("t", 4, "four")
    witness.note("u", 1, "one")
    assert (witness.seen("t"), witness.seen("u")) == ((5, "five"), (1, "one"))
    witness.path.write_text("{half a fi")
    with pytest.raises(LedgerError, match="not readable"):
        witness.seen("t")


def test_a_witness_that_cannot_be_written_stops_the_look(sqlite, tmp_path, monkeypatch):
    ledger = opened(sqlite, witness=witnessed(tmp_path / "witness.json"))
    charge(ledger)

    def full(self, known):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Witness, "_replace", full)
        with pytest.raises(LedgerError, match=r"witness cannot be written .* what was paid stays paid"):
            charge(ledger, request="r")
    assert charge(ledger, request="r").repeated  # the debit was kept, and can be completed
    ledger.close()


# ---- a declared witness must exist


def test_an_emptied_witness_is_not_taken_for_a_new_one(sqlite, tmp_path):
    (tmp_path / "w").mkdir()
    witness = witnessed(tmp_path / "w" / "witness.json")
    ledger = opened(sqlite, witness=witness)
    charge(ledger)
    copied(sqlite, tmp_path / "backup")
    for _ in range(9):
        charge(ledger)
    assert ledger.remaining.units == 0
    kept = witness.path.read_bytes()
    shutil.rmtree(witness.path.parent)
    with pytest.raises(LedgerError, match=r"the folder .* is not there\. .*nothing was spent"):
        charge(ledger)  # a program that runs spends nothing without its witness
    ledger.close()
    restore(sqlite, tmp_path / "backup")
    for emptied in (None, "{}"):
        witness.path.parent.mkdir(exist_ok=True)
        if emptied is not None:
            witness.path.write_text(emptied)
        with pytest.raises(
            LedgerError, match=r"declared witness .*`understudy ledger witness --new` makes it"
        ):
            opened(sqlite, witness=witness)
        with pytest.raises(LedgerError, match="declared witness"):
            export.verify(sqlite, "t", witness=witness)
    witness.path.write_bytes(kept)
    with pytest.raises(LedgerError, match="rolled back: it has 2 entries, and 11 were seen"):
        opened(sqlite, witness=witness)


def test_the_first_charge_needs_the_declared_witness(store, tmp_path):
    witness = Witness(tmp_path / "witness.json")
    ledger = opened(store, witness=witness)
    with pytest.raises(
        LedgerError, match=r"is not there.*`understudy ledger witness --new`.*nothing was spent"
    ):
        charge(ledger, request="r")
    assert not ledger.is_begun
    witness.make("t", *ledger.end)
    assert not charge(ledger, request="r").repeated
    assert witness.seen("t") == ledger.end
    ledger.close()


def test_a_witness_is_made_once_and_is_its_owner_s_alone(sqlite, tmp_path):
    ledger = opened(sqlite)
    charge(ledger)
    witness = Witness(tmp_path / "witness.json")
    witness.make("t", *ledger.end)
    assert witness.seen("t")[0] == 2
    for ending in ("", ".lock"):
        assert stat.S_IMODE(Path(f"{witness.path}{ending}").stat().st_mode) == 0o600
    with pytest.raises(LedgerError, match="has seen 2 entries of 't' already"):
        witness.make("t", 0, START)
    witness.path.chmod(0o644)  # its keeper lets others read it
    witness.note("t", 3, "three")
    assert stat.S_IMODE(witness.path.stat().st_mode) == 0o644
    ledger.close()
