"""What a server remembers: `server.db`, a SQLite file that its owner alone may read.

It holds tokens (as hashes), browser logins, the questions that were asked with their released answers, approvals,
pauses and the audit log. Budgets are in the ledgers: losing this file loses none.

Every transaction survives a kill of the process. Those that are `durable` survive a loss of power as well; a
history of questions need not, because a request that is repeated gets its answer from the ledger.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from understudy.errors import StoreError, UnderstudyError
from understudy.ledger.fork import ForkGate
from understudy.ledger.group import GroupCommit, Ticket
from understudy.server import schema
from understudy.server.store_connection import StoreConnection, check_text, clear_errors, connected

LINGER = 0.1
"""Seconds that writes of `later` are gathered before one transaction takes them all."""

MOST_WAITING = 50_000
"""Writes of `later` that are held while the file cannot be written; beyond it the oldest are dropped."""

Given = TypeVar("Given")

_LATEST = "latest time"
_MINUTE = 60.0


class ServerStore:
    """The state of one server. Safe for threads, and for other processes that open the same file.

    `clock` gives seconds since 1970. Raises a StoreError, from every call, where the file cannot be used; the next
    call tries again, so that a server goes on when a disk has room again.
    """

    def __init__(self, path: Path, *, new: bool = True, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.opening = secrets.token_hex(8)
        """A name of this opening of the file, which no other has: what it claims is free again after it."""
        self._clock = clock
        self._idle: list[StoreConnection] = []
        self._pool = threading.Lock()
        self._writer = threading.RLock()
        self._group: GroupCommit[Callable[[sqlite3.Connection], Any]] = GroupCommit(self._commit_together)
        self._gate = ForkGate(self._let_go)
        self._waiting: deque[tuple[str, Sequence[Any]]] = deque(maxlen=MOST_WAITING)
        self._wake = threading.Event()
        self._flusher: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()
        self._file = self._found(new=new)
        self._floor = 0.0
        self._noted = 0.0
        try:
            with self.writing() as tx:
                schema.migrate(tx)
            with self.reading() as tx:
                self._floor = self._noted = float(_fact(tx, _LATEST) or 0.0)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"ServerStore({str(self.path)!r})"

    def __enter__(self) -> ServerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, as far as that is possible, and let go of the file."""
        with suppress(StoreError):
            if not self._closed:
                self.flush()
        self._closed = True
        self._wake.set()
        self._let_go()

    # ---- time

    def now(self) -> float:
        """Seconds since 1970, never before the latest time that any program has noted in this file.

        So a clock that is set back revives no token that had expired. The latest time is noted by writing
        transactions, at least once a minute while the store is used.
        """
        self._floor = max(self._clock(), self._floor)
        if self._floor >= self._noted + _MINUTE:
            self._noted = self._floor
            self.later(_NOTE, (_LATEST, str(self._floor)))
        return self._floor

    def note_time(self, at_least: float) -> None:
        """Have it on disk that a time has passed, before somebody is told that something expired by then.

        A clock that is set back right after a kill would else revive it.
        """
        if self._noted < at_least <= self.now():
            with self.writing() as tx:
                tx.execute(_NOTE, (_LATEST, str(self._floor)))
            self._noted = self._floor

    @property
    def clock_is_behind(self) -> float:
        """By how many seconds the machine's clock is behind the latest time that was noted; 0 where it is not."""
        return max(0.0, self.now() - self._clock())

    def accept_clock(self) -> None:
        """Believe the machine's clock again, after it had been wrongly ahead. A custodian's decision."""
        self.flush()
        with self.writing() as tx:
            self._floor = self._noted = self._clock()
            tx.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (_LATEST, str(self._floor)))

    # ---- transactions

    @contextmanager
    def writing(self, *, durable: bool = True) -> Generator[sqlite3.Connection, None, None]:
        """A transaction of the one writer; what raises inside it has changed nothing."""
        with self._writer, self._connection() as tx:
            tx.sync(durable=durable)
            tx.execute("BEGIN IMMEDIATE")
            try:
                yield tx
                self._check_same()
                tx.execute("COMMIT")
            except BaseException:
                if tx.in_transaction:
                    with suppress(sqlite3.Error):
                        tx.execute("ROLLBACK")
                raise

    def together(self, work: Callable[[sqlite3.Connection], Given]) -> Given:
        """What `work` returns, done in one transaction with other threads'; survives a kill, not a power cut.

        An `UnderstudyError` that it raises is its caller's alone: it must have written nothing by then. Whatever
        else it raises fails all that share the transaction, so texts are checked before (`check_text`).
        """
        return self._group.submit(work)

    def _commit_together(self, tickets: list[Ticket[Callable[[sqlite3.Connection], Any]]]) -> None:
        with self.writing(durable=False) as tx:
            for ticket in tickets:
                try:
                    ticket.result = ticket.work(tx)
                except UnderstudyError as refusal:
                    ticket.error = refusal

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """A transaction that sees one moment and writes nothing."""
        with self._connection() as tx:
            tx.execute("BEGIN")
            try:
                yield tx
            finally:
                with suppress(sqlite3.Error):
                    tx.execute("ROLLBACK")

    def row(self, statement: str, values: Sequence[Any]) -> sqlite3.Row | None:
        """The first row of one SELECT statement, which is a transaction of its own."""
        with self._connection() as tx:
            return tx.execute(statement, values).fetchone()

    def later(self, statement: str, values: Sequence[Any]) -> None:
        """Have a statement written soon, together with others; lost if the process is killed just then.

        It must be one that cannot fail for what it says, such as an INSERT OR IGNORE.
        """
        for value in values:
            if isinstance(value, str):
                check_text(value)
        if os.getpid() != self._process:  # a forked child has none of its parent's threads, and not its work
            self._process, self._flusher = os.getpid(), None
            self._waiting.clear()
        self._waiting.append((statement, values))
        if self._flusher is None:
            with self._pool:
                if self._flusher is None:
                    self._flusher = threading.Thread(target=self._flush_on, name="server.db", daemon=True)
                    self._flusher.start()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        """Write now what `later` was given."""
        if not self._waiting:
            return
        with self._writer:
            taken = list(self._waiting)
            if not taken:
                return
            with self.writing(durable=False) as tx:
                for statement, values in taken:
                    tx.execute(statement, values)
            for _ in range(min(len(taken), len(self._waiting))):
                self._waiting.popleft()

    def _flush_on(self) -> None:
        process = os.getpid()
        while not self._closed and os.getpid() == process:
            self._wake.wait()
            self._wake.clear()
            time.sleep(0 if self._closed else LINGER)
            with suppress(StoreError):  # a full disk: kept, and written with the next ones
                if not self._closed:
                    self.flush()

    # ---- facts of the store itself

    def secret(self, name: str) -> bytes:
        """32 random bytes that belong to this store under a name, for keyed hashes; drawn when first asked for."""
        with self.reading() as tx:
            known = _fact(tx, f"secret {name}")
        if known is None:
            with self.writing() as tx:
                tx.execute(
                    "INSERT OR IGNORE INTO fact VALUES (?, ?)", (f"secret {name}", secrets.token_hex(32))
                )
                known = _fact(tx, f"secret {name}")
        return bytes.fromhex(known or "")

    def copy_to(self, path: Path) -> None:
        """A copy of the file as it is at one moment, by SQLite's own backup, while others write."""
        self.flush()
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with self._connection() as source, closing(sqlite3.connect(path, isolation_level=None)) as target:
            source.backup(target)

    # ---- connections

    @contextmanager
    def _connection(self) -> Generator[StoreConnection, None, None]:
        with self._gate.inside(), clear_errors():
            self._check_same()
            with self._pool:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = connected(self.path)
            try:
                yield connection
            except sqlite3.Error:  # its file may be damaged or gone: it is not used again
                connection.close()
                raise
            except BaseException:
                self._give_back(connection)
                raise
            self._give_back(connection)

    def _give_back(self, connection: StoreConnection) -> None:
        with self._pool:
            if not self._closed and len(self._idle) < 16:
                self._idle.append(connection)
                return
        connection.close()

    def _let_go(self) -> None:
        with self._pool:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _found(self, *, new: bool) -> tuple[int, int]:
        if new:
            with suppress(FileExistsError):
                try:
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                except FileExistsError:
                    raise
                except OSError as error:
                    raise StoreError(
                        f"the server's state {self.path} cannot be made ({error.strerror})",
                        remedy="Its folder must exist and be writable",
                    ) from None
        found = self._identity()
        if found is None:
            raise StoreError(
                f"there is no {self.path}",
                remedy="`understudy serve` makes it, and `understudy token new` does; name the server.yml with "
                "--server if it is in another folder",
            )
        with suppress(OSError):
            if os.stat(self.path).st_mode & 0o077:
                os.chmod(self.path, 0o600)
        return found

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_same(self) -> None:
        """Refuse to go on with a file that its path no longer leads to: nobody would read it again."""
        found = self._identity()
        if found == self._file:
            return
        what = "is gone" if found is None else "was replaced by another file while this program used it"
        raise StoreError(
            f"the server's state {self.path} {what}",
            remedy="Put it back, or restart the server with the newest",
        )


_NOTE = (
    "INSERT INTO fact VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value "
    "WHERE CAST(excluded.value AS REAL) > CAST(value AS REAL)"
)


def as_text(seconds: float) -> str:
    """A time as it is shown and logged: ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fact(tx: sqlite3.Connection, name: str) -> str | None:
    row = tx.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])
