"""A table in a file of text: CSV or TSV, packed or not, in any encoding, with or without a header.

The embedded engine reads UTF-8. A file in another encoding is first copied to a file of UTF-8 that has no
name, belongs to this process and vanishes with it: characters that the encoding does not have become U+FFFD,
so that no row is lost and no error tells of one. So is a file that is declared as UTF-8, and is not, where the
declaration says `undecodable: replace`; otherwise the engine leaves out the lines that are not UTF-8. Which
lines these are, and what a line becomes, depends on the bytes of that line alone.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from understudy.declaration.declaration import SourceSpec, Undecodable
from understudy.errors import SourceError
from understudy.table.file_view import (
    ASK_CUSTODIAN,
    MAX_COLUMNS,
    Connection,
    FileTable,
    LostLines,
    connect,
    identifier,
    literal_path,
    nothing_to_release,
    quoted,
    view_of,
    wanted_of,
)
from understudy.table.nameless_file import NamelessFile
from understudy.table.text_reader import FORGIVING, STRICT, UNPACKABLE, TextReader
from understudy.table.text_rows import TextRows

TEXT_ENDINGS = {".csv", ".tsv", ".txt"}

MAX_HEADER = 4 << 20
"""Characters of a text file's header, which is read before anything is known about the file."""

WHERE_NAMED = (
    "in the first line of the file, or with `columns` in a declaration, as `understudy init` drafts one"
)
"""Where names of columns are given that the header lacks."""

SHOWN_LINES = 5
"""Lines that are no rows, or not whole ones, of which the numbers are told."""


def is_text(path: Path) -> bool:
    """Whether a file has no types but its header's names."""
    return bool(TEXT_ENDINGS & {suffix.lower() for suffix in path.suffixes[-2:]})


def is_packed(path: Path) -> bool:
    """Whether a file is compressed with gzip."""
    return path.suffix.lower() == ".gz"


def text_table(
    path: Path, spec: SourceSpec, columns: Collection[str] | None, *, candid: bool = False
) -> FileTable:
    """The table in a file of text, with those of `columns` that it has, or all. Only `candid` errors quote it."""
    names = _names(path, spec, candid=candid)
    copy = _in_utf8(path, spec.encoding) if _needs_copy(path, spec) else None
    connection = connect()
    reader = TextReader(
        place=quoted(literal_path(connection, path) if copy is None else copy.place),
        # Without it the engine would stop reading a name at a question mark.
        compression="gzip" if is_packed(path) and copy is None else "none",
        delimiter=spec.delimiter,
        header=spec.header,
        names=_told_apart(names),
    )
    types = dict.fromkeys(names, "string")
    wanted = wanted_of(types, columns)
    if "" in wanted:
        raise SourceError(
            f"{path.name}: the header has no name for column {names.index('') + 1} of {len(names):,}; give each "
            f"column a name, {WHERE_NAMED}"
        )
    expression = view_of(connection, reader.rows(FORGIVING), types, columns)

    def opened() -> IO[bytes]:
        return _bytes(path) if copy is None else open(copy.place, "rb")

    return FileTable(
        expression,
        tuple(names),
        lost=lambda: _lost(reader, wanted, opened),
        copy=(copy, connection),
        release=nothing_to_release if copy is None else copy.close,
        text=TextRows(reader, wanted, opened, connection.con),
    )


# ---- lines that are no rows


def _lost(reader: TextReader, wanted: list[str], opened: Callable[[], IO[bytes]]) -> LostLines:
    """How many lines every look at these columns loses, and how many lines have another number of fields.

    Every column is read once, strictly. Where that finds no fault, as in most files, none of the forgiving looks
    loses anything. Otherwise: a line is dropped for what stands in a column that is read. So all lines are counted
    where every column is read, those that cannot be read among them, and then the rows that a look at the wanted
    columns sees. Each of these is a pass over the file; none is made whose number is known from another.
    """
    import duckdb

    connection = duckdb.connect()  # of its own, since the engine keeps what it could not read there
    try:
        whole = _number(connection, reader.rows(f"{STRICT}, {_kept('faults')}"), reader.names)
        faults = connection.execute(
            "SELECT DISTINCT error_type = 'INVALID ENCODING', line_byte_position FROM faults ORDER BY 2"
        ).fetchall()
        if not faults:
            return LostLines()
        rows = _number(connection, reader.rows(f"{FORGIVING}, {_kept('lost')}"), reader.names)
        unread = int(connection.execute("SELECT count(DISTINCT line) FROM lost").fetchall()[0][0])
        everything = set(wanted) == set(reader.names)
        read = rows if everything else _number(connection, reader.rows(FORGIVING), wanted)
        dropped = max(rows + unread - read, 0)
        if unread:  # a line that cannot be read may lack fields as well: where no column is read, it is a row
            rows = _number(connection, reader.rows(FORGIVING), ())
            whole = _number(connection, reader.rows(STRICT), ())
        ragged = max(rows - whole, 0)
    finally:
        connection.close()
    strange = [at for other, at in faults if other]
    unreadable = set(strange)
    # A line that cannot be read at all is counted as dropped, whatever else is wrong with it.
    uneven = [at for other, at in faults if not other and at not in unreadable]
    first = {
        True: _line_numbers(opened, strange[:SHOWN_LINES]),
        False: _line_numbers(opened, uneven[:SHOWN_LINES]),
    }
    encoding = ""
    if dropped and first[True]:
        with opened() as file:
            encoding = _detected(file).name
    return LostLines(
        dropped, ragged, first[True] if dropped else (), first[False] if ragged else (), encoding
    )


