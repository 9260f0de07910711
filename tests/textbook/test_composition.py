"""Composition and conversion: to ten digits, against other libraries, and beside the ledger's rounded ones."""

from __future__ import annotations

from math import exp, expm1, inf, log, nan, sqrt, tanh

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event, pld
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from understudy.errors import ParameterError
from understudy.privacy import compose
from understudy_textbook.composition import (
    analytic_gauss_sigma,
    drv_advanced,
    gauss_mu,
    gauss_rho,
    gdp_delta,
    gdp_eps,
    kov_style,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_eps,
)

deltas = st.floats(-28, -1).map(exp)
prices = st.floats(0.001, 20)
counts = st.integers(1, 10**6)


# k mechanisms -----------------------------------------------------------------------------------------------


def test_drv10_theorem_iii_3_to_ten_digits():
    assert drv_advanced(0.1, 0, 100, 1e-6) == pytest.approx((6.308230950513408, 1e-6), rel=1e-12)
    assert drv_advanced(0.1, 1e-9, 100, 1e-6)[1] == pytest.approx(1.1e-6, rel=1e-12)


def test_kov15_the_tanh_form_is_smaller():
    assert kov_style(0.1, 0, 100, 1e-6)[0] == pytest.approx(5.75611, abs=5e-6)
    assert kov_style(1, 0, 2, 1e-6)[0] == 2  # the plain sum


def exact_delta(eps: float, k: int, promised: float) -> float:
    """δ(promised) of k randomised responses, the hardest of all ε-DP mechanisms."""
    told, truth = np.arange(k + 1), 1 / (1 + exp(-eps))
    here, there = stats.binom.logpmf(told, k, truth), stats.binom.logpmf(told, k, 1 - truth)
    more = eps * (2 * told - k) > promised
    return float((np.exp(here[more]) - np.exp(promised + there[more])).sum())


@given(st.floats(0.005, 3), st.integers(1, 400), deltas)
def test_kov15_both_forms_hold_on_the_exact_composition(eps, k, delta):
    assert exact_delta(eps, k, drv_advanced(eps, 0, k, delta)[0]) <= delta
    assert exact_delta(eps, k, kov_style(eps, 0, k, delta)[0]) <= delta * (1 + 1e-9)
    assert exact_delta(1.0, 100, sqrt(2 * 100 * log(10))) > 0.1  # a mutant without its second term


@given(st.floats(0.001, 5), st.integers(1, 10**4), deltas)
def test_composition_is_monotone(eps, k, delta):
    for form in (drv_advanced, kov_style):
        cost = form(eps, 0, k, delta)[0]
        assert form(2 * eps, 0, k, delta)[0] >= cost
        assert form(eps, 0, 2 * k, delta)[0] >= cost
        assert form(eps, 0, k, delta / 2)[0] >= cost
        assert form(eps, delta / k, k, delta)[1] >= form(eps, 0, k, delta)[1]


# zCDP -------------------------------------------------------------------------------------------------------


def test_bunsteinke16_proposition_1_3_to_ten_digits():
    assert zcdp_eps(0.05, 1e-6) == pytest.approx(1.71225813626911, rel=1e-12)
    assert zcdp_eps(0, 1e-6) == 0


def test_bunsteinke16_proposition_1_6_is_the_divergence_of_two_gaussians():
    """D_a of N(0, σ²) and N(Δ, σ²) is aΔ²/(2σ²), here by integration at three orders."""
    sigma, Delta = 1.7, 0.9
    x = np.linspace(-40, 40, 400_001)
    p, q = stats.norm(0, sigma).logpdf(x), stats.norm(Delta, sigma).logpdf(x)
    for order in (1.5, 2, 5):
        divergence = np.log(np.trapezoid(np.exp(order * p + (1 - order) * q), x)) / (order - 1)
        assert divergence == pytest.approx(order * gauss_rho(Delta, sigma), rel=1e-6)


