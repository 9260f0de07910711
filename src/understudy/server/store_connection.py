"""Connections to `server.db`, and what their failures mean to whoever runs the server (`sqlite_failures`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from understudy.errors import ParameterError, StoreError
from understudy.ledger.sqlite_failures import failure_name, is_damaged, known_failure
from understudy.ledger.wal import switched_to_wal

TIMEOUT = 10.0
"""Seconds to wait for other writers, such as a command at a terminal."""


class StoreConnection(sqlite3.Connection):
    """A connection that knows whether its commits are synced."""

    _synced: bool | None = None

    def sync(self, *, durable: bool) -> None:
        """Have the commits that follow survive a loss of power, or only the end of the process."""
        if self._synced is not durable:
            self.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._synced = durable


def connected(path: Path) -> StoreConnection:
    """A connection to the store's file, which must be there: in WAL mode, and for one thread at a time."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=TIMEOUT,
        isolation_level=None,  # transactions are begun and ended by the store's statements
        check_same_thread=False,  # the pool hands it from thread to thread, one at a time
        cached_statements=64,
        factory=StoreConnection,
    )
    try:
        switched_to_wal(connection, TIMEOUT)
        for setting in ("trusted_schema=OFF", "secure_delete=ON", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def clear_errors() -> Generator[None, None, None]:
    """What SQLite says, as a StoreError. Its own words may hold what was to be stored: dropped.

    A text that cannot be written down is refused as `check_text` refuses it.
    """
    try:
        yield
    except UnicodeEncodeError:
        raise _half_a_character() from None
    except sqlite3.Error as error:
        if is_damaged(error):
            raise StoreError(
                "server.db is damaged", remedy="Restore a backup (`understudy server restore`)"
            ) from None
        known = known_failure(error, what="the server's state", file="server.db")
        if known is not None:
            raise StoreError(known.problem, remedy=known.remedy) from None
        kind = f"{type(error).__name__} {failure_name(error)}".strip()
        raise StoreError(
            f"the server's state cannot be used ({kind})",
            remedy="Check server.db with `understudy serve --check`",
        ) from None


def check_text(text: str) -> None:
    """Refuse a text that cannot be written down, with a `ParameterError`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _half_a_character() from None


def _half_a_character() -> ParameterError:
    return ParameterError("a text has half a character in it (a lone surrogate): write whole characters")
