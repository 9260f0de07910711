"""Expected counts of a column's values, by its noisy counts."""

from __future__ import annotations

from itertools import pairwise, product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from understudy.query.merging import simplex
from understudy.releases.adaptive import likely_counts as module
from understudy.releases.adaptive.likely_counts import BLOCK, FAR, _expected, likely_counts

LEVELS = np.array([0.0, 1.0, 2.0, 5.0])
LAWS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.2, 0.5]])
NEAR = np.array([[0.3, 0.5, 0.2], [0.8, 0.9, 0.7]])
APART = 0.15


def transition(law: np.ndarray, near: np.ndarray | None) -> np.ndarray:
    """The chance of each level after each other one."""
    if near is None:
        return np.tile(law, (law.size, 1))
    places = np.concatenate([[0.0], -np.cumsum(np.log(near))])
    alike = np.exp(-np.abs(places[:, None] - places)) * law
    return (1 - APART) * alike / alike.sum(axis=1, keepdims=True) + APART * law


def test_expected_levels_are_those_over_all_columns_that_there_could_be():
    seen = np.random.default_rng(1).random((4, 4)) ** 3
    likely, means = [], []
    for law in LAWS:
        for near, before in ((None, 0.7), (NEAR[0], 0.15), (NEAR[1], 0.15)):
            step, whole, sums = transition(law, near), 0.0, np.zeros(4)
            for column in product(range(4), repeat=4):
                chance = law[column[0]] * np.prod([step[a, b] for a, b in pairwise(column)])
                chance *= np.prod([seen[i, v] for i, v in enumerate(column)])
                whole += chance
                sums += chance * LEVELS[list(column)]
            likely.append(before * whole)
            means.append(sums / whole)
    exact = np.average(means, axis=0, weights=likely)
    found = _expected(seen, LEVELS, LAWS, NEAR, APART, log(0.15), log(0.7))
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e7, 1e7)),
    st.floats(0, 1e10),
)
@settings(max_examples=100)
def test_expected_counts_are_finite_and_not_negative(noisy, variance):
    found = likely_counts(noisy, variance)
    assert found.shape == noisy.shape
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_counts_far_above_their_noise_are_told_as_they_are():
    noisy = np.array([3.0, 500.0, -20.0, 130.0, 4.0])
    found = likely_counts(noisy, 100.0)
    assert found[[1, 3]].tolist() == [500.0, 130.0]
    assert noisy[3] > FAR * 10
    assert (found[[0, 2, 4]] < 10).all()


COLUMNS = {
    "smooth": np.rint(1200 * np.exp(-(((np.arange(60) - 20) / 14) ** 2))),
    "sparse": np.concatenate([[20_000, 0, 0, 3000, 0], np.zeros(20), [900, 0, 700, 0, 0]]),
    "falling, in any order": np.random.default_rng(5).permutation(np.rint(6000 / np.arange(1, 31))),
}


def _off(estimate, column: np.ndarray) -> float:
    """Mean L1 distance of an estimate from the column, over 60 draws of noise."""
    rng, std = np.random.default_rng(7), 250.0
    return float(
        np.mean(
            [
                np.abs(estimate(column + rng.normal(0, std, column.size), std**2) - column).sum()
                for _ in range(60)
            ]
        )
    )


def _nearest(noisy: np.ndarray, _: float) -> np.ndarray:
    return simplex(noisy, max(float(noisy.sum()), 1.0))


@pytest.mark.parametrize(
    ("column", "least_gain"), [("smooth", 0.4), ("sparse", 0.1), ("falling, in any order", 0.0)]
)
def test_columns_are_nearer_than_by_the_nearest_possible_counts(column, least_gain):
    table = COLUMNS[column]
    assert _off(likely_counts, table) < (1 - least_gain) * _off(_nearest, table)


def test_neighbours_are_taken_for_alike_only_where_they_are(monkeypatch):
    smooth, mixed = COLUMNS["smooth"], COLUMNS["falling, in any order"]
    with_neighbours = {name: _off(likely_counts, c) for name, c in (("smooth", smooth), ("mixed", mixed))}
    monkeypatch.setattr(module, "ALIKE", 1e-12)
    alone = {name: _off(likely_counts, c) for name, c in (("smooth", smooth), ("mixed", mixed))}
    assert with_neighbours["smooth"] < 0.8 * alone["smooth"]
    assert with_neighbours["mixed"] < 1.05 * alone["mixed"]


def test_a_long_column_is_several():
    noisy = np.random.default_rng(3).normal(0, 50, 2 * BLOCK + 5) + 60
    found = likely_counts(noisy, 2500.0)
    assert found.size == noisy.size
    first = np.array_split(noisy, 3)[0]
    np.testing.assert_array_equal(found[: first.size], likely_counts(first, 2500.0))
