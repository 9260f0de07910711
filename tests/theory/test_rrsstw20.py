"""Rogers, Roth, Smith, Srebro, Thakkar and Woodworth: the parts of which their two theorems are made, exactly."""

from __future__ import annotations

from itertools import product
from math import ceil, exp, expm1, log, log1p, pi, sqrt

import numpy as np
import pytest
from scipy import stats

from understudy.theory.guess_and_check import gnc_best_case, gnc_rrsstw_beta_i, gnc_rrsstw_holdout_tol
from understudy.theory.rogers20 import information_term
from understudy_textbook.rogers20 import rz_cvar_width, rz_width

B = 0.05

# Gaussian answers -------------------------------------------------------------------------------------------

# With noise of variance 1/(8n²ρ), k adaptive answers tell at most ρkn about the rows; by Donsker and Varadhan the
# mean square of the gap of whichever query is chosen is then at most min over l of (2ρkn - ln(1-l))/l over 4n; and
# Markov's inequality gives it β/2, a union bound the noise the other half.


def information(n: int, rho: float, chance: float) -> float:
    """I(S; T) by integration: n bits, a mean with noise of variance 1/(8n²ρ), then it again or its complement."""
    sigma = 1 / (n * sqrt(8 * rho))
    answers = np.linspace(-6 * sigma - 0.5, 1.5 + 6 * sigma, 700)
    ones = np.arange(n + 1)
    law = stats.binom.pmf(ones, n, chance)
    first = stats.norm.pdf(answers[None, :], ones[:, None] / n, sigma)
    flipped = stats.norm.pdf(answers[None, :], 1 - ones[:, None] / n, sigma)
    asks_again = answers < chance  # the second question depends on the first answer
    joint = np.where(asks_again[None, :, None], first[:, None, :], flipped[:, None, :]) * first[:, :, None]
    mixed = np.tensordot(law, joint, axes=1)
    logs = np.log(np.maximum(joint, 1e-300)) - np.log(np.maximum(mixed, 1e-300))[None]
    area = (answers[1] - answers[0]) ** 2
    return float((law[:, None, None] * joint * logs).sum() * area)


@pytest.mark.parametrize("rho", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize(("n", "chance"), [(1, 0.5), (3, 0.5), (4, 0.2)])
def test_rrsstw20_theorem_2_1_two_adaptive_answers_tell_at_most_rho_k_n(n, rho, chance):
    found = information(n, rho, chance)
    assert found <= 2 * rho * n * (1 + 1e-6)
    if rho == 1e-3 and chance == 0.5:
        assert found > 0.8 * 2 * rho * n  # a fifth less noise would tell more


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(("n", "chance"), [(1, 0.5), (7, 0.5), (30, 0.1), (400, 0.5), (400, 0.9)])
def test_rrsstw20_theorem_2_1_squares_of_means_are_subgaussian(n, chance, share):
    """E exp(2nl·gap²) ≤ 1/sqrt(1-l), exactly; and not for gaps a quarter larger."""
    gaps = np.arange(n + 1) / n - chance
    law = stats.binom.pmf(np.arange(n + 1), n, chance)
    assert float(law @ np.exp(2 * n * share * gaps**2)) <= (1 - share) ** -0.5 * (1 + 1e-9)
    if n == 400 and chance == 0.5 and share < 0.9:
        assert float(law @ np.exp(2 * n * share * (1.25 * gaps) ** 2)) > (1 - share) ** -0.5


@pytest.mark.parametrize("x", [1e-6, 0.1, 2.0, 50.0, 1e4])
def test_rrsstw20_theorem_2_1_the_best_l(x):
    grid = 1 / (1 + np.exp(-np.linspace(-20, 20, 200_001)))
    assert information_term(x) == pytest.approx(float(np.min((x - np.log1p(-grid)) / grid)), rel=1e-6)


@pytest.mark.parametrize("k", [1, 100, 10**5])
@pytest.mark.parametrize("beta", [0.3, B, 1e-6])
def test_rrsstw20_theorem_2_1_the_noise_has_half_of_beta(k, beta):
    """The largest of k noises is above (1/(2n)) sqrt(ln(4k/β)/ρ) with probability β/2 at most, at 1/(8n²ρ)."""
    n, rho = 1000, 1e-4
    sigma, bar = 1 / (n * sqrt(8 * rho)), sqrt(log(4 * k / beta) / rho) / (2 * n)

    def exceeded(spread: float) -> float:
        return -expm1(k * log1p(-2 * stats.norm.sf(bar / spread)))

    assert exceeded(sigma) <= beta / 2
    assert exceeded(2 * sigma) > beta / 2  # as of noise of variance 1/(2n²ρ)


# GuessAndCheck ----------------------------------------------------------------------------------------------


def test_rrsstw20_every_history_has_its_share():
    """Walk all histories: each round the guess passes, or fails and one cell of its grid is told."""
    gammas = (0.5, 0.3, 0.9)  # of the first, second and third failure: 2, 4 and 2 cells
    total, expected = 0.0, 0.0
    for asked in range(7):
        for fails in product((False, True), repeat=asked):
            failed = sum(fails)
            if failed <= len(gammas):
                cells = np.prod([ceil(1 / gamma) for gamma in gammas[:failed]])
                total += float(cells) * gnc_rrsstw_beta_i(B, asked, failed, gammas[:failed])
        expected += B * sum(
            36 / (pi**4 * (asked + 1) ** 2 * (failed + 1) ** 2) for failed in range(min(asked, 3) + 1)
        )
    assert total == pytest.approx(expected, rel=1e-9)
    assert 0.6 * B < total < B  # the rest is for longer histories


@pytest.mark.parametrize(("n", "chance"), [(50, 0.5), (1000, 0.5), (5000, 0.03)])
@pytest.mark.parametrize("share", [1e-4, 1e-6, 1e-12])
def test_rrsstw20_a_holdout_is_off_by_no_more_than_its_tolerance(n, chance, share):
    """By the exact binomial law; four fifths of it would be too little."""

    def beyond(tolerance: float) -> float:
        low, high = n * (chance - tolerance), n * (chance + tolerance)
        return float(stats.binom.cdf(ceil(low) - 1, n, chance) + stats.binom.sf(np.floor(high), n, chance))

    tolerance = gnc_rrsstw_holdout_tol(n, share)
    assert beyond(tolerance) <= share
    if chance == 0.5:
        assert beyond(0.8 * tolerance) > share


@pytest.mark.parametrize(("n", "k"), [(100, 1), (10**5, 10**4)])
def test_rrsstw20_best_case_is_the_share_of_the_last_query(n, k):
    """k - 1 answered, none failed: β·c(k-1)·c(0), on half of the rows."""
    share = B * (6 / pi**2) ** 2 / k**2
    width = gnc_best_case(n, k, B)
    assert 2 * exp(-2 * (n // 2) * width**2) == pytest.approx(share, rel=1e-9)


def test_one_beta_for_noise_and_information_is_narrower_than_a_union():
    assert rz_cvar_width(10**5, 10**4, B) == pytest.approx(0.147892, abs=1e-6)
    for n, k in ((1000, 10), (10**4, 100), (10**6, 10**5)):
        assert rz_cvar_width(n, k, B) < rz_width(n, k, B)
    assert rz_cvar_width(10, 10**6, B) == 1
