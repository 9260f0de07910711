"""The adaptive release: prices, resumption, public decisions, error bars, limits, and what it learns."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np
import pandas as pd
import pytest

import understudy as us
from adaptive_table import (
    ADD,
    BINARY,
    DOMAIN,
    REPLACE,
    SIZES,
    TRIPLES,
    codes,
    independent,
    make,
    mean_tvd,
)
from counted import Cells, Killed, Rows
from hash_orders import printed_in_every_order
from release_runs import covered, furthest, same
from statistical import assert_covers
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Unit
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    RefusedError,
    SourceError,
    TooLargeError,
)
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.query.workload import Workload
from understudy.releases import stored
from understudy.releases.adaptive import adaptive as adaptive_module
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.rows import ANSWERED
from understudy.releases.adaptive.rule import Rule, rule_for
from understudy.releases.evidence import Evidence
from understudy.releases.forecast_errors import of_adaptive
from understudy.releases.release import Release
from understudy.releases.run import Outcome, Progress, Run
from understudy.standin.graphical.model import Constraint
from understudy.standin.local_fit import EVEN, LocalSlack

# ---------------------------------------------------------------------------------------- prices


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", [0.05, 1, 20])
def test_charges_are_the_sum_of_events_and_within_the_price(neighbours, epsilon):
    run = make(epsilon=epsilon, neighbours=neighbours)
    adaptive(run)
    ledger = run.curator.ledger
    events = [debit.event for debit in ledger.debits()]
    total = ledger.budget.total(events)
    assert total.units == run.spent.units == ledger.spent.units
    assert total.units <= ledger.budget.cap.units
    assert total.units >= ledger.budget.cap.units * 0.999


def _with_nothing_to_look_at(epsilon=0.03, seed=0, neighbours=REPLACE, **given) -> Run:
    """A run in which all values are rare: noise is wider than the table is long."""
    return make(table=codes(rows=800, seed=seed), epsilon=epsilon, seed=seed, neighbours=neighbours, **given)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_where_no_pair_is_left_to_look_at_the_columns_get_the_whole_price(neighbours):
    run = _with_nothing_to_look_at(neighbours=neighbours)
    outcome = adaptive(run)
    rows = ["rows"] if neighbours is ADD else []
    assert list(dict.fromkeys(step.name for step in run.steps)) == [*rows, "first", "first again"]
    cap = run.curator.ledger.budget.cap.units
    assert cap - 2 * len(DOMAIN) <= run.spent.units <= cap
    assert outcome.proof["rounds"] == 0
    assert sum(outcome.proof["shares"].values()) == pytest.approx(0.99 if rows else 1)
    assert list(outcome.proof["shares"]) == ["first", "first again"]
    told = outcome.proof["bars"]
    assert sum(told["beta"].values()) == pytest.approx(float(run.beta))
    assert told["one_way"].startswith("both own measurements")
    assert "measured_in_rounds" not in told


def test_columns_that_are_measured_again_are_nearer_than_by_the_first_measurement_alone():
    near, alone = [], []
    for seed in range(12):
        workload = Workload.all_marginals(DOMAIN, 2)
        run = _with_nothing_to_look_at(seed=seed, workload=workload, epsilon=0.1)
        usual = rule_for(DOMAIN, workload, precision=Evidence(run).precision(run.total), rows=800)
        rule = replace(usual, first=Fraction(2, 5))  # so that most is left for the second measurement
        found = {a.clique: a for a in adaptive(run, rule=rule).also if len(a.clique) == 1}
        assert [step.name for step in run.steps if "again" in step.name]
        first = {clique: run.steps[i] for i, clique in enumerate(found)}
        assert all(step.name == "first" for step in first.values())
        for clique, answer in found.items():
            near.append(np.abs(answer.counts - run.curator._truth.count(clique)).mean())
            noise = Evidence(run).noise(Price("rho", first[clique].cost.amount))
            alone.append(0.8 * float(noise.variance) ** 0.5)
    assert np.mean(near) < 0.6 * np.mean(alone)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_a_workload_of_columns_spends_the_whole_price_and_tells_of_no_rounds(neighbours):
    run = make(workload=Workload.all_marginals(DOMAIN, 1), neighbours=neighbours)
    outcome = adaptive(run)
    cap = run.curator.ledger.budget.cap.units
    assert cap - 2 * len(DOMAIN) <= run.spent.units <= cap
    assert outcome.proof["shares"] == {"first": 0.99 if neighbours is ADD else 1.0}
    assert outcome.proof["rounds"] == 0
    assert "all tables" not in outcome.proof["bars"]["one_way"]


def test_a_sweep_with_columns_of_one_group_whose_rows_are_public_measures_the_others():
    sizes = (1, 1, 2, 2)
    domain = Domain(tuple(Bins.integers(f"c{i}", 0, n - 1) for i, n in enumerate(sizes)))
    table = codes(rows=30_000, sizes=sizes)
    run = make(domain=domain, workload=Workload.all_marginals(domain, 2), table=table, neighbours=REPLACE)
    outcome = adaptive(run)
    assert run.steps[-1].name == "guard"
    told = {a.clique: a.counts for a in outcome.answers}
    assert told["c0", "c1"].tolist() == [[30_000.0]]


def test_a_unit_of_several_rows_pays_for_all_of_them():
    one = make(seed=4)
    many = make(seed=4, unit=Unit("person", 3))
    outcome = adaptive(many)
    assert many.spent.units <= many.budget.cap.units
    largest = [max(float(a.error.max()) for a in o.answers) for o in (adaptive(one), outcome)]
    assert largest[1] > largest[0]


def test_what_cannot_be_paid_is_refused_before_the_first_step():
    ledger = MemoryLedger(Budget.of(0.5, 1e-6))
    run = make(epsilon=1, ledger=ledger)
    with pytest.raises(InsufficientBudgetError):
        adaptive(run)
    assert run.curator._truth.looks == 0
    assert not ledger.debits()


@pytest.mark.parametrize(
    ("epsilon", "neighbours"), [(1e-5, ADD), (1e-6, ADD), (1e-6, REPLACE), (1e-7, REPLACE)]
)
def test_a_price_that_buys_no_column_is_refused_in_words_before_anything_is_counted(epsilon, neighbours):
    """By the release, and by its dry run: each column, and a private number of rows, takes a least rho."""
    for begin in (adaptive, lambda run: of_adaptive(run, {})):
        run = make(epsilon=epsilon, neighbours=neighbours)
        if neighbours is ADD:
            run.curator.declaration = replace(run.curator.declaration, rows_at_least=6000)
        with pytest.raises(RefusedError, match="more noise than can be drawn"):
            begin(run)
        assert (run.spent.units, run.curator._truth.looks) == (0, 0)


def test_a_pure_budget_is_refused_with_methods_that_would_work():
    run = make(delta=0)
    with pytest.raises(RefusedError, match="mwem"):
        adaptive(run)
    assert run.curator._truth.looks == 0


# ---------------------------------------------------------------------------------------- resumption


@pytest.mark.parametrize(("epsilon", "neighbours"), [(1, ADD), (1, REPLACE), (0.1, ADD), (0.2, REPLACE)])
def test_a_run_that_was_killed_at_any_step_goes_on(epsilon, neighbours):
    """With a last sweep over pairs, and with one that is there for their bars."""
    whole = make(epsilon=epsilon, neighbours=neighbours)
    expected = adaptive(whole)
    looks = whole.curator._truth.looks
    for last in range(looks):
        ledger = MemoryLedger(Budget.of(epsilon, 1e-6))
        given = {"epsilon": epsilon, "neighbours": neighbours, "ledger": ledger}
        first = make(truth=Rows(DOMAIN, codes(), dies_at=last), **given)
        with pytest.raises(Killed):
            adaptive(first)
        again = make(**given)
        again.curator._noise = first.curator._noise  # the noise goes on where it was
        again.check_affordable = lambda worst: None
        assert same(adaptive(again), expected)
        assert ledger.spent.units == whole.curator.ledger.spent.units


# ---------------------------------------------------------------------------------------- public decisions


@pytest.mark.parametrize(("epsilon", "neighbours"), [(0.1, ADD), (1, ADD), (1, REPLACE), (10, ADD)])
def test_decisions_depend_on_released_values_alone(epsilon, neighbours):
    """Another table with the same released values asks the same questions, to the last step."""
    ledger = MemoryLedger(Budget.of(epsilon, 1e-6))
    run = make(epsilon=epsilon, neighbours=neighbours, ledger=ledger)
    expected = adaptive(run)
    other = Rows(DOMAIN, np.roll(codes(seed=9), 1, axis=1), dies_at=0)  # all answers are in the ledger
    again = make(epsilon=epsilon, neighbours=neighbours, ledger=ledger, truth=other)
    again.check_affordable = lambda worst: None
    assert same(adaptive(again), expected)
    assert [s.name for s in again.steps] == [s.name for s in run.steps]


def test_another_process_comes_to_the_same_bits():
    """A killed run is resumed by repeating its arithmetic, in a process that orders sets in another way."""
    code = (
        "from hashlib import sha256\n"
        "from adaptive_table import make\n"
        "from understudy.releases.adaptive.adaptive import adaptive\n"
        "told = [adaptive(make(epsilon=price)) for price in (0.1, 1, 20)]\n"
        "every = [a for outcome in told for a in (*outcome.answers, *outcome.also)]\n"
        "print(sha256(b''.join(a.counts.tobytes() + a.error.tobytes() for a in every)).hexdigest())\n"
    )
    assert len(printed_in_every_order(code)) == 1


def test_under_add_remove_the_number_of_rows_is_never_taken(monkeypatch):
    def never(self):
        raise AssertionError("the number of rows is private")

    monkeypatch.setattr(Curator, "rows", property(never))
    run = make()
    outcome = adaptive(run)
    assert outcome.rows == pytest.approx(6000, rel=0.05)
    assert run.steps[0].name == "rows"


@pytest.mark.parametrize("bounds", [{}, {"rows_at_least": 5990}, {"rows_at_most": 6010}])
def test_the_number_of_rows_is_within_its_error_and_its_bounds(bounds):
    for seed in range(5):
        outcome = adaptive(make(seed=seed, **bounds))
        assert abs(outcome.rows - 6000) <= outcome.proof["rows_error"]
        assert bounds.get("rows_at_least", 0) <= outcome.rows <= bounds.get("rows_at_most", inf)
    public = adaptive(make(neighbours=REPLACE))
    assert (public.rows, public.proof["rows_error"]) == (6000, 0)


# ---------------------------------------------------------------------------------------- error bars

RUNS = 12
"""Nine failures of a promise kept 19 times in 20 are seen, at one false alarm in 10^9."""


# β is shared by rounds, and by marginals and cells in each: little noise comes near a bar, and a dozen runs only
# tell where three quarters of them are.
@pytest.mark.parametrize(
    ("epsilon", "neighbours", "mutant"), [(0.1, ADD, 0.35), (1, REPLACE, 0.4), (30, ADD, 0.55)]
)
def test_error_bars_hold_jointly(epsilon, neighbours, mutant):
    ratios = []
    for seed in range(RUNS):
        run = make(epsilon=epsilon, seed=seed, neighbours=neighbours)
        outcome = adaptive(run)
        assert all(np.isfinite(a.error).all() and a.basis in ("measured", "bounded") for a in outcome.answers)
        ratios.append(furthest(run, outcome))
    assert_covers(ratios, 0.05, mutant=mutant)


# What is told is nearer than the noise that bars are made for, as a column's values together say more than each.
def test_error_bars_of_columns_that_are_measured_again_hold_jointly():
    ratios = []
    for seed in range(RUNS):
        run = _with_nothing_to_look_at(seed=seed)
        outcome = adaptive(run)
        assert outcome.proof["rounds"] == 0
        assert all(np.isfinite(a.error).all() for a in outcome.answers)
        ratios.append(furthest(run, outcome))
    assert_covers(ratios, 0.05, mutant=0.2)


def test_error_bars_of_a_sweep_hold_jointly():
    pairs = Workload.all_marginals(BINARY, 2)
    ratios = []
    for seed in range(RUNS):
        table = codes(rows=30_000, seed=seed, sizes=BINARY.shape())
        run = make(epsilon=1, seed=seed, domain=BINARY, workload=pairs, table=table)
        outcome = adaptive(run)
        assert {a.basis for a in outcome.answers} == {"measured"}
        ratios.append(furthest(run, outcome))
    assert_covers(ratios, 0.05, mutant=0.45)


# ---------------------------------------------------------------------------------------- limits


def test_memory_caps_the_tree_before_anything_is_spent():
    run = make(epsilon=20)
    seen: list[Progress] = []
    run.report = seen.append
    outcome = adaptive(run, memory=40 * TRIPLES.queries + 400 * 1000)
    assert outcome.proof["most_cells"] <= 1000
    told = [p.details["cells"] for p in seen if p.details]
    assert told
    assert max(told) <= 1000
    poor = make()
    with pytest.raises(TooLargeError):
        adaptive(poor, memory=1000)
    assert poor.curator._truth.looks == 0


@pytest.mark.parametrize("bad", [{"memory": 0}, {"seconds": 0}, {"seconds": inf}])
def test_limits_must_be_positive(bad):
    with pytest.raises(ParameterError):
        adaptive(make(neighbours=REPLACE), **bad)


def test_cliques_beyond_the_tree_still_teach():
    """With a tree that holds next to nothing, answers follow the measurements outside of it, and so do rows."""
    base = {"growth": 1.3, "merge": 0.0, "most": 20, "triples": True, "guard": Fraction(0), "guard_order": 0}
    rule = Rule(first=Fraction(1, 10), select=Fraction(5, 100), rounds=4, cells=70, **base)
    run = make(epsilon=20)
    outcome = adaptive(run, rule=rule)
    assert outcome.proof["outside_the_tree"] > 2
    product = mean_tvd(run, independent(run))
    assert mean_tvd(run, outcome) < 0.4 * product
    assert _rows_tvd(run, outcome) < 0.5 * product


def test_the_slack_of_answers_changes_no_request(monkeypatch):
    """A tree of single attributes: gaps and picks follow the stand-in, which has the even slack until the end."""
    base = {"growth": 1.3, "merge": 0.0, "most": 20, "triples": True, "guard": Fraction(0), "guard_order": 0}
    rule = Rule(first=Fraction(1, 10), select=Fraction(5, 100), rounds=4, cells=20, **base)
    ledger, told = MemoryLedger(Budget.of(20, 1e-6)), []
    for slack in (ANSWERED, EVEN, LocalSlack(share=400.0)):
        monkeypatch.setattr(adaptive_module, "ANSWERED", slack)
        truth = Rows(DOMAIN, codes(), dies_at=0) if told else None  # from the second on, all is in the ledger
        run = make(epsilon=20, ledger=ledger, truth=truth)
        run.check_affordable = lambda worst: None
        outcome = adaptive(run, rule=rule)
        assert outcome.proof["outside_the_tree"] > 2
        assert covered(run, outcome)
        told.append(np.concatenate([a.counts.ravel() for a in outcome.answers]))
    near, far = (np.abs(other - told[1]).sum() for other in (told[0], told[2]))
    assert 0 < near < far


def test_a_sweep_over_triples_teaches_the_stand_in_their_pairs():
    """A tree of single attributes: what is asked of the stand-in beyond the workload follows the swept pairs."""
    base = {
        "growth": 1.3,
        "merge": 0.0,
        "most": 1,
        "triples": True,
        "guard": Fraction(7, 10),
        "guard_order": 0,
    }
    rule = Rule(first=Fraction(1, 10), select=Fraction(5, 100), rounds=1, cells=20, **base)
    run = make(epsilon=20)
    standin, truth = adaptive(run, rule=rule).standin, run.curator._truth
    product = mean_tvd(run, independent(run))
    wide = run.domain.names[:4]
    exact = truth.count(wide) / truth.rows
    assert 0.5 * np.abs(standin.project(wide) - exact).sum() < 0.5 * product
    for pair in combinations(run.domain.names, 2):
        assert 0.5 * np.abs(standin.project(pair) - truth.count(pair) / truth.rows).sum() < 0.05


# ---------------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize("epsilon", [0.3, 20])
def test_the_stand_in_is_the_same_when_it_is_read_back(epsilon):
    rule = None
    if epsilon > 1:  # a tree that leaves measurements outside
        base = {
            "growth": 1.3,
            "merge": 0.0,
            "most": 20,
            "triples": True,
            "guard": Fraction(0),
            "guard_order": 0,
        }
        rule = Rule(first=Fraction(1, 10), select=Fraction(5, 100), rounds=4, cells=70, **base)
    standin = adaptive(make(epsilon=epsilon), rule=rule).standin
    arrays = stored.as_arrays(standin, lambda: pytest.fail("no rows are needed"))
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        again = stored.from_arrays(DOMAIN, dict(read))
    assert len(again.outside) == len(standin.outside)
    assert bool(standin.outside) == (rule is not None)
    for clique in TRIPLES:
        assert np.array_equal(again.project(clique), standin.project(clique))
    assert again.slack == standin.slack == ANSWERED
    first = {name: array for name, array in arrays.items() if name != "slack"} | {"adaptive": np.array(1)}
    assert stored.from_arrays(DOMAIN, first).slack == EVEN
    with pytest.raises(SourceError, match="damaged"):
        stored.from_arrays(DOMAIN, {**arrays, "slack": np.array([1.6, 0.5])})
    drawn = [s.sample_codes(500, rng=np.random.default_rng(1)) for s in (standin, again)]
    assert all(np.array_equal(drawn[0][name], drawn[1][name]) for name in DOMAIN.names)
    with pytest.raises(SourceError, match="another version"):
        stored.from_arrays(DOMAIN, {**arrays, "adaptive": np.array(stored.ADAPTIVE_FORMAT + 1)})
    with pytest.raises(SourceError, match="another domain"):
        stored.from_arrays(BINARY, arrays)


# ---------------------------------------------------------------------------------------- what it learns


def _rows_tvd(run: Run, outcome: Outcome) -> float:
    drawn = outcome.standin.sample_codes(6000, rng=np.random.default_rng(3))
    synthetic = Rows(run.domain, np.stack([drawn[name] for name in run.domain.names]))
    truth = run.curator._truth
    return float(
        np.mean(
            [
                0.5 * np.abs(synthetic.count(c) / 6000 - truth.count(c) / truth.rows).sum()
                for c in run.workload
            ]
        )
    )


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_far_better_than_independent_attributes_in_answers_and_in_rows(neighbours):
    run = make(epsilon=2, neighbours=neighbours)
    outcome = adaptive(run)
    product = mean_tvd(run, independent(run))
    assert mean_tvd(run, outcome) < 0.35 * product
    assert _rows_tvd(run, outcome) < 0.4 * product


def test_rows_follow_the_answers_of_the_stand_in():
    run = make(epsilon=10)
    outcome = adaptive(run)
    for clique in combinations(DOMAIN.names, 2):
        rates = outcome.standin.project(clique)
        assert rates.sum() == pytest.approx(1)
        assert (rates >= 0).all()
        assert rates.shape == DOMAIN.shape(clique)
    drawn = outcome.standin.sample_codes(20_000, rng=np.random.default_rng(5))  # type: ignore[attr-defined]
    again = outcome.standin.sample_codes(20_000, rng=np.random.default_rng(5))  # type: ignore[attr-defined]
    for name in DOMAIN.names:
        assert np.array_equal(drawn[name], again[name])
        rates = np.bincount(drawn[name], minlength=DOMAIN[name].size) / 20_000
        assert np.abs(rates - outcome.standin.project((name,))).max() < 0.01


def test_constraints_are_respected():
    allowed = np.ones((2, 3), bool)
    allowed[0, 2] = False
    table = codes()
    kept = table[:, ~((table[0] == 0) & (table[1] == 2))]
    run = make(table=kept)
    outcome = adaptive(run, constraints=(Constraint(("a0", "a1"), allowed),))
    assert outcome.standin.project(("a0", "a1"))[0, 2] == pytest.approx(0, abs=1e-12)
    drawn = outcome.standin.sample_codes(3000, rng=np.random.default_rng(1))  # type: ignore[attr-defined]
    assert not ((drawn["a0"] == 0) & (drawn["a1"] == 2)).any()


def test_what_no_constraint_speaks_of_is_still_merged():
    allowed = np.ones((2, 3), bool)
    allowed[0, 2] = False
    table = codes(rows=1500)
    kept = table[:, ~((table[0] == 0) & (table[1] == 2))]
    standin = adaptive(
        make(epsilon=0.3, table=kept), constraints=(Constraint(("a0", "a1"), allowed),)
    ).standin
    assert standin.merging.coarse.shape()[:2] == (2, 3)
    assert standin.merging.coarse.size() < DOMAIN.size()


@pytest.mark.parametrize("order", [1, 2, 4])
def test_workloads_of_any_order(order):
    workload = Workload.all_marginals(DOMAIN, order)
    run = make(epsilon=5, workload=workload)
    outcome = adaptive(run)
    assert [a.clique for a in outcome.answers] == list(workload)
    assert covered(run, outcome)
    assert run.spent.units >= run.budget.cap.units * 0.99
    if order > 1:
        assert mean_tvd(run, outcome) < 0.5 * mean_tvd(run, independent(run))


def test_progress_tells_what_was_spent_and_held():
    run = make()
    seen: list[Progress] = []
    run.report = seen.append
    adaptive(run)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].spent <= float(run.total)
    assert seen[-1].done == seen[-1].of  # the bar comes to its end
    assert {"measured", "cells"} <= set(seen[-1].details)
    said = [p.what for p in seen]
    assert said[:2] == ["measuring the number of rows", "fitting the stand-in"]
    assert "round 1: choosing what to measure" in said
    assert "fitting the stand-in" in said


def test_an_empty_table_is_released_like_any_other():
    run = make(table=np.zeros((len(SIZES), 0), np.int64))
    outcome = adaptive(run)
    assert all(np.isfinite(a.counts).all() for a in outcome.answers)


def test_an_empty_table_whose_values_are_not_merged_is_released_too():
    """Where a constraint keeps values apart, and the number of rows, 0, is public."""
    domain = Domain((Bins.integers("a", 0, 1), Bins.integers("b", 0, 4)))
    allowed = np.ones((2, 5), bool)
    allowed[0, 0] = False
    run = make(
        table=np.zeros((2, 0), np.int64),
        domain=domain,
        workload=Workload.all_marginals(domain, 2),
        epsilon=100,
        neighbours=REPLACE,
    )
    outcome = adaptive(run, constraints=(Constraint(("a", "b"), allowed),))
    assert all((a.counts == 0).all() for a in outcome.answers)


def test_a_sweep_that_no_round_comes_before_has_all_that_is_left():
    """Every value is rare, and each attribute is one group: no round can measure anything, or is paid for."""
    base = {
        "growth": 1.3,
        "merge": 1e9,
        "most": 9,
        "triples": True,
        "guard": Fraction(7, 10),
        "guard_order": 0,
    }
    rule = Rule(first=Fraction(1, 10), select=Fraction(5, 100), rounds=3, cells=1000, **base)
    run = make()
    outcome = adaptive(run, rule=rule)
    assert not any("gaps" in debit.request for debit in run.curator.ledger.debits())
    assert all(np.isfinite(a.counts).all() for a in outcome.answers)


@pytest.mark.parametrize("method", ["adaptive", "aim"])
def test_what_was_measured_beside_the_workload_answers_too(method, tmp_path):
    """A 1-way marginal has the error of its own measurement, not that of a hundred cells of a larger one."""
    project = us.Project.frame(pd.DataFrame(_dependent(3000)), _declared(), noise=SeededNoise(3))
    found = us.release(project, us.marginals(3), epsilon=2, method=method)
    assert found.also
    assert not {a.clique for a in found.also} & {a.clique for a in found.answers}
    told = found.answer("count by x0")
    added = min(
        answer.error.sum(axis=tuple(range(1, answer.error.ndim))).max()
        for answer in found.answers
        if answer.clique[0] == "x0"
    )
    assert told.error.max() < 0.5 * added
    exact = np.bincount(_dependent(3000)["x0"], minlength=4)
    assert (np.abs(told.value - exact) <= told.error).all()
    found.save(tmp_path / "out")
    loaded = Release.load(tmp_path / "out")
    assert len(loaded.answers) == len(found.answers)
    np.testing.assert_array_equal(loaded.answer("count by x0").error, told.error)


def _dependent(rows: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1)
    first = draw.integers(0, 4, rows)
    return {"x0": first} | {f"x{i}": (first + draw.integers(0, 2, rows)) % 4 for i in range(1, 5)}


def _declared():
    fields = "".join(f"  x{i}: {{type: integer, bounds: [0, 3]}}\n" for i in range(5))
    return parse(
        "understudy: 1\nname: t\nsource: t.csv\nneighbours: add-remove\n"
        f"budget: {{epsilon: 10, delta: 1e-9}}\nattributes:\n{fields}"
    )


@pytest.mark.parametrize(("epsilon", "neighbours"), [(2.5e-5, ADD), (1e-5, REPLACE), (1.5e-5, REPLACE)])
def test_where_rounds_cost_more_than_is_left_the_columns_get_the_whole_price(epsilon, neighbours):
    """So many people that pairs could be told, at a price of which no part buys a look at gaps."""
    table = np.zeros((2,) * 4, np.int64)
    table[0] = 10**9
    table[1, 1] = 2 * 10**9
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, 1) for i in range(4)))
    run = make(
        epsilon=epsilon,
        domain=domain,
        workload=Workload.all_marginals(domain, 3),
        truth=Cells(domain, table),
        neighbours=neighbours,
    )
    outcome = adaptive(run)
    assert outcome.proof["rounds"] == 0
    assert run.spent.units <= run.budget.cap.units
    assert covered(run, outcome)
