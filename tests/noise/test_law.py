"""The exact laws against rational arithmetic, and tails against sums of their own terms."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy.noise.law import (
    MAX_SCALE,
    MAX_VARIANCE,
    Coin,
    ExpCoin,
    Law,
    Magnitude,
    _tail_by_integral,
    _tail_by_summation,
    discrete_gaussian_log_law,
    discrete_gaussian_quantile,
    discrete_gaussian_tail,
    discrete_laplace_log_law,
    discrete_laplace_quantile,
    discrete_laplace_tail,
    exp_enclosure,
    power_enclosures,
)

FINE = 800
"""Bits of the reference computations below."""


def reference_exp(rate: Fraction) -> Fraction:
    """exp(-rate) within 2^-900, by the series of exp(rate / 2^j) in integers: nothing shared with the product."""
    halvings = max(0, rate.numerator.bit_length() - rate.denominator.bit_length()) + 8
    term = total = 1 << FINE + 200
    step, k = rate / (1 << halvings), 1
    while term:
        term = term * step.numerator // (step.denominator * k)
        total += term
        k += 1
    inverse = (1 << 2 * (FINE + 200)) // total
    for _ in range(halvings):
        inverse = inverse * inverse >> FINE + 200
    return Fraction(inverse, 1 << FINE + 200)


def reference_law(law: Magnitude, points: int) -> list[Fraction]:
    """Cumulative probabilities of 0, …, points - 1, within 2^-300; `points` must hold all but 2^-300."""
    weights = [reference_exp(law.rate * k**law.power) * (2 if law.folded and k else 1) for k in range(points)]
    total, running, cumulative = sum(weights), Fraction(0), []
    for weight in weights:
        running += weight
        cumulative.append(running / total)
    return cumulative


@settings(deadline=None)
@given(st.fractions(min_value=0, max_value=300, max_denominator=10**9), st.integers(1, 250))
def test_exp_enclosure_holds_the_true_value(rate: Fraction, bits: int) -> None:
    low, high = exp_enclosure(rate, bits)
    true, slack = reference_exp(rate) * 2**bits, Fraction(1, 2**60)
    assert low - slack <= true <= high + slack
    assert 0 <= high - low <= 3


def test_exp_enclosure_of_a_huge_rate_is_not_zero() -> None:
    assert exp_enclosure(Fraction(10**15), 64) == (0, 1)
    assert exp_enclosure(Fraction(0), 64) == (2**64, 2**64)


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=3, max_denominator=10**6), st.integers(0, 2**20))
def test_power_enclosures_hold_the_true_value(rate: Fraction, g: int) -> None:
    low, high = power_enclosures(rate, 128)(g)
    direct_low, direct_high = exp_enclosure(rate * g, 128)
    assert low <= direct_high
    assert direct_low <= high
    assert high - low <= 64


def assert_cuts_are(cuts: Sequence[int], cumulative: Sequence[Fraction], bits: int) -> None:
    """Each cut is the floor of the cumulative probability; the reference is within 2^-300 of it."""
    assert cuts[-1] == 2**bits - 1
    for cut, true in zip(cuts[:-1], cumulative, strict=False):
        assert cut == true * 2**bits // 1


@pytest.mark.parametrize("bits", [3, 8, 64, 130])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    ("rate", "power", "points"),
    [
        (Fraction(3), 1, 100),
        (Fraction(2, 7), 1, 800),
        (Fraction(50), 1, 10),
        (Fraction(1, 2), 2, 30),
        (Fraction(1, 200), 2, 220),
        (Fraction(9, 2), 2, 12),
    ],
)
def test_cuts_are_exact_floors(rate: Fraction, power: int, points: int, folded: bool, bits: int) -> None:  # noqa: FBT001
    law = Magnitude(rate, 1 if power == 1 else 2, folded)
    assert_cuts_are(law.cuts(bits), reference_law(law, points), bits)


@pytest.mark.parametrize("precision", [12, 20, 40])
@pytest.mark.parametrize(
    "law", [Magnitude(Fraction(1, 9), 1, folded=True), Magnitude(Fraction(1, 300), 2, folded=False)]
)
def test_partial_sums_are_enclosed_at_any_precision(law: Magnitude, precision: int) -> None:
    low, high, rest = law._sums(precision, negligible=1 << precision - 3)
    weights = [reference_exp(law.rate * k**law.power) * (2 if law.folded and k else 1) for k in range(400)]
    running = Fraction(0)
    for k, (below, above) in enumerate(zip(low, high, strict=True)):
        running += weights[k]
        assert below <= running * 2**precision <= above
    assert (sum(weights) - running) * 2**precision <= rest <= 1 << precision - 3


def test_cuts_of_the_laplace_magnitude_follow_its_closed_form() -> None:
    rate = Fraction(1, 32)
    cuts = Magnitude(rate, 1, folded=False).cuts(64)
    ratio = reference_exp(rate)
    assert_cuts_are(cuts, [1 - ratio ** (k + 1) for k in range(200)], 64)
    assert len(cuts) == 1 + sum(1 for k in range(3000) if (k + 1) / 32 < 64 * log(2))


@pytest.mark.parametrize(
    "law", [Coin(Fraction(1, 3)), ExpCoin(Fraction(5, 3)), Magnitude(Fraction(1, 8), 2, folded=True)]
)
def test_more_bits_refine_the_same_cuts(law: Law) -> None:
    coarse, fine = law.cuts(20), law.cuts(84)
    for a, b in zip(coarse, fine, strict=False):
        assert a == b >> 64


def test_coins() -> None:
    assert Coin(Fraction(1, 3)).cuts(4) == (5,)
    assert Coin(Fraction(1, 4)).cuts(2) == (1,)
    assert ExpCoin(Fraction(0)).cuts(8) == (256,)
    assert ExpCoin(Fraction(1)).cuts(100) == (reference_exp(Fraction(1)) * 2**100 // 1,)
    assert ExpCoin(Fraction(10**6)).cuts(64) == (0,)


def test_cks20_definition_1() -> None:
    points = np.arange(-400, 401)
    for variance in (Fraction(1, 9), Fraction(1), Fraction(50, 3), Fraction(1600)):
        law = discrete_gaussian_log_law(variance, points)
        assert np.exp(law).sum() == pytest.approx(1, abs=1e-12)
        assert law - law[400] == pytest.approx(-(points**2) / (2 * float(variance)), rel=1e-12)


def test_the_laplace_log_law_is_normalised() -> None:
    points = np.arange(-2000, 2001)
    for scale in (Fraction(1, 3), Fraction(1), Fraction(200, 7)):
        law = discrete_laplace_log_law(scale, points)
        assert np.exp(law).sum() == pytest.approx(1, abs=1e-12)
        assert law - law[2000] == pytest.approx(-np.abs(points) / float(scale), rel=1e-12)


@pytest.mark.parametrize("t", [0, 1, 5, 40])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(10**6), Fraction(2**40)]
)
def test_the_laplace_tail_is_rounded_up_by_one_float(scale: Fraction, t: int) -> None:
    ratio = reference_exp(1 / scale)
    true = 2 * reference_exp((t + 1) / scale) / (1 + ratio)
    tail = discrete_laplace_tail(scale, t)
    assert true <= Fraction(tail) <= true * (1 + Fraction(1, 2**52))


@pytest.mark.parametrize("t", [0, 1, 3, 10, 60])
@pytest.mark.parametrize(
    "variance", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(20, 3), Fraction(250)]
)
def test_the_gaussian_tail_is_an_upper_bound(variance: Fraction, t: int) -> None:
    weights = [reference_exp(k * k / (2 * variance)) for k in range(350)]
    true = 2 * sum(weights[t + 1 :]) / (2 * sum(weights) - 1)
    tail = Fraction(discrete_gaussian_tail(variance, t))
    assert true <= tail <= true * (1 + Fraction(3, 10**12)) + Fraction(1e-295)


def test_summation_and_integral_agree() -> None:
    compared = 0
    for std in (400, 2000, 3000, 20000):
        for z in (0, 0.3, 1, 2, 4, 6):
            variance, t = Fraction(std * std + 1, 3), int(std * z)
            by_integral = _tail_by_integral(variance, t)
            if by_integral is not None:
                compared += 1
                assert by_integral == pytest.approx(_tail_by_summation(variance, t), rel=5e-13)
    assert compared >= 10


def test_the_gaussian_tail_at_a_million_equals_its_sum() -> None:
    std = 10**6
    k = np.arange(10 * std + 1, dtype=np.float64)
    weights = np.exp(-(k * k) / (2.0 * std**2))
    total = 2 * weights.sum() - 1
    for t in (0, std // 3, 2 * std, 5 * std):
        assert discrete_gaussian_tail(std**2, t) == pytest.approx(
            2 * weights[t + 1 :].sum() / total, rel=4e-12
        )


@pytest.mark.parametrize(
    "variance", [Fraction(1, 100), Fraction(2, 3), Fraction(700**2), Fraction(MAX_VARIANCE)]
)
def test_the_gaussian_tail_decreases(variance: Fraction) -> None:
    std = float(variance) ** 0.5
    starts = {0, *(int(std * z) for z in (0.5, 1, 3, 7, 20, 37, 41))}
    for start in starts:
        tails = [discrete_gaussian_tail(variance, t) for t in range(start, start + 40)]
        assert all(a > b or a == b == 1e-295 for a, b in pairwise(tails))
    assert discrete_gaussian_tail(variance, 10**30) > 0
    assert discrete_gaussian_tail(variance, -1) == 1


def test_tails_too_small_for_a_float_stay_positive() -> None:
    assert 0 < discrete_laplace_tail(1, 10**6) < 1e-300
    assert 0 < discrete_gaussian_tail(1, 10**6) == 1e-295
    assert discrete_laplace_tail(5, -3) == 1


BETAS = [0.999, 0.5, 0.05, 1e-3, 1e-9, 1e-30, 1e-280]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 20), Fraction(1, 3), Fraction(7, 2), Fraction(12345), Fraction(2**40)]
)
def test_the_laplace_quantile_is_the_smallest(scale: Fraction, beta: float) -> None:
    t = discrete_laplace_quantile(scale, beta)
    assert t >= 0
    assert discrete_laplace_tail(scale, t) <= Fraction(str(beta))
    assert t == 0 or discrete_laplace_tail(scale, t - 1) > Fraction(str(beta))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(
    "variance", [Fraction(1, 400), Fraction(1, 3), Fraction(123), Fraction(10**7), Fraction(2**60)]
)
def test_the_gaussian_quantile_is_the_smallest(variance: Fraction, beta: float) -> None:
    t = discrete_gaussian_quantile(variance, beta)
    assert t >= 0
    assert discrete_gaussian_tail(variance, t) <= Fraction(str(beta))
    assert t == 0 or discrete_gaussian_tail(variance, t - 1) > Fraction(str(beta))


def test_quantiles_at_known_points() -> None:
    assert discrete_gaussian_quantile(10**12, 0.05) == 1959964  # 1,959,963.98 - 1/2, rounded up
    assert discrete_laplace_quantile(1, Fraction(2, 3)) == 0  # P[X ≠ 0] = 2 / (1 + e) = 0.538
    assert discrete_laplace_tail(1, 0) == pytest.approx(2 / (1 + exp(1)), rel=1e-15)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True, None])
def test_bad_parameters_are_refused(bad: object) -> None:
    for function in (discrete_laplace_tail, discrete_gaussian_tail):
        with pytest.raises(ParameterError):
            function(bad, 1)  # pyright: ignore[reportArgumentType]
    for function in (discrete_laplace_quantile, discrete_gaussian_quantile):
        with pytest.raises(ParameterError):
            function(bad, 0.05)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ParameterError):
            function(1, bad)  # pyright: ignore[reportArgumentType]


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most"):
        discrete_laplace_tail(MAX_SCALE + 1, 0)
    with pytest.raises(ParameterError, match="at most"):
        discrete_gaussian_tail(MAX_VARIANCE + 1, 0)
    for quantile in (discrete_laplace_quantile, discrete_gaussian_quantile):
        with pytest.raises(ParameterError, match="beta"):
            quantile(1, Fraction(1, 10**291))
