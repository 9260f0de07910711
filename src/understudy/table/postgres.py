"""A table in Postgres: read-only, one snapshot for each look, with time limits, on a connection of its own.

A look opens its connection and closes it: a connection that was lost is no trouble for the next look, and nothing
of one look (a setting, an open transaction) is left to the next.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import ibis
import numpy as np
from ibis.backends.sql.datatypes import PostgresType

from understudy.declaration.declaration import SourceSpec
from understudy.errors import SourceChangedError, SourceError
from understudy.table.dialect import Dialect, Expression
from understudy.table.engine import Columns, Habits, View, step_by_step
from understudy.table.postgres_dialect import POSTGRES

FETCH_ROWS = 1 << 16
"""Rows that are fetched at once from a cursor on the server."""

TIME_LIMIT = 600
"""Seconds for one statement where the declaration names no other limit. Depends on nothing that is private."""

PROBE_SECONDS = 5
"""How long to wait for somebody to listen, after a connection has failed."""

HABITS = Habits(few_groups=2, narrow=False)
"""Measured: grouping all rows once costs about half of what sending all of their codes does."""

CONNECTION: Mapping[str, str] = {
    "application_name": "understudy",
    "connect_timeout": "20",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}

SETTINGS: Mapping[str, str] = {
    "timezone": "UTC",  # the day of a time stamp must not depend on who asks
    "datestyle": "ISO",
    "work_mem": "64MB",  # a table of `group_cells` cells is hashed in memory
    "cursor_tuple_fraction": "1",
    "jit": "off",  # compiling many small conditions takes longer than running them
}

_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typtype
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_RELATION = """
SELECT c.oid, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND CASE WHEN %s = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %s END
"""


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table's identity: its number in the catalogue, and its columns with their types."""

    oid: int
    schema: str
    name: str
    columns: tuple[tuple[str, str, str], ...]

    def expression(self) -> Expression:
        """The table as an Ibis expression that needs no connection; enumerations are read as text."""
        types = {
            name: "string" if kind == "e" else PostgresType.from_string(written)
            for name, written, kind in self.columns
        }
        table: Any = ibis.table(types, name=self.name, database=self.schema)
        labels = [name for name, _, kind in self.columns if kind == "e"]
        return table.mutate(**{name: table[name].concat("") for name in labels}) if labels else table


