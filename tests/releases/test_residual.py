"""The residual release: what is charged, answered, certified, resumed and refused."""

from __future__ import annotations

import json
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from counted import Cells, Rows
from release_runs import covered, furthest, run_over, same
from statistical import assert_covers
from understudy.declaration.declaration import Unit
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError, TooLargeError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.residual.residual import (
    near,
    planned,
    predicted_error,
    residual,
    residual_error,
)
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
DOMAIN = Domain(
    (Bins.integers("a", 0, 1), Bins.integers("b", 0, 2), Bins.integers("c", 0, 3), Bins.integers("d", 0, 0))
)
PAIRS = Workload.all_marginals(DOMAIN, 2)
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def histogram() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.multinomial(4000, rng.dirichlet(np.full(DOMAIN.size(), 0.3))).reshape(DOMAIN.shape())


def make(*, workload=PAIRS, **given) -> Run:
    return run_over(Cells(DOMAIN, histogram()), workload, **{"delta": 1e-6, "neighbours": ADD, **given})


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("objective", ["sum", "largest"])
@pytest.mark.parametrize("ranges", [(), ("c",)])
def test_one_debit_of_the_whole_price_answers_the_whole_workload(neighbours, objective, ranges):
    run = make(neighbours=neighbours)
    outcome = residual(run, objective=objective, ranges=ranges)
    assert [a.clique for a in outcome.answers] == list(PAIRS)
    assert len(run.steps) == 1
    cap = run.budget.cap.units
    assert cap * (1 - 1e-6) <= run.curator.ledger.spent.units <= cap
    assert outcome.method == "residual"
    for answer in outcome.answers:
        assert answer.counts.shape == answer.error.shape == DOMAIN.shape(answer.clique)
        assert answer.basis == "measured"
        assert (answer.counts >= 0).all()
        assert np.isfinite(answer.error).all()
    assert covered(run, outcome)
    assert outcome.standin.project(("a", "c")).sum() == pytest.approx(1)
    if neighbours is REPLACE:
        assert outcome.rows == 4000
    else:
        assert abs(outcome.rows - 4000) <= outcome.proof["rows_error"]


def test_a_run_is_resumed_by_its_name_for_nothing():
    run = make()
    first = residual(run)
    spent = run.curator.ledger.spent
    again = make(ledger=run.curator.ledger, seed=99)
    assert same(residual(again), first)
    assert run.curator.ledger.spent == spent
    assert again.curator._truth.looks == 0


def test_what_does_not_fit_is_refused_before_the_debit():
    run = make()
    with pytest.raises(TooLargeError):
        residual(run, cells_limit=10)
    with pytest.raises(ParameterError):
        residual(run, cells_limit=0)
    pure = make(delta=0)
    with pytest.raises(RefusedError, match="mwem"):
        residual(pure)
    poor = make(epsilon=3, ledger=MemoryLedger(Budget.of(Fraction(1, 10), 1e-6)))
    with pytest.raises(InsufficientBudgetError):
        residual(poor)
    for refused in (run, pure, poor):
        assert refused.curator.ledger.spent.units == 0
        assert refused.curator._truth.looks == 0
    assert residual_error(pure) == inf


def test_several_rows_of_one_person_cost_their_square():
    one, three = residual_error(make()), residual_error(make(unit=Unit("id", 3)))
    assert three == pytest.approx(3 * one, rel=0.05)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_totals_and_attributes_of_one_cell_are_answered_too(neighbours):
    workload = Workload.of(DOMAIN, [(), ("d",), ("a", "d")])
    run = make(neighbours=neighbours, workload=workload)
    outcome = residual(run)
    assert covered(run, outcome)
    public = make(neighbours=REPLACE, workload=Workload.of(DOMAIN, [(), ("d",)]))
    answers = residual(public).answers
    assert [float(a.counts.sum()) for a in answers] == [4000, 4000]
    assert public.curator.ledger.spent.units == 0


def test_declared_bounds_on_rows_are_kept():
    run = make(epsilon=Fraction(1, 100), rows_at_least=3990, rows_at_most=4010)
    outcome = residual(run)
    assert 3990 <= outcome.rows <= 4010
    assert all((a.counts <= 4010).all() for a in outcome.answers)
    assert covered(run, outcome)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_error_bars_hold_jointly_as_often_as_they_say(neighbours):
    """Bars of noise that is taken to have two thirds of its variance, 0.8 times as long, would be seen to fail."""
    runs = [make(seed=seed, neighbours=neighbours) for seed in range(200)]
    assert_covers([furthest(run, residual(run)) for run in runs], 0.05, mutant=0.8)


