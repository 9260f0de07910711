"""The write-ahead log of a SQLite file: how it is switched to where other programs open the file as well."""

from __future__ import annotations

import sqlite3
import time


def switched_to_wal(connection: sqlite3.Connection, timeout: float) -> str:
    """Have a file keep a write-ahead log: the journal mode that it has then, which a file system may refuse.

    The first switch needs the file alone, and does not wait for others by itself: here it does, for so many
    seconds, after which SQLite's own error is raised.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return mode
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
        time.sleep(0.01)
