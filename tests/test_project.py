from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import understudy as us
from people import write_project
from statistical import assert_covers
from understudy.declaration.file import parse
from understudy.errors import DeclarationError, ParameterError
from understudy.noise.samplers import SeededNoise

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {{epsilon: 1000}}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"age": [10, 30, 70, 40] * 100, "sex": ["F", "M", "F", "F"] * 100})


def project(neighbours: str = "replace", *, seed: int = 5) -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT.format(neighbours=neighbours)), noise=SeededNoise(seed))


def test_the_public_surface_is_what_it_says():
    for name in us.__all__:
        assert getattr(us, name) is not None
    assert sorted(us.__all__) == us.__all__
    assert set(us.__all__) <= set(dir(us))
    with pytest.raises(AttributeError):
        _ = us.frobnicate


def test_open_reads_relative_to_the_file(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(TEXT.format(neighbours="replace"))
    monkeypatch.chdir("/")
    for path in (tmp_path, tmp_path / "understudy.yml", str(tmp_path)):
        assert us.open(path).curator.rows == 400
    with pytest.raises(DeclarationError):
        us.open(tmp_path / "other.yml")


def test_frames_of_every_kind():
    declared = parse(TEXT.format(neighbours="replace"))
    for frame in (FRAME, pl.from_pandas(FRAME)):
        answer = us.Project.frame(frame, declared).ask("count sex=F", epsilon=100)
        assert abs(float(answer.value) - 300) <= 1


def test_the_default_price_is_a_hundredth_of_the_budget():
    assert project().ask("count sex=F").cost.amount == 10
    assert project().quote("count sex=F").cost.amount == 10


def test_one_price_only():
    with pytest.raises(ParameterError, match="one of"):
        project().ask("count sex=F", epsilon=1, error=3)


def test_an_error_can_be_ordered():
    answer = project().ask("count by sex", error=25, beta=0.01)
    assert answer.error.max() <= 25
    assert answer.cost.amount < 1


def test_a_quote_is_what_is_then_paid():
    p = project()
    for question in ("count sex=F", "share age<18 by sex", "count"):
        quote = p.quote(question, epsilon=0.3)
        answer = p.ask(question, epsilon=0.3)
        assert quote.cost == answer.cost


@pytest.mark.parametrize(
    ("question", "truth"), [("share age<18 by sex", [0.25, 0, 0]), ("share sex=F by age", [0.25, 0.25, 0.25])]
)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_shares_are_within_their_error(neighbours, question, truth):
    p, ratios = project(neighbours), []
    for _ in range(1000):
        answer = p.ask(question, epsilon=0.1, beta=0.1)
        ratios.append(
            ((np.abs(answer.value - truth) - 1e-12).clip(0) / np.maximum(answer.error, 1e-12)).max()
        )
        assert answer.cost.amount == 0.1
    # No share is below 0, so that half of the noise of an empty cell is not seen; and where the number of rows is
    # private a share is a ratio of two noisy counts, whose bands are at their worse ends together.
    room = 0.8 if min(truth) > 0 else 0.65
    assert_covers(ratios, 0.1, mutant=room if neighbours == "replace" else 0.4)


def test_a_share_of_a_possibly_empty_table_says_that_it_knows_nothing():
    p = us.Project.frame(FRAME.iloc[:0], parse(TEXT.format(neighbours="add-remove")), noise=SeededNoise(1))
    answer = p.ask("share sex=F", epsilon=0.1)
    assert (float(answer.value), float(answer.error)) == (0.5, 0.5)


@pytest.mark.parametrize("rows", [0, 1])
def test_tiny_tables_are_answered_like_any_other(rows):
    p = us.Project.frame(FRAME.iloc[:rows], parse(TEXT.format(neighbours="replace")), noise=SeededNoise(2))
    assert float(p.ask("count", epsilon=1).value) == rows
    answer = p.ask("share by sex", epsilon=1)
    assert answer.value.shape == (3,)


def test_answers_are_frozen_and_speak_json():
    answer = project().ask("count by sex", epsilon=1)
    with pytest.raises(ValueError, match="read-only"):
        answer.value[0] = 7
    plain = answer.as_dict()
    assert plain["by"] == ["sex"]
    assert plain["source"] == "measured"
    assert plain["population_error"] is None


def test_a_new_request_is_charged_without_a_search_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[str] = []
    with us.open(write_project(tmp_path)) as project:
        find = type(project.ledger).find
        monkeypatch.setattr(
            type(project.ledger),
            "find",
            lambda self, request: (sought.append(request), find(self, request))[1],
        )
        first = project.ask("count age < 18 and sex = F", epsilon=0.1, request="r")
        assert sought == []
        again = project.ask("count sex = F and age < 18", epsilon=0.1, request="r")
        assert again.value == first.value
        assert len(project.ledger.debits()) == 1
