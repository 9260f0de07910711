"""Groups of several declared cells: their error is told, asked for and kept as that of the group."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import understudy as us
from program import call
from statistical import assert_covers
from understudy.declaration.file import parse
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
    cells = p._measured(question, before, rounded=True)
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
