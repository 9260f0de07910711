"""Records of large files of text: cut without reading fields, and those of the engine all the same."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statistical import assert_at_most
from understudy.declaration.declaration import SourceSpec
from understudy.table import text_records, text_rows
from understudy.table.nameless_file import NamelessFile
from understudy.table.source import open_source
from understudy.table.text_reader import FORGIVING, TextReader
from understudy.table.text_records import NotPlainError, PlainRecords
from understudy.table.text_rows import TextRows

NAMES = ("a", "b", "c")
HEAD = b"a,b,c\n"


def records(data: bytes, delimiter: str = ",") -> list[bytes]:
    """The records of plain text, each with the end of its line."""
    found: list[bytes] = []
    for block in PlainRecords(delimiter).blocks(io.BytesIO(data)):
        found += [bytes(block.text[i:j]) for i, j in zip(block.starts, block.starts[1:], strict=False)]
    return found


class Twin:
    """The embedded engine, asked about small files as every look asks it."""

    def __init__(self, folder: Path) -> None:
        self.path, self.engine = folder / "twin.csv", duckdb.connect()
        self.engine.execute("SET threads = 1")
        self.reader = TextReader(f"'{self.path}'", "none", ",", header=True, names=NAMES)

    def rows(self, data: bytes, what: str = "*") -> list[tuple]:
        self.path.write_bytes(data)
        return self.engine.execute(f"SELECT {what} FROM {self.reader.rows(FORGIVING)}").fetchall()

    def number(self, data: bytes) -> int:
        return self.rows(data, "count(*)")[0][0]


@pytest.fixture(scope="module")
def twin(tmp_path_factory) -> Twin:
    return Twin(tmp_path_factory.mktemp("twin"))


def text_rows_of(folder: Path, data: bytes, name: str = "t.csv", **spec) -> TextRows:
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found = open_source(SourceSpec(name, **spec), base=folder).text_rows
    assert found is not None
    return found


def check_same(data: bytes, twin: Twin) -> bool:
    """Whether the text is plain; if it is, each record alone is read as it is among the others."""
    try:
        head, *others = records(data)
    except NotPlainError:
        return False
    assert head + b"".join(others) == data
    assert [row for one in others for row in twin.rows(head + one)] == twin.rows(data)
    return True


PIECES = (
    b"a", b"17", b",", b",", b'"x,y"', b'"x\ny"', b'"p""q"', b'""', b'""""', b" ", b"\0", b"\xff", "é".encode(),
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\", b"#",
)  # fmt: skip
ODD = (b'"', b"\r", b"\n", b"\r\n", b' "z"')


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@settings(max_examples=60)
@given(st.data())
def test_records_of_plain_text_are_those_of_the_engine(twin, end, data):
    pieces = st.lists(st.sampled_from([*PIECES, end, end, *ODD]), max_size=14).map(b"".join)
    check_same(b"a,b,c" + end + data.draw(pieces), twin)


@pytest.mark.slow("thousands of small files")
@settings(max_examples=5_000)
@given(
    end=st.sampled_from([b"\n", b"\r\n"]),
    pieces=st.lists(st.sampled_from([*PIECES, *ODD, b"\n"]), max_size=25),
)
def test_records_of_plain_text_are_those_of_the_engine_many_times(twin, end, pieces):
    check_same(b"a,b,c" + end + b"".join(pieces), twin)


