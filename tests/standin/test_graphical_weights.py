"""Multiplicative weights on the graphical stand-in are those on the histogram."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.standin.graphical.weights import GraphicalWeights
from understudy.standin.multiplicative import MultiplicativeWeights


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def queries(domain, *, many, seed):
    rng = np.random.default_rng(seed)
    for _ in range(many):
        names = rng.choice(domain.names, size=rng.integers(1, 3), replace=False)
        yield (
            LinearQuery.table(domain, names, rng.random([domain[name].size for name in names])),
            rng.random(),
        )


@pytest.mark.parametrize("step", ["tight", "textbook"])
def test_every_update_is_that_of_the_histogram(step):
    domain = domain_of(3, 2, 4, 3)
    dense = MultiplicativeWeights(domain=domain, alpha=0.05, step=step)
    sparse = GraphicalWeights(domain=domain, alpha=0.05, step=step)
    on_histogram, on_tree = dense.start(), sparse.start()
    for query, value in queries(domain, many=40, seed=2):
        on_histogram = dense.update(on_histogram, query, value)
        on_tree = sparse.update(on_tree, query, value)
        assert query.answer(on_tree) == pytest.approx(query.answer(on_histogram), abs=1e-12)
    np.testing.assert_allclose(on_tree.project(domain.names), on_histogram.project(domain.names), atol=1e-12)
    assert dense.most_updates(0.05) == sparse.most_updates(0.05)
    assert dense.most_updates(0.2) == sparse.most_updates(0.2)


def test_a_table_is_learnt_within_the_promised_updates():
    """A universe of 3^20 cells, far beyond any histogram: wrong answers run out within B(α)."""
    domain = domain_of(*[3] * 20)
    rng = np.random.default_rng(8)
    rows = {name: rng.integers(0, 3, 500, dtype=np.uint8) for name in domain.names}
    for i in range(1, 20):  # a chain of dependent attributes
        copy = rng.random(500) < 0.8
        rows[f"a{i}"] = np.where(copy, rows[f"a{i - 1}"], rows[f"a{i}"])
    rule = GraphicalWeights(domain=domain, alpha=0.2)
    hypothesis, updates, wrong = rule.start(), 0, True
    while wrong:
        wrong = False
        for i in range(19):
            query = LinearQuery.table(domain, (f"a{i}", f"a{i + 1}"), np.eye(3))
            truth = float(np.mean(query.row_weights(rows)))
            if abs(query.answer(hypothesis) - truth) >= 0.2:
                hypothesis, updates, wrong = rule.update(hypothesis, query, truth), updates + 1, True
    assert 0 < updates <= rule.most_updates(0.2)


def test_a_tree_that_grows_too_large_is_refused():
    domain = domain_of(*[600] * 6)
    rule = GraphicalWeights(domain=domain, alpha=0.5)
    first, second, third = (
        LinearQuery.table(domain, pair, np.zeros((600, 600)))
        for pair in [("a0", "a1"), ("a1", "a2"), ("a0", "a2")]
    )
    hypothesis = rule.update(rule.update(rule.start(), first, 0.1), second, 0.1)
    with pytest.raises(TooLargeError):
        rule.update(hypothesis, third, 0.1)
    assert hypothesis.project(("a0",)).shape == (600,)


def test_wrong_parameters_are_refused():
    with pytest.raises(ParameterError):
        GraphicalWeights(domain=domain_of(2), alpha=0)
