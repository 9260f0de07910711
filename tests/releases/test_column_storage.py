"""Synthetic rows are stored as the source's: categoricals, nullable types, units of moments, types of Arrow.

A table is released and its rows are held against the source's own schema; dictionaries list what is declared, and
nothing that only the rows of the source show.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tiny_release import tiny
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.project import Project, open_project
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.table.source import in_memory

ROWS = 12
WARDS = ["north", "south", "east"]
HEAD = "understudy: 1\nname: t\nsource: t.parquet\nbudget: {epsilon: 100}\nattributes:\n"
FIELDS = {
    "ward": "{type: category, values: [north, south], null: true}",
    "age": "{type: integer, bounds: [0, 9], null: true}",
    "pay": "{type: real, bounds: [0, 8], bins: 4, null: true}",
    "ill": "{type: boolean, null: true}",
    "seen": '{type: timestamp, edges: ["2024-01-01 00:00:00", "2024-06-01 12:00:00", "2025-01-01 00:00:00"]}',
    "level": "{type: category, values: [1, 2], outside: other}",
}
MOMENTS = [dt.datetime(2024, 3, 1, 9, 30) + dt.timedelta(days=9 * i) for i in range(ROWS)]


def declared(*names: str, **more: str):
    lines = [f"  {name}: {text}" for name, text in (FIELDS | more).items() if name in names or name in more]
    return parse(HEAD + "\n".join(lines) + "\n")


def released(frame, *names: str, **more: str) -> Release:
    project = Project.frame(frame, declared(*names, **more), noise=SeededNoise(3))
    return release(project, "1-way", epsilon=50, method=tiny)


def pandas_frame(**types) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "ward": [*WARDS, None] * 3,
            "age": np.arange(ROWS) % 10,
            "pay": np.arange(ROWS) / 2,
            "ill": [True, False] * 6,
            "seen": MOMENTS,
            "level": [1, 2, 3] * 4,
        }
    )
    return frame.astype(types)[list(types)]


@pytest.mark.parametrize(
    "types",
    [
        {"ward": "string", "age": "Int64", "pay": "Float64", "ill": "boolean"},
        {"age": "Int8", "pay": "Float32", "ill": "boolean", "level": "UInt16"},
        {"ward": "str", "age": "int64", "pay": "float64", "ill": "bool"},
        {"seen": "datetime64[s]"},
        {"seen": "datetime64[ms]"},
        {"seen": "datetime64[us]"},
        {"seen": "datetime64[ns]"},
        {
            "age": pd.ArrowDtype(pa.int16()),
            "ward": pd.ArrowDtype(pa.string()),
            "ill": pd.ArrowDtype(pa.bool_()),
        },
    ],
)
def test_rows_of_a_pandas_frame_have_its_types(types):
    frame = pandas_frame(**types)
    no_nulls = {
        name: FIELDS[name].replace(", null: true", "") for name in ("age", "pay", "ill") if name in types
    }
    made = released(frame, *types, **no_nulls)
    assert made.sample(40).dtypes.to_dict() == frame.dtypes.to_dict()


def test_moments_keep_their_time_zone():
    frame = pandas_frame(seen="datetime64[ms]")
    frame["seen"] = frame["seen"].dt.tz_localize("Europe/Berlin")
    made = released(frame, "seen")
    assert made.sample(5)["seen"].dtype == frame["seen"].dtype
    frame["seen"] = frame["seen"].dt.tz_convert(dt.timezone(dt.timedelta(hours=2)))  # a name that Arrow lacks
    assert str(released(frame, "seen").sample(5)["seen"].dtype) == "datetime64[ms, UTC]"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_with_a_time_zone_keep_their_unit(tmp_path, unit, zone):
    """The engine has such moments in microseconds, whatever the frame or the file has."""
    frame = pandas_frame(seen=f"datetime64[{unit}]")
    frame["seen"] = frame["seen"].dt.tz_localize(zone)
    made = released(frame, "seen")
    assert made.sample(5)["seen"].dtype == frame["seen"].dtype
    made.save(tmp_path / "out", rows=5)
    kept = parquet.read_schema(tmp_path / "out/synthetic.parquet").field("seen").type
    assert kept == pa.timestamp("ms" if unit == "s" else unit, zone)  # Parquet has no seconds


def test_moments_that_nanoseconds_do_not_hold_are_microseconds():
    frame = pandas_frame(seen="datetime64[ns]")
    frame["seen"] = frame["seen"].dt.tz_localize("UTC")
    far = '{type: timestamp, edges: ["2024-01-01 00:00:00", "2300-01-01 00:00:00"]}'
    assert str(released(frame, seen=far).sample(5)["seen"].dtype) == "datetime64[us, UTC]"


def test_a_categorical_lists_the_declared_values_and_no_others():
    frame = pandas_frame(ward="category")
    sample = released(frame, "ward").sample(200)["ward"]
    assert sample.dtype == pd.CategoricalDtype(["north", "south", "other"])  # east is not declared
    numbers = released(pandas_frame(level="category"), "level").sample(200)["level"]
    assert numbers.dtype.categories.tolist() == [1, 2]
    assert not numbers.dtype.ordered


def test_whatever_categories_a_frame_has_the_release_tells_the_same():
    few, many = pandas_frame(ward="category"), pandas_frame(ward="category")
    many["ward"] = many["ward"].cat.add_categories([f"w{i}" for i in range(300)])  # the type of numbers grows
    ordered = many.assign(ward=many["ward"].cat.as_ordered())
    told = [released(frame, "ward") for frame in (few, many, ordered)]
    assert [one.certificate["storage"] for one in told] == [{"ward": "dictionary"}] * 3
    schemas = [one.sample(5, backend="arrow").schema for one in told]
    assert schemas[0] == schemas[1] == schemas[2]


def test_nullable_whole_and_real_numbers_are_not_told_apart():
    whole, real = pandas_frame(age="Int64"), pandas_frame(age="Float64")
    told = [released(frame, "age") for frame in (whole, real)]
    assert told[0].certificate["storage"] == told[1].certificate["storage"]
    assert [str(one.sample(5)["age"].dtype) for one in told] == ["Int64", "Int64"]


def test_only_declared_columns_are_told():
    made = released(pandas_frame(ward="category", age="Int64"), "age")
    assert made.certificate["storage"] == {"age": "nullable"}


def test_rows_of_a_polars_frame_have_its_types():
    frame = pl.DataFrame(
        {
            "ward": pl.Series([*WARDS, None] * 3, dtype=pl.Categorical),
            "kind": pl.Series(["a", "b", "c"] * 4, dtype=pl.Enum(["b", "a", "c", "never"])),
            "age": pl.Series(range(ROWS), dtype=pl.Int16),
            "seen": pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
        }
    )
    made = released(frame, "ward", "age", "seen", kind="{type: category, values: [a, b]}")
    sample = made.sample(100, backend="polars")
    kinds = dict(sample.schema)
    assert kinds["ward"] == pl.Categorical
    assert kinds["kind"] == pl.Enum(["a", "b", "other"])
    assert (kinds["age"], kinds["seen"]) == (pl.Int16, pl.Datetime("ms"))
    assert set(sample["ward"].cast(pl.String)) <= {"north", "south", "other", None}


ARROW = {
    "ward": pa.array([*WARDS, None] * 3).dictionary_encode(),
    "kind": pa.array(["a", "b"] * 6, pa.large_string()),
    "seen": pa.array(MOMENTS, pa.timestamp("ms")),
    "zone": pa.array(MOMENTS, pa.timestamp("s", "Europe/Berlin")),
    "day": pa.array([moment.date() for moment in MOMENTS], pa.date64()),
    "level": pa.array([1, 2, 3] * 4, pa.int8()),
}
EXTRA = {
    "kind": "{type: category, values: [a, b]}",
    "zone": FIELDS["seen"],
    "day": "{type: date, edges: [2024-01-01, 2024-06-01, 2025-01-01]}",
}


def test_rows_of_an_arrow_table_have_its_types():
    table = pa.table(ARROW)
    made = released(table, "ward", "seen", "level", **EXTRA)
    assert made.sample(30, backend="arrow").select(table.column_names).schema.equals(table.schema)


def test_rows_of_a_parquet_file_are_a_file_of_the_same_types(tmp_path):
    table = pa.table(ARROW)
    parquet.write_table(table, tmp_path / "t.parquet")
    text = HEAD + "".join(f"  {name}: {(FIELDS | EXTRA)[name]}\n" for name in table.column_names)
    (tmp_path / "understudy.yml").write_text(text)
    with open_project(tmp_path / "understudy.yml") as project:
        made = release(project, "1-way", epsilon=50, method=tiny)
    made.save(tmp_path / "out", rows=40, csv=True)
    source = parquet.read_schema(tmp_path / "t.parquet").remove_metadata()
    found = parquet.read_table(tmp_path / "out" / "synthetic.parquet")
    assert found.schema.remove_metadata().equals(source)
    loaded = Release.load(tmp_path / "out")
    assert loaded.sample(40, backend="arrow").equals(found)
    lines = (tmp_path / "out" / "synthetic.csv").read_text().splitlines()
    assert lines[0] == ",".join(table.column_names)
    assert len(lines) == 41
    with Project.frame(found, parse(text)) as again:  # the declaration reads them
        assert again.ask("count", epsilon=100).value == pytest.approx(40, abs=5)


def test_a_release_of_an_earlier_version_has_plain_columns(tmp_path):
    made = released(pandas_frame(ward="category"), "ward")
    old = {key: value for key, value in made.certificate.items() if key != "storage"}
    plain = Release(made.domain, made.standin, made.rows, made.answers, old)
    assert plain.sample(5, backend="arrow").schema.types == [pa.string()]


def test_frames_of_other_libraries_are_stored_in_no_special_way():
    class Streams:
        def __init__(self, table: pa.Table) -> None:
            self.table, self.schema = table, table.schema

        def __arrow_c_stream__(self, requested=None):
            return self.table.__arrow_c_stream__(requested)

    assert in_memory(Streams(pa.table({"a": [1]}))).told_storage == {}
