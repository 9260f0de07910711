"""Which sweep an adaptive release ends with: the forecast, its limits, and what was chosen beside what was not."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from adaptive_table import ADD, DOMAIN, TRIPLES, codes, make, mean_tvd
from counted import Cells
from release_runs import run_over
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.noise.law import MAX_VARIANCE
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.merging import Merging, simplex
from understudy.query.workload import Workload
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.rule import Rule, rule_for
from understudy.releases.adaptive.sweep import SweepPlan
from understudy.releases.adaptive.sweep_choice import (
    SweepChoice,
    SweepForecast,
    noise_error,
    numbers_swept,
    pairs_below,
)
from understudy.releases.evidence import Evidence
from understudy.releases.target import weighted_for
from understudy.table.source import in_memory
from understudy.table.truth import Truth

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("UNDERSTUDY_BENCH_DATA", BESIDE))

OPTIONS = [(Fraction(7, 10), 0), (Fraction(2, 5), 2)]
PLENTY = 10**9
WIDE = Domain(
    tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate((16, 32, 9, 32, 16, 7, 15, 6, 42)))
)


def forecast(precision: float, rows: float = 50_000, domain: Domain = WIDE, order: int = 3) -> SweepForecast:
    return SweepForecast(domain, Workload.all_marginals(domain, order), precision, rows)


@pytest.mark.parametrize("cells", [8, 200, 3000])
@pytest.mark.parametrize("std", [1e-4, 1e-3, 1e-2])
def test_the_forecast_of_a_noisy_marginal_is_its_error(cells, std):
    """Cells that fall as i^(-3/2), with noise, moved onto the simplex."""
    rng = np.random.default_rng(0)
    rates = np.arange(1, cells + 1) ** -1.5
    rates /= rates.sum()
    off = [0.5 * np.abs(simplex(rates + rng.normal(0, std, cells), 1.0) - rates).sum() for _ in range(50)]
    told = float(noise_error(np.array([float(cells)]), np.array([std]))[0])
    assert 0.6 * told < np.mean(off) < 1.7 * told


@settings(max_examples=20)
@given(st.floats(1e-6, 1e3), st.floats(1.1, 100), st.sampled_from([2, 3]))
def test_a_higher_price_makes_every_forecast_smaller(precision, more, order):
    poor, rich = forecast(precision, order=order), forecast(precision * more, order=order)
    assert rich.without().error <= poor.without().error
    for share, kind in OPTIONS:
        assert 0 < rich.error(share, kind) <= poor.error(share, kind) * (1 + 1e-9)


def test_the_best_forecast_is_taken():
    """Of a little noise, of some, and of much: the workload, its pairs, and nothing are swept."""
    taken = [forecast(precision).choose(OPTIONS, PLENTY) for precision in (3.0, 0.02, 0.0002)]
    assert [(one.share, one.order) for one in taken] == [*OPTIONS, (Fraction(0), 0)]
    noisy = forecast(0.0002)
    assert taken[-1].error == noisy.without().error
    assert all(noisy.error(*option) > noisy.without().error for option in OPTIONS)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("rows", [1, 30])
def test_nothing_is_swept_where_all_would_be_noise(rows, order):
    """However far the noise is above every cell: a sweep takes from the rounds, and tells nothing."""
    for precision in (1e-6, 1e-4, 1e-2):
        assert forecast(precision, rows, DOMAIN, order).choose(OPTIONS, PLENTY).share == 0


def test_what_time_and_memory_do_not_allow_is_not_taken():
    quiet = forecast(3.0)
    triples = numbers_swept(WIDE, list(quiet.workload))
    pairs = numbers_swept(WIDE, pairs_below(WIDE, quiet.workload))
    assert quiet.choose(OPTIONS, triples).order == 0
    assert quiet.choose(OPTIONS, triples - 1) == quiet.choose(OPTIONS[1:], PLENTY)
    assert quiet.choose(OPTIONS, pairs - 1).share == 0


def test_no_sweep_is_planned_whose_noise_cannot_be_drawn():
    """A small price on a huge table: noise that hardly shows in a cell, and is too large for its combinations."""
    large = Domain(tuple(Bins.integers(f"a{i}", 0, 99) for i in range(6)))
    pairs = [(Fraction(2, 5), 2)]
    assert forecast(1e-8, 1e8, large).choose(pairs, PLENTY).share == Fraction(2, 5)
    huge = forecast(1e-12, 1e10, large)
    assert huge.noise_is_quiet(2)
    assert not huge.can_be_drawn(*pairs[0])
    assert huge.choose(pairs, PLENTY).share == 0
    relation, plain = Relation(Neighbours.REPLACE, 1), Merging.none(large)
    swept = huge.swept(2)
    for precision, drawn in ((1e-8, True), (1e-12, False)):
        price = Fraction(2, 5) * Fraction(precision) / 2  # 1/σ² is twice the price of a row that is added
        with nullcontext() if drawn else pytest.raises(ParameterError, match="variance"):
            SweepPlan.of(relation, plain, swept, price, rounded=False)


@pytest.mark.parametrize(("order", "least"), [(3, 2.0), (2, 100.0)])
def test_a_sweep_of_the_workload_can_be_drawn_where_half_of_it_goes_to_small_bars(order, least):
    """All but a hundredth of it where there are pairs alone."""
    large = Domain(tuple(Bins.integers(f"a{i}", 0, 59) for i in range(4)))
    whole, pairs = (Fraction(7, 10), 0), (Fraction(7, 10), 2)

    def least_precision(option: tuple[Fraction, int]) -> float:
        tried = np.logspace(-20, -5, 3001)
        return min(p for p in tried if forecast(p, 1e10, large, order).can_be_drawn(*option))

    for share, swept in (whole, pairs):
        smallest = 0.7 * forecast(1.0, 1e10, large, order)._plan(swept)[1].min() * MAX_VARIANCE
        margin = 3 * (1 if swept else least)
        assert least_precision((share, swept)) * smallest == pytest.approx(margin, rel=0.02)


def test_where_plain_noise_has_no_cell_as_wrong_as_a_stand_in_all_is_swept():
    """Whatever the mean's forecast says: the largest error must not be above that of plain noise."""
    found = forecast(2.0, rows=10_000)
    assert found.noise_is_quiet(0)
    assert min(found.without().error, found.error(*OPTIONS[1])) < found.error(*OPTIONS[0])
    assert found.choose(OPTIONS, PLENTY).order == 0


