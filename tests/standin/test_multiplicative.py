"""Multiplicative weights as an update algorithm: never more than B(α) updates, whatever the adversary does."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.query.linear import LinearQuery
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.multiplicative import (
    ConsistentWeights,
    MultiplicativeWeights,
    ProjectedWeights,
    tilt_to,
)
from understudy.standin.protocol import DatabaseUpdate
from understudy_textbook.lecture7 import is_update_sequence, mw_updates


def domain_of(size: int) -> Domain:
    return Domain((Bins.integers("x", 0, size - 1),))


def query_of(domain: Domain, weights: np.ndarray) -> LinearQuery:
    return LinearQuery.conjunction(domain, {"x": weights})


Adversary = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def widest_gap(truth: np.ndarray, model: np.ndarray, alpha: float) -> np.ndarray:
    return (truth > model).astype(float)


def narrowest_gap(truth: np.ndarray, model: np.ndarray, alpha: float) -> np.ndarray:
    """A 0/1 query whose gap is at least α but little more: the update learns as little as it may.

    Of the cells where the model is too low all are in; of the others, the lightest that can be added.
    """
    query = (truth > model).astype(float)
    gap = float(query @ (truth - model))
    for cell in np.argsort(model - truth):
        cost = model[cell] - truth[cell]
        if cost >= 0 and gap - cost >= alpha:
            query[cell], gap = 1.0, gap - cost
    return query


def run(
    algorithm: DatabaseUpdate[DenseWeights],
    truth: np.ndarray,
    alpha: float,
    adversary: Adversary,
    rng: np.random.Generator,
    *,
    error: float,
    misleading: bool = False,
) -> int:
    """Updates until no query has a gap of α, uncapped.

    Each v is anywhere within `error` of the truth, often at the end; if `misleading`, always as near to the model
    as it may be.
    """
    domain = domain_of(len(truth))
    model, told = algorithm.start(), ([], [], [])
    while True:
        rates = model.project(("x",))
        if np.maximum(truth - rates, 0).sum() < alpha * (1 + 1e-9):
            break
        query = query_of(domain, adversary(truth, rates, alpha * (1 + 1e-9)))
        if rng.random() < 0.3:
            query = query.complement()
        exact, now = query.weights().reshape(-1) @ truth, model.answer(query)
        noise = error * (1 - 1e-9) * rng.choice([-1, 1]) * rng.choice([1.0, rng.random()])
        if misleading:
            noise = error * (1 - 1e-9) * np.sign(now - exact)
        for kept, value in zip(told, (exact, now, exact + noise), strict=True):
            kept.append(float(value))
        model = algorithm.update(model, query, float(exact + noise))
    assert is_update_sequence(*told, alpha)
    return len(told[0])


def instances(count: int, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.choice([2, 3, 5, 8, 16]))
        truth = rng.dirichlet(np.full(size, rng.choice([0.03, 0.3, 1.0])))
        if rng.random() < 0.3:
            truth = np.eye(size)[rng.integers(size)]
        yield truth, float(rng.choice([0.2, 0.25, 0.3, 0.45])), rng


@pytest.mark.parametrize("step", ["tight", "textbook"])
def test_lecture7_definition_2_at_most_b_updates_against_any_adversary(step):
    """A thousand runs to the end; the worst admissible estimates; both greedy and stingy adversaries."""
    for i, (truth, alpha, rng) in enumerate(instances(500, seed=71)):
        algorithm = MultiplicativeWeights(domain=domain_of(len(truth)), alpha=alpha, step=step, threads=1)
        adversary = (widest_gap, narrowest_gap)[i % 2]
        count = run(algorithm, truth, alpha, adversary, rng, error=alpha)
        assert count <= algorithm.most_updates(alpha) == mw_updates(len(truth), alpha, step)


@pytest.mark.parametrize("step", ["tight", "textbook"])
def test_lecture7_definition_2_the_bound_is_not_vacuous(step):
    """All rows alike, every gap as small as it may be: at least a quarter of B(α) updates are made."""
    rng = np.random.default_rng(72)
    size, alpha = 256, 0.2
    algorithm = MultiplicativeWeights(domain=domain_of(size), alpha=alpha, step=step, threads=1)
    count = run(algorithm, np.eye(size)[17], alpha, narrowest_gap, rng, error=alpha)
    assert algorithm.most_updates(alpha) >= count >= algorithm.most_updates(alpha) / 4


def test_lecture7_definition_2_a_step_twice_too_long_breaks_the_bound():
    """The power check: with steps of 8α the potential need not fall, and the adversary has no end."""
    rng = np.random.default_rng(73)
    size, alpha = 64, 0.1
    mutant = MultiplicativeWeights(domain=domain_of(size), alpha=Fraction(1, 4), threads=1)
    truth = np.full(size, 1 / size)
    truth[: size // 2] += 0.11 / (size // 2)
    truth[size // 2 :] -= 0.11 / (size // 2)
    domain, model, count = domain_of(size), mutant.start(), 0
    while count <= mw_updates(size, alpha):
        rates = model.project(("x",))
        if np.maximum(truth - rates, 0).sum() < alpha:
            break
        query = query_of(domain, widest_gap(truth, rates, alpha))
        model = mutant.update(model, query, float(query.weights() @ truth) + rng.normal() * 1e-6)
        count += 1
    assert count > mw_updates(size, alpha)


def kl(truth: np.ndarray, model: np.ndarray) -> float:
    held = truth > 0
    return float(truth[held] @ np.log(truth[held] / model[held]))


@given(st.integers(0, 2**32), st.floats(0.05, 0.6), st.sampled_from(["tight", "textbook"]))
def test_lecture7_definition_2_the_potential_falls(seed, alpha, step):
    """By sg - s²/8 at a gap g, for real-valued queries as well."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    truth = rng.dirichlet(np.full(size, 0.3))
    algorithm = MultiplicativeWeights(domain=domain_of(size), alpha=alpha, step=step, threads=1)
    model = DenseWeights.histogram(algorithm.domain, rng.dirichlet(np.full(size, 0.5)) + 1e-6, threads=1)
    before = model.project(("x",))
    weights = rng.random(size) if rng.random() < 0.5 else rng.integers(0, 2, size).astype(float)
    query = query_of(algorithm.domain, weights)
    gap = float(weights @ (truth - before))
    after = algorithm.update(model, query, float(weights @ truth)).project(("x",))
    s = float(algorithm.log_factor)
    assert kl(truth, before) - kl(truth, after) >= s * abs(gap) - s**2 / 8 - 1e-9


