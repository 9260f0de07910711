"""The certificates where they are easily wrong: large trees, small drifts, coarse grids; three printed columns."""

from __future__ import annotations

from itertools import pairwise
from math import comb, exp, inf, isclose, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import ndtri

from understudy.errors import ParameterError
from understudy.theory import baseline, cvar, ladder, transfer
from understudy.theory import guess_and_check as gnc
from understudy.theory.table import COLUMNS
from understudy_textbook import drift
from understudy_textbook.composition import analytic_gauss_sigma, gdp_delta

B = 0.05

# Trees ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(0, 400), st.integers(1, 60))
def test_tree_queries_equal_the_integer_sum(k, m, grid):
    exact = sum(comb(k, j + 1) * grid**j for j in range(min(m, k - 1) + 1))
    assert gnc.log_tree_queries(k, m, grid) == pytest.approx(log(exact), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("m", "grid"), [(5 * 10**11 + 10**6, 1), (5 * 10**11 - 10**6, 1), (9 * 10**6, 5)])
def test_huge_trees_grow_smoothly_through_the_middle(m, grid):
    """Both ways of summing, one for each side of the mean, meet without a jump."""
    k = 10**12
    here, more = gnc.log_tree_queries(k, m, grid), gnc.log_tree_queries(k, m + 1000, grid)
    assert 0 <= more - here <= 1000 * log(grid * k / m) * (1 + 1e-6) + 1e-3
    full = gnc.log_tree_queries(k, k, grid)
    assert more <= full


def test_a_tree_that_is_nearly_full_is_counted():
    full = gnc.log_tree_queries(2 * 10**7, 2 * 10**7, 1)
    assert gnc.log_tree_queries(2 * 10**7, 19 * 10**6, 1) == pytest.approx(full, rel=1e-12)


def test_a_grid_too_coarse_for_eta_is_refused():
    assert gnc.gnc_width(10**5, 1000, 5, 0.1, B, 5) < gnc.gnc_width(10**5, 1000, 5, 0.1, B)
    with pytest.raises(ParameterError, match="too coarse"):
        gnc.gnc_width(10**5, 1000, 5, 0.02, B, 1)


@given(st.integers(1, 60), st.floats(0.02, 0.5))
def test_more_failures_never_narrow_the_certificate(k, eta):
    widths = [gnc.gnc_failures_width(1000, k, f, eta, B) for f in range(k + 1)]
    assert all(later >= width * (1 - 1e-12) for width, later in pairwise(widths))


def test_realised_failures_cover_every_earlier_query():
    """A query that came after j ≤ f failures has the width of j, and none of these exceeds the one reported."""
    n, k, eta, grid = 1000, 10, 0.5, 1
    for f in range(k):
        each = [
            eta + sqrt((log(2 / B) + (j + 1) * log(2) + log(comb(k, j + 1)) + j * log(grid)) / (2 * n))
            for j in range(f + 1)
        ]
        assert gnc.gnc_failures_width(n, k, f, eta, B) == pytest.approx(max(each), rel=1e-12)


def test_shares_of_all_histories_sum_to_at_most_beta():
    """Σ over i, f and all ways to fail of β_i·(histories) stays below β: nothing is promised twice."""
    total = 0.0
    for i in range(60):
        for f in range(min(i, 12) + 1):
            total += gnc.gnc_rrsstw_beta_i(B, i, f, (0.5,) * f) * comb(i, f) * 2**f
    assert 0.6 * B < total <= B


def test_impossible_histories_and_vanishing_shares_are_refused():
    with pytest.raises(ParameterError, match="at most as many failures"):
        gnc.gnc_rrsstw_beta_i(B, 1, 2, (0.1, 0.1))
    with pytest.raises(ParameterError, match="share must be at least"):
        gnc.gnc_rrsstw_beta_i(B, 10**4, 200, (0.01,) * 200)


def test_many_rows_get_steps_below_a_thousandth():
    assert gnc.mw_gnc_width(10**9, 10, 1024, B)[0] < 6 * baseline.hoeffding_width(10**9, B, 10)
    assert ladder.ladder_width(10**9, 1, B)[0] < 2.1 * baseline.hoeffding_width(10**9, B, 1)


