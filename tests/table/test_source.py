"""The engine's encoding against the declared rule, and sources that misbehave."""

from __future__ import annotations

import datetime as dt
import gzip
import os

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.declaration.declaration import SourceSpec, Unit
from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, SourceChangedError, SourceError
from understudy.table import file_view
from understudy.table.source import in_memory, open_source
from understudy.table.view_reader import ViewReader


def codes(source, domain, unit=None):
    """All codes of a source, one column for each attribute."""
    batches = list(source.batches(domain, domain.names, unit))
    return {
        name: np.concatenate([batch[name] for batch in batches] or [[]]).tolist() for name in domain.names
    }


ATTRIBUTES = [
    (Bins.integers("x", -2, 5), pa.int64(), st.integers(-(2**62), 2**62)),
    (Bins.integers("x", 0, 300), pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (Bins.between("x", [-7, -2, 3, 8, 10]), pa.int32(), st.integers(-12, 14)),
    (Bins.integers("x", -100, 100), pa.int8(), st.integers(-128, 127)),
    (Bins.integers("x", 2**62, 2**62 + 9), pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (Bins.integers("x", -3, 9), pa.uint64(), st.integers(0, 2**64 - 1)),
    (Bins.between("x", [0, 5, 10, 17], outside=Outside.OTHER), pa.int64(), st.integers(-3, 20)),
    (Bins.between("x", [4, 9]), pa.int64(), st.integers(-3, 20)),
    (Bins.between("x", [0, 3, 10], outside=Outside.OTHER), pa.int8(), st.integers(-128, 127)),
    (Bins.between("x", [0, 3, 10], outside=Outside.NULL, null=True), pa.uint8(), st.integers(0, 255)),
    (Bins.between("x", [0, 3, 10]), pa.float64(), st.floats(-20, 20) | st.just(float("nan"))),
    (Bins.between("x", [-0.5, 0.0, 0.1, 7.25], null=True), pa.float64(), st.floats()),
    (Bins.between("x", [-0.5, 0.0, 0.1, 7.25], outside=Outside.OTHER), pa.float64(), st.floats() | st.just(-0.0)),
    (
        Bins.between("x", [dt.date(1990, 1, 1), dt.date(2000, 2, 29), dt.date(2010, 1, 1)], null=True),
        pa.date32(),
        st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    ),
    (Categories(name="x", values=("a", "b", "é", "")), pa.string(), st.sampled_from(["a", "A", "é", "e\u0301"])),
    (Categories(name="x", values=("a",), null=True), pa.string(), st.sampled_from(["a", "q"])),
    (Categories(name="x", values=("1", "2")), pa.int64(), st.integers(0, 3)),
    (Categories(name="x", values=("true", "false")), pa.bool_(), st.booleans()),
    (Boolean(name="x"), pa.bool_(), st.booleans()),
    (Boolean(name="x", null=True), pa.string(), st.sampled_from(["true", "False", " YES ", "n", "0", "so-so"])),
    (Boolean(name="x"), pa.int64(), st.integers(-1, 2)),
    (Boolean(name="x", null=True), pa.float64(), st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5, 1e300, float("nan")])),
    (Categories(name="x", values=("0", "2", str(2**53))), pa.float64(), st.floats() | st.just(2.0**53)),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "dtype", "values"), ATTRIBUTES)
@settings(max_examples=8)
@given(data=st.data())
def test_engine_encodes_as_declared(attribute, dtype, values, data):
    column = data.draw(st.lists(values | st.none(), max_size=60))
    source = in_memory(pa.table({"x": pa.array(column, dtype)}))
    domain = Domain((attribute,))
    source.check(domain)
    assert codes(source, domain)["x"] == [attribute.code(value) for value in column]