class PostgresView:
    """One transaction's view."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, expression: Expression) -> Iterator[Columns]:
        names = list(expression.columns)
        with self._connection.cursor("understudy", binary=True, scrollable=False) as cursor:
            cursor.execute(_sql(expression))
            while rows := cursor.fetchmany(FETCH_ROWS):
                values = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * len(names))
                yield dict(zip(names, values.reshape(len(rows), len(names)).T, strict=True))

    def groups(self, expression: Expression) -> Iterator[Columns]:
        return self.rows(expression)


@dataclass(frozen=True)
class PostgresEngine:
    """A table on a Postgres server.

    `address` is what libpq is told, the password included: it is in no message and in no representation.
    """

    address: _SourceAddress
    relation: PostgresTable
    time_limit: int = TIME_LIMIT
    dialect: Dialect = POSTGRES
    habits: Habits = HABITS
    remote: bool = True

    def check_unchanged(self) -> None:
        with self._transaction() as connection:
            self._check(connection)

    def _check(self, connection: Any) -> None:
        if _relation(connection, self.relation.schema, self.relation.name) != self.relation:
            raise SourceChangedError(
                f"the table {self.relation.name} is not the one that was opened, or its columns have changed. A "
                f"budget belongs to one table: open the project again if this is the same people's data"
            )

    def prepare(self, expression: Expression) -> None:
        wanted = _sql(expression)
        with self._transaction() as connection:
            if "NORMALIZE(" in wanted.upper():  # units that are text; a plan alone does not try it
                self._check_composes(connection)
            connection.execute("EXPLAIN " + wanted)

    def _check_composes(self, connection: Any) -> None:
        """Refuse, before anything is charged, a server that cannot bring texts into one normal form."""
        import psycopg

        try:
            connection.execute("SELECT pg_catalog.normalize('a')")
        except psycopg.Error:
            raise SourceError(
                "a `unit` column of text needs Postgres 13 or later and a database in UTF-8: only these bring "
                "texts that Unicode writes in two ways into one form. Declare a unit column of numbers, or move "
                "the table"
            ) from None

    @contextmanager
    def look(self) -> Iterator[View]:
        with self._transaction() as connection:
            self._check(connection)
            yield PostgresView(connection)

    def close(self, expression: Expression) -> None:
        """Every look has a connection of its own, which ended with it."""

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _connected(self.address) as connection, connection.transaction():
            settings = {**SETTINGS, "statement_timeout": f"{self.time_limit}s"}
            calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * len(settings))
            connection.execute(f"SELECT {calls}", list(chain.from_iterable(settings.items())))
            yield connection


class _SourceAddress:
    """How to connect. Its representation shows nothing, as it may hold a password."""

    def __init__(self, url: str, password: str | None) -> None:
        self._url = url
        self._password = password

    def __repr__(self) -> str:
        return "<address>"

    def connect(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise SourceError("reading from Postgres needs psycopg: install understudy[postgres]") from None
        settings: dict[str, Any] = dict(CONNECTION)
        if self._password is not None:
            settings["password"] = self._password
        connection = psycopg.connect(self._url, prepare_threshold=None, **settings)
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection

    def trouble(self, error: Exception) -> str:
        """Why there is no connection, in words of our own: a server's may quote what it was sent.

        What is told of the place is what the declaration says of it.
        """
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        tried = getattr(error, "pgconn", None)
        try:
            declared = conninfo_to_dict(self._url)
        except psycopg.Error:
            return "this is no URL that Postgres understands; write postgresql://user@host:port/database"
        host, port = declared.get("host"), declared.get("port") or "5432"
        place = f"{host}:{port}" if host else "the server that the environment names"
        if not isinstance(error, psycopg.OperationalError) or tried is None:
            return f"Postgres does not answer as declared ({type(error).__name__}); try the same with psql"
        if not _answers(_text(tried.host), _text(tried.port)):
            return f"no connection to {place}; check host and port, and that Postgres listens there"
        return (
            f"a server answers at {place} and refuses the connection; check database, user, password and "
            f"sslmode with psql"
        )


def _text(told: bytes | None) -> str:
    return (told or b"").decode(errors="replace")


def _answers(host: str, port: str) -> bool:
    """Whether anybody listens at a place, which a failed connection alone does not tell in every language."""
    if not host:
        return False
    number = int(port) if port.isdecimal() else 5432
    try:
        if host.startswith("/"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(PROBE_SECONDS)
                probe.connect(f"{host}/.s.PGSQL.{number}")
        else:
            socket.create_connection((host, number), PROBE_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def _connected(address: _SourceAddress) -> Iterator[Any]:
    connection = address.connect()
    try:
        yield connection
    finally:
        connection.close()


def _sql(expression: Expression) -> str:
    with step_by_step():
        return ibis.to_sql(expression, dialect="postgres")


def _relation(connection: Any, schema: str, name: str) -> PostgresTable | None:
    found = connection.execute(_RELATION, (name, schema, schema)).fetchone()
    if found is None:
        return None
    oid, where = found
    columns = connection.execute(_COLUMNS, (oid,)).fetchall()
    return PostgresTable(
        oid, where, name, tuple((column, written, kind) for column, written, kind in columns)
    )


def open_postgres(spec: SourceSpec, *, base: Path) -> tuple[Expression, PostgresEngine]:
    """Connect, read the table's columns, and hang up."""
    if not spec.table:
        raise SourceError("a database has many tables: say which with `table:`")
    address = _SourceAddress(spec.location, password(spec, base=base))
    try:
        with _connected(address) as connection:
            relation = _relation(connection, spec.schema, spec.table)
    except SourceError:
        raise
    except Exception as error:  # its text may hold the password
        raise SourceError(address.trouble(error)) from None
    if relation is None:
        where = f"the schema {spec.schema}" if spec.schema else "the search path"
        raise SourceError(f"there is no table {spec.table!r} in {where}, or this user may not see it")
    limit = TIME_LIMIT if spec.time_limit is None else spec.time_limit
    return relation.expression(), PostgresEngine(address, relation, limit)


def password(spec: SourceSpec, *, base: Path) -> str | None:
    """The password from where the declaration says it is kept; None leaves it to the engine's own ways."""
    if spec.password_variable:
        secret = os.environ.get(spec.password_variable)
        if secret is None:
            raise SourceError(f"the environment variable {spec.password_variable} is not set")
        return secret
    if spec.password_file:
        path = base / spec.password_file
        try:
            return path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the password file {path} cannot be read ({type(error).__name__})") from None
    return None
