"""Basic and advanced composition against exact laws and against the literature's numbers."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from understudy.errors import ParameterError
from understudy_textbook.composition import basic, drv_advanced, kov_style

deltas = st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3, 0.1])


# ---------------------------------------------------------------------------------------- basic


@given(st.lists(st.tuples(st.fractions(0, 9), st.fractions(0, 1)), max_size=8))
def test_lecture4_theorem_7_sums(parts):
    assert basic(parts) == (sum(e for e, _ in parts), sum(d for _, d in parts))


def test_lecture4_theorem_8_sums_as_they_are_written():
    assert basic([(0.1, 1e-6)] * 10) == (1, Fraction(1, 10**5))
    assert basic([]) == (0, 0)


@pytest.mark.parametrize("part", [(-0.1, 0), (0.1, -1e-9), (nan, 0), (inf, 0), ("1", 0), (True, 0)])
def test_basic_refuses_what_is_no_parameter(part):
    with pytest.raises(ParameterError):
        basic([part])


# ---------------------------------------------------------------------------------------- advanced


def exact_delta(epsilon: float, k: int, promised: float) -> float:
    """δ(ε') of k randomised responses, the hardest of all ε-DP mechanisms: a sum over how many told the truth."""
    told = np.arange(k + 1)
    truth = 1 / (1 + exp(-epsilon))
    here, there = stats.binom.logpmf(told, k, truth), stats.binom.logpmf(told, k, 1 - truth)
    loss = epsilon * (2 * told - k)
    more = loss > promised
    return float((np.exp(here[more]) - np.exp(promised + there[more])).sum())


def advanced(epsilon: float, k: int, delta: float) -> float:
    return kov_style(epsilon, 0, k, delta)[0] * (1 + 1e-9)


def printed(epsilon: float, k: int, delta: float) -> float:
    return drv_advanced(epsilon, 0, k, delta)[0]


@given(st.floats(0.005, 3), st.integers(1, 400), deltas)
def test_drv10_theorem_iii_3_holds_on_the_exact_composition(epsilon, k, delta):
    assert exact_delta(epsilon, k, advanced(epsilon, k, delta)) <= delta
    assert exact_delta(epsilon, k, printed(epsilon, k, delta)) <= delta
    assert advanced(epsilon, k, delta) <= printed(epsilon, k, delta) * (1 + 1e-8)
    assert advanced(epsilon, k, delta) <= k * epsilon * (1 + 2e-9)


def test_the_check_sees_a_missing_second_term():
    epsilon, k, delta = 1.0, 100, 0.1
    assert exact_delta(epsilon, k, advanced(epsilon, k, delta)) <= delta
    assert exact_delta(epsilon, k, epsilon * sqrt(2 * k * log(1 / delta))) > delta
    tenth = 0.1 * sqrt(2 * 100 * log(10))
    assert exact_delta(0.1, 100, tenth / 2) > 0.1


def test_drv10_theorem_iii_3_pins():
    assert printed(0.1, 100, 1e-6) == pytest.approx(6.308230950513408, rel=1e-14)
    assert advanced(0.1, 100, 1e-6) == pytest.approx(5.75611, rel=1e-6)


def test_few_mechanisms_are_cheaper_by_the_plain_sum():
    assert kov_style(0.1, 0, 2, 1e-9)[0] == 0.2
    assert kov_style(5.0, 0, 10, 1e-9)[0] == 50


@pytest.mark.parametrize(
    ("epsilon", "k", "delta"),
    [(0, 1, 0.1), (-1, 1, 0.1), (nan, 1, 0.1), (inf, 1, 0.1), (1, 0, 0.1), (1, 1, 0), (1, 1, 1), (1, 1, nan)],
)
def test_advanced_refuses_what_is_no_parameter(epsilon, k, delta):
    for compose in (drv_advanced, kov_style):
        with pytest.raises(ParameterError):
            compose(epsilon, 0, k, delta)
