"""An open sparse vector whose processes die, or run at the same time, on one durable ledger."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy.engine import URL

import warm
from counted import curator_of
from sparse_worker import (
    CODES,
    DOMAIN,
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
from understudy.errors import HandleClosedError, RequestConflictError
from understudy.ledger.store import DurableLedger
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse, SparseState, best_share
from understudy.privacy.budget import Budget
from understudy.privacy.cost import concentrated
from understudy.privacy.event import SparseVector
from understudy.table.source import in_memory
from understudy.table.truth import Truth

WORKER = Path(__file__).resolve().parent.parent / "sparse_worker.py"


def start(path, what, where="never", number=0):
    return warm.Process([str(WORKER), str(path), what, where, str(number)])


def killed(path, what, where, number):
    process = start(path, what, where, number)
    process.communicate(timeout=300)
    assert process.returncode == 9


def state_of(handle):
    latest = handle._journal.latest()
    return latest.step, SparseState.from_bytes(latest.state)


@pytest.mark.parametrize(("where", "number", "kept"), [("charged", 0, 0), ("drawn", 2, 2), ("kept", 2, 3)])
def test_a_killed_handle_goes_on_from_its_own_threshold_and_counter(where, number, kept, tmp_path):
    """Charged once. What was kept stays, with the threshold it was compared with; what was not is drawn again."""
    path = tmp_path / "ledger.db"
    killed(path, "handle", where, number)
    ledger = ledger_at(str(path))
    assert ledger.spent.amount == EPSILON
    handle = opened(ledger)
    step, before = state_of(handle)
    said = [json.loads(answer) for answer in ledger.steps(ledger.find("mine"))]
    assert step == before.asked == len(said) == kept
    assert before.above == sum(said)
    if where != "charged" and not said[-1]:  # below: the threshold that stood before still stands
        assert state_of(opened(ledger))[1].noisy_threshold == before.noisy_threshold
    for query in questions():
        if handle.hits_left:
            handle.ask(query)
    assert ledger.spent.amount == EPSILON  # never paid again
    assert ledger.steps(ledger.find("mine"))[:kept] == [json.dumps(answer).encode() for answer in said]
    assert handle.hits_left == 0
    with pytest.raises(HandleClosedError):
        handle.ask(questions()[0])
    ledger.close()


@pytest.mark.parametrize("numeric", [False, True])
def test_a_handle_that_version_0_1_opened_is_found_again_and_keeps_its_price(numeric, tmp_path):
    """It recorded no hits. The same request with other terms is still refused, and a new one costs less in rho."""
    budget = Budget.of(1, 1e-6)
    ledger = DurableLedger(URL.create("sqlite", database=str(tmp_path / "l.db")), "t", budget)
    here = curator_of(Truth(in_memory(pa.table({"x": CODES})), DOMAIN), epsilon=1, ledger=ledger, seed=None)
    kind = NumericSparse if numeric else AboveThreshold
    mechanism = kind(epsilon=Fraction(1, 10), sensitivity=1, threshold=THRESHOLD, hits=HITS)
    question = f"sparse {'numeric ' if numeric else ''}threshold {THRESHOLD} hits {HITS}{here.edition}"
    old = ledger.charge(SparseVector(epsilon=Fraction(1, 10)), question=question, request="old")
    ledger.settle(old, b"opened", hidden=SparseState(17, 1, 5).as_bytes())
    assert ledger.spent.amount == 0.005
    terms = {"threshold": THRESHOLD, "epsilon": Fraction(1, 10), "numeric": numeric}
    handle = here.sparse(**terms, hits=HITS, request="old")
    assert ledger.spent.amount == 0.005
    assert handle.hits_left == HITS - 1
    for other in ({"hits": HITS + 1}, {"hits": HITS, "epsilon": Fraction(1, 20)}, {"hits": 1}):
        with pytest.raises(RequestConflictError):
            here.sparse(**(terms | other), request="old")
    here.sparse(**terms, hits=HITS, request="new")
    assert ledger.spent.units == 5 * 10**12 + concentrated(mechanism.event).units
    assert concentrated(mechanism.event).units <= 5 * 10**12 // HITS + 1
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
    assert ledger.spent.amount == EPSILON
    said = [json.loads(answer) for answer in ledger.steps(ledger.find("mine"))]
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
    # What was told is repeated and not counted again; one may have been counted and not told.
    assert QUESTIONS <= again.asked <= QUESTIONS + 1
    # Runs: one for each update, the one under way, one whose hit was lost with its process. An answer for each
    # update; the one that was lost was paid twice, for in another process a frame is another table.
    answers = (again.updates + (where == "settle")) * again.terms.answer_price.amount
    runs = (spent.amount - float(answers)) / float(again.terms.run_epsilon)
    assert runs == pytest.approx(round(runs), abs=1e-6)
    assert again.updates <= round(runs) <= again.updates + 2
    ledger.close()


def test_a_handle_keeps_the_share_that_it_was_opened_with():
    """Asked for 1,000 values it shares its price for them; one that was opened in equal parts goes on so."""
    one = curator_of(Truth(in_memory(pa.table({"x": CODES})), DOMAIN), epsilon=10)
    ledger = one.ledger
    wide = one.sparse(threshold=THRESHOLD, epsilon=1, request="equal")
    near = one.sparse(threshold=THRESHOLD, epsilon=1, request="near", queries=1000)
    assert wide._mechanism.share == Fraction(1, 2)
    assert near._mechanism.share == best_share(1000, 0.05)
    assert near.alpha(1000, 0.05) < wide.alpha(1000, 0.05)
    assert ledger.find("equal").event == ledger.find("near").event  # shared otherwise, charged the same
    assert ledger.find("equal").question.startswith(f"sparse threshold {THRESHOLD} hits 1")
    assert " share " not in ledger.find("equal").question  # as earlier versions wrote it
    again = one.sparse(threshold=THRESHOLD, epsilon=1, request="near")
    assert again._mechanism == near._mechanism
    same = one.sparse(threshold=THRESHOLD, epsilon=1, request="equal", queries=1000)
    assert same._mechanism == wide._mechanism
