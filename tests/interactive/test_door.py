"""Questions in words, what they cost, and what a session says about the population."""

from __future__ import annotations

import json
from math import isclose

import numpy as np
import pytest
from typer.testing import CliRunner

import understudy as us
from session_table import DOMAIN, ROWS, conjunction, curator
from understudy import town
from understudy.attribute import Categories
from understudy.cli import app
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, TooLargeError
from understudy.interactive.population import BETA, population
from understudy.interactive.terms import Terms
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.theory.cvar import cvar_V_zcdp
from understudy.theory.transfer import pure_dp_width

PRIVATE_ROWS = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}


def test_words_marginals_and_queries_ask_the_same():
    session = us.session(curator(), alpha=0.02, queries=100)
    first = session.ask("count age < 4 and sex = F")
    query = LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) < 4, "sex": np.arange(3) == 0})
    for again in (query, Marginal.of(query), "count sex = F and age <= 3"):
        answer = session.ask(again)
        assert answer.source == "repeat"
        assert answer.value == first.value


@pytest.mark.parametrize("declared", [{}, {"delta": 0.0}, PRIVATE_ROWS])
def test_shares_are_rates_and_hold(declared):
    one = curator(**declared)
    session = us.session(one, alpha=0.03, queries=100)
    for text, sides in {"share age < 4": {"age": np.arange(10) < 4}, "share": {}}.items():
        answer = session.ask(text)
        exact = one._truth.sums(conjunction(**sides)) / ROWS
        assert abs(answer.value - exact) <= answer.error + 1e-12
        assert answer.error <= 0.07
    assert session.ask("share by sex").value.sum() == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("declared", [{}, PRIVATE_ROWS])
def test_a_statement_is_answered_from_its_marginals(declared):
    one = curator(**declared)
    session = us.session(one, alpha=0.02, queries=100)
    text = "SELECT sex, count(*) AS people, avg(age) FROM t WHERE town = 'a' GROUP BY sex"
    quoted, before = session.price(text), one.ledger.spent.units
    answer = session.ask(text)
    assert answer.cost.units == one.ledger.spent.units - before <= quoted.units
    exact = one._truth.sums(Marginal(DOMAIN, ("sex",), conjunction(town=np.arange(6) == 0).where))
    for i, (_, people, _) in enumerate(answer.cells[:2]):
        assert people.low <= exact[i] <= people.high
    assert session.price(text).units == 0
    assert session.ask(text).rows == answer.rows


def test_a_statement_after_the_budget_has_no_bounds_worth_the_name():
    session = us.session(curator(epsilon=0.01), alpha=0.01, queries=100)
    answer = session.ask("SELECT count(*) AS people FROM t WHERE sex = 'F' AND town = 'a'")
    assert answer.sources == ("uncertified",)
    [[people]] = answer.cells
    assert (people.low, people.high) == (0, ROWS)
    with pytest.raises(InsufficientBudgetError):
        session.ask("count sex = F and town = a", uncertified=False)


def test_prices_and_dry_runs_spend_nothing():
    one = curator()
    session = us.session(one, alpha=0.02, queries=100)
    costs = session.dry_run(["count age < 4", "count by town", "SELECT count(*) FROM t WHERE sex = 'F'"])
    assert all(cost.units > 0 for cost in costs)
    assert one.ledger.spent.units == 0
    assert session.remaining == one.ledger.remaining
    assert "every answer within 80 people" in session._repr_html_()


def test_wrong_questions_and_terms_cost_nothing():
    one = curator()
    session = us.session(one, alpha=0.02, queries=100)
    for wrong in ("count agee < 3", "count by", "SELECT median(age) FROM nobody", "nothing"):
        with pytest.raises(QueryError):
            session.ask(wrong)
    with pytest.raises(QueryError):
        session.ask(3)  # type: ignore[arg-type]
    for wrong in ({"alpha": 0}, {"alpha": 1e-5}, {"queries": 0}, {"beta": 1}, {"mechanism": "magic"}):
        with pytest.raises(ParameterError):
            us.session(one, **({"alpha": 0.02} | wrong))
    assert one.ledger.spent.units == 0


