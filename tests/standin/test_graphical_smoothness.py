"""Slack for which neighbours are alike: its algebra against matrices, its optimum, and what it shows and gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.standin.graphical import smoothness
from understudy.standin.graphical.model import FitSettings, GraphicalStandIn, fit
from understudy.standin.graphical.residual import (
    Reconciled,
    ResidualCounts,
    ResidualSpace,
    lattice,
    reconcile,
)
from understudy.standin.graphical.smoothness import LEAST, MOST, Smoothness
from understudy.standin.graphical.tree import Layout
from understudy.standin.measurement import Measurement

CLOSE = FitSettings(slack_share=0.4, accuracy=1e-8, noise_share=0.0, most_passes=5000, smooth=True)
ROWS = 100_000.0
NOISE = 30.0


def domain_of(*sizes: int) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, size - 1) for i, size in enumerate(sizes)))


def chain(size: int, correlation: float) -> np.ndarray:
    at = np.arange(size)
    return correlation ** np.abs(at[:, None] - at[None, :])


def counts_of(sizes: tuple[int, int], correlation: float, seed: int) -> np.ndarray:
    """Counts of two attributes whose log potentials are a chain of that correlation along the first."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(chain(sizes[0], correlation))
    logs = 0.5 * (root @ rng.normal(size=sizes) + rng.normal(size=(sizes[0], 1)) + rng.normal(size=sizes[1]))
    rates = np.exp(logs)
    return ROWS * rates / rates.sum()


def measured(counts: np.ndarray, seed: int, noise: float = NOISE) -> list[Measurement]:
    """Noisy counts of both attributes, and of the pair."""
    names, rng = ("a0", "a1"), np.random.default_rng(1000 + seed)
    tables = {("a0",): counts.sum(axis=1), ("a1",): counts.sum(axis=0), names: counts}
    return [Measurement(c, t + noise * rng.normal(size=t.shape), noise**2) for c, t in tables.items()]


def reconciled(domain: Domain, measurements: list[Measurement]) -> Reconciled:
    layout = Layout(domain)
    told = [
        ResidualCounts(a, layout.inward(a, m.counts), m.variance)
        for m in measurements
        for a in [layout.attributes(m.clique)]
    ]
    return reconcile(layout, told)


def shown(counts: np.ndarray, seed: int, noise: float = NOISE) -> dict[str, float]:
    domain = domain_of(*counts.shape)
    found = Smoothness.shown(reconciled(domain, measured(counts, seed, noise)), ROWS)
    layout = found.space.layout
    return {layout.clique((a,))[0]: r for a, r in found.correlations.items()}


def distance(counts: np.ndarray, seed: int, settings: FitSettings) -> float:
    domain = domain_of(*counts.shape)
    model = fit(domain, measured(counts, seed), total=ROWS, settings=settings)
    return float(0.5 * np.abs(model.project(domain.names) - counts / ROWS).sum())