@pytest.mark.parametrize(
    "body",
    [
        b"1,2,3\n4,5,6", b"1,2,3\r\n\r\n4,5,6\r\n", b'1,"2\n2",3\n"","a""b",""""\n', b"1\n1,2,3,4\n,,\n",
        b"\n\n \n",
        b"\0,2,3\n", b"\xff,2,3\n4,\xe4,6\n", "é,ü,3\n".encode(), b'"1","2","3"\r\n"4","5","6"\r\n', b"",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_what_is_plain_is_cut_wherever_a_block_ends(body, size, twin, monkeypatch):
    monkeypatch.setattr(text_records, "BLOCK", size)
    assert check_same(HEAD + body, twin)


@pytest.mark.parametrize(
    "body",
    [
        b'1,2"2,3\n', b'1, "2\n2",3\n', b'1,"2"x,3\n', b'1,"2\n', b"1,2\r3,4\n", b"1,2,3\r", b"1,2,3\r\r\n",
        b'1,""2,3\n', b"1," + b"x" * (text_records.LONGEST + 1) + b",3\n",
    ],
)  # fmt: skip
def test_where_only_the_engine_can_tell_records_it_is_said(body):
    with pytest.raises(NotPlainError):
        records(HEAD + body)


@pytest.mark.parametrize("delimiter", ["||", "é", '"', "\n"])
def test_odd_delimiters_are_left_to_the_engine(delimiter):
    with pytest.raises(NotPlainError):
        records(HEAD, delimiter)


# ---- rows


@pytest.mark.parametrize(
    "body",
    [
        b"1,2,3\n\n4,5,6\n", b"\xff,2,3\n1,\xff,3\n1,2,\xff\n1,2,3\n", b'1,2"2,3\n4,5"\n5,6\n', b"1,2\r3,4\n",
        b"", b"\n", b'1,"2\n2",3\n', b'1,"2\n2,3\n4,5,6\n', b"1," + b"x" * (17 << 20) + b",3\n4,5,6\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_rows_are_counted_as_the_engine_counts_them(body, name, twin, tmp_path):
    """Damaged, blank, ragged and long lines among them, also where quotation marks leave open what a row is."""
    assert text_rows_of(tmp_path, HEAD + body, name).number() == twin.number(HEAD + body)


def test_one_column_and_files_without_a_header_are_counted(tmp_path):
    assert text_rows_of(tmp_path, b"a\n1\n\n2\n").number() == 3
    assert text_rows_of(tmp_path, b"1,2\n3,4\n", header=False, columns=("a", "b")).number() == 2
    assert text_rows_of(tmp_path, "a,b\né,1\n".encode("utf-16"), encoding="utf-16").number() == 1


def drawn(rows: TextRows, share: float) -> list[dict]:
    file = rows.drawn(share)
    try:
        return pq.read_table(file.place).to_pylist()
    finally:
        file.close()


MANY = 4_000


@pytest.mark.parametrize("mark", ["", '"'], ids=["plain", "left to the engine"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_each_row_is_drawn_with_the_same_chance_and_whole(mark, name, tmp_path, monkeypatch):
    monkeypatch.setattr(text_records, "BLOCK", 1 << 14)
    body = "".join(f'{i},"two\nlines, {i}",x{mark}y\n\n' for i in range(MANY)).encode()
    rows = text_rows_of(tmp_path, HEAD + body, name)
    seen = drawn(rows, 0.25)
    numbers = [int(row["a"]) for row in seen]
    assert numbers == sorted(set(numbers))
    assert all(row["b"] == f"two\nlines, {row['a']}" and row["c"] == f"x{mark}y" for row in seen)
    assert_at_most(len(seen), MANY, 0.25)
    assert_at_most(MANY - len(seen), MANY, 0.75)
    for half in (0, 1):  # both halves of the file, and rows at even and at odd places
        assert_at_most(sum(number // (MANY // 2) == half for number in numbers), MANY // 2, 0.25)
        assert_at_most(sum(number % 2 == half for number in numbers), MANY // 2, 0.25)
    assert len(drawn(rows, 1.0)) == MANY


def test_a_damaged_row_that_was_drawn_is_read_as_the_engine_reads_it(tmp_path):
    body = b"1,2,3\n\xff,5,6\n7\n8,9,10,11\n" * 300
    seen = drawn(text_rows_of(tmp_path, HEAD + body), 0.999)
    assert {tuple(row.values()) for row in seen} == {("1", "2", "3"), ("7", None, None), ("8", "9", "10")}


def test_the_engine_has_its_memory_back_and_may_take_more_where_it_must(tmp_path, monkeypatch):
    rows = text_rows_of(tmp_path, HEAD + b"1,2,3\n" * 50_000)
    setting = "SELECT current_setting('memory_limit'), current_setting('threads')"
    ((before, threads),) = rows.engine.execute(setting).fetchall()
    monkeypatch.setattr(text_rows, "MEMORY", 1)
    for _ in range(3):
        assert len(drawn(rows, 1.0)) == 50_000
    ((memory, now),) = rows.engine.execute(setting).fetchall()
    assert now == threads
    assert memory[-4:] == before[-4:]  # the unit; of the number the engine drops digits
    assert float(memory[:-4]) == pytest.approx(float(before[:-4]), abs=0.11)


def test_what_was_drawn_is_in_no_folder_and_gone_when_it_is_closed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    before = set(os.listdir("/proc/self/fd"))
    file = text_rows_of(tmp_path, HEAD + b"1,2,3\n" * 100).drawn(0.5)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert os.path.exists(file.place)
    file.close()
    file.close()
    assert not os.path.exists(file.place)
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # the listing's own
    kept = NamelessFile()
    place = kept.place
    del kept
    assert not os.path.exists(place)
