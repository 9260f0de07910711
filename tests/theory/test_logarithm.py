"""Integers beyond floats, against fifty and more digits of another library."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy.theory.arguments import (
    above_zero,
    at_least_zero,
    exact_above_zero,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.logarithm import (
    floor_irrational,
    floor_log2_binomial,
    floor_log2_power,
    floor_log_over,
    log_binomial,
)


def reference(n: int, r: int) -> mpmath.mpf:
    with mpmath.workdps(60 + n.bit_length() * 2 // 3):
        return mpmath.loggamma(n + 1) - mpmath.loggamma(r + 1) - mpmath.loggamma(n - r + 1)


@pytest.mark.parametrize(
    ("n", "r"),
    [
        (328, 265),
        (10**5, 700),
        (10**6, 300),
        (2 * 10**6, 10**6),
        (10**12, 5 * 10**11),
        (10**100, 265),
        (10**100 + 10**6, 10**6),
        (10**300, 10**200),
        (2**5000, 4000),
        (2**70000, 1),
        (2**20000, 255),
    ],
    ids=lambda value: f"{value.bit_length()} bits",
)
def test_log_binomial_has_twelve_digits(n, r):
    exact = reference(n, r)
    assert abs(log_binomial(n, r) / exact - 1) < 1e-12
    assert log_binomial(n, n - r) == log_binomial(n, r)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_log_binomial_agrees_with_the_integer(a, b):
    assert log_binomial(a + b, a) == pytest.approx(float(mpmath.log(comb(a + b, a))), rel=1e-12, abs=1e-12)


@given(st.integers(10**3, 10**40), st.integers(100, 10**6))
def test_log_binomial_is_monotone(n, r):
    r = min(r, n // 2 - 1)
    slack = 1 + 1e-12
    assert log_binomial(n, r) <= log_binomial(n + 1, r) * slack
    assert log_binomial(n, r) <= log_binomial(n, r + 1) * slack


@given(st.integers(2, 10**30), st.fractions(Fraction(1, 10**9), 5))
@example(4 * 10**12, Fraction(2, 10**6))
def test_a_floor_of_a_logarithm_is_exact(count, divisor):
    with mpmath.workdps(80):
        value = mpmath.log(count) * divisor.denominator / divisor.numerator
        assert floor_log_over(count, divisor) == int(mpmath.floor(value))


def test_the_side_is_decided_where_a_float_cannot():
    """A divisor that puts ln 2 within 10^-60 of an integer, from below and from above."""
    with mpmath.workdps(90):
        near = Fraction(int(mpmath.floor(mpmath.log(2) * 10**60)), 10**60)
    assert floor_log_over(2, near / 7) == 7
    assert floor_log_over(2, (near + Fraction(1, 10**60)) / 7) == 6


@given(st.integers(1, 3000), st.integers(1, 200))
def test_a_floor_of_a_power_is_that_of_the_integer(base, exponent):
    assert floor_log2_power(base, exponent) == (base**exponent).bit_length() - 1


def test_a_floor_of_a_binomial_is_exact_and_then_safe():
    assert floor_log2_binomial(33606, 1023) == comb(33606, 1023).bit_length() - 1
    assert floor_log2_binomial(2, 1) == 1
    assert floor_log2_binomial(5, 0) == 0
    large = float(reference(10**100 + 10**5, 10**5) / mpmath.log(2))
    assert large - 1 <= floor_log2_binomial(10**100 + 10**5, 10**5) <= large * (1 + 3e-12) + 1


def test_what_cannot_be_held_is_refused():
    with pytest.raises(ParameterError, match="more than 5,000 digits"):
        floor_log_over(2, Fraction(1, 10**6000))
    with pytest.raises(ParameterError, match="0 ≤ r ≤ n"):
        log_binomial(3, 5)
    with pytest.raises(ParameterError, match="beyond what a float"):
        log_binomial(2**1200, 2**1100)


def test_a_value_just_below_an_integer():
    assert floor_irrational(lambda context: context.sqrt(Decimal(99))) == 9
    assert floor_irrational(lambda context: context.sqrt(Decimal(10**400 - 1))) == 10**200 - 1


# Arguments --------------------------------------------------------------------------------------------------


def test_whole_numbers_come_as_they_are_written():
    assert whole(1e5, "n") == 10**5
    assert whole(1e100, "n") == 10**100
    assert whole(np.int64(7), "n") == 7
    assert whole(np.float64(7), "n") == 7
    assert whole(Fraction(6, 2), "n") == 3  # type: ignore[arg-type]
    assert whole(0, "n", at_least=0) == 0


@pytest.mark.parametrize("bad", [True, 1.5, "3", None, float("nan"), float("inf"), [1], Fraction(1, 2)])
def test_what_is_no_whole_number_is_refused(bad):
    with pytest.raises(ParameterError, match="n must be"):
        whole(bad, "n")


def test_reals_are_finite_and_have_a_sign():
    assert above_zero(Decimal("0.1"), "alpha") == 0.1
    assert at_least_zero(0, "delta") == 0
    assert exact_above_zero(0.1, "alpha") == Fraction(1, 10)
    assert log_of_inverse(Fraction(1, 10**400)) == pytest.approx(921.034037197618)
    for check in (above_zero, exact_above_zero):
        with pytest.raises(ParameterError, match="alpha must be positive, not 0"):
            check(0, "alpha")
    with pytest.raises(ParameterError, match="delta must not be negative, not -1"):
        at_least_zero(-1, "delta")
    with pytest.raises(ParameterError, match=r"alpha must be below 10\^308"):
        above_zero(10**400, "alpha")
    with pytest.raises(ParameterError, match="alpha must be positive"):
        above_zero(Fraction(1, 10**400), "alpha")  # it would round to 0
    with pytest.raises(ParameterError, match="beta must lie strictly between 0 and 1"):
        log_of_inverse(1)
    with pytest.raises(ParameterError, match=r"^so it is$"):
        require(1 > 2, "so it is")
