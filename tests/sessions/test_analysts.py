"""One session, several analysts: what one bought all know, each question is paid by the analyst it names."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from session_table import TABLE, conjunction, curator
from understudy.declaration.declaration import SourceSpec
from understudy.errors import InsufficientBudgetError, ParameterError, RequestConflictError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise
from understudy.privacy.limits import Limits
from understudy.sessions.opening import session as session_of
from understudy.table.source import open_source

pytestmark = pytest.mark.usefixtures("generous")

YOUNG = "count age < 4 and town = 'a'"
OLD = "count age >= 4 and sex = F and town != 'b'"


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """The domain counts as a large one: single questions are bought, and histograms before them."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


@pytest.fixture
def ledger():
    return MemoryLedger(Budget.of(500, 1e-6))


def shared(ledger, *, source=None, queries=50, **more):
    one = curator(ledger=ledger, seed=3, source=source)
    return session_of(one, alpha=0.02, queries=queries, name="team", **more)


def payers(ledger):
    """Who paid for each purchase, in their order."""
    return [debit.analyst for debit in ledger.debits("team#")]


def kept(session):
    """What each step keeps of whom it was bought for."""
    return [
        json.loads(step).get("for") for step in session.curator.ledger.steps(session._buyer.journal.debit)
    ]


def leave(ledger, analyst, units):
    """Let an analyst spend elsewhere all but so many units."""
    spent = Fraction(ledger.available(analyst).units - units, UNITS)
    event = GaussianNoise(l2_squared=Fraction(1), variance=1 / (2 * spent))
    ledger.charge(event, question="elsewhere", request=f"elsewhere {analyst}", analyst=analyst)


def test_what_one_analyst_bought_everybody_knows(ledger):
    session = shared(ledger)
    bought = session.ask(YOUNG, analyst="ada")
    spent, steps = ledger.spent, session._known.step
    assert bought.source == "measured"
    for analyst in ("ada", "bob", None):
        again = session.ask(YOUNG, analyst=analyst)
        assert (again.source, again.cost.units) == ("repeat", 0)
        assert (again.value == bought.value).all()
        assert session.price(YOUNG, analyst).units == 0
    assert (ledger.spent, session._known.step) == (spent, steps)
    session.ask(OLD, analyst="bob")
    session.ask("count sex = M and age < 2")
    assert payers(ledger)[:steps] == ["ada"] * steps
    assert set(payers(ledger)) == {"ada", "bob", ""}
    assert [("" if entry is None else entry["analyst"]) for entry in kept(session)] == payers(ledger)


def test_another_process_reads_back_what_each_analyst_bought(ledger):
    first = shared(ledger)
    said = {q: first.ask(q, analyst=who).value.tolist() for q, who in ((YOUNG, "ada"), (OLD, "bob"))}
    spent = ledger.spent
    second = shared(ledger, analyst="eve")
    assert (second.analyst, second.owner, second._known.step) == ("eve", "", first._known.step)
    assert {question: second.ask(question).value.tolist() for question in said} == said
    assert ledger.spent == spent
    second.ask("count sex = M and age < 2 and town = 'c'")
    assert payers(ledger)[-1] == "eve"
    assert first.ask("count sex = M and age < 2 and town = 'c'").source == "repeat"


def test_a_session_opened_with_an_analyst_is_their_own(ledger):
    own = shared(ledger, analyst="ada")
    for refused in (lambda: own.ask(YOUNG, analyst="bob"), lambda: own.price(YOUNG, "")):
        with pytest.raises(ParameterError, match="'ada''s own"):
            refused()
    with pytest.raises(RequestConflictError, match="belongs to another analyst"):
        shared(ledger, analyst="bob")
    with pytest.raises(RequestConflictError, match="belongs to another analyst"):
        shared(ledger)
    assert own.ask(YOUNG, analyst="ada").source == "measured"
    assert kept(own) == [None] * own._known.step
    assert shared(ledger, analyst="ada").ask(YOUNG).source == "repeat"


def test_the_limit_of_the_analyst_who_asks_binds_and_nobody_elses():
    ledger = MemoryLedger(Budget.of(500, 1e-6), limits=Limits(analyst=Fraction(1, 2)))
    leave(ledger, "ada", 10**6)
    session = shared(ledger)
    question = conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2)
    assert session.ask(question, analyst="ada").source == "uncertified"
    with pytest.raises(InsufficientBudgetError, match="analyst"):
        session.ask(question, analyst="ada", uncertified=False)
    assert session._known.step == 0
    bought = session.ask(question, analyst="bob")
    assert bought.source == "measured"
    assert bought.error <= session.width
    again = session.ask(question, analyst="ada", uncertified=False)
    assert (again.source, again.value.tolist()) == ("repeat", bought.value.tolist())


