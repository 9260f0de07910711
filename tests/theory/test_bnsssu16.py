"""Bassily, Nissim, Smith, Steinke, Stemmer and Ullman: the monitor's width and its parts; sensitive queries."""

from __future__ import annotations

from math import e, exp, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from understudy.theory.transfer import bnsssu_rrsstw_width
from understudy.validity.auc import auc_width
from understudy_textbook.composition import gdp_delta

SITUATIONS = [(10**4, 10, 0.05), (10**5, 1000, 0.05), (10**6, 100, 0.3)]


def price(total: float, delta: float) -> float:
    """ε of ρ-zCDP at δ: ρ + 2 sqrt(ρ ln(sqrt(πρ)/δ)), or with ln(1/δ) where that has no meaning."""
    ratio = sqrt(pi * total) / delta
    return total + 2 * sqrt(total * log(ratio if ratio >= e else 1 / delta))


@pytest.mark.parametrize(("n", "k", "beta"), SITUATIONS)
def test_bnsssu16_monitor_width_against_another_search(n, k, beta):
    """Were a run off by α with probability β, the worst of T = ⌊1/β⌋ would be by α(1 - (1-β)^T) on average."""
    runs = floor(1 / beta)

    def width(at) -> float:
        rho, delta = exp(at[0]), exp(at[1])
        epsilon = price(rho * k, delta)
        if epsilon > 3 or delta > 0.5:
            return 10.0
        noise = sqrt(log(4 * k / delta) / rho) / n
        return (expm1(epsilon) + 2 * runs * delta + noise) / (1 - (1 - beta) ** runs)

    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 5000}
    centre = -log(n * sqrt(k))
    starts = [(centre + shift, tiny) for shift in (-6, -4, -2, 0) for tiny in (-8.0, -14.0)]
    best = min(minimize(width, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert bnsssu_rrsstw_width(n, k, beta) == pytest.approx(min(1.0, best), rel=1e-5)


@pytest.mark.parametrize("total", [1e-6, 1e-3, 0.05, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_bnsssu16_the_price_of_its_answers(total, delta):
    """The exact curve of Gaussian answers of ρ in all is below δ at that ε, and above it at four fifths of it."""
    mu = sqrt(2 * total)
    assert gdp_delta(price(total, delta), mu) <= delta
    if total >= 0.05 and delta < 1e-3:
        assert gdp_delta(0.8 * price(total, delta), mu) > delta


@pytest.mark.parametrize(("k", "delta"), [(1, 1e-3), (100, 1e-6), (10**5, 1e-9)])
def test_bnsssu16_the_noise_of_its_answers(k, delta):
    """The largest of k noises of variance 1/(2n²ρ) is above sqrt(ln(4k/δ)/ρ)/n with probability δ/2 at most."""
    n, rho = 1000, 1e-4
    sigma, bar = 1 / (n * sqrt(2 * rho)), sqrt(log(4 * k / delta) / rho) / n
    assert -expm1(k * log1p(-2 * stats.norm.sf(bar / sigma))) <= delta / 2
    assert -expm1(k * log1p(-2 * stats.norm.sf(0.8 * bar / sigma))) > delta / 2


# Queries of sensitivity Δ -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positive", "negative", "k", "beta"),
    [(10**5, 10**5, 2, 0.05), (10**6, 3 * 10**6, 50, 0.05), (4 * 10**5, 10**5, 1, 0.3)],
)
def test_bnsssu16_sensitive_queries_on_a_grid(positive, negative, k, beta):
    """18εΔn and the noise, over σ, ε and δ that meet all conditions: none is narrower than what is used."""
    n, least = positive + negative, min(positive, negative)
    best = inf
    for epsilon in np.geomspace(1e-4, 0.33, 90):
        for sigma in np.geomspace(1e-5, 0.3, 90):
            needed = max(gdp_delta(epsilon, sqrt(k) / (least * sigma)), 4 * epsilon * exp(-n * epsilon**2))
            for delta in (needed * (1 + 1e-9), 2 * needed):
                if not (0 < delta < epsilon / 4 and delta / epsilon < beta and epsilon < 1 / 3):
                    continue
                assert n >= log(4 * epsilon / delta) / epsilon**2 * (1 - 1e-6)
                left = -expm1(log1p(-(beta - delta / epsilon)) / k) / 2
                best = min(best, sigma * float(stats.norm.isf(left)) + 18 * epsilon * n / least)
    width, _ = auc_width(positive, negative, k, beta)
    assert 0.9 * best <= width <= best * (1 + 1e-6)


def test_bnsssu16_sensitive_queries_are_refused_where_nothing_is_certified():
    assert auc_width(500, 500, 10, 0.05) == (1.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.02, 0.05])
@pytest.mark.parametrize("share", [0.24, 1e-3])
def test_bnsssu16_on_the_best_reader_of_bits(epsilon, share):
    """As private as it may be and reading all it can, it is off by about ε/4, and by 18ε with the allowed chance.

    Everybody's bit is told with ε of privacy, and with probability δ as it is; the query asks how many are as
    told, which is one half of those about whom nothing was told.
    """
    delta = share * epsilon
    n = int(log(4 * epsilon / delta) / epsilon**2) + 1
    right = delta + (1 - delta) / (1 + exp(-epsilon))
    off = np.abs(np.arange(n + 1) / n - 0.5)
    law = stats.binom.pmf(np.arange(n + 1), n, right)
    assert law[off > 18 * epsilon].sum() < delta / epsilon
    assert law[off > epsilon / 5].sum() > delta / epsilon  # eighteen is far from sharp
