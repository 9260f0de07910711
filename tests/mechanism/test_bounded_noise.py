"""Bounded noise as a mechanism: certain errors, prices that cover its exact law, and what it is not made for."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.look import _is_its_noise, check_known
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.relation import Sensitivity

ORDER = Fraction(22)
ONE = Sensitivity(1, 1)
TWO_CELLS = Sensitivity(2, 2)
mechanisms = st.builds(
    lambda reach, moved, order, delta: BoundedMechanism.within(
        reach + 20 * moved.l1, moved, order=order, delta=Fraction(delta)
    ),
    st.integers(20, 400),
    st.sampled_from([ONE, TWO_CELLS, Sensitivity(3, 9), Sensitivity(3, 3), Sensitivity(4, 10)]),
    st.fractions(Fraction(3, 2), 20, max_denominator=10),
    st.floats(1e-3, 0.05),
)


def splits(moved: Sensitivity) -> list[list[int]]:
    """All ways in which one person can move whole numbers, without their order and signs."""

    def below(total: int, squares: int, most: int):
        yield []
        for step in range(1, min(most, total) + 1):
            if step * step <= squares:
                for rest in below(total - step, squares - step * step, step):
                    yield [step, *rest]

    return [parts for parts in below(moved.l1, moved.l2_squared, moved.l1) if parts]


@given(mechanisms, st.sampled_from([ONE, TWO_CELLS, Sensitivity(3, 9), Sensitivity(4, 10)]))
@settings(max_examples=30)
def test_the_price_covers_every_way_to_move_a_vector(mechanism: BoundedMechanism, moved: Sensitivity) -> None:
    """Divergences of the exact law outside the lowest outcomes, and the mass of those, each number its own."""
    try:
        event = mechanism.event_for(moved)
    except ParameterError:  # too little is set aside for so large a move
        assert mechanism.set_aside < moved.l1
        return
    order, outputs = float(event.order), np.arange(-mechanism.reach, mechanism.reach + 1)
    for parts in splits(moved):
        divergence = mass = 0.0
        for step in parts:
            aside = -(-event.set_aside * step // event.largest)
            here, there = (mechanism.log_law(value, outputs) for value in (0, step))
            kept = order * here[aside:] + (1 - order) * there[aside:]
            divergence += float(np.logaddexp.reduce(kept)) / (order - 1)
            mass += float(np.exp(here[:aside]).sum())
        assert divergence <= float(event.divergence) * (1 + 1e-12)
        assert mass <= float(event.delta) * (1 + 1e-12)


@given(mechanisms)
@settings(max_examples=30)
def test_as_much_is_set_aside_as_was_allowed(mechanism: BoundedMechanism) -> None:
    assert mechanism.event.delta <= Fraction(1, 20)
    assert mechanism.error(0.05) == mechanism.error(1e-9, cells=10**6) == mechanism.reach


def test_smaller_noise_than_was_priced_is_seen() -> None:
    """A reach of 1900 where 2000 was paid for: the divergence of its exact law is larger than what was charged."""
    paid = BoundedMechanism.within(2000, ONE, order=ORDER, delta=Fraction(1, 10**9))
    drawn = BoundedMechanism(reach=1900, l1=1, largest=1, set_aside=paid.set_aside, order=ORDER)
    assert drawn.event.divergence > paid.event.divergence * Fraction(109, 100)


@pytest.mark.parametrize("moved", [ONE, TWO_CELLS, Sensitivity(5, 25)], ids=str)
@pytest.mark.parametrize("divergence", [Fraction(1, 10), Fraction(1, 10**4)])
def test_a_price_buys_the_least_reach(moved: Sensitivity, divergence: Fraction) -> None:
    delta = Fraction(1, 10**9)
    bought = BoundedMechanism.for_price(divergence, moved, order=ORDER, delta=delta)
    assert bought.event.divergence <= divergence
    assert bought.event.delta <= delta
    less = BoundedMechanism.within(bought.reach - 1, moved, order=ORDER, delta=delta)
    assert less.event.divergence > divergence


def test_it_is_worth_it_for_many_answers() -> None:
    """10,000 answers surely within 2,000 people cost 3/5 of normal noise that keeps to that 19 times in 20."""
    bounded = BoundedMechanism.within(2000, ONE, order=ORDER, delta=Fraction(1, 10**11))
    normal = RoundedNormalMechanism(rho=Fraction(2595, 10**9), l2_squared=1)
    assert normal.error(0.05, cells=10_000) == pytest.approx(2000, rel=0.01)
    assert bounded.event.divergence < ORDER * normal.rho * Fraction(3, 5)


def test_what_it_is_not_made_for_is_refused() -> None:
    with pytest.raises(RefusedError, match="ends"):
        BoundedMechanism.within(10, ONE, order=ORDER, delta=Fraction(1, 10**9))
    with pytest.raises(RefusedError, match="one person"):
        BoundedMechanism.within(5000, Sensitivity(100, 10_000), order=ORDER, delta=Fraction(1, 10))
    with pytest.raises(RefusedError, match="largest reach"):
        BoundedMechanism.for_price(Fraction(1, 10**15), ONE, order=ORDER, delta=Fraction(1, 10**18))
    with pytest.raises(ParameterError, match="positive"):
        BoundedMechanism.for_price(Fraction(0), ONE, order=ORDER, delta=Fraction(1, 10))
    with pytest.raises(ParameterError):
        BoundedMechanism(reach=5, l1=1, largest=1, set_aside=0, order=ORDER)
    with pytest.raises(ParameterError):
        BoundedMechanism(reach=5, l1=-1, largest=1, set_aside=1, order=ORDER)


def test_draws_stay_within_the_reach_and_have_its_variance() -> None:
    mechanism = BoundedMechanism.within(50, ONE, order=ORDER, delta=Fraction(1, 10**4))
    drawn = mechanism.release(np.full((300, 300), 10**12), noise=SeededNoise(3)) - 10**12
    assert drawn.shape == (300, 300)
    assert np.abs(drawn).max() <= 50
    assert float(np.mean(drawn.astype(float) ** 2)) == pytest.approx(mechanism.variance, rel=0.03)
    assert mechanism.variance == pytest.approx(0.0887 * 51**2, rel=0.01)
    one, two = mechanism.draw_many(np.arange(3), 2, noise=SeededNoise(3))
    assert one != two


def test_values_that_nobody_moves_are_told_as_they_are() -> None:
    free = BoundedMechanism.within(50, Sensitivity(0, 0), order=ORDER, delta=Fraction(0))
    assert free.release(np.arange(4), noise=SeededNoise(1)).tolist() == [0, 1, 2, 3]
    assert free.error(0.05) == free.variance == 0
    assert free.event.renyi_cost(ORDER) == free.event.delta_cost() == 0


def test_the_law_is_the_one_that_is_drawn() -> None:
    mechanism = BoundedMechanism.within(8, ONE, order=Fraction(2), delta=Fraction(1, 10))
    drawn = mechanism.release(np.zeros(40_000, np.int64), noise=SeededNoise(7))
    told = np.bincount(drawn + 8, minlength=17) / drawn.size
    expected = np.exp(mechanism.log_law(0, np.arange(-8, 9)))
    assert np.abs(told - expected).max() < 6 * 0.5 / 200
    assert mechanism.log_law(5, [14])[0] == -np.inf
    assert mechanism.log_law(5, [5])[0] == pytest.approx(log(float(expected[8])))


def test_a_look_is_charged_for_the_noise_that_it_draws() -> None:
    mechanism = BoundedMechanism.within(200, ONE, order=ORDER, delta=Fraction(1, 10**6))
    check_known(mechanism)
    assert _is_its_noise(mechanism, mechanism.event)
    other = BoundedMechanism.within(201, ONE, order=ORDER, delta=Fraction(1, 10**6))
    assert not _is_its_noise(mechanism, other.event)
    assert not _is_its_noise(mechanism, RoundedNormalMechanism(rho=Fraction(1), l2_squared=1).event)
    free = BoundedMechanism(reach=200, l1=0, largest=1, set_aside=mechanism.set_aside, order=ORDER)
    assert not _is_its_noise(free, mechanism.event)
