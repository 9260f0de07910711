"""Groups of several declared cells that are counted one by one, since counts of different rows share one price."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.query import disjoint

PURE, ZCDP = "{epsilon: 9}", "{epsilon: 9, delta: 1e-6}"
DAYS = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {budget}
attributes:
  day: {{type: integer, bounds: [0, 143]}}
  sex: {{type: category, values: [F, M]}}
"""


def days(neighbours: str = "replace", budget: str = ZCDP, **given) -> us.Project:
    draw = np.random.default_rng(1)
    rows = pd.DataFrame({"day": draw.integers(0, 144, 3000), "sex": draw.choice(["F", "M"], 3000)})
    text = DAYS.format(neighbours=neighbours, budget=budget)
    if neighbours == "add-remove":
        text = text.replace("attributes:", "rows: {at_least: 1000, at_most: 5000}\nattributes:")
    return us.Project.frame(rows, parse(text), noise=SeededNoise(4), **given)


def former(p: us.Project, statement: str, **price):
    """The statement as it was measured before groups were counted one by one at one price."""
    return p._priced(p._reader_with("sums").select(statement), **price)


@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("groups", "counts", "apart"),
    [
        ("day // 3", "count(*)", 48),
        ("day // 3, sex", "count(*)", 48),
        ("day // 18", "count(*)", 8),
        ("day // 12", "count(*), count(*) FILTER (WHERE sex = 'F')", 24),
        ("day // 3", "count(*) FILTER (WHERE sex = 'F'), count(*) FILTER (WHERE sex = 'M')", 2),  # too many
        ("day // 2", "count(*)", 1),  # more than 64
        ("day // 3", "count(*), avg(day)", 1),
    ],
)
def test_groups_that_are_counted_one_by_one_cost_no_more_than_their_cells(
    groups, counts, apart, neighbours, budget
):
    p, statement = days(neighbours, budget), f"SELECT {groups}, {counts} FROM t GROUP BY {groups}"
    now, before = p.prepare(statement, error=60), former(p, statement, error=60)
    assert now.quote.cost.units <= before.quote.cost.units
    assert now.quote.error <= 60
    if "avg" not in counts:
        assert len(now.question.marginals) == apart
        assert (apart == len(before.question.marginals)) == (now.quote.cost == before.quote.cost)


def test_forty_eight_groups_cost_about_what_two_do():
    p = days()
    of_48, of_2 = (p.prepare(f"SELECT day // {n}, count(*) FROM t GROUP BY 1", error=60) for n in (3, 72))
    assert of_48.quote.cost.units < 3 * of_2.quote.cost.units  # 48 chances to be off by as much
    assert former(p, "SELECT day // 3, count(*) FROM t GROUP BY 1", error=60).quote.cost.units > 2 * (
        of_48.quote.cost.units
    )


def test_groups_that_an_earlier_version_measured_by_their_cells_are_found_again():
    statement = "SELECT day // 3 AS m, count(*) AS n FROM t GROUP BY 1"
    books = MemoryLedger(parse(DAYS.format(neighbours="replace", budget=ZCDP)).budget)
    told = former(days(ledger=books), statement, error=60).run(request="spring")
    spent = books.spent
    again = days(ledger=books).ask(statement, error=60, request="spring")
    assert books.spent == spent
    assert [row[1].value for row in again.cells] == [row[1].value for row in told.cells]


def test_a_session_counts_groups_as_before():
    """Its counts are bought one by one: forty-eight conditions would cost more than one table."""
    p = days()
    session = us.session(p, alpha=0.05)
    read = session._reader.select("SELECT day // 3, count(*) FROM t GROUP BY 1")
    assert len(read.marginals) == 1


@pytest.fixture
def small_tables(monkeypatch):
    """Nothing is found out about conditions on more than 100 cells, and nothing is remembered of that."""
    found_out = (disjoint.excludes, disjoint.are_disjoint, disjoint.row_parts, disjoint._stacked)
    for function in found_out:
        function.cache_clear()
    monkeypatch.setattr(disjoint, "MAX_TABLE", 100)
    yield
    for function in found_out:
        function.cache_clear()


@pytest.mark.usefixtures("small_tables")
def test_conditions_that_would_take_too_large_a_table_to_tell_apart_are_not_counted_one_by_one():
    p = days()
    assert len(p._reader.select("SELECT day // 3, count(*) FROM t GROUP BY 1").marginals) == 1
