"""The price of bounded noise at one order: pins, exact sums in high precision, and what may be recorded of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import expm1, log, log1p

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from understudy.errors import ParameterError, RefusedError
from understudy.privacy.bounded_noise import (
    MAX_LARGEST,
    MAX_REACH,
    BoundedNoise,
    bounded_price,
    most_set_aside,
)
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.event import Located, Span, Together, is_immovable
from understudy.privacy.recording import as_plain, from_plain

ORDER = Fraction(22)


def exact(reach: int, moved: int, set_aside: int, order: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """D and d where one number moves, summed over the exact law in 50 digits."""
    with mpmath.workdps(50):
        a, angle = mpmath.mpf(order.numerator) / order.denominator, mpmath.pi / (2 * reach + 2)
        weights = [mpmath.sin(angle * k) ** mpmath.mpf("3.5") for k in range(2 * reach + 2)]
        total = mpmath.fsum(weights)
        kept = range(set_aside + 1, 2 * reach + 2)
        mean = mpmath.fsum(weights[k] ** a * weights[k - moved] ** (1 - a) for k in kept) / total
        return mpmath.log(mean) / (a - 1), mpmath.fsum(weights[: set_aside + 1]) / total


def test_the_pins_of_a_reach_of_2000_people_at_order_22() -> None:
    price = bounded_price(2000, 1, 1, 5, ORDER)
    assert float(price.divergence) == pytest.approx(3.3452485e-5, rel=1e-6)
    assert float(price.delta) == pytest.approx(3.975892e-12, rel=3e-6)
    twice = bounded_price(2000, 2, 1, 5, ORDER)
    assert float(twice.divergence) == pytest.approx(2 * 3.3452485e-5, rel=1e-6)
    assert float(twice.delta) == pytest.approx(2 * 3.975892e-12, rel=3e-6)
    divergence, mass = exact(2000, 1, 5, ORDER)
    assert divergence < price.divergence
    assert mass < price.delta


def epsilon(answers: int, reach: int, set_aside: int, wanted: int | Fraction, *, l1: int = 1) -> float:
    """The ε of so many answers at δ = 10⁻⁶, by [CKS20, Corollary 13] for what is left of δ."""
    price, order = bounded_price(reach, l1, 1, set_aside, Fraction(wanted)), float(wanted)
    left = 1e-6 - answers * float(price.delta)
    bonus = (log(1 / left) + (order - 1) * log1p(-1 / order) - log(order)) / (order - 1)
    return answers * float(price.divergence) + bonus


@pytest.mark.parametrize(
    ("reach", "set_aside", "order", "pin"),
    [(1000, 3, 14, 1.651961), (2000, 6, 26, 0.783177), (5000, 16, 63, 0.294778)],
)
def test_the_pins_of_ten_thousand_answers(reach: int, set_aside: int, order: int, pin: float) -> None:
    """Six digits of each price are kept."""
    assert epsilon(10_000, reach, set_aside, order) == pytest.approx(pin, rel=3e-6)


def test_the_pin_of_ten_thousand_histograms_in_which_two_cells_move() -> None:
    """A replaced row leaves one cell and enters another: twice the price. Normal noise that stays within the same
    2,000 people jointly, 19 times in 20, takes 1.502596 in zCDP. No set-aside and order near it does better.
    """
    found = epsilon(10_000, 2000, 5, Fraction(99, 5), l1=2)
    assert found == pytest.approx(1.128297, rel=3e-6)
    for set_aside, order in (
        (4, Fraction(99, 5)),
        (6, Fraction(99, 5)),
        (5, Fraction(19)),
        (5, Fraction(21)),
    ):
        assert epsilon(10_000, 2000, set_aside, order, l1=2) > found
    z = norm.isf(-expm1(log1p(-0.05) / 10_000) / 2)
    normal = zcdp_epsilon(10_000 * 2 * z**2 / (2 * 2000**2), 1e-6)
    assert normal == pytest.approx(1.502596, abs=1e-6)
    alone = bounded_price(2000, 1, 1, 5, Fraction(99, 5))
    both = bounded_price(2000, 2, 1, 5, Fraction(99, 5))
    assert both.divergence <= 2 * alone.divergence * (1 + Fraction(1, 10**5))
    assert both.divergence >= 2 * alone.divergence * (1 - Fraction(1, 10**5))


def test_how_many_answers_are_surely_within_2000_people() -> None:
    """At (1, 10⁻⁶), order 22, a tenth of δ set aside: 15,867. Normal noise gives 9,373, 19 in 20 times."""
    delta, order = 1e-6, 22
    cap = 1 - (log(1 / (0.9 * delta)) + (order - 1) * log1p(-1 / order) - log(order)) / (order - 1)
    assert cap == pytest.approx(0.5308139, abs=1e-7)
    assert most_set_aside(2000, 1, 1, Fraction(1, 10**7) / 15_867) == 5
    price = bounded_price(2000, 1, 1, 5, ORDER)
    assert int(cap / float(price.divergence)) == 15_867
    assert 15_867 * price.delta <= Fraction(1, 10**7)


small_noises = st.tuples(
    st.integers(3, 80),
    st.integers(1, 3),
    st.integers(0, 6),
    st.fractions(Fraction(11, 10), 40, max_denominator=10),
).map(lambda drawn: (drawn[0] + 3 * drawn[1], drawn[1], drawn[1] + drawn[2], drawn[3]))


@given(small_noises, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_the_price_is_never_too_small_and_not_by_much_too_large(noise, times) -> None:
    """One number that moves by all of it, and any split of it into smaller moves."""
    reach, largest, set_aside, order = noise
    price = bounded_price(reach, largest * times, largest, set_aside, order)
    parts = {s: exact(reach, s, -(-set_aside * s // largest), order) for s in range(1, largest + 1)}
    divergence, mass = (largest * times * max(part[i] / s for s, part in parts.items()) for i in (0, 1))
    assert divergence <= price.divergence
    assert mass <= price.delta
    assert price.divergence <= Fraction(1 + 2e-5) * Fraction(str(divergence)) + times * price.delta / (
        order - 1
    )
    assert price.delta <= Fraction(str(mass)) * Fraction(1 + 2e-5)
    for s, (one, its_mass) in parts.items():
        assert largest * times // s * one <= price.divergence
        assert largest * times // s * its_mass <= price.delta


@pytest.mark.parametrize(("reach", "set_aside"), [(20_000, 20), (MAX_REACH, 100)])
def test_large_reaches_are_priced_to_their_digits(reach: int, set_aside: int) -> None:
    """About a·J/2 for the Fisher information J: the ends hardly count."""
    price = bounded_price(reach, 1, 1, set_aside, Fraction(2))
    fisher = 3.5**2 * float(mpmath.pi) ** 2 / (4 * 2.5 * (reach + 1) ** 2)
    assert float(price.divergence) == pytest.approx(fisher, rel=0.01)


def test_more_set_aside_costs_less_and_a_larger_reach_too() -> None:
    prices = [bounded_price(300, 1, 1, w, ORDER) for w in (1, 2, 5, 20)]
    assert [p.divergence for p in prices] == sorted((p.divergence for p in prices), reverse=True)
    assert [p.delta for p in prices] == sorted(p.delta for p in prices)
    assert bounded_price(600, 1, 1, 5, ORDER).divergence < prices[2].divergence


@given(st.integers(5, 3000), st.integers(1, 4), st.floats(1e-14, 0.2))
@settings(max_examples=40)
def test_as_much_is_set_aside_as_delta_allows(reach: int, l1: int, delta: float) -> None:
    most = most_set_aside(reach, l1, 1, Fraction(delta))
    assert 0 <= most <= reach
    if most:
        assert bounded_price(reach, l1, 1, most, Fraction(2)).delta <= Fraction(delta)
    if most < reach:
        assert bounded_price(reach, l1, 1, most + 1, Fraction(2)).delta > Fraction(delta)


# ---------------------------------------------------------------------------------------- the event


def event(**changes: object) -> BoundedNoise:
    given_: dict = {"reach": 2000, "l1": 1, "largest": 1, "set_aside": 5, "order": ORDER, **changes}
    return BoundedNoise.priced(**given_)


def test_an_event_has_a_price_at_its_own_order_alone() -> None:
    noise = event()
    assert noise.renyi_cost(ORDER) == noise.divergence
    assert noise.delta_cost() == noise.delta
    assert noise.gdp_cost() is None
    for price in (noise.pure_cost, noise.zcdp_cost, lambda: noise.renyi_cost(Fraction(23))):
        with pytest.raises(RefusedError, match="bounded noise"):
            price()
    assert Together((noise, noise)).renyi_cost(ORDER) == 2 * noise.divergence
    assert Together((noise, noise)).delta_cost() == 2 * noise.delta


def test_an_event_is_recorded_and_read_back() -> None:
    noise = event(l1=2)
    written = as_plain(noise)
    assert written == {
        "event": "BoundedNoise", "reach": "2000", "l1": "2", "largest": "1", "set_aside": "5", "order": "22",
        "divergence": "13381/200000000", "delta": str(noise.delta),
    }  # fmt: skip
    assert from_plain(written) == noise
    located = Located(noise=noise, region=(Span("age", 4, 3),), relation="replace", split=True)
    assert from_plain(as_plain(located)) == located
    assert located.delta_cost() == noise.delta
    assert not is_immovable(located)


@pytest.mark.parametrize(
    "changes",
    [
        {"divergence": Fraction(3345, 10**8)},
        {"delta": Fraction(3975, 10**15)},
        {"reach": 1999},
        {"l1": 2},
        {"set_aside": 4},
        {"order": Fraction(23)},
        {"reach": Fraction(4001, 2)},
        {"divergence": Fraction(-1)},
        {"delta": Fraction(1)},
    ],
    ids=str,
)
def test_an_event_whose_price_does_not_cover_its_noise_is_refused(changes: dict) -> None:
    with pytest.raises(ParameterError):
        replace(event(), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"reach": 0},
        {"reach": MAX_REACH + 1},
        {"set_aside": 0},
        {"set_aside": 2001},
        {"largest": 2},
        {"l1": 4, "largest": 4, "set_aside": 3},
        {"l1": MAX_LARGEST + 1, "largest": MAX_LARGEST + 1, "set_aside": 100},
        {"l1": 64, "largest": 64, "set_aside": 100, "reach": 1 << 17},
        {"order": Fraction(1)},
        {"order": Fraction(10**6), "reach": 3, "set_aside": 1},
    ],
    ids=str,
)
def test_noise_that_has_no_price_is_refused(changes: dict) -> None:
    with pytest.raises(ParameterError):
        event(**changes)


def test_what_nobody_moves_costs_nothing_in_any_currency() -> None:
    free = event(l1=0)
    assert is_immovable(free)
    assert free.pure_cost() == free.zcdp_cost() == free.gdp_cost() == free.delta_cost() == 0
    assert free.renyi_cost(Fraction(5)) == 0
    assert free.privacy_losses() == ()


def test_an_accountant_sees_the_numbers_that_can_move_and_by_how_much() -> None:
    losses = event(l1=7, largest=3, set_aside=40).privacy_losses()
    assert [(loss.parameter, loss.times, loss.moved) for loss in losses] == [(2000.0, 2, 3), (2000.0, 1, 1)]