def test_a_huge_clique_is_refused_before_it_is_allocated():
    wide = Domain(
        tuple(Categories(name=f"a{i}", values=tuple(f"v{j}" for j in range(999))) for i in range(4))
    )
    with pytest.raises(TooLargeError):
        Marginal(wide, wide.names)
    conjunction_of_all = LinearQuery.conjunction(wide, {name: np.arange(1000) < 500 for name in wide.names})
    declared = Declaration(
        name="w",
        source=SourceSpec("-"),
        domain=wide,
        budget=Budget.of(10, 1e-6),
        neighbours=Neighbours.REPLACE,
    )

    class Empty:
        rows = 1000
        version = "0"
        is_file = False

        def check_unchanged(self) -> None: ...

        def check_size(self, marginals) -> None: ...

        def sums_of(self, marginals, *, resolution=1):
            return [np.zeros(marginal.shape, np.int64) for marginal in marginals]

    held = Curator(Empty(), MemoryLedger(declared.budget), declared)  # type: ignore[arg-type]
    session = us.session(held, alpha=0.1, queries=10)
    assert session.ask(conjunction_of_all).source in ("measured", "uncertified")


# ---- the population


def test_the_population_error_is_that_of_the_theorem_under_its_conditions():
    small = {"epsilon": 0.5, "delta": 1e-6}
    session = us.session(curator(**small), alpha=0.05, beta=0.0005, queries=50)
    half = 0.05 + 0.0005 / BETA + cvar_V_zcdp(session.curator.ledger.budget.cap.amount, BETA)
    assert isclose(session.population.half_width, half)
    counted, shared = session.ask("count age < 4"), session.ask("share age < 4")
    assert counted.population_error == pytest.approx(half * ROWS)
    assert shared.population_error == pytest.approx(half)
    pure = us.session(curator(epsilon=0.5, delta=0.0), alpha=0.2, beta=0.0005, queries=5)
    assert isclose(pure.population.half_width, 0.2 + 0.01 + pure_dp_width(0.5))


def test_without_its_conditions_there_is_no_population_error():
    terms = Terms.of(alpha=0.05, beta=0.0005, queries=50)
    for declared, beta in (({"epsilon": 0.5}, 0.05), ({"epsilon": 500}, 0.0005), (PRIVATE_ROWS, 0.0005)):
        found = population(curator(**declared), Terms.of(alpha=0.05, beta=beta, queries=50))
        assert found.half_width is None
        assert found.reason
    assert population(curator(epsilon=0.5), terms).half_width is not None
    assert us.session(curator(), alpha=0.02, queries=10).ask("count age < 4").population_error is None


# ---- the command line


def test_a_session_from_the_command_line(tmp_path, monkeypatch):
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: town\nsource: town.csv\nbudget: {epsilon: 2, delta: 1e-9}\n"
        "neighbours: replace\nattributes:\n  smoker: {type: boolean}\n"
        "  age: {type: integer, edges: [0, 18, 65, 105]}\n"
    )
    town.people(2000).to_pandas()[["smoker", "age"]].to_csv(tmp_path / "town.csv", index=False)
    monkeypatch.chdir(tmp_path)
    common = ["ask", "--session", "mine", "--alpha", "0.1", "--queries", "20", "--json"]
    runner = CliRunner()
    first = runner.invoke(app, [*common, "count age < 18", "count age < 18 and smoker = true"])
    assert first.exit_code == 0, first.output
    again = json.loads(runner.invoke(app, [*common, "count age < 18 and smoker = true"]).stdout)
    assert again["answers"][0]["cost"] == {"rho": 0.0}
    told = json.loads(first.stdout)["answers"][1]
    assert abs(told["value"] - again["answers"][0]["value"]) <= told["error"] + again["answers"][0]["error"]
    assert "at most rho" in runner.invoke(app, [*common[:-1], "--dry-run", "count by age"]).output
    assert "source: " in runner.invoke(app, [*common[:-1], "count by age"]).output
    for wrong in (["--epsilon", "1"], ["--request", "x"]):
        failed = runner.invoke(app, [*common, *wrong, "count"])
        assert isinstance(failed.exception, ParameterError)
    assert isinstance(runner.invoke(app, ["ask", "--session", "mine", "count"]).exception, ParameterError)