def test_the_prediction_is_the_mean_error_of_the_noise():
    run = make()
    told = predicted_error(DOMAIN, PAIRS, run.total, Relation(ADD))
    seen = []
    for seed in range(40):
        outcome_run = make(seed=seed)
        found = _noisy(outcome_run)
        truth = outcome_run.curator._truth
        seen.append(np.mean([np.abs(t - truth.count(c)).sum() for c, t in found.items()]))
    assert np.mean(seen) == pytest.approx(told, rel=0.1)
    assert predicted_error(DOMAIN, PAIRS, run.total * 4, Relation(ADD)) == pytest.approx(told / 2, rel=1e-3)
    assert predicted_error(DOMAIN, Workload.of(DOMAIN, [()]), 1, Relation(REPLACE)) == 0
    with pytest.raises(ParameterError):
        predicted_error(DOMAIN.project(("a",)), PAIRS, 1, Relation(ADD))


def _noisy(run):
    plan = planned(run)
    assert plan is not None
    tables = ResidualTables(*plan, np.array(run.look("residuals", plan[1]), np.int64))
    return {clique: tables.table(clique) for clique in run.workload}


def test_the_certified_error_is_never_above_that_of_plain_noise():
    for neighbours in (ADD, REPLACE):
        run = make(neighbours=neighbours)
        share = run.price(Fraction(1, len(PAIRS)))
        marginals = [Marginal(DOMAIN, clique) for clique in PAIRS]
        plain = max(
            run.curator.calibration.error(
                m, *run.curator.calibration.mechanism(m, share), run.beta / len(PAIRS)
            )
            for m in marginals
        )
        assert residual_error(run) <= plain


def test_a_guess_is_followed_where_it_fits_and_left_where_it_does_not():
    rng = np.random.default_rng(0)
    true = rng.uniform(100, 200, 400)
    noisy = true + rng.normal(0, 10, 400)
    variance = np.full(400, 100.0)
    right, wrong = near(noisy, true, variance), near(noisy, true + 300, variance)
    assert np.abs(right - true).mean() < 0.3 * np.abs(noisy - true).mean()
    assert np.abs(wrong - noisy).max() <= 2.5 + 1e-9


def test_large_universes_have_a_tree_for_a_stand_in():
    domain = Domain(tuple(Bins.integers(f"x{i}", 0, 3) for i in range(14)))
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 4, (14, 3000))
    columns[1] = columns[0]
    workload = Workload.all_marginals(domain, 2)
    run = run_over(Rows(domain, columns), workload, epsilon=5, delta=1e-6, neighbours=ADD)
    outcome = residual(run)
    assert covered(run, outcome)
    together = outcome.standin.project(("x0", "x1"))
    assert np.trace(together) > 0.9
    assert outcome.standin.project(domain.names[:5]).sum() == pytest.approx(1)


@pytest.mark.skipif(not (DATA / "nltcs.csv").exists(), reason="the nltcs table is not here")
@pytest.mark.slow("a real table")
@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 0.036), (1, 0.0055), (10, 0.0008)])
def test_all_triples_of_nltcs(epsilon, most):
    sizes = json.loads((DATA / "nltcs-domain.json").read_text())
    domain = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in sizes.items()))
    table = pyarrow.csv.read_csv(DATA / "nltcs.csv")
    workload = Workload.all_marginals(domain, 3)
    truth = Truth(in_memory(table), domain)
    outcome = residual(run_over(truth, workload, epsilon=epsilon, delta=1e-9, neighbours=ADD))
    exact = truth.counts(workload)
    tvd = [np.abs(a.counts / outcome.rows - exact[a.clique] / truth.rows).sum() / 2 for a in outcome.answers]
    assert np.mean(tvd) <= most


def test_no_count_is_told_without_error_where_noise_carries_its_interval_below_0():
    """At β = 0.9 such noise is frequent. A bar of 0 around a count that is wrong would look certain."""
    failed = 0
    for seed in range(1, 9):
        run = run_over(
            Cells(DOMAIN, histogram() // 60), PAIRS, epsilon=0.3, delta=1e-6, neighbours=ADD,
            beta=Fraction(9, 10), seed=seed,
        )  # fmt: skip
        outcome = residual(run)
        assert all((answer.error > 0).all() for answer in (*outcome.answers, *outcome.also))
        failed += not covered(run, outcome)
    assert failed  # else no interval was ever beside the possible counts