def test_products_are_those_of_the_matrices():
    layout = Layout(domain_of(3, 4, 5))
    space = ResidualSpace(layout, ((0, 1, 2),), lattice([(0, 1, 2), (0, 2), (1, 2), (2,)]))
    smooth = Smoothness(space, {0: 0.3, 2: 0.9})
    values = np.random.default_rng(1).normal(size=space.size)
    correlated, rough = smooth.times_correlations(values), smooth.times_precision(values)
    for part in space.parts:
        matrix = np.eye(1)
        for attribute in part.attributes:
            r = smooth.correlations.get(attribute, 0.0) if len(part.attributes) > 1 else 0.0
            matrix = np.kron(matrix, chain(layout.sizes[attribute], r))
        here = slice(part.start, part.stop)
        np.testing.assert_allclose(correlated[here], matrix @ values[here], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rough[here], np.linalg.solve(matrix, values[here]), rtol=1e-9, atol=1e-9)
        inverse = np.diag(np.linalg.inv(matrix)).reshape(layout.shape(part.attributes))
        middle = tuple(size // 2 for size in inverse.shape)
        own = smooth.diagonal[here].reshape(inverse.shape)
        assert own[middle] == pytest.approx(inverse[middle])


def test_correlations_are_shown_and_never_much_too_large():
    """In the mean over tables; of one pair each, so that a single one says little."""
    for correlation in (0.9, 0.5):
        found = [shown(counts_of((40, 8), correlation, seed), seed).get("a0", 0.0) for seed in range(12)]
        assert correlation - 0.25 < np.mean(found) < correlation + 0.02


def test_unordered_attributes_show_none():
    """Along the second, log potentials have nothing to do with each other; and noise alone is not smooth."""
    for seed in range(12):
        assert shown(counts_of((40, 8), 0.9, seed), seed).get("a1", 0.0) < 0.3
        assert shown(np.full((40, 8), ROWS / 320), seed) == {}


def test_noise_larger_than_the_table_shows_nothing():
    assert shown(counts_of((40, 8), 0.9, 3), 3, noise=1e5) == {}


def test_what_two_cells_say_is_not_asked():
    assert "a1" not in shown(counts_of((30, 2), 0.9, 4), 4)


def test_pairs_without_their_single_attributes_show_nothing():
    domain = domain_of(40, 8)
    pair = measured(counts_of((40, 8), 0.9, 0), 0)[-1]
    assert not Smoothness.shown(reconciled(domain, [pair]), ROWS)


def test_correlations_are_held_within_limits():
    logs = np.outer(np.linspace(-2, 2, 40), np.linspace(-1, 1, 6))
    rates = np.exp(logs)
    found = shown(ROWS * rates / rates.sum(), 5, noise=0.1)
    assert found["a0"] == MOST
    assert all(LEAST <= r <= MOST for r in found.values())


@pytest.mark.parametrize("sparse", [1.0, 16.0])
def test_every_start_leads_to_one_optimum_whose_gap_closes(sparse: float):
    domain, settings = domain_of(12, 5), replace(CLOSE, sparse_slack=sparse)
    told = measured(counts_of((12, 5), 0.8, 2), 2)
    model = fit(domain, told, total=ROWS, settings=settings)
    elsewhere = GraphicalStandIn(domain, ROWS).reweight(
        domain.names, np.random.default_rng(3).normal(size=(12, 5))
    )
    again = fit(domain, told, total=ROWS, settings=settings, start=elsewhere)
    assert model.report is not None
    assert model.report.converged
    assert model.report.certified_error < 1e-4
    np.testing.assert_allclose(again.project(domain.names), model.project(domain.names), atol=1e-6)


def test_the_gap_bounds_the_distance_to_the_optimum():
    domain, told = domain_of(12, 5), measured(counts_of((12, 5), 0.8, 2), 2)
    best = fit(domain, told, total=ROWS, settings=CLOSE).project(domain.names)
    for passes in (1, 3, 10, 30):
        early = fit(domain, told, total=ROWS, settings=replace(CLOSE, most_passes=passes))
        assert early.report is not None
        assert 0.5 * np.abs(early.project(domain.names) - best).sum() <= early.report.certified_error + 1e-6


def test_the_optimum_is_that_of_a_general_solver():
    """N H(p) less half of what is missed, measured by the inverse of √κ C⁻¹ √κ on the pair's own space."""
    from scipy.optimize import minimize

    domain, told = domain_of(6, 4), measured(counts_of((6, 4), 0.9, 7), 7, noise=20.0)
    sums = reconciled(domain, told)
    smooth = Smoothness(sums.space, {a: 0.8 for a in range(2) if sums.space.layout.sizes[a] == 6})
    layout = sums.space.layout

    def parts(rates: np.ndarray) -> np.ndarray:
        return sums.space.residuals(rates)

    basis = np.stack([parts(row) for row in np.eye(24)], axis=1)
    slack = np.concatenate(
        [
            np.full(p.size, sums.variance[p.attributes] / sums.noise[p.attributes] * 0.4)
            for p in sums.space.parts[1:]
        ]
    )
    first = sums.space.parts[0].stop
    columns = np.stack(
        [
            smooth.times_precision(np.sqrt(np.append(np.zeros(first), slack)) * e)
            for e in np.eye(sums.space.size)
        ],
        axis=1,
    )
    weight = np.sqrt(np.append(np.zeros(first), slack))[:, None] * columns
    project = np.stack([sums.space.projected(e) for e in np.eye(sums.space.size)], axis=1)
    inverse = np.linalg.pinv(project @ weight @ project.T, rcond=1e-10)

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        rates = np.exp(free - free.max())
        rates /= rates.sum()
        miss = ROWS * (basis @ rates) - sums.estimate
        miss[:first] = 0
        value = ROWS * (rates @ np.log(rates)) + 0.5 * miss @ inverse @ miss
        slope = ROWS * (np.log(rates) + 1) + ROWS * basis.T @ (inverse @ miss)
        return value / ROWS, rates * (slope - rates @ slope) / ROWS

    found = minimize(
        loss,
        np.zeros(24),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "gtol": 1e-11, "ftol": 1e-16},
    )
    best = np.exp(found.x - found.x.max())
    best = layout.outward((0, 1), best / best.sum())
    given = smooth.correlations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Smoothness, "shown", lambda told, total: Smoothness(told.space, given))
        model = fit(domain, told, total=ROWS, settings=CLOSE)
    np.testing.assert_allclose(model.project(domain.names), best, atol=2e-6)


def gain(correlation: float) -> float:
    """Mean distance with smoothness over that without, over eight tables."""
    tables = [counts_of((40, 8), correlation, seed) for seed in range(8)]
    with_it = np.mean([distance(c, seed, replace(CLOSE, accuracy=1e-6)) for seed, c in enumerate(tables)])
    without = [distance(c, s, replace(CLOSE, accuracy=1e-6, smooth=False)) for s, c in enumerate(tables)]
    return float(with_it / np.mean(without))


def test_fits_are_nearer_where_neighbours_are_alike_and_as_near_where_they_are_not():
    assert gain(0.95) < 0.93
    assert gain(0.0) < 1.01


def test_the_mutant_that_believes_in_smooth_tables_is_farther_off_where_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(smoothness._Likeness, "correlation", property(lambda _: 0.95))
    assert gain(0.0) > 1.05
