"""Sparse vector bounds: to ten digits, against the mechanism's own, and by simulation."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from statistical import FALSE_ALARM, assert_at_most
from understudy.errors import ParameterError
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy_textbook.composition import drv_advanced
from understudy_textbook.sparse_vector import (
    above_threshold_alpha,
    numeric_sparse_alpha,
    numeric_sparse_split,
    sparse_alpha,
    sparse_eps0,
    sparse_rho,
)


def test_dworkroth14_theorem_3_24_to_ten_digits():
    assert above_threshold_alpha(1e4, 1e3, 1, 0.05) == pytest.approx(0.008477307786476857, rel=1e-12)


def wrong_answers(values: np.ndarray, threshold: float, alpha: float, scale: float, runs: int) -> int:
    """How many runs of AboveThreshold err about a value further than α from the threshold; `scale` is 1/(εn)."""
    rng = np.random.default_rng(324)
    noisy = values + rng.laplace(0, 4 * scale, (runs, len(values)))
    above = noisy >= threshold + rng.laplace(0, 2 * scale, (runs, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), len(values))
    asked = np.arange(len(values)) <= first[:, None]
    wrong = (above & (values <= threshold - alpha)) | (~above & (values >= threshold + alpha))
    return int((asked & wrong).any(axis=1).sum())


def test_dworkroth14_theorem_3_24_by_simulation():
    n, k, eps, beta = 1000, 20, 1.0, 0.1
    alpha = above_threshold_alpha(n, k, eps, beta)
    low = np.full(k, 0.5 - alpha - 1e-9)
    assert_at_most(wrong_answers(low, 0.5, alpha, 1 / (eps * n), 5000), 5000, beta)
    near = np.full(k, 0.5 - alpha / 4)
    failures = wrong_answers(near, 0.5, alpha / 4, 1 / (eps * n), 5000)
    assert stats.binom.sf(failures - 1, 5000, beta) < FALSE_ALARM  # a quarter of α would not do


@given(st.fractions(Fraction(1, 100), 10), st.integers(1, 50), st.integers(1, 10**6), st.floats(1e-6, 0.5))
def test_dworkroth14_theorem_3_26_is_more_than_the_mechanism_says(eps, hits, k, beta):
    """The mechanism's bound is one-sided, and two lattice steps more; it counts in steps, rates divide by n."""
    handle = AboveThreshold(epsilon=eps, sensitivity=1, threshold=0, hits=hits)
    assert handle.alpha(k, beta) <= sparse_alpha(500, k, hits, eps, beta) * 500 + 2


def test_dworkroth14_theorem_3_26_to_seven_digits():
    assert sparse_alpha(1e4, 1e3, 10, 1, 0.05) == pytest.approx(0.1031938, abs=5e-8)
    assert sparse_alpha(1e4, 1e3, 10, 1, 0.05, 1e-6) == pytest.approx(0.3430693, abs=5e-8)
    assert sparse_alpha(1e4, 1e3, 1, 1, 0.05) == above_threshold_alpha(1e4, 1e3, 1, 0.05)


@given(st.integers(1, 1000), st.floats(0.01, 20), st.floats(-28, -2).map(exp))
def test_dworkroth14_theorem_3_25_holds_by_advanced_composition(c, eps, delta):
    weight = log(1 / delta)
    if eps > 2 * weight or eps > sqrt(8 * c * weight):
        with pytest.raises(ParameterError, match="advanced composition needs"):
            sparse_eps0(c, eps, delta)
        return
    assert drv_advanced(sparse_eps0(c, eps, delta), 0, c, delta)[0] <= eps * (1 + 1e-12)
    assert sparse_eps0(c, eps) * c == pytest.approx(eps, rel=1e-12)


def test_concentrated_accounting_is_cheaper_for_many_runs():
    """At the price of a run that the approximate form allows, ρ = ε²/(16 ln(1/δ)), however many runs."""
    each = sparse_eps0(100, 1, 1e-6)
    assert sparse_rho(100, each) == pytest.approx(1 / (16 * log(1e6)), rel=1e-12)


def test_dworkroth14_theorem_3_27_splits():
    assert numeric_sparse_split(0.9) == pytest.approx((0.8, 0.1), rel=1e-12)
    approximate = numeric_sparse_split(1, 1e-6)
    assert sum(approximate) == pytest.approx(1)
    assert approximate.compare / approximate.answer == pytest.approx(sqrt(512))
    handle = NumericSparse(epsilon=Fraction(9, 10), sensitivity=1, threshold=0, hits=4)
    assert float(handle.compare.epsilon) == pytest.approx(numeric_sparse_split(0.9).compare)
    assert float(handle.answer_scale) == pytest.approx(4 / numeric_sparse_split(0.9).answer)


@given(st.integers(1, 10**6), st.integers(1, 50), st.floats(0.01, 10), st.floats(1e-6, 0.5))
def test_dworkroth14_theorem_3_28_covers_both_parts(k, c, eps, beta):
    n = 10**4
    alpha = numeric_sparse_alpha(n, k, c, eps, beta)
    assert alpha == pytest.approx(9 * c * (log(k) + log(4 * c / beta)) / (eps * n), rel=1e-9)
    answers = 9 * c / (eps * n) * log(2 * c / beta)
    assert answers <= alpha


@given(
    st.integers(10, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 50),
    st.floats(0.01, 1),
    st.floats(1e-6, 0.5),
)
def test_bounds_are_monotone(n, k, c, eps, beta):
    for delta in (0, 1e-6):
        alpha = sparse_alpha(n, k, c, eps, beta, delta)
        assert sparse_alpha(2 * n, k, c, eps, beta, delta) <= alpha
        assert sparse_alpha(n, 2 * k, c, eps, beta, delta) >= alpha
        assert sparse_alpha(n, k, 2 * c, eps, beta, delta) >= alpha
        assert sparse_alpha(n, k, c, 2 * eps, beta, delta) <= alpha
        assert sparse_alpha(n, k, c, eps, beta / 2, delta) >= alpha


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: above_threshold_alpha(0, 1, 1, 0.1), "n must be at least 1, not 0"),
        (lambda: above_threshold_alpha(1, 0, 1, 0.1), "k must be at least 1, not 0"),
        (lambda: above_threshold_alpha(1, 1, nan, 0.1), "eps must be finite, not nan"),
        (lambda: above_threshold_alpha(1, 1, 1, 0), "beta must lie strictly between 0 and 1, not 0"),
        (lambda: sparse_alpha(1, 1, 0, 1, 0.1), "c must be at least 1, not 0"),
        (lambda: sparse_eps0(1, 1, 1), "delta must lie strictly between 0 and 1, not 1"),
        (
            lambda: sparse_eps0(5, 30, 1e-6),
            r"advanced composition needs eps ≤ 2 ln\(1/delta\) = 27.63, not 30",
        ),
        (
            lambda: sparse_eps0(1, 20, 1e-6),
            "advanced composition needs runs of eps0 ≤ 1, and these cost 1.902",
        ),
        (lambda: numeric_sparse_split(0), "eps must be positive, not 0"),
        (lambda: numeric_sparse_split(1, -1), "delta must lie strictly between 0 and 1, not -1"),
        (lambda: sparse_rho(0, 1), "c must be at least 1, not 0"),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
