"""SELECT statements in a session: what they buy, and what they say of it."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.errors import QueryError
from understudy.noise.samplers import SeededNoise
from understudy.sessions.session import Session

DECLARED = """
understudy: 1
name: visits
source: visits.parquet
budget: {epsilon: 100, delta: 1e-9}
neighbours: replace
attributes:
  day: {type: date, edges: [2018-01-01, 2019-01-01, 2020-01-01, 2021-01-01, 2021-12-31]}
  ward: {type: category, values: [a, b, c, empty]}
  age: {type: integer, edges: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]}
  cost: {type: real, edges: [0, 100, 1000, 10000, 100000, 700000]}
"""


NEW_YEARS = "2021-01-01, 2022-01-01, 2023-01-01"


@pytest.fixture
def visits() -> Session:
    draw, rows = np.random.default_rng(3), 4000
    days = [dt.date(2018, 1, 1) + dt.timedelta(days=int(day)) for day in draw.integers(0, 365 * 4, rows)]
    table = pa.table(
        {
            "day": days,
            "ward": np.array(list("abc"))[draw.integers(0, 3, rows)],
            "age": draw.integers(0, 100, rows),
            "cost": np.minimum(draw.exponential(2000, rows), 690_000.0),
        }
    )
    project = us.Project.frame(table, parse(DECLARED), noise=SeededNoise(5))
    return us.session(project, alpha=0.02, queries=100)


def bought(session: Session) -> list[str]:
    return [plan["kind"] for plan in session._buyer.journal.all()]


def test_a_case_with_three_groups_costs_three_counts_at_most(visits):
    case = "CASE WHEN age < 20 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END"
    answer = visits.ask(f"SELECT {case} AS g, count(*) AS n FROM visits GROUP BY g")
    assert [row[0] for row in answer.rows] == ["young", "middle", "old"]
    assert set(bought(visits)) <= {"fresh", "look"}
    reads = [plan["question"]["by"] for plan in visits._buyer.journal.all()]
    assert reads.count([]) == len(reads) <= 6  # counts, in one look or two each, and no table


def test_years_are_groups_where_the_last_bin_ends_on_new_year():
    """The last bin holds its upper edge, which is a day of another year: it is cut off."""
    days = [dt.date(2021, 1, 1) + dt.timedelta(days=i % 730) for i in range(4000)] + [
        dt.date(2023, 1, 1)
    ] * 500
    declared = DECLARED.replace("2018-01-01, 2019-01-01, 2020-01-01, 2021-01-01, 2021-12-31", NEW_YEARS)
    rows = {"ward": ["a"] * 4500, "age": [30] * 4500, "cost": [10.0] * 4500}
    project = us.Project.frame(pa.table({"day": days, **rows}), parse(declared), noise=SeededNoise(5))
    session = us.session(project, alpha=0.05, beta=1e-9, queries=100)
    for expression, names in (
        ("year(day)", [2021, 2022, 2023]),
        ("extract(year FROM day)", [2021, 2022, 2023]),
        ("date_trunc('year', day)", [dt.date(2021, 1, 1), dt.date(2022, 1, 1), dt.date(2023, 1, 1)]),
    ):
        statement = f"SELECT {expression} AS y, count(*) AS n FROM visits GROUP BY y"
        for answer in (session.ask(statement), project.ask(statement, epsilon=20, beta=1e-9)):
            assert [row[0] for row in answer.rows] == names
            for row, year in zip(answer.cells, (2021, 2022, 2023), strict=True):
                assert row[1].low <= sum(day.year == year for day in days) <= row[1].high
    with pytest.raises(QueryError, match="varies inside a bin"):
        session.ask("SELECT month(day) AS m, count(*) FROM visits GROUP BY m")


def test_years_are_groups_where_the_bins_are_years(visits):
    answer = visits.ask("SELECT year(day) AS y, count(*) AS n FROM visits GROUP BY y ORDER BY y")
    assert [row[0] for row in answer.rows] == [2018, 2019, 2020, 2021]


def test_a_sub_query_that_only_filters_is_the_same_question(visits):
    visits.ask("SELECT count(*) FROM visits WHERE age < 30 AND ward = 'a'")
    merged = visits.ask(
        "SELECT count(*) FROM (SELECT ward FROM visits WHERE age < 30) AS young WHERE ward = 'a'"
    )
    assert (merged.sources, merged.cost.units) == (("repeat",), 0)


def test_an_order_that_noise_decides_is_called_uncertified(visits):
    answer = visits.ask("SELECT ward, avg(cost) AS mean FROM visits GROUP BY ward ORDER BY avg(cost) DESC")
    assert answer.order == "uncertified"
    safe = visits.ask("SELECT ward, avg(cost) AS mean FROM visits GROUP BY ward ORDER BY low(avg(cost)) DESC")
    lows = [cells[1].low for cells in safe.cells]
    assert lows == sorted(lows, reverse=True)


def test_a_misspelt_function_is_named(visits):
    with pytest.raises(QueryError, match="yaer is not in the language; did you mean year"):
        visits.ask("SELECT yaer(day), count(*) FROM visits GROUP BY 1")
    assert bought(visits) == []
