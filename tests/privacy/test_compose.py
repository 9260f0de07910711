"""Composition against exact laws, against the literature's numbers, and against another accountant."""

from __future__ import annotations

from functools import reduce
from math import exp, inf, log, nan, sqrt

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from understudy.errors import ParameterError
from understudy.privacy.compose import (
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

FEW = settings(max_examples=40)
"""Each example inverts a minimum, a hundred times over."""

deltas = st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3, 0.1])
rhos = st.floats(1e-6, 50)
epsilons = st.floats(1e-4, 100)


# ---------------------------------------------------------------------------------------- zCDP to (ε, δ)


def least_log_delta(rho: float, epsilon: float) -> mpmath.mpf:
    """ln of the least δ over all orders, to 50 digits, where the derivative by ln(order - 1) vanishes."""
    with mpmath.workdps(50):
        r, e = mpmath.mpf(rho), mpmath.mpf(epsilon)
        low, high = mpmath.mpf(-2000), mpmath.mpf(2000)
        for _ in range(180):
            u = (low + high) / 2
            slope = (1 + 2 * mpmath.exp(u)) * r - e - mpmath.log1p(mpmath.exp(-u))
            low, high = (low, u) if slope > 0 else (u, high)
        x = mpmath.exp(low)
        return x * ((1 + x) * r - e) + x * low - (1 + x) * mpmath.log1p(x)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The exact curve of Gaussian noise whose sensitivity is `mu` standard deviations."""
    here, there = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(-np.exp(here) * np.expm1(there - here))


@given(rhos, st.just(0.0) | epsilons)
@FEW
def test_cks20_corollary_13_is_never_below_its_minimum_and_close_to_it(rho, epsilon):
    least = least_log_delta(rho, epsilon)
    assume(log(1e-290) < least < log(0.999))
    ours = log(zcdp_delta(rho, epsilon))
    assert least <= ours <= least + 1e-7


@pytest.mark.parametrize("rho", [1e-6, 1e-4])
def test_a_positive_rho_never_promises_a_delta_of_zero(rho):
    """Gaussian noise is (ε, 0)-DP for no ε, however small δ has become."""
    assert zcdp_delta(rho, 1.0) > 0


@given(st.floats(1e-4, 20), st.floats(1e-3, 50))
def test_cks20_corollary_13_is_above_the_exact_gaussian_curve(rho, epsilon):
    assert gaussian_delta(sqrt(2 * rho), epsilon) <= zcdp_delta(rho, epsilon)


def test_the_gaussian_curve_sees_a_rho_too_small():
    """With half of ρ the bound would fall below the exact curve; and its own pin holds."""
    assert gaussian_delta(0.5, 1) == pytest.approx(0.006829594983114591, rel=1e-10)
    assert zcdp_delta(0.125 / 2, 1) < gaussian_delta(0.5, 1)


def test_cks20_corollary_13_pins():
    assert zcdp_delta(0.125, 1) == pytest.approx(0.017985448229146408, rel=1e-8)
    assert zcdp_epsilon(0.05, 1e-6) == pytest.approx(1.4716, abs=1e-4)


@given(st.floats(1e-12, 10**4), deltas)
@FEW
def test_bunsteinke16_proposition_1_3_is_an_upper_bound(rho, delta):
    assert zcdp_epsilon(rho, delta) <= (rho + 2 * sqrt(rho * log(1 / delta))) * (1 + 1e-12)


def test_bunsteinke16_proposition_1_3_pin():
    closed = 0.05 + 2 * sqrt(0.05 * log(1e6))
    assert closed == pytest.approx(1.71225813626911, rel=1e-12)
    assert zcdp_epsilon(0.05, 1e-6) <= closed
    assert zcdp_delta(0.05, closed) <= 1e-6


@given(rhos, rhos, epsilons, epsilons)
def test_more_rho_and_less_epsilon_never_have_a_smaller_delta(rho, other_rho, epsilon, other_epsilon):
    low, high = sorted((rho, other_rho))
    assert zcdp_delta(low, epsilon) <= zcdp_delta(high, epsilon) * (1 + 1e-8)
    tight, wide = sorted((epsilon, other_epsilon))
    assert zcdp_delta(rho, wide) <= zcdp_delta(rho, tight) * (1 + 1e-8)


@given(rhos, deltas)
@FEW
def test_epsilon_is_on_the_safe_side_and_not_wasteful(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert zcdp_delta(rho, epsilon) <= delta
    if epsilon > 1e-3:
        assert zcdp_delta(rho, epsilon * (1 - 1e-5)) > delta


@given(epsilons, deltas)
@FEW
def test_rho_is_on_the_safe_side_and_not_wasteful(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert rho > 0
    assert zcdp_delta(rho, epsilon) <= delta
    assert zcdp_delta(rho * (1 + 1e-5), epsilon) > delta
    assert zcdp_epsilon(rho, delta) <= epsilon * (1 + 1e-9)


@given(rhos, deltas)
@FEW
def test_round_trip_from_rho(rho, delta):
    """Where ε is not 0 (then a larger ρ would do as well)."""
    epsilon = zcdp_epsilon(rho, delta)
    assume(epsilon > 1e-6)
    assert zcdp_rho(epsilon, delta) == pytest.approx(rho, rel=1e-6)
    assert zcdp_rho(epsilon, delta) >= rho * (1 - 1e-12)


def test_nothing_spent_promises_everything():
    assert zcdp_delta(0, 1) == 0
    assert zcdp_epsilon(0, 1e-6) == 0


@pytest.mark.parametrize("bad", [-1, nan, inf])
def test_conversions_refuse_what_is_no_parameter(bad):
    for convert in (
        lambda: zcdp_delta(bad, 1),
        lambda: zcdp_delta(1, bad),
        lambda: zcdp_epsilon(bad, 1e-6),
        lambda: zcdp_epsilon(1, bad),
        lambda: zcdp_rho(bad, 1e-6),
        lambda: zcdp_rho(1, bad),
    ):
        with pytest.raises(ParameterError):
            convert()


# ---------------------------------------------------------------------------------------- another accountant

DELTA, TIMES = 1e-6, 1000
LAPLACE_RHO, SELECTION_RHO, GAUSSIAN_RHO = 0.01**2 / 2, 0.01**2 / 8, 1 / (2 * 100**2)


def pld_epsilon(*mechanisms: pld.PrivacyLossDistribution) -> float:
    """From the distribution of the privacy loss itself, each mechanism run a thousand times."""
    composed = [mechanism.self_compose(TIMES) for mechanism in mechanisms]
    return reduce(lambda total, one: total.compose(one), composed).get_epsilon_for_delta(DELTA)


def losses() -> tuple[pld.PrivacyLossDistribution, ...]:
    """Laplace with ε = 0.01, Gaussian with σ = 100, and a selection with ε = 0.01 between two even candidates.

    That selection is a randomised response with ε/2.
    """
    grid = 1e-4
    return (
        pld.from_laplace_mechanism(100, value_discretization_interval=grid),
        pld.from_gaussian_mechanism(100, value_discretization_interval=grid),
        pld.from_randomized_response(2 / (1 + exp(0.005)), 2, value_discretization_interval=grid),
    )


def test_a_mixture_is_above_the_exact_accountant_and_close_to_it():
    laplace, gaussian, selection = losses()
    ours, theirs = zcdp_epsilon(TIMES * (LAPLACE_RHO + GAUSSIAN_RHO), DELTA), pld_epsilon(laplace, gaussian)
    assert theirs <= ours <= 1.1 * theirs
    mixture = zcdp_epsilon(TIMES * (LAPLACE_RHO + SELECTION_RHO + GAUSSIAN_RHO), DELTA)
    theirs = pld_epsilon(laplace, gaussian, selection)
    assert mixture == pytest.approx(2.284, abs=1e-3)
    assert theirs <= mixture <= 1.1 * theirs


def test_the_cross_check_sees_a_mechanism_that_was_not_charged():
    assert zcdp_epsilon(TIMES * GAUSSIAN_RHO, DELTA) < pld_epsilon(*losses()[:2])


@pytest.mark.parametrize("rho", [1e-3, 0.05, 1.0, 10.0])
def test_the_conversion_agrees_with_the_renyi_accountant(rho):
    """Theirs tries a grid of orders, so it is no smaller than ours."""
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    assert zcdp_epsilon(rho, DELTA) <= accountant.get_epsilon(DELTA) <= 1.05 * zcdp_epsilon(rho, DELTA)
