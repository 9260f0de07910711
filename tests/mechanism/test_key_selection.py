"""Key selection: its exact law, enumerated; the δ that it is charged is attained, and never passed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy.mechanism.key_selection import (
    GaussianSelection,
    TruncatedGeometricSelection,
    best_selection,
    keys_moved,
)
from understudy.noise.samplers import SeededNoise, truncated_geometric
from understudy.privacy.compose import zcdp_delta
from understudy.privacy.cost import rho
from understudy.privacy.key_event import GaussianKeys, TruncatedGeometricKeys
from understudy.privacy.relation import Neighbours, Relation

ADD = Relation(Neighbours.ADD_REMOVE)
REPLACE = Relation(Neighbours.REPLACE)

geometric = st.builds(
    TruncatedGeometricSelection,
    epsilon=st.fractions(Fraction(1, 20), 3, max_denominator=50),
    reach=st.integers(1, 12),
    at_least=st.integers(1, 4),
)


def needed(selection, first, second, epsilons):
    """The δ at which what is told of the first counts is within e^ε of the second, summed over all that can be."""
    laws = [(selection.law(a), selection.law(b)) for a, b in zip(first, second, strict=True)]
    here, there = np.ones(1), np.ones(1)
    for one, other in laws:
        told = sorted(one.keys() | other.keys())
        here = np.multiply.outer(here, [one.get(value, 0.0) for value in told])
        there = np.multiply.outer(there, [other.get(value, 0.0) for value in told])
    return [float(np.maximum(here - exp(epsilon) * there, 0).sum()) for epsilon in epsilons]


def worst(selection, epsilons, pairs):
    """For each ε the largest such δ over pairs of counts, in both orders."""
    return np.max(
        [needed(selection, x, y, epsilons) for a, b in pairs for x, y in ((a, b), (b, a))], axis=0
    ).tolist()


@given(geometric)
@settings(max_examples=40)
def test_one_key_needs_exactly_the_delta_of_the_event(selection):
    pairs = [((n,), (n + 1,)) for n in range(selection.at_least + 3 * selection.reach + 2)]
    (found,) = worst(selection, [float(selection.epsilon)], pairs)
    assert found <= float(selection.event.delta) + 1e-14  # floats of order 1 cancel in the sum
    assert found == pytest.approx(float(selection.event.delta), rel=1e-6, abs=1e-14)


@pytest.mark.parametrize(("relation", "each"), [(ADD, 2), (REPLACE, 1)])
@pytest.mark.parametrize("kind", [TruncatedGeometricSelection, GaussianSelection])
def test_several_keys_never_need_more_than_the_event_says(kind, relation, each):
    """Of all pairs of small counts that neighbours can have: two keys up, or one up and one down."""
    selection = kind.of(rho=Fraction(1, 2), delta=Fraction(1, 20), relation=relation, keys_each=each)
    counts = range(selection.threshold + 3)
    step = -1 if relation is REPLACE else 1
    pairs = [((a, b), (a + 1, b + step)) for a in counts for b in counts if b + step >= 0]
    event = selection.event
    epsilons = [0.2, 1.0, 2.0]
    for epsilon, found in zip(epsilons, worst(selection, epsilons, pairs), strict=True):
        assert found <= float(event.delta) + zcdp_delta(float(rho(event)), epsilon)
    if isinstance(event, TruncatedGeometricKeys):
        assert worst(selection, [float(event.epsilon * event.keys)], pairs)[0] <= float(event.delta)


@given(st.fractions(Fraction(1, 10), 2, max_denominator=20), st.integers(1, 10))
@settings(max_examples=40)
def test_no_mechanism_tells_a_key_with_a_higher_probability(epsilon, reach):
    """The two inequalities that every (ε, δ)-DP mechanism obeys, of which this one makes one an equality."""
    selection = TruncatedGeometricSelection(epsilon=epsilon, reach=reach)
    weights = sum(exp(-float(epsilon) * abs(x)) for x in range(-reach, reach + 1))
    delta, best = exp(-float(epsilon) * reach) / weights, 0.0
    for count in range(1, 3 * reach + 3):
        best = min(exp(epsilon) * best + delta, 1 - exp(-epsilon) * (1 - best - delta), 1.0)
        assert 1 - selection.law(count)[0] == pytest.approx(best, abs=1e-12)


@given(st.fractions(Fraction(1, 5), 2, max_denominator=20), st.integers(1, 3))
@settings(max_examples=25)
def test_the_gaussian_threshold_is_no_nearer_than_its_delta_allows(rate, at_least):
    selection = GaussianSelection.of(
        rho=rate, delta=Fraction(1, 100), relation=ADD, keys_each=1, at_least=at_least
    )
    lifted = 1 - selection.law(at_least)[0]
    assert lifted <= float(selection.event.delta) <= 0.01
    if selection.reach > 1:
        with pytest.raises(ParameterError, match="tail"):
            GaussianKeys(
                l2_squared=Fraction(1),
                variance=selection.variance,
                keys=1,
                reach=selection.reach - 1,
                delta=Fraction(1, 100),
            )


@pytest.mark.parametrize("kind", [TruncatedGeometricSelection, GaussianSelection])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("each", [1, 7, 300])
def test_a_selection_costs_no_more_than_its_price(kind, relation, each):
    selection = kind.of(rho=Fraction(1, 100), delta=Fraction(1, 10**9), relation=relation, keys_each=each)
    assert rho(selection.event) <= Fraction(1, 100)
    assert selection.event.delta_cost() <= Fraction(1, 10**9)
    assert replace(selection, reach=selection.reach - 1).event.delta_cost() > Fraction(1, 10**9)
    assert keys_moved(relation, each) == each * (2 if relation is REPLACE else 1)


@pytest.mark.parametrize("each", [1, 300])
def test_the_better_of_the_two_is_the_one_with_the_lower_threshold(each):
    """At a price in ρ and a small δ that is the Gaussian one: σΦ⁻¹(1 - δ) against ln(1/2δ)/ε, ε = 1/σ."""
    price = {"rho": Fraction(1, 2), "delta": Fraction(1, 10**9), "relation": ADD, "keys_each": each}
    best = best_selection(**price)
    assert best == GaussianSelection.of(**price)
    assert best.threshold < TruncatedGeometricSelection.of(**price).threshold
    one = TruncatedGeometricSelection.of(rho=Fraction(1, 2), delta=Fraction(1, 10**9), relation=ADD)
    assert one.reach == round(log(1 / 2e-9) - 0.3)


@pytest.mark.parametrize(
    "selection",
    [
        TruncatedGeometricSelection(epsilon=Fraction(1, 2), reach=4, at_least=3),
        GaussianSelection(variance=Fraction(9), reach=8, at_least=3),
    ],
)
def test_what_is_drawn_has_the_law_and_no_key_of_fewer_people_is_told(selection):
    draws = 40_000
    for count in (0, 2, 3, 7, 11):
        told = selection.release(np.full(draws, count), noise=SeededNoise(count))
        law = selection.law(count)
        assert set(told.tolist()) <= law.keys()
        if count < selection.at_least:
            assert not told.any()
        for value, chance in law.items():
            spread = 5 * (chance * (1 - chance) / draws) ** 0.5 + 1e-4
            assert abs((told == value).mean() - chance) <= spread


def test_truncated_noise_stays_within_its_reach():
    drawn = truncated_geometric(Fraction(1, 3), 5, 20_000, noise=SeededNoise(3))
    assert set(drawn.tolist()) == set(range(-5, 6))
    with pytest.raises(ParameterError, match="reach"):
        truncated_geometric(1, 0, 1, noise=SeededNoise(1))


@pytest.mark.parametrize(
    "mutant",
    [
        lambda s: replace(s, reach=s.reach - 1),  # a threshold that is one step too near
        lambda s: replace(s, epsilon=s.epsilon * 2),  # noise that is half as wide
    ],
)
def test_the_enumeration_sees_a_mechanism_that_is_not_what_its_event_says(mutant):
    selection = TruncatedGeometricSelection(epsilon=Fraction(1, 2), reach=6)
    other, event = mutant(selection), selection.event
    pairs = [((n,), (n + 1,)) for n in range(20)]
    assert worst(other, [float(event.epsilon)], pairs)[0] > 1.2 * float(event.delta)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": Fraction(1), "keys": 1, "reach": 5, "delta": Fraction(1, 10**6)},
        {"epsilon": Fraction(1), "keys": 2, "reach": 5, "delta": Fraction(4, 1000)},
        {"epsilon": Fraction(0), "keys": 1, "reach": 5, "delta": Fraction(1, 10)},
        {"epsilon": Fraction(1), "keys": 0, "reach": 5, "delta": Fraction(1, 10)},
        {"epsilon": Fraction(1), "keys": 1, "reach": Fraction(1, 2), "delta": Fraction(1, 10)},
    ],
)
def test_an_event_whose_delta_does_not_cover_its_noise_is_none(wrong):
    with pytest.raises(ParameterError):
        TruncatedGeometricKeys(**wrong)
