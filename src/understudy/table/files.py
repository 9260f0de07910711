"""Tables in files: CSV, TSV, Parquet and DuckDB, read by the embedded engine."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import ibis

from understudy.declaration.declaration import SourceSpec
from understudy.errors import SourceError

ASK_CUSTODIAN = "the custodian can see what it has with `understudy check`"
"""In place of what was read from a source, for whoever is not its custodian."""

TEXT_ENDINGS = {".csv", ".tsv", ".txt"}


def file_stamp(path: Path) -> tuple[int, int, int]:
    """What a file looks like from outside."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def open_file(path: Path, spec: SourceSpec, *, candid: bool) -> Any:
    """The expression over a file, by the ending of its name. Only `candid` errors name what is in it."""
    if path.is_dir():
        raise SourceError(f"the table {path} is a folder; name a CSV, Parquet or DuckDB file")
    ending = [suffix.lower() for suffix in path.suffixes[-1:]]
    if ending == [".parquet"]:
        return _opened(path, lambda: ibis.duckdb.connect().read_parquet(path))
    if ending in ([".duckdb"], [".db"]):
        return _opened(path, lambda: _database_table(path, spec.table, candid=candid))
    if is_text(path):
        return _opened(path, lambda: _text_table(path, spec.delimiter, candid=candid))
    raise SourceError(f"{path.name}: the ending says nothing known; use .csv, .tsv, .parquet or .duckdb")


def is_text(path: Path) -> bool:
    """Whether a file has no types but its header's names."""
    return bool(TEXT_ENDINGS & {suffix.lower() for suffix in path.suffixes[-2:]})


def _opened(path: Path, how: Any) -> Any:
    try:
        return how()
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"the table {path} cannot be opened ({type(error).__name__})") from None


def _database_table(path: Path, table: str, *, candid: bool) -> Any:
    connection = ibis.duckdb.connect(path, read_only=True)
    tables = connection.list_tables()
    if not table and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        if candid and tables:
            raise SourceError(f"{path.name} has the tables {', '.join(tables)}; say which with `table:`")
        declared = f"no table {table!r}" if table else "no table, or several of which `table:` names none"
        raise SourceError(f"{path.name} has {declared}: {ASK_CUSTODIAN}")
    return connection.table(table)


def _text_table(path: Path, delimiter: str, *, candid: bool) -> Any:
    header = read_header(path, delimiter)
    doubled = {name for name in header if header.count(name) > 1}
    if doubled:
        if candid:
            named = ", ".join(sorted(doubled))
            raise SourceError(
                f"{path.name}: the header names {named} more than once; give each column a name of its own. If "
                f"these are values of a row, the file lacks the line that names its columns"
            )
        raise SourceError(f"{path.name}: the header names a column more than once: {ASK_CUSTODIAN}")
    return ibis.duckdb.connect().read_csv(
        path,
        columns=dict.fromkeys(header, "VARCHAR"),
        auto_detect=False,
        header=True,
        delim=delimiter,
        quote='"',
        escape='"',
        # A malformed row must not stop the program: what an error says depends on the data.
        ignore_errors=True,
        null_padding=True,
        strict_mode=False,
        parallel=False,  # the parallel reader fails on a quoted line break, which is valid text
        max_line_size=16 << 20,
    )


def read_header(path: Path, delimiter: str) -> list[str]:
    """The column names in the first line of a text file."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        # The reader looks ahead of the header; what stands there must not matter.
        with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            header = next(csv.reader(lines, delimiter=delimiter), [])
        "".join(header).encode()
    except (UnicodeEncodeError, csv.Error, zlib.error, OSError) as error:
        raise SourceError(f"the header of {path.name} cannot be read ({type(error).__name__})") from None
    if not any(header):
        raise SourceError(f"{path.name} has no header line: the first line must name the columns")
    return header
