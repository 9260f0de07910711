"""What every ledger does, wherever it keeps its books."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import (
    InsufficientBudgetError,
    LedgerError,
    OvertakenError,
    ParameterError,
    RefusedError,
    RequestConflictError,
)
from understudy.ledger.interface import OPENED, JournalStep, WantedCharge
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, LaplaceNoise, Selection, SparseVector, Together
from understudy.privacy.limits import Limits

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))
HALF = Selection(epsilon=Fraction(1, 2))


def charge(ledger, event=TENTH, *, request="r", question="q", analyst=""):
    return ledger.charge(event, question=question, request=request, analyst=analyst)


def test_a_debit_is_paid_once_and_refused_when_nothing_is_left(ledgers):
    ledger = ledgers()
    assert ledger.spent.units == 0
    first = charge(ledger)
    assert (first.cost.amount, first.repeated) == (0.1, False)
    again = charge(ledger)
    assert again == first
    assert again.repeated
    assert ledger.spent.units == UNITS // 10
    for i in range(9):
        charge(ledger, request=f"r{i}")
    assert ledger.remaining.units == 0
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="more")
    assert (refused.value.requested, refused.value.remaining, refused.value.limit) == (0.1, 0, "")
    assert ledger.spent.units == UNITS
    assert charge(ledger) == first  # a repeated request is never refused


def test_a_refusal_blocks_nothing(ledgers):
    ledger = ledgers()
    with pytest.raises(InsufficientBudgetError):
        charge(ledger, Selection(epsilon=Fraction(2)))
    with pytest.raises(RefusedError, match="delta"):
        charge(ledger, GaussianNoise(l2_squared=Fraction(1), variance=Fraction(1)))
    assert not charge(ledger).repeated
    assert ledger.spent.units == UNITS // 10


def test_one_request_one_question(ledgers):
    ledger = ledgers()
    charge(ledger, analyst="ada")
    for other in (
        {"question": "other", "analyst": "ada"},
        {"event": HALF, "analyst": "ada"},
        {"analyst": "bob"},
    ):
        with pytest.raises(RequestConflictError):
            charge(ledger, **other)
    assert ledger.spent.units == UNITS // 10


def test_a_conflict_shows_nothing_of_another_analyst(ledgers):
    ledger = ledgers()
    ledger.charge(TENTH, question="count illness = rare", request="r", analyst="ada")
    with pytest.raises(RequestConflictError) as refused:
        ledger.charge(TENTH, question="count", request="r", analyst="bob")
    assert (refused.value.question, refused.value.analyst) == ("", "")
    assert "rare" not in str(refused.value)
    assert "ada" not in str(refused.value)
    with pytest.raises(RequestConflictError) as refused:
        ledger.charge(TENTH, question="count", request="r", analyst="ada")
    assert (refused.value.question, refused.value.analyst) == ("count illness = rare", "ada")


def test_the_first_answer_stays(ledgers):
    ledger = ledgers()
    debit = charge(ledger)
    assert ledger.answered(debit) is None
    answer = bytes(range(256))
    assert ledger.settle(debit, answer) == answer
    assert ledger.settle(debit, b"another") == answer
    assert ledger.answered(charge(ledger)) == answer
    assert ledger.hidden(debit) is None
    assert not ledger.advance(debit, step=0, question="q", answer=b"", state=b"")


def test_a_handle_moves_one_step_at_a_time(ledgers):
    ledger = ledgers()
    debit = charge(ledger, SparseVector(epsilon=Fraction(1, 10)))
    assert ledger.hidden(debit) is None
    ledger.settle(debit, b"opened", hidden=b"state 0")
    assert ledger.advance(debit, step=0, question="a", answer=b"no", state=b"state 1")
    assert not ledger.advance(debit, step=0, question="b", answer=b"yes", state=b"state x")
    assert not ledger.advance(debit, step=2, question="b", answer=b"yes", state=b"state x")
    latest = ledger.hidden(debit)
    assert (latest.step, latest.state) == (1, b"state 1")
    assert "state" not in repr(latest)
    assert ledger.answered(debit) == b"opened"
    assert ledger.steps(debit) == [b"no"]
    assert ledger.advance(debit, step=1, question="c", answer=b"maybe", state=b"state 2")
    assert ledger.steps(debit) == [b"no", b"maybe"]
    assert ledger.quote(TENTH).units == UNITS // 10
    assert ledger.steps(charge(ledger, request="another")) == []
    assert ledger.spent.units == UNITS // 5


def test_a_handle_is_opened_with_its_debit(ledgers):
    ledger = ledgers()
    event = SparseVector(epsilon=Fraction(1, 10))
    debit = ledger.charge(event, question="q", request="h", hidden=b"state 0")
    assert (ledger.answered(debit), ledger.hidden(debit).state) == (OPENED, b"state 0")
    again = ledger.charge(event, question="q", request="h", hidden=b"another")
    assert (again.repeated, ledger.hidden(debit).state) == (True, b"state 0")
    unopened = charge(ledger, event, request="charged alone")
    ledger.charge(event, question="q", request="charged alone", hidden=b"first")
    assert (ledger.hidden(unopened).state, ledger.spent.units) == (b"first", UNITS // 5)
    assert ledger.advance(debit, step=0, question="a", answer=b"no", state=b"state 1")
    assert ledger.steps(debit, after=0) == [b"no"]
    assert ledger.steps(debit, after=1) == []


# ---- the read side


def test_a_debit_is_found_by_its_request_and_nothing_is_charged_for_that(ledgers):
    ledger = ledgers()
    assert ledger.find("r") is None
    debit = ledger.charge(HALF, question="why", request="r", analyst="ada")
    assert ledger.find("r") == debit
    assert (ledger.find("r").analyst, ledger.find("r").cost.units) == ("ada", UNITS // 2)
    assert ledger.find("R") is None
    assert ledger.find("") is None
    with pytest.raises(InsufficientBudgetError):
        charge(ledger, Selection(epsilon=Fraction(2)), request="refused")
    assert ledger.find("refused") is None
    assert ledger.spent.units == UNITS // 2


def test_debits_are_listed_by_how_their_requests_begin(ledgers):
    """By code points, whatever the collation of a server: case, spaces and wildcards are plain characters."""
    ledger = ledgers()
    named = [
        "spring 1",
        "spring 2",
        "spring2 1",
        "Spring 1",
        "spring",
        "sprin",
        "été a",
        "ete b",
        "%",
        "_x",
        "été",
    ]
    named += ["spring é", "spring \U0001f600", "spring-", "a#1", "a#10", "a1"]
    for i, name in enumerate(named):
        charge(ledger, Selection(epsilon=Fraction(i + 1, 1000)), request=name)
    for prefix in ("", "spring ", "spring", "s", "é", "été", "%", "_", "a#1", "a#", "nothing", "spring 1 "):
        wanted = [name for name in named if name.startswith(prefix)]
        assert [debit.request for debit in ledger.debits(prefix)] == wanted
    assert ledger.debits() == [ledger.find(name) for name in named]
    assert ledger.debits("spring 2") == [ledger.find("spring 2")]
    assert sum(debit.cost.units for debit in ledger.debits()) == ledger.spent.units


@given(st.lists(st.text(min_size=1, max_size=4), max_size=12, unique=True), st.text(max_size=2))
def test_a_ledger_in_memory_lists_what_begins_so(names, prefix):
    ledger, kept = MemoryLedger(ONE), []
    for name in names:
        if name.isprintable():
            charge(ledger, Selection(epsilon=Fraction(1, 1000)), request=name)
            kept.append(name)
    assert [d.request for d in ledger.debits(prefix)] == [n for n in kept if n.startswith(prefix)]


# ---- a journal's step, kept with a debit


def planned(number, text=b"plan", *, terms="terms", analyst=""):
    return JournalStep("j", terms, analyst, number, f"step {number + 1}", text, b"-")


def test_a_step_is_kept_with_its_debit_or_not_at_all(ledgers):
    ledger = ledgers()

    def buy(request, step, event=TENTH):
        return ledger.charge(event, question="q", request=request, step=step)

    def written():
        journal = ledger.find("j")
        return None if journal is None else ledger.steps(journal)

    with pytest.raises(InsufficientBudgetError):
        buy("j#1", planned(0), Selection(epsilon=Fraction(2)))
    assert (ledger.find("j"), ledger.find("j#1")) == (None, None)  # the name is still free
    with pytest.raises(LedgerError, match="does not hold the journal"):
        buy("j#2", planned(1))
    first = buy("j#1", planned(0, b"one"))
    assert [debit.request for debit in ledger.debits("j")] == ["j", "j#1"]
    assert (ledger.find("j").cost.units, first.cost.units, ledger.spent.units) == (
        0,
        UNITS // 10,
        UNITS // 10,
    )
    assert (ledger.answered(ledger.find("j")), ledger.answered(first), written()) == (OPENED, None, [b"one"])
    for refusal, step, event in (
        (OvertakenError, planned(0), TENTH),
        (OvertakenError, planned(2), TENTH),
        (RequestConflictError, planned(1, terms="others"), TENTH),
        (RequestConflictError, planned(1, analyst="bob"), TENTH),
        (InsufficientBudgetError, planned(1), Selection(epsilon=Fraction(95, 100))),
    ):
        with pytest.raises(refusal):
            buy("j#2", step, event)
        assert (written(), ledger.find("j#2"), ledger.spent.units) == ([b"one"], None, UNITS // 10)
    with pytest.raises(OvertakenError):  # whoever was quicker took the request too, for another question
        buy("j#1", planned(0), Selection(epsilon=Fraction(1, 20)))
    buy("j#2", planned(1, b"two"))
    assert (written(), ledger.hidden(ledger.find("j")).step, ledger.spent.units) == (
        [b"one", b"two"],
        2,
        UNITS // 5,
    )


def test_threads_take_the_steps_of_a_journal_one_after_the_other(ledgers):
    ledger, overtaken = ledgers(), []

    def work():
        number = 0
        while number < 8:
            try:
                ledger.charge(
                    Selection(epsilon=Fraction(1, 100)),
                    question="q",
                    request=f"j#{number + 1}",
                    step=planned(number),
                )
            except OvertakenError:
                overtaken.append(number)
            number += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(overtaken) == 3 * 8
    assert len(ledger.steps(ledger.find("j"))) == 8
    assert ledger.spent.units == 8 * UNITS // 100


def test_budgets_with_a_delta_are_kept_in_rho(ledgers):
    ledger = ledgers(Budget.of(1, 1e-6))
    event = Together((GaussianNoise(l2_squared=Fraction(1), variance=Fraction(50)), TENTH))
    debit = charge(ledger, event)
    assert debit.cost.currency == "rho"
    assert debit.cost.amount == pytest.approx(0.01 + 0.00125)
    assert charge(ledger, event) == debit


def test_what_was_spent_before_counts(ledgers):
    ledger = ledgers(opening=Fraction(3, 10))
    assert ledger.spent.amount == 0.3
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, Selection(epsilon=Fraction(71, 100)))
    assert refused.value.remaining == 0.7
    with pytest.raises(ParameterError):
        ledgers(opening=3, name="other")


def test_limits_narrow_and_never_widen(ledgers):
    now = [datetime(2024, 1, 31, 23, 59, tzinfo=UTC)]
    share = Fraction(2, 10)
    limits = Limits(analyst=share, day=Fraction(3, 10), month=Fraction(4, 10))
    ledger = ledgers(limits=limits, clock=lambda: now[0])
    charge(ledger, request="1", analyst="ada")
    charge(ledger, request="2", analyst="ada")
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="3", analyst="ada")
    assert (refused.value.limit, refused.value.remaining) == ("analyst 'ada'", 0)
    assert "analyst 'ada'" in str(refused.value)
    charge(ledger, request="4", analyst="bob")
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="5", analyst="bob")
    assert refused.value.limit == "day 2024-01-31"
    now[0] += timedelta(minutes=2)  # another day and month
    charge(ledger, request="5", analyst="bob")
    now[0] += timedelta(days=1)
    for i, name in enumerate(("cy", "cy", "di")):
        charge(ledger, request=f"c{i}", analyst=name)
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="6", analyst="eve")
    assert refused.value.limit == "day 2024-02-02"
    now[0] += timedelta(days=1)
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="6", analyst="eve")
    assert refused.value.limit == "month 2024-02"
    now[0] += timedelta(days=40)
    for i in range(3):
        charge(ledger, request=f"e{i}", analyst=f"e{i}")
    now[0] += timedelta(days=1)
    with pytest.raises(InsufficientBudgetError) as refused:  # everybody together
        charge(ledger, Selection(epsilon=Fraction(11, 100)), request="x", analyst="fay")
    assert refused.value.limit == ""
    assert ledger.spent.units == UNITS


def test_what_is_tried_is_what_would_be_charged_one_after_the_other(ledgers):
    limits = Limits(analyst=Fraction(7, 10))
    ledger, other = ledgers(limits=limits), ledgers(limits=limits, name="other")
    wanted = [(HALF, "ada"), (HALF, "ada"), (TENTH, "ada"), (HALF, "bob"), (TENTH, "bob")]
    tried = ledger.tried(wanted)
    assert ledger.spent.units == 0
    assert not ledger.is_begun
    for place, (event, analyst) in enumerate(wanted):
        expected = tried[place]
        assert other.due(event, analyst=analyst).cost == expected.cost
        if expected.refusal is None:
            assert charge(other, event, request=f"r{place}", analyst=analyst).cost == expected.cost
        else:
            with pytest.raises(InsufficientBudgetError) as refused:
                charge(other, event, request=f"r{place}", analyst=analyst)
            assert str(refused.value) == str(expected.refusal)
    assert [one.refusal is None for one in tried] == [True, False, True, False, True]
    assert ledger.tried([]) == []


def test_colluding_analysts_cannot_pass_the_total(ledgers):
    ledger = ledgers(limits=Limits(analyst=Fraction(1, 2)))
    for name in "ab":
        charge(ledger, HALF, request=name, analyst=name)
    for name in "cdefgh":
        with pytest.raises(InsufficientBudgetError) as refused:
            charge(ledger, TENTH, request=name, analyst=name)
        assert refused.value.limit == ""
    assert ledger.spent.units == UNITS


def test_names_that_no_store_can_keep_are_refused(ledgers):
    ledger = ledgers()
    for request in ("", "a\nb", "\x00", "\ud800", "x" * 201):
        with pytest.raises(ParameterError):
            charge(ledger, request=request)
    for analyst in ("a\x00", "\udfff", "x" * 201):
        with pytest.raises(ParameterError):
            charge(ledger, analyst=analyst)
    assert ledger.spent.units == 0
    long = "where \ud800 \x00 " + "é" * 5000
    debit = charge(ledger, question=long)
    assert charge(ledger, question=long) == debit
    assert len(debit.question) <= 2000
    with pytest.raises(RequestConflictError):
        charge(ledger, question=long + "!")


def test_threads_spend_exactly_the_budget(ledgers):
    ledger = ledgers()
    granted, refused = [], []

    def spend(name):
        for i in range(20):
            try:
                debit = charge(ledger, Selection(epsilon=Fraction(1, 50)), request=f"{name} {i}")
                assert ledger.settle(debit, f"{name} {i}".encode()) == f"{name} {i}".encode()
                granted.append(debit)
            except InsufficientBudgetError as error:
                refused.append(error.remaining)

    threads = [threading.Thread(target=spend, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(debit.cost.units for debit in granted) == UNITS == ledger.spent.units
    assert len({debit.number for debit in granted}) == 50
    assert refused == [0.0] * 110
    for debit in granted:
        assert ledger.answered(debit) == debit.request.encode()


def test_threads_move_a_handle_one_after_the_other(ledgers):
    ledger = ledgers()
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"0")
    said = []

    def ask():
        for _ in range(5):
            while True:
                latest = ledger.hidden(debit)
                new = int(latest.state) + 1
                if ledger.advance(debit, step=latest.step, question="q", answer=b"", state=b"%d" % new):
                    said.append(new)
                    break

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == list(range(1, 21))
    assert ledger.hidden(debit).state == b"20"


EVENTS = st.one_of(
    st.builds(Selection, epsilon=st.fractions(0, 1, max_denominator=1000)),
    st.builds(
        LaplaceNoise,
        l1=st.fractions(0, 2, max_denominator=50),
        scale=st.fractions(1, 100, max_denominator=50),
    ),
    st.builds(SparseVector, epsilon=st.fractions(0, 1, max_denominator=997)),
)


@given(st.lists(st.tuples(EVENTS, st.sampled_from(["", "ada", "bob"])), max_size=30))
def test_the_books_follow_the_plain_sum(requests):
    """The model: a list of granted prices. Every grant, refusal and total is the model's."""
    budget = Budget.of(Fraction(3, 2))
    ledger = MemoryLedger(budget, limits=Limits(analyst=Fraction(4, 5)))
    granted: list[tuple[int, str]] = []
    for i, (event, analyst) in enumerate(requests):
        price = budget.price(event).units
        total = sum(units for units, _ in granted)
        own = sum(units for units, name in granted if name == analyst)
        fits = total + price <= 3 * UNITS // 2 and own + price <= 4 * UNITS // 5
        if fits:
            assert ledger.charge(event, question="q", request=str(i), analyst=analyst).cost.units == price
            granted.append((price, analyst))
        else:
            with pytest.raises(InsufficientBudgetError) as refused:
                ledger.charge(event, question="q", request=str(i), analyst=analyst)
            assert refused.value.requested == price / UNITS
        assert ledger.spent.units == sum(units for units, _ in granted)


