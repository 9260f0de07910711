"""Lecture 4, statement by statement."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, exp, inf, log, log2, nan

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from statistical import FALSE_ALARM, assert_at_most
from understudy.errors import ParameterError
from understudy.theory.guess_and_check import gnc_width
from understudy_textbook.composition import basic
from understudy_textbook.lecture4 import (
    claim1_resample,
    claim1_size,
    claim1_size_min,
    laplace_composition,
    laplace_density,
    laplace_error,
    laplace_ratio,
    laplace_tail,
    median_params,
    median_width,
    median_width_opt,
)

alphas = st.integers(1, 999).map(lambda thousandths: Fraction(thousandths, 1000))
counts = st.integers(1, 10**12)


# Claim 1 ----------------------------------------------------------------------------------------------------


def test_lecture4_claim_1():
    assert claim1_size(100, 0.1) == 300
    assert claim1_size_min(100, 0.1) == 265


@given(counts, alphas)
def test_lecture4_claim_1_sizes_are_the_least_that_do(k, alpha):
    with mpmath.workdps(50):
        decay = 2 * mpmath.mpf(alpha.numerator) ** 2 / alpha.denominator**2
        half, some = claim1_size(k, alpha), claim1_size_min(k, alpha)
        assert 2 * k * mpmath.exp(-decay * half) <= 0.5 < 2 * k * mpmath.exp(-decay * (half - 1))
        assert 2 * k * mpmath.exp(-decay * some) < 1 <= 2 * k * mpmath.exp(-decay * (some - 1))
        assert some <= half


@given(counts, counts, alphas, alphas)
def test_lecture4_claim_1_is_monotone(k, more, alpha, wider):
    k, more = sorted((k, more))
    alpha, wider = sorted((alpha, wider))
    for size in (claim1_size, claim1_size_min):
        assert size(k, alpha) <= size(more, alpha)
        assert size(k, wider) <= size(k, alpha)


def test_lecture4_claim_1_at_extreme_arguments():
    assert claim1_size(10**12, 1e-6) == 14508657738525
    assert claim1_size(10**100, Fraction(1, 10)) == ceil(50 * log(4 * 10**100))
    assert claim1_size(1, 5) == claim1_size_min(1, 5) == 1


def queries_on(rows: int, k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, size=(k, rows)).astype(float)


def test_lecture4_claim_1_resampling_succeeds_half_of_the_time():
    done = claim1_resample(queries_on(40, 20, 1), 0.15, trials=3000, generator=np.random.default_rng(2))
    assert done.size == claim1_size(20, 0.15)
    assert_at_most(done.trials - done.successes, done.trials, 0.5)
    assert done.frequency == done.successes / 3000 >= 0.5


def test_lecture4_claim_1_resampling_sees_a_size_too_small():
    done = claim1_resample(
        queries_on(40, 20, 1), 0.15, trials=3000, generator=np.random.default_rng(2), size=10
    )
    failures = done.trials - done.successes
    assert stats.binom.sf(failures - 1, done.trials, 0.5) < FALSE_ALARM


def test_lecture4_claim_1_least_size_holds_a_good_database_for_every_table():
    """All tables of three rows over three values, all pairs of 0/1 queries, by enumeration."""
    alpha = 0.45
    size = claim1_size_min(2, alpha)
    small = np.array(
        [np.bincount(rows, minlength=3) for rows in combinations_with_replacement(range(3), size)]
    )
    predicates = [np.array(bits, dtype=float) for bits in product((0, 1), repeat=3)]
    for rows in combinations_with_replacement(range(3), 3):
        table = np.bincount(rows, minlength=3) / 3
        for pair in product(predicates, repeat=2):
            gaps = [np.abs(small @ q / size - table @ q) for q in pair]
            assert np.maximum(*gaps).min() <= alpha + 1e-12


@pytest.mark.parametrize("values", [[0.1, 0.2], [[]], [[1.5]], [[-0.1, 0.3]], [[nan]]])
def test_lecture4_claim_1_resampling_refuses_what_is_no_query(values):
    with pytest.raises(ParameterError, match="numbers from 0 to 1"):
        claim1_resample(values, 0.1, trials=1, generator=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("k", "alpha", "sentence"),
    [
        (0, 0.1, "k must be at least 1, not 0"),
        (2.5, 0.1, "k must be a whole number, not 2.5"),
        (True, 0.1, "k must be a number, not True"),
        (3, 0, "alpha must be positive, not 0"),
        (3, -0.1, "alpha must be positive, not -0.1"),
        (3, nan, "alpha must be finite, not nan"),
        (3, inf, "alpha must be finite, not inf"),
        (3, "0.1", "alpha must be a number, not '0.1'"),
    ],
)
def test_sizes_refuse_what_is_no_parameter(k, alpha, sentence):
    for size in (claim1_size, claim1_size_min):
        with pytest.raises(ParameterError, match=f"^{sentence}$"):
            size(k, alpha)


# The MedianMechanism ----------------------------------------------------------------------------------------


def test_lecture4_theorem_2_parameters():
    chosen = median_params(10**6, 1000, 1024)
    assert chosen.eta == pytest.approx(0.04512676055982209, rel=1e-12)
    assert chosen.n_prime_real == pytest.approx(32582.792297976233, rel=1e-12)
    assert (chosen.n_prime, chosen.m) == (32583, 325830)


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 2**70))
def test_lecture4_theorem_2_parameters_are_claim_1_at_a_quarter_of_eta(n, k, X):
    chosen = median_params(n, k, X)
    assert chosen.n_prime_real == pytest.approx(8 * log(4 * k) / chosen.eta**2, rel=1e-12)
    assert chosen.n_prime == ceil(chosen.n_prime_real)
    assert 2 * k * exp(-2 * chosen.n_prime * (chosen.eta / 4) ** 2) <= 0.5 * (1 + 1e-9)
    assert chosen.m == pytest.approx(chosen.n_prime * log2(X), abs=1 + 1e-9 * chosen.n_prime)


def test_lecture4_theorem_2_width():
    assert median_width(10**5, 10**4, 1024, 0.05) == pytest.approx(0.4864979748035, rel=1e-12)
    # m = 116470 exceeds k: GuessAndCheck can never run out, and only the rounding of answers is left.
    assert median_params(10**5, 10**4, 1024).m == 116470


@pytest.mark.parametrize(
    ("n", "k", "printed"),
    [(10**4, 100, 0.2508), (10**5, 10**3, 0.2079), (10**6, 10, 0.0413), (10**6, 10**4, 0.1851)],
)
def test_lecture4_theorem_2_width_table(n, k, printed):
    assert median_width(n, k, 1024, 0.05) == pytest.approx(printed, abs=5e-5)


@given(st.integers(10**3, 10**8), st.integers(2, 3000), st.integers(2, 2**30), st.floats(1e-6, 0.5))
def test_lecture4_theorem_2_width_is_monotone(n, k, X, beta):
    width = median_width(n, k, X, beta)
    assert median_width(2 * n, k, X, beta) <= width
    assert median_width(n, 2 * k, X, beta) >= width
    assert median_width(n, k, 2 * X, beta) >= width
    assert median_width(n, k, X, beta / 2) >= width


@pytest.mark.parametrize(("n", "k", "X"), [(10**5, 1000, 16), (10**6, 10**4, 1024), (10**4, 100, 10**100)])
def test_lecture4_theorem_2_optimised_width_is_reached_and_no_worse(n, k, X):
    best = median_width_opt(n, k, X, 0.05)
    plain = median_width_opt(n, k, X, 0.05, multiset=False)
    assert best.width <= plain.width <= median_width(n, k, X, 0.05)
    for found in (best, plain):
        assert found.width == gnc_width(n, k, found.m, found.eta, 0.05)
        assert found.n_prime == claim1_size_min(k, Fraction(found.eta) / 4)


def median_run(rng: np.random.Generator, *, eta: float, size: int, k: int, X: int) -> tuple[int, float, bool]:
    """One run against random queries: rejections, log₂ of the candidates, whether a good one survived."""
    candidates = np.array(
        [np.bincount(rows, minlength=X) for rows in combinations_with_replacement(range(X), size)]
    )
    alive = candidates / size
    table = rng.dirichlet(np.full(X, 0.5))
    rejected, asked, grid = 0, [], (2 * np.arange(ceil(2 / eta)) + 1) / (2 * ceil(2 / eta))
    for _ in range(k):
        query = rng.integers(0, 2, X).astype(float)
        asked.append(query)
        values = np.sort(alive @ query)
        guess = values[(len(values) - 1) // 2]
        if abs(guess - table @ query) <= eta:
            continue
        rejected += 1
        answer = grid[np.abs(grid - table @ query).argmin()]
        before = len(alive)
        alive = alive[np.abs(alive @ query - answer) <= eta / 2]
        assert len(alive) <= before / 2, "the auxiliary claim: a rejection halves the candidates"
    errors = np.abs((candidates / size - table) @ np.array(asked).T).max(axis=1)
    star = candidates[errors.argmin()] / size
    return rejected, log2(len(candidates)), bool((np.abs(alive - star).sum(axis=1) < 1e-12).any())


def test_lecture4_theorem_2_rejections_halve_and_a_good_candidate_survives():
    rng = np.random.default_rng(4)
    total = 0
    for _ in range(60):
        rejected, most, survived = median_run(rng, eta=0.3, size=claim1_size_min(2, 0.15), k=2, X=3)
        assert rejected <= most
        assert survived
        total += rejected
    assert total > 0, "the run must have been put to the test"


@given(st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1), st.floats(-0.25, 0.25))
def test_lecture4_theorem_2_the_missing_step(eta, guess, truth, noise):
    """A rejected answer within η/4 of the truth is more than η/2 from the guess (A4), and near S* (A5)."""
    assume(abs(guess - truth) > eta)
    answer = truth + noise * eta
    assert abs(answer - guess) > eta / 2
    near = truth + eta / 4
    assert abs(near - answer) <= eta / 2 * (1 + 1e-12)


def test_a_large_universe_and_many_queries():
    assert median_params(10**6, 10**12, 10**100).m > 0
    assert median_params(10**4, 10, 2**5000).m == median_params(10**4, 10, 2).n_prime * 5000
    assert median_params(100, 10, 1).m == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0, 1, 2, 0.05), "n must be at least 1, not 0"),
        ((10, 0, 2, 0.05), "k must be at least 1, not 0"),
        ((10, 1, 0, 0.05), "X must be at least 1, not 0"),
        ((10, 1, 2, 0), "beta must lie strictly between 0 and 1, not 0"),
        ((10, 1, 2, 1), "beta must lie strictly between 0 and 1, not 1"),
    ],
)
def test_the_median_refuses_what_is_no_parameter(arguments, sentence):
    for width in (median_width, median_width_opt):
        with pytest.raises(ParameterError, match=f"^{sentence}$"):
            width(*arguments)


# Laplace ----------------------------------------------------------------------------------------------------

reals = st.floats(-20, 20)
scales = st.floats(0.05, 20)


@given(reals, reals, scales)
def test_lecture4_definition_1(x, mu, b):
    assert laplace_density(x, mu, b) == pytest.approx(stats.laplace.pdf(x, mu, b), rel=1e-12)
    assert laplace_density(x + 3, mu + 3, b) == pytest.approx(laplace_density(x, mu, b), rel=1e-9)


@given(reals, reals, st.floats(-2, 2), scales)
def test_lecture4_claim_3(y, mu, shift, b):
    assume(abs(shift) > 1e-6)
    low, high = laplace_ratio(abs(shift), b)
    ratio = laplace_density(y, mu + shift, b) / laplace_density(y, mu, b)
    assert low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9)


def test_lecture4_claim_3_needs_a_positive_scale():
    with pytest.raises(ParameterError, match="b must be positive, not -1"):
        laplace_ratio(1, -1)
    with pytest.raises(ParameterError, match="b must be positive, not 0"):
        laplace_density(0, 0, 0)
    with pytest.raises(ParameterError, match="shift/b must be at most 700"):
        laplace_ratio(1, 1e-6)


@given(st.floats(0.01, 5), st.integers(1, 1000), reals)
def test_lecture4_theorem_5(eps, n, y):
    """Means that one row moves by 1/n, with Lap(1/(εn)): the density ratio is at most e^ε, and is reached."""
    b = 1 / (eps * n)
    assert laplace_ratio(1 / n, b)[1] == pytest.approx(exp(eps), rel=1e-9)
    assert laplace_ratio(1 / n, b / 2)[1] > exp(eps)


def test_lecture4_claim_6():
    assert laplace_tail(0.5, 1000, 0.01) == pytest.approx(0.006737946999085467, rel=1e-12)


@given(st.floats(0.05, 2), st.integers(1, 50), st.floats(0.01, 1))
def test_lecture4_claim_6_is_the_integral_of_both_tails(eps, n, D):
    one = integrate.quad(lambda y: laplace_density(y, 0, 1 / (eps * n)), D, D + 60 / (eps * n))[0]
    assert laplace_tail(eps, n, D) == pytest.approx(2 * one, rel=1e-7)


@given(st.floats(0.05, 2), st.integers(1, 1000), st.floats(0.001, 1))
def test_lecture4_claim_6_is_monotone(eps, n, D):
    tail = laplace_tail(eps, n, D)
    assert laplace_tail(2 * eps, n, D) <= tail
    assert laplace_tail(eps, 2 * n, D) <= tail
    assert laplace_tail(eps, n, 2 * D) <= tail


def test_lecture4_claim_6_gives_the_error_of_k_answers():
    error = laplace_error(1, 10**5, 100, 0.05)
    assert error == pytest.approx(100 / 10**5 * log(100 / 0.05), rel=1e-12)
    assert 100 * laplace_tail(0.01, 10**5, error) == pytest.approx(0.05, rel=1e-9)
    rng = np.random.default_rng(6)
    worst = np.abs(rng.laplace(0, 100 / 10**5, size=(4000, 100))).max(axis=1)
    assert_at_most(int((worst > error).sum()), 4000, 0.05)
    assert stats.binom.sf((worst > error / 2).sum() - 1, 4000, 0.05) < FALSE_ALARM


@given(st.fractions(Fraction(1, 1000), 10), st.integers(1, 1000))
def test_lecture4_theorem_7_is_the_ledgers_sum(eps, k):
    assert laplace_composition(eps, k) == (k * eps, 0)
    assert laplace_composition(eps, min(k, 50)) == basic([(eps, 0)] * min(k, 50))


def test_lecture4_theorem_8_costs_the_same_when_queries_are_adaptive():
    assert laplace_composition(0.1, 10) == (1, 0)
    scale = laplace_error(1, 100, 10, 1 - 1e-12) / log(10)
    assert scale == pytest.approx(10 / 100, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: laplace_tail(0, 10, 0.1), "eps must be positive, not 0"),
        (lambda: laplace_tail(1, 0, 0.1), "n must be at least 1, not 0"),
        (lambda: laplace_tail(1, 10, 0), "D must be positive, not 0"),
        (lambda: laplace_error(1, 10, 0, 0.1), "k must be at least 1, not 0"),
        (lambda: laplace_error(1, 10, 5, 2), "beta must lie strictly between 0 and 1, not 2"),
        (lambda: laplace_composition(-1, 2), "eps must be positive, not -1"),
    ],
)
def test_laplace_refuses_what_is_no_parameter(call, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        call()
