"""The embedded engine finds bins by arithmetic where they are equal; it must agree with the written rule."""

from __future__ import annotations

import datetime as dt
from math import inf, nan, nextafter

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table import duckdb_dialect as dialect
from understudy.table.source import in_memory
from understudy.table.truth import Truth


def codes(attribute: Bins, values: list) -> list[int]:
    """The codes that the engine gives to values of a column of text."""
    texts = [None if value is None else str(value) for value in values]
    truth = Truth(in_memory(pa.table({"x": pa.array(texts, pa.string())})), Domain((attribute,)))
    (batch,) = truth.source.batches(truth.domain, ("x",))
    return batch["x"].tolist()


WHOLE = [-inf, inf, nan, None, -1e300, 1e300, 0.0, -0.0, 0.999999999999, -0.5]


@pytest.mark.parametrize(
    ("first", "width", "size"), [(0, 1, 200), (-1000, 7, 500), (10, 5, 3), (-(2**49), 2**40, 9)]
)
def test_equal_whole_bins_of_text(first: int, width: int, size: int):
    starts = tuple(range(first, first + width * size, width))
    attribute = Bins(name="x", starts=starts, upper=starts[-1] + width, null=True)
    near = [near for start in starts[:50] for near in (start, nextafter(start, -inf), nextafter(start, inf))]
    values = [*WHOLE, *near, starts[-1], starts[-1] + width, starts[-1] + width + 1]
    assert codes(attribute, values) == [attribute.code(value) for value in values]


@pytest.mark.parametrize("days", [1, 7])
def test_equal_bins_of_days(days: int):
    starts = tuple(dt.date(2015, 1, 1) + dt.timedelta(days=days * i) for i in range(400))
    attribute = Bins(name="x", starts=starts, upper=starts[-1] + dt.timedelta(days=days), null=True)
    values = [starts[0] + dt.timedelta(days=i) for i in range(-3, days * 402)] + [None]
    assert codes(attribute, values) == [attribute.code(value) for value in values]
    assert codes(attribute, ["infinity", "-infinity"]) == [399, 0]


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.integers(dialect.MANY_STARTS + 1, 400),
    st.lists(st.floats(), max_size=20),
)
@settings(max_examples=12, deadline=None)
def test_many_nearly_equal_real_bins(low: float, width: float, size: int, values: list[float]):
    starts = tuple(low + width * i / size for i in range(size))
    if len(set(starts)) < size or list(starts) != sorted(starts):
        return
    upper = low + width
    if upper <= starts[-1]:
        return
    attribute = Bins(name="x", starts=starts, upper=upper, null=True)
    near = [near for start in starts[::7] for near in (start, nextafter(start, -inf), nextafter(start, inf))]
    told = [value for value in [*values, *near] if value == value]
    expected = [attribute.code(value) for value in told]
    number = ibis.memtable(pa.table({"x": np.array(told)})).x
    found = dialect.DUCKDB.place(number, starts).to_pyarrow().to_pylist()
    assert found == expected


def test_unequal_real_bins_are_searched():
    starts = tuple(float(i * i) for i in range(100))
    assert dialect._rate(starts) is None
    attribute = Bins(name="x", starts=starts, upper=10_000.0)
    values = [near for start in starts for near in (start, nextafter(start, -inf), nextafter(start, inf))]
    assert codes(attribute, values) == [attribute.code(value) for value in values]


DAYS = tuple(sorted({dt.date(1900, 1, 1) + dt.timedelta(days=i * i // 7) for i in range(300)}))


@pytest.mark.parametrize(
    "starts",
    [
        tuple(float(1.01**i) for i in range(dialect.MANY_STARTS + 1)),
        tuple(float(i) ** 3 / 7 for i in range(1000)),
        tuple(i * i - 5000 for i in range(3 * dialect.MANY_STARTS)),
        DAYS,
    ],
    ids=["one more than a block", "reals", "whole numbers", "days"],
)
def test_many_unequal_bins_are_found_in_blocks(starts: tuple):
    upper = starts[-1] + (dt.timedelta(days=9) if isinstance(starts[0], dt.date) else 9)
    attribute = Bins(name="x", starts=starts, upper=upper, null=True)
    if isinstance(starts[0], dt.date):
        values = [start + dt.timedelta(days=i) for start in starts for i in (-1, 0, 1)] + [None]
    else:
        near = [near for start in starts for near in (start, nextafter(start, -inf), nextafter(start, inf))]
        values = [*WHOLE, *near, upper, upper + 1]
    assert codes(attribute, values) == [attribute.code(value) for value in values]


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_eleven_thousand_bins_are_a_short_statement(power: float):
    """A node for each of them took Ibis and the engine seconds before the first row was read."""
    starts = tuple(10.0 * i**power for i in range(11_000))
    attribute = Bins(name="x", starts=starts, upper=2e9)
    number = ibis.memtable(pa.table({"x": [0.5, 25.0, 1e9]})).x
    place = dialect.DUCKDB.place(number, starts)
    nodes = len(place.op().find(object))
    assert nodes < 1_000
    assert place.to_pyarrow().to_pylist() == [attribute.code(x) for x in (0.5, 25.0, 1e9)]


def test_eleven_thousand_categories_are_a_short_statement():
    known = {f"it's {i}": i for i in range(11_000)}
    text = ibis.memtable(pa.table({"x": ["it's 7", "it's 10999", "its 7", None]})).x
    place = dialect.DUCKDB.find(text, known)
    assert len(place.op().find(object)) < 100
    assert place.to_pyarrow().to_pylist() == [7, 10_999, None, None]
