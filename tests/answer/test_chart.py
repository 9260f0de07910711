"""Answers as charts and frames, and what is said where a library is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import polars as pl
import pytest

import understudy as us
from understudy.errors import ParameterError
from understudy.noise.samplers import SeededNoise

DRAW = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "age": DRAW.integers(0, 100, 600),
        "sex": DRAW.choice(["F", "M"], 600),
        "born": pd.to_datetime(DRAW.choice(["1950-05-05", "1990-09-09"], 600)),
    }
)
CELLS = {"age": range(0, 100, 25), "sex": ["F", "M"], "born": {"edges": ["1900-01-01", "1960-01-01", "2024-12-31"],
         "type": "date"}}  # fmt: skip


@pytest.fixture
def project():
    return us.declare(FRAME, CELLS, epsilon=100, noise=SeededNoise(4))


@pytest.mark.parametrize(
    "question", ["count", "count by sex", "count by age, sex", "count by age, sex, born"]
)
def test_a_chart_has_a_bar_and_a_whisker_for_each_cell(project, question):
    answer = project.ask(question, epsilon=1)
    spec = answer.plot().to_dict()
    values = spec.get("data", spec["layer"][0].get("data"))["values"]
    assert [point["value"] for point in values] == answer.value.ravel().tolist()
    assert [point["low"] for point in values] == np.maximum(answer.value - answer.error, 0).ravel().tolist()
    assert {layer["mark"]["type"] for layer in spec["layer"]} == {"bar", "errorbar"}
    fields = [coded.get("field") for coded in spec["layer"][0]["encoding"].values()]
    assert ("group" in fields) == ("," in question)  # the last attribute is a colour


def test_a_chart_can_be_drawn(project):
    import vl_convert

    svg = vl_convert.vegalite_to_svg(project.ask("count by age, sex", epsilon=1).plot().to_dict())
    assert svg.count('aria-roledescription="bar"') == 12


def test_a_select_statement_is_drawn_by_column(project):
    answer = project.sql(
        "SELECT sex, count(*) AS n, avg(age) AS a, quantile_disc(born, 0.5) AS b FROM frame GROUP BY sex",
        epsilon=9,
    )
    assert answer.plot().to_dict()["layer"][0]["encoding"]["x"]["title"] == "n"
    assert answer.plot("a").to_dict()["layer"][0]["encoding"]["x"]["title"] == "a"
    days = answer.plot("b").to_dict()["layer"][0]
    assert (days["mark"]["type"], days["encoding"]["x"]["type"]) == ("point", "temporal")
    with pytest.raises(ParameterError, match="released columns: n, a, b"):
        answer.plot("sex")


def test_what_nobody_vouches_for_has_no_whisker(project):
    marginal = us.Marginal(project.domain, ("sex",))
    value = np.array([1.0, 2.0, 3.0])
    answer = us.Answer(marginal, value, np.full(3, np.inf), value, project.ledger.spent, 0.05, "uncertified")
    spec = answer.plot().to_dict()
    values = spec.get("data", spec["layer"][0].get("data"))["values"]
    assert [(point["low"], point["high"]) for point in values] == [(None, None)] * 3
    assert repr(answer) == "Answer('everyone by sex': 3 cells no bound, uncertified)"


def test_a_long_answer_is_cut_and_says_so(project):
    frame = pd.DataFrame({"a": [1]})
    answer = us.declare(frame, {"a": range(1000)}, epsilon=1).ask("count by a", epsilon=1)
    spec = answer.plot().to_dict()
    assert spec["title"] == "the first 60 of 1,000"


@pytest.mark.parametrize(
    "question", ["count by sex", "SELECT sex, count(*) AS value FROM frame GROUP BY sex"]
)
def test_every_answer_becomes_pandas_and_polars(project, question):
    answer = project.ask(question, epsilon=1)
    pandas, polars = answer.to_pandas(), answer.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert pandas["sex"].tolist() == polars["sex"].to_list() == answer.to_frame()["sex"].to_pylist()
    assert pandas["value"].tolist() == polars["value"].to_list()


@pytest.mark.parametrize(
    ("library", "call"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("altair", "plot")]
)
def test_a_library_that_is_absent_is_named_with_what_to_install(project, monkeypatch, library, call):
    find = importlib.util.find_spec
    for home in ("understudy.answer.frames", "understudy.answer.chart"):
        monkeypatch.setattr(f"{home}.find_spec", lambda name: None if name == library else find(name))
    extra = "plot" if library == "altair" else library
    for answer in (
        project.ask("count by sex", epsilon=1),
        project.sql("SELECT count(*) FROM frame", epsilon=1),
    ):
        with pytest.raises(ParameterError, match=rf"{library} is not installed.*'understudy\[{extra}\]'"):
            getattr(answer, call)()
