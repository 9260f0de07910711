"""The exponential mechanism: privacy and accuracy on its exact law, and the sampler against that law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import log_softmax

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import rho

ROUNDING = 1e-9
ORDERS = (1.01, 1.5, 2.0, 3.7, 10.0, 64.0)

REGRET_PIN = 0.015201804919084164
"""Rates of 1000 rows, ε = 1, 100 candidates, β = 0.05."""

mechanisms = st.builds(
    ExponentialMechanism,
    epsilon=st.fractions(Fraction(1, 100), 20, max_denominator=1000),
    sensitivity=st.integers(1, 30),
)


@dataclass(frozen=True, slots=True)
class WithoutTheFactorTwo(ExponentialMechanism):
    """The classic slip: weights exp(εs/Δ)."""

    def log_law(self, scores: NDArray[np.int64]) -> NDArray[np.float64]:
        return log_softmax(float(self.epsilon / self.sensitivity) * (scores - scores.max()).astype(float))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[ExponentialMechanism, NDArray[np.int64], NDArray[np.int64]]:
    """Scores of two neighbouring tables: each moved by at most Δ, in its own direction."""
    mechanism = draw(mechanisms)
    delta = mechanism.sensitivity
    pairs = st.tuples(st.integers(-500, 500), st.integers(-delta, delta) | st.sampled_from([-delta, delta]))
    scores = np.array(draw(st.lists(pairs, min_size=1, max_size=8)), dtype=np.int64)
    return mechanism, scores[:, 0], scores.sum(axis=1)


def losses(
    mechanism: ExponentialMechanism, scores: NDArray[np.int64], moved: NDArray[np.int64]
) -> NDArray[np.float64]:
    return mechanism.log_law(scores) - mechanism.log_law(moved)


def renyi(here: NDArray[np.float64], there: NDArray[np.float64], order: float) -> float:
    return float(np.logaddexp.reduce(order * here + (1 - order) * there)) / (order - 1)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), mechanisms)
def test_lecture18_algorithm_1_weights(scores, mechanism):
    """Candidate i has probability exp(εsᵢ/(2Δ)) over the sum of all."""
    rate = float(mechanism.epsilon) / (2 * mechanism.sensitivity)
    weights = [exp(rate * (score - max(scores))) for score in scores]
    law = np.exp(mechanism.log_law(np.array(scores)))
    np.testing.assert_allclose(law, np.array(weights) / sum(weights), rtol=1e-9, atol=1e-300)


@given(neighbours())
def test_dworkroth14_theorem_3_10_privacy_on_the_exact_law(case):
    mechanism, scores, moved = case
    assert np.abs(losses(mechanism, scores, moved)).max() <= mechanism.epsilon + ROUNDING


@given(neighbours())
def test_cesarrogers21_range_and_renyi_divergence(case):
    """Losses lie in an interval of length ε, so that every Rényi divergence is at most order·ε²/8."""
    mechanism, scores, moved = case
    loss = losses(mechanism, scores, moved)
    assert loss.max() - loss.min() <= mechanism.epsilon + ROUNDING
    assert rho(mechanism.event) == mechanism.epsilon**2 / 8
    for order in ORDERS:
        divergence = renyi(mechanism.log_law(scores), mechanism.log_law(moved), order)
        assert divergence <= order * rho(mechanism.event) + 1e-9


def test_both_bounds_are_nearly_attained_and_see_the_missing_factor_two():
    scores = np.array([0] + [600] * 200)
    moved = scores + np.array([30] + [-30] * 200)
    mechanism = ExponentialMechanism(epsilon=Fraction(3), sensitivity=30)
    mutant = WithoutTheFactorTwo(epsilon=Fraction(3), sensitivity=30)
    assert np.abs(losses(mechanism, scores, moved)).max() == pytest.approx(3, rel=1e-6)
    assert np.abs(losses(mutant, scores, moved)).max() > 3 * 1.9
    even, tilted = np.array([0, 0]), np.array([-1, 1])
    for small in (Fraction(1, 10), Fraction(1, 2)):
        mechanism = ExponentialMechanism(epsilon=small, sensitivity=1)
        divergence = renyi(mechanism.log_law(even), mechanism.log_law(tilted), 2.0)
        assert divergence == pytest.approx(float(2 * small**2 / 8), rel=0.05)
        mutant = WithoutTheFactorTwo(epsilon=small, sensitivity=1)
        assert renyi(mutant.log_law(even), mutant.log_law(tilted), 2.0) > 2 * small**2 / 8 * 3


# ---------------------------------------------------------------------------------------- accuracy


def test_lecture18_theorem_0_1_pin():
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    assert mechanism.regret(100, 0.05) / 1000 == pytest.approx(REGRET_PIN, rel=1e-12)


@given(
    mechanisms,
    st.lists(st.integers(-3000, 3000), min_size=1, max_size=30),
    st.sampled_from([0.5, 0.05, 1e-3]),
)
def test_lecture18_theorem_0_1_on_the_exact_law(mechanism, listed, beta):
    scores = np.array(listed)
    law = np.exp(mechanism.log_law(scores))
    gaps = scores.max() - scores
    assert law[gaps >= mechanism.regret(len(listed), beta)].sum() <= beta
    assert float((law * gaps).sum()) <= mechanism.expected_regret(len(listed)) + ROUNDING


@given(mechanisms, st.integers(2, 200), st.sampled_from([0.5, 0.05, 1e-3]))
def test_lecture18_theorem_0_1_where_it_is_nearly_attained(mechanism, k, beta):
    """One best candidate, and all others exactly at the regret; a bound 30% shorter would be wrong."""
    regret = mechanism.regret(k, beta)
    scores = np.array([0] + [-int(np.ceil(regret))] * (k - 1))
    assert np.exp(mechanism.log_law(scores))[1:].sum() <= beta
    short = int(0.7 * regret)
    if k >= 100 and beta <= 0.05 and short > 0:
        scores = np.array([0] + [-short] * (k - 1))
        assert np.exp(mechanism.log_law(scores))[1:].sum() > beta


def test_lecture18_theorem_0_1_by_sampling():
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    k, beta, trials = 200, 0.05, 3000
    regret = mechanism.regret(k, beta)
    noise = SeededNoise(31)

    def failures(gap: int) -> int:
        scores = np.array([0] + [-gap] * (k - 1))
        return sum(mechanism.choose(scores, noise=noise) != 0 for _ in range(trials))

    assert_at_most(failures(int(np.ceil(regret))), trials, beta)
    with pytest.raises(AssertionError):
        assert_at_most(failures(int(0.7 * regret)), trials, beta)


# ---------------------------------------------------------------------------------------- choices


@pytest.mark.parametrize("offset", [0, -(2**61), 2**61])
def test_choices_follow_the_law(offset):
    """Only differences of scores matter, also at the ends of what 64 bits hold."""
    mechanism = ExponentialMechanism(epsilon=Fraction(3, 2), sensitivity=4)
    scores = np.array([0, 3, 3, 9, -5, 10], dtype=np.int64)
    noise = SeededNoise(32)
    counts = np.bincount([mechanism.choose(scores + offset, noise=noise) for _ in range(8000)], minlength=6)
    assert_follows(counts.tolist(), np.exp(mechanism.log_law(scores)).tolist())
    for factor in (Fraction(6, 10), Fraction(16, 10)):
        mutant = ExponentialMechanism(epsilon=mechanism.epsilon * factor, sensitivity=4)
        assert_does_not_follow(counts.tolist(), np.exp(mutant.log_law(scores)).tolist())


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32])
def test_narrow_integers_are_chosen_from_like_wide_ones(dtype):
    """Differences of narrow integers must not wrap around: here the best and the worst would change places."""
    mechanism = ExponentialMechanism(epsilon=Fraction(10), sensitivity=1)
    limits = np.iinfo(dtype)
    scores = np.array([limits.max, limits.min], dtype=dtype)
    assert [mechanism.choose(scores, noise=SeededNoise(seed)) for seed in range(20)] == [0] * 20
    np.testing.assert_allclose(mechanism.log_law(scores), mechanism.log_law(scores.astype(np.int64)))


def test_a_gap_that_underflows_every_float_is_chosen_from():
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    scores = np.array([0, -(2**61)])
    assert mechanism.choose(scores, noise=SeededNoise(33)) == 0
    assert mechanism.log_law(scores)[1] == pytest.approx(-(2.0**60))


def test_one_candidate_is_chosen():
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    assert mechanism.choose(np.array([-7]), noise=SeededNoise(34)) == 0
    assert mechanism.expected_regret(1) == 0


@pytest.mark.parametrize(
    "scores",
    [
        np.array([], dtype=np.int64),
        np.array([[1, 2]]),
        np.array(3),
        np.array([0.5, 1.5]),
        np.array([True, False]),
    ],
)
def test_scores_off_the_lattice_are_refused(scores):
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    with pytest.raises(ParameterError):
        mechanism.choose(scores, noise=SeededNoise(35))


def test_scores_that_nobody_can_move_are_refused():
    with pytest.raises(ParameterError, match="take the best"):
        ExponentialMechanism(epsilon=Fraction(1), sensitivity=0)


def test_regret_grows_as_it_should():
    mechanism = ExponentialMechanism(epsilon=Fraction(1, 2), sensitivity=3)
    assert mechanism.regret(7, 0.1) == pytest.approx(12 * log(70))
    assert mechanism.expected_regret(7) == pytest.approx(12 * log(7))


def test_scores_too_far_apart_are_no_error():
    """An error would tell that a score lies that far below; such scores count as 2^62 below the best."""
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=1)
    for scores in (
        [2**62, -(2**62)],
        [np.iinfo(np.int64).max, np.iinfo(np.int64).min],
        [-(2**63), -(2**63) + 1],
    ):
        assert mechanism.choose(np.array(scores), noise=SeededNoise(36)) in (0, 1)
