"""Power cuts: whatever a legal disk keeps of the recorded writes, no promise is broken."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from ledger.recording_disk import BUDGET, Op, states_after
from understudy.errors import LedgerError
from understudy.ledger import export
from understudy.ledger.store import DurableLedger
from understudy.privacy.event import Selection, SparseVector

PROGRAM = Path(__file__).with_name("recording_disk.py")


def recorded(folder: Path, *settings: str) -> list[Op]:
    (folder / "disk").mkdir()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder / "disk"), str(folder / "log"), *settings],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 3:
        pytest.skip("this Python's SQLite is not a shared library that a test can reach")
    assert done.returncode == 0, done.stderr[-3000:]
    log = [Op(*op) for op in pickle.loads((folder / "log").read_bytes())]
    assert sum(op.kind == "sync" for op in log) > (0 if "synchronous=OFF" in settings else 30)
    return log


def broken_promises(log: list[Op], point: int, disk: dict[str, bytes], folder: Path) -> list[str]:
    """What is wrong with the ledger on a disk after a cut."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in disk.items():
        (folder / name).write_bytes(content)
    url = URL.create("sqlite", database=str(folder / "understudy.ledger"))
    try:
        ledger = DurableLedger(url, "t", BUDGET)
    except LedgerError as error:
        return [str(error)]
    try:
        wrong = _broken(ledger, log[:point])
        if not ledger.spent.units:  # the cut came before the first charge
            return wrong
        return wrong + export.verify(url, "t")["problems"]
    except LedgerError as error:
        return [str(error)]
    finally:
        ledger.close()


def _broken(ledger: DurableLedger, log: list[Op]) -> list[str]:
    wrong = []
    promised = [op for op in log if op.kind in ("charged", "released", "moved")]
    handle = SparseVector(epsilon=Fraction(1, 100))
    for op in promised:
        if op.kind == "moved":
            continue
        request = op.data if op.kind == "charged" else op.data[0]
        debit = ledger.charge(Selection(epsilon=Fraction(1, 1000)), question="q", request=request)
        if not debit.repeated:
            wrong.append(f"the debit of {request} was lost")
        elif op.kind == "released" and ledger.answered(debit) != op.data[1]:
            wrong.append(f"the answer of {request} was lost")
    moved = [op.data for op in promised if op.kind == "moved"]
    if moved:
        latest = ledger.hidden(ledger.charge(handle, question="h", request="h"))
        if latest is None or int(latest.state) < moved[-1]:
            wrong.append("the state of the handle went back")
    return wrong


def test_no_promise_is_broken_by_a_power_cut(tmp_path, memory_folder, audit):
    """Every point of the record in the audit, a sample of them else; checkpoints come often."""
    log = recorded(tmp_path, "wal_autocheckpoint=25")
    assert {"understudy.ledger", "understudy.ledger-wal"} <= {op.file for op in log}
    chance = random.Random(11)
    points = range(len(log) + 1)
    cases = 0
    for point in points if audit else sorted(chance.sample(points, 60)):
        for disk in states_after(log, point, chance):
            cases += 1
            assert broken_promises(log, point, disk, memory_folder) == [], point
    assert cases >= (1000 if audit else 100)


def test_a_ledger_that_does_not_sync_is_caught(tmp_path, memory_folder):
    """The power of the test: without syncs the same check finds broken promises."""
    log = recorded(tmp_path, "synchronous=OFF")
    chance = random.Random(12)
    broken = 0
    for point in range(len(log) // 2, len(log), max(1, len(log) // 30)):
        broken += sum(
            bool(broken_promises(log, point, disk, memory_folder))
            for disk in states_after(log, point, chance)
        )
    assert broken > 10
