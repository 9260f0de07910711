"""The surviving set against brute force, and its two cuts against the lectures."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial, log2, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.standin.median.median import MedianUpdate, SurvivingSet
from understudy_textbook.lecture7 import is_update_sequence, median_updates


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


@cache
def all_databases(cells: int, size: int) -> np.ndarray:
    found = np.array(
        [np.bincount(c, minlength=cells) for c in combinations_with_replacement(range(cells), size)]
    )
    found.flags.writeable = False  # every test that asks for it has the same one
    return found


def sequences_of(database: np.ndarray) -> int:
    return factorial(int(database.sum())) // prod(factorial(int(c)) for c in database)


def legal_medians(values: np.ndarray, masses: np.ndarray) -> tuple[float, float]:
    """The least and the largest g with at most half of the mass strictly below and at most half strictly above."""
    legal = [
        g
        for g in np.unique(values)
        if 2 * masses[values < g - 1e-12].sum() <= masses.sum()
        and 2 * masses[values > g + 1e-12].sum() <= masses.sum()
    ]
    return legal[0], legal[-1]


SHAPES = [((3,), 9), ((2, 2), 6), ((6,), 5), ((2, 4), 4), ((12,), 3), ((1,), 4), ((5,), 1)]


@settings(max_examples=60)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32), st.sampled_from(["multisets", "sequences"]))
def test_medians_cuts_and_means_equal_brute_force(shape, seed, weighting):
    sizes, rows = shape
    domain = domain_of(*sizes)
    rng = np.random.default_rng(seed)
    ours = SurvivingSet(domain, rows, weighting)
    brute = all_databases(domain.size(), rows)
    masses = np.array([sequences_of(d) if weighting == "sequences" else 1 for d in brute], float)
    assert len(ours) == len(brute) == comb(rows + domain.size() - 1, rows)
    total = masses.sum()
    for _ in range(6):
        counting = rng.random() < 0.6
        table = rng.integers(0, 2, sizes).astype(float) if counting else rng.random(sizes)
        query = LinearQuery.table(domain, domain.names, table)
        values = brute @ query.weights(domain.names).reshape(-1) / rows
        low, high = legal_medians(values, masses)
        median = ours.answer(query)
        assert low - 1e-12 <= median <= high + 1e-12
        np.testing.assert_allclose(
            ours.project(domain.names).reshape(-1), masses @ brute / masses.sum() / rows, atol=1e-12
        )
        value, distance = rng.random(), rng.random() / 2
        by_sign = rng.random() < 0.5
        if by_sign:
            keep = values < median - 1e-12 if value < median else values > median + 1e-12
            happened = ours.cut_by_sign(query, value)
        else:
            keep = np.abs(values - value) <= distance + 1e-12
            happened = ours.cut_by_distance(query, value, distance)
        assert happened == keep.any()
        if happened:
            assert not by_sign or 2 * masses[keep].sum() <= masses.sum() * (1 + 1e-12)
            brute, masses = brute[keep], masses[keep]
        assert len(ours) == len(brute)
        assert {tuple(d) for d in ours.databases()} == {tuple(d) for d in brute}
        assert ours.halvings == pytest.approx(log2(total / masses.sum()), abs=1e-9)


def every_query(domain: Domain) -> list[LinearQuery]:
    """All 0/1 queries, and three that are not."""
    cells = domain.size()
    tables = [np.array([bits >> x & 1 for x in range(cells)], float) for bits in range(2**cells)]
    tables += [np.linspace(0, 1, cells), np.arange(cells) % 2 * 0.3 + 0.2, np.full(cells, 0.5)]
    return [LinearQuery.conjunction(domain, {"a0": table}) for table in tables]


def run(algorithm: MedianUpdate, truth: np.ndarray, queries: list[LinearQuery], rng, *, stingy: bool) -> int:
    """Updates until no query has a gap of α, uncapped, v anywhere within α of the truth."""
    alpha = float(algorithm.alpha)
    tables = np.array([query.weights(algorithm.domain.names) for query in queries])
    databases = all_databases(algorithm.domain.size(), algorithm.size)
    star = databases[np.abs((databases / algorithm.size - truth) @ tables.T).max(axis=1).argmin()]
    assert np.abs(tables @ (star / algorithm.size - truth)).max() < alpha  # Claim 1
    model, told = algorithm.start(), ([], [], [])
    while True:
        before = model.halvings
        gaps = np.array([abs(t @ truth - model.answer(q)) for q, t in zip(queries, tables, strict=True)])
        wrong = np.flatnonzero(gaps >= alpha + 1e-9)
        if not len(wrong):
            break
        # The widest gap, or the narrowest that counts.
        chosen = wrong[gaps[wrong].argmin() if stingy else gaps[wrong].argmax()]
        exact, now = float(tables[chosen] @ truth), model.answer(queries[chosen])
        v = exact + alpha * (1 - 1e-9) * float(rng.choice([-1, 1]) * rng.choice([1.0, rng.random()]))
        for kept, value in zip(told, (exact, now, v), strict=True):
            kept.append(value)
        model = algorithm.update(model, queries[chosen], v)
        assert model.halvings >= before + 1 - 1e-9
        assert (model.databases() == star).all(axis=1).any()
    assert is_update_sequence(*told, alpha)
    return len(told[0])


@pytest.mark.parametrize("weighting", ["multisets", "sequences"])
def test_lecture7_definition_2_at_most_b_updates_and_the_good_database_survives(weighting):
    """Every cut halves, whatever the admissible estimate; 500 tables each."""
    rng = np.random.default_rng(91)
    domains = [domain_of(2), domain_of(3), domain_of(4)]
    asked = [every_query(domain) for domain in domains]
    for i in range(500):
        domain, queries = domains[i % 3], asked[i % 3]
        alpha = float(rng.choice([0.35, 0.45, 0.55]))
        algorithm = MedianUpdate(domain=domain, queries=len(queries), alpha=alpha, weighting=weighting)
        truth = rng.dirichlet(np.full(domain.size(), rng.choice([0.1, 1.0])))
        count = run(algorithm, truth, queries, rng, stingy=bool(i % 2))
        assert count <= algorithm.most_updates(alpha)


def test_lecture7_definition_2_the_bound_is_not_vacuous():
    """The rows are all in the last cell, and the median is led there step by step."""
    rng = np.random.default_rng(92)
    domain = domain_of(4)
    queries = every_query(domain)
    algorithm = MedianUpdate(domain=domain, queries=len(queries), alpha=0.2)
    counts = [run(algorithm, np.eye(4)[i], queries, rng, stingy=True) for i in range(4)]
    assert algorithm.most_updates(0.2) >= max(counts) >= algorithm.most_updates(0.2) / 8


def test_lecture7_definition_2_bounds_are_those_of_the_theory():
    algorithm = MedianUpdate(domain=domain_of(4), queries=10, alpha=0.3)
    assert algorithm.size == 17
    assert algorithm.most_updates(0.3) == median_updates(10, 4, 0.3) == int(log2(len(algorithm.start())))
    assert algorithm.most_updates(0.9) == algorithm.most_updates(0.3)
    sequences = MedianUpdate(domain=domain_of(4), queries=10, alpha=0.3, weighting="sequences")
    assert sequences.most_updates(0.3) == 2 * 17
    with pytest.raises(ParameterError, match=r"chosen for alpha 0\.3, not 0\.2"):
        algorithm.most_updates(0.2)


@pytest.mark.parametrize("weighting", ["multisets", "sequences"])
def test_lecture4_theorem_2_rejections_halve_and_what_is_near_survives(weighting):
    """GuessAndCheck's promise: |g - q(S)| > η and |a - q(S)| ≤ η/4; the cut is at η/2."""
    rng = np.random.default_rng(93)
    domain, rows, eta = domain_of(4), 12, 0.34
    rejections = 0
    for _ in range(150):
        ours = SurvivingSet(domain, rows, weighting)
        star = rng.multinomial(rows, rng.dirichlet(np.full(4, 0.3)))
        for _ in range(12):
            table = rng.integers(0, 2, 4).astype(float) if rng.random() < 0.7 else rng.random(4)
            query = LinearQuery.conjunction(domain, {"a0": table})
            near = table @ star / rows
            truth = float(np.clip(near + eta / 4 * rng.uniform(-1, 1), 0, 1))  # Claim 1 at η/4
            if abs(ours.answer(query) - truth) <= eta:
                continue
            answer = truth + eta / 4 * float(rng.choice([-1, 1]))
            before = ours.halvings
            assert ours.cut_by_distance(query, answer, eta / 2)
            assert ours.halvings >= before + 1 - 1e-9
            assert tuple(star) in {tuple(d) for d in ours.databases()}
            rejections += 1
    assert rejections > 50


