"""Statements through a project: prices, refusals, error bars, frames, the command line."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us
from program import Runner
from statistical import assert_covers
from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer, shown
from understudy.cli.app import app
from understudy.declaration.file import parse
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.sql import Estimate

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {budget}
{rows}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
  kids: {{type: integer, bounds: [0, 5]}}
  born: {{type: date, edges: [1900-01-01, 1960-01-01, 2024-12-31]}}
"""
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(0, 121, 500),
        "sex": RNG.choice(["F", "M", "X"], 500, p=[0.6, 0.3, 0.1]),
        "kids": RNG.integers(0, 6, 500),
        "born": pd.to_datetime(RNG.choice(["1950-05-05", "1990-09-09"], 500)).date,
    }
)


def project(neighbours="replace", *, budget="{epsilon: 1000}", seed=5, frame=FRAME, rows="") -> us.Project:
    declared = parse(TEXT.format(neighbours=neighbours, budget=budget, rows=rows))
    return us.Project.frame(frame, declared, noise=SeededNoise(seed))


def test_a_statement_is_answered_with_bounds_and_a_price():
    answer = project().sql("SELECT sex, count(*) AS n FROM t GROUP BY sex ORDER BY n DESC", epsilon=10)
    assert [column.name for column in answer.columns] == ["sex", "n"]
    assert [column.kind for column in answer.columns] == ["key", "value"]
    assert [row[0] for row in answer.rows] == ["F", "M", "other"]
    for (_, cell), (_, true) in zip(answer.cells, FRAME.sex.value_counts().items(), strict=True):
        assert cell.low <= true <= cell.high
    assert answer.cost.amount == 10
    assert answer.beta == 0.05
    assert answer.source == "measured"


def test_ask_and_quote_take_statements_too():
    p = project()
    assert isinstance(p.ask("  select count(*) from t", epsilon=1), SqlAnswer)
    assert isinstance(p.ask("count", epsilon=1), Answer)
    quote = p.quote("SELECT count(*) FROM t WHERE age < 18", epsilon=1, beta=0.01)
    answer = p.ask("SELECT count(*) FROM t WHERE age < 18", epsilon=1, beta=0.01)
    ((cell,),) = answer.cells
    assert quote.cost == answer.cost
    assert quote.beta == answer.beta
    assert cell.high - cell.value == pytest.approx(quote.error)


def test_the_default_price_is_a_hundredth_of_the_budget():
    assert project().sql("SELECT count(*) FROM t WHERE age < 18").cost.amount == 10
    p = project(budget="{epsilon: 1, delta: 1e-9}")
    assert p.sql("SELECT count(*) FROM t WHERE age < 18").cost.amount == pytest.approx(
        p.ledger.budget.cap.amount / 100
    )


def test_what_nobody_can_move_is_free():
    p = project()
    answer = p.sql("SELECT count(*) FROM t")
    assert answer.cells == ((Estimate(500.0, 500.0, 500.0, 0.0),),)
    assert (answer.cost.amount, answer.source) == (0, "public")
    both = p.sql("SELECT count(*), count(*) FILTER (WHERE age < 18) FROM t", epsilon=1)
    assert both.sources == ("public", "measured")
    alone = p.sql("SELECT count(*) FILTER (WHERE age < 18) FROM t", epsilon=1)
    assert both.cost == alone.cost
    assert both.cells[0][1].high - both.cells[0][1].value == alone.cells[0][0].high - alone.cells[0][0].value


def test_the_price_is_shared_by_the_marginals_and_each_is_measured_once():
    p = project()
    before = p.ledger.remaining.amount
    text = "SELECT count(*), sum(kids), avg(kids), sum(kids) / count(*), count(1) FROM t WHERE sex = 'F'"
    answer = p.sql(text, epsilon=2)
    assert len(answer.sources) == 2
    assert 0 < answer.cost.amount <= 2.000001
    assert before - p.ledger.remaining.amount == pytest.approx(answer.cost.amount)


def test_an_error_can_be_ordered():
    p = project()
    answer = p.sql(
        "SELECT sex, count(*), count(*) FILTER (WHERE age < 18) FROM t GROUP BY sex", error=20, beta=0.01
    )
    for row in answer.cells:
        for cell in row[1:]:
            assert cell.high - cell.low <= 40
    assert answer.cost.amount < 10
    assert p.quote("SELECT count(*) FROM t WHERE age < 18", error=20).error <= 20


