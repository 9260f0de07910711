"""A frame that is declared in Python: the same cells as in a file, and a mark on what was read off the data."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import understudy as us
from understudy.declaration.arguments import domain_of
from understudy.declaration.file import parse
from understudy.errors import DeclarationError, InsufficientBudgetError, ParameterError, SourceError
from understudy.noise.samplers import SeededNoise

DRAW = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": DRAW.integers(0, 100, 800),
        "sex": DRAW.choice(["F", "M"], 800),
        "income": DRAW.random(800) * 1e5,
        "smoker": DRAW.random(800) < 0.3,
        "born": pd.to_datetime(DRAW.choice(["1950-05-05", "1990-09-09"], 800)),
        "rank": DRAW.choice([1, 2, 3], 800),
        "id": np.arange(800) + 10_000,
    }
)
TEXT = """\
understudy: 1
name: frame
source: frame
budget: {epsilon: 9}
attributes:
  age: {type: integer, bounds: [0, 119], width: 10}
  sex: {type: category, values: [F, M], null: true}
  income: {type: real, bounds: [0, 100000], bins: 20}
  smoker: {type: boolean}
  born: {type: date, edges: [1900-01-01, 1960-01-01, 2024-12-31]}
  rank: {type: category, values: ["1", "2", "3"]}
