"""A declared value `other` beside our own cell of all other values: one label for ours, wherever it is shown."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.project import Project
from understudy.releases.making import release
from understudy.releases.release import Release

DECLARATION = """\
understudy: 1
name: t
source: t.csv
budget: {epsilon: 1000, delta: 1e-9}
attributes:
  town: {type: category, values: [Bree, other]}
  pay: {type: real, bounds: [0, 100], bins: 5, strip: [€], missing: [n/a], null: true, decimals: 2}
"""
TOWNS = ["Bree"] * 500 + ["other"] * 300 + ["Archet"] * 200


@pytest.fixture(scope="module")
def project() -> Project:
    frame = pd.DataFrame({"town": TOWNS, "pay": ["€ 12.50", "n/a"] * 500})
    return Project.frame(frame, parse(DECLARATION), noise=SeededNoise(1))


@pytest.fixture(scope="module")
def made(project) -> Release:
    return release(project, "all-1-way", epsilon=20, method="residual")


def near(found: dict[str, float]) -> bool:
    wanted = {"Bree": 500, "other": 300, "(other)": 200}
    return found.keys() == wanted.keys() and all(abs(found[key] - wanted[key]) < 20 for key in wanted)


def test_questions_and_statements_show_the_same_labels(project):
    assert near({label: value for (label,), value, _ in project.ask("count by town", epsilon=2).rows()})
    told = project.sql("SELECT town, count(*) FROM t GROUP BY town", epsilon=2)
    assert near({row[0]: row[1].value for row in told.cells})
    for text in ("count town = '(other)'", "SELECT count(*) FROM t WHERE town = '(other)'"):
        answer = project.ask(text, epsilon=2)
        value = answer.cells[0][0].value if "SELECT" in text else float(answer.value)
        assert abs(value - 200) < 20
    upper = project.sql("SELECT upper(town) AS u, count(*) FROM t GROUP BY u", epsilon=2)
    assert {row[0] for row in upper.cells} == {"BREE", "OTHER", "other"}


def test_releases_show_the_same_labels(made, tmp_path):
    made.save(tmp_path / "out", rows=1000)
    answers = parquet.read_table(tmp_path / "out" / "answers.parquet").to_pylist()
    assert near({row["labels"][0]: row["value"] for row in answers if row["marginal"] == "town"})
    assert "(other)" in (tmp_path / "out" / "report.html").read_text()
    rows = parquet.read_table(tmp_path / "out" / "synthetic.parquet")
    assert near(pd.Series(rows["town"].to_pylist()).value_counts().to_dict())
    assert Release.load(tmp_path / "out").domain == made.domain


def test_synthetic_values_have_the_declared_decimals_and_are_read_back(made, project):
    rows = made.sample(500, backend="arrow")
    pay = [value for value in rows["pay"].to_pylist() if value is not None]
    assert pay
    assert all(re.fullmatch(r"[0-9]+\.[0-9]{2}", value) for value in pay)  # text, as in the source
    assert len({value[-1] for value in pay}) > 1
    again = Project.frame(rows, project.declaration, noise=SeededNoise(1))
    counted = again.ask("count by pay", epsilon=20)
    found = {label: value for (label,), value, _ in counted.rows()}
    assert abs(found["null"] - (500 - len(pay))) < 2


def test_a_bin_without_a_value_of_so_many_decimals_keeps_what_was_drawn():
    text = DECLARATION.replace("bounds: [0, 100], bins: 5", "edges: [0, 0.001, 0.002, 100]")
    domain = parse(text).domain
    from understudy.releases.synthetic import as_table

    codes = {"town": np.zeros(30, np.int64), "pay": np.repeat(np.arange(3), 10)}
    drawn = as_table(domain, codes, np.random.default_rng(0))["pay"].to_pylist()
    assert [domain["pay"].proper_code(value) for value in drawn] == codes["pay"].tolist()