def test_one_price_only():
    with pytest.raises(ParameterError, match="one of"):
        project().sql("SELECT count(*) FROM t", epsilon=1, error=3)
    with pytest.raises(ParameterError):
        project().sql("SELECT count(*) FROM t WHERE age < 18", epsilon=0)
    with pytest.raises(ParameterError):
        project().sql("SELECT count(*) FROM t WHERE age < 18", epsilon=1, beta=2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t", "SELECT count(*) FROM u", "SELECT count(*) FROM t WHERE age < 'young'", "SELECT max(age) FROM t",
        "SELECT count(*) FROM t; DROP TABLE t", "SELECT count(*) FROM t WHERE missing = 1", "SELECT", "select count(*",
        "SELECT count(*) FROM read_csv('t.csv')", "SELECT median(sex) FROM t", "SELECT sum(age) OVER () FROM t",
        "SELECT getenv('HOME'), count(*) OVER () FROM t GROUP BY sex", "SELECT nothing(n) OVER () FROM (SELECT count(*) AS n FROM t) x",
    ],
)  # fmt: skip
def test_refusals_cost_nothing_and_look_at_nothing(text):
    p = project()
    p.curator._truth.sums_of = None  # any look would fail otherwise than by a refusal
    before = p.ledger.remaining
    for call in (p.sql, p.ask, p.quote):
        with pytest.raises(QueryError):
            call(text)
    assert p.ledger.remaining == before


def test_a_budget_that_does_not_suffice_is_refused():
    p = project(budget="{epsilon: 1}")
    with pytest.raises(InsufficientBudgetError):
        p.sql("SELECT count(*) FROM t WHERE age < 18", epsilon=2)
    assert p.ledger.remaining.amount == 1


def test_the_same_request_is_paid_once_and_answered_alike():
    p = project()
    one = p.sql("SELECT sex, count(*) FROM t GROUP BY sex", epsilon=1, request="a", analyst="x")
    two = p.sql("select sex as s, count(1) as n from t group by 1", epsilon=1, request="a", analyst="x")
    assert one.rows == two.rows
    assert p.ledger.remaining.amount == pytest.approx(999)


def test_gaussian_noise_for_rho():
    p = project(budget="{epsilon: 2, delta: 1e-6}")
    answer = p.sql("SELECT sex, count(*), avg(kids) FROM t GROUP BY sex", rho=0.01)
    assert answer.cost.currency == "rho"
    assert answer.cost.amount == pytest.approx(0.01)
    assert answer.rows[0][1] > 0


AT_THE_END = FRAME.assign(age=np.select([FRAME.age < 18, FRAME.age < 65], [17, 64], 120))
"""Everybody is as old as his bin allows: what bounds say of the bins is no more than what is needed."""

STATEMENTS = [
    ("SELECT sum(kids), avg(kids), count(*) FROM t WHERE sex = 'F'", 0.45, lambda f: [
        f[f.sex == "F"].kids.sum(), f[f.sex == "F"].kids.mean(), (f.sex == "F").sum()]),
    ("SELECT avg(age), sum(age), median(age) FROM t", 0.7, lambda f: [f.age.mean(), f.age.sum(), f.age.median()]),
    ("SELECT 100.0 * count(*) FILTER (WHERE age < 18) / count(*), quantile_disc(kids, 0.9) FROM t", 0.4, lambda f: [
        100 * (f.age < 18).mean(), np.sort(f.kids)[int(np.ceil(0.9 * len(f))) - 1]]),
    ("SELECT sum(age * kids), avg(age - 10 * kids) FROM t WHERE age >= 18", 0.7, lambda f: [
        (f.age * f.kids)[f.age >= 18].sum(), (f.age - 10 * f.kids)[f.age >= 18].mean()]),
]  # fmt: skip
"""A statement, bounds how many times as far apart are noticed, what is true. The parts of a statement share β, and a
ratio takes the worst of the ends of its parts: hence the room."""


