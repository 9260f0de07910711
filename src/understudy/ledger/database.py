"""A database that keeps what it acknowledges: connections, transactions and errors, for SQLite and Postgres."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from understudy.errors import LedgerError
from understudy.ledger.fork import ForkGate
from understudy.ledger.schema import LOCK

TIMEOUT = 30.0
"""Seconds to wait for other writers."""

_SQLITE_SETTINGS = (
    "PRAGMA synchronous=FULL",  # a commit returns after its frames are synced
    "PRAGMA fullfsync=ON",  # on macOS fsync alone leaves them in the drive's cache
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA wal_autocheckpoint=4000",  # each checkpoint syncs twice more; 16 MiB between them
)


class Database:
    """A store of ledgers. `writing` is a serialised, durable transaction; `reading` sees one moment."""

    def __init__(self, url: URL, *, timeout: float = TIMEOUT) -> None:
        self.url = url
        self._timeout = timeout
        self._engine = self._connector()
        self._gate = ForkGate(self._engine.dispose)
        weakref.finalize(self, self._engine.dispose)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def place(self) -> str:
        """Where it is, without a password."""
        return self.url.database or "" if self.is_sqlite else self.url.render_as_string(hide_password=True)

    def close(self) -> None:
        self._engine.dispose()

    def check(self) -> None:
        """Look for damaged pages, or for a server that does not sync what it acknowledges."""
        with self.reading() as tx:
            if self.is_sqlite:
                found = tx.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
                if found != "ok":
                    raise self._damaged()
                return
            for setting in ("fsync", "full_page_writes"):
                if tx.exec_driver_sql(f"SHOW {setting}").scalar_one() != "on":
                    raise LedgerError(
                        f"the Postgres server runs with {setting} off: it may forget what was spent",
                        remedy=f"Set {setting} = on, or keep the ledger elsewhere",
                    )

    @contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """A transaction that one writer holds at a time (Postgres: once it locks a row); durable when left."""
        begin = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN ISOLATION LEVEL READ COMMITTED"
        with self._transaction(begin) as tx:
            yield tx

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """A transaction that sees one moment and writes nothing."""
        begin = "BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._transaction(begin) as tx:
            yield tx

    @contextmanager
    def making(self) -> Generator[Connection, None, None]:
        """A writing transaction in which tables may be made: one at a time on Postgres, too."""
        with self.writing() as tx:
            if not self.is_sqlite:
                tx.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield tx

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection, None, None]:
        with self._gate.inside(), self._clear_errors(), self._begun(begin) as tx:
            try:
                yield tx
                tx.exec_driver_sql("COMMIT")
            except BaseException:
                # A failed COMMIT has ended the transaction in some stores and not in others.
                if not tx.invalidated:
                    tx.rollback()
                raise

    def _begun(self, begin: str) -> Connection:
        """A connection in a new transaction; one that died while idle is replaced, since nothing was sent."""
        for attempt in (1, 2):
            tx = self._engine.connect()
            try:
                tx.exec_driver_sql(begin)
                return tx
            except DBAPIError as error:
                tx.close()
                if attempt == 2 or not error.connection_invalidated:
                    raise
            except BaseException:
                tx.close()
                raise
        raise AssertionError("unreachable")

    def _connector(self) -> Engine:
        timeout = self._timeout  # not self: the engine must not keep this object alive
        # Transactions are begun and ended by the statements above, not by the driver: it would begin a deferred
        # one, whose first write can fail after its reads.
        if self.is_sqlite:
            engine = create_engine(
                self.url,
                isolation_level="AUTOCOMMIT",
                connect_args={"timeout": self._timeout, "cached_statements": 64},
            )
            event.listen(engine, "connect", _on_connection(_set_up_sqlite, timeout))
            return engine
        try:
            engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        except ModuleNotFoundError:
            raise LedgerError(
                "a ledger on Postgres needs the driver psycopg",
                remedy="pip install 'understudy[postgres]'",
            ) from None
        event.listen(engine, "connect", _on_connection(_set_up_postgres, timeout))
        return engine

    @contextmanager
    def _clear_errors(self) -> Generator[None, None, None]:
        """What a driver says, as a `LedgerError`. A driver's words may hold an answer or a password: dropped."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._explained(error) from None
        except (
            UnicodeDecodeError,
            OverflowError,
            MemoryError,
        ):  # the driver choked on what a damaged page says
            raise self._damaged() from None

    def _explained(self, error: Exception) -> LedgerError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        name = _sqlite_name(cause) if self.is_sqlite else str(getattr(cause, "sqlstate", None) or "")
        for prefix, problem, remedy in _CAUSES:
            if name.startswith(prefix):
                return LedgerError(f"{problem} ({self.place})", remedy=remedy)
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return self._damaged()
        kind = f"{type(cause).__name__} {name}".strip()
        return LedgerError(
            f"the ledger cannot be reached or used: {kind} ({self.place})",
            remedy="Nothing is looked at until it can; see docs/ledger.md",
        )

    def _damaged(self) -> LedgerError:
        return LedgerError(
            f"the ledger's file is damaged ({self.place})",
            remedy="Restore it from a copy that is at least as new as the last answer, or charge what is missing "
            "as an opening balance; nothing was spent",
        )