def test_sources_of_every_kind_agree(tmp_path):
    frame = pd.DataFrame(
        {"age": [5, 15, 25, None], "sex": ["F", "M", None, "F"], "on": [True, False, True, True]}
    )
    domain = Domain(
        (
            Bins.between("age", [0, 10, 20, 30], null=True),
            Categories(name="sex", values=("F", "M"), null=True),
            Boolean(name="on"),
        )
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    with gzip.open(tmp_path / "t.csv.gz", "wt") as compressed:
        compressed.write((tmp_path / "t.csv").read_text())
    frame.to_parquet(tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("create table people as select * from frame")
    sources = [
        in_memory(frame),
        in_memory(pl.from_pandas(frame)),
        in_memory(pa.Table.from_pandas(frame)),
        open_source(SourceSpec("t.csv"), base=tmp_path),
        open_source(SourceSpec("t.tsv", delimiter="\t"), base=tmp_path),
        open_source(SourceSpec("t.csv.gz"), base=tmp_path),
        open_source(SourceSpec("t.parquet"), base=tmp_path),
        open_source(SourceSpec("t.duckdb"), base=tmp_path),
        open_source(SourceSpec("t.duckdb", table="people"), base=tmp_path),
    ]
    for source in sources:
        source.check(domain)
        assert source.rows(domain) == 4
        assert codes(source, domain) == {"age": [0, 1, 2, 3], "sex": [0, 1, 3, 0], "on": [1, 0, 1, 1]}


def test_a_text_file_is_typed_by_the_declaration_alone(tmp_path):
    """What cannot be read is missing; no row can make the program fail or drop a column's type."""
    (tmp_path / "t.csv").write_text(
        'age,sex\n5,F\nnot a number,"M"\n,F\n1e1,M\nnan,F\n'
        '99999999999999999999999,M\n"un\nquoted",F\n7\n7,F,extra\n'
    )
    domain = Domain(
        (Bins.between("age", [0, 10, 20], null=True), Categories(name="sex", values=("F", "M"), null=True))
    )
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    found = codes(source, domain)
    assert found["age"][:7] == [0, 2, 2, 1, 2, 1, 2]
    assert found["sex"][:7] == [0, 1, 0, 1, 0, 1, 0]
    assert len(found["age"]) == source.rows(domain)


def test_invalid_text_does_not_stop_the_program(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"age,sex\n5,F\n6,\xff\xfe\n7,M\n")
    domain = Domain((Bins.between("age", [0, 10, 20]), Categories(name="sex", values=("F", "M"))))
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    assert len(codes(source, domain)["age"]) == source.rows(domain) >= 2
    assert len(next(source.batches(domain, ("age",)))["age"]) == source.rows(domain)


@pytest.mark.parametrize(
    "text", ['x,s\n1,"a\nb"\n2,c\n', 'x,s\n1,"open\n2,c\n', 'x,s\r\n1,"a\r\nb"\r\n2,c\r\n']
)
def test_quoted_line_breaks_and_open_quotes_are_no_error(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    domain = Domain((Bins.integers("x", 0, 5), Categories(name="s", values=("c",))))
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    assert len(codes(source, domain)["x"]) == source.rows(domain)


def test_wide_decimals_and_far_timestamps_have_a_cell():
    wide = Domain((Bins.between("x", [0.0, 0.1, 0.5], null=True),))
    table = pa.table({"x": pa.array([10**37, 0, None], pa.decimal128(38, 0))})
    assert codes(in_memory(table), wide)["x"] == [1, 0, 2]
    days = Domain(
        (Bins.between("x", [dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 1, 1)], null=True),)
    )
    for unit in ("s", "ms", "us"):
        column = pa.array([-(2**63) + 1, 0, 2**62, None], pa.int64()).cast(pa.timestamp(unit))
        assert codes(in_memory(pa.table({"x": column})), days)["x"] == [0, 0, 1, 2]


def test_edges_beyond_every_column_are_refused_in_the_declaration():
    with pytest.raises(DomainError, match="64 bits"):
        Bins.between("x", [0, 2**64, 2**70])
    with pytest.raises(DomainError, match="9999"):
        Bins.between("x", [dt.date(2000, 1, 1), dt.date.max])


def test_a_file_that_an_engine_cannot_read_is_said_to_be_damaged(tmp_path, monkeypatch):
    """`understudy check` would end in the same error, and is no advice."""
    (tmp_path / "t.csv").write_text("a\n1\n2\n", encoding="utf-8")
    domain = Domain([Bins.integers("a", 0, 9)])
    source = open_source(SourceSpec("t.csv"), base=tmp_path, columns=("a",))

    def read_through(*_):
        raise duckdb.ParserException("secret")

    monkeypatch.setattr(ViewReader, "read_through", read_through)
    with pytest.raises(SourceError, match=r"\(ParserException\).*zero bytes: mend it") as failed:
        source.read_through(domain)
    assert "understudy check" not in str(failed.value)
    assert "secret" not in str(failed.value)


def test_frames_that_cannot_be_read_quote_nothing():
    for values in ([1, "SECRET"], ["SECRET", 1], [2**70, 1]):
        with pytest.raises(SourceError) as refused:
            in_memory(pd.DataFrame({"c": pd.Series(values, dtype=object)}))
        assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_tables_and_single_rows(tmp_path, rows, ending):
    table = pa.table({"x": pa.array([3][:rows], pa.int64())})
    if ending == "csv":
        (tmp_path / "t.csv").write_text("x\n" + "3\n" * rows)
    else:
        pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(SourceSpec(f"t.{ending}"), base=tmp_path)
    domain = Domain((Bins.integers("x", 0, 5),))
    source.check(domain)
    assert source.rows(domain) == rows
    assert codes(source, domain)["x"] == [3] * rows


def test_two_hundred_columns():
    table = pa.table({f"x{i}": pa.array([i % 5, 4], pa.int8()) for i in range(200)})
    domain = Domain(tuple(Bins.integers(f"x{i}", 0, 4) for i in range(200)))
    source = in_memory(table)
    source.check(domain)
    assert codes(source, domain)["x7"] == [2, 4]


def test_a_wrong_delimiter_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("age;sex\n5;F\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path, candid=True)
    with pytest.raises(SourceError, match="delimiter"):
        source.check(Domain((Bins.integers("age", 0, 5),)))


@pytest.mark.parametrize(
    ("attribute", "dtype"),
    [
        (Bins.integers("x", 0, 5), pa.bool_()),
        (Bins.between("x", [dt.date(2000, 1, 1), dt.date(2001, 1, 1)]), pa.int64()),
        (Categories(name="x", values=("a",)), pa.decimal128(9, 2)),
        (Boolean(name="x"), pa.date32()),
        (Bins.integers("x", 0, 5), pa.list_(pa.int64())),
    ],
)
def test_columns_of_the_wrong_type_are_refused_by_schema(attribute, dtype):
    source = in_memory(pa.table({"x": pa.array([None], dtype)}))
    with pytest.raises(SourceError, match="cannot be read as"):
        source.check(Domain((attribute,)))


def test_missing_columns_are_refused_by_schema():
    with pytest.raises(SourceError, match="lacks the declared column 'y'"):
        in_memory(pa.table({"x": [1]})).check(Domain((Bins.integers("y", 0, 1),)))
    with pytest.raises(SourceError, match="lacks the declared column 'person'"):
        in_memory(pa.table({"x": [1]})).check(Domain((Bins.integers("x", 0, 1),)), Unit("person", 1))


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("t.csv", b"", "no header"),
        ("t.csv", b"a,a\n1,2\n", "more than once"),
        ("t.xlsx", b"x", "ending"),
        ("t.parquet", b"not parquet", "cannot be opened"),
        ("t.csv.gz", b"not gzip", "cannot be unpacked"),
        ("t.csv", b"\xff\xfe\x00\x01", "is not in utf-8: say in which encoding"),
    ],
)
def test_broken_files_are_refused_when_opened(tmp_path, name, content, hint):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=hint):
        open_source(SourceSpec(name), base=tmp_path)


