"""The cheapest price against a search that rounds by decimal arithmetic."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.errors import RefusedError
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.privacy.calibrate import DIGITS, cheapest
from understudy.rational import MAX_EPSILON, MIN_PARAMETER

FOUR_DIGITS = Context(prec=DIGITS, rounding=ROUND_CEILING)


def four_digits_up(value: Fraction) -> Fraction:
    return Fraction(FOUR_DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


@given(st.fractions(MIN_PARAMETER, MAX_EPSILON))
@example(MIN_PARAMETER)
@example(Fraction(MAX_EPSILON))
@example(Fraction(999999, 1000))
@example(Fraction(9999, 10**4))
@example(Fraction(1))
@example(Fraction(100001, 10**5))
@example(Fraction(10**12 + 1, 10**24))
def test_it_finds_the_least_price_of_four_digits(needed):
    asked: list[Fraction] = []

    def suffices(price: Fraction) -> bool:
        asked.append(price)
        return price >= needed

    price = cheapest(suffices)
    assert price == four_digits_up(needed)
    assert price in asked
    assert len(asked) < 60


@given(st.fractions(MIN_PARAMETER, MAX_EPSILON), st.floats(0, allow_infinity=False))
@example(Fraction(MAX_EPSILON), 0.0)
@example(Fraction(MAX_EPSILON), 1e308)
@example(MIN_PARAMETER, 1e308)
@example(Fraction(9999, 10**4), 1.0)
def test_wherever_it_begins_it_finds_the_same_price(needed, near):
    """And tries none that no mechanism takes."""

    def suffices(price: Fraction) -> bool:
        assert price <= MAX_EPSILON
        return price >= needed

    assert cheapest(suffices, near=near) == cheapest(suffices) == four_digits_up(needed)


@pytest.mark.parametrize("off", [0.999, 1.0, 1.001])
@pytest.mark.parametrize("needed", [Fraction(1, 3), Fraction(20, 3), Fraction(10**6, 3 * 10**12)])
def test_near_a_good_guess_it_tries_few_prices(needed, off):
    asked: list[Fraction] = []

    def suffices(price: Fraction) -> bool:
        asked.append(price)
        return price >= needed

    cheapest(suffices, near=off * float(needed))
    assert len(asked) <= 12


@given(st.integers(-12, 2), st.integers(1000, 9999))
def test_a_price_of_four_digits_is_found_as_it_is(exponent, digits):
    needed = max(Fraction(digits) * Fraction(10) ** (exponent - 3), MIN_PARAMETER)
    assert cheapest(lambda price: price >= needed) == needed


def test_what_costs_nothing_costs_the_least_there_is():
    assert cheapest(lambda price: True) == MIN_PARAMETER


def test_what_no_price_buys_is_refused():
    with pytest.raises(RefusedError, match="wider"):
        cheapest(lambda price: False)


@pytest.mark.parametrize("target", [0, 1, 7, 100, 12345])
def test_the_cheapest_laplace_noise(target):
    """Its error is at most the target, and with the next lower price of four digits it is not."""

    def suffices(price: Fraction) -> bool:
        return (
            LaplaceMechanism(epsilon=price, l1=1).error(0.05) <= target
            if price > Fraction(1, 10**9)
            else False
        )

    price = cheapest(suffices)
    assert suffices(price)
    assert not suffices(price * Fraction(998, 1000))


@pytest.mark.parametrize("target", [0, 1, 7, 100, 12345])
def test_the_cheapest_gaussian_noise(target):
    def suffices(price: Fraction) -> bool:
        return GaussianMechanism(rho=price, l2_squared=2).error(0.05, cells=10) <= target

    price = cheapest(suffices)
    assert suffices(price)
    assert not suffices(price * Fraction(998, 1000))
