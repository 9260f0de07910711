"""An open sparse vector whose processes die, or run at the same time, on one durable ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparse_worker import (
    EPSILON,
    HITS,
    QUESTIONS,
    THRESHOLD,
    construction,
    exact,
    ledger_at,
    opened,
    questions,
)
from understudy.errors import HandleClosedError
from understudy.mechanism.sparse_vector import SparseState

WORKER = Path(__file__).resolve().parent.parent / "sparse_worker.py"


def start(path, what, where="never", number=0):
    command = [sys.executable, str(WORKER), str(path), what, where, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(path, what, where, number):
    process = start(path, what, where, number)
    process.communicate(timeout=300)
    assert process.returncode == 9


def state_of(handle):
    latest = handle._ledger.hidden(handle._debit)
    return latest.step, SparseState.from_bytes(latest.state)


@pytest.mark.parametrize(("where", "number", "kept"), [("settle", 0, 0), ("drawn", 2, 2), ("kept", 2, 3)])
def test_a_killed_handle_goes_on_from_its_own_threshold_and_counter(where, number, kept, tmp_path):
    """Charged once. What was kept stays, with the threshold it was compared with; what was not is drawn again."""
    path = tmp_path / "ledger.db"
    killed(path, "handle", where, number)
    ledger = ledger_at(str(path))
    assert ledger.spent.amount == EPSILON
    handle = opened(ledger)
    step, before = state_of(handle)
    said = [json.loads(answer) for answer in ledger.steps(handle._debit)]
    assert step == before.asked == len(said) == kept
    assert before.above == sum(said)
    if where != "settle" and not said[-1]:  # below: the threshold that stood before still stands
        assert state_of(opened(ledger))[1].noisy_threshold == before.noisy_threshold
    for query in questions():
        if handle.hits_left:
            handle.ask(query)
    assert ledger.spent.amount == EPSILON  # never paid again
    assert ledger.steps(handle._debit)[:kept] == [json.dumps(answer).encode() for answer in said]
    assert handle.hits_left == 0
    with pytest.raises(HandleClosedError):
        handle.ask(questions()[0])
    ledger.close()


def test_two_processes_share_one_threshold_and_one_count_of_hits(tmp_path):
    path = tmp_path / "ledger.db"
    ledger_at(str(path)).close()
    both = [start(path, "handle"), start(path, "handle")]
    out = [process.communicate(timeout=300)[0] for process in both]
    # One of them may find the handle closed by the other between its look and its question.
    told = [json.loads(text) for text, process in zip(out, both, strict=True) if process.returncode == 0]
    assert told
    ledger = ledger_at(str(path))
    handle = opened(ledger)
    assert ledger.spent.amount == EPSILON
    said = [json.loads(answer) for answer in ledger.steps(handle._debit)]
    assert sum(said) == HITS
    assert said[-1]
    assert sum(sum(answers) for answers in told) <= HITS
    ledger.close()


def test_at_this_price_the_answers_are_those_of_the_table(tmp_path):
    ledger = ledger_at(str(tmp_path / "ledger.db"))
    handle = opened(ledger)
    for query in questions():
        if handle.hits_left and abs(exact(query) - THRESHOLD) > 60:
            assert handle.ask(query) == (exact(query) > THRESHOLD)
    ledger.close()


@pytest.mark.parametrize(("where", "number"), [("settle", 2), ("kept", 2)])
def test_a_killed_construction_goes_on_and_its_answers_hold(where, number, tmp_path):
    """Killed with an answer paid and not kept, and with a hit kept and not written down as an update."""
    path = tmp_path / "ledger.db"
    killed(path, "online", where, number)
    ledger = ledger_at(str(path))
    mechanism = construction(ledger)
    for query in questions():
        answer = mechanism.ask(query)
        assert abs(float(answer.value) - exact(query)) <= float(answer.error)
    spent = ledger.spent
    again = construction(ledger)
    assert ledger.spent == spent
    assert again.updates > 0
    assert QUESTIONS < again.asked <= 2 * QUESTIONS
    # Runs: one for each update, the one under way, one whose hit was lost with its process. An answer for each
    # update; the one that was lost was paid twice, for in another process a frame is another table.
    answers = (again.updates + (where == "settle")) * again.terms.answer_price.amount
    runs = (spent.amount - float(answers)) / float(again.terms.run_epsilon)
    assert runs == pytest.approx(round(runs), abs=1e-6)
    assert again.updates <= round(runs) <= again.updates + 2
    ledger.close()
