"""Randomised response: the exact law of a report, its estimate, and the reports drawn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.mechanism.randomized_response import RandomizedResponse
from understudy.noise.samplers import SeededNoise

ROUNDING = 1e-9

mechanisms = st.builds(
    RandomizedResponse,
    epsilon=st.fractions(Fraction(1, 100), 30, max_denominator=1000),
    size=st.integers(2, 12),
)


def worst_loss(mechanism: RandomizedResponse) -> float:
    laws = np.log([mechanism.law(value) for value in range(mechanism.size)])
    return float((laws[:, None, :] - laws[None, :, :]).max())


@given(mechanisms)
def test_warner65_the_ratio_of_the_exact_law_is_e_to_the_epsilon(mechanism):
    assert worst_loss(mechanism) == pytest.approx(float(mechanism.epsilon), rel=1e-9)
    mutant = replace(mechanism, epsilon=mechanism.epsilon * Fraction(105, 100))
    assert worst_loss(mutant) > mechanism.epsilon + ROUNDING


@given(mechanisms)
def test_a_law_sums_to_one_and_treats_all_wrong_values_alike(mechanism):
    law = mechanism.law(1)
    e = exp(mechanism.epsilon)
    assert law.sum() == pytest.approx(1)
    assert law[1] == pytest.approx(e / (e + mechanism.size - 1))
    assert np.ptp(np.delete(law, 1)) == 0


def slope_and_offset(mechanism: RandomizedResponse) -> tuple[float, float]:
    """The estimate is a line in the share of reports that name the value."""
    none, all_ = mechanism.estimate(np.array([0, 0]), 1), mechanism.estimate(np.array([1, 1]), 1)
    assert mechanism.estimate(np.array([0, 1]), 1) == pytest.approx((none + all_) / 2)
    return all_ - none, none


@given(mechanisms, st.data())
def test_the_estimate_is_unbiased(mechanism, data):
    """In expectation over the exact law of every row's report."""
    size = mechanism.size
    rows = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=20))
    slope, offset = slope_and_offset(mechanism)
    expected_share = np.mean([mechanism.law(row)[1] for row in rows])
    truth = rows.count(1) / len(rows)
    assert offset + slope * expected_share == pytest.approx(truth, abs=1e-9 * slope)


@given(st.fractions(Fraction(1, 100), 30, max_denominator=1000), st.integers(1, 10**6))
def test_the_standard_deviation_of_two_values_is_bounded(epsilon, n):
    """The exact one is slope·sqrt(p(1-p)/n); the bound adds the row that is itself drawn at random."""
    mechanism = RandomizedResponse(epsilon=epsilon)
    slope, _ = slope_and_offset(mechanism)
    p = mechanism.law(1)[1]
    assert slope * sqrt(p * (1 - p) / n) <= mechanism.standard_deviation(n) * (1 + ROUNDING)
    assert slope / 2 / sqrt(n) == pytest.approx(mechanism.standard_deviation(n))


def test_the_standard_deviation_by_sampling():
    """Of 500 estimates at most a ninth lies beyond three deviations (Chebyshev); a tenth of the bound fails."""
    mechanism = RandomizedResponse(epsilon=Fraction(1))
    n, trials = 200, 500
    truth = np.tile(np.arange(n) % 4 == 0, trials).astype(np.int64)
    reports = mechanism.release(truth, noise=SeededNoise(51)).reshape(trials, n)
    off = np.abs([mechanism.estimate(report, 1) - 0.25 for report in reports])
    deviation = mechanism.standard_deviation(n)
    assert_at_most(int((off > 3 * deviation).sum()), trials, 1 / 9)
    with pytest.raises(AssertionError):
        assert_at_most(int((off > 0.3 * deviation).sum()), trials, 1 / 9)


@pytest.mark.parametrize(("epsilon", "size"), [("1", 2), ("1/2", 3), ("3", 7), ("log 3", 2)])
def test_reports_follow_the_law(epsilon, size):
    """Whatever the row's value; with ε = ln 3 as in the coin story, the truth is told 3 times in 4."""
    exact = Fraction(log(3)) if epsilon == "log 3" else Fraction(epsilon)
    mechanism = RandomizedResponse(epsilon=exact, size=size)
    for value in {0, size // 2, size - 1}:
        reports = mechanism.release(np.full(60_000, value, dtype=np.uint8), noise=SeededNoise(52))
        counts = np.bincount(reports, minlength=size).tolist()
        assert_follows(counts, mechanism.law(value).tolist())
        for factor in (Fraction(8, 10), Fraction(125, 100)):
            assert_does_not_follow(counts, replace(mechanism, epsilon=exact * factor).law(value).tolist())


def test_rows_report_independently():
    """Pairs of neighbours in the list have the product law; a coin shared by one pair in ten would show."""
    mechanism = RandomizedResponse(epsilon=Fraction(1))
    reports = mechanism.release(np.zeros(100_000, dtype=np.int64), noise=SeededNoise(53))
    law = mechanism.law(0)
    counts = np.bincount(2 * reports[::2] + reports[1::2], minlength=4).tolist()
    independent = np.outer(law, law)
    assert_follows(counts, independent.ravel().tolist())
    assert_does_not_follow(counts, (0.9 * independent + 0.1 * np.diag(law)).ravel().tolist())


def test_mixed_rows_keep_their_places():
    mechanism = RandomizedResponse(epsilon=Fraction(200), size=5)
    truth = np.arange(1000) % 5
    before = truth.copy()
    np.testing.assert_array_equal(mechanism.release(truth, noise=SeededNoise(54)), before)
    np.testing.assert_array_equal(truth, before)
    assert mechanism.release(np.array([], dtype=np.int64), noise=SeededNoise(54)).shape == (0,)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), 700, 709, 710, 1000])
def test_every_epsilon_that_is_accepted_has_a_law_and_an_estimate(epsilon):
    """Also where exp(ε) is beyond every float."""
    mechanism = RandomizedResponse(epsilon=Fraction(epsilon))
    assert mechanism.law(0).sum() == pytest.approx(1)
    share = mechanism.estimate(np.array([0, 1]), 1)
    assert share == pytest.approx(0.5)
    assert mechanism.standard_deviation(4) >= 0.25


@pytest.mark.parametrize("size", [1, 0, -2])
def test_fewer_than_two_values_are_refused(size):
    with pytest.raises(ParameterError):
        RandomizedResponse(epsilon=Fraction(1), size=size)


@pytest.mark.parametrize("values", [[-1], [0, 3], [2**40]])
def test_codes_outside_are_refused(values):
    with pytest.raises(ParameterError):
        RandomizedResponse(epsilon=Fraction(1), size=3).release(np.array(values), noise=SeededNoise(55))
