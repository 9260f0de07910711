from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, QueryError, TooLargeError
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal

DOMAIN = Domain((Bins.integers("a", 0, 2), Categories(name="b", values=("x", "y")), Bins.integers("c", 0, 1)))


class Histogram:
    """The plainest projection: a dense table of rates."""

    def __init__(self, domain, rates):
        self.domain = domain
        self.rates = rates

    def project(self, clique):
        axes = tuple(i for i, name in enumerate(self.domain.names) if name not in clique)
        return self.rates.sum(axis=axes)


def histograms(draw, domain):
    counts = draw(st.lists(st.integers(0, 9), min_size=domain.size(), max_size=domain.size()))
    table = np.array(counts, dtype=float).reshape(domain.shape()) + (sum(counts) == 0)
    return Histogram(domain, table / table.sum())


@st.composite
def query_and_table(draw):
    parts = {}
    for attribute in DOMAIN:
        if draw(st.booleans()):
            weights = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
            parts[attribute.name] = draw(st.lists(weights, min_size=attribute.size, max_size=attribute.size))
    return LinearQuery.conjunction(DOMAIN, parts), histograms(draw, DOMAIN)


@given(query_and_table())
def test_lectures9_10_definition_2_normalised_linear_query(pair):
    """f(x) = Σ xᵢ f(Xᵢ)/‖x‖₁: the projection gives the same average as the whole universe."""
    query, table = pair
    direct = float((table.rates * query.weights(DOMAIN.names)).sum())
    assert query.answer(table) == pytest.approx(direct, abs=1e-12)
    assert 0 <= query.answer(table) <= 1 + 1e-12


@given(query_and_table())
def test_complement_and_bounds(pair):
    query, table = pair
    assert query.complement().answer(table) == pytest.approx(1 - query.answer(table), abs=1e-12)
    weights = query.weights()
    assert query.largest == weights.max()
    assert query.smallest == weights.min()


@given(query_and_table(), query_and_table())
def test_product_of_queries(one, two):
    product = one[0] & two[0]
    expected = one[0].weights(DOMAIN.names) * two[0].weights(DOMAIN.names)
    np.testing.assert_allclose(product.weights(DOMAIN.names), expected, rtol=1e-12)


@given(query_and_table(), st.sets(st.sampled_from(DOMAIN.names)))
def test_projection_commutes_with_answering(pair, by):
    """The cells of a marginal add up to the query, and agree with one query for each cell."""
    query, table = pair
    marginal = Marginal(DOMAIN, tuple(by), query)
    answers = marginal.answer(table)
    assert answers.shape == DOMAIN.shape(marginal.by)
    assert answers.sum() == pytest.approx(query.answer(table), abs=1e-12)
    for cell in np.ndindex(*answers.shape):
        one_hot = {
            name: np.eye(DOMAIN[name].size)[code] for name, code in zip(marginal.by, cell, strict=True)
        }
        alone = query & LinearQuery.conjunction(DOMAIN, one_hot)
        assert alone.answer(table) == pytest.approx(answers[cell], abs=1e-12)


@given(query_and_table(), st.data())
@settings(max_examples=50)
def test_weights_of_rows_are_those_of_cells(pair, data):
    query = pair[0]
    rows = data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    codes = {a.name: rng.integers(0, a.size, rows).astype(np.uint8) for a in DOMAIN}
    expected = query.weights(DOMAIN.names)[tuple(codes.values())]
    np.testing.assert_array_equal(np.broadcast_to(query.row_weights(codes), rows), expected)


def test_a_wide_conjunction_is_never_expanded():
    wide = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(40)))
    query = LinearQuery.conjunction(wide, {name: np.eye(10)[3] for name in wide.names[:30]})
    assert query.is_counting
    assert wide.size(query.clique) == 10**30
    assert (query.largest, query.smallest) == (1.0, 0.0)
    with pytest.raises(TooLargeError):
        query.weights()


def test_spellings_of_one_query_are_equal():
    one = LinearQuery.conjunction(DOMAIN, {"c": [0, 1], "a": [1, 0, 0]})
    two = LinearQuery.conjunction(DOMAIN, {"a": [1, 0, 0], "b": [1, 1, 1], "c": [0, 1]})
    three = LinearQuery.table(DOMAIN, ["c", "a"], np.outer([0, 1], [1, 0, 0]))
    assert one == two
    assert hash(one) == hash(two)
    np.testing.assert_array_equal(one.weights(), three.weights())
    assert one != LinearQuery.conjunction(DOMAIN, {"a": [0, 1, 0], "c": [0, 1]})


@pytest.mark.parametrize(
    "weights", [[0, 2, 0], [0, -0.1, 0], [0, float("nan"), 0], [float("inf"), 0, 0], [1, 0]]
)
def test_bad_weights_are_refused(weights):
    with pytest.raises(QueryError):
        LinearQuery.conjunction(DOMAIN, {"a": weights})


def test_minus_zero_is_zero():
    assert LinearQuery.conjunction(DOMAIN, {"c": [-0.0, 1]}) == LinearQuery.conjunction(
        DOMAIN, {"c": [0.0, 1]}
    )


def test_overlapping_factors_and_mixed_domains_are_refused():
    with pytest.raises(DomainError):
        LinearQuery(DOMAIN, (Factor(("a",), np.ones(3) / 2), Factor(("a",), np.ones(3) / 2)))
    other = Domain((Bins.integers("a", 0, 2),))
    with pytest.raises(DomainError):
        LinearQuery.everyone(DOMAIN) & LinearQuery.everyone(other)


def test_weights_cannot_be_changed_afterwards():
    query = LinearQuery.conjunction(DOMAIN, {"c": [0, 1]})
    with pytest.raises(ValueError, match="read-only"):
        query.factors[0].weights[0] = 1
