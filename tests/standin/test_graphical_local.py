"""Marginals bent towards measurements outside the tree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from understudy.errors import ParameterError
from understudy.standin.graphical.local import locally_fitted
from understudy.standin.measurement import Measurement

CLIQUE = ("a", "b", "c")


def case(seed=0, total=1000.0, variance=9.0, cliques=(("a", "b"), ("b", "c"))):
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    truth = rng.dirichlet(np.ones(24)).reshape(2, 3, 4) * total
    measured = []
    for clique in cliques:
        gone = tuple(i for i, name in enumerate(CLIQUE) if name not in clique)
        counts = truth.sum(axis=gone)
        measured.append(Measurement(clique, counts + rng.normal(size=counts.shape) * variance**0.5, variance))
    return rates, measured


@pytest.mark.parametrize("variance", [0.0, 9.0, 2500.0])
def test_it_is_the_optimum_of_a_general_solver(variance):
    """The dual, convex in one log factor for each measured cell, by a trust-region method."""
    rates, measured = case(variance=variance)
    slack = max(0.4 * variance**0.5, 0.2)
    cells = np.indices(rates.shape).reshape(3, -1)
    to_ab = cells[0] * 3 + cells[1] == np.arange(6)[:, None]
    to_bc = cells[1] * 4 + cells[2] == np.arange(12)[:, None]
    sums = np.vstack([to_ab, to_bc]).astype(float)
    targets = np.concatenate([m.counts.ravel() for m in measured])

    def counts(theta):
        return 1000 * rates.ravel() * np.exp(sums.T @ theta)

    found = minimize(
        lambda theta: counts(theta).sum() - theta @ targets + 0.5 * slack * theta @ theta,
        np.zeros(18),
        jac=lambda theta: sums @ counts(theta) - targets + slack * theta,
        hess=lambda theta: (sums * counts(theta)) @ sums.T + slack * np.eye(18),
        method="trust-exact",
        options={"gtol": 1e-8},
    )
    best = counts(found.x).reshape(rates.shape)
    ours = locally_fitted(rates, CLIQUE, measured, total=1000, sweeps=5000)
    np.testing.assert_allclose(ours, best / best.sum(), atol=1e-4)


def test_exact_measurements_are_met_and_nothing_else_is_learnt():
    rates, (measured,) = case(variance=0.0, cliques=(("a", "c"),))
    bent = locally_fitted(rates, CLIQUE, [measured], total=1000)
    np.testing.assert_allclose(1000 * bent.sum(axis=1), measured.counts, atol=1.0)
    given = rates / rates.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bent / bent.sum(axis=1, keepdims=True), given, atol=1e-12)


def test_what_does_not_lie_inside_changes_nothing():
    rates, _ = case()
    elsewhere = Measurement(("a", "z"), np.zeros((2, 5)), 1.0)
    np.testing.assert_allclose(locally_fitted(rates, CLIQUE, [elsewhere], total=10), rates, rtol=1e-12)


def test_empty_cells_stay_empty_and_wild_noise_gives_a_distribution():
    rates, measured = case(variance=1e12)
    rates[0, 0] = 0.0
    bent = locally_fitted(rates / rates.sum(), CLIQUE, measured, total=1000)
    assert (bent[0, 0] == 0).all()
    assert np.isfinite(bent).all()
    assert bent.sum() == pytest.approx(1)


def test_rates_of_another_shape_are_refused():
    with pytest.raises(ParameterError):
        locally_fitted(np.ones(2), ("a", "b"), [], total=1)
    with pytest.raises(ParameterError):
        locally_fitted(np.zeros(2), ("a",), [], total=1)
