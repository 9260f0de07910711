"""Particles against the exact set and against laws that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from statistical import FALSE_ALARM
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.standin.median.sampled import SampledMedianUpdate, SampledSurvivors


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def first_cell(domain: Domain) -> LinearQuery:
    return LinearQuery.conjunction(domain, {"a0": np.eye(domain.shape()[0])[0]})


def sample(seed: int, *, particles: int = 1500, rounds: int = 400, size: int = 4) -> SampledSurvivors:
    return SampledSurvivors(
        domain_of(size), particles=particles, rounds=rounds, generator=np.random.default_rng(seed)
    )


def test_after_a_cut_the_particles_follow_the_uniform_law_of_what_is_left():
    """On the simplex of four cells a coordinate is Beta(1, 3); after the cut it is that law on [0.3, 0.6]."""
    ours = sample(41)
    query = first_cell(ours.domain)
    assert ours.cut_by_distance(query, 0.45, 0.15)
    values = ours.particles()[:, 0]
    whole = stats.beta(1, 3)
    low, high = whole.cdf([0.3, 0.6])
    assert stats.kstest(values, lambda x: (whole.cdf(x) - low) / (high - low)).pvalue > FALSE_ALARM
    mutant = stats.beta(1, 5)
    low, high = mutant.cdf([0.3, 0.6])
    assert stats.kstest(values, lambda x: (mutant.cdf(x) - low) / (high - low)).pvalue < FALSE_ALARM
    # And the other cells: given the first, uniform on what it leaves.
    rest = ours.particles()[:, 1] / (1 - values)
    assert stats.kstest(rest, stats.beta(1, 2).cdf).pvalue > FALSE_ALARM


def test_every_particle_obeys_every_cut():
    rng = np.random.default_rng(42)
    ours = sample(43, particles=300, rounds=20, size=12)
    truth = rng.dirichlet(np.ones(12))
    asked = []
    for _ in range(15):
        weights = rng.random(12) if rng.random() < 0.5 else rng.integers(0, 2, 12).astype(float)
        query = LinearQuery.conjunction(ours.domain, {"a0": weights})
        before = ours.answer(query)
        if ours.cut_by_sign(query, float(weights @ truth)):
            asked.append((weights, before, weights @ truth < before))
        points = ours.particles()
        assert points.shape == (300, 12)
        assert points.min() >= 0
        np.testing.assert_allclose(points.sum(axis=1), 1, rtol=1e-12)
        for told, median, below in asked:
            values = points @ told
            assert (values <= median + 1e-9).all() if below else (values >= median - 1e-9).all()
    assert ours.cuts == len(asked) > 5


def test_updates_bring_the_median_to_the_truth():
    """An observation: on 64 cells a run ends long before its cap."""
    rng = np.random.default_rng(44)
    domain, alpha = domain_of(8, 8), 0.05
    algorithm = SampledMedianUpdate(
        domain=domain, cap=200, generator=np.random.default_rng(45), particles=400, rounds=30
    )
    truth = rng.dirichlet(np.full(64, 0.5))
    queries = [
        LinearQuery.conjunction(domain, {"a0": rng.integers(0, 2, 8), "a1": rng.integers(0, 2, 8)})
        for _ in range(40)
    ]
    exact = [float(q.weights(domain.names).reshape(-1) @ truth) for q in queries]
    model, count = algorithm.start(), 0
    first = max(abs(model.answer(q) - v) for q, v in zip(queries, exact, strict=True))
    while count < algorithm.most_updates(alpha):
        gaps = [abs(model.answer(q) - v) for q, v in zip(queries, exact, strict=True)]
        worst = int(np.argmax(gaps))
        if gaps[worst] < alpha:
            break
        model, count = algorithm.update(model, queries[worst], exact[worst]), count + 1
    assert first > alpha
    assert 0 < count < 100


def test_means_are_rates_and_medians_are_not_means():
    ours = sample(46, rounds=1)
    assert ours.project(("a0",)) == pytest.approx(np.full(4, 0.25), abs=0.03)
    assert ours.project(()) == 1
    assert ours.answer(first_cell(ours.domain)) == pytest.approx(stats.beta(1, 3).median(), abs=0.03)


def test_a_cut_that_no_particle_obeys_draws_them_in():
    """On 400 cells half of them hold about half of every particle; the table holds 0.95 there."""
    ours = sample(49, particles=60, rounds=30, size=400)
    half = LinearQuery.conjunction(ours.domain, {"a0": np.arange(400) < 200})
    third = LinearQuery.conjunction(ours.domain, {"a0": np.arange(400) % 3 == 0})
    values = ours.particles()[:, :200].sum(axis=1)
    assert values.max() < 0.8
    assert ours.cut_by_distance(half, 0.95, 0.02)
    assert ours.cut_by_distance(third, 0.1, 0.02)
    for query, value in ((half, 0.95), (third, 0.1)):
        answers = ours.particles() @ query.weights(("a0",))
        assert np.abs(answers - value).max() <= 0.02 + 1e-9
        assert abs(ours.answer(query) - value) <= 0.02
    assert not ours.cut_by_distance(half, 0.5, 0.1)  # contradicts the first
    assert ours.cuts == 2
    # They are no copies of one point: the walk goes on from where each was drawn to.
    assert ours.particles().std(axis=0).min() > 0


def test_a_seed_fixes_the_run_and_a_contradiction_changes_nothing():
    one, two = sample(47, particles=50, rounds=5), sample(47, particles=50, rounds=5)
    for ours in (one, two):
        assert ours.cut_by_sign(first_cell(ours.domain), 0.9)
        assert not ours.cut_by_distance(first_cell(ours.domain), 5.0, 0.1)
        assert ours.cuts == 1
    np.testing.assert_array_equal(one.particles(), two.particles())


def test_a_single_cell_is_no_trouble():
    ours = sample(48, particles=10, rounds=3, size=1)
    assert ours.cut_by_distance(first_cell(ours.domain), 1.0, 0.5)
    assert ours.answer(first_cell(ours.domain)) == 1


def test_what_cannot_be_is_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(TooLargeError, match="a sample of 200 histograms"):
        SampledSurvivors(domain_of(1000, 1000), generator=generator)
    with pytest.raises(DomainError, match="different domains"):
        sample(0).answer(LinearQuery.everyone(domain_of(3)))
    with pytest.raises(ParameterError, match="cap must be at least 1"):
        SampledMedianUpdate(domain=domain_of(3), cap=0, generator=generator)
    with pytest.raises(ParameterError, match="generator must be a numpy Generator"):
        SampledMedianUpdate(domain=domain_of(3), cap=1, generator=None)  # type: ignore[arg-type]
