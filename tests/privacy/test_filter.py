"""The three privacy filters: their caps, their prices beside each other, and what an adaptive adversary can
reach."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import any_events
from understudy.errors import ParameterError, RefusedError
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import (
    GaussianNoise,
    LaplaceNoise,
    Located,
    NoisyMaximum,
    Pure,
    RandomizedReport,
    RoundedNormal,
    Selection,
    Span,
    SparseVector,
    Together,
)
from understudy.privacy.filter import FILTERS, GdpFilter, RenyiFilter, ZcdpFilter
from understudy.privacy.joint import Joint
from understudy.privacy.price import Price

ONE, DELTA = Fraction(1), Fraction(1, 10**6)
ZCDP, RENYI, GDP = (Budget.of(1, DELTA, filter=name) for name in FILTERS)
epsilons = st.fractions(Fraction(1, 10), 6, max_denominator=1000)
deltas = st.integers(3, 14).map(lambda digits: Fraction(1, 10**digits))


# ---- caps


def test_pins_of_the_caps():
    assert ZCDP.cap.amount == pytest.approx(0.0243560, abs=5e-8)
    assert isinstance(RENYI.filter, RenyiFilter)
    assert float(RENYI.filter.order) == pytest.approx(21.98, abs=0.005)
    at_22 = Budget.of(1, DELTA, filter="renyi", order=22)
    assert 22 * at_22.cap.amount == pytest.approx(0.5358311, abs=5e-8)
    kept = Budget.of(1, DELTA, key_delta=DELTA / 10, filter="renyi", order=22)
    assert 22 * kept.cap.amount == pytest.approx(0.5308139, abs=5e-8)
    assert GDP.cap.amount == pytest.approx(0.0271740, abs=5e-8)
    assert GDP.cap.units / ZCDP.cap.units - 1 == pytest.approx(0.1157, abs=5e-5)


@given(epsilons, deltas)
@settings(max_examples=25)
def test_cks20_corollary_13_the_best_order_has_the_cap_of_zcdp(epsilon, delta):
    """Never below it, and above it by no more than what its search was rounded by."""
    concentrated, renyi = Budget.of(epsilon, delta), Budget.of(epsilon, delta, filter="renyi")
    assert concentrated.cap.units <= renyi.cap.units <= concentrated.cap.units * (1 + 1e-8) + 1


@given(epsilons, deltas, st.fractions(Fraction(11, 10), 80, max_denominator=100))
@settings(max_examples=25)
def test_a_cap_of_one_order_is_never_too_large(epsilon, delta, order):
    """By the inequality that it rests on: at the cap, exp((a-1)(D - ε))·(1 - 1/a)^(a-1)/a is at most δ."""
    try:
        cap = Budget.of(epsilon, delta, filter="renyi", order=order).cap
    except ParameterError:  # an order that has nothing to spend here
        return
    a, divergence = float(order), float(order) * cap.amount
    log_delta = (a - 1) * (divergence - float(epsilon)) + (a - 1) * log(1 - 1 / a) - log(a)
    assert log_delta <= log(delta) + 1e-9
    assert log_delta >= log(delta) - 1e-9 - (a - 1) * a / UNITS


def test_an_order_that_has_nothing_to_spend_is_refused_with_one_that_has():
    with pytest.raises(ParameterError, match="nothing to spend") as refused:
        Budget.of(Fraction(1, 10), DELTA, filter="renyi", order=5)
    assert "near 166" in str(refused.value)


# ---- prices beside each other


@given(any_events)
def test_nothing_is_dearer_at_the_best_order_than_in_zcdp(event):
    assert RENYI.price(event).units <= ZCDP.price(event).units


@given(any_events, st.fractions(Fraction(101, 100), 300, max_denominator=1000))
def test_nothing_is_dearer_at_any_order_than_in_zcdp(event, order):
    assert RenyiFilter(order).price(event) <= ZcdpFilter().price(event)


@pytest.mark.parametrize("kind", [GaussianNoise, RoundedNormal])
def test_normal_noise_has_one_price(kind):
    event = kind(l2_squared=Fraction(3), variance=Fraction(10**4))
    prices = {budget.price(event).units for budget in (ZCDP, RENYI, GDP)}
    assert max(prices) - min(prices) <= 1
    assert min(prices) == 3 * UNITS // (2 * 10**4)


@given(any_events)
def test_in_gdp_nothing_takes_less_than_the_variance_of_its_loss(event):
    """And not more than 2π times its ρ: a large selection is taken as a pure event."""
    try:
        price = GDP.filter.price(event)
    except RefusedError:  # noise of a few steps
        return
    rho = ZcdpFilter().price(event)
    assert Fraction(4, 5) * rho <= price + Fraction(1, UNITS)
    assert price <= 2 * Fraction(355, 113) * rho + Fraction(1, UNITS)


def test_a_pure_budget_refuses_as_ever():
    for name in ("renyi", "gdp"):
        with pytest.raises(ParameterError, match="pure epsilon"):
            Budget.of(1, filter=name)
    with pytest.raises(RefusedError, match="no pure epsilon"):
        Budget.of(1).price(GaussianNoise(l2_squared=ONE, variance=ONE))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"filter": "rdp"}, "zcdp, renyi or gdp"),
        ({"filter": "gdp", "order": 22}, "belongs to the filter renyi"),
        ({"filter": "renyi", "reserve": 0.1}, "belongs to the filter gdp"),
        ({"filter": "renyi", "order": 1}, "more than 1"),
        ({"filter": "gdp", "reserve": 1}, "part of the budget"),
    ],
)
def test_what_does_not_belong_to_a_filter_is_refused(wrong, said):
    with pytest.raises(ParameterError, match=said):
        Budget.of(1, DELTA, **wrong)


# ---- an ε for a price


@pytest.mark.parametrize("budget", [ZCDP, RENYI, GDP], ids=FILTERS)
@pytest.mark.parametrize("unit", [Pure(epsilon=ONE), Selection(epsilon=ONE), NoisyMaximum(epsilon=ONE)])
@pytest.mark.parametrize("amount", ["1e-9", "0.00002", "0.001", "0.02"])
def test_the_epsilon_within_a_price_is_the_largest(budget, unit, amount):
    price = Price("rho", Fraction(amount))
    found = budget.epsilon_within(price, unit)
    kind = type(unit)
    assert budget.filter.price(kind(epsilon=found)) <= price.amount
    assert budget.filter.price(kind(epsilon=found + Fraction(2, 10**12))) > price.amount
    assert budget.epsilon_within(Price("epsilon", price.amount), unit) == price.amount


# ---- words, shares and what a total implies


def test_a_total_is_told_as_an_epsilon():
    for budget in (ZCDP, RENYI, GDP):
        assert budget.spent_epsilon(budget.cap) == pytest.approx(1, abs=1e-6)
        assert budget.spent_epsilon(type(budget.cap)(0)) == 0
        half = budget.spent_epsilon(type(budget.cap)(budget.cap.units // 2))
        assert 0.6 < half < 1
        assert budget.part(1).amount <= Fraction(budget.cap.units, UNITS)
        assert budget.alone(Fraction(1, 10)).cap == Budget.of(Fraction(1, 10), DELTA).cap
    assert ZCDP.concentrated == ZCDP.cap.amount
    assert RENYI.concentrated is None
    assert isinstance(GDP.filter, GdpFilter)
    assert GDP.concentrated == pytest.approx(GDP.cap.amount + float(GDP.filter.reserve))
    assert abs(GDP.alone(1).cap.units - GDP.cap.units) <= 1


def test_budgets_say_how_they_are_kept():
    assert str(ZCDP) == "epsilon 1, delta 1e-06"
    assert str(RENYI).endswith("kept by a Rényi filter of order 21.984537")
    assert str(GDP).endswith("kept by a GDP filter with 3% in reserve")
    assert RENYI.described()["filter"] == "renyi"
    assert "divided by" in RENYI.described()["meaning"]
    assert GDP.described()["reserve"] == "3/100"
    assert "filter" in RENYI._repr_html_()
    assert Budget.of(1).described() == {}


def test_a_budget_without_a_cap_has_the_same_prices():
    for budget in (ZCDP, RENYI, GDP):
        free, event = budget.uncapped(), Selection(epsilon=Fraction(1, 7))
        assert free.price(event) == budget.price(event)
        assert free.cap.units > 20 * UNITS


# ---- joint accounting


@pytest.mark.parametrize("budget", [RENYI, GDP], ids=["renyi", "gdp"])
def test_questions_about_different_people_cost_as_one_under_every_filter(budget):
    joint, noise = Joint(budget), GaussianNoise(l2_squared=ONE, variance=Fraction(2000))
    state = joint.start()
    for cell in range(8):
        where = (Span("town", 8, 1 << cell),)
        state = joint.after(state, Located(noise=noise, region=where, relation="add-remove 1", split=False))
    assert joint.cost(state).units <= 2 * budget.price(noise).units
    flat = joint.after(state, LaplaceNoise(l1=ONE, scale=Fraction(50)))
    assert (
        joint.cost(flat).units - joint.cost(state).units == budget.price(Pure(epsilon=Fraction(1, 50))).units
    )


def test_discrete_noise_of_a_few_steps_is_not_priced_jointly_in_gdp():
    """Its surcharge is not in proportion to how far counts move; its own price is charged flat."""
    noise = GaussianNoise(l2_squared=ONE, variance=Fraction(18))
    assert not GDP.joins(noise)
    assert GDP.joins(RoundedNormal(l2_squared=ONE, variance=Fraction(18)))
    joint = Joint(GDP)
    state = joint.start()
    for cell in range(2):
        where = (Span("town", 8, 1 << cell),)
        state = joint.after(state, Located(noise=noise, region=where, relation="add-remove 1", split=False))
    assert joint.cost(state).units == 2 * GDP.price(noise).units


# ---- an adversary


def test_feldmanzrnic21_no_adaptive_choice_passes_the_cap_of_one_order():
    """The best strategy of an adversary, by dynamic programming: δ stays below the budget's, set-aside mass
    included.

    At every step they choose, by the loss so far, between a pure event, a selection, and one that fails with
    a small probability, or stop. Losses are multiples of 0.05, and the filter stops them.
    """
    step, failing = 0.05, Fraction(1, 10**4)
    budget = Budget.of(1, Fraction(1, 100), key_delta=Fraction(3, 10**4), filter="renyi")
    events = {
        "pure": (RandomizedReport(epsilon=Fraction(1, 5)), (4, -4)),
        "selection": (Selection(epsilon=Fraction(1, 5)), (2, -2)),
    }
    chances = {}
    for name, (_, (up, down)) in events.items():
        gained = (1 - exp(-step * down)) / (exp(-step * up) - exp(-step * down))  # E exp(-loss) = 1
        chances[name] = gained, 1 - gained
    prices = {name: budget.price(event).units for name, (event, _) in events.items()}
    most_failing = budget.delta_cap // int(failing * 10**30)

    @cache
    def best(loss: int, pure: int, selections: int, failures: int) -> float:
        stop = max(0.0, 1 - exp(1 - step * loss))
        found = stop
        for name, used in (("pure", (1, 0)), ("selection", (0, 1))):
            more = pure + used[0], selections + used[1]
            if more[0] * prices["pure"] + more[1] * prices["selection"] <= budget.cap.units:
                up, down = events[name][1]
                likely, unlikely = chances[name]
                gained = likely * best(loss + up, *more, failures)
                found = max(found, gained + unlikely * best(loss + down, *more, failures))
        if failures < most_failing:
            told = float(failing)
            found = max(found, told + (1 - told) * best(loss, pure, selections, failures + 1))
        return found

    assert 3e-4 < best(0, 0, 0, 0) <= 1e-2


def test_a_mixed_list_of_events_takes_a_smaller_share_at_one_order():
    """A mixed afternoon: counts, a release's selections, a sparse vector, a few Laplace answers."""
    rng = np.random.default_rng(5)
    events = [
        *(GaussianNoise(l2_squared=ONE, variance=Fraction(int(v))) for v in rng.integers(2000, 9000, 20)),
        *(Selection(epsilon=Fraction(int(e), 1000)) for e in rng.integers(5, 60, 20)),
        *(LaplaceNoise(l1=ONE, scale=Fraction(int(s))) for s in rng.integers(20, 300, 20)),
        SparseVector(epsilon=Fraction(1, 4), hits=10, told=Fraction(1, 9)),
    ]
    whole = {name: Budget.of(1, DELTA, filter=name).price(Together(tuple(events))).units for name in FILTERS}
    shares = {name: units / Budget.of(1, DELTA, filter=name).cap.units for name, units in whole.items()}
    assert shares["renyi"] < 0.98 * shares["zcdp"]
    gaussian = [event for event in events if isinstance(event, GaussianNoise)]
    alone = {name: Budget.of(1, DELTA, filter=name) for name in FILTERS}
    part = {name: budget.share(budget.total(gaussian)) for name, budget in alone.items()}
    assert part["gdp"] == pytest.approx(part["zcdp"] / 1.1157, rel=1e-4)
