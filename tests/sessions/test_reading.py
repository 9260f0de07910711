"""Questions in words, what they cost, and what a session says about the population."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from math import isclose

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from counted import Rows, curator_of
from program import Runner
from session_table import DOMAIN, ROWS, conjunction, curator
from understudy.cli.app import app
from understudy.curator.candidates import Candidate
from understudy.declaration.declaration import Declaration, Protect, SourceSpec
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import (
    DomainError,
    InsufficientBudgetError,
    ParameterError,
    QueryError,
    RequestConflictError,
    TooLargeError,
)
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.population import BETA, TILTING, TRANSFER, by_transfer
from understudy.sessions.session import Session
from understudy.sessions.terms import Terms
from understudy.theory.cvar import cvar_V_zcdp
from understudy.theory.tilting import tilting_t, transfer_log_bound, transfer_order
from understudy.theory.transfer import pure_dp_width
from understudy_demo import town

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
    truth = Rows(wide, np.zeros((4, 1000), np.int64))
    session = us.session(curator_of(truth, epsilon=10, delta=1e-6), alpha=0.1, queries=10)
    assert session.ask(conjunction_of_all).source in ("measured", "uncertified")


# ---- the population


def _t(session, rho: float, most: float) -> float:
    """The t of Theorem T for prices that add up to rho, of the order that is best for `most`."""
    order = transfer_order(session.rows, BETA, most)
    return tilting_t(session.rows, BETA, order, transfer_log_bound(session.rows, order, rho))


def test_the_population_error_is_that_of_theorem_t_where_all_debits_are_sums():
    """By what was spent up to each answer; the session's beta is added to the theorem's own, and may be any."""
    session = us.session(curator(epsilon=0.5), alpha=0.05, beta=0.1, queries=50)
    cap = session.curator.ledger.budget.cap.amount
    assert session.population.half_width == pytest.approx(0.05 + _t(session, 0, cap))
    counted, shared = session.ask("count age < 4"), session.ask("share age < 4 and sex = F")
    spent = session.curator.row_sums.now().rho
    assert 0 < session.curator.ledger.spent.amount <= spent * (1 + 1e-9)
    half = 0.05 + _t(session, spent, cap)
    assert session.population.half_width == pytest.approx(half)
    assert 0.05 * ROWS < counted.population_error <= half * ROWS
    assert shared.population_error == pytest.approx(half)
    assert counted.population_beta == shared.population_beta == BETA + 0.1
    told = shared.as_dict()
    assert (told["population_error"], told["population_beta"]) == (pytest.approx(half), BETA + 0.1)
    assert told["population_theorem"] == TILTING
    assert "not peer reviewed" in TILTING
    plain = session.population.as_dict()
    assert plain["theorem"] == TILTING
    assert any("noise on sums over the same rows" in line for line in plain["assumptions"])
    assert "independent_check" not in plain  # the transfer needs a smaller beta
    assert (
        session.ask("count age < 4").population_error == counted.population_error
    )  # the claim that was made


def test_population_errors_at_the_cap_are_the_pinned_ones():
    """0.1415 beyond alpha at ρ = 0.02 and 100,000 rows, where the CVaR transfer gives 0.3006."""
    order = transfer_order(10**5, BETA, 0.02)
    assert tilting_t(10**5, BETA, order, transfer_log_bound(10**5, order, 0.02)) == pytest.approx(
        0.141527, abs=6e-7
    )
    assert cvar_V_zcdp(0.02, BETA) == pytest.approx(0.300578, abs=6e-7)
    aside = [cvar_V_zcdp(0.02, BETA, aside=1e-4, steps=steps) for steps in (1, 2)]
    assert cvar_V_zcdp(0.02, BETA) + 1e-4 / BETA / 2 < aside[0] < cvar_V_zcdp(0.02, BETA) + 1e-4 / BETA
    assert aside[0] < aside[1] < cvar_V_zcdp(0.02, BETA) + 4e-4 / BETA


def test_another_kind_of_look_ends_theorem_t_and_the_transfer_takes_over():
    small = {"epsilon": 0.5, "delta": 1e-6}
    one = curator(**small)
    session = us.session(one, alpha=0.05, beta=0.0005, queries=50)
    wide = us.session(one, alpha=0.05, beta=0.01, queries=50)
    half = 0.05 + 0.0005 / BETA + cvar_V_zcdp(one.ledger.budget.cap.amount, BETA)
    assert session.population.as_dict()["independent_check"] == pytest.approx(half)
    before = session.ask("count age < 4")
    assert before.population_theorem == TILTING
    assert before.population_error < half * ROWS
    one.choose([Candidate(conjunction(age=np.arange(10) < 3).where, Fraction(9))], epsilon=0.01)
    counted, shared = session.ask("count age < 5"), session.ask("share age < 5")
    assert isclose(session.population.half_width, half)
    assert counted.population_error == pytest.approx(half * ROWS)
    assert shared.population_error == pytest.approx(half)
    assert counted.population_beta == shared.population_beta == BETA
    assert counted.population_theorem == shared.population_theorem == TRANSFER
    assert session.population.check is None
    assert session.ask("count age < 4").population_theorem == TILTING
    assert wide.ask("count age < 5").population_error is None
    assert "Selection" in wide.population.reason or "more than sums" in wide.population.reason


def test_a_statement_of_both_theorems_fails_with_the_sum_of_their_probabilities():
    one = curator(epsilon=0.5)
    session = us.session(one, alpha=0.05, beta=0.0005, queries=50)
    session.ask("count by sex")
    one.choose([Candidate(conjunction(age=np.arange(10) < 3).where, Fraction(9))], epsilon=0.01)
    session.ask("count age < 5 by sex")
    answer = session.ask("SELECT sex, count(*), count(*) FILTER (WHERE age < 5) FROM t GROUP BY sex")
    assert answer.population_beta == pytest.approx(2 * BETA + 0.0005)
    assert answer.population_theorem == f"{TILTING}; {TRANSFER}"
    assert answer.as_dict()["population_theorem"] == answer.population_theorem


def test_the_population_error_under_pure_privacy():
    pure = us.session(curator(epsilon=0.5, delta=0.0), alpha=0.2, beta=0.0005, queries=5)
    assert pure.population.check == pytest.approx(0.2 + 0.01 + pure_dp_width(0.5))
    pure.ask("count age < 4")
    rho = pure.curator.row_sums.now().rho
    spent = pure.curator.ledger.spent.amount
    assert 0 < rho <= spent**2 / 4 * (1 + 1e-9)  # a sum of squares, over four
    assert pure.population.half_width == pytest.approx(0.2 + _t(pure, rho, 0.25 / 4))


@pytest.mark.parametrize("most", [9000, None])
def test_bunsteinke16_proposition_1_9_a_replaced_row_is_one_removed_and_one_added(most):
    """Under add-remove the curve is that of twice ε, or four times ρ; what is not known of n widens the rest."""
    rows = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": most}
    one = curator(epsilon=0.4, **rows)
    session = us.session(one, alpha=0.2, beta=0.0005, queries=5)
    one.choose([Candidate(conjunction(age=np.arange(10) < 3).where, Fraction(9))], epsilon=0.001)
    drift = 0.01 + cvar_V_zcdp(4 * one.ledger.budget.cap.amount, BETA)
    beta = BETA + 0.0005  # what was learnt of n may be wrong too
    shared, counted = session.ask("share age < 4"), session.ask("count age < 3")
    total = session._known.knowledge.total
    assert total[1] - total[0] <= 2 * (600 // 8)
    assert counted.population_error == pytest.approx(600 + total[1] * drift)
    assert shared.population_error == pytest.approx((600 + 600 // 8) / 3000 + drift)
    assert shared.error <= (600 + 600 // 8) / 3000
    assert counted.population_beta == shared.population_beta == pytest.approx(beta)
    pure = curator(epsilon=0.2, delta=0.0, **rows)
    certified = by_transfer(pure, Terms.of(alpha=0.1, beta=0.0005, queries=5))
    assert certified.half_width == pytest.approx(0.1 + 0.01 + pure_dp_width(0.4))


def test_theorem_t_where_the_number_of_rows_is_private():
    """Prices count twice, t is that of the least number of rows, and counts are of at most the largest."""
    rows = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}
    one = curator(epsilon=0.4, **rows)
    session = us.session(one, alpha=0.2, beta=0.05, queries=5)
    first, counted, shared = map(session.ask, ("share age < 4", "count age < 3", "share age < 4"))
    assert first.population_error < shared.population_error  # which tells what was spent meanwhile
    spent, total = one.row_sums.now().rho, session._known.knowledge.total
    assert spent >= 2 * one.ledger.spent.amount
    drift = _t(session, spent, 2 * one.ledger.budget.cap.amount)
    assert counted.population_error == pytest.approx(600 + total[1] * drift)
    assert shared.population_error == pytest.approx((600 + 600 // 8) / 3000 + drift)
    assert counted.population_beta == shared.population_beta == BETA + 0.05
    assert counted.population_theorem == shared.population_theorem == TILTING


def test_a_number_of_rows_that_is_too_dear_leaves_counts_alone():
    """Counts are certified without it; what shares then are of is only known to be within what was declared."""
    rows = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}
    one = curator(epsilon=0.4, **rows)
    session = us.session(one, alpha=0.1, beta=0.0005, queries=5)
    counted, shared = session.ask("count age < 4"), session.ask("share age < 4")
    assert session._known.knowledge.total == (3000, 9000)
    assert counted.source == "measured"
    exact = one._truth.sums(conjunction(age=np.arange(10) < 4))
    assert abs(counted.value - exact) <= counted.error <= 300
    assert abs(shared.value - exact / ROWS) <= shared.error
    assert counted.population_error is not None
    assert (shared.population_error, shared.population_beta) == (None, None)


def test_four_times_rho_is_what_two_steps_of_gaussian_noise_cost():
    """N(0, σ²) and N(2, σ²) are as far apart as two neighbours of the neighbour between them allow."""
    sigma, order = 3.0, 4.0
    points = np.linspace(-60, 60, 200_001)
    one, two = (np.exp(-((points - at) ** 2) / (2 * sigma**2)) for at in (0.0, 2.0))
    one, two = one / one.sum(), two / two.sum()
    renyi = np.log((one**order * two ** (1 - order)).sum()) / (order - 1)
    assert renyi / order == pytest.approx(4 * (1 / (2 * sigma**2)), rel=1e-6)


def sampled(rows: pa.Table, domain: Domain, seed: int) -> Session:
    """A session of few questions about rows that were drawn from a population."""
    declared = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=domain,
        budget=Budget.of(0.3, 1e-6),
        neighbours=Neighbours.REPLACE,
    )
    project = us.Project.frame(rows, declared, noise=SeededNoise(seed))
    return us.session(project, alpha=0.05, beta=0.0005, queries=4)


def test_the_population_error_covers_the_population():
    """Fresh tables from one population, an analyst who asks where the sample is worst: all within, 12 times."""
    generator = np.random.default_rng(7)
    cells = generator.dirichlet(np.full(6, 2.0))
    domain = Domain((Categories(name="town", values=tuple("abcdef")[:5]),))
    failed = 0
    for seed in range(12):
        rows = pa.table({"town": np.array(list("abcdef"))[generator.choice(6, 3000, p=cells)]})
        session = sampled(rows, domain, seed)
        exact = session.curator._truth.count(("town",)) / 3000
        worst = exact > cells  # cell f is the attribute's other one
        query = LinearQuery.conjunction(domain, {"town": worst.astype(float)})
        answer = session.ask(query)
        if answer.source != "uncertified":
            failed += abs(answer.value / 3000 - cells[worst].sum()) > answer.population_error / 3000
    assert failed == 0


def test_an_analyst_who_adds_up_lucky_cells_stays_within_theorem_t():
    """Cells that came out large, asked for together: further from the population than alpha, within alpha + t."""
    cells, rows, runs = 64, 20_000, 6
    domain = Domain((Bins.integers("cell", 0, cells - 1),))
    further = failed = 0
    for seed in range(runs):
        drawn = np.random.default_rng(seed).integers(0, cells, rows)
        one = curator_of(Rows(domain, drawn[None, :]), epsilon=8, delta=1e-6, seed=seed)
        session = us.session(one, alpha=0.004, beta=0.05, queries=70, mechanism="direct")
        told = [session.ask(f"count cell = {cell}") for cell in range(cells)]
        lucky = np.array([float(answer.value) for answer in told]) > rows / cells
        answer = session.ask(LinearQuery.conjunction(domain, {"cell": lucky.astype(float)}))
        assert answer.population_theorem == TILTING
        truth = rows * lucky.mean()
        further += abs(float(answer.value) - truth) > 0.004 * rows
        failed += any(abs(float(a.value) - rows / cells) > a.population_error for a in told)
        failed += abs(float(answer.value) - truth) > answer.population_error
    assert further >= runs - 2  # alpha alone is no claim about the population
    assert failed == 0


@pytest.mark.parametrize("declared", [{}, PRIVATE_ROWS])
def test_the_population_error_of_a_statement_is_that_of_its_counts(declared):
    """Counts keep theirs, ratios and averages those of every ratio that the intervals of their counts allow."""
    session = us.session(curator(epsilon=0.4, **declared), alpha=0.2, beta=0.0005, queries=9)
    text = (
        "SELECT sex, count(*) AS n, 100 * count(*) FILTER (WHERE age < 4) / count(*) AS young FROM t "
        "GROUP BY sex ORDER BY n"
    )
    answer = session.ask(text)
    counted, young = session.ask("count by sex"), session.ask("count age < 4 by sex")
    assert answer.population_beta == counted.population_beta
    names = list(counted.query.domain["sex"].labels)
    most = session._known.knowledge.total[1]
    for (sex, n, ratio), (none, people, percent) in zip(answer.cells, answer.population_error, strict=True):
        i = names.index(sex)
        assert none is None
        reach = float(counted.population_error[i])
        low, high = np.clip([n.value - reach, n.value + reach], 0, most)
        assert people == pytest.approx(max(high - n.value, n.value - low))
        assert people > n.high - n.value
        part = young.value[i] + young.population_error[i]
        if low > 0 and ratio.value is not None:
            assert percent >= 100 * part / low - ratio.value - 1e-9
        else:
            assert percent is None
    plain = answer.as_dict()
    assert plain["population_error"] == [list(row) for row in answer.population_error]
    assert plain["population_beta"] == answer.population_beta


def test_statements_about_everybody_are_as_far_from_the_population_as_from_the_table():
    """n people of the table are n people drawn: only what varies between people can differ from the population."""
    session = us.session(curator(epsilon=0.4), alpha=0.2, beta=0.0005, queries=9)
    answer = session.ask("SELECT count(*), count(*) FILTER (WHERE age < 4) / count(*) AS young FROM t")
    share = session.ask("share age < 4")
    [[everybody, young]] = answer.population_error
    assert everybody == 0 == session.ask("count").population_error == session.ask("share").population_error
    [[_, ratio]] = answer.cells
    reach = float(share.population_error)
    low, high = max(ratio.value - reach, 0), min(ratio.value + reach, 1)
    assert young == pytest.approx(max(high - ratio.value, ratio.value - low))


def test_the_population_errors_of_statements_cover_the_population():
    """Fresh tables from one population: counts, shares, averages and medians of it are all within, 12 times."""
    generator = np.random.default_rng(11)
    cells = generator.dirichlet(np.full(8, 2.0))
    ages = np.arange(8) * 10 + 5
    domain = Domain((Bins.between("age", [0, 10, 20, 30, 40, 50, 60, 70, 80]),))
    median = ages[np.searchsorted(np.cumsum(cells), 0.5)]
    old = cells[4:].sum()
    expected = (3000 * old, old, (cells * ages).sum(), median, (cells * ages)[4:].sum() / old)
    for seed in range(12):
        rows = pa.table({"age": ages[generator.choice(8, 3000, p=cells)]})
        session = sampled(rows, domain, seed)
        answer = session.ask(
            "SELECT count(*) FILTER (WHERE age >= 40), count(*) FILTER (WHERE age >= 40) / count(*), avg(age), "
            "median(age), avg(age) FILTER (WHERE age >= 40) FROM t"
        )
        if answer.population_error is None:
            assert answer.source == "uncertified"
            continue
        for value, off, truth in zip(answer.rows[0], answer.population_error[0], expected, strict=True):
            assert off is None or abs(value - truth) <= off + 1e-9


def test_a_statement_with_one_uncertified_count_has_no_population_error():
    session = us.session(curator(epsilon=0.1), alpha=0.02, beta=0.0005, queries=50)
    answer = session.ask("SELECT count(*), count(*) FILTER (WHERE age < 4 AND town = 'a') FROM t")
    assert "uncertified" in answer.sources
    assert (answer.population_error, answer.population_beta) == (None, None)


def test_without_its_conditions_there_is_no_population_error():
    terms = Terms.of(alpha=0.05, beta=0.0005, queries=50)
    counted = us.session(curator(), alpha=0.02, queries=10).ask(conjunction())
    for declared, beta in (
        ({"epsilon": 0.5}, 0.05),
        ({"epsilon": 500}, 0.0005),
        (PRIVATE_ROWS | {"epsilon": 500}, 0.0005),
        ({"epsilon": 0.5, "protect": Protect.VALIDITY}, 0.0005),
    ):
        found = by_transfer(curator(**declared), Terms.of(alpha=0.05, beta=beta, queries=50))
        assert found.half_width is None
        assert found.beta is None
        assert found.of_counts(counted, 10, 100) is None
        assert found.reason
    assert by_transfer(curator(epsilon=0.5), terms).half_width is not None
    exact = us.session(curator(protect=Protect.VALIDITY), alpha=0.02, queries=10)
    assert "exact values" in exact.population.reason
    answer = exact.ask("count age < 4")
    assert (answer.population_error, answer.population_beta, answer.population_theorem) == (None, None, None)
    narrow = us.session(curator(), alpha=0.001, beta=1e-9, queries=10)
    assert narrow.population.half_width < 0.1
    for _ in range(2):  # by now so much was spent that nothing is known of the population
        narrow.curator.measure(conjunction(age=np.arange(10) < 5), rho=Fraction(1, 10))
    assert "so much is spent" in narrow.population.reason
    with pytest.raises(ParameterError, match="comes with"):
        replace(answer, population_beta=0.05)


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
    runner = Runner()
    first = runner.invoke(app, [*common, "count age < 18", "count age < 18 and smoker = true"])
    assert first.exit_code == 0, first.output
    again = json.loads(runner.invoke(app, [*common, "count age < 18 and smoker = true"]).stdout)
    assert again["answers"][0]["cost"] == {"rho": 0.0}
    told = json.loads(first.stdout)["answers"][1]
    assert abs(told["value"] - again["answers"][0]["value"]) <= told["error"] + again["answers"][0]["error"]
    assert "at most " in runner.invoke(app, [*common[:-1], "--dry-run", "count by age"]).output
    assert "source: " in runner.invoke(app, [*common[:-1], "count by age"]).output
    told = runner.invoke(app, [*common, "--dry-run", "count by age", "SELECT avg(age) FROM town"])
    assert [set(row) for row in json.loads(told.stdout)] == [
        {"question", "cost", "share", "together", "error", "unit", "payable"}
    ] * 2
    for wrong in (["--epsilon", "1"], ["--request", "x"]):
        failed = runner.invoke(app, [*common, *wrong, "count"])
        assert isinstance(failed.exception, ParameterError)
    # The session remembers its terms; a new one needs an alpha.
    assert runner.invoke(app, ["ask", "--session", "mine", "count"]).exit_code == 0
    assert isinstance(runner.invoke(app, ["ask", "--session", "new", "count"]).exception, ParameterError)


@pytest.mark.parametrize(
    ("terms", "budget"),
    [
        ("neighbours: replace", "epsilon: 2"),
        ("neighbours: add-remove\nrows: {at_least: 1500}", "epsilon: 2, delta: 1e-9"),
    ],
)
def test_a_dry_run_writes_nothing_and_its_terms_bind_nobody(terms, budget, tmp_path, monkeypatch):
    (tmp_path / "understudy.yml").write_text(
        f"understudy: 1\nname: town\nsource: town.csv\nbudget: {{{budget}}}\n{terms}\nattributes:\n"
        "  smoker: {type: boolean}\n  age: {type: integer, edges: [0, 18, 65, 105]}\n"
    )
    town.people(2000).to_pandas()[["smoker", "age"]].to_csv(tmp_path / "town.csv", index=False)
    monkeypatch.chdir(tmp_path)
    runner = Runner()

    def run(alpha, *more):
        return runner.invoke(app, ["ask", "--session", "mine", "--alpha", alpha, "--queries", "9", *more])

    for alpha in ("0.1", "0.2"):
        assert "at most" in run(alpha, "--dry-run", "count age < 18", "count by age").output
    quoted = json.loads(run("0.3", "--json", "--dry-run", "count age < 18").stdout)[0]["cost"]
    found = json.loads(run("0.3", "--json", "count age < 18").stdout)
    [(currency, paid)] = found["answers"][0]["cost"].items()
    assert 0 < paid <= quoted[currency]
    assert found["contradicted"] is False
    again = json.loads(run("0.3", "--json", "--dry-run", "count age < 18").stdout)
    assert again[0]["cost"] == {currency: 0.0}
    assert isinstance(run("0.1", "--dry-run", "count").exception, RequestConflictError)
    uncertified = run("0.3", "count age < 18", "count age < 18 and smoker = true").output
    assert "source: repeat" in uncertified
    for wrong in ("0", "-1", "nan", "inf", "2"):
        failed = run(wrong, "--dry-run", "count")
        assert isinstance(failed.exception, ParameterError), failed.output
    for question in ("count", "count agee < 3", "count by", "count by agee", "SELECT agee FROM town"):
        done = run("0.3", "--json", question)
        assert question == "count" or isinstance(done.exception, QueryError | DomainError)


def test_the_terminal_shows_the_error_against_the_population(tmp_path, monkeypatch):
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: town\nsource: town.csv\nbudget: {epsilon: 0.5, delta: 1e-6}\n"
        "neighbours: replace\nattributes:\n  smoker: {type: boolean}\n"
    )
    town.people(2000).to_pandas()[["smoker"]].to_csv(tmp_path / "town.csv", index=False)
    monkeypatch.chdir(tmp_path)
    common = ["ask", "--session", "s", "--alpha", "0.1", "--beta", "0.0005", "--queries", "5"]
    runner = Runner()
    shown = runner.invoke(app, [*common, "count smoker = true", "share smoker = true"]).output
    assert "people of what the population behind the table has, with probability 0.9495" in shown
    assert "of the rows of what the population behind the table has, with probability 0.9495" in shown
    told = json.loads(runner.invoke(app, [*common, "--json", "count smoker = true"]).stdout)["answers"][0]
    assert told["population_beta"] == 0.0505
    assert told["population_theorem"] == TILTING
    assert told["population_error"] > told["error"]
    shown = runner.invoke(app, [*common, "SELECT smoker, count(*) AS n FROM town GROUP BY smoker"]).output
    assert re.search(
        r"within [\d,.]+ \(n\) of what the population behind the table has, .* 0\.9495, by Theorem T", shown
    )
    told = json.loads(runner.invoke(app, [*common, "--json", "SELECT count(*) FROM town"]).stdout)["answers"][
        0
    ]
    assert (told["population_error"], told["population_beta"]) == ([[0.0]], 0.0505)
