"""The ledger's books: what they admit and refuse, and that what they admit adds up to no more than the cap."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import any_events, pure_events
from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError
from understudy.ledger.books import Books
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, Cost, PureDP, epsilon, rho
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    RandomizedReport,
    Selection,
    Span,
)
from understudy.privacy.joint import Joint
from understudy.privacy.limits import Limits

FEW = settings(max_examples=25)
"""A cap in rho is found by a search, each time it is looked at."""

PURE = Budget.of(1)
APPROXIMATE = Budget.of(1, 1e-6)


# ---------------------------------------------------------------------------------------- the filter


def admit(books: Books, event: Event) -> Cost:
    """The total after an event, which nobody's share binds."""
    cost, total = books.admit(event, analyst="", at="")
    assert (total, cost.currency) == (books.spent, total.currency)
    return total


def admit_all(budget: Budget, events: list[Event]) -> tuple[Cost, list[Event]]:
    """Ask for every event in turn; go on after a refusal, which says what was asked for and what was left."""
    cap, books, admitted = budget.cap.units, Books(budget), []
    for event in events:
        price, spent = budget.price(event), books.spent
        if spent.units + price.units <= cap:
            assert admit(books, event).units == spent.units + price.units
            admitted.append(event)
            continue
        with pytest.raises(InsufficientBudgetError) as caught:
            admit(books, event)
        assert caught.value.requested == price.amount
        assert caught.value.remaining == (cap - spent.units) / UNITS
        assert caught.value.currency == price.currency
        assert books.spent == spent
    return books.spent, admitted


@given(st.lists(pure_events, max_size=30))
def test_a_pure_budget_never_admits_more_than_its_cap(events):
    spent, admitted = admit_all(PURE, events)
    assert spent.units <= PURE.cap.units
    assert spent == PURE.total(admitted)
    assert sum(map(epsilon, admitted)) <= Fraction(spent.units, UNITS) <= PURE.epsilon


@given(st.lists(any_events, max_size=12))
@FEW
def test_a_budget_in_rho_never_admits_more_than_its_cap(events):
    spent, admitted = admit_all(APPROXIMATE, events)
    assert spent.units <= APPROXIMATE.cap.units
    assert spent == APPROXIMATE.total(admitted)
    assert sum(map(rho, admitted)) <= Fraction(spent.units, UNITS)


def test_a_budget_can_be_spent_to_the_last_unit():
    tenth, books = LaplaceNoise(l1=Fraction(1), scale=Fraction(10)), Books(PURE)
    for _ in range(10):
        admit(books, tenth)
    assert books.spent == PURE.cap
    assert books.remaining == PureDP(0)
    with pytest.raises(InsufficientBudgetError) as caught:
        admit(books, LaplaceNoise(l1=Fraction(1), scale=Fraction(10**15)))
    assert (caught.value.requested, caught.value.remaining, caught.value.currency) == (1e-15, 0, "epsilon")
    assert admit(books, LaplaceNoise(l1=Fraction(0), scale=Fraction(1))) == PURE.cap


def test_a_budget_in_rho_can_be_spent_to_the_last_unit():
    whole = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(UNITS, 2 * APPROXIMATE.cap.units))
    books = Books(APPROXIMATE)
    assert admit(books, whole) == APPROXIMATE.cap
    with pytest.raises(InsufficientBudgetError, match="rho"):
        admit(books, whole)


def test_a_refusal_changes_nothing():
    books = Books(PURE)
    before = admit(books, Selection(epsilon=Fraction(9, 10)))
    with pytest.raises(InsufficientBudgetError, match="Nothing was spent"):
        admit(books, Selection(epsilon=Fraction(2, 10)))
    assert books.spent == before
    assert admit(books, Selection(epsilon=Fraction(1, 10))) == PURE.cap


def test_an_event_that_was_priced_is_not_priced_again_when_it_is_charged(monkeypatch):
    """The joint price may need sweeps over all tables: a price, a check and a charge share them."""
    worked = []
    after = Joint.after

    def noted(self, state, event):
        worked.append(event)
        return after(self, state, event)

    def event(i: int) -> Located:
        noise = LaplaceNoise(l1=Fraction(1), scale=Fraction(100 + i))
        return Located(noise=noise, region=(Span("a", 8, 1 << i),), relation="replace", split=False)

    monkeypatch.setattr(Joint, "after", noted)
    books, plain = Books(Budget.of(1)), Books(Budget.of(1))
    for i in range(5):
        worked.clear()
        quoted = books.copy().quote(event(i))
        assert books.due(event(i), analyst="ann", at="2024-01-01").cost == quoted
        books.quote(event(7))  # another one in between
        cost, total = books.admit(event(i), analyst="ann", at="2024-01-01")
        assert worked == [event(i), event(7)]
        assert (cost, total) == (quoted, plain.enter(event(i), analyst="ann", at="2024-01-01"))
    worked.clear()
    again = books.quote(event(0))  # of the new state, not of the one before
    assert worked == [event(0)]
    assert again == plain.quote(event(0))