def ratios(statement, truth, *, neighbours, trials, epsilon) -> list[float]:
    """How far the truth is from the middle of its bounds, in parts of the way to their ends: the worst of a row."""
    rows = "rows: {at_most: 1000}" if neighbours == "add-remove" else ""
    p = project(neighbours, seed=17, rows=rows, frame=AT_THE_END)
    found = []
    for _ in range(trials):
        (row,) = p.sql(statement, epsilon=epsilon, beta=0.2).cells
        worst = 0.0
        for cell, true in zip(row, truth, strict=True):
            assert isinstance(cell, Estimate)
            low: Any = -np.inf if cell.low is None else cell.low
            high: Any = np.inf if cell.high is None else cell.high
            if not low - 1e-9 <= true <= high + 1e-9:
                worst = np.inf
            elif 0 < high - low < np.inf:
                worst = max(worst, min(abs(2 * true - low - high) / (high - low), 1.0))
        found.append(worst)
    return found


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("statement", "mutant", "truth"), STATEMENTS, ids=range(len(STATEMENTS)))
def test_bounds_hold_together_with_the_promised_probability(statement, mutant, truth, neighbours):
    found = ratios(statement, truth(AT_THE_END), neighbours=neighbours, trials=200, epsilon=0.5)
    assert_covers(found, 0.2, mutant=mutant)


def test_bounds_of_a_single_count_are_as_narrow_as_promised():
    statement, truth = "SELECT count(*) FROM t WHERE age < 18", [(FRAME.age < 18).sum()]
    found = ratios(statement, truth, neighbours="replace", trials=1000, epsilon=0.05)
    assert_covers(found, 0.2, mutant=0.7)


def test_averages_are_honest_when_there_may_be_nobody():
    p = project("add-remove", frame=FRAME.iloc[:0], rows="rows: {at_most: 1000}")
    for _ in range(20):
        ((mean, ratio, share),) = p.sql(
            "SELECT avg(kids), sum(kids) / count(*), count(*) FILTER (WHERE age < 18) / count(*) FROM t",
            epsilon=0.1,
        ).cells
        assert 0 <= mean.low <= mean.high <= 5
        assert ratio.high is None
        assert share.high is None
        assert mean.value is None or mean.low <= mean.value <= mean.high


def test_sums_of_weights_need_a_public_bound_on_the_rows():
    p = project("add-remove")
    with pytest.raises(RefusedError, match="at_most"):
        p.sql("SELECT avg(kids) FROM t", epsilon=1)
    assert p.ledger.remaining.amount == 1000
    assert p.sql("SELECT count(*), median(kids) FROM t", epsilon=100).rows[0][0] == pytest.approx(500, abs=2)


def test_frames_of_every_kind():
    answer = project().sql("SELECT sex, age, avg(kids) AS m FROM t GROUP BY sex, age", epsilon=5)
    pandas, polars, arrow = (answer.to_frame(backend) for backend in ("pandas", "polars", "pyarrow"))
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert (
        list(pandas.columns) == polars.columns == arrow.column_names == ["sex", "age", "m", "m_low", "m_high"]
    )
    assert answer.to_frame().equals(answer.to_frame("arrow"))
    assert len(pandas) == 9
    assert arrow.schema.field("m").type == pa.float64()
    assert polars["age"].to_list()[:3] == ["0-17"] * 3  # groups come in the order of the domain
    with pytest.raises(ParameterError, match="choose one of"):
        answer.to_frame("dask")


def test_frames_of_dates_numbers_and_nothing():
    p = project()
    answer = p.sql("SELECT kids, median(born) FROM t GROUP BY kids LIMIT 2", epsilon=5)
    assert answer.to_frame("arrow").schema.types[1] == pa.date32()
    assert answer.to_frame("arrow").schema.types[0] == pa.int64()
    assert p.sql("SELECT count(*) FROM t LIMIT 0").to_frame("polars").height == 0
    mixed = p.sql(
        "SELECT CASE WHEN sex = 'F' THEN kids END, count(*), count(*) AS x, 1 AS x_low FROM t GROUP BY 1",
        epsilon=5,
    )
    assert len(set(mixed.to_frame("arrow").column_names)) == len(mixed.to_frame("arrow").column_names)


def test_answers_are_frozen_speak_json_and_html():
    answer = project().sql(
        "SELECT sex AS \"<b>\", count(*), median(born) AS m, count(*) / count(*) FILTER (WHERE age < 18) AS r FROM t "
        "GROUP BY sex", epsilon=0.1)  # fmt: skip
    plain = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    assert [column["kind"] for column in plain["columns"]] == ["key", "value", "value", "value"]
    assert plain["cost"] == {"epsilon": pytest.approx(0.1)}
    assert plain["source"] == "measured"
    assert any(row[3]["high"] is None for row in plain["rows"])
    assert "<b>" not in answer._repr_html_()
    assert "[at least " in answer._repr_html_()
    assert "∞" not in answer._repr_html_()
    with pytest.raises(AttributeError):
        answer.cost = None  # type: ignore[misc]
    assert shown(None) == "null"


