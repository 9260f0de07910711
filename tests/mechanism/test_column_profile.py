"""Column profiling: what it costs, what its grids are made of, and that it finds where numbers lie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.mechanism.column_profile.density import Density
from understudy.mechanism.column_profile.grid import Line
from understudy.mechanism.column_profile.profile import (
    DISTINCT,
    SHARES,
    ColumnProfile,
    ColumnProfiling,
    counts_of,
    distinct_of,
)
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import epsilon, rho
from understudy.privacy.event import GaussianNoise, LaplaceNoise
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation

ADD = Relation(Neighbours.ADD_REMOVE)
REPLACE = Relation(Neighbours.REPLACE)
RHO = Price("rho", Fraction(15, 1000))


def profiled(values, *, whole=False, price=RHO, columns=30, relation=ADD, seed=1, missing=0) -> ColumnProfile:
    profiling = ColumnProfiling(columns=columns, price=price, relation=relation)
    chunks = [np.sort(np.asarray(values, float))]
    return profiling.profile(
        counts_of(chunks, missing), distinct=distinct_of(chunks), whole=whole, noise=SeededNoise(seed)
    )


def covered(values, found: ColumnProfile) -> float:
    return float(np.mean((values >= found.low) & (values <= found.high)))


# ---------------------------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("relation", [ADD, REPLACE, Relation(Neighbours.ADD_REMOVE, 3)])
@pytest.mark.parametrize("columns", [1, 300])
def test_all_rounds_of_all_columns_cost_the_price_together(relation, columns):
    profiling = ColumnProfiling(columns=columns, price=RHO, relation=relation)
    assert rho(profiling.event) == RHO.amount
    assert {type(part) for part in profiling.event.events} == {GaussianNoise}
    pure = ColumnProfiling(columns=columns, price=Price("epsilon", Fraction(1, 2)), relation=relation)
    assert epsilon(pure.event) == Fraction(1, 2)
    assert {type(part) for part in pure.event.events} == {LaplaceNoise}
    assert sum(SHARES) + DISTINCT == 1


@given(st.data())
@settings(max_examples=40)
def test_neighbours_move_the_counts_by_no_more_than_the_noise_is_made_for(data):
    """Tables of two columns with missing values, on any grids, of which one row is added or replaced."""
    number = st.none() | st.integers(-9, 9)
    rows = data.draw(st.lists(st.tuples(number, number), max_size=6))
    row, other = data.draw(st.tuples(number, number)), data.draw(st.tuples(number, number))
    grids = [np.unique(data.draw(st.lists(st.integers(-9, 9), min_size=1, max_size=5))) for _ in range(2)]

    def counted(table):
        parts = []
        for place, grid in enumerate(grids):
            values = np.sort([line[place] for line in table if line[place] is not None])
            missing = sum(line[place] is None for line in table)
            parts.append(counts_of([np.asarray(values, float)], missing)(grid.astype(float)))
        return np.concatenate(parts)

    pairs = {ADD: ([*rows, row], rows), REPLACE: ([*rows, row], [*rows, other])}
    for relation, (first, second) in pairs.items():
        moved = ColumnProfiling(columns=2, price=RHO, relation=relation).moved
        step = counted(first) - counted(second)
        assert np.abs(step).sum() <= moved.l1
        assert (step**2).sum() <= moved.l2_squared
        different = [len({line[0] for line in table} - {None}) for table in (first, second)]
        assert abs(different[0] - different[1]) <= 1


def test_every_count_of_every_round_gets_its_noise():
    """Other noise leads to other grids after the first, and to other bounds."""
    profiling, asked = ColumnProfiling(columns=30, price=RHO, relation=ADD), []
    values = np.sort(np.random.default_rng(1).normal(50, 9, 20_000))
    exact = counts_of([values], 5)

    def counts_on(edges):
        asked.append(edges)
        return exact(edges)

    first = profiling.profile(counts_on, distinct=9, whole=False, noise=SeededNoise(1))
    grids, asked = asked, []
    second = profiling.profile(counts_on, distinct=9, whole=False, noise=SeededNoise(2))
    assert len(grids) == len(asked) == len(SHARES) == 5
    assert np.array_equal(grids[0], asked[0])
    assert np.array_equal(grids[0], Line(whole=False).octaves())
    assert first != second


# ---------------------------------------------------------------------------------------- what it finds


@pytest.mark.parametrize("seed", range(3))
def test_years_are_found_as_years_and_not_as_an_octave(seed):
    values = np.random.default_rng(seed).integers(1930, 2011, 50_000)
    found = profiled(values, whole=True, seed=seed)
    assert 1900 < found.low <= 1931
    assert 2008 <= found.high < 2040
    assert len(found.cuts) == 15
    assert all(cut == int(cut) for cut in (found.low, found.high, *found.cuts))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, 3e4, -3e4])
def test_numbers_are_found_at_every_scale_and_place(scale, shift):
    values = np.sort((np.random.default_rng(4).normal(0, 1, 50_000) + shift) * scale)
    found = profiled(values, seed=7)
    assert covered(values, found) > 0.97
    assert found.high - found.low < 12 * scale
    ranks = np.searchsorted(values, found.cuts) / values.size
    assert np.abs(ranks - np.arange(1, 16) / 16).max() < 0.03


def test_a_column_of_mostly_nothing_has_a_bin_of_its_own_for_0():
    rng = np.random.default_rng(2)
    values = np.where(rng.random(50_000) < 0.7, 0, rng.exponential(100, 50_000))
    found = profiled(values)
    assert found.low == 0
    assert found.cuts[0] == 1e-12
    assert found.counts[0] == pytest.approx(35_000, rel=0.05)


def test_what_is_missing_is_told_with_noise():
    found = profiled(np.random.default_rng(2).normal(0, 1, 20_000), missing=7_000)
    assert found.missing == pytest.approx(7_000, abs=6 * found.deviation)
    assert sum(found.counts) == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize("values", [[], [5.0] * 3, [1e300] * 4, [-(2.0**-60)] * 5])
def test_too_few_people_show_no_bounds(values):
    found = profiled(values, columns=300)
    assert (found.low, found.high, found.cuts, found.counts) == (None, None, (), ())


@pytest.mark.parametrize("values", [[0.0] * 20_000, [7.0] * 20_000, [-3.5e12] * 20_000, [1e200] * 20_000])
@pytest.mark.parametrize("whole", [True, False])
def test_one_value_alone_is_bounded_or_beyond_all_octaves(values, whole):
    found = profiled(values, whole=whole)
    if values[0] > 1e100:  # beyond the last octave: nothing can be said
        assert found.low is None
    else:
        assert found.low <= values[0] <= found.high
        assert found.low < found.high


def test_pure_epsilon_finds_bounds_of_few_columns():
    values = np.random.default_rng(3).lognormal(8, 0.7, 50_000)
    found = profiled(values, price=Price("epsilon", Fraction(1)), columns=3)
    assert covered(values, found) > 0.98
    assert found.high - found.low < 2 * np.subtract(*np.quantile(values, [0.99, 0.01]))


def test_different_values_are_counted_with_noise():
    values = np.arange(20_000.0) // 4
    assert profiled(values).distinct == pytest.approx(5_000, rel=0.2)
    assert distinct_of([np.array([1.0, 1.0, 2.0]), np.array([2.0, 3.0]), np.array([])]) == 3


def test_a_profile_is_kept_as_plain_values():
    found = profiled(np.arange(20_000.0))
    assert ColumnProfile.from_plain(found.as_plain()) == found


# ---------------------------------------------------------------------------------------- grids


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2, unique=True), st.integers(1, 300), st.booleans()
)
@settings(max_examples=60)
def test_cuts_of_an_interval_lie_within_it_and_rise(ends, parts, whole):
    low, high = sorted(ends)
    if whole:
        low, high = float(np.floor(low)), float(np.floor(high) + 1)
    inner = Line(whole).split(low, high, parts)
    assert inner.size <= max(parts - 1, 0)
    assert ((inner > low) & (inner < high)).all()
    assert (np.diff(inner) > 0).all()
    if whole:
        assert (inner == np.floor(inner)).all()


def test_a_refined_density_keeps_its_cells_and_cuts_the_heavy_ones():
    line = Line(whole=False)
    density = Density(line, np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 90.0, 10.0]), np.ones(3))
    edges, parents = density.refined(10)
    assert np.bincount(parents).tolist() == [1, 9, 1]
    assert set(density.edges) <= set(edges)
    after = density.after(edges, parents, np.array([0.0] * 5 + [90.0] + [0.0] * 4 + [10.0]), 1.0)
    assert after.hull[0] == pytest.approx(1 + 4 / 9)
    assert after.masses.sum() == pytest.approx(100, rel=0.1)