def test_a_cut_by_distance_can_drop_the_good_database_where_the_cut_by_sign_keeps_it():
    """v is off by almost α: distance α/2 loses what the sign keeps."""
    domain, alpha = domain_of(2), 0.3
    star, query = np.array([6, 4]), LinearQuery.conjunction(domain, {"a0": [0, 1]})
    v = 0.4 + 0.29
    by_sign, by_distance = SurvivingSet(domain, 10), SurvivingSet(domain, 10)
    by_distance.cut_by_distance(query, v, alpha / 2)
    assert tuple(star) not in {tuple(d) for d in by_distance.databases()}
    low = SurvivingSet(domain, 10)
    low.cut_by_sign(LinearQuery.conjunction(domain, {"a0": [0, 1]}), 0.0)  # the median falls to 0.2 or so
    assert by_sign.answer(query) == 0.5
    by_sign.cut_by_sign(query, 0.1)
    assert tuple(star) in {tuple(d) for d in by_sign.databases()}


def test_the_median_is_not_the_mean():
    domain = domain_of(3)
    ours = SurvivingSet(domain, 4)
    query = LinearQuery.conjunction(domain, {"a0": [1, 0, 0]})
    assert ours.answer(query) == 0.25
    assert query.answer(ours) == pytest.approx(1 / 3)


