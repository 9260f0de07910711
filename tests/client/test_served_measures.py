"""Sums, averages, variances and quantiles of a served table: `us.connect` and `ask --url` read every answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import understudy as us
from program import call
from same_answers import check_same
from served import config, serving, tokens
from understudy.client.connect import Connection
from understudy.errors import RefusedError

DECLARED = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 40, delta: 1e-9}
attributes:
  age: {type: integer, edges: [0, 18, 65, 100], resolution: 1}
  pay: {type: real, bounds: [0, 100], bins: 10, resolution: 0.01}
  sex: {type: category, values: [F, M]}
"""

QUESTIONS = [
    "avg pay by sex",
    "avg pay",
    "sum pay where age < 30 by sex",
    "variance pay by sex",
    "stddev age",
    "covariance age, pay",
    "median pay by sex",
    "quantile 0.9 age where sex = F",
]
IN_THE_SESSION = ["avg pay by sex", "sum age", "variance age where sex = F", "covariance(age, pay)"]


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple]:
    folder = tmp_path_factory.mktemp("measures")
    lines = [f"{i * 7 % 100},{i * 13 % 100}.5,{'FM'[i % 2]}" for i in range(1000)]
    (folder / "people.csv").write_text("age,pay,sex\n" + "\n".join(lines) + "\n")
    (folder / "understudy.yml").write_text(DECLARED)
    configured = config(folder)
    (secret,) = tokens(configured, "ada")
    with serving(configured) as service:
        yield service, f"http://127.0.0.1:{service.addresses['http'].port}", secret


@pytest.fixture
def ada(served) -> Iterator[Connection]:
    with us.connect(served[1], served[2], patience=5) as found:
        yield found


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_measure_with_a_price_is_the_recorded_release(served, ada, question):
    name = f"measure-{QUESTIONS.index(question)}"
    there = ada.ask(question, rho=0.01, request=name)
    with served[0].gate.served.tables["people"].use() as here:
        recorded = here.project.prepare(question, rho=0.01).run(request=f"ada/{name}", analyst="ada")
    check_same(recorded, there)


@pytest.mark.parametrize("question", IN_THE_SESSION)
def test_a_measure_is_read_in_the_shared_session(ada, question):
    bought, again = ada.ask(question), ada.ask(question)
    assert bought.cost.units > 0
    assert again.cost.units == 0
    assert again.as_dict()["unit"] == bought.as_dict()["unit"]


def test_the_command_reads_every_measure(served, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_TOKEN", served[2])
    told = call("ask", "--url", served[1], *QUESTIONS, "--rho", "0.01", "--json", cwd=tmp_path).stdout
    assert [one["question"] for one in json.loads(told)["answers"]] == QUESTIONS
    assert "pay" in call("ask", "--url", served[1], IN_THE_SESSION[0], cwd=tmp_path).stdout


def test_the_description_of_a_table_tells_its_measures(served, ada):
    told = {one["name"]: one.get("resolution") for one in ada.table("people").about["attributes"]}
    assert told == {"age": 1, "pay": 0.01, "sex": None}
    with served[0].gate.served.tables["people"].use() as here:
        assert ada.table("people").domain == here.project.domain


def test_a_server_that_does_not_tell_its_measures_is_understood(ada):
    table = ada.table("people")
    attributes = [
        {name: value for name, value in one.items() if name != "resolution"}
        for one in table.about["attributes"]
    ]
    table._known, table._domain = {**table.about, "attributes": attributes}, None
    assert table.ask("median pay where age < 30 by sex", rho=0.01).query.by == ("sex",)
    assert table.ask("avg pay", rho=0.01).cost.units > 0


def test_an_error_is_in_the_unit_of_the_numbers(ada):
    """A quote names the unit, the answer keeps it, and what cannot be promised beforehand is refused."""
    quote = ada.quote("SELECT sum(pay) FROM people WHERE sex = 'F'", error=2000)
    assert (quote.unit, quote.error <= 2000) == ("sum(pay)", True)
    assert "(sum(pay))" in repr(quote)
    assert ada.quote("count sex = F", error=50).unit == "people"
    ((told,),) = ada.ask("SELECT sum(pay) FROM people WHERE sex = 'F'", error=2000).cells
    assert max(told.high - told.value, told.value - told.low) <= 2000
    with pytest.raises(RefusedError, match="how many rows it is about"):
        ada.ask("avg pay by sex", error=5)
