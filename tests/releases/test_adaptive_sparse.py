"""Adaptive releases of columns with rare values: noise in cells of few people is not learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from adaptive_table import REPLACE, make, mean_tvd
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.workload import Workload
from understudy.releases.adaptive import adaptive as release
from understudy.releases.adaptive import learner, rounds
from understudy.releases.adaptive.adaptive import adaptive

SIZES = (12, 12, 8)
DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate((*SIZES, 2))))
TRIPLES = Workload.all_marginals(DOMAIN, 3)


def skewed(seed: int, rows: int = 6000) -> np.ndarray:
    """Three columns with a common value and many rare ones, and a label, which all follow a hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    columns = [(n * (0.5 * hidden + 0.5 * rng.random(rows)) ** 4).astype(np.int64) for n in SIZES]
    return np.stack([*columns, rng.random(rows) < 0.1 + 0.8 * hidden**2]).astype(np.int64)


def area(odds: np.ndarray, label: np.ndarray) -> float:
    """The area under the curve of a score, ties in half."""
    ones = int(label.sum())
    return (rankdata(odds)[label == 1].sum() - ones * (ones + 1) / 2) / (ones * (label.size - ones))


def judged() -> tuple[float, float]:
    """Mean distance of the answers, and mean area of the label's odds as the stand-in tells them; six releases."""
    distances, areas = [], []
    for seed in range(6):
        table = skewed(seed)
        run = make(table=table, domain=DOMAIN, workload=TRIPLES, epsilon=1, seed=seed, neighbours=REPLACE)
        outcome = adaptive(run)
        rates = outcome.standin.project(DOMAIN.names)
        odds = rates[..., 1] / np.maximum(rates.sum(axis=-1), 1e-300)
        distances.append(mean_tvd(run, outcome))
        areas.append(area(odds[tuple(table[:3])], table[3]))
    return float(np.mean(distances)), float(np.mean(areas))


def test_answers_are_nearer_and_a_label_is_predicted_better_than_with_even_slack(
    monkeypatch: pytest.MonkeyPatch,
):
    distance, found = judged()
    for module in (learner, rounds, release):
        for name in ("ROUGH", "FINAL"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, replace(getattr(module, name), sparse_slack=1.0))
    even_distance, even_area = judged()
    assert distance < 0.975 * even_distance
    assert found > even_area + 0.004
