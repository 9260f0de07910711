"""What rounds of an adaptive release buy of residuals, and what is known of them."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_table import ADD, REPLACE, codes, make, mean_tvd
from hash_orders import printed_in_every_order
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.mechanism.matrix import many_marginals as strategies
from understudy.mechanism.matrix.one_marginal import MAX_WEIGHT
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.law import MAX_VARIANCE
from understudy.privacy.relation import Relation
from understudy.query.constraint import Constraint
from understudy.query.merging import Merging
from understudy.query.residuals import centred, parts_of
from understudy.query.workload import Workload
from understudy.releases.adaptive import learner as learning
from understudy.releases.adaptive import pick as picking
from understudy.releases.adaptive import sweep_choice as sweeps
from understudy.releases.adaptive import top_up as topping
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.known_residuals import KnownResiduals
from understudy.releases.adaptive.learner import Learner
from understudy.releases.adaptive.sweep import SweepPlan
from understudy.releases.adaptive.top_up import LEAST, TopUp, can_be_drawn, topped_up
from understudy.standin.graphical.model import FitSettings, fit
from understudy.standin.measurement import Interaction, Measurement

SIZES = {"a": 2, "b": 3, "c": 4}
DOMAIN = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in SIZES.items()))
ABC, AB, BC = ("a", "b", "c"), ("a", "b"), ("b", "c")


def taken_apart(told: Measurement) -> list[Interaction]:
    """The residuals of a table with the same noise in each cell, but for its sum."""
    found = []
    for part in parts_of(told.clique):
        gone = tuple(i for i, name in enumerate(told.clique) if name not in part)
        table = told.counts.sum(axis=gone)
        if part:
            found.append(Interaction(part, centred(table), told.variance * told.counts.size / table.size))
    return found


# ---------------------------------------------------------------------------------------- what is known


def test_what_is_known_of_a_table_is_its_best_linear_unbiased_estimate():
    """Two overlapping noisy tables: the means of residuals are generalised least squares on all numbers."""
    rng = np.random.default_rng(0)
    joint = rng.random((2, 3, 4)) * 1000
    rows = float(joint.sum())
    one = Measurement(ABC, joint + rng.normal(size=joint.shape), 1.0)
    other = Measurement(AB, joint.sum(axis=2) + 2 * rng.normal(size=(2, 3)), 4.0)
    known = KnownResiduals(DOMAIN)
    for told in (one, other):
        for residual in taken_apart(told):
            known.add(residual)
    # By brute force: 24 cells of known sum, 24 + 6 numbers, each weighted by its precision.
    sums = np.array([[float(cell[:2] == at) for cell in np.ndindex(2, 3, 4)] for at in np.ndindex(2, 3)])
    design = np.vstack([np.eye(24), sums])
    weights = np.concatenate([np.full(24, 1.0), np.full(6, 0.25)])
    told = np.concatenate([one.counts.ravel(), other.counts.ravel()])
    normal = design.T @ (weights[:, None] * design)
    free = np.linalg.solve(normal, design.T @ (weights * told))
    inverse = np.linalg.inv(normal)
    along = inverse.sum(axis=1)
    best = free + along * (rows - free.sum()) / along.sum()  # the number of rows is public
    covariance = inverse - np.outer(along, along) / along.sum()
    found = known.table(ABC, rows)
    np.testing.assert_allclose(found.counts.ravel(), best, atol=1e-8)
    assert found.variance == pytest.approx(np.diag(covariance).mean(), rel=1e-9)
    assert known.precision(AB) == pytest.approx(1 / 4 + 1 / 4)
    assert known.precision(("c",)) == pytest.approx(1 / 6)
    assert known.precision(("d",)) == 0.0


def test_attributes_of_one_group_tell_nothing_and_are_in_the_table():
    domain = Domain((Bins.integers("a", 0, 0), Bins.integers("b", 0, 2)))
    known = KnownResiduals(domain)
    known.add(Interaction(("b",), np.array([-5.0, 0.0, 5.0]), 9.0))
    found = known.table(("a", "b"), 30.0)
    np.testing.assert_allclose(found.counts, [[5.0, 10.0, 15.0]])
    assert found.variance == pytest.approx(9 * (1 - 1 / 3))


def test_tables_have_the_same_bits_in_every_process():
    """Sets of names have another order in each process, and products of three factors another last bit."""
    code = (
        "import numpy as np\n"
        "from understudy.domain.bins import Bins\n"
        "from understudy.domain.domain import Domain\n"
        "from understudy.releases.adaptive.known_residuals import KnownResiduals\n"
        "from understudy.standin.measurement import Interaction\n"
        "names = [f'a{i}' for i in range(9)]\n"
        "known = KnownResiduals(Domain(tuple(Bins.integers(n, 0, 2 + i) for i, n in enumerate(names))))\n"
        "for i in range(7):\n"
        "    clique = tuple(names[i : i + 3])\n"
        "    known.add(Interaction(clique, np.zeros(known.domain.shape(clique)), 1.1))\n"
        "    print(repr(known.table(clique, 1.0).variance))\n"
    )
    assert len(printed_in_every_order(code, ("1", "2", "3"))) == 1


def test_a_fit_to_residuals_is_the_fit_to_the_table_that_they_are_of():
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 4) * 10_000
    told = [
        Measurement(("a",), joint.sum(axis=(1, 2)) + rng.normal(size=2), 1.0),
        Measurement(("b",), joint.sum(axis=(0, 2)) + rng.normal(size=3), 1.0),
        Measurement(("c",), joint.sum(axis=(0, 1)) + rng.normal(size=4), 1.0),
        Measurement(AB, joint.sum(axis=2) + rng.normal(size=(2, 3)), 1.0),
        Measurement(BC, joint.sum(axis=0) + rng.normal(size=(3, 4)), 1.0),
    ]
    known = KnownResiduals(DOMAIN)
    for table in told:
        for residual in taken_apart(table):
            known.add(residual)
    close = FitSettings(slack_share=0.0, least_slack=1e-3, accuracy=1e-9, noise_share=0.0, most_passes=4000)
    whole = fit(DOMAIN, told, total=10_000.0, settings=close)
    parts = fit(DOMAIN, [], total=10_000.0, interactions=known.below([AB, BC]), settings=close)
    for clique in (AB, BC, ("a", "c"), ABC):
        assert 0.5 * np.abs(whole.project(clique) - parts.project(clique)).sum() < 1e-5


def test_a_fit_refuses_an_interaction_of_which_a_part_is_not_known():
    pair = Interaction(AB, np.zeros((2, 3)), 1.0)
    with pytest.raises(ParameterError, match="all sets within it"):
        fit(DOMAIN, [], total=10.0, interactions=[pair])
    with pytest.raises(ParameterError, match="shaped by its clique"):
        fit(DOMAIN, [], total=10.0, interactions=[Interaction(AB, np.zeros((3, 2)), 1.0)])


@pytest.mark.parametrize("epsilon", [1, 8])
def test_what_the_tree_is_fitted_to_is_not_learnt_once_more(monkeypatch, epsilon):
    """Parts of a measured triple have residuals in the fit, and a sweep's numbers about them are among these."""
    taught, asked, learn, lessons = [], [], Learner.learn, learning.lessons

    def spied(tables, measured, rows):
        asked.extend(told.clique for told in measured)
        return lessons(tables, measured, rows)

    monkeypatch.setattr(learning, "lessons", spied)
    monkeypatch.setattr(
        Learner, "learn", lambda self, sweep, **how: (taught.append(self), learn(self, sweep, **how))[1]
    )
    adaptive(make(epsilon=epsilon, neighbours=REPLACE))
    (learner,) = taught
    measured = [set(clique) for clique in learner.cliques if clique in learner.tree]
    assert max(map(len, measured)) == 3
    assert asked or epsilon == 1
    assert not [clique for clique in asked if any(set(clique) <= held for held in measured)]


