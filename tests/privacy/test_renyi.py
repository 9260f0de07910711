"""Prices at one Rényi order: pins, closed forms against sums over whole laws, never below, never above a·ρ."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import any_events, pure_events
from understudy.errors import ParameterError, RefusedError
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    RandomizedReport,
    RoundedNormal,
    Selection,
    Span,
    SparseVector,
    Together,
)
from understudy.privacy.key_event import GaussianKeys, TruncatedGeometricKeys
from understudy.privacy.recording import as_plain, from_plain
from understudy.privacy.renyi import GRID, MAX_ORDER, pure_divergence, rounded_up, selection_divergence

orders = st.fractions(Fraction(101, 100), 200, max_denominator=1000)
small = st.fractions(Fraction(1, 10**6), 3, max_denominator=10**7)
ORDER = Fraction(22)


@pytest.mark.parametrize(
    ("event", "pin", "rho_price"),
    [
        (RandomizedReport(epsilon=Fraction(1, 10)), 0.06995622, 0.11),
        (RandomizedReport(epsilon=Fraction(1)), 0.98508278, 11),
        (Selection(epsilon=Fraction(3, 10)), 0.17099582, 0.2475),
    ],
    ids=["pure .1", "pure 1", "selection .3"],
)
def test_what_events_cost_at_order_22(event: Event, pin: float, rho_price: float) -> None:
    assert float(event.renyi_cost(ORDER)) == pytest.approx(pin, abs=6e-9)
    assert float(ORDER * event.zcdp_cost()) == rho_price


def divergence(laws: list[tuple[mpmath.mpf, mpmath.mpf]], order: Fraction) -> mpmath.mpf:
    """Of order a between two laws, given by the pairs of their probabilities."""
    a = mpmath.mpf(order.numerator) / order.denominator
    return mpmath.log(mpmath.fsum(p**a * q ** (1 - a) for p, q in laws)) / (a - 1)


@settings(max_examples=50)
@given(small, orders)
def test_a_pure_event_costs_as_much_as_randomised_response(epsilon: Fraction, order: Fraction) -> None:
    with mpmath.workdps(80):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator))
        exact = divergence([(p, 1 - p), (1 - p, p)], order)
        found = pure_divergence(epsilon, order)
        assert 0 <= mpmath.mpf(found.numerator) / found.denominator - exact <= mpmath.mpf(2) / GRID


@settings(max_examples=50)
@given(small, orders, st.fractions(0, 1, max_denominator=50))
def test_no_selection_costs_more_than_is_charged(epsilon: Fraction, order: Fraction, at: Fraction) -> None:
    """Losses t and t - ε with probabilities that fit, for any t between 0 and ε."""
    with mpmath.workdps(80):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        t = e * at.numerator / at.denominator
        p = (mpmath.exp(e) - mpmath.exp(t)) / (mpmath.exp(e) - 1)
        a = mpmath.mpf(order.numerator) / order.denominator
        mean = p * mpmath.exp((a - 1) * t) + (1 - p) * mpmath.exp((a - 1) * (t - e))
        found = selection_divergence(epsilon, order)
        assert mpmath.mpf(found.numerator) / found.denominator >= mpmath.log(mean) / (a - 1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(3, 10), Fraction(2), Fraction(20)])
@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(22), Fraction(500)])
def test_some_selection_costs_what_is_charged(epsilon: Fraction, order: Fraction) -> None:
    """The exponential mechanism between two candidates of which scores move apart is within a millionth of it."""
    with mpmath.workdps(60):
        e, a = (
            mpmath.mpf(epsilon.numerator) / epsilon.denominator,
            mpmath.mpf(order.numerator) / order.denominator,
        )
        small_one = mpmath.exp(-(a - 1) * e)
        y = (a - 1) * (mpmath.exp(e) - small_one) / (a * (1 - small_one))
        p = (mpmath.exp(e) - y) / (mpmath.exp(e) - 1)  # the loss is ln y with this probability, else ln y - ε
        q = p / y
        exact = divergence([(p, q), (1 - p, 1 - q)], order)
        assert 0 < p < 1
        assert mpmath.log((1 - q) / (1 - p)) == pytest.approx(float(e - mpmath.log(y)))
        found = selection_divergence(epsilon, order)
        assert mpmath.mpf(found.numerator) / found.denominator == pytest.approx(float(exact), rel=1e-6)


@given(any_events, orders)
@settings(max_examples=60)
def test_no_event_costs_more_than_its_rho_says(event: Event, order: Fraction) -> None:
    """So a ledger of one order is never worse than one in ρ whose cap is attained at that order."""
    assert event.renyi_cost(order) <= order * event.zcdp_cost()
    assert event.renyi_cost(order) >= 0


@settings(max_examples=50)
@given(pure_events, orders, st.fractions(Fraction(1, 100), 1, max_denominator=100))
def test_a_larger_order_costs_no_less(event: Event, order: Fraction, more: Fraction) -> None:
    """Rényi divergences grow with their order, and never pass ε."""
    cost = event.renyi_cost(order)
    assert cost <= event.renyi_cost(order + more) + Fraction(100, GRID)
    assert cost <= event.pure_cost() + Fraction(100, GRID)


def test_divergences_add_up_over_events_and_over_the_runs_of_a_sparse_vector() -> None:
    pure, chosen = RandomizedReport(epsilon=Fraction(1, 5)), Selection(epsilon=Fraction(1, 7))
    assert Together((pure, chosen)).renyi_cost(ORDER) == pure.renyi_cost(ORDER) + chosen.renyi_cost(ORDER)
    runs = SparseVector(epsilon=Fraction(2), hits=10, told=Fraction(1, 4))
    parts = pure_divergence(Fraction(3, 20), ORDER) + pure_divergence(Fraction(1, 20), ORDER)
    assert runs.renyi_cost(ORDER) == 10 * parts


def test_a_selection_of_keys_costs_its_noise_and_its_own_delta_is_what_is_set_aside() -> None:
    geometric = TruncatedGeometricKeys(epsilon=Fraction(1), keys=3, reach=40, delta=Fraction(1, 10**12))
    assert geometric.renyi_cost(ORDER) == 3 * pure_divergence(Fraction(1), ORDER)
    gaussian = GaussianKeys(
        l2_squared=Fraction(2), variance=Fraction(9), keys=2, reach=40, delta=Fraction(1, 10**12)
    )
    assert gaussian.renyi_cost(ORDER) == ORDER * Fraction(1, 9)
    assert geometric.delta_cost() == gaussian.delta_cost() == Fraction(1, 10**12)
    assert gaussian.gdp_cost() is geometric.gdp_cost() is None


@pytest.mark.parametrize("order", [Fraction(1), Fraction(0), Fraction(-3), Fraction(MAX_ORDER + 1)])
def test_an_order_that_no_ledger_keeps_is_refused(order: Fraction) -> None:
    for event in (RandomizedReport(epsilon=Fraction(1)), Selection(epsilon=Fraction(1)),
                  GaussianNoise(l2_squared=Fraction(1), variance=Fraction(4))):  # fmt: skip
        with pytest.raises(ParameterError, match="order"):
            event.renyi_cost(order)


def test_extreme_parameters_are_priced() -> None:
    """The smallest ε, and orders and ε whose product no float can be the exponential of."""
    least = Fraction(1, 10**12)
    assert pure_divergence(least, ORDER) == pytest.approx(float(ORDER * least**2 / 2), rel=1e-9)
    assert pure_divergence(Fraction(1000), Fraction(MAX_ORDER)) <= 1000
    assert 999 < selection_divergence(Fraction(1000), ORDER) < 1000
    assert pure_divergence(Fraction(0), ORDER) == selection_divergence(Fraction(0), ORDER) == 0


@given(st.fractions(0, 10, max_denominator=10**40))
def test_the_grid_rounds_up(amount: Fraction) -> None:
    assert 0 <= rounded_up(amount) - amount < Fraction(1, GRID)


# ---------------------------------------------------------------------------------------- Gaussian privacy


normal = RoundedNormal(l2_squared=Fraction(3), variance=Fraction(50))


def test_rounded_normal_noise_has_the_mu_of_the_normal_law() -> None:
    assert normal.gdp_cost() == Fraction(3, 50)
    assert normal.zcdp_cost() == Fraction(3, 100)
    assert normal.renyi_cost(ORDER) == ORDER * Fraction(3, 100)
    assert normal.delta_cost() == 0
    with pytest.raises(RefusedError, match="no pure epsilon"):
        normal.pure_cost()
    assert from_plain(as_plain(normal)) == normal
    assert as_plain(normal) == {"event": "RoundedNormal", "l2_squared": "3", "variance": "50"}
    with pytest.raises(ParameterError):
        RoundedNormal(l2_squared=Fraction(1), variance=Fraction(0))


def test_mu_squared_adds_up_where_every_part_has_one() -> None:
    region = (Span("age", 4, 3),)
    located = Located(noise=normal, region=region, relation="replace", split=False)
    assert from_plain(as_plain(located)) == located
    assert located.gdp_cost() == Fraction(3, 50)
    assert Together((located, normal)).gdp_cost() == Fraction(6, 50)
    assert Together(()).gdp_cost() == 0
    for other in (LaplaceNoise(l1=Fraction(1), scale=Fraction(9)), Selection(epsilon=Fraction(1)),
                  GaussianNoise(l2_squared=Fraction(1), variance=Fraction(9))):  # fmt: skip
        assert other.gdp_cost() is None
        assert Together((normal, other)).gdp_cost() is None
    assert GaussianNoise(l2_squared=Fraction(0), variance=Fraction(9)).gdp_cost() == 0
