"""The engine of a desk's process: DuckDB in memory, without files, extensions or changeable settings."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import duckdb

from understudy.desk import allowed

_CONFIG = {
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "temp_directory": "",
}
_CHECKED_AT_MOST = 2_000
"""Statements of one database that are remembered as allowed."""
_AS_TEXT = re.compile(
    r"TIMESTAMP WITH TIME ZONE|TIME WITH TIME ZONE|INTERVAL|STRUCT|MAP|UNION|BLOB|BIT|ENUM|UUID"
)
"""Types whose values are sent as DuckDB writes them."""
_DEEP = re.compile(r"(?i)nested|expression depth|memory exhausted|stack")
"""What DuckDB says of a statement that is nested too deep for its parser or binder."""


class StatementFailedError(Exception):
    """A statement that was refused or failed: a `reason` for programs, and the `name` in it that it is about."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason, name)
        self.reason = reason
        self.name = name


class DeskEngine:
    """One database in memory. Its tables are made and filled first; then it is locked, and runs statements."""

    def __init__(self, *, megabytes: int, tables: Sequence[Mapping[str, Any]]) -> None:
        """Make the tables, which are empty: each has a schema, a name, and the names and types of its columns."""
        self._connection = duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": f"{megabytes}MB"})
        self._run = self._connection.execute
        self._run("SET TimeZone = 'UTC'")
        for schema in sorted({str(table["schema"]) for table in tables if table["schema"]}):
            self._run(f"CREATE SCHEMA {_quoted(schema)}")
        for table in tables:
            self._create(table, temporary=False)
        self._tables = {
            (allowed.ascii_lower(str(table["schema"])), allowed.ascii_lower(str(table["name"])))
            for table in tables
        }
        self._functions: set[str] = set()
        self._checked: dict[str, None] = {}

    def fill(self, table: Mapping[str, Any]) -> None:
        """Add rows to a table: `values` are its columns, each a text of JSON. They are parameters, never SQL."""
        name = _quoted(str(table["name"]))
        if table["schema"]:
            name = f"{_quoted(str(table['schema']))}.{name}"
        unnested = ", ".join(f"unnest(from_json(?::VARCHAR, '{_shape(kind)}'))" for kind in table["types"])
        if table["values"]:
            self._run(f"INSERT INTO {name} SELECT {unnested}", list(table["values"]))

    def finish(self, statements: Sequence[str]) -> None:
        """Make views and macros, by statements that are ours and not an analyst's, and lock the database."""
        for statement in statements:
            self._run(statement)
        views = self._run("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        self._tables |= {
            (allowed.ascii_lower(str(schema)), allowed.ascii_lower(str(name))) for schema, name in views
        }
        macros = self._run(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"
        ).fetchall()
        self._functions = {allowed.ascii_lower(str(name)) for (name,) in macros}
        self._run("SET lock_configuration = true")

    def run(
        self,
        sql: str,
        tables: Sequence[Mapping[str, Any]],
        *,
        seconds: float,
        rows: int,
        columns_only: bool,
    ) -> tuple[list[tuple[str, str]], list[Any]]:
        """The columns, as pairs of a name and a type of DuckDB, and the rows, one more than `rows` at most.

        A statement is interrupted after so many seconds of processor time, or three times as many of the clock.
        """
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(seconds, done), daemon=True)
        watch.start()
        self._run("BEGIN TRANSACTION")
        try:
            return self._answered(sql, tables, rows, columns_only=columns_only)
        except duckdb.Error as error:
            raise _failure(error) from None
        except (MemoryError, RecursionError):
            raise StatementFailedError("size") from None
        finally:
            done.set()
            watch.join()  # so that it interrupts nothing that comes later
            self._run("ROLLBACK")  # which takes the statement's own tables with it

    def _watch(self, seconds: float, done: threading.Event) -> None:
        """Interrupt what runs when its time is up, again and again until it is done."""
        began, processor = time.monotonic(), time.process_time()
        while not done.wait(seconds / 20):
            if time.process_time() - processor >= seconds or time.monotonic() - began >= 3 * seconds:
                self._connection.interrupt()

    def _answered(
        self, sql: str, tables: Sequence[Mapping[str, Any]], rows: int, *, columns_only: bool
    ) -> tuple[list[tuple[str, str]], list[Any]]:
        own = {("", allowed.ascii_lower(str(table["name"]))) for table in tables}
        self._check(sql, own)
        for table in tables:
            self._create(table, temporary=True)
            self.fill(table)
        described = self._run(f"DESCRIBE {sql}").fetchall()
        columns = [(str(row[0]), str(row[1])) for row in described]
        if columns_only:
            return columns, []
        if any(_AS_TEXT.search(kind) for _, kind in columns):
            names = [f"c{number}" for number in range(len(columns))]
            shown = ", ".join(
                f"CAST({name} AS VARCHAR{'[]' if kind.endswith('[]') else ''})"
                if _AS_TEXT.search(kind)
                else name
                for name, (_, kind) in zip(names, columns, strict=True)
            )
            sql = f"SELECT {shown} FROM ({sql}\n) AS answered({', '.join(names)})"
        return columns, self._run(sql).fetchmany(rows + 1)

    def _check(self, sql: str, own: Collection[tuple[str, str]]) -> None:
        key = f"{sorted(own)}{sql}"
        if key in self._checked:
            return
        found = self._run("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
        tree: dict[str, Any] = json.loads(found[0]) if found else {"error": True}
        if tree.get("error"):
            if tree.get("error_type") == "not implemented":
                raise StatementFailedError("not-select")
            raise StatementFailedError("deep" if _DEEP.search(str(tree.get("error_message"))) else "syntax")
        if len(tree["statements"]) != 1:
            raise StatementFailedError("several")
        try:
            allowed.check(tree["statements"][0], tables=self._tables | set(own), functions=self._functions)
        except allowed.NotAllowedError as error:
            raise StatementFailedError(f"no-{error.kind}", error.name) from None
        if len(self._checked) >= _CHECKED_AT_MOST:
            self._checked.clear()
        self._checked[key] = None

    def _create(self, table: Mapping[str, Any], *, temporary: bool) -> None:
        """Make a table; the types are those of our own list."""
        name = _quoted(str(table["name"]))
        if not temporary and table["schema"]:
            name = f"{_quoted(str(table['schema']))}.{name}"
        columns = zip(table["names"], table["types"], strict=True)
        shape = ", ".join(f"{_quoted(str(column))} {kind}" for column, kind in columns)
        self._run(f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {name} ({shape})")


def _shape(kind: str) -> str:
    return f'[["{kind[:-2]}"]]' if kind.endswith("[]") else f'["{kind}"]'


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_MESSAGES = (
    (r'Referenced column "([^"]*)" not found', "undefined-column"),
    (r'does not have a column named "([^"]*)"', "undefined-column"),
    (r'Referenced table "([^"]*)" not found', "undefined-table"),
    (r"Table with name (\S+) does not exist", "undefined-table"),
    (r"Function with name (\S+) does not exist", "undefined-function"),
    (r"No function matches the given name and argument types '(\w+)", "undefined-function"),
    (r'Ambiguous reference to column name "([^"]*)"', "ambiguous"),
    (r'column "([^"]*)" must appear in the GROUP BY clause', "grouping"),
    (r"Type with name (\S+) does not exist", "undefined-type"),
    (r'function call "([^("]+)', "types"),
    (r"Set operations can only apply to expressions with the same number", "widths"),
    (_DEEP.pattern, "deep"),
)


def _failure(error: duckdb.Error) -> StatementFailedError:
    """What became of a statement, without a word of the engine's but a name that the statement itself has."""
    if isinstance(error, duckdb.InterruptException):
        return StatementFailedError("time")
    if isinstance(error, duckdb.OutOfMemoryException):
        return StatementFailedError("size")
    if isinstance(error, duckdb.ParserException | duckdb.SyntaxException):
        return StatementFailedError("deep" if _DEEP.search(str(error)) else "syntax")
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        return StatementFailedError("value")
    for pattern, reason in _MESSAGES:
        if found := re.search(pattern, str(error)):
            return StatementFailedError(reason, found.group(1)[:60] if found.groups() else "")
    if isinstance(error, duckdb.BinderException):
        return StatementFailedError("types")
    if isinstance(error, duckdb.InvalidInputException):
        return StatementFailedError("value")
    return StatementFailedError("failed")
