"""Release folders that version 0.1.0 wrote: they load, and say what they said then.

`version_0_1` holds three releases of all pairs of an invented table of 400 people, without their pages: by
`adaptive` and by `mwem`, whose stand-ins are a tree and weights, and by `residual` with ranges of age. `said`
holds, for each of them, what version 0.1.0 answered from it: values, errors (null where infinite) and source, or
the rows of a SELECT.
"""

from __future__ import annotations

import json
import shutil
from math import inf
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from program import call
from understudy.releases.release import Release

WRITTEN = Path(__file__).with_name("version_0_1")
METHODS = ("adaptive", "mwem", "residual")


def said(method: str) -> dict[str, list]:
    return json.loads((WRITTEN / "said" / f"{method}.json").read_text())


@pytest.fixture(params=METHODS)
def method(request) -> str:
    return request.param


def test_a_folder_says_what_it_said(method):
    made = Release.load(WRITTEN / method)
    assert made.certificate["program"] == "understudy 0.1.0"
    assert made.rows == 400
    for question, told in said(method).items():
        answer = made.answer(question)
        if question.startswith("SELECT"):
            ours, theirs = answer.to_frame().to_pylist(), told[0]
            assert [row.keys() for row in ours] == [row.keys() for row in theirs]
            for mine, row in zip(ours, theirs, strict=True):
                for key, told_then in row.items():  # labels, and missing averages of nobody, are no floats
                    near = isinstance(told_then, float)
                    wanted = pytest.approx(told_then, rel=1e-9, abs=1e-9) if near else told_then
                    assert mine[key] == wanted, (question, key)
            continue
        value, error, source = told
        assert np.ravel(answer.value) == pytest.approx(value, rel=1e-9, abs=1e-9), question
        # A value that was moved to 0 or to all rows has less room on that side than 0.1 told it.
        moved = np.ravel(answer.value) != np.ravel(answer.noisy)
        for mine, then, less in zip(np.ravel(answer.error), error, moved, strict=True):
            wanted = inf if then is None else then
            assert mine == pytest.approx(wanted, rel=1e-9) or (less and mine < wanted), question
        assert answer.source == source, question
    assert {told[2] for told in said(method).values() if len(told) == 3} >= {"measured", "uncertified"}


def test_its_rows_are_drawn_and_typed_as_declared(method):
    made = Release.load(WRITTEN / method)
    rows = made.sample(50, seed=1, backend="arrow")
    written = parquet.read_table(WRITTEN / method / "synthetic.parquet")
    assert rows.num_rows == 50
    assert rows.column_names == written.column_names
    assert rows.schema.equals(written.schema)


def test_it_is_asked_by_the_command_and_saved_again(method, tmp_path):
    shutil.copytree(WRITTEN / method, tmp_path / "old")
    told = said(method)["count by sex"]
    done = call("ask", "--release", "old", "count by sex", "--json", cwd=tmp_path)
    (answer,) = json.loads(done.stdout)["answers"]
    assert [row["value"] for row in answer["rows"]] == pytest.approx(told[0])
    Release.load(tmp_path / "old").save(tmp_path / "new", rows=10)
    again = Release.load(tmp_path / "new")
    assert np.ravel(again.answer("count by sex").value) == pytest.approx(told[0])
