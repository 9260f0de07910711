"""The Laplace mechanism: privacy on its exact law, and its tails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.mechanism.laplace import LaplaceMechanism

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
