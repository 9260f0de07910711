"""MWEM: the fit against brute force, error bars, prices, resumption, and what it refuses."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counted import Cells, Killed, Rows
from release_runs import covered, furthest, run_over, same
from statistical import assert_covers
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, TooLargeError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.residuals import centred
from understudy.query.workload import Workload
from understudy.releases.mwem import ENTROPY, limited, mwem, shares
from understudy.releases.run import Run
from understudy.standin.interactions import AllCells, Projections, interactions_of
from understudy.standin.maximum_entropy import EntropyFit, maximum_entropy
from understudy.standin.measurement import Measurement
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain(
    (Bins.integers("a", 0, 1), Bins.integers("b", 0, 2), Bins.integers("c", 0, 3), Bins.integers("d", 0, 1))
)
PAIRS = Workload.all_marginals(DOMAIN, 2)
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def histogram(seed=0, rows=4000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(rows, rng.dirichlet(np.full(48, 0.3))).reshape(DOMAIN.shape())


def axes(clique):
    return tuple(i for i, name in enumerate(DOMAIN.names) if name not in clique)


def make(**given) -> Run:
    return run_over(Cells(DOMAIN, histogram()), PAIRS, **{"delta": 1e-6, "neighbours": ADD, **given})


# ---------------------------------------------------------------------------------------- the fit


def cliques():
    return [c for k in range(5) for c in combinations(DOMAIN.names, k)]


def test_projections_and_their_adjoint_against_brute_force():
    rng = np.random.default_rng(1)
    projections = Projections(AllCells(DOMAIN), tuple(cliques()))
    table = rng.random(DOMAIN.shape())
    found = projections.project(table.ravel())
    for clique, marginal in zip(cliques(), projections.split(found), strict=True):
        np.testing.assert_allclose(marginal, table.sum(axis=axes(clique)))
    potentials = rng.normal(size=found.size)
    lifted = projections.lift(potentials)
    # ⟨lift θ, x⟩ = ⟨θ, project x⟩ for every x.
    assert lifted @ table.ravel() == pytest.approx(potentials @ found)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(cliques()), st.floats(0.5, 50)), min_size=1, max_size=6))
def test_interactions_say_what_the_measurements_said(listed):
    """The squared error of all measurements is that of the interactions, up to a constant in the histogram."""
    rng = np.random.default_rng(2)
    told = [Measurement(c, rng.normal(size=DOMAIN.shape(c)) * 9, v) for c, v in listed]
    parts = interactions_of(told)

    def by_tables(p):
        return sum(float(((p.sum(axis=axes(m.clique)) - m.counts) ** 2).sum()) / m.variance for m in told)

    def by_parts(p):
        return sum(
            float(((centred(p.sum(axis=axes(u.clique))) - u.counts) ** 2).sum()) / u.variance for u in parts
        )

    one, two = rng.random((2, *DOMAIN.shape())) * 5
    assert by_tables(one) - by_tables(two) == pytest.approx(by_parts(one) - by_parts(two), rel=1e-6, abs=1e-6)


def fitted(told, **given):
    return maximum_entropy(DOMAIN, interactions_of(told), rows=4000, entropy=ENTROPY, **given)


def test_the_fit_is_a_stationary_point_and_warm_starts_agree():
    rng = np.random.default_rng(3)
    table, told = histogram(), []
    for clique in PAIRS:
        told.append(
            Measurement(
                clique, table.sum(axis=axes(clique)) + 20 * rng.normal(size=DOMAIN.shape(clique)), 400.0
            )
        )
    cold = fitted(told, passes=2000, tolerance=1e-5)
    assert cold.histogram.sum() == pytest.approx(1)
    half = fitted(told[:3])
    warm = fitted(told, start=half, passes=2000, tolerance=1e-5)
    np.testing.assert_allclose(warm.histogram, cold.histogram, atol=1e-5)
    for part in interactions_of(told):
        if part.clique:
            found = 4000 * centred(cold.project(part.clique))
            pull = found - part.counts
            ridge = ENTROPY * part.variance / np.exp(np.mean(np.log(_variances(told)))) ** 0.5
            np.testing.assert_allclose(pull, -ridge * cold.potentials[part.clique], atol=1e-2)


def _variances(told):
    return np.concatenate([np.full(u.counts.size, u.variance) for u in interactions_of(told) if u.clique])


def test_without_measurements_the_model_is_uniform():
    model = maximum_entropy(DOMAIN, [], rows=10, entropy=ENTROPY)
    np.testing.assert_allclose(model.project(("a", "c")), 1 / 8)
    with pytest.raises(ParameterError, match="noise"):
        interactions_of([Measurement(("a",), np.ones(2), 0.0)])
    np.testing.assert_allclose(EntropyFit.uniform(DOMAIN).histogram, 1 / 48)


def test_fitting_beats_the_noise_that_it_was_given():
    run = make(epsilon=0.5, delta=1e-6)
    outcome = mwem(run)
    truth = [run.curator._truth.count(clique) for clique in PAIRS]
    fitted = np.mean([np.abs(a.counts - t).mean() for a, t in zip(outcome.answers, truth, strict=True)])
    plain = make(epsilon=0.5, delta=1e-6, seed=2)
    noisy = plain.measure("all", [Marginal(DOMAIN, c) for c in PAIRS], plain.price(Fraction(1, 6)))
    raw = np.mean([np.abs(a.value - t).mean() for a, t in zip(noisy, truth, strict=True)])
    assert fitted < 0.8 * raw


# ---------------------------------------------------------------------------------------- error bars


@pytest.mark.parametrize("options", [{}, {"rounds": 2, "per_round": 2}])
@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_bars_hold_jointly_and_narrower_ones_do_not(options, neighbours):
    """Half of a bar is room: a union bound over all cells, and answers that the fit brings nearer to the truth."""
    runs = [make(seed=seed, neighbours=neighbours) for seed in range(40)]
    assert_covers([furthest(run, mwem(run, passes=40, **options)) for run in runs], 0.05, mutant=0.45)


def test_what_each_bar_rests_on():
    everything = mwem(make())
    assert {answer.basis for answer in everything.answers} == {"measured"}
    some = mwem(make(), rounds=2, per_round=1)
    bases = [answer.basis for answer in some.answers]
    assert set(bases) == {"measured", "bounded"}
    assert bases.count("bounded") == some.proof["unmeasured"]
    assert all(np.isfinite(answer.error).all() and (answer.error < inf).all() for answer in some.answers)


def test_answers_stay_near_what_was_measured():
    rng = np.random.default_rng(4)
    truth = rng.random((10, 10)) * 500
    noisy = truth + 5 * rng.normal(size=truth.shape)
    np.testing.assert_allclose(limited(noisy, truth, 25.0), truth, atol=5)
    far = limited(noisy, truth + 100, 25.0)
    np.testing.assert_allclose(far, noisy + 15)
    np.testing.assert_array_equal(limited(noisy, noisy, 25.0), noisy)


def test_no_bound_smaller_than_the_gap():
    """A marginal whose gap is measured to be small still carries the noise of that measurement."""
    outcome = mwem(make(epsilon=10), rounds=1, per_round=1)
    bars = [answer.error.max() for answer in outcome.answers if answer.basis == "bounded"]
    assert min(bars) > 0.5


# ---------------------------------------------------------------------------------------- prices


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("options", [{}, {"rounds": 2}, {"per_round": 2}, {"rounds": 3, "per_round": 2}])
@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_steps_cost_what_the_ledger_spent_and_nearly_the_whole_price(delta, options, neighbours):
    run = make(delta=delta, neighbours=neighbours)
    outcome = mwem(run, passes=5, **options)
    ledger = run.curator.ledger
    assert sum(step.cost.units for step in run.steps) == ledger.spent.units == run.spent.units
    # A bound is bought only for what was not measured; and prices are rounded down to whole units.
    unspent = 0 if outcome.proof["unmeasured"] else outcome.proof["shares"]["bound"]
    assert 0 <= ledger.remaining.units <= unspent * ledger.budget.cap.units + 10**6


def test_the_shares_sum_to_one():
    for rounds, per_round in ((None, None), (2, 2), (None, 1), (4, None), (1, 99)):
        plan = shares(make(), rounds, per_round)
        assert plan.total + plan.first + plan.select + plan.measure + plan.bound == 1
        assert plan.per_round <= len(PAIRS)
    assert shares(make(neighbours=REPLACE), None, None).measure == 1


def test_a_pure_release_may_be_paid_from_a_ledger_of_rho():
    books = MemoryLedger(Budget.of(3, 1e-6))
    run = make(delta=0, ledger=books)
    outcome = mwem(run, rounds=2, per_round=2, passes=20)
    assert covered(run, outcome)
    assert books.spent.units == sum(step.cost.units for step in run.steps)


def test_average_is_the_mean_of_the_rounds():
    last = mwem(make(seed=3), rounds=3, per_round=1)
    mean = mwem(make(seed=3), rounds=3, per_round=1, average=True)
    assert last.rows == mean.rows
    assert np.abs(last.standin.project(("a", "b")) - mean.standin.project(("a", "b"))).max() > 1e-6
    np.testing.assert_allclose(mean.standin.project(DOMAIN.names).sum(), 1)


def test_the_number_of_rows_is_public_or_bought():
    assert mwem(make(neighbours=REPLACE)).rows == 4000
    bought = mwem(make(epsilon=2))
    assert bought.rows != 4000
    assert abs(bought.rows - 4000) <= 2 * bought.proof["rows_error"]
    bounded = mwem(make(epsilon=2, rows_at_least=4000, rows_at_most=4000))
    assert bounded.rows == 4000


# ---------------------------------------------------------------------------------------- refusals, resumption


def test_too_many_cells_are_refused_before_the_first_debit():
    wide = Domain(tuple(Bins.integers(f"x{i}", 0, 1) for i in range(28)))
    truth = Rows(wide, np.zeros((28, 4), np.int64))
    run = run_over(truth, Workload.of(wide, [("x0", "x1")]), delta=1e-6)
    with pytest.raises(TooLargeError, match="adaptive") as refused:
        mwem(run)
    assert refused.value.cells == 2**28
    assert run.curator.ledger.spent.units == truth.looks == 0


def test_other_refusals():
    for options in ({"rounds": 0}, {"per_round": 0}, {"rounds": 1.5}, {"passes": 0}):
        run = make()
        with pytest.raises(ParameterError):
            mwem(run, **options)
        assert run.curator._truth.looks == 0
    with pytest.raises(InsufficientBudgetError):
        mwem(make(epsilon=1, ledger=MemoryLedger(Budget.of(0.5, 1e-6))))


@pytest.mark.parametrize("options", [{}, {"rounds": 2, "per_round": 2}])
def test_a_run_killed_at_any_step_is_resumed_for_nothing(options):
    whole = make(seed=5)
    expected = mwem(whole, passes=40, **options)
    looks = whole.curator._truth.looks
    for kill_at in range(looks):
        books = MemoryLedger(Budget.of(100, 1e-6))
        first = make(seed=5, ledger=books)
        first.curator._truth.dies_at = kill_at  # after the debit, before the draw
        with pytest.raises(Killed):
            mwem(first, passes=40, **options)
        first.curator._truth.dies_at = None
        second = Run(first.curator, PAIRS, first.budget, "r")
        assert same(mwem(second, passes=40, **options), expected)
        assert books.spent.units == whole.curator.ledger.spent.units


# ---------------------------------------------------------------------------------------- real data

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.mark.skipif(not (DATA / "nltcs.csv").exists(), reason="the nltcs table is not beside the project")
@pytest.mark.slow("ten CPU seconds")
def test_nltcs_all_triples():
    sizes = json.loads((DATA / "nltcs-domain.json").read_text())
    domain = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in sizes.items()))
    table = pa.csv.read_csv(DATA / "nltcs.csv")
    truth = Truth(in_memory(table), domain)
    workload = Workload.all_marginals(domain, 3)
    run = run_over(truth, workload, delta=1e-9, neighbours=ADD)
    outcome = mwem(run)
    exact = truth.counts(workload)
    errors = [(a.counts / outcome.rows - exact[a.clique] / 21574) for a in outcome.answers]
    assert np.mean([np.abs(e).sum() / 2 for e in errors]) <= 0.010
    assert max(np.abs(e).max() for e in errors) <= 0.02
    assert covered(run, outcome)


def test_one_attribute_is_a_table_too():
    domain = Domain((Bins.integers("a", 0, 3),))
    told = [Measurement(("a",), np.array([40.0, 30, 20, 10]), 1.0)]
    model = maximum_entropy(domain, interactions_of(told), rows=100, entropy=ENTROPY)
    np.testing.assert_allclose(model.project(("a",)), [0.4, 0.3, 0.2, 0.1], atol=0.01)
