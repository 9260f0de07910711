"""A session whose processes die, or run at the same time, on one durable ledger.

Purchases of every kind are interrupted at every step: before the plan and the debit, which are one transaction,
after them, before the answer is kept, and after it. Version 0.1 wrote the plan in a transaction of its own: what a
crash left then, a plan that nobody paid for, is made as well.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import warm
from session_table import DOMAIN, TABLE, conjunction, curator
from session_worker import ledger_at, opened, questions
from understudy.declaration.declaration import SourceSpec
from understudy.errors import RequestConflictError
from understudy.ledger.interface import NOTHING
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions.funds import Funds
from understudy.sessions.opening import session as session_of
from understudy.sessions.terms import ranges
from understudy.table.source import open_source

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
WORKER = Path(__file__).resolve().parent.parent / "session_worker.py"


@pytest.fixture
def path(tmp_path):
    pq.write_table(TABLE, tmp_path / "table.parquet")
    return tmp_path / "ledger.db"


def start(path, where="never", number=0):
    return warm.Process([str(WORKER), str(path), where, str(number)])


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
    kinds = [json.loads(step)["kind"] for step in ledger.steps(again._buyer.journal.debit)]
    assert len(kinds) == again._known.step
    truth = [again.curator._truth.sums(question) for question in questions()]
    for run in runs:
        for (_, value, error), exact, question in zip(run, truth, questions(), strict=True):
            assert (np.abs(np.array(value) - exact) <= np.array(error) + 1e-9).all()
            known = again.ask_marginal(question)
            assert (np.abs(known.value - np.array(value)) <= known.error + np.array(error)).all()
    assert ledger.spent == spent
    ledger.close()


@pytest.mark.parametrize("where", ["plan", "debit", "answer", "kept"] if AUDIT else ["debit", "answer"])
def test_a_session_killed_anywhere_goes_on(where, path):
    killed = start(path, where, 2)
    killed.communicate(timeout=300)
    assert killed.returncode == 9
    check(path, finished(start(path)))


def test_two_processes_ask_in_one_session(path):
    ledger_at(str(path)).close()
    both = [start(path), start(path)]
    check(path, *(finished(process) for process in both))


# ---- every kind of purchase, interrupted at every step

PRIVATE_ROWS = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}
SESSIONS = {
    "questions": ({}, (), {"histogram", "fresh"}),
    "pure": ({"delta": 0.0}, (), {"histogram", "fresh"}),
    "rows": (PRIVATE_ROWS, (), {"rows", "fresh"}),
    "ranges": ({}, (ranges("age"),), {"grids"}),
    "marginals": ({}, (marginals(2),), {"histogram", "marginals"}),
}
QUESTIONS = [
    conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2),
    Marginal(DOMAIN, ("sex",), conjunction(town=np.arange(6) < 3).where),
    conjunction(age=np.arange(10) < 6),
]


class Killed(BaseException):
    """The process is gone."""


def life(folder, ledger, name, seed):
    """A process: the session as it finds it, and its answers."""
    declared, classes, _ = SESSIONS[name]
    source = open_source(SourceSpec("table.parquet"), base=folder)
    one = curator(ledger=ledger, seed=seed, source=source, **declared)
    session = session_of(one, alpha=0.02, beta=1e-9, queries=50, classes=classes, name="mine")
    if not one.relation.rows_are_public:
        session.ask("share age < 6")  # else nobody needs the number of rows
    return session, [session.ask_marginal(question) for question in QUESTIONS]


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """The domain counts as a large one: single questions are bought, and histograms before them, without rent."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    monkeypatch.setattr("understudy.sessions.histogram_rent.RENT", 0.0)
    monkeypatch.setattr("understudy.sessions.histogram_rent.COUNTS", 0.0)


