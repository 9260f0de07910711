"""A database that keeps what it acknowledges: connections, transactions and errors, for SQLite and Postgres."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from understudy.errors import ClosedError, LedgerError
from understudy.ledger import file, schema
from understudy.ledger.fork import ForkGate
from understudy.ledger.sqlite_failures import Stage, failure_name, is_damaged, known_failure
from understudy.ledger.wal import switched_to_wal

TIMEOUT = 30.0
"""Seconds to wait for other writers."""

_SQLITE_SETTINGS = (
    "PRAGMA synchronous=FULL",  # a commit returns after its frames are synced
    "PRAGMA fullfsync=ON",  # on macOS fsync alone leaves them in the drive's cache
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA wal_autocheckpoint=4000",  # each checkpoint syncs twice more; 16 MiB between them
    "PRAGMA secure_delete=ON",  # a superseded state is overwritten with zeros, not only unlinked from its page
)

KEPT_OPEN = 32
"""Connections to a file that are kept for the next one who needs one: to open another costs more than a debit."""

WIPES_APART = 1.0
"""Seconds between two emptyings of the log: each costs three syncs."""


class Database:
    """A store of ledgers. `writing` is a serialised, durable transaction; `reading` sees one moment."""

    def __init__(self, url: URL, *, timeout: float = TIMEOUT) -> None:
        self.url = url
        self._timeout = timeout
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.place = url.database or "" if self.is_sqlite else url.render_as_string(hide_password=True)
        """Where it is, without a password."""
        self._engine = self._connector()
        self._gate = ForkGate(self._engine.dispose)
        self._file: file.FileIdentity | None = None
        self._wiped = -WIPES_APART
        self._unwiped = False
        self._closed = False
        weakref.finalize(self, self._engine.dispose)

    def close(self) -> None:
        """Let go of the store for good: every later transaction is refused. Closing twice does nothing."""
        if not self._closed:
            self.let_go()
            self._closed = True

    def let_go(self) -> None:
        """Close every connection; the next transaction makes another."""
        if self._unwiped:
            self._wipe()
        self._engine.dispose()
        self._file = None

    def check_open(self) -> None:
        """Refuse a store that was closed."""
        if self._closed:
            raise ClosedError(
                "the ledger was closed",
                remedy="open the project again; what was charged before is in the ledger, under its request",
            )

    def wipe(self) -> None:
        """Empty SQLite's write-ahead log, which holds pages as they were before a state was erased from them.

        At once, unless that was done within the last second; then with the next call, or when this object is
        closed. While another program reads the ledger nothing can be removed from the log, and it is left for a
        later time: the last program that closes the ledger removes the log. Postgres keeps old rows until VACUUM.
        """
        if not self.is_sqlite:
            return
        self._unwiped = True
        if time.monotonic() >= self._wiped + WIPES_APART:
            self._wipe()

    def _wipe(self) -> None:
        self._wiped = time.monotonic()
        try:
            with self._gate.inside(), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA busy_timeout=0")
                try:
                    busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
                finally:
                    connection.exec_driver_sql(f"PRAGMA busy_timeout={int(self._timeout * 1000)}")
            self._unwiped = bool(busy)
        except (SQLAlchemyError, sqlite3.Error, LedgerError):
            pass  # what was committed is durable in the log; it is emptied another time

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
    def writing(self, *, tables: bool = False, new: bool = False) -> Generator[Connection, None, None]:
        """A transaction that one writer holds at a time (Postgres: once it locks a row); durable when left.

        With `tables`, tables may be made in it: one such transaction at a time, on Postgres, too. Only with `new`
        is a SQLite file made that is not there.
        """
        if new and self.is_sqlite:
            file.make(Path(self.place))
        begin = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN ISOLATION LEVEL READ COMMITTED"
        with self._transaction(begin) as tx:
            if tables and not self.is_sqlite:
                _lock_schema(tx)
            yield tx

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """A transaction that sees one moment and writes nothing."""
        begin = "BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._transaction(begin) as tx:
            yield tx

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection, None, None]:
        """What a driver says becomes a `LedgerError`: its own words may hold an answer or a password."""
        self.check_open()
        try:
            with self._gate.inside(), self._begun(begin) as tx:
                try:
                    self._check_file(tx)
                    yield tx
                    self._check_file(tx)
                    tx.exec_driver_sql("COMMIT")
                    # The path may have been given away in between: then nothing is acknowledged.
                    self._check_file(tx)
                except BaseException:
                    # A failed COMMIT has ended the transaction in some stores and not in others.
                    if not tx.invalidated:
                        tx.rollback()
                    raise
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._explained(error) from None
        except (UnicodeDecodeError, OverflowError, MemoryError):  # it choked on what a damaged page says
            raise self._damaged() from None

    def _check_file(self, tx: Connection) -> None:
        """Refuse a connection to a file that is no longer the ledger's; it is not used again.

        Nor is another file taken by a new connection, until this object is closed and used again.
        """
        if not self.is_sqlite:
            return
        connection: Any = tx.connection.driver_connection
        opened: file.FileIdentity = connection.file
        first = self._file = self._file or opened
        try:
            file.check_same(self.place, opened, first)
        except LedgerError:
            if not tx.invalidated:
                tx.rollback()
                tx.invalidate()
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
            path = Path(self.place)
            return create_engine(
                self.url,
                isolation_level="AUTOCOMMIT",
                creator=lambda: _connected(path, timeout),
                pool_size=KEPT_OPEN,
            )
        try:
            engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        except ModuleNotFoundError:
            raise LedgerError(
                "a ledger on Postgres needs the driver psycopg",
                remedy="pip install 'understudy[postgres]'",
            ) from None
        event.listen(engine, "connect", partial(_set_up_postgres, timeout))
        return engine

    def _explained(self, error: Exception) -> LedgerError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if self.is_sqlite and is_damaged(cause):
            return self._damaged()
        name, known = self._known(cause)
        if known is not None:
            problem, remedy = known
            return LedgerError(f"{problem} ({self.place})", remedy=remedy)
        kind = f"{type(cause).__name__} {name}".strip()
        return LedgerError(
            f"the ledger cannot be reached or used: {kind} ({self.place})",
            remedy="Nothing is looked at until it can; see docs/ledger.md",
        )

    def _known(self, cause: BaseException | None) -> tuple[str, tuple[str, str] | None]:
        """The store's name of a failure; what it means and what to do, where it is one of the usual ones."""
        if self.is_sqlite:
            known = known_failure(cause, what="the ledger", file="the file")
            words = None if known is None else (known.problem, known.remedy + _SPENT[known.stage])
            return failure_name(cause), words
        name = str(getattr(cause, "sqlstate", None) or "")
        known = ((problem, remedy) for prefix, problem, remedy in _POSTGRES_CAUSES if name.startswith(prefix))
        return name, next(known, None)

    def _damaged(self) -> LedgerError:
        return LedgerError(
            f"the ledger's file is damaged ({self.place})",
            remedy="Restore it from a copy that is at least as new as the last answer, or charge what is missing "
            "as an opening balance; nothing was spent",
        )


