"""The Gaussian filter against the best adaptive analyst, by dynamic programming on the law of the privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from understudy_textbook.composition import gdp_delta
from understudy_textbook.filters import gaussian_filter

ROWS = 100
UNIT = 0.15
"""Prices are whole numbers of units of μ² = (1/(nσ))²."""

LOSSES = np.linspace(-12, 12, 2401)
STEP = LOSSES[1] - LOSSES[0]


def sigma(units: int) -> float:
    return 1 / (ROWS * sqrt(units * UNIT))


def worst_delta(may_run: Callable[[list[float]], bool], epsilon: float, prices: tuple[int, ...]) -> float:
    """E[(1 - e^{ε-L})₊] under the first of two neighbours, of the analyst who stops and pays best, loss by loss.

    A mean with noise σ whose value differs by 1/n has the loss N(m/2, m) with m = (1/(nσ))²; what may still be run
    depends on what was paid, and what is best to run on the loss so far.
    """
    known: dict[tuple[int, ...], np.ndarray] = {}

    def value(paid: tuple[int, ...]) -> np.ndarray:
        if paid not in known:
            best = np.maximum(0, -np.expm1(np.minimum(0, epsilon - LOSSES)))
            for price in prices:
                after = tuple(sorted((*paid, price)))
                if may_run([sigma(units) for units in after]):
                    m = price * UNIT
                    law = stats.norm.pdf(LOSSES, m / 2, sqrt(m)) * STEP
                    best = np.maximum(best, np.convolve(value(after), law[::-1], mode="same"))
            known[paid] = best
        return known[paid]

    return float(value(())[len(LOSSES) // 2])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_smiththakurta22_adaptive_prices_are_gaussian_privacy_of_the_limit(epsilon):
    """As private as one mean with all of μ², which some analyst attains; no choice of prices does better."""
    mu = sqrt(6 * UNIT)
    limit = mu * (1 + 1e-12)
    found = worst_delta(lambda spent: gaussian_filter(ROWS, spent, limit), epsilon, (1, 2, 3))
    assert found == pytest.approx(gdp_delta(epsilon, mu), rel=1e-4)


def test_smiththakurta22_the_analyst_finds_a_filter_that_allows_too_much():
    mu = sqrt(6 * UNIT)

    def forgets_the_last(spent):
        return gaussian_filter(ROWS, spent[:-1], mu * (1 + 1e-12))

    assert worst_delta(forgets_the_last, 1.0, (1, 2, 3)) > 1.1 * gdp_delta(1.0, mu)