def test_cks20_corollary_13_to_ten_digits():
    assert zcdp_delta(0.125, 1) == pytest.approx(0.017985448229146408, rel=1e-10)
    assert zcdp_delta(0, 1) == 0
    assert 0 < zcdp_delta(1e-7, 5) < 1e-300  # never "never"


@given(st.floats(1e-6, 50), st.floats(0, 100))
def test_cks20_corollary_13_is_the_minimum_over_orders(rho, eps):
    with mpmath.workdps(40):
        r, e = mpmath.mpf(rho), mpmath.mpf(eps)

        def log_delta(x):
            return x * ((1 + x) * r - e) + x * mpmath.log(x) - (1 + x) * mpmath.log1p(x)

        low, high = mpmath.mpf(-400), mpmath.mpf(60)
        for _ in range(200):
            u = (low + high) / 2
            slope = (2 * mpmath.exp(u) + 1) * r - e - mpmath.log1p(mpmath.exp(-u))
            low, high = (low, u) if slope > 0 else (u, high)
        least = log_delta(mpmath.exp(low))
    assume(least > log(1e-290))
    assert log(zcdp_delta(rho, eps)) == pytest.approx(float(least), rel=1e-10, abs=1e-12)


@given(st.floats(1e-5, 20), st.floats(0.01, 50))
def test_theory_and_ledger_agree_on_zcdp(rho, eps):
    mine, theirs = zcdp_delta(rho, eps), compose.zcdp_delta(rho, eps)
    assume(1e-280 < theirs < 0.99)
    assert mine <= theirs <= min(1.0, mine * (1 + 1e-7))
    assert mine <= zcdp_delta(2 * rho, eps)
    assert mine >= zcdp_delta(rho, 2 * eps)


@given(st.floats(1e-6, 20), deltas)
def test_the_closed_form_is_safe(rho, delta):
    assert zcdp_delta(rho, zcdp_eps(rho, delta)) <= delta
    assert zcdp_eps(rho, delta) <= zcdp_eps(2 * rho, delta)
    assert zcdp_eps(rho, delta) <= zcdp_eps(rho, delta / 2)


@given(st.floats(0.01, 20), st.floats(1e-4, 1e3))
def test_pure_privacy_is_concentrated_at_its_mean_loss(eps, above_one):
    """Rényi divergences of randomised response at orders from 1.0001 to 1001 are within ρ times the order."""
    order = 1 + above_one
    divergence = (np.logaddexp(order * eps, (1 - order) * eps) - np.logaddexp(eps, 0)) / above_one
    assert divergence <= order * pure_to_zcdp(eps) * (1 + 1e-9)
    assert pure_to_zcdp(eps) <= eps**2 / 2 * (1 + 1e-12)
    assert pure_to_zcdp(eps) == pytest.approx(eps * (exp(eps) - 1) / (exp(eps) + 1), rel=1e-9)


def test_pure_privacy_is_no_more_concentrated_than_that():
    eps, order = 2.0, 1 + 1e-7
    divergence = (np.logaddexp(order * eps, (1 - order) * eps) - np.logaddexp(eps, 0)) / 1e-7
    assert divergence == pytest.approx(pure_to_zcdp(eps), rel=1e-5) == eps * tanh(1)


# Gaussian differential privacy ------------------------------------------------------------------------------


def test_drs22_corollary_2_13():
    assert gdp_delta(1, 0.5) == pytest.approx(0.006829594983114591, rel=1e-12)
    assert gdp_delta(0, 1) == pytest.approx(2 * stats.norm.cdf(0.5) - 1, rel=1e-12)


@given(st.floats(0, 20), st.floats(0.01, 5))
def test_drs22_corollary_2_13_to_ten_digits(eps, mu):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(eps)
        reference = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assume(reference > 1e-290)
    # The logarithm of δ keeps its digits; δ itself loses as many as the logarithm has before its point.
    assert log(gdp_delta(eps, mu)) == pytest.approx(float(mpmath.log(reference)), rel=1e-10, abs=1e-10)