def test_many_are_charged_and_answered_at_once_each_as_if_it_came_alone(ledgers):
    ledger = ledgers()
    before = charge(ledger, HALF, request="known")
    wanted = [
        WantedCharge(TENTH, "q", "a", "ada"),
        WantedCharge(HALF, "q", "known"),  # charged before: nothing more
        WantedCharge(HALF, "another", "known"),
        WantedCharge(Selection(epsilon=Fraction(7, 10)), "q", "too dear"),
        WantedCharge(TENTH, "q", "\0"),
        WantedCharge(TENTH, "q", "b"),
        WantedCharge(TENTH, "q", "b"),  # twice in one batch: charged once
    ]
    first, again, other, dear, unwritable, second, twice = ledger.charge_all(wanted)
    assert (first.cost.amount, first.analyst, first.repeated) == (0.1, "ada", False)
    assert (again, again.repeated) == (before, True)
    assert isinstance(other, RequestConflictError)
    assert isinstance(dear, InsufficientBudgetError)
    assert isinstance(unwritable, ParameterError)
    assert (twice, second.repeated, twice.repeated) == (second, False, True)
    assert ledger.spent.units == 7 * UNITS // 10
    assert ledger.charge_all([]) == ledger.settle_all([]) == []

    ledger.settle(second, b"first")
    assert ledger.settle_all([(first, b"[1]"), (second, b"[2]"), (before, b"[3]")]) == [
        b"[1]",
        b"first",
        b"[3]",
    ]
    assert [ledger.answered(debit) for debit in (first, second, before)] == [b"[1]", b"first", b"[3]"]


def test_an_answer_to_what_another_ledger_charged_is_kept_nowhere(ledgers):
    one, other = ledgers(name="one"), ledgers(name="other")
    foreign, own = charge(one), charge(other, request="own")
    kept = other.settle_all([(foreign, b"[1]"), (own, b"[2]")])
    assert isinstance(kept[0], LedgerError)
    assert kept[1] == b"[2]"
