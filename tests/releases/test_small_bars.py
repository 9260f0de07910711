"""1-way and 2-way marginals are told with bars that are no wider than those of direct questions at one price."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf

import numpy as np
import pytest

import understudy as us
from counted import Rows
from release_runs import furthest, run_over
from statistical import assert_covers
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.mechanism.additive import noise_for
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.samplers import SeededNoise
from understudy.privacy.columns import PARTITION
from understudy.privacy.relation import Neighbours
from understudy.query.workload import Workload
from understudy.releases.adaptive.rule import SWEEP_WORKLOAD
from understudy.releases.adaptive.sweep import SweepPlan
from understudy.releases.method_choice import perform
from understudy.releases.methods import METHODS
from understudy.releases.readme import readme
from understudy.releases.report import page
from understudy.releases.residual.small_bars import with_small_bars
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Outcome, Run
from understudy.releases.small_marginals import SmallMarginals, below, direct_bars
from understudy.releases.smalldb import smalldb_look

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
SHAPES = [(2, 3, 4, 2), (12, 9, 7), (5, 4, 6, 3, 2), (2,) * 7, (1, 30, 2)]


def make(sizes, order=2, **given) -> Run:
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(sizes)))
    rng = np.random.default_rng(1)
    kind = rng.choice(4, 5000)
    columns = [rng.integers(0, n, (4, 3))[kind, rng.integers(0, 3, 5000)] for n in sizes]
    workload = Workload.all_marginals(domain, order)
    return run_over(Rows(domain, np.array(columns)), workload, **{"neighbours": REPLACE, **given})


def direct(run: Run) -> dict:
    """Every told marginal has an equal part of the price and of β: worked out without the product's own rule."""
    small = {part for c in run.workload for k in (1, 2) for part in combinations(c, k)}
    asked = len({*run.workload, *small})
    noise = noise_for((run.price(1) / asked).whole_units, run.curator.relation.moves(PARTITION))
    return {c: float(noise.error(run.beta / asked, cells=run.domain.size(c))) for c in small}


def assert_small_bars(run: Run, outcome: Outcome) -> None:
    told = {a.clique: a.half_width.max() for a in (*outcome.answers, *outcome.also)}
    for clique, most in direct(run).items():
        assert told[clique] <= most * (1 + 1e-9), clique


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sizes", SHAPES)
def test_no_bar_of_mwem_is_wider_than_a_direct_question(sizes, order, delta, neighbours):
    run = make(sizes, order, delta=delta, neighbours=neighbours)
    assert_small_bars(run, perform(run, "mwem", {"passes": 3}))
    if min(sizes) > 1:  # a public number costs nothing
        assert run.curator.ledger.remaining.units <= 10**6


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize(
    ("sizes", "order"), [(s, k) for s in SHAPES for k in (1, 2, 3) if (s, k) != (SHAPES[-1], 1)]
)
def test_no_bar_of_residual_is_wider_than_a_direct_question(sizes, order, neighbours):
    run = make(sizes, order, delta=1e-9, neighbours=neighbours)
    assert_small_bars(run, perform(run, "residual", {}))


SWEPT = [
    ((5, 4, 6, 3, 2), 2),
    ((5, 4, 6, 3, 2), 3),
    ((2,) * 7, 2),
    ((2,) * 7, 3),
    ((3, 5, 9, 2, 4, 16, 2, 7), 2),
]


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize(("sizes", "order"), SWEPT)
def test_no_bar_of_a_swept_workload_is_wider_than_a_direct_question(sizes, order, neighbours):
    run = make(sizes, order, delta=1e-9, neighbours=neighbours, epsilon=10)
    outcome = perform(run, "adaptive", {})
    assert outcome.proof["shares"]["guard"] >= SWEEP_WORKLOAD[0]
    assert_small_bars(run, outcome)


def test_a_sweep_without_more_precision_for_small_marginals_has_wider_bars(monkeypatch):
    monkeypatch.setattr(SweepPlan, "with_small_bars", lambda plan, *_: plan)
    run = make((5, 4, 6, 3, 2), 3, delta=1e-9, neighbours=ADD, epsilon=10)
    with pytest.raises(AssertionError):
        assert_small_bars(run, perform(run, "adaptive", {}))


