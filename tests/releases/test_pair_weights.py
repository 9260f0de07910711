"""How much pairs weigh in the last sweep of an adaptive release."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_table import ADD
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.relation import Relation
from understudy.query.merging import Merging
from understudy.releases.adaptive.pair_weights import LIGHTEST, SAFE, SeenPairs, raised
from understudy.releases.adaptive.sweep import SweepPlan

DOMAIN = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in (("a", 2), ("b", 3), ("c", 4))))


def seen(gap: float, *, pairs: int = 40, measured: int = 10, people: float = 400.0) -> SeenPairs:
    """Pairs of 5 by 5 cells with so many people in each; gaps beyond chance are `gap` people."""
    tables = [np.full((5, 5), people) for _ in range(pairs)]
    chance = 25 * np.sqrt(2 / np.pi) * np.sqrt(people)
    return SeenPairs(tables, np.full(pairs, chance + gap), np.arange(pairs) < measured)


def test_pairs_that_are_off_by_chance_alone_weigh_little_and_others_as_much_as_the_measured():
    weights = {gap: seen(gap).weights(1e-2, share=0.4, told=400) for gap in (0.0, 60.0, 120.0, 2000.0)}
    assert all(found[:10] == (1,) * 10 for found in weights.values())
    light = [found[-1] for found in weights.values()]
    assert all(a <= b for a, b in pairwise(light))
    assert light[0] < Fraction(1, 8)
    assert light[-1] == 1


@given(st.integers(1, 39), st.integers(40, 2000), st.floats(0.05, 0.7), st.floats(-500, 500))
@settings(max_examples=60)
def test_every_pair_keeps_more_than_a_direct_questions_part(measured, told, share, gap):
    weights = [float(w) for w in seen(gap, measured=measured).weights(1e-2, share=share, told=told)]
    parts = [share * w / sum(weights) for w in weights]
    if share / len(weights) > SAFE / told:
        assert min(parts) >= SAFE / told * (1 - 1e-9)
        assert min(weights) >= LIGHTEST
    else:
        assert set(weights) == {1.0}


@pytest.mark.parametrize("measured", [0, 40])
def test_where_all_or_no_pairs_were_measured_they_weigh_the_same(measured):
    assert set(seen(0.0, measured=measured).weights(1e-2, share=0.4, told=400)) == {Fraction(1)}


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=30), st.floats(0.0, 0.99), st.floats(0, 20))
def test_weights_are_raised_to_a_part_of_all_of_them_and_others_stay(weights, room, beside):
    least = room / (len(weights) + beside)
    given = np.array(weights)
    found = raised(given, least, beside)
    low = least * (found.sum() + beside)
    assert (found >= low * (1 - 1e-9)).all()
    moved = found > given
    np.testing.assert_allclose(found[moved], low, rtol=1e-9)
    assert (found[~moved] == given[~moved]).all()


@pytest.mark.parametrize("measured", [0, 10, 40])
@pytest.mark.parametrize(("beside", "told"), [(0, 400), (20, 400), (20, 150)])
def test_pairs_that_matter_more_weigh_more_and_the_others_keep_their_part(measured, beside, told):
    """Where 60 marginals of 150 cannot each keep a direct question's part, weights are what was asked for."""
    importance = [4.0] * 5 + [1.0] * 35
    found = seen(0.0, measured=measured).weights(
        1e-2, share=0.5, told=told, importance=importance, beside=beside
    )
    room = 0.5 / (40 + beside) > SAFE / told
    parts = np.array([float(weight) for weight in found])
    parts *= 0.5 / (parts.sum() + beside)
    if room:
        assert parts.min() >= SAFE / told * (1 - 1e-9)
    else:
        assert found == tuple(map(Fraction, importance))
    assert min(found[:5]) > max(found[20:])
    assert measured == 0 or found[0] == 4


def test_a_heavier_pair_has_the_smaller_variance():
    merging, relation = Merging.none(DOMAIN), Relation(ADD, 1)
    pairs = list(combinations(DOMAIN.names, 2))
    even, uneven = (
        SweepPlan.of(relation, merging, pairs, Fraction(1, 10), rounded=False, weights=weights)
        for weights in ((Fraction(1),) * 3, (Fraction(1), Fraction(1, 4), Fraction(1, 4)))
    )
    assert even.look is not None
    assert uneven.look is not None
    precision = {
        plan: {p.clique: p.precision for p in plan.look.parts} for plan in (even, uneven) if plan.look
    }
    assert precision[uneven][pairs[0]] > precision[even][pairs[0]]
    assert precision[uneven][pairs[1]] < precision[even][pairs[1]]
