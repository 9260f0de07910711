"""Slack by the strength of dependences: less for strong ones, more for weak ones, within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.standin.graphical import strength
from understudy.standin.graphical.model import FitSettings, fit
from understudy.standin.graphical.strength import IMAGINED, LEAST, MOST, USUAL, SeenStrength, slack_times
from understudy.standin.measurement import Measurement

CLOSE = FitSettings(slack_share=0.4, accuracy=1e-7, noise_share=0.0, most_passes=3000, sparse_slack=16.0)
DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate((6, 6))))
ROWS = 5000.0


def pair(log_odds: float, seed: int = 0) -> np.ndarray:
    """Counts of two attributes whose interaction has log potentials of that standard deviation."""
    logs = log_odds * np.random.default_rng(seed).normal(size=(6, 6))
    rates = np.exp(logs)
    return ROWS * rates / rates.sum()


def distance(log_odds: float, *, by_strength: bool) -> float:
    """Mean distance of fits to noisy counts of the pair, over eight tables."""
    found = []
    for seed in range(8):
        counts, rng = pair(log_odds, seed), np.random.default_rng(100 + seed)
        noisy = Measurement(DOMAIN.names, counts + 30 * rng.normal(size=counts.shape), 900.0)
        settings = replace(CLOSE, by_strength=by_strength)
        model = fit(DOMAIN, [noisy], total=ROWS, settings=settings)
        found.append(0.5 * np.abs(model.project(DOMAIN.names) - counts / ROWS).sum())
    return float(np.mean(found))


def test_only_cells_of_enough_people_show_a_strength():
    seen = SeenStrength.of(np.array([1.0, 2.0, 5.0]), np.array([100.0, 21.0, 20.0]), 10.0)
    assert seen == SeenStrength(5.0, 2)


def test_slack_is_inverse_to_the_strength_of_each_interaction_within_limits():
    many = 10**6
    seen = {
        (0, 1): SeenStrength(USUAL * many, many),
        (0, 2): SeenStrength(1e9, many),
        (1, 2): SeenStrength(1e-3, many),
    }
    times, _ = slack_times(seen)
    assert times[0, 1] == pytest.approx(1.0, rel=0.05)
    assert times[0, 2] == LEAST
    assert times[1, 2] == MOST


def test_an_interaction_that_shows_nothing_has_the_mean_strength():
    times, single = slack_times({(0, 1): SeenStrength(0.2 * 100, 100), (0, 2): SeenStrength(0.0, 0)})
    assert times[0, 2] == single == pytest.approx(USUAL / 0.2)
    few, _ = slack_times({(0, 1): SeenStrength(0.4 * 10**6, 10**6), (0, 2): SeenStrength(0.0, 5)})
    assert few[0, 2] == pytest.approx(USUAL / (0.4 * IMAGINED / (5 + IMAGINED)), rel=1e-3)


def test_slack_is_as_it_was_where_nothing_shows_a_strength():
    assert slack_times({}) == ({}, 1.0)
    assert slack_times({(0, 1): SeenStrength(0.0, 0)}) == ({(0, 1): 1.0}, 1.0)


@pytest.mark.parametrize(("log_odds", "times"), [(1.5, 0.99), (0.05, 0.95)], ids=["strong", "weak"])
def test_fits_are_nearer_to_strong_and_to_weak_dependences(log_odds: float, times: float):
    assert distance(log_odds, by_strength=True) < times * distance(log_odds, by_strength=False)


def test_a_strong_dependence_with_the_slack_of_a_weak_one_is_farther_off(monkeypatch: pytest.MonkeyPatch):
    found = distance(1.5, by_strength=True)
    monkeypatch.setattr(strength, "_times", lambda seen: min(max(seen / USUAL, LEAST), MOST))
    assert distance(1.5, by_strength=True) > 1.02 * found


def test_the_fit_has_the_slack_that_a_smoother_one_calls_for():
    """Where every strength is beyond the limit, that is a fit with so many times the slack."""
    noisy = Measurement(DOMAIN.names, pair(3.0), 1.0)
    settings = replace(CLOSE, sparse_slack=1.0, least_slack=1e-9)
    by_strength = fit(DOMAIN, [noisy], total=ROWS, settings=replace(settings, by_strength=True))
    less = fit(DOMAIN, [noisy], total=ROWS, settings=replace(settings, slack_share=LEAST * 0.4))
    np.testing.assert_allclose(by_strength.project(DOMAIN.names), less.project(DOMAIN.names), atol=1e-6)
