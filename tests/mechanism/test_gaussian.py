"""The Gaussian mechanism: Rényi divergences of its exact law, and its tails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from understudy.mechanism.gaussian import GaussianMechanism
from understudy.privacy.cost import rho

ROUNDING = 1e-9
ORDERS = [1.0001, 1.1, 1.5, 2, 2.75, 3, 5.5, 10, 32, 100]

mechanisms = st.builds(
    GaussianMechanism,
    rho=st.fractions(Fraction(1, 200), 8, max_denominator=1000),
    l2_squared=st.sampled_from([1, 2, 3, 4, 5, 9, 13, 25]),
)


def support(mechanism: GaussianMechanism, furthest: int) -> NDArray[np.int64]:
    """Integers beyond which nothing is left, around 0 and around `furthest` on either side."""
    reach = int(13 * float(mechanism.variance) ** 0.5) + abs(furthest) + 13
    return np.arange(-reach, reach + 1)


def renyi(mechanism: GaussianMechanism, shift: int, order: float) -> float:
    """D_order(value + noise ‖ value + shift + noise), summed over the exact law."""
    outputs = support(mechanism, int(np.ceil(order * shift)))
    here, there = mechanism.log_law(0, outputs), mechanism.log_law(shift, outputs)
    return float(np.logaddexp.reduce(order * here + (1 - order) * there)) / (order - 1)


def squares_up_to(bound: int, length: int) -> st.SearchStrategy[list[int]]:
    """Integer vectors of squared length at most `bound`."""
    steps = st.lists(st.integers(-5, 5), min_size=length, max_size=length)
    return steps.filter(lambda shift: sum(d * d for d in shift) <= bound)


@given(mechanisms, st.data())
@settings(max_examples=60)
def test_cks20_theorem_14_renyi_divergence_at_every_order(mechanism, data):
    shift = data.draw(squares_up_to(mechanism.l2_squared, 1))[0]
    for order in ORDERS:
        assert renyi(mechanism, shift, order) <= order * mechanism.rho * (1 + ROUNDING) + ROUNDING


@given(mechanisms, st.data())
@settings(max_examples=60)
def test_cks20_theorem_14_multivariate(mechanism, data):
    """Divergences of independent coordinates add up, and their sum obeys the Euclidean sensitivity."""
    shift = data.draw(squares_up_to(mechanism.l2_squared, 3))
    for order in (1.5, 2, 3.3, 20):
        total = sum(renyi(mechanism, step, order) for step in shift)
        assert total <= order * mechanism.rho * (1 + ROUNDING) + ROUNDING


@pytest.mark.parametrize("variance", ["1/20", "1/4", "9/10", "1", "5", "400"])
def test_cks20_theorem_14_small_and_large_variances(variance):
    """Also where the discrete law is far from the continuous one. At integer orders the bound is attained."""
    mechanism = GaussianMechanism(rho=1 / (2 * Fraction(variance)), l2_squared=1)
    assert mechanism.variance == Fraction(variance)
    for order in ORDERS:
        divergence = renyi(mechanism, 1, order)
        assert divergence <= order * mechanism.rho + ROUNDING
        if order == int(order):
            assert divergence == pytest.approx(float(order * mechanism.rho), rel=1e-8)


@given(mechanisms)
@settings(max_examples=40)
def test_the_divergence_check_sees_a_variance_too_small(mechanism):
    declared = GaussianMechanism(rho=mechanism.rho, l2_squared=1)
    mutant = replace(declared, rho=declared.rho / Fraction(95, 100))
    assert renyi(mutant, 1, 2) > 2 * declared.rho * (1 + ROUNDING)


def test_the_divergence_check_sees_a_longer_shift():
    mechanism = GaussianMechanism(rho=Fraction(1, 8), l2_squared=2)
    assert renyi(mechanism, 1, 2) * 2 == pytest.approx(2 / 8)
    assert renyi(mechanism, 1, 2) + renyi(mechanism, 2, 2) > 2 / 8 * 1.5


def test_the_law_sums_to_one():
    for rho_value in ("1/1000", "1/2", "5", "20"):
        mechanism = GaussianMechanism(rho=Fraction(rho_value), l2_squared=1)
        outputs = support(mechanism, 0)
        assert np.exp(mechanism.log_law(3, outputs + 3)).sum() == pytest.approx(1, abs=1e-11)


# ---------------------------------------------------------------------------------------- accuracy


def tail(mechanism: GaussianMechanism, t: int) -> float:
    """P[|noise| > t], summed outwards so that a small tail keeps its digits."""
    far = support(mechanism, t)
    return 2 * float(np.exp(mechanism.log_law(0, far[far > t])).sum())


@given(mechanisms, st.integers(0, 60))
def test_cks20_corollary_9_the_tail_is_subgaussian(mechanism, t):
    assert tail(mechanism, t) <= 2 * exp(-t * t / (2 * mechanism.variance)) * (1 + ROUNDING)


@given(mechanisms, st.floats(-3, 3))
def test_cks20_corollary_9_moments(mechanism, slope):
    """E exp(sX) ≤ exp(s²σ²/2), and so a variance of at most σ²."""
    sigma = float(mechanism.variance) ** 0.5
    outputs = support(mechanism, int(4 * sigma) + 4)
    law = mechanism.log_law(0, outputs)
    assert np.logaddexp.reduce(law + slope / sigma * outputs) <= slope**2 / 2 + ROUNDING
    assert (np.exp(law) * outputs**2).sum() <= mechanism.variance * (1 + ROUNDING)


@given(mechanisms)
def test_the_event_has_the_variance_that_is_drawn(mechanism):
    assert mechanism.event.variance == mechanism.variance
    assert rho(mechanism.event) == mechanism.rho
