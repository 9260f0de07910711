"""Tables in files: CSV, TSV, Parquet and DuckDB, read by the embedded engine.

A path means one file, whatever its name: nothing in it is a pattern, and no folder's name adds a column.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ibis
import ibis.expr.datatypes as dtypes
import ibis.expr.operations as operations
from ibis.backends.sql.datatypes import DuckDBType

from understudy.declaration.declaration import SourceSpec
from understudy.errors import SourceError
from understudy.table.stamp import LOG_ENDINGS

ASK_CUSTODIAN = "the custodian can see what it has with `understudy check`"
"""In place of what was read from a source, for whoever is not its custodian."""

TEXT_ENDINGS = {".csv", ".tsv", ".txt"}

MAX_HEADER = 4 << 20
"""Characters of a text file's header, which is read before anything is known about the file."""

MAX_COLUMNS = 1 << 15
"""Columns of a file's table: opening takes time and memory for each, declared or not."""

READING = (
    "auto_detect = false, header = true, quote = '\"', escape = '\"', "
    # A malformed row must not stop the program: what an error says depends on the data.
    "ignore_errors = true, null_padding = true, strict_mode = false, "
    # The parallel reader fails on a quoted line break, which is valid text.
    f"parallel = false, max_line_size = {16 << 20}"
)
"""How the engine reads a text file, beside its delimiter and its columns."""

Connection = Any
"""A connection of Ibis to DuckDB, which Ibis types at run time."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """The expression over a file's table; `names` are all its columns, of which that may have the declared only.

    `pinned` says whether the stamps of the files tell of every change of the rows. They do not where a view reads
    something else, or a column is computed when it is read.
    """

    expression: Any
    names: tuple[str, ...]
    pinned: bool = True


def logs_of(path: Path) -> tuple[str, ...]:
    """Endings of further files that are read together with this one."""
    return LOG_ENDINGS if _is_database(path) else ()


def open_file(path: Path, spec: SourceSpec, *, columns: Collection[str] | None, candid: bool) -> FileTable:
    """The table in a file, by the ending of its name, with those of `columns` that it has, or all.

    Only `candid` errors name what is in it.
    """
    if path.is_dir():
        raise SourceError(f"the table {path} is a folder; name a CSV, Parquet or DuckDB file")
    if path.suffix.lower() == ".parquet":
        return _opened(path, lambda: _parquet_table(path, columns))
    if _is_database(path):
        return _opened(path, lambda: _database_table(path, spec.table, columns, candid=candid))
    if is_text(path):
        return _opened(path, lambda: _text_table(path, spec.delimiter, columns, candid=candid))
    raise SourceError(f"{path.name}: the ending says nothing known; use .csv, .tsv, .parquet or .duckdb")


def is_text(path: Path) -> bool:
    """Whether a file has no types but its header's names."""
    return bool(TEXT_ENDINGS & {suffix.lower() for suffix in path.suffixes[-2:]})


def _is_database(path: Path) -> bool:
    return path.suffix.lower() in (".duckdb", ".db")


def _is_zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _opened(path: Path, how: Callable[[], FileTable]) -> FileTable:
    try:
        return how()
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"the table {path} cannot be opened ({type(error).__name__})") from None


# ---- one file, whatever its name


def _literal(connection: Connection, path: Path) -> str:
    """The path as a pattern that matches this file alone; the engine takes every path of CSV or Parquet as one."""
    text = str(path)
    pattern = "".join(f"[{mark}]" if mark in "*?[" else mark for mark in text)
    if pattern == text:
        return text
    matched = connection.con.execute("SELECT file FROM glob(?)", [pattern]).fetchall()
    if matched != [(text,)]:  # a backslash in the name as well, say
        raise SourceError(f"the engine takes the name {path.name!r} for a pattern: rename the file")
    return pattern