def _kept(table: str) -> str:
    """The engine writes down what it could not read, in a table of this name."""
    return f"store_rejects = true, rejects_table = '{table}', rejects_scan = '{table}_scans'"


def _line_numbers(opened: Callable[[], IO[bytes]], positions: Sequence[int]) -> tuple[int, ...]:
    """The lines of a file that begin at these bytes, of which the first is 1: as an editor numbers them.

    The engine itself counts records, of which one in quotation marks may run over several lines.
    """
    numbers, line, read = list[int](), 1, 0
    with opened() as file:
        for position in positions:
            # Up to the first byte itself: the engine may take the end of the line before for it, after CR LF.
            while read < position and (chunk := file.read(min(1 << 20, position - read))):
                line, read = line + chunk.count(b"\n"), read + len(chunk)
            numbers.append(line)
    return tuple(dict.fromkeys(numbers))


def _number(connection: Connection, rows: str, wanted: Sequence[str]) -> int:
    """The number of rows where these columns are read."""
    counts = ", ".join(["count(*)", *(f"count({identifier(name)})" for name in wanted)])
    return int(connection.execute(f"SELECT {counts} FROM {rows}").fetchall()[0][0])


# ---- names of columns


def _names(path: Path, spec: SourceSpec, *, candid: bool) -> list[str]:
    """The declared names of the columns, or those of the header."""
    if not spec.header:
        return list(spec.columns)
    header = read_header(path, spec.delimiter, spec.encoding)
    if spec.columns:
        if len(header) != len(spec.columns):
            raise SourceError(
                f"{path.name} has {len(header):,} columns, and `columns` names {len(spec.columns):,}: name "
                f"each of them"
            )
        return list(spec.columns)
    named = [name for name in header if name]
    if len(set(named)) < len(named):
        if candid:
            twice = ", ".join(sorted({name for name in named if named.count(name) > 1}))
            raise SourceError(
                f"{path.name}: the header names {twice} more than once; give each column a name of "
                f"its own, {WHERE_NAMED}. If these are values of a row, the file lacks the line that names its "
                f"columns"
            )
        raise SourceError(f"{path.name}: the header names a column more than once: {ASK_CUSTODIAN}")
    return header


def _told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names with which the engine reads a file: a column that the header has no name for needs one, too."""
    own = "unnamed"
    while any(name.lower().startswith(own) for name in names):  # the engine takes capitals for the same
        own += "_"
    return tuple(name or f"{own}{place}" for place, name in enumerate(names))


def read_header(path: Path, delimiter: str, encoding: str = "utf-8") -> list[str]:
    """The column names in the first line of a text file, of which at most `MAX_HEADER` characters are read."""
    if path.is_dir():
        raise SourceError(f"the table {path} is a folder; name a CSV, Parquet or DuckDB file")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise SourceError(f"a delimiter is one character, such as ; or a tab, not {delimiter!r}")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise SourceError(
            f"there is no encoding {encoding!r}: it is such as utf-8, utf-16 or latin-1"
        ) from None
    try:
        header = next(read_records(path, delimiter, encoding), [])
        "".join(header).encode()
    except UnicodeError:
        raise SourceError(_other_encoding(path, encoding)) from None
    except (zlib.error, EOFError, gzip.BadGzipFile):
        raise SourceError(UNPACKABLE) from None
    except (csv.Error, OSError) as error:
        raise SourceError(f"the header of {path.name} cannot be read ({type(error).__name__})") from None
    if not any(header):
        raise SourceError(f"{path.name} has no header line: the first line must name the columns")
    if len(header) > MAX_COLUMNS:
        raise SourceError(
            f"the header of {path.name} names {len(header):,} columns; at most {MAX_COLUMNS:,} can be opened"
        )
    return header


def _other_encoding(path: Path, encoding: str) -> str:
    """What is said of a header that is not in the encoding: by its first bytes, which are public with it."""
    with _bytes(path) as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    which = "utf-16, whose mark it begins with" if marked else "such as cp1252, latin-1 or utf-16"
    return (
        f"the header of {path.name} is not in {encoding}: say in which encoding the file is "
        f"(`encoding:` in a declaration, --encoding for a command), {which}"
    )


def read_records(path: Path, delimiter: str, encoding: str = "utf-8") -> Iterator[list[str]]:
    """The records of a text file, as long as all of them together are short enough for a header."""
    # The reader looks ahead of the record; what stands there must not matter.
    with _text(path, encoding) as lines:
        yield from csv.reader(_bounded(lines, path.name), delimiter=delimiter)


def _bytes(path: Path) -> IO[bytes]:
    opener: Any = gzip.open if is_packed(path) else open
    return opener(path, "rb")


def _text(path: Path, encoding: str) -> IO[str]:
    opener: Any = gzip.open if is_packed(path) else open
    if encoding == "utf-8":
        return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return opener(path, "rt", encoding=encoding, errors="replace", newline="")


def _bounded(lines: IO[str], name: str) -> Iterator[str]:
    """The lines of a file, as long as all of them together are short enough for a header."""
    left = MAX_HEADER
    while line := lines.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise SourceError(
                f"the header of {name} is longer than {MAX_HEADER:,} characters: the first line must name the "
                f"columns"
            )
        yield line


# ---- encodings


def _needs_copy(path: Path, spec: SourceSpec) -> bool:
    """Whether the engine cannot read the file itself: another encoding, or bytes that are to be replaced."""
    if spec.encoding != "utf-8":
        return True
    return spec.undecodable is Undecodable.REPLACE and not _is_utf8(path)


def _is_utf8(path: Path) -> bool:
    """Whether all bytes of a file are UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _bytes(path) as file:
            while chunk := file.read(1 << 20):
                if not chunk.isascii() or decoder.getstate()[0]:
                    decoder.decode(chunk)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SourceError(UNPACKABLE) from None
    return True


