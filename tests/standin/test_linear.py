"""The linear update algorithm of Frieze and Kannan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError
from understudy.query.linear import LinearQuery
from understudy.standin.linear import FriezeKannan, LinearHypothesis
from understudy_textbook.lecture7 import frieze_kannan_updates, is_update_sequence


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def worst_query(truth: np.ndarray, model: np.ndarray, alpha: float, *, stingy: bool) -> np.ndarray:
    """The side with the larger gap; if stingy, only as many of its cells as a gap of α takes."""
    above, below = np.maximum(truth - model, 0).sum(), np.maximum(model - truth, 0).sum()
    signed = truth - model if above >= below else model - truth
    query = (signed > 0).astype(float)
    if stingy:
        order = np.argsort(-signed)
        query[order[np.searchsorted(np.cumsum(signed[order]), alpha) + 1 :]] = 0
    return query


def run(algorithm: FriezeKannan, truth: np.ndarray, alpha: float, rng, *, error: float, stingy: bool) -> int:
    """Updates until no query has a gap of α, uncapped, v up to `error` off; the potential falls in each."""
    model, told = algorithm.start(), ([], [], [])
    size = truth.size
    least = (
        alpha**2 / size if algorithm.margin is None else (alpha**2 - 4 * float(algorithm.margin) ** 2) / size
    )
    while True:
        cells = model.cells.reshape(-1)
        gaps = truth - cells
        if max(np.maximum(gaps, 0).sum(), np.maximum(-gaps, 0).sum()) < alpha * (1 + 1e-9):
            break
        weights = worst_query(truth, cells, alpha * (1 + 1e-9), stingy=stingy)
        query = LinearQuery.table(
            algorithm.domain, algorithm.domain.names, weights.reshape(model.cells.shape)
        )
        exact, now = float(weights @ truth), model.answer(query)
        v = exact + error * (1 - 1e-9) * rng.choice([-1, 1]) * rng.choice([1.0, rng.random()])
        for kept, value in zip(told, (exact, now, v), strict=True):
            kept.append(value)
        before = float((gaps**2).sum())
        model = algorithm.update(model, query, float(v))
        assert before - float(((truth - model.cells.reshape(-1)) ** 2).sum()) >= least - 1e-12
    assert is_update_sequence(*told, alpha)
    return len(told[0])


@pytest.mark.parametrize("searching", [False, True])
def test_lecture7_definition_2_at_most_b_updates_and_the_potential_falls_in_each(searching):
    rng = np.random.default_rng(81)
    for i in range(500):
        sizes = [(4,), (3, 3), (2, 2, 4), (25,)][i % 4]
        domain = domain_of(*sizes)
        truth = rng.dirichlet(np.full(domain.size(), rng.choice([0.1, 1.0, 20.0])))
        alpha = float(rng.choice([0.2, 0.3, 0.45]))
        margin = alpha / 4 if searching else None
        norm = float(truth @ truth)
        algorithm = FriezeKannan(domain=domain, alpha=alpha, squared_norm=norm, margin=margin)
        most = algorithm.most_updates(alpha)
        assert searching or most == frieze_kannan_updates(domain.size(), norm, alpha)
        error = margin if margin is not None else alpha
        assert run(algorithm, truth, alpha, rng, error=error, stingy=bool(i % 3)) <= most


def test_lecture7_definition_2_the_bound_is_not_vacuous():
    """A flat table: every cell must be learnt, in gaps of little more than α; a quarter of B(α) = 1/α² or more."""
    rng = np.random.default_rng(82)
    domain = domain_of(64)
    truth = np.full(64, 1 / 64)
    algorithm = FriezeKannan(domain=domain, alpha=0.05, squared_norm=float(truth @ truth))
    count = run(algorithm, truth, 0.05, rng, error=0.05, stingy=True)
    assert algorithm.most_updates(0.05) >= count >= algorithm.most_updates(0.05) / 4


@given(st.integers(0, 2**32), st.floats(0.01, 0.5))
def test_lecture7_definition_2_line_search_gains_the_square_of_the_gap(seed, alpha):
    rng = np.random.default_rng(seed)
    domain = domain_of(3, 4)
    truth, cells = rng.dirichlet(np.ones(12)).reshape(3, 4), rng.normal(size=(3, 4)) / 5
    query = LinearQuery.conjunction(domain, {"a1": rng.random(4)})
    norm = 3 * float((query.weights() ** 2).sum())
    model = LinearHypothesis(domain, cells)
    gap = float((query.weights(domain.names) * (truth - cells)).sum())
    assume(abs(gap) > 1e-6)
    algorithm = FriezeKannan(domain=domain, alpha=alpha, margin=0)
    after = algorithm.update(model, query, float((query.weights(domain.names) * truth).sum())).cells
    drop = ((truth - cells) ** 2).sum() - ((truth - after) ** 2).sum()
    assert drop == pytest.approx(gap**2 / norm, rel=1e-9)


def test_counts_and_rates_have_one_bound():
    """B(α) = ‖D‖²|X|/α² with everything multiplied by n."""
    n, domain = 1000, domain_of(8)
    truth = np.array([1, 1, 2, 3, 0, 0, 0, 1]) / 8
    algorithm = FriezeKannan(domain=domain, alpha=0.1, squared_norm=0.25)
    assert float(truth @ truth) == 0.25
    assert algorithm.most_updates(0.1) == frieze_kannan_updates(8, 0.25 * n**2, 0.1 * n) == 200


def test_it_answers_as_it_is_and_its_distribution_is_the_nearest():
    domain = domain_of(3, 2)
    model = LinearHypothesis(domain, np.array([[0.5, -0.2], [0.9, 0.1], [0.0, -0.3]]))
    query = LinearQuery.conjunction(domain, {"a0": [0, 1, 1]})
    assert model.answer(query) == pytest.approx(0.7)
    np.testing.assert_allclose(model.project(("a1",)), [1.4, -0.4])
    nearest = model.distribution()
    assert nearest.sum() == pytest.approx(1)
    assert nearest.min() >= 0
    rng = np.random.default_rng(83)
    for _ in range(200):
        other = rng.dirichlet(np.full(6, 0.5)).reshape(3, 2)
        assert ((other - model.cells) ** 2).sum() >= ((nearest - model.cells) ** 2).sum() - 1e-12
        assert ((other - nearest) ** 2).sum() <= ((other - model.cells) ** 2).sum() + 1e-12
    twin = model.copy()
    twin.add(query, 0.25)
    np.testing.assert_allclose(twin.cells - model.cells, [[0, 0], [0.25, 0.25], [0.25, 0.25]])


def test_what_cannot_be_is_refused():
    domain = domain_of(4)
    with pytest.raises(ParameterError, match=r"need not come nearer against gaps of 0\.1"):
        FriezeKannan(domain=domain, alpha=0.2).most_updates(0.1)
    with pytest.raises(ParameterError, match="margin must not be negative"):
        FriezeKannan(domain=domain, alpha=0.2, margin=-1)
    with pytest.raises(ParameterError, match="squared_norm must be at most 1"):
        FriezeKannan(domain=domain, alpha=0.2, squared_norm=2)
    with pytest.raises(DomainError, match="different domains"):
        LinearHypothesis(domain).answer(LinearQuery.everyone(domain_of(5)))
    with pytest.raises(DomainError, match="must be finite, and of shape"):
        LinearHypothesis(domain, np.zeros(3))
    empty = LinearQuery.conjunction(domain, {"a0": np.zeros(4)})
    assert (
        FriezeKannan(domain=domain, alpha=0.2, margin=0)
        .update(LinearHypothesis(domain), empty, 1.0)
        .answer(empty)
        == 0
    )
