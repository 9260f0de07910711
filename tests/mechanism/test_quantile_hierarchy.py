"""Quantiles from refined counts: what neighbours move, what it costs, and that the ends are where they say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statistical import assert_at_most
from understudy.errors import ParameterError
from understudy.mechanism import quantile_cuts
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.quantile_cuts import CutSearch, RoundTerms
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy, between, round_parts
from understudy.noise.samplers import SeededNoise
from understudy.noise.sums import NoiseLaw
from understudy.privacy.columns import PARTITION
from understudy.privacy.cost import UNITS, epsilon, rho
from understudy.privacy.event import RoundedNormal, Together
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation, Sensitivity

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
ONE_ROW = Sensitivity(1, 1)
PRICES = [Price("rho", Fraction(1, 50)), Price("epsilon", Fraction(1, 5))]


def made(price=PRICES[0], *, levels=(HALF,), steps=5_000, beta=Fraction(1, 20), moved=ONE_ROW, rounded=False):
    return QuantileHierarchy.made(price, moved, levels=levels, steps=steps, beta=beta, rounded=rounded)


def cell(steps) -> tuple[np.ndarray, np.ndarray]:
    values, counts = np.unique(np.asarray(steps, np.int64), return_counts=True)
    return values, counts.astype(np.int64)


# ---- privacy: on the counts themselves, whatever is told


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.integers(0, 900), max_size=30),
    new=st.integers(0, 900),
    old=st.integers(0, 900),
    seed=st.integers(0, 2**32),
)
def test_neighbours_move_one_count_of_a_round_whatever_the_rounds_before_told(rows, new, old, seed):
    """Cuts follow from what was told alone, and one row is in one count: in each round, and in the next."""
    told = np.random.default_rng(seed)
    search = CutSearch(900, (TENTH, HALF))
    for last in (False, False, True):
        terms = RoundTerms(NoiseLaw("laplace", Fraction(5)), 0.01, last)
        cuts = search.cuts(terms)
        here, added = between(cell(rows), cuts), between(cell([*rows, new]), cuts)
        assert np.abs(added - here).sum() == 1 == ((added - here) ** 2).sum()
        replaced = between(cell([*rows, old]), cuts)
        moved = Relation(Neighbours.REPLACE).moves(PARTITION)
        assert np.abs(added - replaced).sum() <= moved.l1
        assert ((added - replaced) ** 2).sum() <= moved.l2_squared
        search.observe(cuts, told.integers(-20, 60, cuts.size + 1), terms)


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("steps", [20, 400, 10**6, 2**40])
@pytest.mark.parametrize("moved", [ONE_ROW, Sensitivity(2, 2), Sensitivity(30, 900)])
def test_the_rounds_cost_the_price_and_no_more(price, steps, moved):
    mechanism = made(price, steps=steps, moved=moved)
    cost = (epsilon if price.currency == "epsilon" else rho)(mechanism.event)
    assert price.amount - Fraction(4 * moved.l1**2 * len(mechanism.rounds), UNITS) <= cost <= price.amount
    assert mechanism.event == mechanism.event_for(moved)
    assert mechanism.event != mechanism.event_for(moved + moved)
    assert isinstance(mechanism.event, Together) == (len(mechanism.rounds) > 1)


def test_a_range_of_two_to_the_fortieth_takes_a_dozen_rounds():
    assert len(round_parts(2**40, 1)) == 12
    assert all(sum(round_parts(steps, 3)) == 1 for steps in (1, 64, 10**6, 2**40))


# ---- the ends


def spread(kind: str, steps: int, rows: int) -> np.ndarray:
    draw = np.random.default_rng(7)
    if kind == "even":
        return draw.integers(0, steps + 1, rows)
    if kind == "lognormal":
        return np.clip(draw.lognormal(np.log(steps) - 4, 1, rows), 0, steps).astype(np.int64)
    return draw.choice([0, steps // 3, steps // 3 + 1, steps], rows, p=[0.2, 0.5, 0.1, 0.2])  # in lumps


def failures(mechanism: QuantileHierarchy, rows: np.ndarray, runs: int, *, seed: int) -> int:
    """How many times an end of some level was on the wrong side of a value that may be called the quantile."""
    ordered, noise = np.sort(rows), SeededNoise(seed)
    places = [float(level) * (len(rows) - 1) for level in mechanism.levels]
    least = [ordered[int(np.floor(place))] for place in places]
    most = [ordered[int(np.ceil(place))] for place in places]
    found = 0
    for ends in mechanism.draw_all([cell(rows)] * runs, noise=noise):
        found += any(low > a or high < b for (low, _, high), a, b in zip(ends, least, most, strict=True))
    return found


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("kind", ["even", "lognormal", "lumps"])
@pytest.mark.parametrize("steps", [25, 3_000])
def test_the_ends_are_on_their_sides(price, kind, steps):
    mechanism = made(price, levels=(TENTH, HALF), steps=steps, beta=Fraction(1, 4))
    assert_at_most(failures(mechanism, spread(kind, steps, 1_000), 120, seed=3), 120, 0.25)


@pytest.mark.parametrize("amount", [Fraction(1, 50), Fraction(2)])
@pytest.mark.parametrize("steps", [25, 3_000])
def test_with_rounded_normal_noise_the_ends_are_on_their_sides(amount, steps):
    price = Price("rho", amount)
    mechanism = made(price, levels=(TENTH, HALF), steps=steps, beta=Fraction(1, 4), rounded=True)
    parts = mechanism.event.events if isinstance(mechanism.event, Together) else (mechanism.event,)
    assert all(isinstance(part, RoundedNormal) for part in parts)
    assert rho(mechanism.event) <= amount
    assert_at_most(failures(mechanism, spread("lumps", steps, 1_000), 120, seed=3), 120, 0.25)
    tight = made(price, steps=25, beta=Fraction(1, 4), rounded=True)
    assert_at_most(failures(tight, TIGHT, 200, seed=3), 200, 0.125)


TIGHT = np.repeat([3, 12], [501, 500])
"""The median is 3 by one row: below each cut from 4 to 12 there is one row more than a lower end may have."""


@pytest.mark.parametrize("price", PRICES, ids=str)
def test_where_one_row_decides_the_lower_end_fails_as_often_as_it_may(price):
    mechanism = made(price, steps=25, beta=Fraction(1, 4))  # an eighth for each end
    found = failures(mechanism, TIGHT, 400, seed=3)
    assert_at_most(found, 400, 0.125)
    assert found > 20  # so that the test is no wider than it has to be


def test_a_bound_of_a_quarter_of_the_noise_is_noticed(monkeypatch):
    """A mutant of the test at a cut, which the check above notices."""
    honest = quantile_cuts.sum_bound
    monkeypatch.setattr(quantile_cuts, "sum_bound", lambda *given: honest(*given) / 4)
    with pytest.raises(AssertionError):
        assert_at_most(failures(made(steps=25, beta=Fraction(1, 4)), TIGHT, 400, seed=3), 400, 0.125)


def test_cuts_that_are_tested_out_of_order_are_noticed(monkeypatch):
    """A mutant: the last cut that passes at all is taken, though one before it failed."""

    def any_that_passes(self, beyond, level, *, upwards):
        bounds = [self.bound(level, beyond.size, place) for place in range(beyond.size)]
        passed = np.flatnonzero(beyond >= bounds)
        if not passed.size:
            return 0
        return int(passed[-1]) + 1 if upwards else beyond.size - int(passed[0])

    monkeypatch.setattr(RoundTerms, "passed", any_that_passes)
    with pytest.raises(AssertionError):
        assert_at_most(failures(made(steps=25, beta=Fraction(1, 4)), TIGHT, 600, seed=3), 600, 0.125)


def test_several_quantiles_cost_as_much_as_one_and_their_ends_are_near():
    rows = spread("even", 50_000, 40_000)
    levels = tuple(Fraction(i, 10) for i in range(1, 10))
    mechanism = made(Price("rho", Fraction(1, 100)), levels=levels, steps=50_000)
    assert rho(mechanism.event) == rho(made(Price("rho", Fraction(1, 100)), steps=50_000).event)
    [ends] = mechanism.draw_all([cell(rows)], noise=SeededNoise(8))
    ordered = np.sort(rows)
    for level, (low, point, high) in zip(levels, ends, strict=True):
        assert low <= point <= high
        apart = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)
        assert apart < 4 * mechanism.ranks(level)
        assert abs(np.searchsorted(ordered, point) - float(level) * rows.size) < 2 * mechanism.ranks(level)


@pytest.mark.parametrize("price", PRICES, ids=str)
def test_the_ranks_that_are_expected_are_those_that_come(price):
    rows = spread("even", 100_000, 60_000)
    mechanism = made(price, steps=100_000)
    ordered = np.sort(rows)
    found = [
        (np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)) / 2
        for [(low, _, high)] in mechanism.draw_all([cell(rows)] * 30, noise=SeededNoise(5))
    ]
    assert 0.6 * mechanism.ranks(HALF) < np.mean(found) < 1.6 * mechanism.ranks(HALF)


def test_an_empty_cell_has_quantiles_anywhere():
    [(only,)] = made().draw_all([cell([])], noise=SeededNoise(2))
    assert only[0] <= only[1] <= only[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"levels": ()},
        {"levels": (HALF, TENTH)},
        {"levels": (Fraction(3, 2),)},
        {"levels": tuple(Fraction(i, 100) for i in range(40))},
        {"steps": 0},
        {"beta": Fraction(0)},
        {"rounds": ()},
        {"rounds": (LaplaceMechanism(epsilon=Fraction(1), l1=0),) * 2},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ParameterError):
        replace(made(steps=400), **wrong)
