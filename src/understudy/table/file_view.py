"""One file as a table of the embedded engine: a view over it that is read anew at every look."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import SourceError

if TYPE_CHECKING:
    import ibis.expr.datatypes as dtypes
    import pyarrow as pa

    from understudy.table.text_rows import TextRows

ASK_CUSTODIAN = "the custodian can see what it has with `understudy check`"
"""In place of what was read from a source, for whoever is not its custodian."""

MAX_COLUMNS = 1 << 15
"""Columns of a file's table: opening takes time and memory for each, declared or not."""

Connection = Any
"""A connection of Ibis to DuckDB, which Ibis types at run time."""


@dataclass(frozen=True, slots=True)
class LostLines:
    """Lines of a text file that are no row, or not a whole one: exact counts, for the custodian alone.

    dropped  lines that the engine cannot read, mostly because they are not in the declared encoding: nobody
             who stands there is ever counted
    ragged   lines with more or fewer fields than there are columns: what lacks is missing, what is too much
             is not read
    dropped_at, ragged_at   the numbers of the first few of them in the file, the first line being 1
    encoding  what a file that is declared as UTF-8 and is not seems to be written in; `utf-8` where only a few
              of its bytes are not; empty where nothing was dropped for its bytes
    """

    dropped: int = 0
    ragged: int = 0
    dropped_at: tuple[int, ...] = ()
    ragged_at: tuple[int, ...] = ()
    encoding: str = ""

    def dropped_of(self, rows: int, *, say: str = "declare `encoding: {}`") -> str:
        """What to tell the custodian of dropped lines: the cause, what to do (`say`), and how many there are."""
        if self.encoding == "utf-8":
            cause = (
                "some bytes of the file are not UTF-8, and most are: it may have been put together from files in "
                f"two encodings. Mend these lines, or {say.format('cp1252')}, which reads every line, but other "
                "letters than ASCII wrongly where they are UTF-8"
            )
        elif self.encoding:
            others = " or ".join(
                name for name in ("cp1252", "latin-1", "iso8859-15") if name != self.encoding
            )
            remedy = say.format(self.encoding)
            cause = (
                f"the file is not UTF-8: its bytes read as {self.encoding}. {remedy[0].upper()}{remedy[1:]} (or "
                f"{others}, if letters look wrong)"
            )
        else:
            cause = "some lines are too long, or cannot be read: mend the file"
        many = f"{self.dropped:,} of {rows + self.dropped:,} lines"
        where = places_of(self.dropped_at, self.dropped)
        return f"{cause}. {many}{where} are no rows as it is, and nobody in them is ever counted"


def places_of(lines: tuple[int, ...], many: int) -> str:
    """Where the first of `many` lines are, in words.

    >>> places_of((3, 9), 2), places_of((3, 9), 40), places_of((7,), 1)
    (' (lines 3 and 9)', ' (lines 3, 9, …)', ' (line 7)')
    """
    if not lines:
        return ""
    if len(lines) == 1 and many == 1:
        return f" (line {lines[0]:,})"
    listed = [f"{line:,}" for line in lines]
    whole = len(lines) >= many
    return (
        f" (lines {', '.join(listed[:-1])} and {listed[-1]})" if whole else f" (lines {', '.join(listed)}, …)"
    )


def nothing_lost() -> LostLines:
    """Of a file whose rows have a type each, and are there or not."""
    return LostLines()