"""
CELLS = {
    "age": range(0, 120, 10),
    "sex": ["F", "M", None],
    "income": (0, 1e5, 20),
    "smoker": bool,
    "born": {"edges": [dt.date(1900, 1, 1), pd.Timestamp("1960-01-01"), np.datetime64("2024-12-31")]},
    "rank": np.array([1, 2, 3]),
}


def test_python_and_a_file_declare_the_same_domain():
    assert us.declare(FRAME, CELLS, epsilon=9).domain == parse(TEXT).domain


@pytest.mark.parametrize(
    "frame",
    [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME, preserve_index=False)],
    ids=["pandas", "polars", "arrow"],
)
def test_frames_of_every_kind_are_questioned(frame):
    project = us.declare(frame, CELLS, epsilon=1000, noise=SeededNoise(1))
    for question, truth in (
        ("count age < 30", (FRAME.age < 30).sum()),
        ("count sex = F", (FRAME.sex == "F").sum()),
        ("count smoker = true", FRAME.smoker.sum()),
        ("count born < 1960-01-01", (FRAME.born < "1960").sum()),
        ("count rank = 2", (FRAME["rank"] == 2).sum()),
    ):
        answer = project.ask(question, epsilon=50, beta=1e-9)
        assert abs(answer.value - truth) <= answer.error < 2
    assert project.sql("SELECT count(*) FROM frame WHERE income < 50000", epsilon=1).source == "measured"


@pytest.mark.parametrize(
    "fields",
    [
        {
            "type": "category",
            "values": ["1", "no", "null", "~", "é", "e\u0301", " a ", "", "a\nb", "a\r\nb", "# x"],
        },
        {
            "type": "category",
            "values": ["\x85", "\u2028", "🦊", "\t", "- a", "{}", "%", "&a", "'", '"', "\\n", "!!"],
        },
        {"type": "category", "values": [1, 2.5, True, "True", dt.date(2000, 2, 29)]},
        {"type": "real", "bounds": [-0.0, 1e22], "edges": [0, 0.1, 1e-300, 1e22]},
        {"type": "real", "bounds": [0, 100], "bins": 7, "null": True},
        {"type": "date", "bounds": [dt.date(1990, 1, 1), dt.date(2010, 1, 1)]},
        {"type": "boolean", "null": False},
    ],
    ids=repr,
)
def test_fields_mean_what_the_same_text_means_in_a_file(fields):
    """They are handed to the reader of the file as it would find them, without a text between."""
    document = {"understudy": 1, "name": "t", "source": "t", "budget": {"epsilon": 1}}
    text = yaml.safe_dump({**document, "attributes": {"a": fields}}, sort_keys=False)
    assert made_or_said(lambda: domain_of({"a": fields})) == made_or_said(lambda: parse(text).domain)


def made_or_said(make) -> object:
    try:
        return repr(make().attributes)
    except DeclarationError as error:
        return error.problem, error.remedy, error.field


def test_cells_may_be_given_in_many_ways():
    days = (dt.date(2024, 1, 1), dt.date(2024, 1, 31))
    domain = us.declare(
        FRAME,
        {
            "age": us.Bins.between("age", [0, 18, 65, 120]),
            "income": {"bounds": [0, 100_000], "bins": 4},
            "rank": (1, 3),
            "born": days,
            "sex": {"F", "M"},
            "smoker": [True, False],
        },
        epsilon=1,
    ).domain  # fmt: skip
    assert domain["age"].labels == ("0-17", "18-64", "65-120")
    assert (domain["income"].kind, domain["income"].size) == ("real", 4)
    assert domain["rank"].labels == ("1", "2", "3")
    assert domain["born"].size == 31
    assert domain["sex"].labels == ("F", "M", "other")
    assert domain["smoker"].labels == ("true", "false", "other")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({}, "no attribute is declared.*infer=True"),
        ({"age": "0-100"}, r"attributes\['age'\]: its cells are not given. Write a list"),
        ({"age": 5}, "its cells are not given"),
        ({"age": range(5, 0)}, r"Write range\(0, 120, 10\)"),
        ({"age": (0.0, 1.0)}, r"\(low, high, bins\)"),
        ({"age": {"bins": 3}}, "Write 'values', 'edges' or 'bounds'"),
        ({"age": {"bounds": [9, 1]}}, "attributes.age.bounds: bounds are two rising values"),
        ({"age": {"type": "integer", "bound": [1, 9]}}, "attributes.age.*bound"),
        ({"age": [0.5]}, "text or whole numbers"),
        ({"age": {"values": [object()]}}, "plain values"),
        ({3: bool}, "named by text"),
    ],
)
def test_what_cannot_be_understood_says_what_to_write(cells, told):
    with pytest.raises(DeclarationError, match=told) as refused:
        us.declare(FRAME, cells, epsilon=1)
    assert "line" not in str(refused.value)  # there is no file


def test_columns_budgets_and_names_are_checked():
    with pytest.raises(SourceError, match="no column 'nope'; it has: age"):
        us.declare(FRAME, {"nope": bool}, epsilon=1)
    with pytest.raises(SourceError, match="not a table"):
        us.declare([1, 2, 3], {"age": bool}, epsilon=1)
    with pytest.raises(ParameterError, match="epsilon"):
        us.declare(FRAME, {"age": range(100)}, epsilon=-1)
    with pytest.raises(ParameterError, match="write name='my-table'"):
        us.declare(FRAME, {"age": range(100)}, epsilon=1, name="my table")
    with pytest.raises(ParameterError, match="no column 'nope' to infer"):
        us.declare(FRAME, epsilon=1, infer=["nope"])
    with pytest.raises(SourceError, match=r"the frame has no rows: .* give its `attributes`"):
        us.declare(FRAME[:0], epsilon=1, infer=True)


def test_what_is_read_off_the_data_is_marked_and_warned_about():
    with pytest.warns(
        UserWarning, match=r"not private: income, smoker, born, rank.*no cells were found for id"
    ):
        project = us.declare(FRAME, {"age": range(0, 120, 10), "sex": ["F", "M"]}, epsilon=1, infer=True)
    assert project.inferred == ("income", "smoker", "born", "rank")
    assert set(project.domain.names) == {"age", "sex", *project.inferred}
    assert project._repr_html_().count("READ OFF THE DATA: review") == 4
    with pytest.warns(UserWarning, match="not private: sex. Review"):
        one = us.declare(FRAME, {"age": range(0, 120, 10)}, epsilon=1, infer=["sex"])
    assert one.inferred == ("sex",)
    given = us.declare(FRAME, {"age": range(0, 120, 10)}, epsilon=1)
    assert given.inferred == ()
    assert "READ OFF" not in given._repr_html_()


def test_a_budget_in_a_file_outlives_the_process(tmp_path):
    first = us.declare(FRAME, {"age": range(0, 100)}, epsilon=1, ledger=tmp_path / "budget.ledger")
    first.ask("count by age", epsilon=0.75)
    again = us.declare(FRAME, {"age": range(0, 100)}, epsilon=1, ledger=str(tmp_path / "budget.ledger"))
    assert again.ledger.remaining.amount == 0.25
    with pytest.raises(InsufficientBudgetError):
        again.ask("count by age", epsilon=0.5)
    forgotten = us.declare(FRAME, {"age": range(0, 100)}, epsilon=1)
    assert forgotten.ledger.remaining.amount == 1


def test_units_and_private_numbers_of_rows_are_declared():
    project = us.declare(
        FRAME,
        {"age": range(0, 100)},
        epsilon=1,
        neighbours="add-remove",
        unit=us.Unit("id", 2),
        rows_at_least=100,
    )
    assert project.declaration.relation.max_rows == 2
    with pytest.raises(ParameterError, match="add-remove"):
        us.declare(FRAME, {"age": range(0, 100)}, epsilon=1, unit=us.Unit("id", 2))


def test_whatever_is_returned_is_exported():
    for name in ("Release", "Session", "Quote", "PreparedQuestion", "Plan", "Score", "Certificate", "Board",
                 "Ledger", "Answer", "SqlAnswer", "Project", "Unit", "declare", "metrics"):  # fmt: skip
        assert name in us.__all__
        assert getattr(us, name) is not None


def test_a_list_of_columns_has_no_cells():
    with pytest.raises(ParameterError, match=r"attributes names the cells of each column.* infer="):
        us.declare(pd.DataFrame({"age": [1], "sex": ["F"]}), ["age", "sex"], epsilon=1)