def test_the_price_of_a_share_is_exact():
    p = project(budget="{epsilon: 1}")
    answer = p.sql("SELECT avg(kids), sum(age) FROM t WHERE sex = 'F'", epsilon=Fraction(1, 3))
    assert p.ledger.spent == answer.cost
    assert 0 < answer.cost.units <= 333_333_333_333_333 + 10


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", ["{epsilon: 1}", "{epsilon: 1, delta: 1e-9}"])
def test_the_whole_budget_can_be_spent_on_one_statement(neighbours, budget):
    p = project(neighbours, budget=budget, rows="rows: {at_most: 1000}" if neighbours == "add-remove" else "")
    cap = p.ledger.budget.cap
    price = {cap.currency: Fraction(cap.units, 10**15)}
    text = (
        "SELECT sex, avg(kids), count(*) FILTER (WHERE age < 18), median(kids), avg(age) FROM t GROUP BY sex"
    )
    answer = p.sql(text, **price)
    assert answer.cost.units <= cap.units
    assert answer.cost.amount == pytest.approx(cap.amount)


def test_the_table_may_be_called_by_both_its_names():
    text = TEXT.format(neighbours="replace", budget="{epsilon: 9}", rows="").replace(
        "t.csv", "t.duckdb\ntable: people"
    )
    p = us.Project.frame(FRAME, parse(text))
    for name in ("t", "people", "PEOPLE"):
        assert p.sql(f"SELECT count(*) FROM {name}").rows == [(500.0,)]


# ---- the command line


@pytest.fixture
def folder(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(
        TEXT.format(neighbours="replace", budget="{epsilon: 1000}", rows="")
    )
    return tmp_path


def run(folder, *arguments: str):
    return Runner().invoke(app, ["ask", "--project", str(folder), *arguments])


def test_the_program_takes_statements(folder):
    done = run(folder, "SELECT sex, count(*) AS n FROM t GROUP BY sex", "count age<18", "--epsilon", "5")
    assert done.exit_code == 0
    assert "SELECT sex" in done.stdout
    assert "other" in done.stdout
    assert (
        "all within their bounds with probability 0.95; takes 0.5% of the budget (epsilon 5)" in done.stdout
    )


def test_the_program_speaks_json_about_statements(folder):
    done = run(folder, "select sex, count(*) from t group by sex", "--json", "--epsilon", "5")
    (answer,) = json.loads(done.stdout)["answers"]
    assert answer["question"].startswith("select")
    assert [row[0] for row in answer["rows"]] == ["F", "M", "other"]


def test_the_program_quotes_statements(folder):
    done = run(folder, "SELECT avg(kids) FROM t WHERE age < 18", "--dry-run", "--json", "--epsilon", "5")
    (quote,) = json.loads(done.stdout)
    assert quote["cost"] == {"epsilon": pytest.approx(5.0)}
    assert not (folder / "understudy.ledger").exists() or us.open(folder).ledger.spent.amount == 0


def test_the_program_refuses_statements_before_any_look(folder):
    done = run(folder, "SELECT count(*) FROM t WHERE age < 18", "SELECT max(age) FROM t", "--epsilon", "5")
    assert isinstance(done.exception, QueryError)
    assert us.open(folder).ledger.spent.amount == 0


def test_a_ledger_sees_the_statement_and_the_marginals_and_charges_for_these(monkeypatch):
    books = MemoryLedger(parse(TEXT.format(neighbours="replace", budget="{epsilon: 9}", rows="")).budget)
    seen = []
    charge = MemoryLedger.charge
    monkeypatch.setattr(
        MemoryLedger,
        "charge",
        lambda self, event, **more: seen.append(more["question"]) or charge(self, event, **more),
    )
    declared = parse(TEXT.format(neighbours="replace", budget="{epsilon: 9}", rows=""))
    us.Project.frame(FRAME, declared, ledger=books).sql(
        "SELECT count(*) AS people\n FROM t WHERE age < 18", epsilon=1
    )
    assert len(seen) == 1
    words, measured = seen[0].split(" -> ")
    assert words == "SELECT count(*) AS people FROM t WHERE age < 18"
    assert measured.startswith("measure age in (0-17) #")
