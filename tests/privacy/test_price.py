"""Prices: one value with exact amounts, one text for what is refused, and the noise that each buys."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import amount_for, noise_for
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.privacy.budget import Budget
from understudy.privacy.cost import PureDP, epsilon, rho
from understudy.privacy.event import NoisyMaximum, Pure, Selection
from understudy.privacy.price import CURRENCIES, Price
from understudy.privacy.relation import Sensitivity
from understudy.rational import MAX_EPSILON

ONE = Fraction(1)
amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=900)
prices = st.builds(Price, st.sampled_from(CURRENCIES), amounts)
moves = st.builds(Sensitivity, st.integers(1, 50), st.integers(1, 900))


@given(prices, moves)
def test_noise_costs_just_its_price(price, moved):
    mechanism = noise_for(price, moved)
    paid = epsilon if price.currency == "epsilon" else rho
    assert paid(mechanism.event) == price.amount


def test_epsilon_buys_laplace_noise_for_the_l1_norm_and_rho_gaussian_noise_for_the_euclidean_one():
    moved = Sensitivity(3, 5)
    assert noise_for(Price.of(epsilon=0.5), moved) == LaplaceMechanism(epsilon=Fraction(1, 2), l1=3)
    assert noise_for(Price.of(rho=0.5), moved) == GaussianMechanism(rho=Fraction(1, 2), l2_squared=5)


@given(st.sampled_from(CURRENCIES), moves, st.floats(0.5, 1e4))
def test_a_spread_has_the_price_whose_noise_has_the_spread(currency, moved, spread):
    price = Price(currency, Fraction(amount_for(currency, moved, spread)))
    assume(price.amount <= MAX_EPSILON)
    assert noise_for(price, moved).spread == pytest.approx(spread)


def test_the_variance_of_laplace_noise_is_that_of_its_discrete_law():
    mechanism = LaplaceMechanism(epsilon=Fraction(1, 2), l1=3)
    values = np.arange(-600, 601)
    law = np.exp(mechanism.log_law(0, values))
    assert mechanism.variance == pytest.approx(float(law @ values**2))
    q = exp(-1 / 6)
    assert mechanism.variance == pytest.approx(2 * q / (1 - q) ** 2)
    assert mechanism.variance < 2 * float(mechanism.scale) ** 2
    assert noise_for(Price.of(epsilon=1), Sensitivity(0, 0)).variance == 0
    assert noise_for(Price.of(rho=1), Sensitivity(0, 0)).variance == 0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "give one price"),
        ({"epsilon": 1, "rho": 1}, "give one price"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"rho": -1}, "rho must be positive"),
        ({"rho": float("nan")}, "rho must be finite"),
        ({"epsilon": 1e-13}, "at least 1e-12"),
        ({"epsilon": "1"}, "must be a number"),
    ],
)
def test_what_is_no_price_is_refused_in_the_words_of_a_keyword(given, match):
    with pytest.raises(ParameterError, match=match):
        Price.of(**given)


def test_prices_are_what_they_say():
    with pytest.raises(ParameterError, match="must not be negative"):
        Price("rho", Fraction(-1))
    with pytest.raises(ParameterError, match="epsilon or in rho"):
        Price("delta", ONE)  # type: ignore[arg-type]


@given(prices)
def test_stored_prices_come_back(price):
    assert Price.from_plain({"share": 0.1, **price.as_plain()}) == price
    assert list(price.as_plain().items()) == [(price.currency, str(price.amount))]
    assert str(price) == f"{price.currency} {price.amount}"


def test_a_plan_without_a_price_is_refused():
    with pytest.raises(ParameterError, match="no price"):
        Price.from_plain({"share": 0.1})


@given(prices, st.integers(1, 1000))
def test_parts_in_whole_units_never_add_up_to_more(price, parts):
    part = (price / parts).whole_units
    assert part.amount * parts <= price.amount
    assert price.amount / parts - part.amount < Fraction(1, 10**15)
    assert (part.amount * 10**15).denominator == 1
    assert price / parts * parts == price


@given(prices, st.sampled_from([Selection, NoisyMaximum]))
def test_the_largest_epsilon_of_a_selection_costs_no_more_than_its_price(price, kind):
    found = Budget.of(1, 1e-6).epsilon_within(price, kind(epsilon=ONE))
    paid = epsilon if price.currency == "epsilon" else rho
    assert paid(kind(epsilon=found)) <= price.amount
    assert paid(kind(epsilon=found + Fraction(2, 10**12))) > price.amount


def test_a_unit_is_an_event_of_epsilon_one():
    with pytest.raises(ParameterError, match="epsilon 1"):
        Budget.of(1, 1e-6).epsilon_within(Price.of(rho=1), Pure(epsilon=Fraction(2)))


def test_a_budget_says_the_most_that_a_price_costs():
    pure, both = Budget.of(2), Budget.of(2, 1e-6)
    assert (pure.currency, both.currency) == ("epsilon", "rho")
    assert pure.whole == Price.of(epsilon=2)
    assert both.whole.amount * 10**15 == both.cap.units
    assert pure.most(Price.of(epsilon=0.5)) == PureDP(5 * 10**14)
    assert both.most(Price.of(epsilon=0.5)).units == 125 * 10**12
    assert both.most(Price.of(rho=0.5)).units == 5 * 10**14
    with pytest.raises(RefusedError, match="rho"):
        pure.most(Price.of(rho=0.5))
