"""Rounded normal noise: the privacy of its exact law is never worse than that of the normal one, and its tails."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.look import _is_its_noise, check_known
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import rho
from understudy.privacy.event import RoundedNormal
from understudy.privacy.relation import Sensitivity

ROUNDING = 1e-9
mechanisms = st.builds(
    RoundedNormalMechanism,
    rho=st.fractions(Fraction(1, 200), 8, max_denominator=1000),
    l2_squared=st.sampled_from([1, 4, 9, 25]),
)


def laws(mechanism: RoundedNormalMechanism, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the law of the noise, and of the same moved by `shift`."""
    reach = int(30 * mechanism.spread) + abs(shift) + 30
    outputs = np.arange(-reach, reach + 1)
    return mechanism.log_law(0, outputs), mechanism.log_law(shift, outputs)


def delta(mechanism: RoundedNormalMechanism, shift: int, epsilon: float) -> float:
    """δ(ε) of the exact law on one number that moves by `shift`."""
    here, there = laws(mechanism, shift)
    return float(np.maximum(np.exp(here) - np.exp(epsilon + there), 0).sum())


@given(mechanisms, st.floats(0, 6))
@settings(max_examples=50)
def test_drs22_rounding_keeps_the_curve_of_the_normal_law(
    mechanism: RoundedNormalMechanism, epsilon: float
) -> None:
    shift = int(sqrt(mechanism.l2_squared))
    mu = sqrt(mechanism.event.gdp_cost())
    ideal = ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert delta(mechanism, shift, epsilon) <= ideal + ROUNDING


@pytest.mark.parametrize("sigma_squared", [10, 400, 10**4])
def test_the_curve_is_attained_where_noise_is_much_larger_than_a_step(sigma_squared: int) -> None:
    """And so noise that is a twentieth too small breaks it."""
    mechanism = RoundedNormalMechanism(rho=Fraction(1, 2 * sigma_squared), l2_squared=1)
    shift = int(sqrt(sigma_squared))
    mu = shift / sqrt(sigma_squared)
    ideal = ndtr(mu / 2 - 1 / mu) - exp(1) * ndtr(-mu / 2 - 1 / mu)
    assert delta(mechanism, shift, 1.0) == pytest.approx(ideal, rel=0.06)
    mutant = RoundedNormalMechanism(rho=Fraction(1, 2 * sigma_squared) / Fraction(95, 100) ** 2, l2_squared=1)
    assert delta(mutant, shift, 1.0) > ideal


@given(mechanisms, st.sampled_from([1.0001, 1.5, 2.0, 5.5, 32.0]))
@settings(max_examples=50)
def test_its_divergence_of_every_order_is_at_most_that_of_rho(
    mechanism: RoundedNormalMechanism, order: float
) -> None:
    here, there = laws(mechanism, int(sqrt(mechanism.l2_squared)))
    divergence = float(np.logaddexp.reduce(order * here + (1 - order) * there)) / (order - 1)
    assert divergence <= order * mechanism.rho * (1 + ROUNDING) + ROUNDING


@given(mechanisms, st.floats(1e-12, 0.9))
def test_the_error_is_the_smallest_that_the_tail_allows(
    mechanism: RoundedNormalMechanism, beta: float
) -> None:
    t = mechanism.error(beta)
    sigma = mechanism.spread
    assert 2 * norm.sf((t + 0.5) / sigma) <= beta
    assert t == 0 or 2 * norm.sf((t - 0.5) / sigma) > beta * (1 - 1e-11)
    assert mechanism.error(beta, cells=7) >= t


@given(mechanisms)
@settings(max_examples=50)
def test_the_variance_is_at_most_that_of_the_normal_law_and_a_twelfth(
    mechanism: RoundedNormalMechanism,
) -> None:
    reach = int(13 * mechanism.spread) + 13
    outputs = np.arange(-reach, reach + 1)
    law = np.exp(mechanism.log_law(0, outputs))
    assert law.sum() == pytest.approx(1, abs=1e-11)
    assert (law * outputs**2).sum() <= float(mechanism.variance) * (1 + ROUNDING)
    if mechanism.spread > 1:
        assert (law * outputs**2).sum() == pytest.approx(float(mechanism.variance), rel=1e-6)


@given(mechanisms)
def test_the_event_has_the_variance_that_is_drawn(mechanism: RoundedNormalMechanism) -> None:
    assert mechanism.event.variance == mechanism.parameter
    assert rho(mechanism.event) == mechanism.rho
    moved = Sensitivity(9, 81)
    assert mechanism.event_for(moved) == RoundedNormal(l2_squared=Fraction(81), variance=mechanism.parameter)


def test_draws_are_of_the_mechanisms_own_law() -> None:
    """A variance of 10⁴: its mean square over 40,000 draws is within 5 deviations, 3.6%, of it."""
    mechanism = RoundedNormalMechanism(rho=Fraction(1, 20_000), l2_squared=1)
    drawn = mechanism.release(np.full((200, 200), 7), noise=SeededNoise(3)) - 7
    assert drawn.shape == (200, 200)
    assert float(np.mean(drawn.astype(float) ** 2)) == pytest.approx(10**4, rel=0.036)
    twice = mechanism.draw_many(np.arange(3), 2, noise=SeededNoise(3))
    assert len(twice) == 2
    assert twice[0] != twice[1]


def test_values_that_nobody_moves_are_told_as_they_are() -> None:
    free = RoundedNormalMechanism(rho=Fraction(1), l2_squared=0)
    assert free.release(np.arange(4), noise=SeededNoise(1)).tolist() == [0, 1, 2, 3]
    assert free.error(0.05) == free.variance == 0
    assert rho(free.event) == 0


def test_a_look_is_charged_for_the_kind_of_noise_that_it_draws() -> None:
    """The two normal noises have one variance, and other events: one is not taken for the other."""
    normal, discrete = (
        kind(rho=Fraction(1, 8), l2_squared=1) for kind in (RoundedNormalMechanism, GaussianMechanism)
    )
    check_known(normal)
    assert _is_its_noise(normal, normal.event)
    assert not _is_its_noise(normal, discrete.event)
    assert not _is_its_noise(discrete, normal.event)
    other = RoundedNormalMechanism(rho=Fraction(1, 9), l2_squared=1)
    assert not _is_its_noise(normal, other.event)
    free = RoundedNormalMechanism(rho=Fraction(1, 8), l2_squared=0)
    assert not _is_its_noise(free, RoundedNormal(l2_squared=Fraction(1), variance=free.event.variance))
