"""Every answer names the noise that it rests on, as the quote before it did."""

from __future__ import annotations

import pandas as pd
import pytest

import understudy as us
from understudy.answer.answer import noise_together
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: replace
budget: {budget}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  pay: {{type: integer, edges: [0, 25, 50, 75, 100], resolution: 1}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame(
    {"age": [10, 30, 70, 40] * 500, "pay": [5, 20, 70, 99] * 500, "sex": ["F", "M", "F", "F"] * 500}
)
PURE, ZCDP = "{epsilon: 20}", "{epsilon: 20, delta: 1e-6}"
GDP = "{epsilon: 20, delta: 1e-6, filter: gdp}"
RENYI = "{epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
QUESTIONS = (
    "count by sex",
    "share age < 18 by sex",
    "rate age < 18 within sex",
    "avg pay by sex",
    "SELECT sex, count(*), avg(age), avg(pay) FROM t GROUP BY sex",
    "SELECT max(n) FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) AS counted",
)


def project(budget: str) -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT.format(budget=budget)), noise=SeededNoise(2))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(("budget", "noise"), [(PURE, "laplace"), (ZCDP, "gaussian"), (GDP, "gaussian")])
def test_an_answer_names_the_noise_of_its_quote(question, budget, noise):
    p = project(budget)
    by_error = question.startswith(("count", "SELECT"))
    prepared = p.prepare(question, error=300) if by_error else p.prepare(question, epsilon=1)
    answer = prepared.run()
    assert answer.noise == answer.as_dict()["noise"] == prepared.quote.noise
    assert answer.noise in (noise, "laplace")  # with a δ the one that costs less
    if isinstance(answer, us.AroundAnswer):
        assert {one.noise for one in answer.inner} == {answer.noise}


def test_noise_that_was_asked_for_is_named():
    p = project(RENYI)
    assert p.ask("count by sex", error=600, noise="bounded").noise == "bounded"
    assert p.ask("count by sex", rho=0.001, noise="gaussian").noise == "gaussian"
    assert p.ask("count by sex", epsilon=0.05, noise="laplace").noise == "laplace"


def test_a_quantile_that_is_drawn_by_ranks_is_named_where_it_stands_alone():
    p = project(ZCDP)
    alone, beside = p.prepare("median pay", rho=0.01), "SELECT count(*), median(pay) FROM t WHERE sex = 'F'"
    assert alone.run().noise == alone.quote.noise
    assert p.ask(beside, rho=0.01).noise == p.quote(beside, rho=0.01).noise
    assert noise_together(["exponential", None]) == "exponential"
    assert noise_together(["exponential", "gaussian"]) == "gaussian"
    assert noise_together(["bounded", "gaussian"]) == "mixed"


@pytest.mark.parametrize("budget", [PURE, ZCDP, RENYI])
@pytest.mark.parametrize("question", ["count", "SELECT count(*) FROM t"])
def test_what_is_public_has_no_noise_in_its_quote_and_its_answer(question, budget):
    p = project(budget)
    answer = p.ask(question)
    assert (answer.source, answer.noise, p.quote(question).noise) == ("public", None, None)
    assert answer.as_dict()["noise"] is None


@pytest.mark.parametrize(("budget", "noise"), [(PURE, "laplace"), (ZCDP, "gaussian"), (RENYI, "gaussian")])
def test_answers_of_a_session_name_the_noise_that_they_rest_on(budget, noise):
    session = us.session(project(budget), alpha=0.4)
    for question in ("count by sex", "count by sex", "count sex = F", QUESTIONS[4]):
        answer = session.ask(question)
        if answer.source != "uncertified":
            assert answer.noise == noise
    assert session.ask("count").noise is None


def test_a_session_that_is_told_which_noise_to_buy_names_it():
    session = us.session(project(RENYI), alpha=0.4, noise="gaussian")
    assert session.ask("count by sex").noise == "gaussian"


@pytest.mark.parametrize("noise", ["auto", "bounded"])
def test_a_session_names_bounded_noise_as_long_as_it_has_bought_no_other(noise):
    """In so large a table it costs less than Gaussian noise, so that it is bought also where it is not named."""
    frame = pd.concat([FRAME] * 30)
    budget = RENYI.replace("epsilon: 1", "epsilon: 2")
    opened = us.Project.frame(frame, parse(TEXT.format(budget=budget)), noise=SeededNoise(2))
    session = us.session(opened, alpha=0.02, noise=noise)
    assert session.ask("count sex = F").noise == "bounded"
    assert session.ask("SELECT count(*) FROM t WHERE age < 18").noise == "bounded"
    averages = session.ask("SELECT sex, avg(age) FROM t GROUP BY sex")
    assert averages.source != "uncertified"
    assert averages.noise == "mixed"  # sums of weights, which bounded noise is not made for
    assert session.ask("share sex = F").noise == "bounded"  # told as before: it rests on no later purchase


def test_a_session_that_goes_on_names_the_same_noise():
    opened = project(RENYI)
    first = us.session(opened, alpha=0.4, noise="bounded", name="s")
    told = first.ask("count sex = F")
    again = us.session(opened, alpha=0.4, noise="bounded", name="s").ask("count sex = F")
    assert (told.noise, again.noise, again.value) == ("bounded", "bounded", told.value)


def test_a_session_that_has_bought_nothing_rests_on_no_noise():
    session = us.session(project(RENYI), alpha=1)
    answer = session.ask("count sex = F")
    assert (answer.cost.units, answer.noise) == (0, None)
