"""DualQuery's parameters and price."""

from __future__ import annotations

from math import ceil, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy_textbook.dual_query import (
    DualQueryParams,
    dual_query_alpha,
    dual_query_eps,
    dual_query_params,
    dual_query_rho,
)


def test_parameters():
    chosen = dual_query_params(1000, 2**20, 0.1, 0.05)
    assert ceil(1600 * log(1000)) == chosen.T
    assert chosen.eta == 0.025
    assert chosen.s == ceil(4800 * log(2 * 2**20 * chosen.T / 0.05))


@given(st.integers(1, 60), st.floats(0.001, 0.25), st.integers(1, 50), st.integers(1, 10**9))
def test_the_price_is_the_sum_over_draws(T, eta, s, n):
    """Draw by draw: in round t the weights of n rows differ by a factor of e^{2η(t-1)/n} between neighbours."""
    chosen = DualQueryParams(T, eta, s)
    draws = [2 * eta * (t - 1) / n for t in range(1, T + 1) for _ in range(s)]
    assert dual_query_eps(n, chosen) == pytest.approx(sum(draws), rel=1e-9)
    assert dual_query_rho(n, chosen) == pytest.approx(sum(e * e / 8 for e in draws), rel=1e-9)


@given(st.integers(2, 10**9), st.integers(1, 10**30), st.floats(0.01, 0.5), st.floats(1e-6, 0.4))
def test_parameters_are_monotone(Q, X, alpha, beta):
    chosen = dual_query_params(Q, X, alpha, beta)
    for harder in (
        dual_query_params(2 * Q, X, alpha, beta),
        dual_query_params(Q, 2 * X, alpha, beta),
        dual_query_params(Q, X, alpha / 2, beta),
        dual_query_params(Q, X, alpha, beta / 2),
    ):
        assert harder.T >= chosen.T
        assert harder.s >= chosen.s
    assert dual_query_eps(2000, chosen) <= dual_query_eps(1000, chosen)


def test_the_least_alpha_is_affordable_and_a_smaller_one_is_not():
    alpha = dual_query_alpha(10**9, 1000, 2**100, 1, 0.05)
    assert dual_query_eps(10**9, dual_query_params(1000, 2**100, alpha, 0.05)) <= 1
    assert dual_query_eps(10**9, dual_query_params(1000, 2**100, alpha * (1 - 1e-4), 0.05)) > 1
    assert dual_query_alpha(10**10, 1000, 2**100, 1, 0.05) < alpha


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dual_query_params(1, 2, 0.1, 0.05), "Q must be at least 2, not 1"),
        (lambda: dual_query_params(2, 0, 0.1, 0.05), "X must be at least 1, not 0"),
        (lambda: dual_query_params(2, 2, 1.5, 0.05), "alpha must be at most 1, not 1.5"),
        (lambda: dual_query_params(2, 2, 0.1, 1), "beta must lie strictly between 0 and 1, not 1"),
        (lambda: dual_query_eps(0, DualQueryParams(2, 0.1, 3)), "n must be at least 1, not 0"),
        (lambda: dual_query_eps(5, DualQueryParams(2, 0, 3)), "eta must be positive, not 0"),
        (
            lambda: dual_query_alpha(1000, 1000, 2**20, 1, 0.05),
            "no alpha up to 1 is affordable; more rows or a larger eps help",
        ),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