def nothing_to_release() -> None:
    """Of a file that is read as it is."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """The expression over a file's table; `names` are all its columns, of which that may have the declared only.

    `pinned` says whether the stamps of the files tell of every change of the rows. They do not where a view
    reads something else, or a column is computed when it is read. `lost` counts the lines that are no rows;
    `copy` is what has to live as long as the expression does, and `release` lets go of it. `text` are the rows of
    a file of text.
    """

    expression: Any
    names: tuple[str, ...]
    pinned: bool = True
    lost: Callable[[], LostLines] = nothing_lost
    copy: Any = None
    release: Callable[[], None] = nothing_to_release
    text: TextRows | None = None


def literal_path(connection: Connection, path: Path) -> str:
    """The path as a pattern that matches this file alone; the engine takes every path of CSV or Parquet as one."""
    text = str(path)
    pattern = "".join(f"[{mark}]" if mark in "*?[" else mark for mark in text)
    if pattern == text:
        return text
    matched = connection.con.execute("SELECT file FROM glob(?)", [pattern]).fetchall()
    if matched != [(text,)]:  # a backslash in the name as well, say
        raise SourceError(f"the engine takes the name {path.name!r} for a pattern: rename the file")
    return pattern


def quoted(text: str) -> str:
    """A text as a literal of SQL.

    >>> print(quoted("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


# ---- expressions over the engine's tables


def connect(*where: Path, **how: bool) -> Connection:
    """A connection to the embedded engine, in memory or to a database's file; loads the engine."""
    import ibis

    return ibis.duckdb.connect(*where, **how)


def connect_in_memory() -> Connection:
    """A connection of its own to the engine that holds the frames of this process.

    Temporary tables are the connection's own and end with it, so that nobody sees another's frame; the engine's
    memory and threads are shared by all. To start an engine takes ten times as long as to connect to one.
    """
    import ibis

    return ibis.duckdb.from_connection(_engine(os.getpid()).cursor())


@cache
def _engine(process: int) -> Any:
    """The engine of a process; one that was forked starts its own.

    That of its parent is kept too: to end it would mean to wait for threads that only the parent has.
    """
    import duckdb

    del process
    return duckdb.connect()


def identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def described(connection: Connection, rows: str) -> dict[str, dtypes.DataType]:
    """The columns of what stands after FROM, with their types. Reads no row."""
    described = connection.con.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    if len(described) > MAX_COLUMNS:
        raise SourceError(f"the table has {len(described):,} columns; at most {MAX_COLUMNS:,} can be opened")
    return _typed(described)


def _typed(described: list[tuple[str, ...]]) -> dict[str, dtypes.DataType]:
    """Columns that the engine described, with Ibis's types.

    What Ibis itself does takes a parse of SQL for each column; here there is one for each type that occurs.
    """
    from ibis.backends.sql.datatypes import DuckDBType

    types = {written: DuckDBType.from_string(written) for written in {row[1] for row in described}}
    return {row[0]: types[row[1]] for row in described}


def held_frame(connection: Connection, frame: pa.Table) -> Any:
    """An expression over a copy of the frame, a temporary table of the connection.

    The table is the one that Ibis's `create_table` makes, without the several statements that it writes by way of
    syntax trees and the looks at catalogs: in two thirds of the time, where a frame is small.
    """
    import ibis
    import ibis.expr.operations as ops
    from ibis.backends.sql.datatypes import DuckDBType

    given = ibis.Schema.from_pyarrow(frame.schema)
    types = {dtype: DuckDBType.to_string(dtype) for dtype in set(given.values())}
    columns = ", ".join(f"{identifier(name)} {types[dtype]}" for name, dtype in given.items())
    engine = connection.con
    engine.register("given", frame)
    engine.execute(f"CREATE TEMPORARY TABLE frame ({columns})")
    engine.execute("INSERT INTO frame SELECT * FROM given")
    engine.unregister("given")
    schema = ibis.schema(_typed(engine.execute("DESCRIBE temp.main.frame").fetchall()))
    place = ops.Namespace(catalog="temp", database="main")
    return ops.DatabaseTable("frame", schema=schema, source=connection, namespace=place).to_expr()


def wanted_of(names: Collection[str], columns: Collection[str] | None) -> list[str]:
    """Those of a table's columns that are declared; all of them, where none is."""
    return [name for name in names if columns is None or name in columns] or list(names)


def view_of(connection: Connection, rows: str, types: dict[str, Any], columns: Collection[str] | None) -> Any:
    """The expression over a query, which the engine reads anew at every look.

    An engine takes time for every column of an expression, so it has those that are declared, where any is.
    """
    import ibis

    wanted = wanted_of(types, columns)
    selected = ", ".join(map(identifier, wanted))
    connection.con.execute(f"CREATE TEMPORARY VIEW understudy_source AS SELECT {selected} FROM {rows}")
    return _named(connection, "understudy_source", ibis.schema({name: types[name] for name in wanted}))


def held(table: Any) -> Any:
    """The expression over the rows of another, which are read once, now, and kept in the engine's memory."""
    connection: Connection = table.get_backend()
    connection.con.execute(f"CREATE TEMPORARY TABLE understudy_held AS {connection.compile(table)}")
    return _named(connection, "understudy_held", table.schema())


def _named(connection: Connection, name: str, schema: Any) -> Any:
    """The expression over a table or a view of the embedded engine."""
    import ibis.expr.operations as operations

    return operations.DatabaseTable(
        name, schema=schema, source=connection, namespace=operations.Namespace()
    ).to_expr()
