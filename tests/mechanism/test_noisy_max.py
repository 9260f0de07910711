"""Report noisy max: its law against permute-and-flip, privacy on the exact law, the sampler against the law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import exp, factorial, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax, one_sided
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import epsilon, rho
from understudy_textbook.stability import privacy_curve

mechanisms = st.builds(
    ReportNoisyMax,
    epsilon=st.fractions(Fraction(1, 20), 8, max_denominator=100),
    sensitivity=st.integers(1, 5),
)


@dataclass(frozen=True, slots=True)
class WithoutTheFactorTwo(ReportNoisyMax):
    """The slip: noise of scale Δ/ε."""

    @property
    def scale(self) -> Fraction:
        return self.sensitivity / self.epsilon


def flip_in_random_order(mechanism: ReportNoisyMax, scores: list[int]) -> list[float]:
    """Permute-and-flip: in random order, the first candidate whose coin of e^(-λ·gap) shows heads."""
    heads = [exp(float((s - max(scores)) / mechanism.scale)) for s in scores]
    law = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        left = 1 / factorial(len(scores))
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law


@given(mechanisms, st.lists(st.integers(-20, 20), min_size=1, max_size=5))
def test_the_law_is_that_of_permute_and_flip(mechanism, scores):
    law = mechanism.law(np.array(scores))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(law, flip_in_random_order(mechanism, scores), atol=1e-12)


def moved_pairs(size: int, delta: int):
    """Scores of neighbours: every way in which each score moves by at most Δ, from a few starting points."""
    starts = [(0,) * size, (0, 6 * delta, *range(size - 2)), (9 * delta,) + (0,) * (size - 1)]
    for start in starts:
        for shift in np.ndindex(*(3,) * size):
            yield start, tuple(s + delta * (m - 1) for s, m in zip(start, shift, strict=True))


@pytest.mark.parametrize("size", [2, 4])
def test_privacy_on_the_exact_law(size):
    mechanism = ReportNoisyMax(epsilon=Fraction(2), sensitivity=3)
    mutant = WithoutTheFactorTwo(epsilon=Fraction(2), sensitivity=3)

    def law_of(subject):
        return lambda scores: dict(enumerate(subject.law(np.array(scores)).tolist()))

    assert privacy_curve(law_of(mechanism), moved_pairs(size, 3)).is_stable(2, 0)
    assert not privacy_curve(law_of(mutant), moved_pairs(size, 3)).is_stable(2, 0)


@given(mechanisms, st.lists(st.tuples(st.integers(-60, 60), st.integers(-1, 1)), min_size=2, max_size=6))
def test_log_ratios_stay_within_epsilon(mechanism, listed):
    scores = np.array([score for score, _ in listed])
    moved = scores + mechanism.sensitivity * np.array([sign for _, sign in listed])
    losses = np.log(mechanism.law(scores)) - np.log(mechanism.law(moved))
    assert np.abs(losses).max() <= mechanism.epsilon + 1e-7


def test_the_charge_covers_both_currencies():
    event = ReportNoisyMax(epsilon=Fraction(1, 2), sensitivity=1).event
    assert epsilon(event) >= Fraction(1, 2)
    assert rho(event) == Fraction(1, 2) ** 2 / 2


def test_choices_follow_the_law_and_break_ties_evenly():
    mechanism = ReportNoisyMax(epsilon=Fraction(3, 2), sensitivity=4)
    scores = np.array([0, 3, 3, 9, -5, 10])
    noise = SeededNoise(41)
    counts = np.bincount([mechanism.choose(scores, noise=noise) for _ in range(8000)], minlength=6).tolist()
    assert_follows(counts, mechanism.law(scores).tolist())
    for factor in (Fraction(6, 10), Fraction(16, 10)):
        mutant = ReportNoisyMax(epsilon=mechanism.epsilon * factor, sensitivity=4)
        assert_does_not_follow(counts, mutant.law(scores).tolist())
    exponential = ExponentialMechanism(epsilon=Fraction(3, 2), sensitivity=4)
    assert_does_not_follow(counts, np.exp(exponential.log_law(scores)).tolist())


def test_the_first_of_equals_is_not_preferred():
    """Lattice noise with the first maximum instead of a uniform tie-break would be another law."""
    mechanism = ReportNoisyMax(epsilon=Fraction(20), sensitivity=1)
    noise = SeededNoise(42)
    counts = np.bincount(
        [mechanism.choose(np.zeros(3, np.int64), noise=noise) for _ in range(3000)], minlength=3
    ).tolist()
    assert_follows(counts, [1 / 3] * 3)
    assert_does_not_follow(counts, [0.9, 0.05, 0.05])


def test_one_sided_noise_is_geometric():
    scale = Fraction(5, 2)
    drawn = one_sided(scale, 20000, noise=SeededNoise(43))
    assert drawn.min() == 0
    q = exp(-1 / float(scale))
    law = [(1 - q) * q**g for g in range(30)]
    counts = np.bincount(np.minimum(drawn, 30), minlength=31).tolist()
    assert_follows(counts, [*law, 1 - sum(law)])
    folded = [(1 - q) / (1 + q), *(2 * (1 - q) / (1 + q) * q**g for g in range(1, 30))]
    assert_does_not_follow(counts, [*folded, 1 - sum(folded)])


@given(mechanisms, st.integers(2, 40), st.sampled_from([0.5, 0.05, 1e-3]))
def test_regret_on_the_exact_law(mechanism, k, beta):
    gap = int(np.ceil(mechanism.regret(k, beta)))
    assert mechanism.law(np.array([0] + [-gap] * (k - 1)))[1:].sum() <= beta


def test_regret_by_sampling_and_a_shorter_one_fails():
    mechanism = ReportNoisyMax(epsilon=Fraction(1), sensitivity=1)
    noise, trials, k = SeededNoise(44), 2000, 100

    def failures(gap):
        scores = np.array([0] + [-gap] * (k - 1))
        return sum(mechanism.choose(scores, noise=noise) != 0 for _ in range(trials))

    assert_at_most(failures(int(np.ceil(mechanism.regret(k, 0.05)))), trials, 0.05)
    with pytest.raises(AssertionError):
        assert_at_most(failures(int(0.6 * mechanism.regret(k, 0.05))), trials, 0.05)


def test_it_is_never_worse_than_the_exponential_mechanism():
    scores = np.array([0, 2, 5, 9, 9, 14])
    ours = ReportNoisyMax(epsilon=Fraction(1), sensitivity=2).law(scores)
    theirs = np.exp(ExponentialMechanism(epsilon=Fraction(1), sensitivity=2).log_law(scores))
    assert ours @ scores > theirs @ scores
    assert ReportNoisyMax(epsilon=Fraction(1), sensitivity=2).regret(6, 0.1) == pytest.approx(4 * log(60))


def test_far_scores_and_bad_ones():
    mechanism = ReportNoisyMax(epsilon=Fraction(1), sensitivity=1)
    assert mechanism.choose(np.array([-(2**63), 2**63 - 1]), noise=SeededNoise(1)) == 1
    assert mechanism.choose(np.array([7]), noise=SeededNoise(1)) == 0
    for bad in (np.array([], np.int64), np.array([0.5]), np.array([[1]])):
        with pytest.raises(ParameterError):
            mechanism.choose(bad, noise=SeededNoise(1))
    with pytest.raises(ParameterError, match="take the best"):
        ReportNoisyMax(epsilon=Fraction(1), sensitivity=0)
