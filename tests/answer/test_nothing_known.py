"""Averages and quantiles of groups that may have no rows: where nothing is known of them they are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.answer.sql_answer import SqlAnswer
from understudy.cli.session import remarks
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise

ROWS = 4000
DECLARED = """
understudy: 1
name: t
source: t.csv
budget: {budget}
neighbours: replace
attributes:
  years: {{type: integer, edges: [0, 30, 65, 100]}}
  age: {{type: integer, edges: [0, 30, 65, 100], resolution: 1}}
  pay: {{type: real, bounds: [0, 200000], bins: 10, resolution: 0.01}}
  sex: {{type: category, values: [F, M, X]}}
"""
AGGREGATES = {
    "avg(pay)": (0, 200_000), "avg(age)": (0, 100), "avg(years)": (0, 99), "median(pay)": (0, 200_000),
    "median(years)": (0, 99),
}  # fmt: skip


def project(seed: int, budget: str = "{epsilon: 40, delta: 1e-9}") -> us.Project:
    number = np.arange(ROWS)
    rows = {"years": number % 100, "age": number % 90, "pay": number * 37 % 200_000}
    table = pd.DataFrame({**rows, "sex": np.where(number % 2, "F", "M")})
    return us.Project.frame(table, parse(DECLARED.format(budget=budget)), noise=SeededNoise(seed))


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("door", ["direct", "session", "alone"])
def test_it_is_missing_with_its_bounds_however_the_noise_falls(aggregate: str, door: str) -> None:
    low, high = AGGREGATES[aggregate]
    for seed in range(6):
        opened = project(seed)
        if door == "alone":
            answer: Any = us.session(opened, alpha=0.02).ask(f"SELECT {aggregate} FROM t WHERE sex = 'X'")
            found = answer.cells[0][0]
        else:
            grouped = f"SELECT sex, {aggregate} FROM t GROUP BY sex"
            answer = (
                opened.sql(grouped, rho=0.02)
                if door == "direct"
                else us.session(opened, alpha=0.02).ask(grouped)
            )
            found = answer.cells[2][1]
            for _, told in answer.cells[:2]:
                assert low <= told.low <= told.value <= told.high <= high
        assert (found.value, found.low, found.high) == (None, low, pytest.approx(high, abs=1))
        assert isinstance(answer, SqlAnswer)
        column = answer.to_pandas()[aggregate]
        assert column.isna().tolist()[-2 if len(column) == 4 else -1]


def test_question_words_tell_the_middle() -> None:
    for seed in range(6):
        answer = project(seed).ask("avg pay by sex", rho=0.02)
        assert (answer.value[2], answer.low[2], answer.high[2]) == (100_000, 0, 200_000)


def test_what_a_stand_in_estimates_is_told() -> None:
    poor = us.session(project(1, "{epsilon: 0.01, delta: 1e-9}"), alpha=0.02)
    answer = poor.ask("SELECT sex, avg(pay), median(years) FROM t GROUP BY sex")
    assert answer.source == "uncertified"
    assert all(cell.value is not None for row in answer.cells for cell in row[1:])


def test_an_order_with_something_missing_is_uncertified_and_its_reach_is_of_the_others() -> None:
    session = us.session(project(1), alpha=0.02)
    answer = session.ask("SELECT sex, avg(pay) AS pay FROM t GROUP BY sex ORDER BY pay DESC NULLS LAST")
    assert [row[1].value is None for row in answer.cells] == [False, False, True, True]
    assert answer.order == "uncertified"
    assert answer.population_error is not None
    assert [row[1] is None for row in answer.population_error] == [False, False, True, True]
    assert "unknown" not in " ".join(remarks(session, answer))
    alone = session.ask("SELECT avg(pay) FROM t WHERE sex = 'X'")
    assert not any("population" in remark for remark in remarks(session, alone))
