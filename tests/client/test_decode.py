"""An answer is the same after its way through JSON: values, errors, frames, pages and what it says of itself."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import tiny_release
import understudy as us
from same_answers import check_same
from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer
from understudy.client.decode import (
    AnotherDomain,
    answer_from_plain,
    cost_from_plain,
    is_of_sql,
    sql_answer_from_plain,
)
from understudy.domain.domain import Domain
from understudy.domain.plain import domain_from_plain
from understudy.errors import DomainError
from understudy.privacy.cost import ZCDP, PureDP
from understudy.query.column import Column
from understudy.server.described import table_as_plain
from understudy.server.replies import answer_as_plain, encoded
from understudy.sql.estimate import Estimate

DECLARED = tiny_release.DECLARATION.replace("{epsilon: 2}", "{epsilon: 60, delta: 1e-6}")

QUESTIONS = [
    "count",
    "count age >= 18 and sex = F",
    "count by sex",
    "count smoker = true by sex, age, income",
    "share smoker = true by sex",
    "share age < 18",
    "rate smoker = true within sex",
    "SELECT count(*) FROM people",
    "SELECT sex, smoker, count(*) AS n, avg(age) FROM people GROUP BY sex, smoker",
    "SELECT born, count(*) FROM people GROUP BY born",
    "  SELECT median(born) AS middle, sum(income) FROM people WHERE age < 18\n",
    "SELECT income, count(*) FROM people GROUP BY income HAVING count(*) > 50",
]


@pytest.fixture(scope="module")
def project():
    return tiny_release.project(DECLARED)


@pytest.fixture(scope="module")
def told(project) -> Domain:
    """The domain as a client knows it: out of what the server describes."""
    return domain_from_plain(json.loads(encoded(table_as_plain(project)))["attributes"])


def sent(project, answer):
    return json.loads(encoded(answer_as_plain(answer, project.ledger.budget)))


def received(project, told, answer, question) -> Any:
    plain = sent(project, answer)
    if is_of_sql(plain):
        return sql_answer_from_plain(plain, question)
    return answer_from_plain(plain, question, told)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_measured_answer_is_the_same(project, told, question):
    answer = project.ask(question, rho=0.001)
    found = received(project, told, answer, question)
    check_same(answer, found)
    wanted = None if answer.source == "public" else project.quote(question, rho=0.001).noise
    assert found.noise == answer.noise == wanted


def test_an_answer_that_was_kept_before_noises_were_named_is_read(project, told):
    for question in ("count by sex", "SELECT sex, count(*) FROM people GROUP BY sex"):
        answer = project.ask(question, rho=0.001)
        plain = {key: value for key, value in sent(project, answer).items() if key != "noise"}
        found = (
            sql_answer_from_plain(plain, question)
            if is_of_sql(plain)
            else answer_from_plain(plain, question, told)
        )
        assert found.noise is None
        check_same(replace(answer, noise=None), found)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_of_a_session_is_the_same_with_its_population_errors(project, told, question):
    session = us.session(project, alpha=0.2, beta=0.05, queries=100)
    answer = session.ask(question)
    found = received(project, told, answer, question)
    check_same(answer, found)
    assert found.population_beta == answer.population_beta
    assert found.population_theorem == answer.population_theorem
    assert found.noise == answer.noise
    if isinstance(answer, Answer):
        assert found.query.describe() == answer.query.describe()
        assert (found.value.shape, found.error.shape) == (answer.value.shape, answer.error.shape)
    else:
        assert (found.cells, found.rows, found.columns) == (answer.cells, answer.rows, answer.columns)
        assert found.population_error == answer.population_error


def test_an_answer_without_bounds_comes_with_the_answers_that_have_some(project, told):
    ranked = "rank() OVER (ORDER BY count(*)) AS r"
    text = f"SELECT bin_start(born) AS d, count(*) AS n, {ranked} FROM people GROUP BY born"
    answer = project.ask(text, rho=0.001)
    found = received(project, told, answer, text)
    assert type(found) is type(answer) is us.AroundAnswer
    assert (found.cells, found.columns, found.cost) == (answer.cells, answer.columns, answer.cost)
    assert (found.outer, found.problem) == (answer.outer, "")
    assert [one.cells for one in found.inner] == [one.cells for one in answer.inner]
    assert [one.text for one in found.inner] == [one.text for one in answer.inner]


def test_days_are_days_again(project, told):
    day = dt.date(2020, 2, 29)
    columns = (Column("day", "key", "date"), Column("last", "value", "date"), Column("n", "value", "float"))
    cells = (
        (day, Estimate(day, day, None, 0.5), Estimate(3.0, 0.0, 7.0, 0.0)),
        (None, *[Estimate(None, None, None, 0.0)] * 2),
    )
    answer = SqlAnswer(
        "SELECT", columns, cells, ZCDP(5), 0.05, ("measured",), ((None, 2.5, None), (None,) * 3), 0.1
    )
    found = received(project, told, answer, "SELECT")
    assert found.cells == answer.cells
    check_same(answer, found)


def test_what_was_released_before_it_was_cut_is_sent_too(project, told):
    answer = project.ask("count by sex, age, income", rho=1e-4)
    assert not np.array_equal(answer.noisy, answer.value)
    found = received(project, told, answer, "count by sex, age, income")
    assert np.array_equal(found.noisy, answer.noisy)
    same = replace(answer, noisy=answer.value)
    assert "noisy" not in sent(project, same)


def test_an_error_without_a_bound_is_infinite_again(project, told):
    answer = replace(
        project.ask("count by sex", rho=0.001), error=np.array([inf, 1.0, 2.0, inf]), source="uncertified"
    )
    found = received(project, told, answer, "count by sex")
    assert found.error.tolist() == [inf, 1.0, 2.0, inf]
    check_same(answer, found)


@pytest.mark.parametrize("units", [0, 1, 14_967_123_456_789, 4_503_599_627_370_497, 7_999_999_999_999_999])
def test_costs_are_the_same_whole_units(units):
    for kind in (PureDP, ZCDP):
        assert cost_from_plain({kind.currency: kind(units).amount}) == kind(units)


def test_an_answer_about_other_cells_is_not_put_into_these(project, told):
    plain = sent(project, project.ask("count by sex", rho=0.001))
    other = {**plain, "rows": [{**row, "cell": ["?"]} for row in plain["rows"]]}
    with pytest.raises(AnotherDomain):
        answer_from_plain(other, "count by sex", told)
    with pytest.raises(AnotherDomain):
        answer_from_plain({**plain, "rows": plain["rows"][1:]}, "count by sex", told)
    with pytest.raises(AnotherDomain):
        answer_from_plain(plain, "count by age", told)
    with pytest.raises(DomainError):
        domain_from_plain([{"name": "", "type": "boolean", "null": False}])


def test_the_domain_that_is_described_is_the_declared_one(project, told):
    assert [(a.name, a.kind, a.labels) for a in told] == [(a.name, a.kind, a.labels) for a in project.domain]


def test_every_value_of_a_large_category_is_described():
    values = ", ".join(f"v{i}" for i in range(1500))
    text = DECLARED.replace("values: [F, M]", f"values: [{values}]")
    described = table_as_plain(tiny_release.project(text))
    assert len(described["attributes"][1]["labels"]) == 1000
    assert domain_from_plain(described["attributes"])["sex"].size == 1502
