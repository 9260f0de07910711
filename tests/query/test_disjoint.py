"""Marginals that are about different rows: found, and measured as one partition at one price."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.curator.calibration import Calibration
from understudy.domain.attribute import Categories
from understudy.domain.domain import Domain
from understudy.privacy.budget import Budget
from understudy.privacy.columns import CountColumns, WeightColumns
from understudy.privacy.event import GaussianNoise, Located
from understudy.privacy.region import located_stack
from understudy.privacy.relation import Neighbours, Relation
from understudy.query import disjoint
from understudy.query.disjoint import disjoint_stacks, excludes, row_parts
from understudy.query.expression import parse
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal

SIZES = {"a": 2, "b": 3, "c": 2}
DOMAIN = Domain(
    tuple(Categories(name=name, values=tuple(f"{name}{i}" for i in range(n))) for name, n in SIZES.items())
)
NAMES = DOMAIN.names
NOISE = GaussianNoise(l2_squared=2, variance=5)  # type: ignore[arg-type]


@st.composite
def queries(draw: st.DrawFn) -> LinearQuery:
    """Counting queries: a product of conditions on single attributes, or one table over two of them."""
    if draw(st.booleans()):
        clique = DOMAIN.clique(draw(st.sampled_from([("a", "b"), ("b", "c"), ("a", "c")])))
        size = DOMAIN.size(clique)
        weights = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        return LinearQuery(DOMAIN, (Factor(clique, np.array(weights).reshape(DOMAIN.shape(clique))),))
    sides = {
        name: draw(st.lists(st.booleans(), min_size=DOMAIN[name].size, max_size=DOMAIN[name].size))
        for name in draw(st.sets(st.sampled_from(NAMES)))
    }
    return LinearQuery.conjunction(DOMAIN, sides)


@given(one=queries(), other=queries())
@settings(max_examples=200, deadline=None)
def test_two_queries_exclude_each_other_where_no_cell_of_the_universe_has_both(one, other):
    assert excludes(one, other) == (not (one.weights(NAMES) * other.weights(NAMES)).any())


def test_what_would_take_too_large_a_table_to_tell_is_not_taken_to_be_disjoint(monkeypatch):
    rate = parse("rate a = a0 and b = b0 within c", DOMAIN)
    assert rate.others is not None
    assert excludes(rate.marginal.where, rate.others.where)
    monkeypatch.setattr(disjoint, "MAX_TABLE", 3)
    disjoint.excludes.cache_clear()
    assert not excludes(rate.marginal.where, rate.others.where)
    disjoint.excludes.cache_clear()


def _column(stack: list[Marginal], row: tuple[int, ...]) -> np.ndarray:
    """What one row adds to the counts of marginals side by side."""
    parts = []
    for marginal in stack:
        found = np.zeros(marginal.shape)
        place = tuple(row[NAMES.index(name)] for name in marginal.by)
        found[place] = marginal.where.weights(NAMES)[row]
        parts.append(found.ravel())
    return np.concatenate(parts)


@given(wheres=st.lists(queries(), min_size=1, max_size=4), by=st.sampled_from([(), ("a",), ("c", "b")]))
@settings(max_examples=60, deadline=None)
def test_a_stack_moves_as_far_as_one_partition_and_is_located_where_its_rows_are(wheres, by):
    marginals = [Marginal(DOMAIN, by, where) for where in wheres]
    stacks = disjoint_stacks(marginals)
    assert sorted(i for stack in stacks for i in stack) == list(range(len(marginals)))
    universe = list(product(*map(range, DOMAIN.shape())))
    for places in stacks:
        stack = [marginals[i] for i in places]
        columns = [_column(stack, row) for row in universe]
        moved = CountColumns.stacked(stack)
        assert max(np.abs(column).sum() for column in columns) <= moved.longest.l1
        for one, other in combinations_with_replacement(columns, 2):
            assert np.abs(one - other).sum() <= moved.farthest.l1
            assert ((one - other) ** 2).sum() <= moved.farthest.l2_squared
        assert moved.longest.l1 <= 1
        assert moved.farthest.l1 <= 2
        event = located_stack(stack, NOISE, Relation(Neighbours.REPLACE))
        if isinstance(event, Located):
            seen = {span.attribute: span.mask for span in event.region}
            for row, column in zip(universe, columns, strict=True):
                inside = all(
                    seen.get(DOMAIN[name].identity, -1) >> code & 1
                    for name, code in zip(NAMES, row, strict=True)
                )
                assert inside or not column.any()


@st.composite
def weighted(draw: st.DrawFn) -> LinearQuery:
    """A condition on one attribute, and weights of quarters on two others: products are exact."""
    size = DOMAIN.size(("a", "b"))
    quarters = [1, *draw(st.lists(st.integers(0, 4), min_size=size - 1, max_size=size - 1))]
    held = [True, *draw(st.lists(st.booleans(), min_size=2, max_size=2))]
    return LinearQuery(
        DOMAIN,
        (
            Factor(("a", "b"), np.array(quarters).reshape(DOMAIN.shape(("a", "b"))) / 4),
            Factor(("c",), np.array(held)),
        ),
    )


@given(wheres=st.lists(weighted(), min_size=2, max_size=3), by=st.sampled_from([(), ("a",), ("c", "b")]))
@settings(max_examples=100, deadline=None)
def test_weights_go_together_where_those_of_no_row_add_up_to_more_than_1(wheres, by):
    marginals = [Marginal(DOMAIN, by, where) for where in wheres]
    universe = list(product(*map(range, DOMAIN.shape())))
    columns = [_column(marginals, row) for row in universe]
    fits = max(column.sum() for column in columns) <= 1
    assert (row_parts(tuple(wheres)) is not None) == fits
    counting = all(where.is_counting for where in wheres)
    if fits and not any(where.is_counting for where in wheres):
        assert disjoint_stacks(marginals) == (tuple(range(len(marginals))),)
        moved = WeightColumns.of(marginals, resolution=4)
        assert moved.longest.l1 == 4 * max(column.sum() for column in columns)
        for one, other in combinations_with_replacement(columns, 2):
            assert np.abs(4 * (one - other)).sum() <= moved.farthest.l1
            assert (16 * (one - other) ** 2).sum() <= moved.farthest.l2_squared
    elif not counting:
        for stack in disjoint_stacks(marginals):
            assert max(sum(_column([marginals[i]], row).sum() for i in stack) for row in universe) <= 1


def test_weights_that_would_take_too_large_a_table_to_tell_stay_apart(monkeypatch):
    table = np.array([0.25, 0.5, 0.0])
    pair = tuple(LinearQuery(DOMAIN, (Factor(("a",), part),)) for part in (table, 1 - table))
    assert row_parts(pair) is not None
    assert row_parts((pair[0], pair[0] & LinearQuery.conjunction(DOMAIN, {"b": [0.5, 1, 0, 0]}))) is None
    monkeypatch.setattr(disjoint, "MAX_TABLE", 5)
    disjoint.row_parts.cache_clear()
    assert row_parts(pair) is None
    disjoint.row_parts.cache_clear()


@pytest.mark.parametrize(("relation", "l1"), [(Neighbours.REPLACE, 2), (Neighbours.ADD_REMOVE, 1)])
def test_a_rate_is_one_partition_with_the_exact_sensitivity_of_one(relation, l1):
    rate = parse("rate a = a0 or b != b1 within c", DOMAIN)
    assert rate.others is not None
    stack = [rate.marginal, rate.others]
    assert disjoint_stacks(stack) == ((0, 1),)
    moved = Relation(relation).moves(CountColumns.stacked(stack))
    assert (moved.l1, moved.l2_squared) == (l1, l1)
    assert located_stack(stack, NOISE, Relation(relation)) == NOISE  # it is about everybody


def test_what_excludes_what_is_found_once_for_all_prices_that_are_tried():
    """25 groups have 300 pairs, more than `excludes` remembers; a search asks the same for every price."""
    many = Domain((Categories(name="a", values=tuple(f"a{i}" for i in range(25))),))
    groups = [
        Marginal.of(LinearQuery.conjunction(many, {"a": np.arange(many["a"].size) == i})) for i in range(25)
    ]
    half = LinearQuery.conjunction(many, {"a": np.full(many["a"].size, 0.75)})
    weighted = [Marginal(many, (), group.where & half) for group in groups]
    calibration = Calibration(many, Relation(Neighbours.REPLACE), Budget.of(1, 1e-9), lambda: None)
    found = []
    for _ in range(3):
        stacks = [disjoint_stacks(some) for some in (groups, weighted, [*groups, *weighted])]
        assert stacks[:2] == [(tuple(range(25)),)] * 2
        assert calibration.sensitivity(*groups).l1 == 2
        found.append((excludes.cache_info().misses, row_parts.cache_info().misses))
    assert found[0] == found[1] == found[2]
    assert len(disjoint_stacks(groups, weighted=False)) == 1
    assert len(disjoint_stacks(weighted, weighted=False)) == 25