def test_many_pairs_that_are_asked_for_are_swept_before_their_noise_is_small():
    """40 questions to 3,000 people, at epsilon 1, 3 and 10: rounds measure a tenth of the pairs, a sweep all."""
    survey = Domain(tuple(Bins.integers(f"q{i}", 0, (1, 1, 2, 3, 7)[i % 5]) for i in range(40)))
    options = [(Fraction(7, 10), 0), (Fraction(2, 5), 2)]
    taken = [forecast(p, 3000, survey, 2).choose(options, PLENTY) for p in (0.03, 0.24, 2.18)]
    assert [(one.share, one.order) for one in taken] == [(Fraction(0), 0), options[1], options[0]]


@pytest.mark.parametrize(("epsilon", "spread"), [(0.3, 1), (2, 1), (20, 1), (2, 4)])
def test_the_choice_is_nearly_the_best_of_those_that_were_tried(epsilon, spread):
    """Releases of a small table with each sweep; `spread` times as many rows make the noise smaller."""
    table = codes(rows=3000 * spread, seed=1)

    def released(rule: Rule) -> float:
        run = make(table=table, epsilon=epsilon)
        return mean_tvd(run, adaptive(run, rule=rule))

    run = make(table=table, epsilon=epsilon)
    precision = Evidence(run).precision(run.total)
    usual = rule_for(DOMAIN, TRIPLES, precision=precision, rows=float(table.shape[1]))
    errors = {
        (share, order): released(replace(usual, guard=share, guard_order=order, for_bars=False))
        for share, order in [(Fraction(0), 0), *OPTIONS]
    }
    assert released(usual) < 1.5 * min(errors.values()), errors


@pytest.mark.skipif(
    not (DATA / "adult.csv").exists(), reason="real tables, for UNDERSTUDY_AUDIT, are not here"
)
@pytest.mark.slow("real tables")
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("name", ["adult", "nltcs", "titanic"])
def test_the_choice_on_a_real_table_is_within_7_per_cent_of_the_best(name, epsilon, monkeypatch):
    """Releases with each sweep under the rule that belongs to it; the errors are means over two seeds."""
    sizes = json.loads((DATA / f"{name}-domain.json").read_text())
    domain = Domain(tuple(Bins.integers(one, 0, size - 1) for one, size in sizes.items()))
    cliques = [c for c in combinations(domain.names, 3) if domain.size(c) <= 10_000]
    workload = Workload.of(domain, cliques)
    truth = Truth(in_memory(csv.read_csv(DATA / f"{name}.csv")), domain)
    exact = truth.counts(workload)
    choose, errors, taken = SweepForecast.choose, {}, None

    def released(seed: int) -> float:
        run = run_over(truth, workload, epsilon=epsilon, delta=1e-9, neighbours=ADD, seed=seed)
        off = [
            np.abs(a.counts / a.counts.sum() - exact[a.clique] / truth.rows).sum() / 2
            for a in adaptive(run).answers
        ]
        return float(np.mean(off))

    def forced(order: int | None):
        def choice(self: SweepForecast, options, swept: int) -> SweepChoice:
            nonlocal taken
            taken = choose(self, options, swept)
            share = next((share for share, kind in options if kind == order), Fraction(0))
            return SweepChoice(share, order or 0, 0.0)

        return choice

    for order in (None, 0, 2):
        monkeypatch.setattr(SweepForecast, "choose", forced(order))
        errors[order] = float(np.mean([released(seed) for seed in (1, 2)]))
    assert taken is not None
    assert errors[taken.order if taken.share else None] <= 1.07 * min(errors.values()), errors


def test_triples_with_a_target_whose_noise_cannot_be_drawn_are_not_swept():
    """Combinations of 60 by 60 by 60 cells need 60 times as large noise as those of a pair."""
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, 59) for i in range(3)))
    workload = weighted_for(Workload.all_marginals(domain, 3), "a0")
    rule = rule_for(domain, workload, precision=4e-8, rows=1e9, target="a0")
    assert (rule.guard, rule.guard_order, rule.target) == (Fraction(3, 5), 2, None)
    rates = np.exp(0.5 * np.random.default_rng(1).normal(size=domain.shape()))
    table = Cells(domain, np.rint(1e9 * rates / rates.sum()).astype(np.int64))
    run = run_over(table, workload, epsilon=Fraction(1, 2000), delta=1e-6, neighbours=Neighbours.REPLACE)
    assert adaptive(replace(run, target="a0")).proof["shares"]["guard"] == 0.6