def _in_utf8(path: Path, encoding: str) -> NamelessFile:
    """A copy of a file's text in UTF-8; bytes that are not in the encoding become U+FFFD."""
    copy = NamelessFile()
    written = codecs.getwriter("utf-8")(copy.file, "replace")
    opener: Any = gzip.open if is_packed(path) else open
    own = "utf-8-sig" if encoding == "utf-8" else encoding
    with opener(path, "rt", encoding=own, errors="replace", newline="") as text:
        shutil.copyfileobj(text, written, 1 << 20)
    copy.file.flush()
    return copy


@dataclass(frozen=True, slots=True)
class DetectedEncoding:
    """What the bytes of a file of text say about their encoding.

    `bad` is the number of bytes that are no UTF-8; `why` says in words what spoke for the encoding.
    """

    name: str
    why: str
    bad: int = 0


ENOUGH = 10_000
"""Bytes that are no UTF-8, after which the encoding is decided: nobody writes so many by mistake."""


def detect_encoding(path: Path) -> DetectedEncoding:
    """The encoding of a file of text: by its mark, by being UTF-8, else the likely one of Windows or Unix.

    Reads the whole file once, unless its beginning is that of UTF-16.
    """
    with _bytes(path) as file:
        return _detected(file)


def _detected(file: IO[bytes]) -> DetectedEncoding:
    start = file.read(1 << 12)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return DetectedEncoding("utf-16", "it begins with the mark of UTF-16")
    if len(start) >= 4 and start.count(0) * 4 >= len(start):
        little = start[1::2].count(0) >= start[::2].count(0)
        return DetectedEncoding("utf-16-le" if little else "utf-16-be", "every other byte is zero")
    file.seek(0)
    return _by_bytes(lambda: file.read(1 << 22))


def _by_bytes(read: Callable[[], bytes]) -> DetectedEncoding:
    """UTF-8, unless more bytes speak against it than for it."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    bad: Counter[str] = Counter()
    begun, more = 0, True
    while more:
        chunk = read()
        more = bool(chunk)
        if more and chunk.isascii() and not decoder.getstate()[0]:
            continue
        begun += len(chunk.translate(None, delete=_NO_BEGINNING))
        bad.update(_STRANGE.findall(decoder.decode(chunk, final=not more)))
        more = more and bad.total() < ENOUGH
    count = bad.total()
    sound = begun - sum(times for byte, times in bad.items() if byte >= "\udcc0")
    if not count:
        return DetectedEncoding("utf-8", "it is UTF-8 throughout")
    if sound > 4 * count:
        return DetectedEncoding("utf-8", f"it is UTF-8 but for {count:,} bytes", count)
    name = "latin-1" if bad.keys() & _NOT_IN_CP1252 else "cp1252"
    many = f"more than {ENOUGH:,}" if count >= ENOUGH else f"{count:,}"
    return DetectedEncoding(name, f"{many} of its bytes are no UTF-8, and read as {name}", count)


_STRANGE = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8, as Python keeps them in text."""

_NO_BEGINNING = bytes(range(0xC0))
"""Bytes that begin no character of several bytes in UTF-8."""

_NOT_IN_CP1252 = {chr(0xDC00 + byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
