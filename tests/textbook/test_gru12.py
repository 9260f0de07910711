"""Gupta, Roth and Ullman's update bounds against the longest update sequence there is, by exhaustive search."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.linear import FriezeKannan, LinearHypothesis
from understudy.standin.multiplicative import MultiplicativeWeights
from understudy_textbook.lecture7 import frieze_kannan_updates, mw_updates

Vector = NDArray[np.float64]


def longest(truth: Vector, alpha: float, step: float, hypothesis: Callable[[Vector], Vector]) -> int:
    """Updates that an analyst who knows everything can force, with 0/1 queries whose gap is α or more.

    A stand-in is a function of the sum of all ±Q so far, in whatever order they came: as many states as sums.
    """
    cells = len(truth)
    queries = [np.array([bits >> i & 1 for i in range(cells)], float) for bits in range(1, 2**cells)]

    @cache
    def from_here(sums: tuple[int, ...], depth: int) -> int:
        assert depth < 400, "these updates need not end"
        here, most = hypothesis(step * np.array(sums, float)), 0
        for query in queries:
            gap = float(query @ (truth - here))
            if abs(gap) >= alpha:
                after = tuple((np.array(sums) + np.sign(gap) * query).astype(int).tolist())
                most = max(most, 1 + from_here(after, depth + 1))
        return most

    return from_here((0,) * cells, 0)


def weights(logs: Vector) -> Vector:
    raised = np.exp(logs - logs.max())
    return raised / raised.sum()


TRUTHS = [
    np.array(t, float) for t in ([1, 0, 0], [0.5, 0.5, 0], [0.7, 0.2, 0.1], [1, 0, 0, 0], [0.4, 0.6, 0, 0])
]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
@pytest.mark.parametrize("alpha", [0.36, 0.5])
def test_gru12_multiplicative_weights_of_the_textbook(truth, alpha):
    """Steps of α/2 end within ⌊4 ln|X|/α²⌋ updates, whatever is asked."""
    assert longest(truth, alpha, alpha / 2, weights) <= mw_updates(len(truth), alpha, "textbook")


def test_gru12_multiplicative_weights_of_the_textbook_and_mutants():
    """A quarter of the bound is broken, and so is every bound for steps that are much too long."""
    assert longest(TRUTHS[0], 0.2, 0.1, weights) > mw_updates(3, 0.2, "textbook") / 4
    with pytest.raises(AssertionError, match="need not end"):
        longest(np.array([0.7, 0.2, 0.1]), 0.2, 24 * 0.1, weights)


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
@pytest.mark.parametrize("alpha", [0.2, 0.4])
def test_gru12_frieze_and_kannan(truth, alpha):
    """Steps of α/|X| end within ⌊‖D‖₂²|X|/α²⌋ updates from 0, whatever is asked."""
    if len(truth) > 3:
        alpha *= 2  # keeps the sums few
    found = longest(truth, alpha, alpha / len(truth), lambda sums: sums)
    assert 0 < found <= frieze_kannan_updates(len(truth), float(truth @ truth), alpha)


def test_gru12_frieze_and_kannan_and_mutants():
    """Two fifths of the bound are broken; a step of 2α/|X| need not come nearer, and never ends."""
    assert longest(TRUTHS[0], 0.2, 0.2 / 3, lambda sums: sums) > 0.4 * frieze_kannan_updates(3, 1, 0.2)
    with pytest.raises(AssertionError, match="need not end"):
        longest(TRUTHS[1], 0.2, 2 * 0.2 / 3, lambda sums: sums)


def test_gru12_the_stand_ins_take_these_steps():
    domain = Domain((Bins.integers("x", 0, 3),))
    draw, sums = np.random.default_rng(0), np.zeros(4)
    textbook = MultiplicativeWeights(domain=domain, alpha=0.3, step="textbook")
    linear = FriezeKannan(domain=domain, alpha=0.3)
    dense, cells = textbook.start(), linear.start()
    assert isinstance(dense, DenseWeights)
    assert isinstance(cells, LinearHypothesis)
    for _ in range(20):
        mask, up = draw.integers(0, 2, 4).astype(float), bool(draw.integers(2))
        query = LinearQuery.table(domain, ("x",), mask)
        dense = textbook.update(dense, query, 2.0 if up else -1.0)
        cells = linear.update(cells, query, 9.0 if up else -9.0)
        sums += mask if up else -mask
        np.testing.assert_allclose(dense.project(("x",)), weights(0.15 * sums), rtol=1e-9)
        np.testing.assert_allclose(cells.cells, 0.3 / 4 * sums, atol=1e-12)
    assert textbook.most_updates(0.3) == mw_updates(4, 0.3, "textbook")
    assert linear.most_updates(0.3) == frieze_kannan_updates(4, 1, 0.3)
