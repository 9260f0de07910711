from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.mechanism.look import released
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.noise.samplers import SeededNoise
from understudy.privacy import columns as products
from understudy.privacy.columns import ProductColumns
from understudy.privacy.event import GaussianNoise, Located
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

REPLACE = Relation(Neighbours.REPLACE)
RHO = Price.of(rho=1)
DOMAIN = Domain((Bins.integers("a", 0, 2), Bins.integers("b", 0, 3), Bins.integers("c", 0, 1)))


@st.composite
def strategies(draw, neighbours, *, filters=(0, 1)):
    by = draw(st.sampled_from([("a",), ("a", "b"), ("b",)]))
    matrices = tuple(
        np.array(draw(st.lists(st.lists(st.integers(-4, 4), min_size=s, max_size=s), min_size=1, max_size=4)))
        for s in DOMAIN.shape(by)
    )
    where = LinearQuery.conjunction(DOMAIN, {"c": [1, 0]}) if draw(st.sampled_from(filters)) else None
    rows = draw(st.integers(1, 2)) if neighbours is Neighbours.ADD_REMOVE else 1
    return Strategy(
        Marginal(DOMAIN, by, where) if where else Marginal(DOMAIN, by),
        matrices,
        Relation(neighbours, rows),
        Price.of(rho=Fraction(1, 2)),
    )


def columns(found):
    expanded = found.matrices[0]
    for matrix in found.matrices[1:]:
        expanded = np.kron(expanded, matrix)
    return expanded.T


@given(strategies(Neighbours.REPLACE))
@settings(max_examples=60)
def test_replacing_a_row_moves_the_combinations_by_no_more_than_declared(found):
    vectors = list(columns(found))
    if found.marginal.where.factors:
        vectors.append(np.zeros_like(vectors[0]))  # a row that the marginal does not see
    far = [a - b for a in vectors for b in vectors]
    assert found.sensitivity.l1 >= max(np.abs(v).sum() for v in far)
    assert found.sensitivity.l2_squared >= max((v**2).sum() for v in far)
    if not found.marginal.where.factors:
        assert found.sensitivity.l2_squared == max((v**2).sum() for v in far)


@given(strategies(Neighbours.REPLACE, filters=(0,)))
def test_the_bound_for_large_marginals_is_one(found):
    exact = ProductColumns(found.matrices).farthest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "MAX_PAIRS", 0)
        bound = ProductColumns(found.matrices).farthest
    assert bound.l1 >= exact.l1
    assert bound.l2_squared >= exact.l2_squared


@given(strategies(Neighbours.ADD_REMOVE), st.data())
def test_a_persons_rows_move_the_combinations_by_no_more_than_declared(found, data):
    vectors = columns(found)
    rows = data.draw(st.lists(st.integers(0, len(vectors) - 1), min_size=1, max_size=found.relation.max_rows))
    moved = sum(vectors[row] for row in rows)
    assert (moved**2).sum() <= found.sensitivity.l2_squared
    assert np.abs(moved).sum() <= found.sensitivity.l1


@given(strategies(Neighbours.REPLACE, filters=(1,)))
def test_a_row_alone_moves_a_located_strategy_by_half_at_most(found):
    event = found.event
    if found.sensitivity.l2_squared:
        assert isinstance(event, Located)
        assert isinstance(event.noise, GaussianNoise)
        assert max((v**2).sum() for v in columns(found)) <= event.noise.l2_squared / 2


def test_the_product_is_never_expanded_and_yet_right():
    rng = np.random.default_rng(0)
    matrices = (rng.integers(-3, 4, (5, 3)), rng.integers(-3, 4, (2, 4)))
    found = Strategy(Marginal(DOMAIN, ("a", "b")), matrices, REPLACE, RHO)
    counts = rng.integers(0, 50, (3, 4))
    expected = np.kron(*matrices) @ counts.ravel()
    assert (found.combine(counts).ravel() == expected).all()
    assert found.shape == (5, 2)
    noisy = released(found, [counts], noise=SeededNoise(1))
    assert len(noisy) == 10
    assert noisy != expected.tolist()


def test_bad_strategies_are_refused():
    by_a = Marginal(DOMAIN, ("a",))
    for bad in ([[1, 2]], [[1.0, 2, 3]], [1, 2, 3], [[2**30, 0, 0]]):
        with pytest.raises(ParameterError):
            Strategy(by_a, (np.array(bad),), REPLACE, RHO)
    for price in (Price("rho", Fraction(0)), Price("epsilon", Fraction(1001))):
        with pytest.raises(ParameterError):
            Strategy(by_a, (np.eye(3, dtype=int),), REPLACE, price)
    with pytest.raises(QueryError):
        Strategy(Marginal(DOMAIN, ()), (), REPLACE, RHO)


def test_weights_that_would_overflow_are_refused():
    """Sums of squares beyond 64 bits would wrap around to a sensitivity of 0, and exact counts would go out."""
    by_a = Marginal(DOMAIN, ("a",))
    for bad in (np.full((2**20, 3), 2**22), np.array([[-(2**63), 0, 0]]), np.full((2**16, 3), 2**22)):
        with pytest.raises(ParameterError, match="too many or too large"):
            Strategy(by_a, (bad,), REPLACE, RHO)
