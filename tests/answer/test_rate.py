"""Rates within groups: the part of a group's own rows, which a share of all rows is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import understudy as us
from statistical import assert_covers
from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts
from understudy.answer.ratios import rate
from understudy.answer.writing import write_answer
from understudy.declaration.file import parse
from understudy.domain.attribute import Categories
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import PureDP
from understudy.query.marginal import Marginal

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {{epsilon: 1000, delta: 1e-9}}
attributes:
  smoker: {{type: boolean, "null": true}}
  sex: {{type: category, values: [F, M], outside: clamp}}
"""
# 100 F of whom 40 smoke and 20 are unknown; 300 M of whom 30 smoke.
FRAME = pd.DataFrame(
    {
        "smoker": [True] * 40 + [False] * 40 + [None] * 20 + [True] * 30 + [False] * 270,
        "sex": ["F"] * 100 + ["M"] * 300,
    }
)
DOMAIN = Domain((Categories(name="sex", values=("F", "M")),))


def project(neighbours: str = "replace", *, seed: int = 5) -> us.Project:
    text = TEXT.format(neighbours=neighbours).replace(", outside: clamp", "")
    return us.Project.frame(FRAME, parse(text), noise=SeededNoise(seed))


def test_a_share_is_of_all_rows_and_a_rate_of_its_group():
    p = project()
    shares = p.ask("share smoker = true by sex", epsilon=100)
    rates = p.ask("rate smoker = true within sex", epsilon=100)
    assert np.allclose(shares.value[:2], [40 / 400, 30 / 400], atol=0.01)
    assert np.allclose(rates.value[:2], [40 / 100, 30 / 300], atol=0.02)  # missing values are of the group
    assert (shares.unit, rates.unit) == ("share of all rows", "rate within sex")
    assert p.ask("count by sex", epsilon=1).unit == "people"
    assert rates.as_dict()["unit"] == "rate within sex"
    # A condition over several attributes, and several groups.
    both = p.ask("rate smoker = true or sex = F within sex", epsilon=100)
    assert np.allclose(both.value[:2], [1, 0.1], atol=0.02)
    assert p.ask("rate smoker is null within sex, smoker", epsilon=1).value.ndim == 2


def test_a_rate_is_within_its_error_as_often_as_promised():
    p = project("add-remove")
    prepared = p.prepare("rate smoker = true within sex", rho=0.05, beta=0.2)
    truth = np.array([0.4, 0.1])

    def off() -> float:
        answer = prepared.run()
        return float((np.abs(answer.value[:2] - truth) / answer.error[:2]).max())

    assert_covers([off() for _ in range(60)], 0.2, mutant=0.1)


def counted(values: list[float], error: float) -> CellCounts:
    array, off = np.array(values, float), np.full(len(values), float(error))
    return CellCounts(Answer(Marginal(DOMAIN, ("sex",)), array, off, array, PureDP(3), 0.05), array, off)


@given(
    a=st.integers(0, 50), b=st.integers(0, 50),
    shift_a=st.floats(-1, 1), shift_b=st.floats(-1, 1), error=st.floats(0, 30),
)  # fmt: skip
def test_every_ratio_of_possible_counts_is_within_the_error(a, b, shift_a, shift_b, error):
    answer = rate(counted([a + shift_a * error] * 3, error), counted([b + shift_b * error] * 3, error))
    assert ((answer.value >= 0) & (answer.value <= 1)).all()
    if a + b:
        assert (np.abs(answer.value - a / (a + b)) <= answer.error + 1e-9).all()


def test_what_nobody_vouches_for_stays_so():
    assert np.isinf(rate(counted([5, 6, 7], np.inf), counted([5, 6, 7], 1)).error).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate smoker = true", "after within"),
        ("rate smoker = true by sex", "rate smoker = true within district"),
        ("rate within sex", "needs a condition"),
        ("share smoker = true within sex", "groups after by"),
        ("count within sex", "groups after by"),
        ("rate smoker = true within sex, sex", "twice after within"),
        ("largest age", "count, share or rate"),
        ("mean smoker", "share smoker = true"),
    ],
)
def test_questions_that_mix_them_up_are_told_which_is_which(text, said):
    with pytest.raises(QueryError, match=said):
        project().ask(text)


def test_sessions_and_releases_answer_rates_as_well():
    p = project()
    within = us.session(p, alpha=0.02, beta=1e-9, queries=10).ask("rate smoker = true within sex")
    made = us.release(p, us.marginals(2), epsilon=100, beta=1e-9)
    for answer in (within, made.answer("rate smoker = true within sex")):
        assert np.abs(answer.value[:2] - [0.4, 0.1]).max() <= answer.error[:2].max()
        assert answer.unit == "rate within sex"


def test_a_rate_is_called_one_wherever_it_is_shown(tmp_path):
    """Nobody takes the part of each group for the part of all rows."""
    p = project()
    rates = p.ask("rate smoker = true within sex", epsilon=1)
    shares = p.ask("share smoker = true by sex", epsilon=1)
    counts = p.ask("count smoker = true by sex", epsilon=1)
    assert repr(rates).startswith("Answer('rate smoker in (true) within sex': 3 cells ± ")
    assert repr(shares).startswith("Answer('share smoker in (true) by sex': 3 cells ± ")
    assert repr(counts).startswith("Answer('smoker in (true) by sex': 3 cells ± ")
    for answer, called in ((rates, "rate"), (shares, "share"), (counts, "value")):
        columns = ["sex", called, "error", "noisy"]
        assert list(answer.to_pandas().columns) == columns
        assert answer.to_polars().columns == columns
        assert answer.plot().to_dict()["layer"][0]["encoding"]["x"]["title"] == called
        assert f">{called}</th>" in answer._repr_html_()
        write_answer(tmp_path / f"{called}.csv", answer)
        assert (tmp_path / f"{called}.csv").read_text().splitlines()[0].replace('"', "") == ",".join(columns)
    assert "rate smoker in (true) within sex" in rates._repr_html_()
