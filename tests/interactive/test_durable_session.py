"""A session whose processes die, or run at the same time, on one durable ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from session_table import TABLE
from session_worker import ledger_at, opened, questions

WORKER = Path(__file__).resolve().parent.parent / "session_worker.py"


@pytest.fixture
def path(tmp_path):
    pq.write_table(TABLE, tmp_path / "table.parquet")
    return tmp_path / "ledger.db"


def start(path, where="never", number=0):
    command = [sys.executable, str(WORKER), str(path), where, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(out)


def check(path, *runs):
    """Every purchase is charged once; all answers hold, and those that were paid for are the same everywhere."""
    ledger = ledger_at(str(path))
    spent = ledger.spent
    again = opened(ledger, seed=1)
    assert ledger.spent == spent
    kinds = [json.loads(step)["kind"] for step in ledger.steps(again._handle._debit)]
    assert len(kinds) == again._step
    truth = [again.curator._truth.sums(question) for question in questions()]
    for run in runs:
        for (_, value, error), exact, question in zip(run, truth, questions(), strict=True):
            assert (np.abs(np.array(value) - exact) <= np.array(error) + 1e-9).all()
            known = again.ask_marginal(question)
            assert (np.abs(known.value - np.array(value)) <= known.error + np.array(error)).all()
    assert ledger.spent == spent
    ledger.close()


@pytest.mark.parametrize("where", ["plan", "debit", "answer"])
def test_a_session_killed_anywhere_goes_on(where, path):
    killed = start(path, where, 2)
    killed.communicate(timeout=300)
    assert killed.returncode == 9
    check(path, finished(start(path)))


def test_two_processes_ask_in_one_session(path):
    ledger_at(str(path)).close()
    both = [start(path), start(path)]
    check(path, *(finished(process) for process in both))