@pytest.mark.parametrize("where", ["unpaid", "debit", "answer", *(["plan", "kept"] if AUDIT else [])])
@pytest.mark.parametrize("name", SESSIONS)
def test_every_kind_of_purchase_survives_every_interruption(name, where, path, monkeypatch):
    declared, _, wanted = SESSIONS[name]
    budget = Budget.of(500, declared.get("delta", 1e-6))
    whole = MemoryLedger(budget)
    kinds = [plan["kind"] for plan in plans(life(path.parent, whole, name, 1)[0])]
    assert wanted <= set(kinds)
    for number in sorted({kinds.index(kind) for kind in kinds}):
        ledger = MemoryLedger(budget)
        with monkeypatch.context() as patch:
            kill(patch, ledger, where, number)
            with pytest.raises(Killed):
                life(path.parent, ledger, name, 1)
        session, answers = life(path.parent, ledger, name, 2)
        requests = [debit.request for debit in ledger.debits()]
        assert requests == ["mine", *(f"mine#{i + 1}" for i in range(len(plans(session))))]
        assert all(ledger.answered(debit) is not None for debit in ledger.debits())
        assert kinds[number] in {plan["kind"] for plan in plans(session)}
        for question, answer in zip(QUESTIONS, answers, strict=True):
            exact = session.curator._truth.sums(question)
            assert (np.abs(answer.value - exact) <= answer.error + 1e-9).all()
            assert (answer.error <= session.width).all()
        spent = ledger.spent
        _, again = life(path.parent, ledger, name, 3)
        assert [a.value.tolist() for a in again] == [a.value.tolist() for a in answers]
        assert ledger.spent == spent


def plans(session):
    return [json.loads(step) for step in session.curator.ledger.steps(session._buyer.journal.debit)]


def kill(patch, ledger, where, number):
    """Let the process die at its purchase of that number."""
    method, after = {
        "plan": ("charge", False),
        "unpaid": ("charge", False),
        "debit": ("charge", True),
        "answer": ("settle", False),
        "kept": ("settle", True),
    }[where]
    left = [number + (method == "charge")]  # the session itself is charged first, and opened with that
    call = getattr(ledger, method)

    def dying(*args, **kwargs):
        left[0] -= 1
        if left[0] >= 0:
            return call(*args, **kwargs)
        if where == "unpaid":
            write_down(ledger, kwargs["step"])
        elif after:
            call(*args, **kwargs)
        raise Killed

    patch.setattr(ledger, method, dying)


def write_down(ledger, step):
    """A plan without its debit."""
    journal = ledger.find(step.journal)
    assert ledger.advance(
        journal, step=step.number, question=step.question, answer=step.text, state=step.state
    )


def test_a_plan_and_its_debit_are_one_transaction(path):
    """Neither is there without the other, and a purchase is two transactions: pay, keep."""
    ledger = ledger_at(str(path))
    writes = []
    writing = ledger._database.writing
    ledger._database.writing = lambda **how: writes.append(1) or writing(**how)  # type: ignore[method-assign]
    asked = opened(ledger, seed=1)
    assert len(writes) == 1
    for question in questions():
        bought, before = asked._known.step, len(writes)
        asked.ask_marginal(question)
        assert len(writes) - before == 2 * (asked._known.step - bought)
    assert asked._known.step > 1
    lazy = session_of(asked.curator, alpha=0.02, queries=100, name="lazy", lazily=True)
    before = len(writes)
    assert sum(lazy.price(question).units for question in questions()) > 0
    assert (len(writes), ledger.find("lazy")) == (before, None)
    lazy.ask_marginal(questions()[0])
    assert len(writes) - before == 2 * lazy._known.step > 0
    again = session_of(asked.curator, alpha=0.02, queries=100, name="lazy", lazily=True)
    assert again._known.step == lazy._known.step
    ledger.close()


def test_a_refused_purchase_leaves_neither_plan_nor_debit(path, monkeypatch):
    """The funds were there when the session looked, and were spent by others before the charge."""
    ledger = ledger_at(str(path))
    asked = opened(ledger, seed=1)
    monkeypatch.setattr(Funds, "check", lambda self, purchases: None)
    rest = Fraction(ledger.remaining.units, UNITS)
    ledger.charge(
        GaussianNoise(l2_squared=Fraction(1), variance=1 / (2 * rest)), question="q", request="others"
    )
    assert ledger.remaining.units == 0
    before = (len(ledger.debits()), asked._buyer.policy.beta.left)
    assert asked.ask_marginal(questions()[0]).source == "uncertified"
    assert (len(ledger.debits()), asked._buyer.policy.beta.left) == before
    assert (ledger.steps(asked._buyer.journal.debit), asked._known.step) == ([], 0)
    ledger.close()


def test_a_name_that_another_request_took_meanwhile_is_refused_and_nothing_is_paid(path):
    ledger = ledger_at(str(path))
    lazy = session_of(opened(ledger, seed=1).curator, alpha=0.02, queries=100, name="late", lazily=True)
    ledger.charge(NOTHING, question="something else", request="late")
    spent = ledger.spent
    with pytest.raises(RequestConflictError, match="the name 'late' belongs to a request"):
        lazy.ask_marginal(questions()[0])
    assert (ledger.spent, [debit.request for debit in ledger.debits("late")]) == (spent, ["late"])
    ledger.close()
