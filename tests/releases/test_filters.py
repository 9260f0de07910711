"""Releases, sessions, questions and online constructions under each privacy filter: charged, within the cap,
verified."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy.engine import URL

import understudy as us
from understudy.declaration.file import parse
from understudy.ledger import export
from understudy.ledger.store import DurableLedger
from understudy.mechanism.matrix.many_marginals import PartsNoise
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import GaussianNoise, RoundedNormal
from understudy.privacy.filter import FILTERS
from understudy.privacy.recording import from_text
from understudy.project import Project
from understudy.standin.dense.weights import DenseWeights

TEXT = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 1, delta: 1.0e-6, filter: %s}
attributes:
  age: {type: integer, edges: [0, 18, 40, 65, 120]}
  sex: {type: category, values: [F, M]}
  town: {type: category, values: [a, b, c]}
"""
ROWS = np.random.default_rng(4)
FRAME = pa.table(
    {
        "age": ROWS.integers(0, 100, 3000),
        "sex": ["FM"[i] for i in ROWS.integers(0, 2, 3000)],
        "town": ["abc"[i] for i in ROWS.integers(0, 3, 3000)],
    }
)


@pytest.fixture(params=FILTERS)
def project(request, tmp_path):
    declared = parse(TEXT % request.param)
    url = URL.create("sqlite", database=str(tmp_path / "t.ledger"))
    ledger = DurableLedger(url, "people", declared.budget)
    yield Project.frame(FRAME, declared, ledger=ledger, noise=SeededNoise(7))
    spent = ledger.spent
    ledger.close()
    verdict = export.verify(url, "people")
    assert verdict["sound"], verdict["problems"]
    assert 0 < verdict["spent_units"] == spent.units <= declared.budget.cap.units


def events(project: Project) -> list:
    return [from_text(entry.event) for entry in project.ledger.entries(kind="debit", limit=1000)]


@pytest.mark.parametrize("method", ["residual", "mwem"])
def test_a_release_for_the_whole_epsilon_takes_the_whole_budget(project, method):
    """Also where selections cost more or less than their rho: they are made for the price."""
    us.release(project, us.marginals(2), epsilon=1, delta=1e-6, method=method)
    assert project.ledger.budget.share(project.ledger.spent) > 0.999


def test_discrete_noise_of_several_variances_is_recorded_at_the_least_where_variance_is_priced(project):
    curator, price = project.curator, Fraction(1, 1000)
    residuals = Residuals.of(us.marginals(2).over(project.domain), total=True)
    look = residuals.strategies(residuals.precisions(), curator.relation, price)
    curator._buy(look, request="residuals", analyst="")
    (event,) = events(project)
    assert isinstance(event, GaussianNoise)
    assert (event.variance != 1) == (project.ledger.budget.filter.name == "gdp")


@pytest.mark.parametrize("method", ["residual", "adaptive"])
def test_releases_add_rounded_normal_noise_where_discrete_noise_is_priced_by_its_variance(project, method):
    us.release(project, us.marginals(2), epsilon=Fraction(1, 2), delta=1e-6, method=method)
    bought = [part for event in events(project) for part in getattr(event, "events", (event,))]
    kind = RoundedNormal if project.ledger.budget.filter.name == "gdp" else GaussianNoise
    assert bought
    assert all(isinstance(event, kind) for event in bought)


@pytest.mark.parametrize("method", ["residual", "adaptive"])
@pytest.mark.parametrize(("epsilon", "reserve"), [(1, 1e-5), (10, 1e-5), (30, 0.03)])
def test_a_release_under_gdp_takes_all_of_any_budget(method, epsilon, reserve):
    """One look may take nearly all of it, and as much as it is: discrete noise would have no price there."""
    declared = parse(TEXT % "zcdp")
    budget = Budget.of(epsilon, 1e-6, filter="gdp", reserve=reserve)
    declared = replace(declared, budget=budget)
    project = Project.frame(FRAME, declared, noise=SeededNoise(7))
    made = us.release(project, us.marginals(2), epsilon=epsilon, delta=1e-6, method=method)
    assert project.ledger.budget.share(project.ledger.spent) > 0.999
    sex, town = (np.array(FRAME[name]) for name in ("sex", "town"))
    exact = [[int(((sex == s) & (town == t)).sum()) for t in "abc"] for s in "FM"]
    told = next(answer for answer in made.answers if answer.clique == ("sex", "town"))
    assert (np.abs(told.counts[:2, :3] - exact) <= 2 * told.error[:2, :3]).all()


