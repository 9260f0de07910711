from __future__ import annotations

from math import comb

import numpy as np
import pytest

from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.query import family
from understudy.query.linear import LinearQuery
from understudy.query.workload import Workload, marginals
from understudy_textbook.lectures9_10 import query_release_error

DOMAIN = Domain((Bins.integers("a", 0, 3), Bins.integers("b", 0, 1), Bins.integers("c", 0, 1)))


class Uniform:
    domain = DOMAIN

    def project(self, clique):
        shape = DOMAIN.shape(clique)
        return np.full(shape, 1 / max(1, int(np.prod(shape))))


def test_all_marginals_are_counted_exactly():
    huge = Domain(tuple(Bins.integers(f"x{i}", 0, 999) for i in range(40)))
    workload = marginals(3).over(huge)
    assert len(workload) == comb(40, 3)
    assert workload.queries == comb(40, 3) * 10**9


def test_weights_and_lists():
    workload = Workload.of(DOMAIN, [["b", "a"], ["c"]], [0.5, 2])
    assert workload.cliques == (("a", "b"), ("c",))
    assert workload.queries == 8 + 2
    for bad in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ParameterError):
            Workload.of(DOMAIN, [["a"]], [bad])
    with pytest.raises(QueryError, match="twice"):
        Workload.of(DOMAIN, [["a", "b"], ["b", "a"]])
    with pytest.raises(QueryError):
        Workload.of(DOMAIN, [])
    with pytest.raises(QueryError):
        Workload.all_marginals(DOMAIN, 4)


def test_lectures9_10_definition_1_query_release_problem():
    queries = list(family.prefixes(DOMAIN, "a"))
    truths = [0.25, 0.5, 0.75, 1.0]
    assert query_release_error(truths, queries, Uniform()) == pytest.approx(0, abs=1e-15)
    assert query_release_error([0.25, 0.4, 0.75, 1.2], queries, Uniform()) == pytest.approx(0.2)
    with pytest.raises(QueryError):
        query_release_error([0.1], queries, Uniform())


@pytest.mark.parametrize("bins", [1, 2, 5, 9])
def test_ranges_are_all_intervals_once(bins):
    domain = Domain((Bins.integers("a", 0, bins - 1),))
    seen = [tuple(query.weights(["a"]).astype(int)) for query in family.ranges(domain, "a")]
    assert len(set(seen)) == len(seen) == bins * (bins + 1) // 2
    for weights in seen:
        assert sum(abs(np.diff([0, *weights, 0]))) == 2  # one run of ones


def test_prefixes_exclude_missing_values():
    domain = Domain((Bins.between("a", [0, 1, 2, 3], null=True),))
    last = family.prefixes(domain, "a")[2].weights(["a"])
    assert last.tolist() == [1, 1, 1, 0]


def test_conjunctions_are_the_cells_of_all_marginals():
    cells = family.conjunctions(DOMAIN, 2)
    assert cells.size == Workload.all_marginals(DOMAIN, 2).queries == 8 + 8 + 4
    assert len({query.key for query in cells}) == 20
    assert sum(query.answer(Uniform()) for query in cells) == pytest.approx(3)
    with pytest.raises(IndexError):
        cells[20]


def test_parities_are_orthogonal():
    signs = [1 - 2 * query.weights(["b", "c"]).ravel() for query in family.parities(DOMAIN, 2)]
    assert len(signs) == 4
    np.testing.assert_array_equal(np.array(signs) @ np.array(signs).T, 4 * np.eye(4))


def test_half_spaces_are_exact():
    plane = family.half_spaces(DOMAIN, ["b", "a"], [((2.0, 1.0), 3.0)])[0]
    expected = [[a + 2 * b >= 3 for b in range(2)] for a in range(4)]
    np.testing.assert_array_equal(plane.weights(), np.array(expected, dtype=float))
    with pytest.raises(QueryError):
        family.half_spaces(DOMAIN, ["a"], [((1.0, 2.0), 0.0)])[0]


def test_unordered_attributes_have_no_prefixes():
    domain = Domain((Categories(name="k", values=("x", "y")),))
    with pytest.raises(QueryError, match="not ordered"):
        family.prefixes(domain, "k")
    assert LinearQuery.everyone(domain).is_counting
