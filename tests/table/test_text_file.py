"""Files of text as they are found: encodings, headers or none, and lines that are no rows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ugly import HEADER, ugly, write_ugly
from understudy.declaration.declaration import SourceSpec, Undecodable
from understudy.declaration.file import parse
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError, SourceError
from understudy.table import text_file
from understudy.table.file_view import LostLines
from understudy.table.source import open_source
from understudy.table.text_file import detect_encoding
from understudy.table.text_shape import Custodian, row_not_names, shape_of

NAMES = ("Müller", "Bé€", "o")
DOMAIN = Domain((Categories(name="n", values=NAMES), Bins.integers("x", 0, 9)))
TEXT = "n,x\r\nMüller,1\r\nBé€,2\r\no,3\r\n"


def opened(folder: Path, data: bytes, name: str = "t.csv", **spec):
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return open_source(SourceSpec(name, **spec), base=folder, candid=True)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("utf-8", TEXT.encode()),
        ("utf-8", b"\xef\xbb\xbf" + TEXT.encode()),
        ("cp1252", TEXT.encode("cp1252")),
        ("utf-16", TEXT.encode("utf-16")),
        ("utf-16", b"\xfe\xff" + TEXT.encode("utf-16-be")),
        ("utf-16-be", TEXT.encode("utf-16-be")),
        ("iso8859-15", TEXT.encode("iso8859-15")),
    ],
)
def test_every_encoding_gives_the_same_rows(tmp_path, name, encoding, data):
    fit = opened(tmp_path, data, name, encoding=encoding).read_through(DOMAIN)
    assert (fit.rows, fit.lost) == (3, LostLines())
    assert [(m.missing, m.unreadable, m.outside) for m in fit.attributes] == [(0, 0, 0)] * 2


def test_lines_that_are_not_in_the_declared_encoding_are_counted(tmp_path):
    """They were lost without a word."""
    fit = opened(tmp_path, TEXT.encode("cp1252")).read_through(DOMAIN)
    assert (fit.rows, fit.lost.dropped) == (1, 2)


def test_a_character_that_an_encoding_lacks_loses_nobody(tmp_path):
    fit = opened(tmp_path, b"n,x\nM\x81ller,1\no,2\n", encoding="cp1252").read_through(DOMAIN)
    assert (fit.rows, fit.lost.dropped, fit.attributes[0].outside) == (2, 0, 1)


def test_lines_of_another_width_are_counted_and_kept(tmp_path):
    fit = opened(tmp_path, b"n,x\no,1,2\no\n\no,3\n").read_through(DOMAIN)
    assert (fit.rows, fit.lost) == (3, LostLines(dropped=0, ragged=2, ragged_at=(2, 3)))


def test_a_copy_of_another_encoding_has_no_name_and_follows_its_file(tmp_path):
    source = opened(tmp_path, TEXT.encode("cp1252"), encoding="cp1252")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]
    (tmp_path / "t.csv").write_bytes(b"n,x\no,1\n")
    with pytest.raises(SourceError, match="has changed"):
        source.rows(DOMAIN)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (TEXT.encode(), "utf-8"),
        (b"a,b\n1,2\n", "utf-8"),
        (TEXT.encode("cp1252"), "cp1252"),
        (b"n,x\nM\x81\xfcller,1\n", "latin-1"),
        (TEXT.encode("utf-16"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode() * 50 + b"\xe9\n", "utf-8"),  # one bad byte among good ones
    ],
)
def test_an_encoding_is_found_by_the_bytes(tmp_path, data, name):
    (tmp_path / "t.csv").write_bytes(data)
    assert detect_encoding(tmp_path / "t.csv").name == name


def test_a_character_on_the_border_of_two_reads_is_no_mistake(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a" * ((1 << 22) - 1) + "é".encode() + b"\n")
    assert detect_encoding(tmp_path / "t.csv").bad == 0


def test_a_file_without_a_header_has_the_declared_names(tmp_path):
    body = TEXT.split("\r\n", 1)[1].encode()
    fit = opened(tmp_path, body, header=False, columns=("n", "x")).read_through(DOMAIN)
    assert (fit.rows, fit.attributes[0].outside) == (3, 0)


def test_declared_names_stand_in_place_of_the_header_s(tmp_path):
    fit = opened(tmp_path, TEXT.replace("n,x", "x,x").encode(), columns=("n", "x")).read_through(DOMAIN)
    assert (fit.rows, fit.attributes[0].outside) == (3, 0)
    with pytest.raises(SourceError, match="has 2 columns, and `columns` names 3"):
        opened(tmp_path, TEXT.encode(), columns=("a", "b", "c"))


@pytest.mark.parametrize("told", [{"encoding": "cp1252"}, {"header": False, "columns": ("n",)}])
@pytest.mark.parametrize("place", ["t.parquet", "t.duckdb", "postgresql://h/d", "spark", "mysql://h/d"])
def test_what_is_said_about_text_is_refused_elsewhere(tmp_path, told, place):
    (tmp_path / "t.parquet").write_bytes(b"")
    (tmp_path / "t.duckdb").write_bytes(b"")
    with pytest.raises(SourceError, match="leave `"):
        open_source(SourceSpec(place, "t", **told), base=tmp_path)


def test_how_a_file_is_read_is_part_of_its_version(tmp_path):
    (tmp_path / "t.csv").write_bytes(TEXT.encode())
    specs = [{}, {"encoding": "latin-1"}, {"columns": ("n", "x")}, {"columns": ("n", "x"), "header": False}]
    versions = {open_source(SourceSpec("t.csv", **spec), base=tmp_path).version for spec in specs}
    assert len(versions) == 4


# ---- headers


@pytest.mark.parametrize(
    ("first", "rest", "suspect"),
    [
        ("age,sex", ["51,M", "34,F"], False),
        ("51,M", ["34,F", "20,M"], True),
        ("31/12/2024,x", ["01/01/2024,y"], True),
        ("Ada,€ 5", ["Bob,€ 6"], True),
        ("Ada,13%", ["Bob,9%"], True),
        ("Ada,F", ["Bob,M", "Eve,F"], True),  # a value that stands again
        ("name,sex", ["name,sex", "Bob,M"], False),  # two files put together
        ("0,1", ["a,b"], False),  # how frames number columns
        (",name", ["0,Ada", "1,Bob"], False),
        ("name,sex", [], False),
        ("2020,2021", ["5,6"], True),
    ],
)
def test_a_first_line_that_is_a_row_is_noticed(first, rest, suspect):
    assert bool(row_not_names(first.split(","), [line.split(",") for line in rest])) is suspect


def test_a_row_in_place_of_a_header_is_refused_or_asked_about(tmp_path):
    table = ugly(50)
    path = write_ugly(tmp_path / "t.csv", table, header=False)
    with pytest.raises(SourceError, match=r"looks like a row.*--no-header"):
        shape_of(path)
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return False

    shape = shape_of(path, custodian=Custodian(confirm, lambda question, usual: usual))
    assert "looks like a row" in asked[0]
    assert (shape.encoding, shape.delimiter, shape.header) == ("cp1252", ";", False)
    assert shape.columns == tuple(f"column_{i}" for i in range(1, 9))
    assert shape_of(path, header=False) == shape
    assert shape_of(path, header=True).header


def test_a_header_that_names_a_column_twice_gets_names_of_its_own(tmp_path):
    (tmp_path / "t.csv").write_text("age,age,,sex\n1,2,3,F\n")
    assert shape_of(tmp_path / "t.csv").columns == ("age", "age_2", "column_3", "sex")


def test_an_encoding_is_asked_for(tmp_path):
    path = write_ugly(tmp_path / "t.csv", ugly(50))
    asked: list[tuple[str, str]] = []

    def enter(question: str, usual: str) -> str:
        asked.append((question, usual))
        return "Latin1"

    shape = shape_of(path, custodian=Custodian(lambda _: True, enter))
    assert asked[0][1] == "cp1252"
    assert (shape.encoding, shape.header) == ("latin-1", True)
    with pytest.raises(SourceError, match="no encoding of text"):
        shape_of(path, encoding="morse")
    assert HEADER.count(";") == 7


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encoding: morse", "no encoding of text"),
        ("header: false", "needs `columns`"),
        ("columns: [a, a]", "stands here twice"),
        ("columns: []", "no name in the list"),
        ("columns: [a, '']", "needs a name"),
        ("header: no", "not one of the choices"),
        ("unreadable: 1.5", "between 0 and 1"),
    ],
)
def test_a_slip_about_a_file_of_text_is_told(line, said):
    start = "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n  a: {type: boolean}\n"
    with pytest.raises(DeclarationError, match=said):
        parse(start + line)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_ragged_lines_are_numbered_as_an_editor_numbers_them(tmp_path, name, encoding, ending):
    """Also behind a blank line and a record that runs over two lines."""
    text = 'n,x\n"o",1\no\n\n"o\no",1\no,1,2\no,1\no,1,2,3\n'
    data = text.replace("\n", ending).encode(encoding)
    lost = opened(tmp_path, data, name, encoding=encoding).lost()
    assert (lost.ragged, lost.ragged_at) == (3, (3, 7, 9))


def test_only_the_first_ragged_lines_are_numbered(tmp_path):
    fit = opened(tmp_path, b"n,x\n" + b"o\n" * 9).read_through(DOMAIN)
    assert fit.lost == LostLines(ragged=9, ragged_at=(2, 3, 4, 5, 6))
    assert "(lines 2, 3, 4, 5, 6, …)" in fit.lost_lines()[0]


def test_a_file_without_faults_is_read_once_to_say_so(tmp_path, monkeypatch):
    read = []
    number = text_file._number
    monkeypatch.setattr(text_file, "_number", lambda *given: read.append(given) or number(*given))
    assert opened(tmp_path, TEXT.encode()).lost() == LostLines()
    assert len(read) == 1


@pytest.mark.parametrize(("columns", "passes"), [(None, 2), ({"x"}, 3)])
def test_ragged_lines_are_counted_without_a_pass_whose_number_is_known(
    tmp_path, monkeypatch, columns, passes
):
    (tmp_path / "t.csv").write_bytes(b"n,x\no,1\no\no,1,2\no,4\n")
    seen = []
    number = text_file._number
    monkeypatch.setattr(text_file, "_number", lambda *given: seen.append(given[2]) or number(*given))
    table = text_file.text_table(tmp_path / "t.csv", SourceSpec("t.csv"), columns)
    assert table.lost() == LostLines(ragged=2, ragged_at=(3, 4))
    assert len(seen) == passes


def test_a_line_that_is_ragged_and_cannot_be_read_is_counted_once(tmp_path):
    lost = opened(tmp_path, b"n,x\no,1\nM\xfcller\nB\xfc,1\no,1,2\no,4\n").lost()
    assert (lost.dropped, lost.dropped_at) == (2, (3, 4))
    assert (lost.ragged, lost.ragged_at) == (1, (5,))


def _texts(source) -> list[str]:
    return source.expression.to_pyarrow().sort_by("x").column("n").to_pylist()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("quoted", [False, True])
def test_bytes_of_another_encoding_are_replaced_where_that_is_declared(packed, quoted, tmp_path):
    """Each row by itself: no line is lost, none is joined with the next, and those in UTF-8 stay as they are."""
    words = [b"o", b"M\xfcller", "Müller".encode(), b"M\xc3", b"\xff\xfe", b"\xe2\x82", "日本".encode()]
    lines = [b'"%s",%d' % (word, i) if quoted else b"%s,%d" % (word, i) for i, word in enumerate(words)]
    body = b"\xef\xbb\xbfn,x\n" + b"\n".join(lines) + b"\n"
    name = "t.csv.gz" if packed else "t.csv"
    source = opened(tmp_path, body, name, undecodable=Undecodable.REPLACE)
    assert _texts(source) == [word.decode("utf-8", "replace") for word in words]
    assert source.read_through(DOMAIN).lost.dropped == 0
    dropping = opened(tmp_path, body, name)
    assert len(_texts(dropping)) == 3
    assert source.version != dropping.version


def test_a_file_in_utf8_is_read_as_it_is_also_where_bytes_would_be_replaced(tmp_path):
    source = opened(tmp_path, "n,x\nMüller,1\n日本,2\n".encode(), undecodable=Undecodable.REPLACE)
    assert _texts(source) == ["Müller", "日本"]
    views = source.expression.get_backend().con.execute("SELECT sql FROM duckdb_views()").fetchall()
    assert any(str(tmp_path) in sql for (sql,) in views)  # the file itself, and no copy


def test_a_long_file_is_utf8_where_a_character_lies_across_two_pieces(tmp_path):
    text = "n,x\n" + "a" * ((1 << 20) - 5) + "ü,1\n"
    source = opened(tmp_path, text.encode(), undecodable=Undecodable.REPLACE)
    assert _texts(source) == ["a" * ((1 << 20) - 5) + "ü"]