@given(st.integers(1, 200), st.integers(1, 60))
def test_ladder_count_is_vandermonde(k, grid):
    total = sum(comb(k, j + 1) * comb(grid, j) for j in range(min(grid, k - 1) + 1))
    assert total == comb(k + grid, grid + 1)
    assert ladder._log_queries(k, grid) == pytest.approx(log(total), rel=1e-12)


# Noise and drift --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "beta"), [(1, 0.05), (20, 0.3), (1000, 0.01)])
def test_laplace_noise_is_bounded_by_its_cvar(k, beta):
    def tail(t):
        return 1 - (1 - exp(-t)) ** k

    quantile = -log(-np.expm1(np.log1p(-beta) / k))
    exact = quantile + integrate.quad(tail, quantile, quantile + 60, limit=200)[0] / beta
    bound = cvar.cvar_noise_laplace(1, k, beta)
    assert exact - 1e-9 <= bound <= exact + beta
    assert bound > quantile + 0.9  # a quantile alone would be too little


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_small_drifts_are_linear_and_never_rounded_away(beta):
    z0 = stats.norm.isf(beta / 2)
    slope = sqrt((z0 * stats.norm.pdf(z0) + stats.norm.sf(z0)) / (2 * beta)) / 2
    for mu in (1e-15, 1e-10, 1e-7, 1e-5):
        assert drift.drift_V_gauss(mu, beta) == pytest.approx(slope * mu, rel=1e-4)
        assert drift.drift_V_gauss(mu, beta) >= slope * mu * (1 - 1e-12)
        assert cvar.cvar_V_gauss(mu, beta) >= drift.drift_V_gauss(mu, beta)


@given(st.floats(1e-12, 2), st.floats(1e-6, 0.9))
def test_drift_equals_its_closed_form_and_the_sharp_one_is_below(mu, beta):
    plain, sharp = drift.drift_V_gauss(mu, beta), drift.drift_V_sharp(mu, beta)
    assert sharp <= plain * (1 + 1e-11)
    if mu > 0.05:
        z0 = stats.norm.isf(beta / 2)
        moments = [exp(c * c / 2) * stats.norm.cdf(c - z0) for c in (mu, mu / 2, 0)]
        closed = sqrt((moments[0] - 2 * moments[1] + moments[2]) / (2 * beta))
        assert plain == pytest.approx(closed, rel=1e-8)


@pytest.mark.parametrize("term", [drift.drift_V_gauss, drift.drift_V_sharp, cvar.cvar_V_gauss])
def test_large_budgets_say_nothing_and_do_not_crash(term):
    assert term(50, B) == inf
    assert term(10, B) > 1


def test_discrete_noise_is_wider_by_a_count():
    for n in (10**3, 10**5):
        width, sigma = cvar.cvar_width_discrete(n, 100, B)
        continuous = cvar.cvar_noise_gauss(sigma, 100, B) + cvar.cvar_V_zcdp(100 / (2 * (n * sigma) ** 2), B)
        assert width == pytest.approx(continuous + 1 / n, rel=1e-9)


@pytest.mark.parametrize("spread", [0.7, 2.0, 30.0])
def test_a_count_covers_the_discrete_gaussian(spread):
    """P[|X| ≥ m] ≤ P[|N| ≥ m - 1]; without the count it is false."""
    support = np.arange(-2000, 2001)
    law = np.exp(-(support**2) / (2 * spread**2))
    law /= law.sum()
    m = np.arange(1, int(8 * spread) + 2)
    discrete = np.array([law[np.abs(support) >= x].sum() for x in m])
    assert (discrete <= 2 * stats.norm.sf((m - 1) / spread) * (1 + 1e-9)).all()
    assert (discrete > 2 * stats.norm.sf(m / spread)).any()


def test_adaptive_sessions():
    noise, s0, mu = drift.adaptive_noise(B), 0.05, 0.1
    base = s0 * noise + drift.drift_V_sharp(mu, B)
    assert drift.drift_width_adaptive(1, 1e-6, s0, mu, B) == pytest.approx(base)
    w = drift.drift_weight(7, B)
    assert drift.drift_width_adaptive(7, 2 * s0 / w, s0, mu, B) == pytest.approx(2 * base)
    # between the product over the first 10^6 weights and the rounded values of the literature
    for beta, low, high in ((0.01, 0.91505, 0.918), (0.05, 0.90339, 0.907), (0.2, 0.88983, 0.896)):
        assert low < drift.adaptive_noise(beta) < high
    with pytest.raises(ParameterError, match="whole number"):
        drift.drift_weight(1.5, B)


