"""Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld: their transfer theorem on exact laws."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize, minimize_scalar

from understudy.theory.transfer import jlnrss_width
from understudy_textbook.composition import gdp_delta

Array = NDArray[np.float64]


class Case:
    """n bits, and a mechanism that names one of some queries, with an answer, given how many of the bits are 1.

    Everything is exact: the law of each pair (query, answer), how far answers are from the sample and from the
    population, and the privacy of the law under replacement of one row.
    """

    def __init__(self, n: int, chance: float, queries: Array, answers: Array, kernel: Array) -> None:
        self.sampled = stats.binom.pmf(np.arange(n + 1), n, chance)
        ones = np.arange(n + 1)[:, None] / n
        on_sample = (1 - ones) * queries[:, 0] + ones * queries[:, 1]
        in_population = (1 - chance) * queries[:, 0] + chance * queries[:, 1]
        self.kernel = kernel
        self.off_sample = np.abs(answers - on_sample)
        self.off_population = np.abs(answers - in_population)

    def delta(self, epsilon: float) -> float:
        here, there = self.kernel[:-1], self.kernel[1:]
        return max(
            float(np.maximum(a - exp(epsilon) * b, 0).sum(axis=1).max())
            for a, b in ((here, there), (there, here))
        )

    def sample_failure(self, alpha: float) -> float:
        """β_s: over the rows and the mechanism."""
        return float(self.sampled @ (self.kernel * (self.off_sample > alpha + 1e-12)).sum(axis=1))

    def failure(self, width: float) -> float:
        return float(self.sampled @ (self.kernel @ (self.off_population > width + 1e-12)))


def cases(seed: int) -> list[Case]:
    """Mechanisms that overfit as well as they may: they ask about the rows that they see, softly or at random."""
    draw, made = np.random.default_rng(seed), []
    for n, tilt, chance in product((1, 2, 6, 12), (0.05, 0.3, 1.0, 4.0), (0.5, 0.2)):
        queries = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], *draw.random((2, 2))])
        answers = np.array([1.0, 1.0, 0.5, *draw.random(2)])
        ones = np.arange(n + 1)[:, None] / n
        scores = (1 - ones) * queries[:, 0] + ones * queries[:, 1] - np.abs(answers - 1) / 2
        kernel = np.exp(tilt * n * scores)
        made.append(Case(n, chance, queries, answers, kernel / kernel.sum(axis=1, keepdims=True)))
        # the same, but now and then it says what it saw: δ > 0
        seen = np.zeros_like(kernel)
        seen[np.arange(n + 1), (2 * np.arange(n + 1) <= n).astype(int)] = 1
        mixed = 0.95 * kernel / kernel.sum(axis=1, keepdims=True) + 0.05 * seen
        made.append(Case(n, chance, queries, answers, mixed))
    return made


class Reader:
    """Tells a bit of each of n people with ε of privacy, and asks how many are as it told: about e^ε/(1+e^ε).

    Of the others, who are far more, nothing was told: in the population half of the bits are as told.
    """

    def __init__(self, n: int, epsilon: float) -> None:
        self.epsilon = epsilon
        self.answer = 1 / (1 + exp(-epsilon))
        self.off_sample = np.abs(np.arange(n + 1) / n - self.answer)
        self.law = stats.binom.pmf(np.arange(n + 1), n, self.answer)

    def delta(self, epsilon: float) -> float:
        return max(0.0, (exp(self.epsilon) - exp(epsilon)) / (1 + exp(self.epsilon)))

    def sample_failure(self, alpha: float) -> float:
        return float(self.law[self.off_sample > alpha].sum())

    def failure(self, width: float) -> float:
        return float(self.answer - 0.5 > width)


def worst_excess(widened: Callable[[float, float, float, float], float]) -> float:
    """The largest P[off by more than the width] - (β_s/c + δ/d), of all ε, α, c and d."""
    worst = -inf
    for case in (*cases(0), *(Reader(10**5, epsilon) for epsilon in (0.1, 0.4, 1.0))):
        for epsilon, alpha in product((0.01, 0.1, 0.4, 1.0), (0.0, 0.01, 0.2, 0.5)):
            delta, missed = case.delta(epsilon), case.sample_failure(alpha)
            for c, d in product((0.001, 0.05, 0.2, 0.5), repeat=2):
                found = case.failure(widened(alpha, epsilon, c, d))
                worst = max(worst, found - missed / c - delta / d)
    return worst


@pytest.mark.parametrize("weight", [2, 1])
def test_jlnrss20_on_exact_laws(weight):
    """α + (e^ε - 1) + c + 2d, and with d in the place of 2d as it was derived again."""
    assert worst_excess(lambda alpha, eps, c, d: alpha + expm1(eps) + c + weight * d) <= 1e-12


@pytest.mark.parametrize("kept", [0, 1 / 6])
def test_jlnrss20_mutants_break_on_exact_laws(kept):
    """Without the price of privacy, or with a sixth of it: the sharp one is about a quarter."""
    assert worst_excess(lambda alpha, eps, c, d: alpha + kept * expm1(eps) + c + 2 * d) > 0.5


@pytest.mark.parametrize(("share", "delta", "weight"), [(1e-4, 1e-5, 2), (1e-6, 1e-3, 1), (0.01, 1e-9, 2)])
def test_jlnrss20_the_best_c_and_d(share, delta, weight):
    """min c + w·d with β_s/c + δ/d = β is (sqrt(β_s) + sqrt(wδ))²/β."""
    beta = 0.05

    def slack(part: float) -> float:
        return share / (part * beta) + weight * delta / ((1 - part) * beta)

    best = minimize_scalar(slack, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}).fun
    assert (sqrt(share) + sqrt(weight * delta)) ** 2 / beta == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "k", "beta", "weight"), [(10**4, 100, 0.05, 2), (10**5, 10**4, 0.05, 1), (10**6, 50, 0.3, 2)]
)
def test_jlnrss20_width_against_another_search(n, k, beta, weight):
    """σ, ε, β_s, c and d all free, from several starts: nothing narrower, and the same to five digits."""

    def width(at) -> float:
        sigma, epsilon, share, part = exp(at[0]), exp(at[1]), exp(at[2]), 1 / (1 + exp(-at[3]))
        if epsilon > 3 or share > 0.5:
            return 10.0
        delta = gdp_delta(epsilon, sqrt(k) / (n * sigma))
        noise = float(stats.norm.isf(-expm1(log1p(-share) / k) / 2))
        return sigma * noise + expm1(epsilon) + share / (part * beta) + weight * delta / ((1 - part) * beta)

    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 6000, "maxfev": 6000}
    middle = log(sqrt(k) / n) / 2
    starts = [(middle + shift, middle + 1 - shift, -9.0, -1.0) for shift in (-0.5, 0.5)]
    best = min(minimize(width, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert jlnrss_width(n, k, beta, weight) == pytest.approx(best, rel=1e-5)
