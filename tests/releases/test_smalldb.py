from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from release_runs import run_over
from understudy.domain.attribute import Boolean
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.relation import Neighbours
from understudy.query.family import prefixes, ranges
from understudy.query.linear import LinearQuery
from understudy.query.workload import Workload
from understudy.releases.net import net
from understudy.releases.run import Run
from understudy.releases.smalldb import obstacle, selection_price, smalldb, smalldb_look
from understudy.standin.table import SmallTable
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain((Bins.integers("age", 0, 19), Boolean(name="a"), Boolean(name="b"), Boolean(name="c")))
N = 2000


def people() -> pa.Table:
    draw = np.random.default_rng(4)
    a = draw.random(N) < 0.3
    return pa.table(
        {"age": draw.binomial(19, 0.4, N), "a": a, "b": a ^ (draw.random(N) < 0.1), "c": draw.random(N) < 0.5}
    )


PEOPLE = people()


def run(cliques, *, table=PEOPLE, **given) -> Run:
    return run_over(Truth(in_memory(table), DOMAIN), Workload.of(DOMAIN, cliques), **given)


def worst(run: Run, answer) -> float:
    return float(np.abs(answer.counts - run.curator._truth.count(answer.clique)).max())


PAIRS = [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("options", [{"alpha": 0.1}, {"size": 12}])
def test_a_release_is_within_its_certificate_and_costs_the_whole_price(options):
    one = run(PAIRS)
    outcome = smalldb(one, **options)
    assert one.curator.ledger.spent.units == UNITS
    assert [step.name for step in one.steps] == ["small database"]
    assert outcome.rows == N
    assert [answer.clique for answer in outcome.answers] == PAIRS
    for answer in outcome.answers:
        assert answer.basis == "certified"
        assert worst(one, answer) <= answer.error.max() < N
        assert answer.counts.sum() == pytest.approx(N)
        assert answer.counts == pytest.approx(outcome.standin.project(answer.clique) * N)
    proof = outcome.proof
    assert proof["m"] == outcome.standin.rows
    assert proof["classes"] == 8
    assert (proof["queries"], proof["counting"]) == (8, "enumeration")
    assert outcome.answers[0].error.max() == pytest.approx(proof["error"] * N)


def test_thresholds_are_found_by_themselves_and_cells_cost_two_of_them():
    one = run([("age",), ("a",)])
    outcome = smalldb(one, queries=prefixes(DOMAIN, "age"))
    assert outcome.proof["counting"] == "chain"
    assert outcome.proof["alpha"] == pytest.approx(1 / (2 * outcome.proof["m"]))
    age, other = outcome.answers
    assert (age.basis, other.basis) == ("certified", "uncertified")
    assert age.error.max() == pytest.approx(2 * outcome.proof["error"] * N)
    assert np.isinf(other.error).all()
    assert worst(one, age) <= age.error.max()
    truth = np.cumsum(one.curator._truth.count(("age",)))
    assert np.abs(np.cumsum(age.counts) - truth).max() <= outcome.proof["error"] * N


def test_one_marginal_is_a_hierarchy_and_its_size_is_the_best_of_all():
    one = run([("age", "a")])
    outcome = smalldb(one)
    assert outcome.proof["counting"] == "tree"
    assert outcome.proof["alpha"] <= 1 / outcome.proof["m"]
    assert worst(one, outcome.answers[0]) <= outcome.answers[0].error.max()
    assert outcome.answers[0].error.max() == pytest.approx(outcome.proof["error"] * N)


def test_thresholds_by_name_are_the_same_release_as_their_queries():
    asked = DistinctQueries.thresholds(DOMAIN, "age")
    one, other = run([("age",)]), run([("age",)])
    first, second = smalldb(one, queries=asked), smalldb(other, queries=prefixes(DOMAIN, "age"))
    assert (first.standin.counts == second.standin.counts).all()
    assert first.answers[0].error.max() == pytest.approx(second.answers[0].error.max())
    assert first.answers[0].basis == "certified"


def test_an_obstacle_is_known_for_nothing():
    one = run(PAIRS)
    assert obstacle(one) == ""
    assert "replace" in obstacle(run(PAIRS, neighbours=Neighbours.ADD_REMOVE))
    assert "constant" in obstacle(run([()]))
    assert one.curator.ledger.spent.units == 0


def test_cells_that_are_queries_cost_one():
    one = run([("age",)])
    asked = [query for query in ranges(DOMAIN, "age") if query.weights().sum() in (1, 2)]
    look, design = smalldb_look(one, queries=asked, size=2)
    assert one.curator.ledger.spent.units == 0
    outcome = smalldb(one, queries=asked, size=2)
    assert outcome.answers[0].error.max() == pytest.approx(min(design.error, 1) * N)
    assert look.size == 2


def test_the_same_run_gives_the_same_database_for_nothing():
    ledger = MemoryLedger(Budget.of(1))
    first = smalldb(run(PAIRS, ledger=ledger), size=10)
    again = smalldb(run(PAIRS, ledger=ledger, seed=99), size=10)
    assert (first.standin.counts == again.standin.counts).all()
    assert ledger.spent.units == UNITS
    with pytest.raises(InsufficientBudgetError):
        smalldb(run(PAIRS, ledger=ledger, name="two"), size=10)
    others = [smalldb(run(PAIRS, epsilon=0.01, seed=seed), size=10).standin.counts for seed in range(4)]
    assert any((counts != others[0]).any() for counts in others)


def test_the_default_size_is_the_best_that_can_be_counted():
    one = run([("a", "b")])
    outcome = smalldb(one)
    errors = [smalldb_look(run([("a", "b")]), size=size)[1].error for size in (5, 20, 60, outcome.proof["m"])]
    assert outcome.proof["error"] == min(errors)
    assert worst(one, outcome.answers[0]) <= outcome.answers[0].error.max()


def test_a_budget_with_delta_pays_by_zcdp():
    one = run(PAIRS, delta=1e-6)
    epsilon = selection_price(one)
    assert epsilon**2 / 8 <= one.total < (epsilon + Fraction(1, 10**11)) ** 2 / 8
    outcome = smalldb(one, size=10)
    assert outcome.proof["epsilon"] == float(epsilon)
    assert one.curator.ledger.remaining.units <= 10**6


def test_refusals_come_before_the_debit():
    cases = [
        (run(PAIRS, neighbours=Neighbours.ADD_REMOVE), {}, RefusedError, "neighbours: replace"),
        (run(PAIRS), {"size": 10**5}, RefusedError, "mwem"),
        (run(PAIRS), {"alpha": 1e-6}, RefusedError, "mwem"),
        (run([("age", "a"), ("age", "b")]), {"size": 30}, RefusedError, "mwem"),
        (run(PAIRS), {"alpha": 0.1, "size": 3}, ParameterError, "not both"),
        (run(PAIRS), {"alpha": 0}, ParameterError, "alpha"),
        (run(PAIRS), {"size": 0}, ParameterError, "size"),
        (run([()]), {}, QueryError, "constant"),
        (run(PAIRS, table=PEOPLE.slice(0, 0)), {}, RefusedError, "no rows"),
        (run(PAIRS), {"queries": [LinearQuery.conjunction(DOMAIN, {"a": [0.5, 1]})]}, QueryError, "0 or 1"),
    ]
    for one, options, kind, words in cases:
        with pytest.raises(kind, match=words):
            smalldb(one, **options)
        assert one.curator.ledger.spent.units == 0
        assert not one.curator.ledger.debits()


# ------------------------------------------------------------------------------- the net mechanism


def grid(parts: int) -> list[SmallTable]:
    """Every split of `parts` rows over a and b: a net for the marginal of a and b."""
    cells = [(0, a, b, 0) for a in range(2) for b in range(2)]
    return [
        SmallTable(DOMAIN, np.array(cells), np.array(split))
        for split in np.ndindex(*(parts + 1,) * 4)
        if sum(split) == parts
    ]


def test_the_net_is_within_its_certificate():
    one, databases = run([("a", "b")]), grid(10)
    outcome = net(one, databases=databases, alpha=Fraction(1, 10))
    (answer,) = outcome.answers
    assert answer.basis == "certified"
    assert worst(one, answer) <= answer.error.max() == pytest.approx(outcome.proof["error"] * N)
    assert outcome.standin is databases[outcome.proof["chosen"]]
    assert one.curator.ledger.spent.units == UNITS
    assert outcome.proof["databases"] == len(databases) == 286


def test_the_net_without_alpha_certifies_nothing():
    one = run([("a", "b")])
    outcome = net(one, databases=grid(4))
    assert outcome.answers[0].basis == "uncertified"
    assert np.isinf(outcome.answers[0].error).all()
    assert outcome.proof["error"] is None


def test_the_net_again_for_nothing_and_its_refusals():
    ledger, databases = MemoryLedger(Budget.of(1)), grid(6)
    first = net(run([("a", "b")], ledger=ledger), databases=databases)
    again = net(run([("a", "b")], ledger=ledger, seed=99), databases=databases)
    assert first.proof["chosen"] == again.proof["chosen"]
    assert ledger.spent.units == UNITS
    for one, options, kind in (
        (run([("a", "b")], neighbours=Neighbours.ADD_REMOVE), {"databases": databases}, RefusedError),
        (run([("a", "b")]), {"databases": []}, ParameterError),
        (run([("a", "b")]), {"databases": databases, "alpha": 0}, ParameterError),
    ):
        with pytest.raises(kind):
            net(one, **options)
        assert one.curator.ledger.spent.units == 0
