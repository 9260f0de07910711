"""Residuals of more attributes than have all sets looked at: equal weights for sets that look alike."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest

from understudy.mechanism.matrix import residuals_of_order
from understudy.mechanism.matrix.many_marginals import MARGIN, Centred, worst_pair
from understudy.mechanism.matrix.residuals_of_order import ResidualsOfOrder

SIZES = ((2, 2, 2, 3, 3, 4), (2, 5, 2, 5, 2, 2), (3, 3, 3, 3, 3))


def needed(parts: ResidualsOfOrder) -> np.ndarray:
    return np.ones(len(parts.all), bool)


@pytest.fixture
def few(monkeypatch):
    """As if four attributes were many."""
    monkeypatch.setattr(residuals_of_order, "MOST_ATTRIBUTES", 4)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_one_set_for_each_list_of_numbers_finds_the_farthest_columns(sizes, order, few, monkeypatch):
    even = ResidualsOfOrder(sizes, order)
    weights = even.weights(needed(even))
    found = even.farthest_squared(weights)
    assert len(even.differing) < 2 ** len(sizes) - 1
    monkeypatch.setattr(residuals_of_order, "MOST_ATTRIBUTES", 16)
    every = ResidualsOfOrder(sizes, order)
    assert every.farthest_squared(weights) == found
    ours, best = every.weights(needed(every)), every.farthest_squared(every.weights(needed(every)))
    worse = every.spreads(weights).max() ** 2 * found / (every.spreads(ours).max() ** 2 * best)
    assert worse < 1.03  # equal weights cost next to nothing


def test_sets_that_look_alike_have_the_same_weight_also_where_few_are_needed(few):
    parts = ResidualsOfOrder((2, 2, 2, 3, 3, 4), 2)
    some = np.array([part == (0, 3) for part in parts.all])
    weights = dict(zip(parts.all, parts.weights(some), strict=True))
    for i, j in combinations(range(3), 2):
        assert weights[(i, 3)] == weights[(j, 4)] > 0
    assert weights[(0, 1)] == 0


def test_weights_that_differ_are_refused(few):
    parts = ResidualsOfOrder((2,) * 6, 1)
    with pytest.raises(ValueError, match="same weight"):
        parts.farthest_squared([1, 1, 1, 1, 1, 2])


def test_forty_attributes_are_feasible_and_too_many_sets_are_not():
    assert ResidualsOfOrder((2,) * 40, 2).is_feasible
    assert not ResidualsOfOrder((2,) * 40, 3).is_feasible
    parts = ResidualsOfOrder((2,) * 20, 2)
    assert parts.farthest_squared(parts.weights(needed(parts))) > 0


DEMO = (21, 3, 13, 5, 7, 8, 7, 15, 10, 20, 5, 8, 5, 2, 2, 2, 11)


@pytest.mark.parametrize(
    ("sizes", "order"),
    [(DEMO, 2), (DEMO, 3), (tuple(range(2, 19)), 2), ((2,) * 24, 3), (tuple(range(2, 17)) * 2, 2)],
    ids=["demo, 2", "demo, 3", "17 sizes", "24 booleans", "30 attributes of 15 sizes"],
)
def test_many_attributes_of_many_sizes_have_weights(sizes, order):
    """The farthest columns are no nearer than those of rows that differ everywhere, or in one attribute."""
    parts = ResidualsOfOrder(sizes, order)
    assert parts.is_feasible
    weights = parts.weights(needed(parts))
    found = parts.farthest_squared(weights)
    for differing in ([True] * len(sizes), *np.eye(len(sizes), dtype=bool).tolist()):
        assert parts._exact_loss(weights, differing) <= found
    assert float(parts.spreads(weights).max()) > 0


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sizes", [*SIZES, (2, 3, 4, 5, 7, 11)])
def test_the_bound_is_never_nearer_than_the_farthest_columns_and_at_most_twice_as_far(
    sizes, order, few, monkeypatch
):
    exact = ResidualsOfOrder(sizes, order)
    weights = exact.weights(needed(exact))
    monkeypatch.setattr(residuals_of_order, "MOST_IN_SETS", 0)
    monkeypatch.setattr(residuals_of_order, "MOST_LISTED", 0)
    bound = ResidualsOfOrder(sizes, order)
    assert exact.farthest_squared(weights) <= bound.farthest_squared(weights)
    assert bound.farthest_squared(weights) <= 2 * exact.farthest_squared(weights)
    own = bound.weights(needed(bound))
    assert exact.farthest_squared(own) <= bound.farthest_squared(own)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_how_far_residuals_move_is_found_for_every_set_of_attributes(sizes, order):
    """Attribute by attribute, the sums are those of the definition, and so are the averages."""
    parts = ResidualsOfOrder(sizes, order)
    agree = 1 - 1 / np.array(sizes)
    table = np.array(
        [
            [
                2 * (agree[list(part)].prod() - np.where(differs, agree - 1, agree)[list(part)].prod())
                for differs in parts.differing
            ]
            for part in parts.all
        ]
    )
    draw = np.random.default_rng(order)
    scales, likely = draw.random(len(parts.all)), draw.dirichlet(np.ones(len(parts.differing)))
    assert np.allclose(parts.moves(scales), scales @ table, rtol=1e-12)
    assert np.allclose(parts.pulled(likely), table @ likely, rtol=1e-12)


def test_sets_that_are_equally_far_are_looked_at_once(monkeypatch):
    """Of 16 attributes that look alike 12,870 sets of eight are equally far."""
    parts = ResidualsOfOrder((2,) * 16, 2)
    weights = [0 if len(part) == 1 else 3 for part in parts.all]
    looked, exact = [], ResidualsOfOrder._exact_loss

    def counted(self, weights, differing):
        looked.append(sum(differing))
        return exact(self, weights, differing)

    monkeypatch.setattr(ResidualsOfOrder, "_exact_loss", counted)
    assert parts.farthest_squared(weights) == 64 * 3**2 * 2 * 8
    assert looked == [8]


@pytest.mark.parametrize(
    ("sizes", "order"), [(sizes, order) for sizes in SIZES for order in (1, 2, 3)] + [((2,) * 18, 2)]
)
def test_releases_and_classes_find_the_same_farthest_columns(sizes, order):
    """Two derivations of one distance: patterns of ratios in floats, and sets of differing attributes, exactly."""
    parts = ResidualsOfOrder(sizes, order)
    weights = parts.weights(needed(parts))
    factors = {str(i): Centred(size) for i, size in enumerate(sizes)}
    weighted = {
        tuple(map(str, part)): float(w * w * prod(sizes[i] * (sizes[i] - 1) for i in part))
        for part, w in zip(parts.all, weights, strict=True)
    }
    exact, bound = parts.farthest_squared(weights), 2 * worst_pair(factors, weighted)
    assert exact <= bound <= exact + 2.001 * MARGIN * sum(weighted.values())
