"""The Laplace mechanism: privacy on its exact law, its tails, and the sampler against that law."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise import SeededNoise
from understudy.privacy.cost import pure

ROUNDING = 1e-9
"""What floats may add to a log-probability here; the mutants exceed their bounds by far more."""

PIN = 0.006737946999085467
"""exp(-εnD) at ε = 0.5, n = 1000, D = 0.01."""

mechanisms = st.builds(
    LaplaceMechanism, epsilon=st.fractions(Fraction(1, 100), 20, max_denominator=1000), l1=st.integers(1, 40)
)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[LaplaceMechanism, list[int], list[int]]:
    """A mechanism and two vectors that are at most its l1 apart, moved in any direction."""
    mechanism = draw(mechanisms)
    values = draw(st.lists(st.integers(-1000, 1000), min_size=1, max_size=5))
    left, moved = mechanism.l1, []
    for value in values:
        shift = draw(st.integers(-left, left))
        left -= abs(shift)
        moved.append(value + shift)
    return mechanism, values, moved


def joint_log_law(mechanism: LaplaceMechanism, values: list[int], outputs: list[int]) -> float:
    pairs = zip(values, outputs, strict=True)
    return float(sum(mechanism.log_law(value, output) for value, output in pairs))


def worst_loss(mechanism: LaplaceMechanism, l1: int) -> float:
    """The largest |log-ratio| over all shifts up to `l1` of one value, and outputs on both sides of both."""
    outputs = np.arange(-2 * l1, 2 * l1 + 1)
    here = mechanism.log_law(0, outputs)
    return max(float(np.abs(here - mechanism.log_law(shift, outputs)).max()) for shift in range(-l1, l1 + 1))


@given(mechanisms, st.integers(-100, 100), st.integers(-100, 100), st.integers(-300, 300))
def test_lecture4_claim_3_the_ratio_is_bounded_by_the_shift(mechanism, a, b, output):
    ratio = float(mechanism.log_law(a, output) - mechanism.log_law(b, output))
    assert abs(ratio) <= abs(a - b) / mechanism.scale + ROUNDING


@given(neighbours(), st.data())
def test_lecture4_theorem_5_privacy_on_the_exact_law(case, data):
    mechanism, values, moved = case
    outputs = [
        data.draw(st.integers(min(a, b) - 60, max(a, b) + 60)) for a, b in zip(values, moved, strict=True)
    ]
    loss = joint_log_law(mechanism, values, outputs) - joint_log_law(mechanism, moved, outputs)
    assert abs(loss) <= mechanism.epsilon + ROUNDING


@given(mechanisms)
def test_lecture4_theorem_5_is_tight_and_sees_a_scale_too_small(mechanism):
    """The loss reaches ε exactly; with a scale 5% too small it passes ε."""
    assert worst_loss(mechanism, mechanism.l1) == pytest.approx(float(mechanism.epsilon), rel=1e-9)
    mutant = replace(mechanism, epsilon=mechanism.epsilon / Fraction(95, 100))
    assert worst_loss(mutant, mechanism.l1) > mechanism.epsilon + ROUNDING


def test_a_vector_moved_in_many_places_can_use_up_the_whole_of_epsilon():
    mechanism = LaplaceMechanism(epsilon=Fraction(1), l1=4)
    here, there = [0, 0, 0], [1, -2, 1]
    outputs = [5, -5, 5]
    loss = joint_log_law(mechanism, there, outputs) - joint_log_law(mechanism, here, outputs)
    assert loss == pytest.approx(1)


@given(mechanisms)
def test_the_law_sums_to_one(mechanism):
    reach = int(50 * mechanism.scale) + 2
    assert np.exp(mechanism.log_law(3, np.arange(3 - reach, 4 + reach))).sum() == pytest.approx(1, abs=1e-9)


# ---------------------------------------------------------------------------------------- accuracy


def tail(mechanism: LaplaceMechanism, t: int) -> float:
    """P[|noise| > t] as one minus the sum of the law."""
    return 1 - float(np.exp(mechanism.log_law(0, np.arange(-t, t + 1))).sum())


@given(mechanisms, st.integers(0, 200))
def test_lecture4_claim_6_on_the_lattice(mechanism, t):
    """2q^(t+1)/(1 + q) exactly, which is below the continuous exp(-εt/Δ)."""
    q = exp(-mechanism.epsilon / mechanism.l1)
    assert tail(mechanism, t) == pytest.approx(2 * q ** (t + 1) / (1 + q), abs=1e-10)
    assert 2 * q ** (t + 1) / (1 + q) <= exp(-mechanism.epsilon * t / mechanism.l1)


def test_lecture4_claim_6_pin():
    """A rate of 1000 rows off by more than D = 0.01 is a count off by more than 10; finer lattices approach it."""
    assert exp(-0.5 * 1000 * 0.01) == pytest.approx(PIN, rel=1e-14)
    coarse = tail(LaplaceMechanism(epsilon=Fraction(1, 2), l1=1), 10)
    assert 0.7 * PIN < coarse < PIN
    tails = [tail(LaplaceMechanism(epsilon=Fraction(1, 2), l1=m), 10 * m) for m in (1, 10, 100, 1000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(PIN, rel=1e-3)
    assert tails[-1] < PIN


@given(mechanisms, st.sampled_from([0.001, 0.05, 0.3, 0.9]), st.sampled_from([1, 2, 17]))
def test_the_error_is_the_smallest_that_holds_for_all_cells(mechanism, beta, cells):
    t = mechanism.error(beta, cells=cells)
    assert (1 - tail(mechanism, t)) ** cells >= 1 - beta - ROUNDING
    alone = mechanism.error(beta)
    assert alone == 0 or tail(mechanism, alone - 1) > beta - ROUNDING


def test_the_error_covers_a_vector():
    """Also rejects an error bar made for one cell only."""
    mechanism = LaplaceMechanism(epsilon=Fraction(1, 10), l1=2)
    trials, cells = 4000, 50
    draws = mechanism.release(np.zeros((trials, cells), dtype=np.int64), noise=SeededNoise(11))
    furthest = np.abs(draws).max(axis=1)
    assert_at_most(int((furthest > mechanism.error(0.05, cells=cells)).sum()), trials, 0.05)
    with pytest.raises(AssertionError):
        assert_at_most(int((furthest > mechanism.error(0.05)).sum()), trials, 0.05)


# ---------------------------------------------------------------------------------------- releases


@pytest.mark.parametrize(("epsilon", "l1"), [(Fraction(1, 2), 1), (Fraction(7, 10), 2), (Fraction(2), 9)])
def test_releases_follow_the_law(epsilon, l1):
    mechanism = LaplaceMechanism(epsilon=epsilon, l1=l1)
    released = mechanism.release(np.full(200_000, 7), noise=SeededNoise(12))
    reach = int(40 * mechanism.scale)
    outputs = np.arange(7 - reach, 8 + reach)
    counts = np.bincount(released - outputs[0], minlength=len(outputs)).tolist()
    assert_follows(counts, np.exp(mechanism.log_law(7, outputs)).tolist())
    for factor in (Fraction(8, 10), Fraction(125, 100)):
        wrong = np.exp(replace(mechanism, epsilon=epsilon * factor).log_law(7, outputs))
        assert_does_not_follow(counts, (wrong / wrong.sum()).tolist())


def test_releases_keep_their_shape_and_leave_the_values_alone():
    mechanism = LaplaceMechanism(epsilon=Fraction(1), l1=1)
    for shape in [(), (0,), (3,), (2, 3), (2, 1, 4)]:
        values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        before = values.copy()
        released = mechanism.release(values, noise=SeededNoise(13))
        assert np.asarray(released).shape == shape
        assert np.asarray(released).dtype == np.int64
        np.testing.assert_array_equal(values, before)


def test_values_that_nobody_can_move_are_exact_and_free():
    mechanism = LaplaceMechanism(epsilon=Fraction(1, 2), l1=0)
    values = np.array([4, 5, 6])
    released = mechanism.release(values, noise=SeededNoise(14))
    np.testing.assert_array_equal(released, values)
    assert released is not values
    assert mechanism.error(0.05, cells=3) == 0
    assert pure(mechanism.event).units == 0