def test_the_textbook_step_is_the_lectures_rule():
    """D exp(-η r) with r = Q if v < Q(D), else 1 - Q, is what the signed step does after normalising."""
    rng = np.random.default_rng(74)
    algorithm = MultiplicativeWeights(domain=domain_of(9), alpha=0.2, step="textbook")
    for v in (0.0, 1.0):
        start, weights = rng.dirichlet(np.ones(9)), rng.random(9)
        r = weights if v < weights @ start else 1 - weights
        expected = start * np.exp(-0.1 * r)
        model = DenseWeights.histogram(algorithm.domain, start)
        after = algorithm.update(model, query_of(algorithm.domain, weights), v)
        np.testing.assert_allclose(after.project(("x",)), expected / expected.sum(), rtol=1e-12)


def test_an_update_fused_with_the_next_answer_is_the_same_update():
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, 3) for i in range(6)))
    algorithm = MultiplicativeWeights(domain=domain, alpha=0.1)
    first = LinearQuery.conjunction(domain, {"a0": [1, 0, 0, 1], "a5": [0, 1, 1, 0]})
    second = LinearQuery.conjunction(domain, {"a2": [1, 0, 0, 0]})
    apart, fused = algorithm.start(), algorithm.start()
    algorithm.update(apart, first, 0.9)
    assert algorithm.update_then_answer(fused, first, 0.9, second) == pytest.approx(
        apart.answer(second), rel=1e-14
    )
    np.testing.assert_array_equal(apart.rates(), fused.rates())


