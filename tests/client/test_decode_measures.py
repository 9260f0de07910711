"""Answers about measures, in the small language, come back from a server as they were told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.cli.show_answers import show
from understudy.client.decode import answer_from_plain
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.server.replies import answer_as_plain

DECLARED = parse("""\
understudy: 1
name: t
source: t.csv
budget: {epsilon: 10, delta: 1e-6}
attributes:
  sex: {type: category, values: [F, M]}
  pay: {type: real, bounds: [0, 100], resolution: 1}
""")
FRAME = pd.DataFrame({"sex": ["F", "M", "M"] * 1000, "pay": [10.0, 50, 90] * 1000})


@pytest.mark.parametrize(
    "question",
    ["avg pay", "sum pay by sex", "median pay", "quantile 0.9 pay by sex", "avg pay where sex = F"],
)
def test_an_answer_about_a_measure_is_read_as_it_was_told(question):
    project = us.Project.frame(FRAME, DECLARED, noise=SeededNoise(1))
    told = project.ask(question, rho=0.1)
    read = answer_from_plain(answer_as_plain(told, project.ledger.budget), question, project.domain)
    np.testing.assert_array_equal(read.value, told.value)
    np.testing.assert_array_equal(read.error, told.error)
    assert read.low is not None
    assert read.high is not None
    np.testing.assert_array_equal(read.low, told.low)
    np.testing.assert_array_equal(read.high, told.high)
    assert (read.unit, read.query.by, read.cost) == (told.unit, told.query.by, told.cost)


def test_whole_numbers_of_a_measure_are_printed_without_decimals(capsys):
    told = us.Project.frame(FRAME, DECLARED, noise=SeededNoise(1)).ask("median pay by sex", rho=0.1)
    assert isinstance(told, us.Answer)
    ends = {"low": np.full(2, 10.0), "high": np.full(2, 90.0)}
    show("median pay by sex", replace(told, value=np.full(2, 50.0), **ends), None)
    assert "between 10 and 90" in capsys.readouterr().out
    show("median pay by sex", replace(told, value=np.full(2, 50.5), **ends), None)
    assert "between 10.00000 and 90.00000" in capsys.readouterr().out