def _quoted(text: str) -> str:
    """A text as a literal of SQL.

    >>> print(_quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


# ---- expressions over the engine's tables


def _identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _described(connection: Connection, rows: str) -> dict[str, dtypes.DataType]:
    """The columns of what stands after FROM, with their types. Reads no row.

    What Ibis itself does takes a parse of SQL for each column; here there is one for each type that occurs.
    """
    described = connection.con.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    if len(described) > MAX_COLUMNS:
        raise SourceError(f"the table has {len(described):,} columns; at most {MAX_COLUMNS:,} can be opened")
    types = {written: DuckDBType.from_string(written) for written in {row[1] for row in described}}
    return {row[0]: types[row[1]] for row in described}


def _table(connection: Connection, rows: str, types: dict[str, Any], columns: Collection[str] | None) -> Any:
    """The expression over a query, which the engine reads anew at every look.

    An engine takes time for every column of an expression, so it has those that are declared, where any is.
    """
    wanted = [name for name in types if columns is None or name in columns] or list(types)
    selected = ", ".join(map(_identifier, wanted))
    connection.con.execute(f"CREATE TEMPORARY VIEW understudy_source AS SELECT {selected} FROM {rows}")
    return operations.DatabaseTable(
        "understudy_source",
        schema=ibis.schema({name: types[name] for name in wanted}),
        source=connection,
        namespace=operations.Namespace(),
    ).to_expr()


def _parquet_table(path: Path, columns: Collection[str] | None) -> FileTable:
    connection: Connection = ibis.duckdb.connect()
    rows = f"read_parquet({_quoted(_literal(connection, path))}, hive_partitioning = false)"
    types = _described(connection, rows)
    return FileTable(_table(connection, rows, types, columns), tuple(types))


def _database_table(path: Path, table: str, columns: Collection[str] | None, *, candid: bool) -> FileTable:
    connection: Connection = ibis.duckdb.connect(path, read_only=True)
    tables = connection.list_tables()
    if not table and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        if candid and tables:
            raise SourceError(f"{path.name} has the tables {', '.join(tables)}; say which with `table:`")
        declared = f"no table {table!r}" if table else "no table, or several of which `table:` names none"
        raise SourceError(f"{path.name} has {declared}: {ASK_CUSTODIAN}")
    types = _described(connection, _identifier(table))
    pinned = _is_stored(connection, table)
    return FileTable(_table(connection, _identifier(table), types, columns), tuple(types), pinned)


def _is_stored(connection: Connection, table: str) -> bool:
    """Whether all rows of a table are in the database's own file and log.

    They are not where the name is a view's, where a column is computed when it is read, or where the engine has
    opened a database of another kind in this one's place.
    """
    found = connection.con.execute(
        """SELECT t.sql FROM duckdb_tables() t JOIN duckdb_databases() d USING (database_name)
        WHERE t.database_name = current_database() AND t.schema_name = current_schema()
          AND t.table_name = ? AND NOT t.temporary AND d.type = 'duckdb'""",
        [table],
    ).fetchall()
    return len(found) == 1 and "GENERATED ALWAYS" not in found[0][0].upper()


def _text_table(path: Path, delimiter: str, columns: Collection[str] | None, *, candid: bool) -> FileTable:
    header = read_header(path, delimiter)
    if len(set(header)) < len(header):
        if candid:
            seen: set[str] = set()
            doubled = {name for name in header if name in seen or seen.add(name)}
            named = ", ".join(sorted(doubled))
            raise SourceError(
                f"{path.name}: the header names {named} more than once; give each column a name of its own. If "
                f"these are values of a row, the file lacks the line that names its columns"
            )
        raise SourceError(f"{path.name}: the header names a column more than once: {ASK_CUSTODIAN}")
    connection: Connection = ibis.duckdb.connect()
    named = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in header)
    compression = (
        "gzip" if _is_zipped(path) else "none"
    )  # the engine would stop reading a name at a question mark
    rows = (
        f"read_csv({_quoted(_literal(connection, path))}, delim = {_quoted(delimiter)}, columns = {{{named}}}, "
        f"{READING}, compression = '{compression}', hive_partitioning = false)"
    )
    types = dict.fromkeys(header, dtypes.string)
    return FileTable(_table(connection, rows, types, columns), tuple(header))


# ---- headers


def read_header(path: Path, delimiter: str) -> list[str]:
    """The column names in the first line of a text file, of which at most `MAX_HEADER` characters are read."""
    try:
        # The reader looks ahead of the header; what stands there must not matter.
        with _text(path) as lines:
            header = next(csv.reader(_bounded(lines, path.name), delimiter=delimiter), [])
        "".join(header).encode()
    except (UnicodeEncodeError, csv.Error, zlib.error, EOFError, OSError) as error:
        raise SourceError(f"the header of {path.name} cannot be read ({type(error).__name__})") from None
    if not any(header):
        raise SourceError(f"{path.name} has no header line: the first line must name the columns")
    if len(header) > MAX_COLUMNS:
        raise SourceError(
            f"the header of {path.name} names {len(header):,} columns; at most {MAX_COLUMNS:,} can be opened"
        )
    return header


def _text(path: Path) -> IO[str]:
    opener: Any = gzip.open if _is_zipped(path) else open
    return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")


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