def test_prices_and_purchases_go_by_the_limits_of_the_analyst_who_asks():
    """Histograms come before a question where they leave enough for it: bob can pay for them, and ada cannot."""
    ledger = MemoryLedger(Budget.of(500, 1e-6), limits=Limits(analyst=Fraction(1, 2)))
    session = shared(ledger, queries=10_000)
    dear = session.price(YOUNG, "bob")
    planned = session._parts.planned(session._reader.read(YOUNG).marginals, "bob").purchases
    assert "histogram" in {purchase.kind for purchase in planned}
    leave(ledger, "ada", dear.units - 1)
    cheap = session.price(YOUNG, "ada")
    assert 0 < cheap.units < dear.units == session.price(YOUNG, "bob").units
    assert session.ask(YOUNG, analyst="ada").source == "measured"
    assert set(payers(ledger)) == {"ada"}
    bought = {json.loads(step)["kind"] for step in ledger.steps(session._buyer.journal.debit)}
    assert bought <= {"fresh", "look"}


# ---- requests


def test_a_request_is_charged_once_and_tells_its_cost_again(ledger):
    session = shared(ledger)
    first = session.ask(YOUNG, analyst="ada", request="r1")
    spent = ledger.spent
    assert first.cost == spent
    for one in (session, shared(ledger)):
        again = one.ask(YOUNG, analyst="ada", request="r1")
        assert (again.value.tolist(), again.cost) == (first.value.tolist(), spent)
        assert one.ask(YOUNG, analyst="ada", request="r2").cost.units == 0
        for refused in (lambda one=one: one.ask(OLD, analyst="ada", request="r1"),
                        lambda one=one: one.ask(YOUNG, analyst="bob", request="r1")):  # fmt: skip
            with pytest.raises(RequestConflictError, match="'r1' was used for another") as conflict:
                refused()
            assert (conflict.value.request, conflict.value.question) == ("r1", "")
    assert ledger.spent == spent


STATEMENT = "SELECT sex, avg(age) FROM t WHERE town = 'a' GROUP BY sex"


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("question", [YOUNG, STATEMENT])
@pytest.mark.parametrize("method", ["charge", "settle"])
@pytest.mark.parametrize("after", [False, True])
def test_a_request_that_was_killed_anywhere_is_finished_and_paid_once(
    question, method, after, monkeypatch, tmp_path
):
    """At every purchase of the question: before and after the debit, before and after its answer is kept."""
    pq.write_table(TABLE, tmp_path / "table.parquet")

    def opened(ledger):
        """A process: all of them see one version of the table."""
        return shared(ledger, source=open_source(SourceSpec("table.parquet"), base=tmp_path))

    budget = Budget.of(500, 1e-6)
    whole = opened(MemoryLedger(budget))
    expected = whole.ask(question, analyst="ada", request="r")
    assert expected.cost == whole.curator.ledger.spent
    for number in range(whole._known.step):
        ledger = MemoryLedger(budget)
        first = opened(ledger)
        with monkeypatch.context() as patch:
            left, call = [number], getattr(ledger, method)

            def dying(*args, left=left, call=call, **kwargs):
                left[0] -= 1
                if left[0] >= 0:
                    return call(*args, **kwargs)
                if after:
                    call(*args, **kwargs)
                raise Killed

            patch.setattr(ledger, method, dying)
            with pytest.raises(Killed):
                first.ask(question, analyst="ada", request="r")
        session = opened(ledger)
        answer = session.ask(question, analyst="ada", request="r")
        assert answer.cost == ledger.spent
        assert answer.source != "uncertified"
        assert set(payers(ledger)) == {"ada"}
        assert [debit.request for debit in ledger.debits("team#")] == [
            f"team#{i + 1}" for i in range(session._known.step)
        ]
        again = opened(ledger).ask(question, analyst="ada", request="r")
        assert again.cost == answer.cost == ledger.spent


@pytest.mark.parametrize(("owner", "asks"), [("ada", "ada"), ("", "bob"), ("", "")])
def test_a_plan_that_nobody_paid_for_is_charged_to_whom_it_names(ledger, owner, asks, monkeypatch):
    """As version 0.1 left it in a crash: such a step names nobody, and then the session's own analyst pays."""
    steps = []

    def dying(*args, step=None, **kwargs):
        steps.append(step)
        raise Killed

    first = shared(ledger, analyst=owner)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "charge", dying)
        with pytest.raises(Killed):
            first.ask(YOUNG, analyst=asks)
    [step] = steps
    assert (b'"for"' in step.text) == (owner != asks)
    journal = ledger.find(step.journal)
    assert ledger.advance(
        journal, step=step.number, question=step.question, answer=step.text, state=step.state
    )
    assert payers(ledger) == []
    assert shared(ledger, analyst=owner).purchases == 1
    assert payers(ledger) == [asks]
