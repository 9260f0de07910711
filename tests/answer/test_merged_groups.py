"""Groups of several declared cells, added up: their error is told, asked for and kept as that of the group."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import understudy as us
from program import call
from statistical import assert_covers
from understudy.curator import group_price
from understudy.declaration.file import parse
from understudy.errors import RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {budget}
rows: {{at_least: 1000, at_most: 5000}}
attributes:
  joined:
    type: date
    edges: [2020-01-01, 2020-07-01, 2021-01-01, 2021-07-01, 2022-01-01, 2022-07-01, 2022-12-31]
  sex: {{type: category, values: [F, M]}}
"""
PURE, ZCDP = "{epsilon: 9}", "{epsilon: 9, delta: 1e-6}"
RENYI = "{epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
YEARS = "SELECT year(joined) AS y, count(*) AS n FROM t GROUP BY 1"
HALVES = "SELECT joined, count(*) AS n FROM t GROUP BY 1"


@pytest.fixture(autouse=True)
def added_up(monkeypatch):
    """Cells are added up, as where there are many groups; `test_single_groups` has those counted one by one."""
    monkeypatch.setattr("understudy.sql.group.MAX_DISJOINT", 0)


def frame() -> pd.DataFrame:
    draw = np.random.default_rng(1)
    days = pd.to_timedelta(draw.integers(0, 1090, 3000), unit="D")
    return pd.DataFrame({"joined": pd.to_datetime("2020-01-01") + days, "sex": draw.choice(["F", "M"], 3000)})


FRAME = frame()


def declared(neighbours: str, budget: str) -> str:
    text = TEXT.format(neighbours=neighbours, budget=budget)
    return text if neighbours == "add-remove" else text.replace("rows: {at_least: 1000, at_most: 5000}\n", "")


def project(neighbours: str = "replace", budget: str = PURE, seed: int = 4, **given) -> us.Project:
    return us.Project.frame(FRAME, parse(declared(neighbours, budget)), noise=SeededNoise(seed), **given)


def widest(answer, place: int = 1) -> float:
    return max((row[place].high - row[place].low) / 2 for row in answer.cells)


@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_quoted_error_is_that_of_the_groups_and_is_kept_where_it_is_asked_for(neighbours, budget):
    p = project(neighbours, budget)
    told = p.prepare(YEARS, epsilon=0.2)
    assert widest(told.run()) == told.quote.error
    one = max(told._measurement.errors)
    assert 1.1 * one < told.quote.error < 1.6 * one  # two cells: more than one, and less than twice that
    asked = p.prepare(YEARS, error=60)
    assert asked.quote.error <= 60
    assert widest(asked.run()) <= 60
    dearer = p.prepare(YEARS, error=54)
    assert asked.quote.cost.units < dearer.quote.cost.units  # not far below what was asked for
    cells = p.prepare(HALVES, error=60)
    assert widest(cells.run()) == cells.quote.error <= 60
    assert cells.quote.cost.units < asked.quote.cost.units


def test_an_error_that_is_certain_is_that_of_the_groups_too():
    p = project("replace", RENYI)
    prepared = p.prepare(YEARS, error=1500, noise="bounded")
    assert (prepared.quote.noise, prepared.quote.beta) == ("bounded", 0.0)
    assert max(prepared._measurement.errors) <= 750
    assert widest(prepared.run()) <= prepared.quote.error <= 1500


@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_groups_are_within_their_bounds_as_often_as_promised(budget):
    p = project("replace", budget, seed=6)
    true = FRAME.groupby(FRAME.joined.dt.year).size()
    prepared, ratios = p.prepare(YEARS, epsilon=0.02, beta=0.2), []
    for _ in range(150):
        off = [abs(cell.value - true[year]) / prepared.quote.error for year, cell in prepared.run().cells]
        ratios.append(max(off))
    assert_covers(ratios, 0.2, mutant=0.7)


def test_a_session_tells_the_error_of_the_groups():
    session = us.session(project("replace", ZCDP), alpha=0.05)
    assert session.error(HALVES) == session.error("count by sex") == session.width
    assert session.error(YEARS) == 2 * session.width
    assert widest(session.ask(YEARS)) <= 2 * session.width


def test_a_request_that_was_charged_for_the_error_of_cells_is_found_again():
    books = MemoryLedger(parse(declared("replace", ZCDP)).budget)
    p = project("replace", ZCDP, ledger=books)
    question = p._reader.select(YEARS)
    before = p.prepare(YEARS, error=60)._terms[-1]
    cells = p._pricing.prepare(question.marginals, before, rounded=True)
    assert max(cells.errors) == 60
    p.curator.perform(cells, request="r", words=YEARS)
    spent = books.spent
    again = p.ask(YEARS, error=60, request="r")
    assert books.spent == spent
    assert 60 < widest(again) < 100


