"""The last fit of an adaptive release: one, after everything was bought, and nearer to it than those before."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from adaptive_table import codes, make, mean_tvd
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.workload import Workload
from understudy.releases.adaptive import learner, rounds
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.learner import FINAL, ROUGH, Learner, final_share
from understudy.releases.adaptive.rule import rule_for
from understudy.releases.evidence import Evidence

SIZES = (6, 8, 5, 8, 6, 7)
DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(SIZES)))
TRIPLES = Workload.all_marginals(DOMAIN, 3)


def distances(epsilon: float) -> np.ndarray:
    """Mean distances of six releases of dependent attributes."""
    found = []
    for seed in range(6):
        table = codes(20_000, seed, SIZES)
        run = make(table=table, domain=DOMAIN, workload=TRIPLES, epsilon=epsilon, seed=seed)
        found.append(mean_tvd(run, adaptive(run)))
    return np.array(found)


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.2, 0.94), (0.4, 0.96)], ids=["a sweep for bars", "a sweep of pairs"]
)
def test_answers_are_nearer_than_with_the_slack_of_fits_between_rounds(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, times: float
):
    found = distances(epsilon)
    monkeypatch.setattr(learner, "final_share", lambda _: ROUGH.slack_share)
    before = distances(epsilon)
    assert (found < before).all()
    assert found.mean() < times * before.mean()


@pytest.mark.parametrize(
    ("epsilon", "sweep"),
    [(0.2, None), (0.2, "bars"), (0.4, 2), (20.0, 0)],
    ids=["none", "bars", "pairs", "workload"],
)
def test_the_last_fit_alone_is_the_final_one(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, sweep: int | str | None
):
    fits, rules, refit = [], [], Learner.refit

    def seen(self: Learner, settings: object) -> None:
        fits.append(settings)
        refit(self, settings)  # type: ignore[arg-type]

    told = rounds.Rounds.round

    def round_(self: rounds.Rounds, t: int) -> None:
        rules.append(self.rule)
        told(self, t)

    monkeypatch.setattr(Learner, "refit", seen)
    monkeypatch.setattr(rounds.Rounds, "round", round_)
    run = make(table=codes(20_000, 0, SIZES), domain=DOMAIN, workload=TRIPLES, epsilon=epsilon, seed=0)
    usual = rule_for(DOMAIN, TRIPLES, precision=Evidence(run).precision(run.total), rows=20_000)
    adaptive(run, rule=usual if sweep is not None else replace(usual, guard=Fraction(0), for_bars=False))
    rule = rules[0]
    assert ("bars" if rule.for_bars else rule.guard_order if rule.guard else None) == sweep
    assert fits[-1] == replace(FINAL, slack_share=0.1, by_strength=sweep != 0)
    assert fits[:-1] == [ROUGH] * (len(fits) - 1)


@pytest.mark.parametrize(
    ("sizes", "share"),
    [((2, 2, 2), 0.4), ((2, 4, 2), 0.2), ((4, 4, 1), 0.1), ((30, 9, 7), 0.1), ((8,), 0.4), ((8, 1), 0.4)],
)
def test_slack_of_the_last_fit_falls_with_the_cells_of_a_typical_pair(sizes: tuple[int, ...], share: float):
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(sizes)))
    assert final_share(domain) == pytest.approx(share)