def ratios_and_own_share(sizes, shorter, most):
    """Bars of small marginals over `shorter` times those of direct questions, and what is left of the precisions
    that are best for the triples.
    """
    run = make(sizes, 3, delta=1e-9)
    relation, residuals = run.curator.relation, Residuals.of(run.workload, total=False)
    own = residuals.precisions()
    small = {clique: shorter * bar for clique, bar in direct(run).items()}
    betas = dict.fromkeys(small, run.beta / 100)
    look = with_small_bars(residuals, own, relation, run.total, small, betas, most=most)
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), 0.0)
    bought = np.array([float(part.precision) for part in look.parts])
    at_price = own / float(own @ residuals.price) * float(bought @ residuals.price)
    return (
        max(float(tables.error(c, betas[c]).max()) / bar for c, bar in small.items()),
        (bought / at_price).min(),
    )


def test_more_precision_for_small_marginals_is_at_most_a_given_part_of_the_price():
    """Where bars cannot be so short for it, they are as near as it gets; the workload keeps the rest."""
    plain, kept = ratios_and_own_share((12, 9, 7), 0.8, 0.0)
    assert plain > 1.5
    assert kept == pytest.approx(1, rel=0.03)
    half, kept = ratios_and_own_share((12, 9, 7), 0.8, 0.5)
    assert 1 < half < plain / 1.2
    assert kept == pytest.approx(0.5, rel=0.03)
    reached, kept = ratios_and_own_share((12, 9, 7), 2.0, 0.5)
    assert reached <= 1
    assert kept > 0.6


@pytest.mark.parametrize(
    ("method", "delta"), [("mwem", 0), ("mwem", 1e-9), ("residual", 1e-9), ("adaptive", 1e-9)]
)
def test_bars_of_small_marginals_hold_jointly(method, delta):
    """Means of several sums, and marginals that are measured by themselves: (5, 4, 6) has both under a pure ε."""
    worst = []
    for seed in range(40):
        run = make((5, 4, 6), 3 if delta else 2, delta=delta, seed=seed, neighbours=ADD)
        outcome = perform(run, method, {"passes": 3} if method == "mwem" else {})
        worst.append(furthest(run, replace(outcome, answers=outcome.also)))
    assert_covers(worst, 0.05, mutant=0.4)


def test_what_is_added_up_is_fixed_by_public_numbers():
    many = SmallMarginals.of(make((2,) * 7, 3, delta=1e-9))
    assert not many.measured
    assert {len(mean.held_by) for mean in many.means} == {5, 15}  # pairs lie in 5 triples, columns in 15
    few = SmallMarginals.of(make((12, 9, 7), 3, delta=1e-9))
    assert len(few.measured) == len(below(few_workload := make((12, 9, 7), 3, delta=1e-9).workload)) == 6
    assert len(few_workload) == 1
    run = make((12, 9, 7), 3, delta=1e-9)
    assert direct_bars(run, run.workload) == {}


def test_auto_takes_a_small_database_only_where_its_bars_are_short():
    predicted = METHODS["smalldb"].predicted
    assert predicted is not None
    assert predicted(make((2, 3, 2), 2, epsilon=1)) == inf  # columns beside the pairs would not be told
    found = set()
    for epsilon in (0.001, 1):
        run = make((2, 3), 1, epsilon=epsilon)
        look, design = smalldb_look(run)
        too_wide = design.error * look.rows > min(direct(run).values())
        assert predicted(run) == (inf if too_wide else design.error * look.rows)
        found.add(too_wide)
    assert found == {True, False}


# ---- methods that measure no small marginals say so

TEXT = """\
understudy: 1
name: t
source: t.csv
budget: {epsilon: 10, delta: 1e-9}
attributes:
  a: {type: integer, edges: [0, 5, 10, 15]}
  b: {type: boolean}
"""


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("aim", {}, True),
        ("ic", {}, True),
        ("smalldb", {"size": 20}, True),
        ("mwem", {"per_round": 1, "rounds": 1}, True),
        ("mwem", {}, False),
        ("residual", {}, False),
        ("adaptive", {}, False),
    ],
)
def test_a_method_without_small_marginals_says_so(method, options, says):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 15, 3000), "b": rng.random(3000) < 0.3})
    project = us.Project.frame(frame, parse(TEXT), noise=SeededNoise(1))
    orders = [("a",), ("a", "b")] if method == "mwem" and options else [("a", "b")]
    workload = Workload.of(project.domain, orders)
    made = us.release(project, workload, epsilon=3, method=method, **options)
    words = "can be wider than those that direct questions"
    pages = [readme(made.certificate, "{}", ["README.md"]), page(made, made.draw())]
    said = [" ".join(page.split()) for page in pages]
    assert [words in page for page in said] == [says, says]