def test_gaussian_noise_is_refused_by_a_pure_budget():
    with pytest.raises(RefusedError, match="delta"):
        admit(Books(PURE), GaussianNoise(l2_squared=Fraction(1), variance=Fraction(1)))


# ---------------------------------------------------------------------------------------- adaptive choice, exactly

Choices = dict[tuple[bool, ...], tuple[Fraction, bool]]


CHOICE = st.tuples(st.fractions(Fraction(1, 20), 1, max_denominator=40), st.booleans())


@st.composite
def analysts(draw: st.DrawFn) -> Choices:
    """What to ask after each sequence of reports: a parameter, and which way the question is put."""
    histories = [()] + [(a,) for a in (False, True)]
    histories += [(a, b) for a in (False, True) for b in (False, True)]
    histories += [(*h, c) for h in histories[3:] for c in (False, True)]
    return {history: draw(CHOICE) for history in histories}


def transcripts(budget: Budget, analyst: Choices) -> Iterator[tuple[float, float]]:
    """ln P of every transcript on two neighbours; a question that the budget refuses is not asked."""

    def walk(
        history: tuple[bool, ...], before: Books, here: float, there: float
    ) -> Iterator[tuple[float, float]]:
        if history not in analyst:
            yield here, there
            return
        parameter, turned = analyst[history]
        books = before.copy()
        try:
            admit(books, RandomizedReport(epsilon=parameter))
        except InsufficientBudgetError:
            yield here, there
            return
        told, lied = -np.logaddexp(0, -float(parameter)), -np.logaddexp(0, float(parameter))
        for report in (False, True):
            truth = report != turned
            yield from walk(
                (*history, report), books, here + (told if truth else lied), there + (lied if truth else told)
            )

    return walk((), Books(budget), 0.0, 0.0)


@given(analysts(), st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]))
def test_feldmanzrnic21_pure_filter_under_adaptive_parameters(analyst, promised):
    laws = np.array(list(transcripts(Budget.of(promised), analyst)))
    assert np.logaddexp.reduce(laws[:, 0]) == pytest.approx(0, abs=1e-9)
    assert np.abs(laws[:, 0] - laws[:, 1]).max() <= promised + 1e-9


@given(analysts(), st.sampled_from([Fraction(1), Fraction(3), Fraction(6)]))
@FEW
def test_feldmanzrnic21_zcdp_filter_under_adaptive_parameters(analyst, promised):
    budget = Budget.of(promised, 1e-3)
    laws = np.array(list(transcripts(budget, analyst)))
    for order in (1.01, 1.5, 2, 4, 16, 100):
        divergence = np.logaddexp.reduce(order * laws[:, 0] + (1 - order) * laws[:, 1]) / (order - 1)
        assert divergence <= order * budget.cap.amount + 1e-9


def test_the_filter_checks_see_an_analyst_who_is_not_stopped():
    """Four questions at 1/2, all the same way, against a budget of 1: without a filter the loss is 2."""
    same = {history: (Fraction(1, 2), False) for history in _all_histories(3)}
    stopped = np.array(list(transcripts(Budget.of(1), same)))
    free = np.array(list(transcripts(Budget.of(9), same)))
    assert np.abs(stopped[:, 0] - stopped[:, 1]).max() == pytest.approx(1)
    assert np.abs(free[:, 0] - free[:, 1]).max() == pytest.approx(2)


def _all_histories(length: int) -> Iterator[tuple[bool, ...]]:
    histories: list[tuple[bool, ...]] = [()]
    while histories:
        history = histories.pop()
        yield history
        if len(history) < length:
            histories += [(*history, False), (*history, True)]


def test_a_limit_by_name_holds_in_whatever_unicode_form_the_name_is_written():
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    for written in (composed, decomposed):
        limits = Limits(analysts={written: Fraction(1, 10), "*": Fraction(1, 2)})
        assert [limits.of_analyst(name) for name in (composed, decomposed)] == [Fraction(1, 10)] * 2
        assert limits.of_analyst("zoe") == Fraction(1, 2)
        books = Books(PURE, limits=limits)
        with pytest.raises(InsufficientBudgetError):
            books.admit(Selection(epsilon=Fraction(1, 5)), analyst=composed, at="")
    with pytest.raises(ParameterError, match="two limits"):
        Limits(analysts={composed: Fraction(1), decomposed: Fraction(2)})
