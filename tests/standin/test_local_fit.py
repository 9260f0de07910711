"""Tables bent towards observations that a stand-in does not hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import wrightomega

from understudy.standin.local_fit import EVEN, SETTLED, LocalSlack, Observation, locally_fitted, scaling

CLIQUE = ("a", "b", "c")
TOTAL = 1000.0


def case(seed=0, variance=9.0, cliques=(("a", "b"), ("b", "c"))):
    """A table of counts, and noisy counts of another one."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(24)).reshape(2, 3, 4) * TOTAL
    truth = rng.dirichlet(np.ones(24)).reshape(2, 3, 4) * TOTAL
    observed = []
    for clique in cliques:
        counts = truth.sum(axis=tuple(i for i, name in enumerate(CLIQUE) if name not in clique))
        noise = rng.normal(size=counts.shape) * variance**0.5
        observed.append(Observation(clique, counts + noise, variance))
    return table, observed


@given(st.floats(0.01, 500), st.floats(-50, 500), st.floats(0.2, 50))
def test_scaling_solves_its_equation(count, wanted, slack):
    """u = count·exp(t)/slack meets u + ln u = wanted/slack + ln(count/slack): Wright's ω."""
    exact = wanted / slack - wrightomega(wanted / slack + np.log(count / slack)).real
    for settled in (SETTLED, 1e-12):
        (t,) = scaling(np.array([count]), np.array([wanted]), np.array([slack]), settled)
        assert t == pytest.approx(np.clip(exact, -12, 8), abs=max(10 * settled, 1e-9))


@pytest.mark.parametrize("local", [EVEN, LocalSlack(share=1.6), LocalSlack(share=0.1, sparse=16.0)])
@pytest.mark.parametrize("variance", [0.0, 9.0, 2500.0])
def test_it_is_the_optimum_of_a_general_solver(variance, local):
    """The dual, convex in one log factor for each observed cell and one for the total, by a trust region."""
    table, observed = case(variance=variance)
    even = max(local.share * variance**0.5, 0.2)
    held = np.concatenate([table.sum(axis=2).ravel(), table.sum(axis=0).ravel()])
    slack = np.append(np.clip(variance / held, even, local.sparse * even), 0.0)
    cells = np.indices(table.shape).reshape(3, -1)
    to_ab = cells[0] * 3 + cells[1] == np.arange(6)[:, None]
    to_bc = cells[1] * 4 + cells[2] == np.arange(12)[:, None]
    sums = np.vstack([to_ab, to_bc, np.ones((1, 24))]).astype(float)
    targets = np.concatenate([*(seen.counts.ravel() for seen in observed), [TOTAL]])

    def counts(theta):
        return table.ravel() * np.exp(sums.T @ theta)

    found = minimize(
        lambda theta: counts(theta).sum() - theta @ targets + 0.5 * slack @ theta**2,
        np.zeros(19),
        jac=lambda theta: sums @ counts(theta) - targets + slack * theta,
        hess=lambda theta: (sums * counts(theta)) @ sums.T + np.diag(slack),
        method="trust-exact",
        options={"gtol": 1e-8},
    )
    best = counts(found.x).reshape(table.shape)
    ours = locally_fitted(CLIQUE, table, observed, TOTAL, sweeps=5000, settled=1e-12, slack=local)
    np.testing.assert_allclose(ours, best, atol=1e-4 * TOTAL)


def test_cells_of_few_people_follow_their_noise_less():
    """Two cells are counted 3 standard deviations above what they hold: the full one follows, the other hardly."""
    table = np.array([500.0, 2.0, 498.0])
    seen = Observation(("a",), table + 30.0 * np.array([1, 1, -2]), 100.0)
    even, sparse = (
        locally_fitted(("a",), table, [seen], TOTAL, slack=LocalSlack(sparse=times)) for times in (1.0, 16.0)
    )
    assert even[0] == pytest.approx(sparse[0], rel=0.02)
    assert even[1] > 15
    assert sparse[1] < 5


def test_slack_is_even_where_cells_hold_enough_and_has_an_end():
    held = np.array([0.0, 1.0, 5.0, 100.0, 1e9])
    found = LocalSlack(share=0.5, sparse=16.0).of(100.0, held)
    np.testing.assert_allclose(found, [80.0, 80.0, 20.0, 5.0, 5.0])
    np.testing.assert_array_equal(LocalSlack(share=0.5).of(100.0, held), np.full(5, 5.0))


def test_exact_counts_are_met_and_nothing_else_is_learnt():
    table, observed = case(variance=0.0, cliques=(("a", "c"),))
    bent = locally_fitted(CLIQUE, table, observed, TOTAL)
    np.testing.assert_allclose(bent.sum(axis=1), observed[0].counts, atol=1.0)
    given = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bent / bent.sum(axis=1, keepdims=True), given, atol=1e-12)


def test_a_count_under_a_condition_leaves_the_proportions_of_other_cells():
    table, _ = case()
    mask = np.zeros((1, 3, 1))
    mask[0, 1] = 1.0
    seen = Observation(("a",), np.array([150.0, 50.0]), 0.0, mask)
    bent = locally_fitted(CLIQUE, table, [seen], TOTAL, least=1e-9, settled=1e-12)
    assert bent.sum() == pytest.approx(TOTAL)
    np.testing.assert_allclose(bent[:, 1].sum(axis=1), seen.counts, atol=1.0)
    others = np.delete(bent, 1, axis=1) / np.delete(table, 1, axis=1)
    np.testing.assert_allclose(others, others[0, 0, 0], rtol=1e-9)


def test_without_observations_nothing_changes():
    table, _ = case()
    assert locally_fitted(CLIQUE, table, [], TOTAL) is table


def test_empty_cells_stay_empty_and_wild_noise_keeps_the_total():
    table, observed = case(variance=1e12)
    table[0, 0] = 0.0
    bent = locally_fitted(CLIQUE, table, observed, TOTAL)
    assert (bent[0, 0] == 0).all()
    assert np.isfinite(bent).all()
    assert bent.sum() == pytest.approx(TOTAL)