def test_the_command_tells_the_error_of_the_groups(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(declared("replace", ZCDP))
    for terms in (("--error", "60"), ("--session", "s", "--alpha", "0.05")):
        told = [
            json.loads(call("ask", text, "--dry-run", "--json", *terms, cwd=tmp_path).stdout)
            for text in (HALVES, YEARS)
        ]
        errors = [found[0]["error"] if isinstance(found, list) else found["error"] for found in told]
        if terms[0] == "--error":
            assert max(errors) <= 60
        else:
            assert errors[1] == 2 * errors[0]


# ---- Months over days: groups of up to 31 cells

DAYS = pd.date_range("2020-01-01", "2024-01-01")
DAILY = f"""\
understudy: 1
name: t
source: t.csv
neighbours: replace
budget: {{budget}}
attributes:
  day: {{{{type: date, edges: [{", ".join(str(day.date()) for day in DAYS)}]}}}}
  sex: {{{{type: category, values: [F, M]}}}}
"""
MONTHS = "SELECT date_trunc('month', day) AS m, count(*) AS n FROM t GROUP BY 1"
SHARES = MONTHS.replace(" FROM", ", avg(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS f FROM")


def daily(budget: str) -> us.Project:
    draw = np.random.default_rng(2)
    days = DAYS[draw.integers(0, len(DAYS) - 1, 2000)]
    rows = pd.DataFrame({"day": days, "sex": draw.choice(["F", "M"], 2000)})
    return us.Project.frame(rows, parse(DAILY.format(budget=budget)), noise=SeededNoise(3))


MUCH = "{epsilon: 30, delta: 1e-6}"


@pytest.mark.parametrize(
    ("question", "budget", "error", "most"),
    [
        (MONTHS, PURE, 60, 0.9),
        (MONTHS, "{epsilon: 30}", 40, 1.4),
        (MONTHS, "{epsilon: 30}", 5, 8),
        (MONTHS, MUCH, 60, 0.1),
        (MONTHS, MUCH, 20, 0.9),
        (MONTHS, MUCH, 5, 10),
        (SHARES, MUCH, 20, 2.1),
    ],
)
def test_an_error_below_one_person_for_each_cell_of_a_group_is_kept_at_a_fair_price(
    question, budget, error, most
):
    p = daily(budget)
    asked = p.prepare(question, error=error)
    assert max(asked._measurement.errors) < asked.quote.error  # cells were measured, and are added up
    assert 0.8 * error <= asked.quote.error <= error
    assert asked.quote.cost.amount < most
    assert widest(asked.run()) <= error


def test_a_higher_price_never_buys_wider_groups():
    pure, much = daily("{epsilon: 60}"), daily(MUCH)
    told = [pure.quote(MONTHS, epsilon=epsilon).error for epsilon in (0.5, 1, 2, 3, 5, 8, 15, 30)]
    assert told == sorted(told, reverse=True)
    told = [much.quote(MONTHS, rho=rho).error for rho in (0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 1, 2, 5)]
    assert told == sorted(told, reverse=True)


def test_where_groups_are_cells_and_noise_is_coarse_all_bounds_are_those_of_cells():
    """A probability is spent once: on the errors of cells, for averages and counts, and not on laws besides."""
    each = HALVES.replace(" FROM", ", avg(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS f FROM")
    p = project(budget=MUCH)
    coarse, fine = p.prepare(each, rho=1), p.prepare(each, rho=0.01)
    assert coarse.quote.error == 2 * max(coarse._measurement.errors)
    assert fine.quote.error < 2 * max(fine._measurement.errors)
    assert widest(coarse.run(), place=2) < 0.02


@pytest.mark.parametrize("error", [500, 800, 2000, 5000])
def test_the_noise_is_the_one_that_is_cheapest_for_the_groups_and_not_for_their_cells(error):
    p = daily("{epsilon: 9, delta: 1e-6, key_delta: 1e-7, filter: renyi}")
    cells = p.quote("SELECT day, count(*) FROM t GROUP BY 1", error=error)
    asked = p.prepare(MONTHS, error=error)
    named = [p.quote(MONTHS, error=error, noise=noise) for noise in ("gaussian", "laplace")]
    assert asked.quote.cost.units <= min(quote.cost.units for quote in named)
    assert 0.95 * error <= asked.quote.error <= error
    assert error < 800 or cells.noise == "bounded"  # which is cheaper for cells
    asked.run(request="r")
    spent = p.ledger.spent
    asked.run(request="r")
    p.ask(MONTHS, error=error, request="r")
    assert p.ledger.spent == spent


def test_an_error_for_which_no_price_is_found_is_refused_before_anything_is_charged(monkeypatch):
    monkeypatch.setattr(group_price, "SHRINKINGS", 1)
    p = daily(PURE)
    with pytest.raises(RefusedError, match=r"no price was found .* within 60 people") as refused:
        p.ask(MONTHS, error=60)
    assert "wider `error`" in (refused.value.remedy or "")
    assert p.ledger.spent.units == 0