def test_bounds_at_other_alphas():
    algorithm = MultiplicativeWeights(domain=domain_of(256), alpha=0.1)
    assert algorithm.most_updates(0.1) == 277
    assert algorithm.most_updates(0.2) == int(log(256) / (0.4 * 0.2 - 0.02))
    with pytest.raises(ParameterError, match=r"need not come nearer against gaps of 0\.05"):
        algorithm.most_updates(0.05)
    assert MultiplicativeWeights(domain=domain_of(256), alpha=0.1, step="textbook").most_updates(0.1) == 2218


# Projection -------------------------------------------------------------------------------------------------


def test_lecture7_definition_2_projection_needs_at_most_b_updates():
    for i, (truth, alpha, rng) in enumerate(instances(500, seed=75)):
        margin = alpha / float(rng.choice([3, 4, 10]))
        algorithm = ProjectedWeights(domain=domain_of(len(truth)), margin=margin, threads=1)
        adversary = (widest_gap, narrowest_gap)[i % 2]
        count = run(algorithm, truth, alpha, adversary, rng, error=margin)
        assert count <= algorithm.most_updates(alpha)


def test_lecture7_definition_2_the_bound_of_the_projection_is_not_vacuous():
    rng = np.random.default_rng(76)
    algorithm = ProjectedWeights(domain=domain_of(256), margin=0.01, threads=1)
    count = run(algorithm, np.eye(256)[3], 0.2, narrowest_gap, rng, error=0.01, misleading=True)
    assert algorithm.most_updates(0.2) >= count >= algorithm.most_updates(0.2) / 4


def test_lecture7_definition_2_consistent_weights_need_at_most_b_updates_and_fewer_than_projected():
    counts = {ConsistentWeights: 0, ProjectedWeights: 0}
    for i, (truth, alpha, rng) in enumerate(instances(60, seed=78)):
        seed, margin = int(rng.integers(2**32)), alpha / 4
        for kind in counts:
            algorithm = kind(domain=domain_of(len(truth)), margin=margin, threads=1)
            adversary = (widest_gap, narrowest_gap)[i % 2]
            count = run(algorithm, truth, alpha, adversary, np.random.default_rng(seed), error=margin)
            assert count <= algorithm.most_updates(alpha)
            counts[kind] += count
    assert counts[ConsistentWeights] <= counts[ProjectedWeights]


def test_lecture7_definition_2_going_over_what_was_learnt_never_moves_away_from_the_truth():
    """KL(D‖Dᵗ) falls with every update, also where a round takes back what another answer had moved."""
    rng = np.random.default_rng(79)
    truth = rng.dirichlet(np.full(24, 0.3))
    algorithm = ConsistentWeights(domain=domain_of(24), margin=0.01, rounds=20, threads=1)
    model, before = algorithm.start(), log(24)
    asked = []
    for _ in range(25):
        query = query_of(algorithm.domain, rng.integers(0, 2, 24).astype(float))
        value = float(query.weights() @ truth) + 0.01 * rng.uniform(-1, 1)
        model = algorithm.update(model, query, value)
        asked.append((query, value))
        held = truth > 0
        distance = float((truth[held] * np.log(truth[held] / model.project(("x",))[held])).sum())
        assert distance <= before + 1e-9
        before = distance
    off = [abs(model.answer(query) - value) for query, value in asked]
    assert max(off) <= 0.011  # all at once, nearly: projecting on the last one alone leaves more
    alone = ProjectedWeights(domain=algorithm.domain, margin=0.01, threads=1)
    other = alone.start()
    for query, value in asked:
        other = alone.update(other, query, value)
    assert max(abs(other.answer(query) - value) for query, value in asked) > 2 * max(off)
    copy = model.copy()
    assert copy.learnt == model.learnt
    assert copy.domain == algorithm.domain


