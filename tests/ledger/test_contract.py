"""What every ledger does, wherever it keeps its books."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError, RequestConflictError
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, LaplaceNoise, Selection, SparseVector, Together
from understudy.privacy.limits import Limits

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))
HALF = Selection(epsilon=Fraction(1, 2))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledgers(request):
    """Opens ledgers of one kind; a second opening of a durable one is the same ledger."""
    opened = []

    def build(budget=ONE, *, name="t", **settings):
        if request.param == "memory":
            return MemoryLedger(budget, **settings)
        opened.append(DurableLedger(request.getfixturevalue(request.param), name, budget, **settings))
        return opened[-1]

    yield build
    for ledger in opened:
        ledger.close()


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