@pytest.mark.parametrize("epsilon", [0.5, 5, 50])
@pytest.mark.parametrize("method", ["smalldb", "net"])
def test_one_selection_costs_no_more_than_its_release_under_any_filter(method, epsilon):
    """In GDP an ε that is worth ρ = ε²/8 costs up to three times as much: it is chosen by what it costs."""
    for name in FILTERS:
        declared = replace(parse(TEXT % "zcdp"), budget=Budget.of(epsilon, 1e-6, filter=name))
        project = Project.frame(FRAME, declared, noise=SeededNoise(7))
        flat = DenseWeights.uniform(project.domain)
        given = {"databases": [flat, flat]} if method == "net" else {}
        part = project.declaration.budget.alone(epsilon / 2, 1e-6)
        us.release(project, us.marginals(1), epsilon=epsilon / 2, delta=1e-6, method=method, **given)
        assert part.cap.units * 0.99 < project.ledger.spent.units <= part.cap.units


@pytest.mark.parametrize("epsilon", [5, 50])
@pytest.mark.parametrize(("method", "options"), [("mwem", {"rounds": 2, "per_round": 1}), ("ic", {})])
def test_what_picks_and_measures_is_paid_to_its_end_under_gdp(method, options, epsilon):
    """Its plans and its gaps know the noise that is drawn: discrete noise of few steps would cost more, or have no
    price after most of it was spent."""
    text = TEXT.replace("attributes:", "neighbours: add-remove\nrows: {at_least: 500}\nattributes:")
    budget = Budget.of(epsilon, 1e-6, filter="gdp", reserve=1e-4)
    project = Project.frame(FRAME, replace(parse(text % "zcdp"), budget=budget), noise=SeededNoise(7))
    whole = 0.99 * epsilon
    terms = {"epsilon": whole, "delta": 1e-6, "method": method, **options}
    assert us.forecast(project, us.marginals(2), **terms).refusal is None
    us.release(project, us.marginals(2), **terms)
    assert 0 < project.ledger.spent.units <= budget.alone(whole, 1e-6).cap.units
    assert not any(isinstance(event, GaussianNoise) for event in events(project))


def test_noise_at_scale_has_the_same_rho():
    noise = PartsNoise((Fraction(1, 50), Fraction(1, 7)), (3, 4))
    event = noise.event_for(Fraction(3, 100))
    scaled = noise.at_scale(event)
    assert isinstance(scaled, GaussianNoise)
    assert (scaled.variance, scaled.zcdp_cost()) == (7, event.zcdp_cost())


def test_a_session_buys_within_the_cap(project):
    session = us.session(project, alpha=0.05, beta=0.0005, queries=100)
    answers = [session.ask(f"count age < 40 and town = {town}") for town in "abc"]
    answers.append(session.ask("count by sex"))
    assert all(answer.source == "measured" for answer in answers[:1])
    assert answers[0].population_error is not None  # by Theorem T, which asks for no filter


def test_questions_cost_what_they_were_quoted(project):
    for number, asked in enumerate(
        ("count age < 40 by sex", "SELECT median(age) FROM people", "rate sex = F within town")
    ):
        quote = project.quote(asked, epsilon=Fraction(1, 20))
        answer = project.ask(asked, epsilon=Fraction(1, 20), request=f"r{number}")
        assert answer.cost.units <= quote.cost.units


def test_the_quoted_share_of_laplace_noise_is_the_filters(project):
    shares = {name: Budget.of(1, 1e-6, filter=name) for name in FILTERS}
    quote = project.quote("count sex = F", epsilon=Fraction(1, 10), noise="laplace")
    own = project.ledger.budget
    assert quote.share == own.share(quote.cost)
    project.ask("count sex = F", epsilon=Fraction(1, 10), noise="laplace")
    others = {name: budget.share(budget.price(events(project)[-1])) for name, budget in shares.items()}
    assert others["renyi"] < others["zcdp"] < others["gdp"]


def test_a_sparse_vector_is_charged_by_its_runs(project):
    project.curator.sparse(threshold=100, epsilon=Fraction(1, 20), hits=2, queries=20, request="sv")
    (event,) = events(project)
    assert project.ledger.spent == project.ledger.budget.price(event)
