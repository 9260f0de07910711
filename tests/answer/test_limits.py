"""Large questions: refused on public sizes before anything is charged, and written piece by piece."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet
import pytest

import understudy as us
from understudy.answer import limits, writing
from understudy.declaration.file import parse
from understudy.errors import ParameterError, TooLargeError
from understudy.noise.samplers import SeededNoise

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: replace
budget: {epsilon: 1, delta: 1e-9}
attributes:
  age: {type: integer, bounds: [0, 99], width: 1}
  day: {type: integer, bounds: [0, 199], width: 1}
  value: {type: category, values: [F, M]}
"""
FRAME = pd.DataFrame({"age": [10, 30] * 50, "day": [3, 150] * 50, "value": ["F", "M"] * 50})


@pytest.fixture
def project() -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT), noise=SeededNoise(5))


def test_a_question_with_too_many_cells_is_refused_before_anything_is_charged(project, monkeypatch):
    looked = []
    monkeypatch.setattr(project.curator._truth, "sums_of", lambda *a, **k: looked.append(a))
    statement = "SELECT age, day, count(*) FROM t GROUP BY age, day"
    session = us.session(project, alpha=0.5, queries=10, max_cells=1000)
    for ask in (
        lambda: project.ask("count by age, day", max_cells=19_999),
        lambda: project.sql(statement, max_cells=19_999),
        lambda: project.quote(statement, max_cells=19_999),
        lambda: session.ask("count by age, day"),
        lambda: session.price("count by age, day"),
        lambda: session.ask(statement),
    ):
        with pytest.raises(TooLargeError, match="Nothing was spent") as refusal:
            ask()
        assert refusal.value.cells >= 20_000
        assert f"`max_cells={refusal.value.cells}`" in str(refusal.value)
    assert project.ledger.spent.units == 0
    assert looked == []


def test_the_limit_is_a_million_cells_and_can_be_raised(project):
    assert project.quote("count by age, day, value").error > 0
    cells = project.prepare("count by age, day, value").question.marginals[0].size
    project.quote("count by age, day, value", max_cells=cells)
    with pytest.raises(TooLargeError):
        project.quote("count by age, day, value", max_cells=cells - 1)
    for wrong in (0, -3, True):
        with pytest.raises(ParameterError, match="max_cells"):
            project.quote("count by age", max_cells=wrong)
    assert limits.MAX_CELLS == 1_000_000


def test_a_raised_limit_is_still_below_the_memory_of_the_machine(project, monkeypatch):
    marginals = project.prepare("count by age, day").question.marginals
    monkeypatch.setattr(limits, "MAX_CELLS", 100)
    monkeypatch.setattr(limits, "default_limit", lambda: 1000 * limits.BYTES_PER_CELL)
    with pytest.raises(TooLargeError, match="half of this machine's memory"):
        limits.check_cells(marginals, 10**9)


# ---- files


@pytest.mark.parametrize("question", ["count by age, value", "SELECT age, avg(day) FROM t GROUP BY age"])
def test_an_answer_is_written_whole_in_every_format(question, project, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "ROWS", 17)
    answer = project.ask(question)
    frame = answer.to_frame()
    for ending in writing.FORMATS:
        path = tmp_path / f"answers{ending}"
        assert writing.write_answer(path, answer) == frame.num_rows
        with pytest.raises(ParameterError, match="exists already"):
            writing.write_answer(path, answer)
        writing.write_answer(path, answer, overwrite=True)
    told = pyarrow.parquet.read_table(tmp_path / "answers.parquet")
    assert told.to_pydict() == frame.to_pydict()
    listed = json.loads((tmp_path / "answers.json").read_text())
    assert [*listed[0]] == frame.column_names
    assert len(listed) == frame.num_rows
    read = pyarrow.csv.read_csv(tmp_path / "answers.csv")
    assert read.column_names == frame.column_names
    last = frame.column_names[-1]
    assert np.allclose(
        np.array(read[last].to_pylist(), float), np.array(frame[last].to_pylist(), float), equal_nan=True
    )
    with pytest.raises(ParameterError, match=r"\.parquet, \.csv, \.json"):
        writing.write_answer(tmp_path / "answers.xlsx", answer)


def test_an_answer_in_a_csv_file_holds_no_formula(tmp_path):
    value = "  value: {type: category, values: [F, M]}\n"
    text = TEXT.replace(value, '  "=a": {type: category, values: ["=cmd()", "-x", "-7"]}\n')
    project = us.Project.frame(FRAME.rename(columns={"value": "=a"}), parse(text), noise=SeededNoise(5))
    writing.write_answer(tmp_path / "a.csv", project.ask('count by "=a"'))
    head, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert head.startswith('"\'=a"')
    assert [row.split(",")[0] for row in rows] == ['"\'=cmd()"', '"\'-x"', '"-7"', '"other"']


def test_pieces_of_an_answer_are_small(project, monkeypatch):
    monkeypatch.setattr(writing, "ROWS", 50)
    sizes = [table.num_rows for table in writing.tables(project.ask("count by age, value"))]
    assert max(sizes) <= 50
    assert sum(sizes) == project.prepare("count by age, value").question.marginals[0].size