def test_a_missing_file_a_folder_and_a_missing_table(tmp_path):
    with pytest.raises(SourceError, match="No such file"):
        open_source(SourceSpec("t.csv"), base=tmp_path)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(SourceError, match="folder"):
        open_source(SourceSpec("d.csv"), base=tmp_path)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("create table a (x int); create table b (x int)")
    with pytest.raises(SourceError, match="a, b"):
        open_source(SourceSpec("t.duckdb"), base=tmp_path, candid=True)
    with pytest.raises(SourceError, match="several of which `table:` names none"):
        open_source(SourceSpec("t.duckdb"), base=tmp_path)
    with pytest.raises(SourceError, match="has no table 'c': the custodian can see"):
        open_source(SourceSpec("t.duckdb", "c"), base=tmp_path)
    with pytest.raises(SourceError, match="not a table"):
        in_memory(42)


def test_a_table_that_changes_or_disappears_is_noticed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    domain = Domain((Bins.integers("x", 0, 5),))
    assert codes(source, domain)["x"] == [1]
    path.write_text("x\n1\n2\n")
    with pytest.raises(SourceChangedError):
        codes(source, domain)
    path.write_text("x\n1\n")
    os.utime(path, ns=(0, 0))
    with pytest.raises(SourceChangedError):
        source.rows(domain)
    path.unlink()
    with pytest.raises(SourceError, match="cannot be read any more"):
        source.rows(domain)


