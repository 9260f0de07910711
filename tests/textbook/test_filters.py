"""Filters against the best adaptive analyst, by dynamic programming on exact losses."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import exp, expm1, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from understudy.errors import ParameterError
from understudy_textbook.composition import drv_advanced, gauss_mu, kov_style, zcdp_eps
from understudy_textbook.filters import (
    gaussian_filter,
    rruv_epsilon,
    rruv_filter,
    whitehouse_epsilon,
    whitehouse_filter,
    zcdp_filter,
)

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e-7)), max_size=30)
deltas = st.floats(1e-12, 0.3)


def worst_delta(may_run, eps: float, options: tuple[float, ...]) -> float:
    """δ(ε) of the best analyst who runs randomised responses of any of the prices, as long as the filter says yes.

    E[(1 - e^{ε-L})₊] under the first of the two laws, where the loss L moves by ±price; by recursion over how
    often each price was paid and what was lost so far.
    """

    @cache
    def value(paid: tuple[int, ...], loss: tuple[int, ...]) -> float:
        total = sum(price * net for price, net in zip(options, loss, strict=True))
        best = max(0.0, -expm1(min(0.0, eps - total)))
        for i, price in enumerate(options):
            spent = tuple(n + (i == j) for j, n in enumerate(paid))
            if not may_run([(p, 0) for p, n in zip(options, spent, strict=True) for _ in range(n)]):
                continue
            truth = 1 / (1 + exp(-price))
            up, down = (tuple(x + s * (i == j) for j, x in enumerate(loss)) for s in (1, -1))
            best = max(best, truth * value(spent, up) + (1 - truth) * value(spent, down))
        return best

    start = (0,) * len(options)
    return value(start, start)


OPTIONS = (0.3, 0.9)
EPS, DELTA = 6.0, 0.01


def test_rruv16_theorem_5_1():
    """The formula, term by term, at one point. It is stricter than the later one, tested below."""
    eps_g, delta_g, each = 2.0, 1e-6, 0.05
    spent = [(each, 0.0)] * 20
    squares, spare = 20 * each**2, eps_g**2 / (28.04 * log(1e6))
    root = sqrt(2 * (squares + spare) * (1 + log(1 + squares / spare) / 2) * log(2e6))
    assert rruv_epsilon(spent, eps_g, delta_g) == pytest.approx(20 * each * expm1(each) / 2 + root, rel=1e-12)
    assert rruv_filter(spent, 2, 1e-6) == (rruv_epsilon(spent, 2, 1e-6) <= 2)
    assert not rruv_filter([(0.001, 6e-7)], 2, 1e-6)
    assert rruv_filter([], 2, 1e-6)


def test_rruv16_theorem_5_1_on_the_exact_composition():
    """As many runs of one price as it allows have a δ far below the one promised, but not 0."""
    each, k = 0.005, 50
    while rruv_filter([(each, 0)] * (k + 50), 2, 1e-6):
        k += 50
    told, truth = np.arange(k + 1), 1 / (1 + exp(-each))
    here, there = stats.binom.logpmf(told, k, truth), stats.binom.logpmf(told, k, 1 - truth)
    more = each * (2 * told - k) > 2
    assert 0 < (np.exp(here[more]) - np.exp(2 + there[more])).sum() <= 1e-6


def test_wrrw23_holds_against_an_adaptive_analyst():
    allowed = worst_delta(lambda spent: whitehouse_filter(spent, EPS, DELTA, 0), EPS, OPTIONS)
    assert 0 < allowed <= DELTA


def test_wrrw23_the_analyst_finds_a_filter_that_allows_too_much():
    def generous(spent):
        return sqrt(2 * log(1 / DELTA) * sum(e * e for e, _ in spent)) <= 1.6 * EPS

    assert worst_delta(generous, EPS, OPTIONS) > DELTA


@given(pairs, st.floats(0.1, 10), deltas)
def test_wrrw23_is_never_stricter_than_the_earlier_filter(spent, eps, delta):
    assert (
        whitehouse_epsilon(spent, delta) <= rruv_epsilon(spent, eps, delta) + sum(e * e for e, _ in spent) / 2
    )
    if rruv_filter(spent, eps, delta):
        assert whitehouse_filter(spent, eps, delta / 2, delta / 2)


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30), deltas)
def test_wrrw23_is_concentrated_privacy_for_pure_prices(epsilons, delta):
    spent = [(e, 0) for e in epsilons]
    assert whitehouse_epsilon(spent, delta) == pytest.approx(
        zcdp_eps(sum(e * e / 2 for e in epsilons), delta), rel=1e-9
    )


@given(st.floats(0.001, 0.3), st.integers(1, 200), deltas)
def test_wrrw23_adaptivity_costs_next_to_nothing_at_equal_prices(eps, k, delta):
    """Between the tanh form and the printed advanced composition, but for the fourth power of ε."""
    filtered = whitehouse_epsilon([(eps, 0)] * k, delta)
    assert filtered <= drv_advanced(eps, 0, k, delta)[0]
    assert filtered >= min(kov_style(eps, 0, k, delta)[0], filtered)
    assert filtered == pytest.approx(eps * sqrt(2 * k * log(1 / delta)) + k * eps**2 / 2, rel=1e-9)


@given(pairs, st.floats(0.1, 10), deltas)
def test_filters_are_monotone(spent, eps, delta):
    more = [*spent, (0.1, 0)]
    assert whitehouse_epsilon(spent, delta) <= whitehouse_epsilon(more, delta)
    assert rruv_epsilon(spent, eps, delta) <= rruv_epsilon(more, eps, delta)
    assert whitehouse_epsilon(spent, delta) <= whitehouse_epsilon(spent, delta / 2)
    assert rruv_filter(spent, eps, delta) <= rruv_filter(spent, 2 * eps, delta)
    assert whitehouse_filter(more, eps, delta, 1e-5) <= whitehouse_filter(spent, eps, delta, 1e-5)


def test_sums_are_decided_exactly():
    """Ten tenths are one, which floats do not know."""
    assert zcdp_filter([0.1] * 10, 1)
    assert not zcdp_filter([0.1] * 10 + [Fraction(1, 10**30)], 1)
    assert zcdp_filter([], 1)
    assert gaussian_filter(1000, [0.02] * 100, 0.5)
    assert gauss_mu(1000, 100, 0.02) == pytest.approx(0.5)
    assert not gaussian_filter(1000, [0.02] * 100 + [1e6], 0.5)
    # Standard deviations chosen as one goes: only the sum of squares counts.
    assert gaussian_filter(1000, [0.01, 0.02, 0.05, 0.1], 0.2)
    assert not gaussian_filter(1000, [0.004], 0.2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rruv_filter([], 1, 0.4), "the filter needs delta_g < 1/e, not 0.4"),
        (lambda: rruv_filter([], 0, 0.1), "eps_g must be positive, not 0"),
        (lambda: rruv_filter([(-1, 0)], 1, 0.1), "each epsilon must not be negative, not -1"),
        (lambda: rruv_filter([(1, -1)], 1, 0.1), "each delta must not be negative, not -1"),
        (lambda: rruv_filter([(800, 0)], 1, 0.1), "each epsilon must be at most 700, not 800"),
        (lambda: whitehouse_filter([], 1, 0, 0), "delta_prime must lie strictly between 0 and 1, not 0"),
        (lambda: whitehouse_filter([], 1, 0.1, 1), r"delta_second must lie in \[0, 1\), not 1"),
        (lambda: whitehouse_filter([], 0, 0.1, 0), "eps must be positive, not 0"),
        (lambda: zcdp_filter([-1], 1), "each rho must not be negative, not -1"),
        (lambda: zcdp_filter([1], 0), "rho must be positive, not 0"),
        (lambda: gaussian_filter(10, [0], 1), "each sigma must be positive, not 0"),
        (lambda: gaussian_filter(10, [1], inf), "mu must be finite, not inf"),
        (lambda: gaussian_filter(0, [1], 1), "n must be at least 1, not 0"),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