@given(deltas, st.floats(0.01, 5))
def test_drs22_corollary_2_13_inverted(delta, mu):
    eps = gdp_eps(delta, mu)
    if eps > 0:
        assert gdp_delta(eps, mu) == pytest.approx(delta, rel=1e-9)
    else:
        assert gdp_delta(0, mu) <= delta
    assert gdp_eps(delta, 2 * mu) >= eps >= gdp_eps(min(0.9, 2 * delta), mu)
    assert eps <= zcdp_eps(mu**2 / 2, delta)


def test_drs22_corollary_2_13_agrees_with_another_accountant():
    accountant = pld.PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(2.0), 9)  # μ = 3/2
    assert gdp_eps(1e-6, 1.5) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def test_drs22_corollary_3_3():
    assert gauss_mu(1000, 100, 0.02) == pytest.approx(0.5, rel=1e-12)
    assert gauss_mu(1000, 100, 0.02) ** 2 / 2 == pytest.approx(100 * gauss_rho(1 / 1000, 0.02), rel=1e-12)


def test_ballewang18_theorem_8():
    assert analytic_gauss_sigma(1, 1e-5, 1) == pytest.approx(3.730631634813881, rel=1e-10)
    # A tenth of the classical formula's slack: sqrt(2 ln(1.25/δ))/ε is 30% too large here.
    assert analytic_gauss_sigma(1, 1e-5, 1) < sqrt(2 * log(1.25e5)) / 1.29


@given(prices, deltas, st.floats(1e-6, 100))
def test_ballewang18_theorem_8_is_the_least(eps, delta, Delta):
    sigma = analytic_gauss_sigma(eps, delta, Delta)
    assert gdp_delta(eps, Delta / sigma) == pytest.approx(delta, rel=1e-8)
    assert gdp_delta(eps, Delta / (sigma * 0.999)) > delta
    assert analytic_gauss_sigma(2 * eps, delta, Delta) <= sigma <= analytic_gauss_sigma(eps, delta / 2, Delta)
    assert analytic_gauss_sigma(eps, delta, 2 * Delta) == pytest.approx(2 * sigma, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: drv_advanced(0, 0, 1, 1e-6), "eps must be positive, not 0"),
        (
            lambda: drv_advanced(800, 0, 1, 1e-6),
            "eps must be at most 700 for its exponential to be a number, not 800",
        ),
        (lambda: drv_advanced(1, 0, 0, 1e-6), "k must be at least 1, not 0"),
        (lambda: drv_advanced(1, -1, 1, 1e-6), "delta must not be negative, not -1"),
        (lambda: drv_advanced(1, 0, 1, 0), "slack must lie strictly between 0 and 1, not 0"),
        (lambda: kov_style(1, 0, 1, 1), "slack must lie strictly between 0 and 1, not 1"),
        (lambda: kov_style(1, 0.01, 100, 1e-6), r"k·delta \+ slack must be below 1 .* and it is 1"),
        (lambda: zcdp_eps(-1, 1e-6), "rho must not be negative, not -1"),
        (lambda: zcdp_eps(1, 0), "delta must lie strictly between 0 and 1, not 0"),
        (lambda: zcdp_delta(nan, 1), "rho must be finite, not nan"),
        (lambda: zcdp_delta(1, inf), "eps must be finite, not inf"),
        (lambda: gdp_delta(-1, 1), "eps must not be negative, not -1"),
        (lambda: gdp_delta(1, 0), "mu must be positive, not 0"),
        (lambda: gdp_eps(0, 1), "delta must lie strictly between 0 and 1, not 0"),
        (lambda: gauss_mu(10, 5, 0), "sigma must be positive, not 0"),
        (lambda: analytic_gauss_sigma(1, 1e-5, 0), "Delta must be positive, not 0"),
        (lambda: pure_to_zcdp(0), "eps must be positive, not 0"),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()


def test_the_second_term_of_the_printed_form_is_more_than_twice_that_of_the_other():
    for eps in (0.01, 0.1, 1.0, 5.0):
        assert expm1(eps) > 2 * tanh(eps / 2)
