"""The fit against a general solver, its gap against the truth, its starts against each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.standin.graphical.model import Constraint, FitSettings, GraphicalStandIn, estimated_total, fit
from understudy.standin.measurement import Measurement

CLOSE = FitSettings(accuracy=1e-7, noise_share=0.0, most_passes=3000)


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def summing(domain: Domain, clique: tuple[str, ...]) -> np.ndarray:
    """The matrix that projects a flat distribution on a clique."""
    cells = np.arange(domain.size()).reshape(domain.shape())
    kept = [i for i, name in enumerate(domain.names) if name in clique]
    rest = [i for i in range(len(domain)) if i not in kept]
    groups = cells.transpose([*kept, *rest]).reshape(domain.size(clique), -1)
    matrix = np.zeros((len(groups), domain.size()))
    for row, group in enumerate(groups):
        matrix[row, group] = 1
    return matrix


def primal_optimum(domain, measurements, total, allowed=None):
    """max N H(p) - ½ Σ_c |N p_c - y_c|² / slack_c, by a general solver over all cells (softmax of free numbers).

    The squared distance is taken less its part along the total, which is given and not fitted.
    """
    matrices = [summing(domain, m.clique) for m in measurements]
    slacks = [max(0.4 * np.sqrt(m.variance), 0.2) for m in measurements]
    targets = [m.counts.ravel() + (total - m.counts.sum()) / m.counts.size for m in measurements]
    mask = np.ones(domain.size(), bool) if allowed is None else allowed.ravel()

    def loss(free):
        logs = np.where(mask, free - free[mask].max(), -np.inf)
        rates = np.exp(logs)
        rates /= rates.sum()
        logs = np.where(mask, np.log(np.maximum(rates, 1e-300)), 0)
        value, slope = total * (rates @ logs), total * (logs + 1)
        for matrix, slack, target in zip(matrices, slacks, targets, strict=True):
            miss = total * (matrix @ rates) - target
            value += 0.5 * (miss @ miss) / slack
            slope = slope + total * (matrix.T @ miss) / slack
        return value / total, rates * (slope - rates @ slope) / total

    found = minimize(
        loss,
        np.zeros(domain.size()),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50},
    )
    rates = np.exp(np.where(mask, found.x - found.x[mask].max(), -np.inf))
    return (rates / rates.sum()).reshape(domain.shape()), found.fun * total


def noisy(domain, cliques, *, total=500, variance=25.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(domain.size(), 0.5)).reshape(domain.shape()) * total
    out = []
    for clique in cliques:
        counts = truth.sum(axis=tuple(i for i, n in enumerate(domain.names) if n not in clique))
        out.append(Measurement(clique, counts + rng.normal(size=counts.shape) * variance**0.5, variance))
    return out


CASES = {
    "a cycle of pairs": [("a0", "a1"), ("a1", "a2"), ("a0", "a2")],
    "nested": [("a0", "a1", "a2"), ("a0", "a1"), ("a0",), ("a2",)],
    "the same twice": [("a0", "a1"), ("a0", "a1"), ("a1",)],
    "disconnected": [("a0", "a1"), ("a2",)],
    "one-way": [("a0",), ("a1",), ("a2",)],
    "with the total": [("a0", "a2"), ()],
}


@pytest.mark.parametrize("cliques", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("variance", [1.0, 400.0])
def test_the_fit_is_the_optimum_of_a_general_solver(cliques, variance):
    domain = domain_of(3, 2, 4)
    measurements = noisy(domain, cliques, variance=variance)
    model = fit(domain, measurements, total=500, settings=CLOSE)
    assert model.report is not None
    assert model.report.converged
    best, _ = primal_optimum(domain, measurements, 500)
    np.testing.assert_allclose(model.project(domain.names), best, atol=2e-5)


def test_measurements_of_different_precision_are_weighed():
    """Slack, not variance, weighs overlapping measurements in the reference; with one variance both agree."""
    domain = domain_of(4, 3)
    precise, vague = (
        noisy(domain, [("a0", "a1")], variance=1.0)[0],
        noisy(domain, [("a0",)], variance=1e6, seed=9)[0],
    )
    alone = fit(domain, [precise], total=500, settings=CLOSE)
    both = fit(domain, [precise, vague], total=500, settings=CLOSE)
    assert np.abs(alone.project(("a0",)) - both.project(("a0",))).max() < 1e-3
    assert estimated_total(domain, [precise, vague]) == pytest.approx(precise.counts.sum(), abs=0.1)


@pytest.mark.parametrize("passes", [1, 3, 10, 30])
def test_the_gap_bounds_the_distance_to_the_optimum(passes):
    domain = domain_of(3, 2, 4)
    measurements = noisy(domain, CASES["a cycle of pairs"], variance=4.0)
    model = fit(
        domain, measurements, total=500, settings=FitSettings(accuracy=0, noise_share=0, most_passes=passes)
    )
    best, _ = primal_optimum(domain, measurements, 500)
    assert model.report is not None
    error = 0.5 * np.abs(model.project(domain.names) - best).sum()
    rates = model.project(domain.names)
    both_ways = float((rates * np.log(rates / best)).sum() + (best * np.log(best / rates)).sum())
    assert error <= model.report.certified_error + 1e-5
    assert 500 * both_ways <= model.report.gap * (1 + 1e-6) + 1e-3


def test_more_passes_never_leave_a_larger_gap():
    """The function falls at every step and the gap does not: the point of least gap is told, not the last one."""
    domain = domain_of(6, 5, 4, 5)
    measurements = noisy(domain, list(combinations(domain.names, 2)), variance=0.5)
    gaps = []
    for passes in range(2, 60):
        settings = FitSettings(accuracy=0, noise_share=0, most_passes=passes, sparse_slack=1.0)
        report = fit(domain, measurements, total=500, settings=settings).report
        assert report is not None
        gaps.append(report.gap)
    assert all(later <= earlier for earlier, later in pairwise(gaps))


def test_the_gap_is_not_vacuous():
    domain = domain_of(3, 2, 4)
    model = fit(domain, noisy(domain, CASES["nested"]), total=500, settings=CLOSE)
    assert model.report is not None
    assert model.report.certified_error <= 1e-5


def test_every_start_leads_to_one_optimum():
    domain = domain_of(3, 2, 4, 2)
    pairs = list(combinations(domain.names, 2))
    measurements = noisy(domain, pairs, variance=9.0)
    cold = fit(domain, measurements, total=500, settings=CLOSE)
    smaller = fit(domain, measurements[:2], total=500, settings=CLOSE)
    elsewhere = GraphicalStandIn(domain, 1.0).reweight(
        ("a0", "a3"), np.random.default_rng(2).normal(size=(3, 2))
    )
    for start in (smaller, elsewhere, cold):
        warm = fit(domain, measurements, total=500, settings=CLOSE, start=start)
        np.testing.assert_allclose(warm.project(domain.names), cold.project(domain.names), atol=2e-6)
    again = fit(domain, measurements, total=500, settings=CLOSE, start=cold)
    assert again.report is not None
    assert cold.report is not None
    assert again.report.passes < cold.report.passes


def test_little_noise_converges_as_well():
    """Measurements that contradict each other slightly: where a redundant parametrisation crawls."""
    domain = domain_of(8, 6, 5, 7, 4)
    measurements = noisy(domain, list(combinations(domain.names, 2)), total=50_000, variance=1.0)
    model = fit(domain, measurements, total=50_000, settings=FitSettings(accuracy=1e-4, noise_share=0))
    assert model.report is not None
    assert model.report.converged
    for m in measurements:
        assert np.abs(model.project(m.clique) * 50_000 - m.counts).max() < 10


def test_constraints_hold_exactly_and_the_rest_is_the_constrained_optimum():
    domain = domain_of(3, 2, 4)
    allowed = np.ones((3, 2), bool)
    allowed[0, 1] = allowed[2, 0] = False
    measurements = noisy(domain, [("a0", "a2"), ("a1", "a2")])
    model = fit(
        domain, measurements, total=500, settings=CLOSE, constraints=[Constraint(("a0", "a1"), allowed)]
    )
    assert (model.project(("a0", "a1"))[~allowed] == 0).all()
    everywhere = np.broadcast_to(allowed[:, :, None], domain.shape())
    best, _ = primal_optimum(domain, measurements, 500, everywhere)
    np.testing.assert_allclose(model.project(domain.names), best, atol=2e-5)


def test_the_same_measurements_give_the_same_bits():
    domain = domain_of(8, 6, 5, 7)
    measurements = noisy(domain, list(combinations(domain.names, 3)), total=5000)
    first, second = (fit(domain, measurements, total=5000) for _ in range(2))
    for a, b in zip(first.factors, second.factors, strict=True):
        assert a.logs.tobytes() == b.logs.tobytes()
    assert first.project(("a0", "a3")).tobytes() == second.project(("a0", "a3")).tobytes()


@pytest.mark.parametrize("total", [0.0, 1e-6, 1.0, 1e12])
@pytest.mark.parametrize("variance", [0.0, 1.0, 1e14])
@pytest.mark.parametrize("sparse", [1.0, 16.0])
def test_extreme_totals_and_noise_give_a_distribution(total, variance, sparse):
    domain = domain_of(3, 1, 4)
    measurements = noisy(domain, [("a0", "a1"), ("a0", "a2"), ("a2",)], variance=variance)
    model = fit(domain, measurements, total=total, settings=FitSettings(sparse_slack=sparse))
    rates = model.project(domain.names)
    assert model.total == total
    assert np.isfinite(rates).all()
    assert rates.min() >= 0
    assert rates.sum() == pytest.approx(1)


def test_without_measurements_the_model_is_uniform():
    domain = domain_of(3, 2)
    assert fit(domain, [], total=0).project(domain.names) == pytest.approx(1 / 6)
    only_total = Measurement((), np.array(7.0), 1.0)
    assert fit(domain, [only_total], total=7).project(domain.names) == pytest.approx(1 / 6)
    assert estimated_total(domain, [only_total]) == 7
    assert estimated_total(domain, []) == 0


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.lists(st.sets(st.integers(0, 3), max_size=3), min_size=1, max_size=5))
def test_reconciling_is_generalised_least_squares(seed, sets):
    """The reconciled total and model agree with least squares solved by a matrix."""
    domain = domain_of(2, 3, 2, 2)
    cliques = [tuple(f"a{i}" for i in sorted(s)) for s in sets]
    rng = np.random.default_rng(seed)
    measurements = [
        Measurement(c, rng.normal(size=domain.shape(c)), float(rng.uniform(0.1, 9))) for c in cliques
    ]
    matrix = np.vstack([summing(domain, m.clique) / m.variance**0.5 for m in measurements])
    values = np.concatenate([m.counts.ravel() / m.variance**0.5 for m in measurements])
    solved = np.linalg.lstsq(matrix, values, rcond=None)[0]
    assert estimated_total(domain, measurements) == pytest.approx(max(0.0, solved.sum()), abs=1e-8)


@pytest.mark.parametrize(
    "wrong", [{"least_slack": 0.0}, {"accuracy": -1.0}, {"most_passes": 0}, {"memory": 0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ParameterError):
        FitSettings(**wrong)


@pytest.mark.parametrize("total", [-1.0, np.nan, np.inf])
def test_a_total_that_is_no_number_of_rows_is_refused(total):
    with pytest.raises(ParameterError):
        fit(domain_of(2, 3), [Measurement(("a0",), np.zeros(2), 1.0)], total=total)


def test_a_measurement_of_another_shape_is_refused():
    with pytest.raises(ParameterError):
        fit(domain_of(2, 3), [Measurement(("a0",), np.zeros(3), 1.0)], total=1)


def centred_pair(table):
    """The interaction of a table of two attributes."""
    return table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()


def test_sparse_slack_is_the_optimum_of_a_general_solver():
    """Over all cells. The interaction has twice the slack in a first fit; then v/m, between once and 16 times."""
    domain, total, variance = domain_of(4, 5), 500.0, 100.0
    (whole,) = noisy(domain, [domain.names], variance=variance)
    columns = [
        Measurement((name,), whole.counts.sum(axis=1 - i), variance) for i, name in enumerate(domain.names)
    ]
    even, model = (
        fit(domain, [whole, *columns], total=total, settings=replace(CLOSE, sparse_slack=most))
        for most in (1.0, 16.0)
    )
    slack = 0.4 * variance**0.5
    # Each 1-way part is told by its own measurement and by the pair's sums, whose cells have more noise.
    wanted = [c.counts - c.counts.mean() for c in columns]
    one_way = [slack / (1 + c.counts.size / whole.counts.size) for c in columns]
    interaction = centred_pair(whole.counts)

    def best(pair):
        def dual(free):
            logs = free.reshape(4, 5)
            rates = np.exp(logs - logs.max())
            own = centred_pair(logs)
            value = total * (logs.max() + np.log(rates.sum()) - logs.mean())
            value += 0.5 * (pair * own**2).sum() - (own * interaction).sum()
            slope = total * (rates / rates.sum() - 1 / 20) - interaction + centred_pair(pair * own)
            for axis, (z, k) in enumerate(zip(wanted, one_way, strict=True)):
                effect = logs.mean(axis=1 - axis) - logs.mean()
                value += 0.5 * k * effect @ effect - effect @ z
                slope = slope + np.expand_dims((k * effect - z) / logs.shape[1 - axis], 1 - axis)
            return value / total, slope.ravel() / total

        found = minimize(
            dual, np.zeros(20), jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-11}
        )
        rates = np.exp(found.x - found.x.max()).reshape(4, 5)
        return rates / rates.sum()

    np.testing.assert_allclose(even.project(domain.names), best(slack), atol=2e-5)
    first = best(2 * slack)
    uneven = best(np.clip(variance / (total * first), slack, 16 * slack))
    assert model.report is not None
    assert model.report.converged
    assert model.report.certified_error <= 1e-5
    np.testing.assert_allclose(model.project(domain.names), uneven, atol=2e-5)
    assert np.abs(uneven - best(slack)).max() > 1e-3


def test_sparse_slack_moves_no_smaller_marginal():
    domain = domain_of(6, 5, 4)
    measurements = noisy(domain, [("a0", "a1"), ("a1", "a2"), ("a0",), ("a1",), ("a2",)], variance=400.0)
    even, uneven = (
        fit(domain, measurements, total=500, settings=replace(CLOSE, sparse_slack=most))
        for most in (1.0, 16.0)
    )
    for name in domain.names:
        assert np.abs(even.project((name,)) - uneven.project((name,))).max() < 0.01
    assert np.abs(even.project(("a0", "a1")) - uneven.project(("a0", "a1"))).max() > 0.02


def test_noise_in_cells_of_few_people_is_not_learnt():
    """Independent attributes, one with rare values: log odds follow the noise without sparse slack."""
    domain, total, std = domain_of(12, 2), 20_000.0, 60.0
    rates = np.outer(np.concatenate([[0.9], np.full(11, 0.1 / 11)]), [0.8, 0.2])
    off = {1.0: [], 16.0: []}
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=rates.shape) * std
        told = [Measurement(domain.names, total * rates + noise, std**2)]
        told += [
            Measurement((name,), total * rates.sum(axis=1 - i), 1.0) for i, name in enumerate(domain.names)
        ]
        for most, errors in off.items():
            found = fit(domain, told, total=total, settings=FitSettings(sparse_slack=most)).project(
                domain.names
            )
            errors.append(np.abs(np.log(found[1:, 1] / found[1:, 0]) - np.log(0.25)).mean())
    assert np.mean(off[16.0]) < 0.75 * np.mean(off[1.0])


def test_every_start_leads_to_one_optimum_of_sparse_slack():
    domain, close = domain_of(3, 2, 4, 2), replace(CLOSE, sparse_slack=16.0)
    measurements = noisy(domain, list(combinations(domain.names, 2)), variance=100.0)
    cold = fit(domain, measurements, total=500, settings=close)
    warm = fit(
        domain, measurements, total=500, settings=close, start=fit(domain, measurements[:2], total=500)
    )
    np.testing.assert_allclose(warm.project(domain.names), cold.project(domain.names), atol=5e-6)


@pytest.mark.parametrize("wrong", [0.5, 0.0, -1.0, float("inf"), float("nan")])
def test_sparse_slack_is_at_least_that_of_other_cells(wrong):
    with pytest.raises(ParameterError, match="sparse"):
        FitSettings(sparse_slack=wrong)