_SPENT: dict[Stage, str] = {
    "opening": "",
    "locking": ": nothing was spent",
    "writing": "; no look happened",
}
"""What a failure of a file has left of a question, by when it happened."""

_POSTGRES_CAUSES = (
    (
        "55P03",
        "the ledger was locked for too long by another session of the Postgres server",
        "Try again, or see pg_locks for who holds the understudy_ tables: nothing was spent",
    ),
    ("53", "the Postgres server is out of space, memory or connections", "Free some; no look happened"),
    ("25006", "the ledger is read-only", "Point to the primary server; no look happened"),
    ("28", "the Postgres server refused the login", "Check the user and password in UNDERSTUDY_LEDGER"),
    ("42501", "the ledger may not be written by this user", "Grant the rights to the understudy_ tables"),
    ("08", "the connection to the Postgres server was lost", "Try again with the same request id"),
    ("57P", "the Postgres server is shutting down", "Try again with the same request id"),
)


class _FileConnection(sqlite3.Connection):
    """A connection that knows which file it was opened on."""

    file: file.FileIdentity


def _connected(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to a file that exists, has one name, and was the same before and after it was opened."""
    address = f"file:{quote(str(path))}?mode=rw"
    for _ in range(3):  # a file of a lower layer of an overlay is copied, once, when it is opened for writing
        file.check_not_mounted(path)
        before = file.identity(path)
        connection = sqlite3.connect(
            address,
            uri=True,
            timeout=timeout,
            cached_statements=64,
            check_same_thread=False,  # the pool hands it from thread to thread, one at a time
            factory=_FileConnection,
        )
        try:
            if file.identity(path) == before:
                connection.file = before
                _set_up_sqlite(connection, timeout)
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
    raise LedgerError(
        f"the ledger {path} is replaced again and again while it is opened", remedy="Find out by whom"
    )


def _set_up_sqlite(connection: Any, timeout: float) -> None:
    mode = switched_to_wal(connection, timeout)
    if mode != "wal":
        raise LedgerError(
            f"the ledger's file system does not support write-ahead logging (journal mode {mode!r})",
            remedy="Keep the ledger on a local disk, or on Postgres",
        )
    for statement in _SQLITE_SETTINGS:
        connection.execute(statement)


def _set_up_postgres(timeout: float, connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        if cursor.fetchone()[0] in ("off", "local"):
            cursor.execute("SET synchronous_commit = on")
        # Statements are planned once, often while the tables are still empty, and every look-up has an index.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET jit = off")
        cursor.execute(f"SET lock_timeout = {int(timeout * 1000)}")


def _lock_schema(tx: Connection) -> None:
    """Let one transaction at a time make, upgrade or open the tables of a Postgres ledger.

    The lock is one on our own table: only roles that may write to it can hold a lock in its way, where an advisory
    lock can be held by any role that may connect. Waiting ends with the connection's `lock_timeout`.
    """
    for _ in range(2):
        if tx.dialect.has_table(tx, schema.SCHEMA.name):
            tx.exec_driver_sql(f"LOCK TABLE {schema.SCHEMA.name} IN SHARE ROW EXCLUSIVE MODE")
            return
        tx.exec_driver_sql("SAVEPOINT making")
        try:
            schema.SCHEMA.create(tx)  # waits for whoever makes it at the same time
            return
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") not in _MADE_BY_OTHERS:
                raise
            tx.exec_driver_sql("ROLLBACK TO SAVEPOINT making")
    raise LedgerError(
        "the table understudy_schema comes and goes", remedy="See who else writes to the ledger's schema"
    )


_MADE_BY_OTHERS = ("23505", "42P07")
"""A unique key of the catalogue, or the table itself, is there already."""