def test_engine_errors_do_not_quote_data(tmp_path):
    """A file damaged in a way that the engine only sees when it reads rows."""
    table = pa.table(
        {"x": pa.array(np.arange(100_000) % 7, pa.int64()), "secret": ["person no one"] * 100_000}
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="none")
    raw = bytearray(path.read_bytes())
    raw[100:20_000] = os.urandom(19_900)
    path.write_bytes(raw)
    source = open_source(SourceSpec("t.parquet"), base=tmp_path)
    domain = Domain((Bins.integers("x", 0, 6), Categories(name="secret", values=("a",))))
    with pytest.raises(SourceError) as refused:
        codes(source, domain)
    assert "person" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


UNIT = Unit("person", 2)
UNIT_DOMAIN = Domain((Bins.integers("x", 0, 9),))


@given(st.lists(st.tuples(st.none() | st.integers(0, 4), st.integers(0, 9)), max_size=40), st.randoms())
@settings(max_examples=15)
def test_a_person_counts_at_most_max_rows_times(rows, shuffle):
    def kept(people):
        table = pa.table(
            {
                "person": pa.array([p for p, _ in people], pa.int64()),
                "x": pa.array([x for _, x in people], pa.int64()),
            }
        )
        return sorted(codes(in_memory(table), UNIT_DOMAIN, UNIT)["x"])

    everyone = kept(rows)
    owners = {p for p, _ in rows if p is not None}
    assert len(everyone) == sum(min(2, sum(p == owner for p, _ in rows)) for owner in owners)
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    assert kept(shuffled) == everyone  # the choice does not depend on the order of rows
    for owner in owners:  # removing a person removes at most max_rows rows, and changes nobody else's
        without = kept([row for row in rows if row[0] != owner])
        rest = list(everyone)
        for x in without:
            rest.remove(x)
        assert len(rest) <= 2


def test_whole_numbers_with_missing_ones_among_them_open_as_a_frame_holds_them():
    """Pandas turns a column of 0 and 1 into floats as soon as one is missing."""
    frame = pd.DataFrame({"smokes": [1, 0, np.nan, 1]})
    assert frame["smokes"].dtype == float
    domain = Domain(
        (
            Boolean(name="smokes", null=True),
            Categories(name="code", column="smokes", values=("0", "1"), null=True),
        )
    )
    found = codes(in_memory(frame), domain)
    assert list(found["smokes"]) == [1, 0, 2, 1]
    assert list(found["code"]) == [1, 0, 3, 1]


def test_frames_of_one_process_share_an_engine_and_see_nothing_of_each_other():
    one, other = in_memory(pa.table({"age": [1, 2, 3]})), in_memory(pa.table({"age": [7], "sex": ["F"]}))
    assert one.expression.count().to_pyarrow().as_py() == 3
    assert other.expression.columns == ("age", "sex")
    assert other.expression.count().to_pyarrow().as_py() == 1
    one.close()
    assert other.expression.age.max().to_pyarrow().as_py() == 7
    with pytest.raises(Exception, match=r"(?i)connection"):
        one.expression.count().to_pyarrow()


def test_a_process_that_was_forked_starts_an_engine_of_its_own():
    before = file_view._engine(os.getpid())
    assert file_view._engine(os.getpid()) is before
    assert file_view._engine(-1) is not before