# ---------------------------------------------------------------------------------------- what is bought


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 20), st.floats(0.1, 2)), min_size=1, max_size=8),
    st.floats(0.1, 50),
)
@settings(max_examples=60)
def test_what_is_missing_is_bought_for_the_whole_price(parts, whole):
    wanted, known, price = map(np.array, zip(*parts, strict=True))
    bought = topped_up(wanted, known, price, whole)
    assert bought @ price == pytest.approx(whole, rel=1e-9)
    # Each is the larger of two numbers that grow with s: s is the smaller of what they say of it.
    level = np.minimum((bought + known) / wanted, bought / (LEAST * wanted))
    np.testing.assert_allclose(level, level[0], rtol=1e-9)


@pytest.mark.parametrize("relation", [Relation(ADD, 1), Relation(REPLACE, 1), Relation(ADD, 3)])
def test_a_round_costs_its_price_and_is_closer_than_measuring_table_by_table(relation):
    """With the columns known, pairs that share attributes have less noise than for the same price one by one."""
    merging = Merging.none(DOMAIN)
    cliques, price = [AB, ("a", "c"), BC], Fraction(1, 100)
    known = {("a",): 1e-2, ("b",): 1e-2, ("c",): 1e-2, (): 1.0}
    whole = 2 * float(price) / (relation.max_rows**2 * (1 if relation.kind == ADD else 2))
    shares = dict.fromkeys(cliques, 1 / 3)
    top_up = TopUp(shares, whole, lambda part: known.get(part, 0.0))
    plan = SweepPlan.of(relation, merging, cliques, price, rounded=False, precisions=top_up.precisions)
    assert plan.look is not None
    assert Fraction(99, 100) * price < plan.look.rho <= price
    parts = {part.clique: float(part.precision) for part in plan.look.parts}
    bought = {clique: t * prod(SIZES[name] ** 2 for name in clique) for clique, t in parts.items()}
    for clique in cliques:
        assert bought[clique] > 1.15 * whole / 3  # a table of its own would tell its residual with a third


