"""Budgets: their caps, and what lists of events cost together. What they admit is in the tests of the books."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import pure_events
from understudy.errors import ParameterError, RefusedError
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_delta
from understudy.privacy.cost import UNITS, ZCDP, PureDP
from understudy.privacy.event import (
    GaussianNoise,
    Selection,
)

FEW = settings(max_examples=25)
"""A cap in rho is found by a search, each time it is looked at."""

PURE = Budget.of(1)
APPROXIMATE = Budget.of(1, 1e-6)


# ---------------------------------------------------------------------------------------- caps


@given(st.fractions(Fraction(1, 10**6), 100))
def test_a_pure_cap_is_rounded_down_by_less_than_a_unit(amount):
    cap = Budget.of(amount).cap
    assert isinstance(cap, PureDP)
    assert 0 <= amount - Fraction(cap.units, UNITS) < Fraction(1, UNITS)


@given(st.fractions(Fraction(1, 100), 50, max_denominator=1000), st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3]))
@FEW
def test_a_cap_in_rho_keeps_the_promise(promised, delta):
    budget = Budget.of(promised, delta)
    assert isinstance(budget.cap, ZCDP)
    assert budget.cap.units > 0
    assert zcdp_delta(budget.cap.amount, float(promised)) <= delta * (1 + 1e-8)


def test_a_budget_is_read_as_it_is_written():
    assert Budget.of(0.1) == Budget.of(Fraction(1, 10))
    assert Budget.of(0.1).cap == PureDP(UNITS // 10)
    assert (PURE.is_pure, APPROXIMATE.is_pure) == (True, False)
    assert (str(PURE), str(APPROXIMATE)) == ("epsilon 1", "epsilon 1, delta 1e-06")
    with pytest.raises(FrozenInstanceError):
        PURE.epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("bad", [0, -1, nan, inf, 1e308, 1001, True, "1", None])
def test_a_budget_refuses_an_epsilon_that_is_not_one(bad):
    with pytest.raises(ParameterError):
        Budget.of(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2, nan, inf, True, "0", None])
def test_a_budget_refuses_a_delta_that_is_not_one(bad):
    with pytest.raises(ParameterError):
        Budget.of(1, bad)


# ---------------------------------------------------------------------------------------- totals


@given(st.lists(pure_events, max_size=8), st.randoms())
def test_a_total_depends_on_the_events_and_not_on_their_order(events, random):
    shuffled = list(events)
    random.shuffle(shuffled)
    for budget in (PURE, APPROXIMATE):
        assert budget.total(shuffled) == budget.total(events)


def test_a_total_is_in_one_currency():
    event = Selection(epsilon=Fraction(1, 100))
    with pytest.raises(TypeError):
        PURE.price(event) + APPROXIMATE.price(event)  # type: ignore[operator]


def test_gaussian_noise_has_no_price_in_a_pure_budget():
    with pytest.raises(RefusedError, match="delta"):
        PURE.price(GaussianNoise(l2_squared=Fraction(1), variance=Fraction(1)))
