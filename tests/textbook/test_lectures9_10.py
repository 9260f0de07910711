"""Lectures 9-10, statement by statement."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, comb, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from statistical import assert_covers
from understudy.errors import ParameterError
from understudy_textbook.lectures9_10 import (
    chaining_constant,
    chernoff_additive,
    chernoff_lower,
    chernoff_upper,
    net_error,
    sauer,
    smalldb_best,
    smalldb_exact,
    smalldb_log_candidates,
    smalldb_prop6_seed,
    smalldb_size,
    smalldb_size_printed,
    smalldb_thm7_seed,
    smalldb_vc,
    smalldb_vc_best,
    talagrand_tail,
    vc_size,
    vc_size_chaining,
    vc_size_sauer,
)
from understudy_textbook.vc import finite_class_bound

alphas = st.integers(20, 999).map(lambda thousandths: Fraction(thousandths, 1000))
universes = st.one_of(st.integers(2, 10**6), st.integers(10**50, 10**120))
rows = st.integers(100, 10**9)
prices = st.floats(0.01, 10)
betas = st.floats(1e-9, 0.5)


# Chernoff ---------------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.floats(0.001, 0.999), st.floats(0.001, 1))
def test_lectures9_10_theorem_4(n, mu, alpha):
    """Against exact binomial tails; a mean of values in [0, 1] with a given expectation is no worse."""
    law = stats.binom(n, mu)
    slack = 1e-9
    assert law.sf(np.floor(n * (mu + alpha) + slack)) <= chernoff_additive(n, alpha) + slack
    assert law.cdf(np.ceil(n * (mu - alpha) - slack) - 1) <= chernoff_additive(n, alpha) + slack
    assert law.sf(np.floor(n * (1 + alpha) * mu + slack)) <= chernoff_upper(n, mu, alpha) + slack
    assert law.cdf(np.ceil(n * (1 - alpha) * mu - slack) - 1) <= chernoff_lower(n, mu, alpha) + slack


def test_lectures9_10_theorem_4_values():
    assert chernoff_additive(100, 0.1) == pytest.approx(exp(-2), rel=1e-12)
    assert chernoff_upper(300, 0.5, 0.2) == pytest.approx(exp(-2), rel=1e-12)
    assert chernoff_lower(300, 0.5, 0.2) == pytest.approx(exp(-3), rel=1e-12)
    assert 0 < chernoff_additive(10**9, 0.5) < 1e-300


def test_lectures9_10_theorem_4_is_false_beyond_one():
    """α = 10, nμ = 1: twelve times the mean is 10⁵ times likelier than the formula says."""
    n, mu, alpha = 1000, 0.001, 10
    claimed = exp(-n * mu * alpha**2 / 3)
    assert stats.binom(n, mu).sf(11) > 1e5 * claimed
    for tail in (chernoff_upper, chernoff_lower):
        with pytest.raises(ParameterError, match="need 0 < alpha ≤ 1, not 10"):
            tail(n, mu, alpha)


@given(st.integers(1, 1000), st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_chernoff_bounds_are_monotone(n, mu, alpha):
    assert chernoff_additive(2 * n, alpha) <= chernoff_additive(n, alpha) >= chernoff_additive(n, 2 * alpha)
    for tail in (chernoff_upper, chernoff_lower):
        assert tail(2 * n, mu, alpha) <= tail(n, mu, alpha)
        assert tail(n, 2 * mu, alpha) <= tail(n, mu, alpha)
        assert tail(n, mu, 2 * alpha) <= tail(n, mu, alpha)


# Sizes ------------------------------------------------------------------------------------------------------


def test_lectures9_10_algorithm_1_printed_size():
    printed = [smalldb_size_printed(Q, 0.1) for Q in (1, 2, 3, 10, 100)]
    assert printed == pytest.approx([0, 69.3147, 109.861, 230.259, 460.517], abs=1e-3)
    # 2|Q|e^{-2mα²} < 1 is what the proof needs: it fails for one query and, exactly, for two.
    assert [2 * Q * exp(-2 * m * 0.01) < 1 - 1e-12 for Q, m in zip((1, 2, 3), printed[:3], strict=True)] == [
        False,
        False,
        True,
    ]


def test_lectures9_10_theorem_5():
    assert [smalldb_size(Q, 0.1) for Q in (1, 2, 3, 10, 100)] == [35, 70, 90, 150, 265]


def histograms(universe: int, size: int) -> np.ndarray:
    rows = combinations_with_replacement(range(universe), size)
    return np.array([np.bincount(row, minlength=universe) for row in rows])


def test_lectures9_10_theorem_5_by_enumeration():
    """Every table of six rows over three values has a good small database, for random linear queries."""
    rng = np.random.default_rng(5)
    for alpha, Q in ((0.4, 1), (0.4, 3), (0.3, 5)):
        small = histograms(3, smalldb_size(Q, alpha))
        for _ in range(5):
            queries = rng.random((Q, 3))
            for table in histograms(3, 6):
                errors = np.abs(small / small.sum(axis=1)[:, None] @ queries.T - table @ queries.T / 6)
                assert errors.max(axis=1).min() <= alpha


def smalldb_law(table: np.ndarray, queries: np.ndarray, m: int, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """The errors of all candidates, and the probability of each."""
    candidates = histograms(len(table), m) / m
    errors = np.abs((candidates - table / table.sum()) @ queries.T).max(axis=1)
    weights = np.exp(-eps * table.sum() * (errors - errors.min()) / 2)
    return errors, weights / weights.sum()


def test_lectures9_10_theorem_3():
    """Exact ratios over all neighbours: below e^ε, and above e^{ε/2}, so that the check has power."""
    rng = np.random.default_rng(3)
    queries = rng.integers(0, 2, (6, 3)).astype(float)
    worst = 0.0
    tables = [table for table in histograms(3, 20) if table.min() > 0]
    for table in tables[:40]:
        law = smalldb_law(table, queries, 5, 1.0)[1]
        for give, take in ((0, 1), (1, 2), (2, 0)):
            other = table.copy()
            other[give] -= 1
            other[take] += 1
            ratio = np.log(smalldb_law(other, queries, 5, 1.0)[1] / law)
            worst = max(worst, float(np.abs(ratio).max()))
    assert 0.5 < worst <= 1.0


def test_lectures9_10_proposition_6():
    assert smalldb_exact(1e5, 64, 100, 1, 0.1, 0.05) == pytest.approx(0.10321146114057649, rel=1e-12)
    assert smalldb_prop6_seed(1e5, 64, 100, 1, 0.1, 0.05) == pytest.approx(0.13836464341046745, rel=1e-12)


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
def test_lectures9_10_proposition_6_on_the_exact_law(beta):
    rng = np.random.default_rng(6)
    queries, alpha, n, eps = rng.random((4, 3)), 0.3, 40, 1.0
    for table in histograms(3, n)[::90]:
        errors, law = smalldb_law(table, queries, smalldb_size(4, alpha), eps)
        assert law[errors > smalldb_exact(n, 3, 4, eps, alpha, beta)].sum() <= beta


def test_lectures9_10_proposition_6_check_sees_a_bound_too_small():
    """The error of a table that no small database fits is above α alone with a probability far above β."""
    queries = np.eye(3)
    errors, law = smalldb_law(np.array([7, 7, 6]), queries, smalldb_size(3, 0.3), 0.2)
    assert law[errors > 0.3].sum() > 0.05 >= law[errors > smalldb_exact(20, 3, 3, 0.2, 0.3, 0.05)].sum()


def test_lectures9_10_theorem_7():
    alpha = smalldb_thm7_seed(1e5, 64, 100, 1, 0.05)
    assert alpha == pytest.approx(0.14711844453150683, rel=1e-12)


@given(rows, universes, st.integers(3, 10**9), prices, betas)
def test_lectures9_10_theorem_7_follows_from_proposition_6_at_half_of_alpha(n, X, Q, eps, beta):
    assume(16 * log(X) * log(Q) + 4 * log(1 / beta) <= eps * n)
    alpha = smalldb_thm7_seed(n, X, Q, eps, beta)
    assert smalldb_prop6_seed(n, X, Q, eps, alpha / 2, beta) <= alpha * (1 + 1e-9)


def test_lectures9_10_theorem_7_needs_its_value_to_be_at_most_one():
    with pytest.raises(ParameterError, match=r"right side to be at most 1, and it is 1\.47"):
        smalldb_thm7_seed(100, 64, 100, 1, 0.05)
    for printed in (
        lambda: smalldb_thm7_seed(10**5, 64, 2, 1, 0.05),
        lambda: smalldb_prop6_seed(10**5, 64, 2, 1, 0.1, 0.05),
    ):
        with pytest.raises(ParameterError, match=r"needs \|Q\| ≥ 3 for a good database to exist, not 2"):
            printed()


@given(rows, universes, st.integers(1, 10**9), prices, betas, alphas)
def test_the_best_design_is_no_worse_than_any_alpha(n, X, Q, eps, beta, alpha):
    best = smalldb_best(n, X, Q, eps, beta)
    assert smalldb_size(Q, best.alpha) == best.m
    assert smalldb_exact(n, X, Q, eps, best.alpha, beta) == best.error
    assert best.error <= smalldb_exact(n, X, Q, eps, alpha, beta) * (1 + 1e-12)


@pytest.mark.parametrize(("n", "X", "Q"), [(200, 2, 5), (500, 3, 100), (50, 8, 1), (300, 4, 10**6)])
def test_the_best_design_is_that_of_brute_force(n, X, Q):
    m = np.arange(1, 20_000)
    candidates = sum(np.log1p(m / i) for i in range(1, X))
    errors = np.sqrt(log(2 * Q) / (2 * m)) + 2 / n * (candidates + log(20))
    best = smalldb_best(n, X, Q, 1, 0.05)
    assert best.m == m[errors.argmin()]
    assert best.error == pytest.approx(errors.min(), rel=1e-9)


def test_a_small_universe_has_a_faster_rate_than_a_third_root():
    slow = smalldb_best(10**4, 4, 100, 1, 0.05).error / smalldb_best(10**7, 4, 100, 1, 0.05).error
    assert slow > 400  # near 1000, where the third root would give 10
    huge = smalldb_best(10**4, 10**100, 100, 1, 0.05).error / smalldb_best(10**7, 10**100, 100, 1, 0.05).error
    assert 9 < huge < 12


@given(rows, universes, st.integers(1, 10**9), prices, betas, alphas)
def test_the_exact_error_is_monotone(n, X, Q, eps, beta, alpha):
    error = smalldb_exact(n, X, Q, eps, alpha, beta)
    slack = 1 + 1e-12
    assert smalldb_exact(2 * n, X, Q, eps, alpha, beta) <= error
    assert smalldb_exact(n, X, Q, 2 * eps, alpha, beta) <= error
    assert smalldb_exact(n, 2 * X, Q, eps, alpha, beta) >= error / slack
    assert smalldb_exact(n, X, 2 * Q, eps, alpha, beta) >= error / slack
    assert smalldb_exact(n, X, Q, eps, alpha, beta / 2) >= error
    assume(Q >= 3)
    assert error <= smalldb_prop6_seed(n, X, Q, eps, alpha, beta) + 2 * log(X) / (eps * n)


def test_candidates_are_multisets():
    assert smalldb_log_candidates(64, 265) == pytest.approx(log(comb(328, 265)), rel=1e-12)
    assert smalldb_log_candidates(1, 10) == 0
    assert smalldb_log_candidates(10**100, 265) < 265 * log(10**100)


def test_the_net_mechanism_contains_smalldb():
    candidates = comb(265 + 63, 265)
    assert net_error(1e5, candidates, 1, 0.1, 0.05) == pytest.approx(
        smalldb_exact(1e5, 64, 100, 1, 0.1, 0.05), rel=1e-12
    )


# VC dimension -----------------------------------------------------------------------------------------------


def test_lectures9_10_lemma_10_caps_the_size():
    """d ≤ log₂|Q|: a class of 1000 queries has dimension 9 at most, and a single query has 0."""
    assert finite_class_bound(1000) == 9
    assert vc_size_sauer(64, 0, 0.1) == smalldb_size(1, 0.1) == 35
    assert sauer(10, 10) == 2**10


def test_lectures9_10_theorem_11_sizes():
    assert [vc_size_sauer(1024, d, 0.1) for d in (1, 3, 10)] == [382, 985, 2744]
    assert vc_size_chaining(1, 0.1) == ceil((chaining_constant(1) / 0.1) ** 2)
    assert vc_size(1024, 3, 0.1) == 985
    # Chaining wins once ln|X| is above about 150.
    assert vc_size_sauer(10**50, 3, 0.1) < vc_size_chaining(3, 0.1) < vc_size_sauer(10**120, 3, 0.1)


@given(st.integers(10**4, 10**9), universes, st.integers(1, 12), prices, betas, alphas)
def test_lectures9_10_theorem_11_best_is_reached(n, X, d, eps, beta, alpha):
    best = smalldb_vc_best(n, X, d, eps, beta)
    assert vc_size(X, d, best.alpha) <= best.m
    assert smalldb_vc(n, X, d, eps, best.alpha, beta) <= best.error * (1 + 1e-12)
    assert best.error <= smalldb_vc(n, X, d, eps, alpha, beta) * (1 + 1e-9)


def test_lectures9_10_theorem_11_has_the_rate_of_a_third_root_in_a_huge_universe():
    ratio = (
        smalldb_vc_best(10**6, 10**100, 3, 1, 0.05).error / smalldb_vc_best(10**9, 10**100, 3, 1, 0.05).error
    )
    assert 9 < ratio < 12


def test_lectures9_10_theorem_12_constants():
    assert [chaining_constant(d) for d in (1, 3, 10)] == pytest.approx([10.01, 15.79, 27.44], abs=5e-3)


@given(st.integers(1, 40), st.floats(0.02, 0.6))
def test_lectures9_10_theorem_12_the_usual_ratio_is_nearly_the_best(d, ratio):
    assert chaining_constant(d) <= 1.07 * chaining_constant(d, ratio=ratio)
    assert chaining_constant(d) <= chaining_constant(d + 1)


@pytest.mark.parametrize("m", [20, 400])
def test_lectures9_10_theorem_12_average_supremum_of_thresholds(m):
    """Prefixes of a chain have d = 1. The average is far below the bound, and far above a tenth of it over ten."""
    sample = np.sort(np.random.default_rng(12).random((500, m)), axis=1)
    steps = np.arange(1, m + 1) / m
    supremum = np.maximum(np.abs(steps - sample), np.abs(steps - 1 / m - sample)).max(axis=1)
    assert chaining_constant(1) / 50 < supremum.mean() * sqrt(m) <= chaining_constant(1)


def test_lectures9_10_theorem_12_some_sample_is_as_good_as_the_size_promises():
    """Of the size for a class 1/β times as large all but β of them are: its union bound then is below β."""
    rng = np.random.default_rng(11)
    alpha, beta, table = 0.2, Fraction(1, 200), rng.integers(0, 30, 60)
    population = np.cumsum(np.bincount(table, minlength=30)) / 60

    def gaps(size: int, draws: int) -> list[float]:
        drawn = rng.choice(table, size=(draws, size))
        return [np.abs(np.cumsum(np.bincount(d, minlength=30)) / size - population).max() for d in drawn]

    assert min(gaps(vc_size(30, 1, alpha), 200)) <= alpha
    ratios = [gap / alpha for gap in gaps(smalldb_size(ceil(sauer(30, 1) / beta), alpha), 2000)]
    assert_covers(ratios, float(beta), mutant=0.65)


def test_lectures9_10_theorem_12_with_given_constants():
    assert talagrand_tail(2, 1000, 0.1, 3, 1) == pytest.approx(3 * exp(2 - 10), rel=1e-12)
    with pytest.raises(ParameterError, match=r"the bound is above 1; it needs m ≥ \(d \+ ln C\)/\(K t²\)"):
        talagrand_tail(5, 100, 0.1, 3, 1)


@given(universes, st.integers(0, 10), alphas)
def test_vc_sizes_are_monotone(X, d, alpha):
    size = vc_size(X, d, alpha)
    assert vc_size(X, d + 1, alpha) >= size
    assert vc_size(2 * X, d, alpha) >= size
    assert vc_size(X, d, alpha / 2) >= size


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: smalldb_size(0, 0.1), "Q must be at least 1, not 0"),
        (lambda: smalldb_size(3, 0), "alpha must be positive, not 0"),
        (lambda: smalldb_exact(0, 2, 3, 1, 0.1, 0.05), "n must be at least 1, not 0"),
        (lambda: smalldb_exact(10, 0, 3, 1, 0.1, 0.05), "X must be at least 1, not 0"),
        (lambda: smalldb_exact(10, 2, 3, 0, 0.1, 0.05), "eps must be positive, not 0"),
        (lambda: smalldb_exact(10, 2, 3, 1, 0.1, 0), "beta must lie strictly between 0 and 1, not 0"),
        (lambda: smalldb_best(10, 1, 3, 1, 0.05), "X must be at least 2, not 1"),
        (lambda: chernoff_upper(10, 1.5, 0.1), r"mu must be a mean of values in \[0, 1\], not 1.5"),
        (lambda: chernoff_additive(10, -1), "alpha must be positive, not -1"),
        (lambda: vc_size(10, -1, 0.1), "d must be at least 0, not -1"),
        (lambda: chaining_constant(1, ratio=1), "ratio must be below 1, not 1"),
        (lambda: vc_size_chaining(1, 1e-200), "alpha = 1e-200 asks for more rows than a float can count"),
        (lambda: net_error(10, 0, 1, 0.1, 0.05), "N must be at least 1, not 0"),
    ],
)
def test_what_is_no_parameter_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
