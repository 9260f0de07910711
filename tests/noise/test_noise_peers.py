"""Discrete noise against other samplers: OpenDP's, and the algorithms of their paper as they are printed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features
from scipy import stats

from statistical import FALSE_ALARM, assert_does_not_follow, assert_follows
from understudy.noise.samplers import SeededNoise, bernoulli_exp, discrete_gaussian, discrete_laplace


def assert_same_law(
    a: Sequence[int] | NDArray[np.int64], b: NDArray[np.int64], mutants: list[NDArray[np.int64]]
) -> None:
    assert two_sample(np.asarray(a), b) >= FALSE_ALARM
    for mutant in mutants:
        assert two_sample(np.asarray(a), mutant) < FALSE_ALARM, "a wrong law passed: the check has no power"


def two_sample(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    both = np.sort(np.concatenate([a, b]))
    edges = np.unique(both[np.linspace(0, both.size - 1, 30).astype(int)])
    counts = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (a, b)]
    table = np.array(counts)[:, np.sum(counts, axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, table.shape[1] - 1))


@pytest.mark.parametrize("scale", [0.75, 6.5, 200.0])
def test_discrete_laplace_agrees_with_opendp(scale: float) -> None:
    enable_features("contrib")
    space = vector_domain(atom_domain(T=int)), l1_distance(T=int)
    theirs = make_laplace(*space, scale=scale)([0] * 50_000)
    noise = SeededNoise(8)
    assert_same_law(
        theirs,
        discrete_laplace(scale, 500_000, noise=noise),
        [
            discrete_laplace(Fraction(scale) * f, 500_000, noise=noise)
            for f in (Fraction("0.8"), Fraction("1.25"))
        ],
    )


@pytest.mark.parametrize("std", [0.75, 6.5, 200.0])
def test_discrete_gaussian_agrees_with_opendp(std: float) -> None:
    enable_features("contrib")
    space = vector_domain(atom_domain(T=int)), l2_distance(T=float)
    theirs = make_gaussian(*space, scale=std)([0] * 50_000)
    noise, variance = SeededNoise(9), Fraction(std) ** 2
    assert_same_law(
        theirs,
        discrete_gaussian(variance, 500_000, noise=noise),
        [discrete_gaussian(variance * f, 500_000, noise=noise) for f in (Fraction("0.8"), Fraction("1.25"))],
    )


def textbook_bernoulli_exp(numerator: int, denominator: int, rng: random.Random) -> bool:
    """[CKS20, Algorithm 1], for a rate of any size."""
    while numerator > denominator:
        if not textbook_bernoulli_exp(1, 1, rng):
            return False
        numerator -= denominator
    k = 1
    while rng.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def textbook_laplace(t: int, s: int, rng: random.Random) -> int:
    """[CKS20, Algorithm 2]: scale t/s."""
    while True:
        low = rng.randrange(t)
        if not textbook_bernoulli_exp(low, t, rng):
            continue
        high = 0
        while textbook_bernoulli_exp(1, 1, rng):
            high += 1
        magnitude, minus = (low + t * high) // s, rng.random() < 0.5
        if not (minus and magnitude == 0):
            return -magnitude if minus else magnitude


def textbook_gaussian(variance: Fraction, rng: random.Random) -> int:
    """[CKS20, Algorithm 3]."""
    t = int(float(variance) ** 0.5) + 1
    while True:
        proposal = textbook_laplace(t, 1, rng)
        excess = (abs(proposal) - variance / t) ** 2 / (2 * variance)
        if textbook_bernoulli_exp(excess.numerator, excess.denominator, rng):
            return proposal


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1), Fraction(11, 4)])
def test_cks20_algorithm_1(rate: Fraction) -> None:
    rng = random.Random(10)
    theirs = sum(textbook_bernoulli_exp(rate.numerator, rate.denominator, rng) for _ in range(40_000))
    assert_follows([theirs, 40_000 - theirs], [exp(-rate), 1 - exp(-rate)])
    ours = int(bernoulli_exp(rate, 400_000, noise=SeededNoise(10)).sum())
    assert_follows([ours, 400_000 - ours], [exp(-rate), 1 - exp(-rate)])
    assert_does_not_follow([ours, 400_000 - ours], [exp(-rate * 1.25), 1 - exp(-rate * 1.25)])


@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(75)])
def test_cks20_algorithm_2(scale: Fraction) -> None:
    rng, noise = random.Random(11), SeededNoise(11)
    theirs = [textbook_laplace(scale.numerator, scale.denominator, rng) for _ in range(40_000)]
    assert_same_law(
        theirs,
        discrete_laplace(scale, 400_000, noise=noise),
        [discrete_laplace(scale * f, 400_000, noise=noise) for f in (Fraction("0.8"), Fraction("1.25"))],
    )


@pytest.mark.parametrize("variance", [Fraction(7, 2), Fraction(4000)])
def test_cks20_algorithm_3(variance: Fraction) -> None:
    rng, noise = random.Random(12), SeededNoise(12)
    theirs = [textbook_gaussian(variance, rng) for _ in range(30_000)]
    assert_same_law(
        theirs,
        discrete_gaussian(variance, 400_000, noise=noise),
        [discrete_gaussian(variance * f, 400_000, noise=noise) for f in (Fraction("0.7"), Fraction("1.4"))],
    )
