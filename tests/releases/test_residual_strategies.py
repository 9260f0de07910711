"""The joint price of many combinations against brute force over all neighbours, and the law of their noise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from statistical import assert_does_not_follow, assert_follows
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.mechanism.look import released
from understudy.mechanism.matrix import many_marginals
from understudy.mechanism.matrix.many_marginals import (
    Centred,
    Combinations,
    JointStrategy,
    StrategyPart,
    hosts,
    maximal,
)
from understudy.mechanism.matrix.ranges import least_sum_ranges
from understudy.noise.law import discrete_gaussian_log_law
from understudy.noise.normal import rounded_normal_log_law
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import rho
from understudy.privacy.event import GaussianNoise, RoundedNormal
from understudy.privacy.relation import Neighbours, Relation

ADD, REPLACE = Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.REPLACE)


def domain(sizes) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def moved(look: JointStrategy, rows: dict[tuple[int, ...], int]) -> list[np.ndarray]:
    """What the rows (cells of the whole domain, with signs) add to each part."""
    found = []
    for part in look.parts:
        where = [look.domain.position(name) for name in part.clique]
        table = np.zeros(look.domain.shape(part.clique), np.int64)
        for row, times in rows.items():
            table[tuple(row[i] for i in where)] += times
        found.append(look.combine(part, table))
    return found


def cells(look: JointStrategy):
    return list(product(*(range(size) for size in look.domain.shape())))


def grams(look: JointStrategy) -> np.ndarray:
    """Σ over parts of 100·precision·⟨column of cell a, column of cell b⟩: whole numbers."""
    total = np.zeros((look.domain.size(), look.domain.size()), np.int64)
    for i, part in enumerate(look.parts):
        columns = np.array([moved(look, {cell: 1})[i].ravel() for cell in cells(look)])
        total += int(100 * part.precision) * columns @ columns.T
    return total


def worst(look: JointStrategy) -> Fraction:
    """The largest Σ precision·‖x‖²/2 over all pairs of neighbours."""
    gram = grams(look)
    own = np.diag(gram)
    if look.relation == REPLACE:
        return Fraction(int((own[:, None] + own[None, :] - 2 * gram).max()), 200)
    # One row, or two rows that may differ.
    most = own if look.relation.max_rows == 1 else own[:, None] + own[None, :] + 2 * gram
    return Fraction(int(most.max()), 200)


def pairs(look: JointStrategy):
    """Every way in which a neighbour differs, as signed rows."""
    if look.relation == REPLACE:
        return [{a: 1, b: -1} for a, b in combinations(cells(look), 2)]
    return [
        dict(Counter(rows)) for rows in combinations_with_replacement(cells(look), look.relation.max_rows)
    ]


@st.composite
def looks(draw, neighbours, *, factor=lambda size: Centred(size)):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    named = domain(sizes)
    everything = [c for k in range(len(sizes) + 1) for c in combinations(named.names, k)]
    chosen = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=6, unique=True))
    steps = draw(st.lists(st.integers(1, 500), min_size=len(chosen), max_size=len(chosen)))
    factors = {name: factor(named[name].size) for name in named.names}
    parts = tuple(StrategyPart(c, Fraction(step, 100)) for c, step in zip(chosen, steps, strict=True))
    relation = Relation(Neighbours.ADD_REMOVE, draw(st.integers(1, 2))) if neighbours is ADD else REPLACE
    return JointStrategy(named, factors, parts, relation)


@settings(max_examples=40)
@given(looks(ADD))
def test_the_price_of_adding_rows_is_that_of_the_worst_rows(look):
    true = worst(look)
    assert true <= rho(look.event) == look.rho <= true + Fraction(1, 10**15)


@settings(max_examples=40)
@given(looks(REPLACE))
def test_the_price_of_replacing_a_row_is_that_of_the_worst_pair(look):
    true, whole = worst(look), sum(look._weighted.values())
    assert true <= rho(look.event) == look.rho <= true + Fraction(2e-9 * whole) + Fraction(1, 10**15)
    # The sum of each part's own worst would be more than the truth, never less.
    apart = sum(worst(JointStrategy(look.domain, look.factors, (p,), REPLACE)) for p in look.parts)
    assert true <= apart


@settings(max_examples=40)
@given(st.sampled_from([ADD, REPLACE]).flatmap(lambda n: looks(n, factor=lambda k: Combinations(ranked(k)))))
def test_the_price_of_any_combinations_is_never_below_that_of_the_worst_pair(look):
    true = worst(look)
    assert true <= look.rho
    if look.relation != REPLACE:
        assert look.rho <= true + Fraction(1, 10**15)


def ranked(size: int) -> np.ndarray:
    return np.random.default_rng(size).integers(-3, 4, (size + 1, size))


def test_the_bound_by_cliques_is_above_the_exact_price_and_below_the_sum_of_all_worst(monkeypatch):
    named = domain([2, 3, 2, 4, 3])
    factors = {name: Centred(named[name].size) for name in named.names}
    rng = np.random.default_rng(0)
    parts = tuple(
        StrategyPart(c, Fraction(int(rng.integers(1, 99)), 50))
        for k in (1, 2, 3)
        for c in combinations(named.names, k)
    )
    true = JointStrategy(named, factors, parts, REPLACE).rho
    monkeypatch.setattr(many_marginals, "MAX_PATTERNS", 8)
    bound = JointStrategy(named, factors, parts, REPLACE).rho
    apart = sum(JointStrategy(named, factors, (part,), REPLACE).rho for part in parts)
    assert true < bound < apart


def divergence(variance: Fraction, shift: int, order: int) -> float:
    """D_α of discrete Gaussian noise around `shift` from that around 0, by summation."""
    reach = 40 * int(float(variance) ** 0.5 + 1) + order * abs(shift)
    points = np.arange(-reach, reach + 1)
    p = discrete_gaussian_log_law(variance, points - shift)
    q = discrete_gaussian_log_law(variance, points)
    return float(logsumexp(order * p - (order - 1) * q)) / (order - 1)


@settings(max_examples=10)
@given(st.sampled_from([ADD, REPLACE]).flatmap(looks))
def test_cks20_theorem_14_for_all_parts_together(look):
    """The Rényi divergence of everything that is released is at most α·ρ, for every pair of neighbours."""
    every = pairs(look)
    if len(every) > 12:
        every = every[:: len(every) // 12]
    for rows in every:
        for order in (2, 5):
            spent = sum(
                divergence(1 / part.precision, int(shift), order)
                for part, table in zip(look.parts, moved(look, rows), strict=True)
                for shift in table.ravel()
                if shift
            )
            assert spent <= order * float(look.rho) + 1e-7


@pytest.mark.parametrize("rounded", [False, True])
def test_what_is_released_is_the_combinations_with_noise_of_their_own_variance(rounded):
    log_law = rounded_normal_log_law if rounded else discrete_gaussian_log_law
    named = domain([2, 3])
    factors = {"a0": Centred(2), "a1": Combinations(least_sum_ranges(3))}
    fine, coarse = Fraction(1, 9), Fraction(1, 400)
    look = JointStrategy(
        named,
        factors,
        (StrategyPart((), fine), StrategyPart(("a1",), coarse), StrategyPart(("a0", "a1"), fine)),
        ADD,
        rounded,
    )
    assert isinstance(look.event, RoundedNormal if rounded else GaussianNoise)
    if rounded:  # all parts together are one vector with normal noise
        assert look.event.gdp_cost() == 2 * look.rho
    counts = np.array([[5, 0, 2], [1, 7, 3]])
    assert [marginal.by for marginal in look.marginals] == [("a0", "a1")]
    exact = np.concatenate(
        [
            [counts.sum()],
            least_sum_ranges(3) @ counts.sum(axis=0),
            (np.array([[1, -1], [-1, 1]]) @ counts @ least_sum_ranges(3).T).ravel(),
        ]
    )
    noise = SeededNoise(1)
    drawn = np.array([released(look, [counts], noise=noise) for _ in range(1500)]) - exact
    for columns, variance in (([0, *range(4, 10)], 9), (range(1, 4), 400)):
        points = np.arange(-150, 151)
        law = np.exp(log_law(Fraction(variance), points))
        seen = np.bincount(drawn[:, list(columns)].ravel() + 150, minlength=301)
        assert_follows(seen, law / law.sum())
        halved = np.exp(log_law(Fraction(variance, 2), points))
        assert_does_not_follow(seen, halved / halved.sum())


def test_what_cannot_be_priced_or_drawn_is_refused():
    named = domain([2, 3])
    factors = {"a0": Centred(2), "a1": Centred(3)}
    part = StrategyPart(("a0",), Fraction(1))
    for wrong in (
        lambda: JointStrategy(named, factors, (), ADD),
        lambda: JointStrategy(named, factors, (part, part), ADD),
        lambda: JointStrategy(named, {"a0": Centred(3)}, (part,), ADD),
        lambda: JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(1, 2**61)),), ADD),
        lambda: JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(0)),), ADD),
        lambda: JointStrategy(named, {"a0": Combinations(np.full((1, 2), 2**23))}, (part,), ADD),
        lambda: Combinations(np.ones((2, 2))),
    ):
        with pytest.raises(ParameterError):
            wrong()


def test_keys_tell_apart_what_is_asked_and_repeat_for_the_same():
    named = domain([2, 3])
    factors = {"a0": Centred(2), "a1": Centred(3)}
    a = JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(1)),), ADD)
    b = JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(2)),), ADD)
    c = JointStrategy(named, factors, (StrategyPart(("a1",), Fraction(1)),), ADD)
    d = JointStrategy(
        named, {"a0": Combinations(np.eye(2, dtype=int))}, (StrategyPart(("a0",), Fraction(1)),), ADD
    )
    again = JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(1)),), ADD)
    rounded = JointStrategy(named, factors, (StrategyPart(("a0",), Fraction(1)),), ADD, rounded=True)
    assert len({a.key, b.key, c.key, d.key, rounded.key}) == 5
    assert a.key == again.key


def test_cliques_are_read_from_those_that_hold_them():
    assert maximal([("a",), ("a", "b"), (), ("c",), ("b",)]) == [("a", "b"), ("c",)]
    assert hosts([(), ("b",), ("c",)], [("a", "b"), ("c",)]) == [0, 0, 1]