@given(
    st.lists(st.integers(2, 3000), min_size=2, max_size=3),
    st.integers(-40, -3),
    st.sampled_from([Relation(ADD, 1), Relation(ADD, 3), Relation(REPLACE, 1)]),
    st.booleans(),
    st.floats(0, 60),
)
@settings(max_examples=60)
def test_where_noise_is_said_to_be_drawable_the_plan_can_be_made(sizes, power, relation, alone, known):
    """One large marginal, alone or beside a small one, whose smaller residuals are known or not."""
    domain = Domain(tuple(Bins.integers(f"x{i}", 0, n - 1) for i, n in enumerate((*sizes, 2))))
    large, small, price = domain.names[:-1], domain.names[-2:], Fraction(2) ** power
    shares = {large: 1.0} if alone else {large: 0.5, small: 0.5}
    whole = 2 * float(price) / (relation.max_rows**2 * (1 if relation.kind == ADD else 2))
    told = TopUp(shares, whole, lambda part: 0.0 if part == large else whole * 2**known)
    if domain.size(large) > MAX_WEIGHT or not can_be_drawn(domain.size(large), whole * shares[large]):
        return
    plan = SweepPlan.of(
        relation, Merging.none(domain), list(shares), price, rounded=False, precisions=told.precisions
    )
    assert plan.look is not None
    assert max(1 / part.precision for part in plan.look.parts) <= MAX_VARIANCE


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("most", [1, 10])
def test_marginals_with_more_cells_than_weights_are_held_for_are_never_picked(monkeypatch, neighbours, most):
    """Where no pair can be measured, the price goes to the columns, and nothing is bought in vain."""
    for module in (picking, sweeps, strategies):
        monkeypatch.setattr(module, "MAX_WEIGHT", most)
    run = make(epsilon=1, neighbours=neighbours)
    outcome = adaptive(run)
    assert bool(outcome.proof["rounds"]) == (most == 10)
    assert run.spent.units >= 0.99 * run.budget.cap.units


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_noise_beyond_what_can_be_drawn_is_not_asked_for(neighbours):
    """Values that a constraint keeps apart, at a small epsilon: the rest of the price stays in the ledger."""
    domain = Domain((Bins.integers("a", 0, 399), Bins.integers("b", 0, 399)))
    allowed = np.ones((400, 400), bool)
    allowed[0, 0] = False
    run = make(
        table=np.ones((2, 500), np.int64),
        domain=domain,
        workload=Workload.all_marginals(domain, 2),
        epsilon=1e-3,
        neighbours=neighbours,
    )
    outcome = adaptive(run, constraints=(Constraint(("a", "b"), allowed),))
    assert [answer.clique for answer in outcome.answers] == [("a", "b")]
    assert run.curator.ledger.spent.units <= run.budget.cap.units


def test_what_is_known_already_is_not_bought_again():
    residuals = Residuals.of(Workload.of(DOMAIN, [AB]))
    scale = np.array([prod(SIZES[name] ** 2 for name in part) for part in residuals.cliques])
    for known, wants in ((0.0, "even"), (1e9, "the pair")):
        found = TopUp({AB: 1.0}, 2.0, lambda part, k=known: 0.0 if part == AB else k).precisions(residuals)
        spent = dict(zip(residuals.cliques, found * residuals.price, strict=True))
        others = {(): 6, ("a",): 3, ("b",): 2, AB: 1}
        told = dict(
            zip(residuals.cliques, found * scale * [others[c] for c in residuals.cliques], strict=True)
        )
        if wants == "even":  # the precisions of one table with the same noise in all cells
            np.testing.assert_allclose(list(told.values()), 2.0, rtol=1e-9)
        else:
            least = {c: told[c] for c in others if c != AB}
            np.testing.assert_allclose(list(least.values()), LEAST * told[AB], rtol=1e-9)
            assert told[AB] > 2.0
        assert sum(spent.values()) == pytest.approx(2.0)


def test_answers_are_nearer_than_by_buying_again_what_is_known(monkeypatch):
    """With `LEAST` at 1 a round buys everything that it wants anew, as tables measured by themselves would."""
    table = codes(rows=20_000, seed=5)
    now, before = [], []
    for seed in range(8):
        run = make(table=table, epsilon=0.3, seed=seed)
        now.append(mean_tvd(run, adaptive(run)))
        with monkeypatch.context() as patch:
            patch.setattr(topping, "LEAST", 1.0)
            run = make(table=table, epsilon=0.3, seed=seed)
            before.append(mean_tvd(run, adaptive(run)))
    assert np.mean(now) < np.mean(before)