@pytest.mark.parametrize("cells", [3, 9])  # by counts of cells, and by rows
def test_a_set_that_is_cut_leaves_others_of_its_size_whole(cells):
    """The list of all databases is made once and shared."""
    domain = Domain((Bins.integers("x", 0, cells - 1),))
    first, second = SurvivingSet(domain, 5), SurvivingSet(domain, 5)
    whole = first.databases()
    assert len(np.unique(whole, axis=0)) == len(whole) == comb(cells + 4, 5)
    query = LinearQuery.table(domain, ("x",), np.arange(cells) == 0)
    while first.cut_by_sign(query, 1.0):
        pass
    assert len(first) < len(whole)
    for fresh in (second, SurvivingSet(domain, 5)):
        np.testing.assert_array_equal(fresh.databases(), whole)


def test_a_contradiction_leaves_the_set_as_it_is():
    domain = domain_of(2)
    ours = SurvivingSet(domain, 3)
    query = LinearQuery.conjunction(domain, {"a0": [1, 0]})
    assert not ours.cut_by_distance(query, 0.5, 0.01)
    assert len(ours) == 4
    assert ours.cut_by_sign(query, 0.0)
    assert ours.cut_by_sign(query, 0.0) or len(ours) == 1


def test_large_counts_and_many_cells():
    """More rows than a byte holds, and more cells."""
    ours = SurvivingSet(domain_of(2), 300)
    assert ours.answer(LinearQuery.conjunction(ours.domain, {"a0": [0, 1]})) == 0.5
    wide = SurvivingSet(domain_of(400), 2)
    query = LinearQuery.conjunction(wide.domain, {"a0": (np.arange(400) < 300).astype(float)})
    assert wide.answer(query) == 1.0  # (300·301/2) / (400·401/2) > 1/2
    assert wide.project(("a0",)).sum() == pytest.approx(1)


def test_what_cannot_be_is_refused():
    with pytest.raises(TooLargeError, match="the set of databases of 100 rows") as refusal:
        SurvivingSet(domain_of(64), 100)
    assert refusal.value.cells == comb(163, 100)
    with pytest.raises(TooLargeError):
        MedianUpdate(domain=domain_of(10, 10), queries=10**6, alpha=0.01).start()
    with pytest.raises(TooLargeError):
        SurvivingSet(domain_of(1000, 1000, 1000), 10**7)
    with pytest.raises(ParameterError, match="weighting must be"):
        SurvivingSet(domain_of(2), 3, "rows")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="size must be at least 1"):
        SurvivingSet(domain_of(2), 0)
    with pytest.raises(ParameterError, match="weighting must be"):
        MedianUpdate(domain=domain_of(2), queries=1, alpha=0.1, weighting="rows")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="queries must be at least 1"):
        MedianUpdate(domain=domain_of(2), queries=0, alpha=0.1)
    with pytest.raises(DomainError, match="different domains"):
        SurvivingSet(domain_of(2), 3).answer(LinearQuery.everyone(domain_of(3)))
