"""Tables in files: CSV, TSV, Parquet and DuckDB, read by the embedded engine.

A path means one file, whatever its name: nothing in it is a pattern, and no folder's name adds a column.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from understudy.declaration.declaration import SourceSpec
from understudy.errors import SourceError
from understudy.table.file_view import (
    ASK_CUSTODIAN,
    Connection,
    FileTable,
    connect,
    described,
    identifier,
    literal_path,
    quoted,
    view_of,
)
from understudy.table.stamp import is_database
from understudy.table.text_file import is_text, text_table


def check_file(path: Path, spec: SourceSpec) -> None:
    """Refuse what no table can be read from, by the name of a file and by what is declared about it."""
    if path.is_dir():
        raise SourceError(f"the table {path} is a folder; name a CSV, Parquet or DuckDB file")
    if not is_text(path) and (told := spec.speaks_of_text):
        raise SourceError(
            f"{path.name} is no file of text: leave {' and '.join(f'`{key}`' for key in told)} out of the "
            f"declaration"
        )
    if not (is_text(path) or is_parquet(path) or is_database(path)):
        raise SourceError(f"{path.name}: the ending says nothing known; use .csv, .tsv, .parquet or .duckdb")


def open_file(path: Path, spec: SourceSpec, *, columns: Collection[str] | None, candid: bool) -> FileTable:
    """The table in a file, by the ending of its name, with those of `columns` that it has, or all.

    Only `candid` errors name what is in it.
    """
    try:
        if is_parquet(path):
            return _parquet_table(path, columns)
        if is_database(path):
            return _database_table(path, spec.table, columns, candid=candid)
        return text_table(path, spec, columns, candid=candid)
    except SourceError:
        raise
    except Exception as error:  # its own text may quote a value
        kind = "Parquet" if is_parquet(path) else "DuckDB" if is_database(path) else "text"
        raise SourceError(
            f"the table {path} cannot be opened as a file of {kind} ({type(error).__name__}): it is damaged, or "
            f"something else than its name says"
        ) from None


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file, by its ending."""
    return path.suffix.lower() == ".parquet"


def _parquet_table(path: Path, columns: Collection[str] | None) -> FileTable:
    connection = connect()
    rows = f"read_parquet({quoted(literal_path(connection, path))}, hive_partitioning = false)"
    types = described(connection, rows)
    return FileTable(view_of(connection, rows, types, columns), tuple(types))


def _database_table(path: Path, table: str, columns: Collection[str] | None, *, candid: bool) -> FileTable:
    connection = connect(path, read_only=True)
    tables = connection.list_tables()
    if not table and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        if candid and tables:
            raise SourceError(f"{path.name} has the tables {', '.join(tables)}; say which with `table:`")
        declared = f"no table {table!r}" if table else "no table, or several of which `table:` names none"
        raise SourceError(f"{path.name} has {declared}: {ASK_CUSTODIAN}")
    types = described(connection, identifier(table))
    pinned = _is_stored(connection, table)
    return FileTable(view_of(connection, identifier(table), types, columns), tuple(types), pinned)


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
