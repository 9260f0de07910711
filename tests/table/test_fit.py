"""How many rows fit no declared cell: told to the custodian, exactly, and to nobody else."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from people import write_project
from program import call
from understudy.declaration.declaration import SourceSpec, Unit
from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table.engine import AnyIbis
from understudy.table.fit import Fit
from understudy.table.portable_dialect import PORTABLE
from understudy.table.source import in_memory, open_source
from understudy.table.view_reader import ViewReader

EDGES = [dt.date(2000, 1, 1), dt.date(2001, 1, 1)]
AGE = Bins.integers("x", 0, 99)


def text(values: Sequence[str | None]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.string())})


def counts(fit: Fit) -> list[tuple[int, int, int]]:
    return [(found.missing, found.unreadable, found.outside) for found in fit.attributes]


@pytest.mark.parametrize(
    ("attribute", "values", "found"),
    [
        (AGE, ["1", "F", None, "100", "-1", "2.5", "nan", "inf"], (2, 1, 3)),
        (Bins.between("x", [0.0, 9.0]), ["1,5", "1.5", "1.000,5", "10"], (0, 2, 1)),
        (Bins.between("x", EDGES), ["31.12.2000", "12/31/2000", "2000-12-31", "1999-12-31", ""], (0, 3, 1)),
        (Categories(name="x", values=("F", "M")), ["f", "m", "F", " F", None], (1, 0, 3)),
        (Boolean(name="x"), ["yes", "TRUE ", "ja", None, "0"], (1, 1, 0)),
    ],
)
def test_rows_are_counted_by_why_they_fit_no_cell(attribute, values, found):
    fit = in_memory(text(values)).read_through(Domain((attribute,)))
    assert (fit.rows, counts(fit)) == (len(values), [found])


def test_typed_columns_have_nothing_unreadable():
    frame = pd.DataFrame({"x": [1.0, float("nan"), 200.0], "b": [True, False, None], "n": [1, 2, 3]})
    domain = Domain((AGE, Boolean(name="b"), Categories(name="n", values=("1", "2"))))
    assert counts(in_memory(frame).read_through(domain)) == [(1, 0, 1), (1, 0, 0), (0, 0, 1)]


ATTRIBUTES: list[Attribute] = [
    AGE,
    Bins.integers("x", 0, 5, outside=Outside.OTHER),
    Bins.between("x", [0.0, 1.5, 3.0], outside=Outside.NULL, null=True),
    Categories(name="x", values=("F", "3", "é")),
    Boolean(name="x"),
]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(ATTRIBUTES),
    st.lists(
        st.sampled_from(["0", "1", "3", "7.5", "-2", "F", "f", "é", "", "x", "1e400", "NaN", None]),
        max_size=9,
    ),
)
def test_whatever_has_a_reason_is_in_no_declared_cell_of_its_own(attribute, values):
    """The declaration's own rule, value by value: a cell of its own and no reason, or a reason."""
    (found,) = counts(in_memory(text(values)).read_through(Domain((attribute,))))
    fitting = sum(_fits(attribute, value) for value in values)
    assert sum(found) == len(values) - fitting


def _fits(attribute: Attribute, value: str | None) -> bool:
    if value is None:
        return False
    if isinstance(attribute, Boolean):
        return value.lower() in attribute.TRUE + attribute.FALSE
    if isinstance(attribute, Bins):
        try:
            number = float(value)
        except ValueError:
            return False
        return attribute.starts[0] <= number <= attribute.upper
    return attribute.proper_code(value) is not None


def test_a_warning_is_given_above_a_twentieth_and_says_where_the_rows_went():
    domain = Domain((AGE,))
    few = in_memory(text(["1"] * 19 + ["F"])).read_through(domain)
    assert (counts(few), few.warnings) == ([(0, 1, 0)], [])
    (said,) = in_memory(text(["1"] * 18 + ["F", None])).read_through(domain).warnings
    assert said.startswith(
        "x: 2 of 20 rows fit no declared cell: 1 cannot be read as integer (counted as '0')"
    )
    assert "1 missing" in said
    own = Bins.between("x", [0, 9], null=True)
    assert in_memory(text([None, "1"])).read_through(Domain((own,))).warnings == []
    assert in_memory(text([])).read_through(domain).warnings == []


def test_a_units_rows_are_all_read(tmp_path):
    (tmp_path / "t.csv").write_text("x,who\n1,a\n2,a\nq,a\n,b\n7,\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    fit = source.read_through(Domain((AGE,)), Unit("who", 1))
    assert (fit.rows, counts(fit)) == (5, [(1, 1, 0)])


def test_one_pass_counts_everything_here_and_few_do_elsewhere(monkeypatch):
    passes: list[object] = []
    build = ViewReader._misfits
    monkeypatch.setattr(ViewReader, "_misfits", lambda look, part: passes.append(part) or build(look, part))
    monkeypatch.setattr("understudy.table.view_reader.COUNTED_ATTRIBUTES", 4)
    source = in_memory(pa.table({f"x{i}": ["a", "q"] for i in range(10)}))
    domain = Domain(tuple(Categories(name=f"x{i}", values=("a",)) for i in range(10)))
    assert counts(source.read_through(domain)) == [(0, 0, 1)] * 10
    assert len(passes) == 1
    elsewhere = replace(source, engine=AnyIbis(None, PORTABLE))
    assert counts(elsewhere.read_through(domain)) == [(0, 0, 1)] * 10
    assert len(passes) == 1 + 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path, rows=100, sex="{type: integer, bounds: [0, 1]}")


def test_check_read_shows_a_column_that_is_not_what_it_is_declared_as(folder):
    done = call("check", "--read", cwd=folder, status=1)
    assert "100 rows were read" in done.stdout
    assert "not for publication" in done.stdout
    assert "sex: 100 of 100 rows cannot be read as integer, more than the tolerated 0.01" in done.stderr
    assert "age:" not in done.stderr
    told = json.loads(call("check", "--read", "--json", cwd=folder, status=1).stdout)["read"]
    assert told["note"] == "exact counts of the table, not for publication"
    assert told["rows"] == 100
    assert told["misfits"]["sex"] == {"missing": 0, "unreadable": 100, "outside": 0}
    assert [said.split(":")[0] for said in told["warnings"]] == ["sex"]
    assert [said.split(":")[0] for said in told["failures"]] == ["sex"]
    assert "read" not in json.loads(call("check", "--json", cwd=folder).stdout)
