"""Frames out of columns and answers, and frames of every library in."""

from __future__ import annotations

import datetime as dt
import importlib.util
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy.answer import frames
from understudy.answer.frames import answer_frame, to_frame
from understudy.answer.writing import write_answer
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, SourceError
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.project import Project
from understudy.query.marginal import Marginal

COLUMNS = {
    "age": np.array([31, 47, 5]),
    "pay": np.array([1.5, np.nan, -0.0]),
    "sex": np.array(["F", "M", "é"]),
    "on": [True, False, None],
    "day": [dt.date(2020, 1, 2), None, dt.date(1999, 12, 31)],
    "code": np.array([0, 1, 2], dtype=np.uint8),
}
TYPES = {"pyarrow": pa.Table, "pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("backend", TYPES)
def test_a_frame_holds_its_columns(backend):
    frame = to_frame(COLUMNS, backend)
    assert isinstance(frame, TYPES[backend])
    read = nw.from_native(frame, eager_only=True)
    assert read.columns == list(COLUMNS)
    assert read["age"].to_list() == [31, 47, 5]
    assert read["sex"].to_list() == ["F", "M", "é"]
    assert read["code"].to_list() == [0, 1, 2]
    assert read["day"].to_list()[2] == dt.date(1999, 12, 31)
    assert read["on"].to_list()[:2] == [True, False]
    np.testing.assert_array_equal(read["pay"].to_numpy(), COLUMNS["pay"])


@pytest.mark.parametrize("backend", TYPES)
def test_a_frame_without_rows_keeps_its_columns(backend):
    frame = nw.from_native(to_frame({"x": np.array([], dtype=np.int64)}, backend), eager_only=True)
    assert frame.columns == ["x"]
    assert len(frame) == 0


def test_what_makes_no_frame_is_said():
    with pytest.raises(ParameterError, match="pyarrow, pandas, polars"):
        to_frame({"x": [1]}, "excel")
    with pytest.raises(ParameterError, match="x 1, y 2"):
        to_frame({"x": [1], "y": [1, 2]})
    with pytest.raises(ParameterError, match="'x' cannot be put") as refused:
        to_frame({"x": [1, "secret"]})
    assert "secret" not in str(refused.value)
    for odd in (5, "text", np.ones((2, 2)), None, (i for i in range(3))):
        with pytest.raises(ParameterError, match="'x' is no list"):
            to_frame({"x": odd})
    with pytest.raises(ParameterError, match="named by text"):
        to_frame({3: [1]})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("backend", "remedy"), [("polars", r"pip install 'understudy\[polars\]'"), ("modin", "pip install modin")]
)
def test_a_library_that_is_not_there_is_named_with_its_remedy(monkeypatch, backend, remedy):
    real = importlib.util.find_spec
    monkeypatch.setattr(frames, "find_spec", lambda name: None if name == backend else real(name))
    with pytest.raises(ParameterError, match=remedy):
        to_frame({"x": [1]}, backend)


DOMAIN = Domain(
    (
        Bins.between("age", [0, 18, 65, 120], null=True),
        Categories(name="sex", values=("F", "M"), null=True),
        Boolean(name="value"),
        Bins.between("day", [dt.date(2000, 1, 1), dt.date(2010, 1, 1), dt.date(2020, 1, 1)]),
    )
)
ROWS = {
    "age": [5, 20, 70, None, 200, 18],
    "sex": ["F", "M", None, "F", "X", "M"],
    "value": [True, False, True, True, False, False],
    "day": [
        dt.date(2001, 1, 1),
        dt.date(2011, 1, 1),
        dt.date(1990, 1, 1),
        None,
        dt.date(2020, 1, 1),
        dt.date.min,
    ],
}


def declared() -> Declaration:
    return Declaration(name="t", source=SourceSpec("t"), domain=DOMAIN, budget=Budget.of(100))


def answer(frame, question: str = "count by age, sex, value, day"):
    project = Project.frame(frame, declared(), noise=SeededNoise(3))
    return project.ask(question, epsilon=1)


@pytest.mark.parametrize("backend", TYPES)
def test_an_answer_becomes_a_frame(backend):
    given = answer(pa.table(ROWS), "count by sex, value")
    frame = nw.from_native(answer_frame(given, backend), eager_only=True)
    assert frame.columns == ["sex", "value", "value_", "error", "noisy"]
    assert list(zip(frame["sex"].to_list(), frame["value"].to_list(), strict=True)) == list(
        given.query.labels()
    )
    np.testing.assert_array_equal(frame["value_"].to_numpy(), given.value.ravel())
    np.testing.assert_array_equal(frame["noisy"].to_numpy(), given.noisy.ravel())


def test_a_single_number_is_a_frame_of_one_row():
    frame = answer_frame(answer(pa.table(ROWS), "count"))
    assert frame.num_rows == 1
    assert frame.column_names == ["value", "error", "noisy"]
    assert Marginal(DOMAIN, ()).by == ()


class Foreign:
    """A frame of a library that only narwhals has heard of."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __narwhals_dataframe__(self):
        return nw.from_native(self.frame, eager_only=True)._compliant_frame

    def __native_namespace__(self):
        return SimpleNamespace()


FRAMES = {
    "Arrow": lambda: pa.table(ROWS),
    "Arrow, in chunks": lambda: pa.concat_tables([pa.table(ROWS).slice(0, 2), pa.table(ROWS).slice(2)]),
    "Arrow, dictionary": lambda: pa.table(ROWS).set_column(
        1, "sex", pa.array(ROWS["sex"]).dictionary_encode()
    ),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars, categorical": lambda: pl.DataFrame(ROWS).with_columns(pl.col("sex").cast(pl.Categorical)),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas, Arrow types": lambda: pa.table(ROWS).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, nullable types": lambda: pd.DataFrame(ROWS).convert_dtypes(),
    "pandas, categorical": lambda: pd.DataFrame(ROWS).astype({"sex": "category"}),
    "pandas, an odd index": lambda: pd.DataFrame(ROWS, index=[3, 1, 4, 1, 5, 9]),
    "narwhals": lambda: nw.from_native(pl.DataFrame(ROWS)),
    "another library": lambda: Foreign(pl.DataFrame(ROWS)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_library_get_equal_answers(kind):
    expected = answer(pa.table(ROWS))
    np.testing.assert_array_equal(answer(FRAMES[kind]()).noisy, expected.noisy)


@pytest.mark.parametrize("frame", [pl.DataFrame(ROWS).lazy(), [1, 2], "people.csv", pd.Series([1]), None])
def test_what_is_no_frame_is_refused_clearly(frame):
    with pytest.raises(SourceError, match="give a pandas, polars or Arrow frame"):
        Project.frame(frame, declared())


@pytest.mark.parametrize("question", ["avg pay by sex", "sum pay by sex", "count by sex", "median pay"])
def test_a_file_has_the_columns_of_the_frame(tmp_path, question):
    domain = Domain((Categories(name="sex", values=("F", "M")), Bins.measure("pay", 0, 100)))
    table = pa.table({"sex": ["F", "M", "M"] * 200, "pay": [10, 50, 90] * 200})
    declared = Declaration(name="t", source=SourceSpec("t"), domain=domain, budget=Budget.of(20, 1e-6))
    answer = Project.frame(table, declared, noise=SeededNoise(1)).ask(question, rho=0.5)
    write_answer(tmp_path / "t.csv", answer)
    written = pd.read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(written, answer.to_pandas(), check_dtype=False)
    assert ("high" in written.columns) == (not question.startswith("count"))
