"""Haussler's bound on packings: a class of VC dimension d holds few sets that are far from one another."""

from __future__ import annotations

from itertools import combinations
from math import comb, e, exp, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from understudy_textbook.lectures9_10 import chaining_constant
from understudy_textbook.vc import vc_dimension

Traces = NDArray[np.int64]


def bound(d: int, share: float) -> float:
    """e(d+1)(2e/ε)^d: so many sets at most, if any two of them differ on a share ε of the points."""
    return exp(log_bound(d, share))


def log_bound(d: int, share: float) -> float:
    return log(e * (d + 1)) + d * log(2 * e / share)


def prefixes(points: int) -> Traces:
    return np.array([[x < cut for x in range(points)] for cut in range(points + 1)], np.int64)


def intervals(points: int) -> Traces:
    spans = [(0, 0), *combinations(range(points + 1), 2)]
    return np.array([[low <= x < high for x in range(points)] for low, high in spans], np.int64)


def small_sets(points: int, d: int) -> Traces:
    """All sets of at most d points: as many as there can be."""
    chosen = [set(s) for size in range(d + 1) for s in combinations(range(points), size)]
    return np.array([[x in s for x in range(points)] for s in chosen], np.int64)


def half_planes(points: int, seed: int) -> Traces:
    draw = np.random.default_rng(seed)
    places, normals = draw.normal(size=(points, 2)), draw.normal(size=(6000, 2))
    return np.unique((places @ normals.T > draw.normal(size=6000)).T.astype(np.int64), axis=0)


def packed(traces: Traces, apart: int, seed: int) -> int:
    """Sets that differ two by two on `apart` points: the most that a greedy choice finds in ten orders."""
    draw, most = np.random.default_rng(seed), 0
    for _ in range(10):
        left, size = draw.permutation(traces), 0
        while len(left):
            left, size = left[(left != left[0]).sum(axis=1) >= apart], size + 1
        most = max(most, size)
    return most


CLASSES = {
    "prefixes": (prefixes(60), 1),
    "intervals": (intervals(40), 2),
    "pairs": (small_sets(30, 2), 2),
    "half planes": (half_planes(24, 0), 3),
}


@pytest.mark.parametrize("name", CLASSES)
def test_haussler95_packings_are_small(name):
    traces, d = CLASSES[name]
    assert vc_dimension(traces) <= d
    points = traces.shape[1]
    for apart in range(1, points + 1):
        assert packed(traces, apart, apart) <= bound(d, apart / points), apart


def test_haussler95_prefixes_have_exact_packings():
    """⌊n/k⌋ + 1 of n + 1 prefixes are k apart: the greedy choice is nearly the best, and the bound is not far."""
    for apart in (1, 3, 7, 20, 60):
        exact = 60 // apart + 1
        assert exact / 2 <= packed(prefixes(60), apart, 0) <= exact <= bound(1, apart / 60) <= 35 * exact


def test_haussler95_a_class_of_more_dimensions_breaks_the_bound():
    """All sets of up to three points, and all sets, called classes of dimension 1."""
    assert packed(small_sets(20, 3), 1, 0) == sum(comb(20, i) for i in range(4)) > bound(1, 1 / 20)
    cube = np.array([[bits >> i & 1 for i in range(13)] for bits in range(2**13)], np.int64)
    assert packed(cube, 4, 0) > bound(1, 4 / 13)


@pytest.mark.parametrize(("d", "ratio"), [(1, 0.2), (3, 0.2), (2, 0.5), (10, 0.1)])
def test_haussler95_is_what_is_chained(d, ratio):
    """2 Σⱼ rʲ⁻¹ sqrt(2 ln(2N)) with N sets at distance rʲ, whose squares are shares of points."""
    sums = (ratio ** (j - 1) * sqrt(2 * (log(2) + log_bound(d, ratio ** (2 * j)))) for j in range(1, 70))
    assert chaining_constant(d, ratio=ratio) == pytest.approx(2 * sum(sums), rel=1e-9)
