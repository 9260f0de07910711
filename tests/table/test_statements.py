"""Statements that encode rows are written once for tables of the same columns and declaration, for no others."""

from __future__ import annotations

import pandas as pd
import pytest

from understudy.declaration.declaration import Unit
from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table import statements, view_reader
from understudy.table.source import in_memory
from understudy.table.truth import Truth

FRAME = pd.DataFrame({"a": [0.0, 0.5, 1.0, 2.0], "b": ["x", "y", "x", "z"], "who": [1, 1, 1, 2]})


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(statements, "_kept", type(statements._kept)())


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """What is written meanwhile, statement by statement."""
    found, write = [], view_reader.EmbeddedView.written

    def noted(view, expression):
        found.append(write(view, expression))
        return found[-1]

    monkeypatch.setattr(view_reader.EmbeddedView, "written", noted)
    return found


def counts(frame: pd.DataFrame, *attributes, unit: Unit | None = None) -> list:
    source, domain = in_memory(frame), Domain(attributes)
    source.check(domain, unit)
    return Truth(source, domain, unit).count(domain.names).tolist()


A = Bins(name="a", starts=(0.0, 0.5, 1.5), upper=2.0)
B = Categories(name="b", values=("x", "y"))


def test_one_table_after_the_other_is_read_by_one_statement(written):
    other = FRAME.assign(a=[2.0, 2.0, 2.0, 0.25])
    assert counts(FRAME, A) == [1, 2, 1]
    assert counts(other, A) == [1, 0, 3]
    assert len(written) == 1


@pytest.mark.parametrize(
    ("frame", "attributes", "unit"),
    [
        (FRAME, [Bins(name="a", starts=(0, 1), upper=2)], None),
        (FRAME, [Bins(name="a", starts=(0.0, 0.5, 1.0), upper=2.0)], None),
        (FRAME.astype({"a": "float32"}), [A], None),
        (FRAME.assign(a=FRAME["a"].astype(str)), [A], None),
        (FRAME, [A], Unit("who", 1)),
        (FRAME, [A], Unit("who", 2)),
        (FRAME, [A], Unit("who", 1, key="other")),
        (FRAME, [Categories(name="a", column="b", values=("x", "y"))], None),
        (FRAME, [Boolean(name="a")], None),
    ],
)
def test_other_columns_declarations_and_units_have_statements_of_their_own(frame, attributes, unit, written):
    alone = counts(frame, *attributes, unit=unit)
    statements._kept.clear()
    counts(FRAME, A)
    assert counts(frame, *attributes, unit=unit) == alone
    assert len(written) == 3  # of which the middle one is of the other table


def test_equal_numbers_of_two_types_are_told_apart(written):
    """0 == 0.0: a reader of whole numbers must not get the statement of a reader of reals."""
    whole, real = Bins(name="a", starts=(0, 1), upper=2), Bins(name="a", starts=(0.0, 1.0), upper=2.0)
    assert whole == real
    counts(FRAME, whole)
    counts(FRAME, real)
    assert len(set(written)) == len(written) == 2


def test_a_statement_is_found_again_whichever_part_is_asked(written):
    source, domain = in_memory(FRAME), Domain((A, B))
    with source.look() as look:
        for clique in (("a",), ("b",), ("a", "b"), ("a",)):
            assert [list(batch) for batch in look.batches(domain, clique)] == [list(clique)]
    assert len(written) == 3


def test_few_statements_are_kept_and_no_long_ones(monkeypatch):
    monkeypatch.setattr(statements, "MOST_STATEMENTS", 2)
    for name in "abc":
        statements.statement_of((name,), lambda name=name: name)
    assert list(statements._kept) == [("b",), ("c",)]
    statements.statement_of(("b",), lambda: pytest.fail("it was kept"))
    statements.statement_of(("d",), lambda: "d")
    assert list(statements._kept) == [("b",), ("d",)]
    statements.statement_of(("e",), lambda: "e" * (statements.LONGEST_STATEMENT + 1))
    assert list(statements._kept) == [("b",), ("d",)]


def test_what_cannot_be_written_down_is_not_kept():
    rows, domain = in_memory(FRAME).expression, Domain((A,))
    assert statements.key_of(rows, domain, None) is not None
    assert statements.key_of(rows, domain, Unit("who", 1, cells=domain)) is None
    assert statements.key_of(rows.limit(2), domain, None) is None
    assert statements.key_of(rows, domain, None, lambda: 0) is None


def test_attributes_of_two_classes_with_the_same_fields_are_told_apart():
    class Other(Bins):
        """Bins that may be read otherwise."""

    rows, fields = in_memory(FRAME).expression, {"name": "a", "starts": (0,), "upper": 2}
    bins, other = (statements.key_of(rows, Domain((kind(**fields),)), None) for kind in (Bins, Other))
    assert None not in (bins, other)
    assert bins != other