# Three printed columns --------------------------------------------------------------------------------------

# n k c1 d g, as printed
PRINTED = """
1000 10 1.0000 0.3916 1.0000
1000 100 1.0000 0.7439 1.0000
1000 1000 1.0000 1.0000 1.0000
1000 10000 1.0000 1.0000 1.0000
1000 100000 1.0000 1.0000 1.0000
10000 10 0.3640 0.1241 1.0000
10000 100 0.4571 0.2306 1.0000
10000 1000 0.7625 0.4301 1.0000
10000 10000 1.0000 0.8096 1.0000
10000 100000 1.0000 1.0000 1.0000
100000 10 0.1157 0.0398 0.5114
100000 100 0.1448 0.0733 0.5285
100000 1000 0.2406 0.1349 0.5436
100000 10000 0.4507 0.2486 0.5590
100000 100000 0.8376 0.4607 0.5746
1000000 10 0.0367 0.0128 0.2396
1000000 100 0.0457 0.0235 0.2465
1000000 1000 0.0761 0.0430 0.2535
1000000 10000 0.1424 0.0785 0.2606
1000000 100000 0.2643 0.1436 0.2677
"""
ROWS = [(int(r[0]), int(r[1]), *map(float, r[2:])) for r in map(str.split, PRINTED.strip().split("\n"))]


def _seed_transfer_on_a_grid(n: int, k: int) -> float:
    """Column c1 as printed: 200 values of ε; a twentieth, a fifth or half of β to the noise; a union bound."""
    best = 1.0
    for eps in np.geomspace(sqrt(12 / n), 1 / 8, 200):
        for share in (0.05, 0.2, 0.5):
            rest = B * (1 - share)
            if 6 * eps < best and 2 * exp(-eps * eps * n / 8) <= rest:
                sigma = analytic_gauss_sigma(float(eps), float(min(rest / 4, 1 / 16) * eps), sqrt(k) / n)
                best = min(best, 6 * eps - sigma * float(ndtri(share * B / (2 * k))))
    return best


@pytest.mark.parametrize(("n", "k", "c1", "d", "g"), ROWS)
def test_columns_from_a_coarser_search(n, k, c1, d, g):
    """Ours are never wider, and at most 1 % (c1, d) or 8 % (g) narrower, than what a coarser search printed."""
    for name, printed, least in (("c1", c1, 0.99), ("d", d, 0.9985), ("g", g, 0.925)):
        found = min(1.0, COLUMNS[name](n, k))
        assert least * printed - 5e-5 <= found <= printed + 5e-5, name


@pytest.mark.parametrize(("n", "k", "c1", "d", "g"), ROWS[::3])
def test_column_c1_is_the_coarser_search(n, k, c1, d, g):
    assert isclose(_seed_transfer_on_a_grid(n, k), c1, abs_tol=5.001e-5)


def test_column_d_is_a_fifth_of_beta_for_c():
    """β_s = (β/5)c and δ = (4β/5)d instead of the best c and d: that is what column d printed."""
    for n, k, _, d, _ in ROWS:
        if d == 1:
            continue

        def width(at, n=n, k=k):
            sigma, eps, share = np.exp(at)
            if eps > 3 or share > 0.5:
                return inf
            delta = gdp_delta(eps, sqrt(k) / (n * sigma))
            noise = -sigma * float(ndtri(share / (2 * k)))
            return noise + np.expm1(eps) + share / (0.2 * B) + 2 * delta / (0.8 * B)

        ls = np.linspace(-14, 1, 60)
        starts = [(s, log(f * sqrt(k) / n) - s, -8.0) for s in ls for f in (2, 3, 4)]
        assert isclose(transfer.best_from(width, starts)[0], d, abs_tol=5.001e-5), (n, k)


def test_printed_shares():
    """c(j) = 6/(π²(j+1)²) sums to 1 over j ≥ 0."""
    assert gnc.gnc_rrsstw_beta_i(B, 0, 0, ()) == pytest.approx(B * (6 / pi**2) ** 2, rel=1e-12)
