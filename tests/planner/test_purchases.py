"""A planned purchase costs what the ledger then charges, and is as far off as its quote says."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import program
import understudy as us
from understudy.declaration.file import read
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.ledger.declared import open_ledger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.relation import Neighbours, Relation
from understudy.starting.find_keys import find_keys
from understudy.starting.purchase_plan import plan_keys, plan_question, plan_start
from understudy.starting.start import start

run = partial(program.call, "plan")
ROWS = 4_000


def declared(folder: Path, *, neighbours: str = "replace", delta: bool = True, unit: bool = False) -> Path:
    rng = np.random.default_rng(3)
    pq.write_table(
        pa.table(
            {
                "person": [f"p{i // 2}" for i in range(ROWS)],
                "age": rng.integers(0, 100, ROWS),
                "sex": [("F", "M")[i % 2] for i in range(ROWS)],
                "town": [("Ulm", "Bonn")[min(i % 5, 1)] for i in range(ROWS)],
            }
        ),
        folder / "t.parquet",
    )
    budget = "{epsilon: 2, delta: 1e-6, key_delta: 5e-7}" if delta else "{epsilon: 2}"
    whose = "unit: {column: person, max_rows: 2}\n" if unit else ""
    (folder / "understudy.yml").write_text(
        f"understudy: 1\nname: t\nsource: t.parquet\nneighbours: {neighbours}\nbudget: {budget}\n{whose}"
        "attributes:\n"
        "  age: {type: integer, bounds: [0, 99], resolution: 1}\n"
        "  sex: {type: category, values: [F, M]}\n"
    )
    return folder / "understudy.yml"


QUESTIONS = (
    "count by sex",
    "rate age<30 within sex",
    "SELECT sum(age) AS s FROM t",
    "SELECT sex, avg(age) AS a FROM t GROUP BY sex",
    "SELECT median(age) AS m FROM t",
)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("neighbours", "delta"), [("replace", True), ("add-remove", True), ("replace", False)]
)
def test_a_planned_question_costs_what_is_charged_and_its_error_is_the_quoted_one(
    question, neighbours, delta, tmp_path
):
    path = declared(tmp_path, neighbours=neighbours, delta=delta)
    plan = plan_question(read(path), question, rows=ROWS, epsilon=0.3)
    with us.open(path) as project:
        quote = project.quote(question, epsilon=0.3)
        forecast = project.forecast(question, epsilon=0.3) if neighbours == "replace" else ()
        before = project.ledger.spent.units
        project.ask(question, epsilon=0.3)
        assert project.ledger.spent.units - before == plan.cost.units == quote.cost.units
    assert plan.share == quote.share
    if forecast:
        assert [each.error for each in plan.errors] == [each.error for each in forecast]
    elif neighbours == "replace":
        assert plan.worst == quote.error


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_least_epsilon_for_an_error_reaches_it_and_a_smaller_one_does_not(question, tmp_path):
    of = read(declared(tmp_path))
    wanted = 1.3 * plan_question(of, question, rows=ROWS, epsilon=0.4).worst
    found = plan_question(of, question, rows=ROWS, error=wanted)
    assert found.reached
    assert found.worst <= wanted
    assert found.epsilon < 0.4
    assert plan_question(of, question, rows=ROWS, epsilon=0.95 * found.epsilon).worst > wanted


def test_an_error_that_the_whole_budget_does_not_reach_is_said(tmp_path):
    of = read(declared(tmp_path))
    found = plan_question(of, "count by sex", rows=ROWS, error=0.01)
    assert not found.reached
    assert found.epsilon == 2
    with pytest.raises(ParameterError, match="give an epsilon"):
        plan_question(of, "count", rows=ROWS)
    with pytest.raises(ParameterError, match="2 released columns"):
        plan_question(of, "SELECT avg(age), count(*) FROM t", rows=ROWS, error=1)
    with pytest.raises(QueryError):
        plan_question(of, "count by nothing", rows=ROWS, epsilon=1)


@pytest.mark.parametrize("unit", [False, True])
def test_planned_keys_cost_what_is_charged_and_have_its_threshold(unit, tmp_path):
    path = declared(tmp_path, neighbours="add-remove", unit=unit)
    plan = plan_keys(read(path), epsilon=0.5)
    bought = find_keys(path, "town", epsilon=0.5, at_least=10, noise=SeededNoise(1), environ={})
    assert (plan.cost, plan.delta) == (bought.cost, bought.delta)
    assert plan.worst == bought.found.threshold + bought.found.error
    assert plan.errors[1].error == bought.found.error
    found = plan_keys(read(path), error=plan.worst)
    assert found.worst <= plan.worst
    assert found.epsilon <= 0.5
    assert plan_keys(read(path), epsilon=0.9 * found.epsilon).worst > plan.worst


def test_keys_without_a_delta_are_refused(tmp_path):
    with pytest.raises(RefusedError, match="no delta for keys"):
        plan_keys(read(declared(tmp_path, delta=False)), epsilon=0.5)


def test_a_planned_start_costs_what_is_charged_for_columns_of_numbers(tmp_path):
    rng = np.random.default_rng(1)
    data, target = tmp_path / "n.parquet", tmp_path / "understudy.yml"
    pq.write_table(pa.table({f"c{i}": rng.normal(size=5_000) for i in range(4)}), data)
    replace = Relation(Neighbours.REPLACE)
    plan = plan_start(4, relation=replace, delta=1e-9, epsilon=5, rows=5_000)
    found = start(data, target, epsilon=5, delta=1e-9, noise=SeededNoise(1), environ={})
    assert plan.cost == found.cost
    assert plan.share == pytest.approx(0.1, rel=1e-3)
    ledger = open_ledger(read(target), base=tmp_path, environ={})
    assert ledger.spent == plan.cost
    ledger.close()
    less = plan_start(4, relation=replace, delta=1e-9, error=2 * plan.worst)
    assert less.worst <= 2 * plan.worst
    assert 2 < less.epsilon < 4


def test_the_command_plans_questions_keys_and_a_start(tmp_path):
    declared(tmp_path)
    at = ("--project", "understudy.yml", "--rows", "4000")
    told = json.loads(
        run(*at, "--ask", QUESTIONS[3], "--ask", QUESTIONS[0], "--keys", "--epsilon", "0.3", "--json",
            cwd=tmp_path).stdout
    )  # fmt: skip
    assert [one["purchase"] for one in told] == [QUESTIONS[3], QUESTIONS[0], "keys of one column"]
    assert told[0]["errors"][0]["what"] == "a"
    assert 0 < told[2]["delta"] < 1e-6
    said = run(*at, "--ask", QUESTIONS[3], "--error", "2", cwd=tmp_path).stdout
    assert "for epsilon" in said
    said = run(
        "--columns", "300", "--rows", "50000", "--epsilon", "1", "--delta", "1e-9", cwd=tmp_path
    ).stdout
    assert "the count of a bin" in said
    assert "a value is told, nearly certainly, from" in said
    said = run(*at, "--ask", "count by sex", "--error", "0.001", cwd=tmp_path).stdout
    assert "does not reach" in said


def test_options_that_do_not_go_together_are_one_sentence(tmp_path):
    declared(tmp_path)
    at = ("--project", "understudy.yml")
    for arguments in (
        (*at, "--rows", "10", "--ask", "count"),
        (*at, "--ask", "count", "--epsilon", "1"),
        ("--rows", "10", "--ask", "count", "--epsilon", "1"),
        (*at, "--rows", "10", "--ask", "count", "--epsilon", "1", "--alpha", "0.1"),
        (*at, "--rows", "1.5", "--ask", "count", "--epsilon", "1"),
        (*at, "--rows", "10", "--ask", "count", "--epsilon", "1", "--delta", "1e-6"),
        (*at, "--columns", "10", "--epsilon", "1"),
        ("--rows", "10", "--queries", "5", "--error", "1"),
    ):
        assert len(run(*arguments, cwd=tmp_path, status=2).stderr.strip().splitlines()) == 1
