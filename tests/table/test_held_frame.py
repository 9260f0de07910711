"""A frame is copied into the engine as Ibis copies it: the same columns, types and rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from understudy.table.file_view import connect_in_memory, held_frame

NOON = dt.datetime(2024, 3, 1, 12, 30, 1, 5)
COLUMNS = {
    **{f"i{bits}": pa.array([1, None, -3], getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": pa.array([1, None, 200], getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)},
    "f32": pa.array([0.1, None, float("nan")], pa.float32()),
    "f64": pa.array([0.1, None, float("inf")], pa.float64()),
    "flag": pa.array([True, None, False]),
    "text": pa.array(["a", None, "é'\"\n"]),
    "large text": pa.array(["a", None, ""], pa.large_string()),
    "view": pa.array(["a", None, ""], pa.string_view()),
    "word": pa.array(["b", None, "a"]).dictionary_encode(),
    "bytes": pa.array([b"\x00a", None, b""]),
    "date": pa.array([NOON.date(), None, dt.date(1, 1, 1)]),
    "time": pa.array([NOON.time(), None, dt.time(0)]),
    "us": pa.array([NOON, None, dt.datetime(1970, 1, 1)], pa.timestamp("us")),
    "ns": pa.array([NOON, None, dt.datetime(1970, 1, 1)], pa.timestamp("ns")),
    "zoned": pa.array([NOON, None, dt.datetime(1970, 1, 1)], pa.timestamp("us", "Europe/Vienna")),
    "money": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(12, 2)),
    "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "struct": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())])),
    'a "quoted" name': pa.array([1, None, 3]),
}


@pytest.mark.parametrize("names", [[name] for name in COLUMNS] + [list(COLUMNS)], ids=lambda names: names[-1])
def test_a_frame_is_held_as_ibis_holds_it(names):
    frame = pa.table({name: COLUMNS[name] for name in names})
    ours = held_frame(connect_in_memory(), frame)
    theirs = connect_in_memory().create_table("frame", frame, temp=True)
    assert ours.schema() == theirs.schema()
    assert repr(ours.op().namespace) == repr(theirs.op().namespace)
    one, two = ours.to_pyarrow(), theirs.to_pyarrow()
    assert one.schema == two.schema
    assert repr(one.to_pylist()) == repr(two.to_pylist())  # nan is not itself


def test_a_frame_is_a_copy_that_nobody_else_sees():
    connection, other = connect_in_memory(), connect_in_memory()
    held = held_frame(connection, pa.table({"x": [1, 2]}))
    assert held_frame(other, pa.table({"x": [3]})).to_pyarrow().num_rows == 1
    assert held.to_pyarrow().num_rows == 2
    assert connection.con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []


@pytest.mark.parametrize("names", [["x", "X"], ["x", "x"]])
def test_columns_that_the_engine_takes_for_one_are_refused(names):
    frame = pa.table([pa.array([1]), pa.array([2])], names=names)
    for hold in (held_frame, lambda connection, given: connection.create_table("frame", given, temp=True)):
        with pytest.raises(Exception, match=r"(?i)duplicate|already exists"):
            hold(connect_in_memory(), frame)
