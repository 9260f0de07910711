"""The journal that every mechanism with a memory keeps: one name, one list of steps, one hidden state."""

from __future__ import annotations

from fractions import Fraction

import pytest

from understudy.errors import InsufficientBudgetError, OvertakenError, RequestConflictError
from understudy.ledger.interface import NOTHING
from understudy.ledger.journal import PUBLIC, Journal
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection, SparseVector

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request):
    if request.param == "memory":
        yield MemoryLedger(ONE)
        return
    stored = DurableLedger(request.getfixturevalue("sqlite"), "t", ONE)
    yield stored
    stored.close()


def test_what_a_journal_hides_stands_beside_its_last_step(ledger):
    journal = Journal(ledger, "terms", name="mine")
    assert list(journal.later()) == []
    assert journal.add("a", {"x": 1}, hidden=b"secret")
    again = Journal(ledger, "terms", name="mine")
    assert list(again.later()) == [{"x": 1}]
    assert again.hidden == journal.hidden == b"secret"
    assert (again.length, again.all()) == (1, [{"x": 1}])


def test_who_was_overtaken_reads_first(ledger):
    one, two = Journal(ledger, "terms", name="mine"), Journal(ledger, "terms", name="mine")
    assert one.add("a", 1, hidden=b"after 1")
    assert not two.add("b", 2, hidden=b"never kept")
    assert list(two.later()) == [1]
    assert (two.hidden, two.add("b", 2)) == (b"after 1", True)
    assert list(one.later()) == [2]
    assert one.all() == two.all() == [1, 2]


def test_a_step_that_was_not_taken_in_comes_again(ledger):
    writer, reader = Journal(ledger, "terms", name="mine"), Journal(ledger, "terms", name="mine")
    for step in range(3):
        writer.add("q", step)
    taken = []
    for step in reader.later():
        if step == 1:
            break  # as when a look fails
        taken.append(step)
    assert (taken, reader.length) == ([0], 1)
    assert list(reader.later()) == [1, 2]
    assert list(reader.later()) == []


def test_other_terms_are_refused_and_nothing_is_written(ledger):
    Journal(ledger, "terms", name="mine", analyst="ada")
    for terms, analyst in (("others", "ada"), ("terms", "bob")):
        for lazily in (False, True):
            with pytest.raises(RequestConflictError) as refused:
                Journal(ledger, terms, name="mine", analyst=analyst, lazily=lazily)
            shown = "terms" if analyst == "ada" else ""  # nobody is shown what another analyst asked
            assert (refused.value.request, refused.value.question) == ("mine", shown)
    assert [debit.request for debit in ledger.debits()] == ["mine"]


def test_a_free_name_stays_free_until_the_first_step(ledger):
    journal = Journal(ledger, "terms", name="mine", lazily=True)
    assert (list(journal.later()), journal.all(), journal.latest()) == ([], [], None)
    assert ledger.debits() == []
    other = Journal(ledger, "terms", name="mine", lazily=True)
    ledger.charge(TENTH, question="q", request="mine#1", step=journal.beside("first", "plan"))
    with pytest.raises(OvertakenError):
        ledger.charge(TENTH, question="q", request="mine#2", step=other.beside("first", "another"))
    assert list(other.later()) == ["plan"]
    assert [debit.request for debit in ledger.debits()] == ["mine", "mine#1"]
    assert (ledger.find("mine").event, ledger.hidden(ledger.find("mine")).state) == (NOTHING, PUBLIC)
    assert other.add("second", "step")
    assert ledger.steps(ledger.find("mine")) == [b'"plan"', b'"step"']


def test_a_first_state_is_drawn_once_and_paid_for_once(ledger):
    drawn = []

    def start() -> bytes:
        drawn.append(len(drawn))
        return f"threshold {drawn[-1]}".encode()

    event = SparseVector(epsilon=Fraction(3, 5))
    for _ in range(3):
        journal = Journal(ledger, "sparse", name="mine", event=event, start=start)
        assert journal.latest().state == b"threshold 0"
    assert (drawn, ledger.spent.amount) == ([0], 0.6)
    with pytest.raises(InsufficientBudgetError):
        Journal(ledger, "sparse", name="other", event=event, start=start)
    assert ledger.find("other") is None


def test_a_journal_without_a_name_is_its_own(ledger):
    one, two = Journal(ledger, "terms"), Journal(ledger, "terms")
    assert one.name != two.name
    one.add("q", 1)
    assert two.all() == []


def test_steps_and_state_are_of_one_moment(ledger, monkeypatch):
    """Another process's step that comes between the two reads does not leave its state without its step."""
    writer, reader = Journal(ledger, "terms", name="mine"), Journal(ledger, "terms", name="mine")
    writer.add("q", 1, hidden=b"after 1")
    steps = ledger.steps

    def racing(debit, *, after=0):
        if writer.length == 1:
            writer.add("q", 2, hidden=b"after 2")
        return steps(debit, after=after)

    monkeypatch.setattr(ledger, "steps", racing)
    assert list(reader.later()) == [1, 2]
    assert (reader.hidden, reader.length) == (b"after 2", 2)
