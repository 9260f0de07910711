"""Names and types of an answer's columns are known before anything is paid for, and are those of the answer."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.query.column import Column
from understudy.query.marginal import Marginal

TEXT = """\
understudy: 1
name: town
source: t.csv
budget: {epsilon: 1000}
attributes:
  age: {type: integer, edges: [0, 18, 65, 120]}
  kids: {type: integer, bounds: [0, 4]}
  pets: {type: integer, bounds: [0, 2], outside: other, "null": true}
  pay: {type: real, edges: [0, 10.5, 20]}
  born: {type: date, edges: [1950-01-01, 1980-01-01, 2020-01-01]}
  sex: {type: category, values: [F, M], "null": true}
  smoker: {type: boolean}
"""
rng = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": rng.integers(0, 120, 200),
        "kids": rng.integers(0, 5, 200),
        "pets": rng.choice([0, 1, 2, 9, None], 200),
        "pay": rng.uniform(0, 20, 200),
        "born": pd.to_datetime(rng.integers(0, 10_000, 200), unit="D", origin="1960-01-01").date,
        "sex": rng.choice(["F", "M", None], 200),
        "smoker": rng.choice([True, False], 200),
    }
)
TOWN = us.Project.frame(FRAME, parse(TEXT), noise=SeededNoise(2))
PYTHON = {"int": int, "float": float, "text": str, "bool": bool, "date": dt.date}

STATEMENTS = {
    "SELECT count(*) FROM town": {"count(*)": "float"},
    "SELECT sex, smoker, kids, avg(pay) AS mean FROM town GROUP BY sex, smoker, kids": {
        "sex": "text", "smoker": "bool", "kids": "int", "mean": "float",
    },
    "SELECT age, pay, born, count(*) AS n FROM town GROUP BY age, pay, born": {
        "age": "text", "pay": "text", "born": "text", "n": "float",
    },
    "SELECT pets, count(*) AS n FROM town GROUP BY pets": {"pets": "text", "n": "float"},
    "SELECT kids * 2 AS twice, kids / 2 AS half, count(*) AS n FROM town GROUP BY kids": {
        "twice": "int", "half": "float", "n": "float",
    },
    "SELECT upper(sex) AS big, count(*) AS n FROM town GROUP BY upper(sex)": {"big": "text", "n": "float"},
    "SELECT kids > 2 AS many, sum(age) AS s FROM town GROUP BY kids > 2": {"many": "bool", "s": "float"},
    "SELECT median(born) AS middle, median(age) AS years FROM town": {"middle": "date", "years": "float"},
    "SELECT smoker, median(born) + 1 AS next FROM town GROUP BY smoker": {"smoker": "bool", "next": "date"},
    "SELECT NULL AS nothing, count(*) AS n FROM town": {"nothing": "text", "n": "float"},
}  # fmt: skip


@pytest.mark.parametrize(("statement", "types"), STATEMENTS.items())
def test_the_types_of_a_statement_are_those_of_its_answer(statement, types):
    prepared = TOWN.prepare(statement, epsilon=20)
    spent = TOWN.ledger.spent
    assert {column.name: column.type for column in prepared.columns} == types
    assert TOWN.ledger.spent == spent
    answer = prepared.run()
    assert isinstance(answer, us.SqlAnswer)
    assert answer.columns == prepared.columns
    seen = 0
    for row in answer.cells:
        for column, cell in zip(prepared.columns, row, strict=True):
            value = cell.value if column.kind == "value" else cell
            if value is None or (column.name, column.type) == (
                "pets",
                "text",
            ):  # whole numbers beside `other`
                continue
            seen += 1
            assert type(value) is PYTHON[column.type], (column, value)
    assert seen


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("count sex=F", (Column("value", "value", "float"),)),
        (
            "share sex=F by smoker, age",
            (
                Column("age", "key", "text"),  # in the order of the domain, as in the answer
                Column("smoker", "key", "text"),
                Column("share", "value", "float"),
            ),
        ),
        ("rate sex=F within kids", (Column("kids", "key", "text"), Column("rate", "value", "float"))),
        (Marginal(TOWN.domain, ("sex",)), (Column("sex", "key", "text"), Column("value", "value", "float"))),
    ],
)
def test_the_columns_of_the_small_language_are_those_of_its_frame(question, columns):
    prepared = TOWN.prepare(question, epsilon=20)
    assert prepared.columns == columns
    frame = prepared.run().to_pandas()
    names = [column.name for column in columns]
    assert list(frame.columns)[: len(names)] == names
    assert set(map(type, frame[names[-1]])) == {float}