@given(st.integers(0, 2**32), st.booleans(), st.floats(-0.5, 1.5), st.floats(0, 0.3))
def test_projection_goes_to_the_nearest_end_of_the_interval_and_no_further(seed, counting, value, margin):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    weights = rng.integers(0, 2, size).astype(float) if counting else rng.random(size)
    algorithm = ProjectedWeights(domain=domain_of(size), margin=margin, threads=1)
    start = rng.dirichlet(np.ones(size))
    model = DenseWeights.histogram(algorithm.domain, start)
    query = query_of(algorithm.domain, weights)
    now = model.answer(query)
    end = min(max(now, value - margin), value + margin)
    after = algorithm.update(model, query, value)
    assert (after.rates() > 0).all()
    assert min(now, end) - 1e-9 <= after.answer(query) <= max(now, end) + 1e-9
    if weights.min() + 0.1 < end < weights.max() - 0.1 or (counting and 0 < now < 1):
        assert after.answer(query) == pytest.approx(min(max(end, 0), 1), abs=2e-9)
    if end == now:
        np.testing.assert_allclose(after.rates(), start, rtol=1e-14)
    elif counting and 1e-6 < end < 1 - 1e-6 and 0 < now < 1:  # support · a/q, rest · (1 - a)/(1 - q)
        expected = start * np.where(weights == 1, end / now, (1 - end) / (1 - now))
        np.testing.assert_allclose(after.rates(), expected, rtol=1e-6)


@given(st.integers(0, 2**32), st.floats(0.001, 0.999))
def test_the_tilt_is_the_nearest_distribution(seed, place):
    rng = np.random.default_rng(seed)
    rates, weights = rng.dirichlet(np.ones(6)), rng.random(6)
    target = weights.min() + place * (weights.max() - weights.min())
    s = tilt_to(rates, weights, target)
    tilted = rates * np.exp(s * weights)
    tilted /= tilted.sum()
    if abs(s) < 60:
        assert tilted @ weights == pytest.approx(target, abs=1e-9)
    # Any other distribution on that side of the target is further away.
    other = rng.dirichlet(np.ones(6))
    if (other @ weights - target) * (rates @ weights - target) <= 0:
        assert kl(other, rates) >= kl(tilted, rates) - 1e-9


def test_projection_never_makes_cells_zero():
    algorithm = ProjectedWeights(domain=domain_of(4), margin=0, dtype="float32")
    model = algorithm.start()
    query = query_of(algorithm.domain, np.array([1.0, 0, 0, 0]))
    for value in (-3.0, 0.0, 7.0, 1.0, 0.5):
        model = algorithm.update(model, query, value)
        assert (model.rates() > 0).all()
    assert model.answer(query) == pytest.approx(0.5, rel=1e-5)
    empty = query_of(algorithm.domain, np.zeros(4))
    assert algorithm.update(model, empty, 0.7).answer(empty) == 0


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda d: MultiplicativeWeights(domain=d, alpha=0), "alpha must be positive, not 0"),
        (lambda d: MultiplicativeWeights(domain=d, alpha=2), "alpha must be at most 1, not 2"),
        (
            lambda d: MultiplicativeWeights(domain=d, alpha=0.1, step="long"),
            "step must be 'tight' or 'textbook', not 'long'",
        ),
        (lambda d: ProjectedWeights(domain=d, margin=-1), "margin must be at least 0 and below 1, not -1"),
        (lambda d: ConsistentWeights(domain=d, margin=1), "margin must be at least 0 and below 1, not 1"),
        (lambda d: ConsistentWeights(domain=d, margin=0.1, rounds=0), "rounds must be at least 1"),
        (
            lambda d: ProjectedWeights(domain=d, margin=0.1).most_updates(0.2),
            r"more than twice the margin of 0\.1, not 0\.2",
        ),
    ],
)
def test_what_is_no_parameter_is_refused(act, sentence):
    with pytest.raises(ParameterError, match=sentence):
        act(domain_of(4))