_CAUSES = (
    ("SQLITE_FULL", "the disk that holds the ledger is full", "Free some space; no look happened"),
    ("SQLITE_IOERR", "the ledger's disk failed, or its quota is used up", "Check the disk; no look happened"),
    ("SQLITE_READONLY", "the ledger is read-only", "Make the file and its folder writable; no look happened"),
    ("SQLITE_PERM", "the ledger may not be read", "Check the owner of the file and its folder"),
    ("SQLITE_CANTOPEN", "the ledger cannot be opened", "Its folder must exist and be writable"),
    ("SQLITE_BUSY", "the ledger was locked for too long", "Try again: nothing was spent"),
    ("SQLITE_LOCKED", "the ledger was locked for too long", "Try again: nothing was spent"),
    ("55P03", "the ledger was locked for too long", "Try again: nothing was spent"),
    ("53", "the Postgres server is out of space, memory or connections", "Free some; no look happened"),
    ("25006", "the ledger is read-only", "Point to the primary server; no look happened"),
    ("28", "the Postgres server refused the login", "Check the user and password in UNDERSTUDY_LEDGER"),
    ("42501", "the ledger may not be written by this user", "Grant the rights to the understudy_ tables"),
    ("08", "the connection to the Postgres server was lost", "Try again with the same request id"),
    ("57P", "the Postgres server is shutting down", "Try again with the same request id"),
)


def _sqlite_name(error: BaseException | None) -> str:
    return str(getattr(error, "sqlite_errorname", None) or "")


def _on_connection(set_up: Callable[[Any, float], None], timeout: float) -> Callable[[Any, Any], None]:
    """A listener to new connections, as SQLAlchemy calls it."""

    def listen(connection: Any, _: Any) -> None:
        set_up(connection, timeout)

    return listen


def _set_up_sqlite(connection: Any, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            # The first switch to WAL needs the file alone and does not wait for others by itself.
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            if _sqlite_name(error) != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise LedgerError(
            f"the ledger's file system does not support write-ahead logging (journal mode {mode!r})",
            remedy="Keep the ledger on a local disk, or on Postgres",
        )
    for statement in _SQLITE_SETTINGS:
        connection.execute(statement)


def _set_up_postgres(connection: Any, timeout: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        if cursor.fetchone()[0] in ("off", "local"):
            cursor.execute("SET synchronous_commit = on")
        # Statements are planned once, often while the tables are still empty, and every look-up has an index.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET jit = off")
        cursor.execute(f"SET lock_timeout = {int(timeout * 1000)}")
