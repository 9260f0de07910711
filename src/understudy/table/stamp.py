"""What a file looks like from outside: enough to notice that its bytes may have changed, and nothing of the bytes.

The kernel sets a file's change time (ctime) at every write, truncation, rename and change of attributes, and no
program can set it: so a rewrite in place that keeps size and modification time (`os.utime`) is noticed as well.
File systems write times down in steps. A file that was written within the last step could be written again
without a new time, so `settled_stamps` waits until the newest time is a step old: any later write then shows.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STEP_NS = 20_000_000
"""Nanoseconds between two times that a local file system tells apart, at most: two ticks of a slow clock."""

COARSE_STEP_NS = 2_000_000_000
"""The same for file systems that write whole seconds down (or, as FAT does, every second one)."""

LOG_ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Files beside a DuckDB file that hold what was committed and not yet moved into it."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file's identity, size and times; all but the path are None where no such file is there."""

    path: str
    device: int | None = None
    inode: int | None = None
    size: int | None = None
    modified_ns: int | None = None
    changed_ns: int | None = None


Stamps = tuple[FileStamp, ...]
"""The stamps of every file that a table is read from, the table's own file first."""


def is_database(path: Path) -> bool:
    """Whether a file is a database of DuckDB, by its ending: logs beside it are read together with it."""
    return path.suffix.lower() in (".duckdb", ".db")


def stamps_of(path: Path) -> Stamps:
    """The stamps of a file, which must be there, and of the logs beside a database.

    Raises OSError where the file itself cannot be found; a log that is absent is stamped as absent.
    """
    logs = LOG_ENDINGS if is_database(path) else ()
    return (_stamp(path), *(_stamp_if_there(Path(f"{path}{ending}")) for ending in logs))


def settled_stamps(path: Path) -> Stamps:
    """`stamps_of`, taken when the newest of their times is so old that any later write gets another one."""
    while True:
        stamps = stamps_of(path)
        wait = max(_until_settled(stamp) for stamp in stamps)
        if wait <= 0:
            return stamps
        time.sleep(wait / 1e9)


def _until_settled(stamp: FileStamp) -> int:
    """Nanoseconds until a write would get a later time; 0 for a time in the future, where waiting is no help."""
    if stamp.changed_ns is None:
        return 0
    step = COARSE_STEP_NS if stamp.changed_ns % 1_000_000_000 == 0 else STEP_NS
    age = time.time_ns() - stamp.changed_ns
    return step - age if 0 <= age < step else 0


def _stamp(path: Path) -> FileStamp:
    status = os.stat(path)
    return FileStamp(
        str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def _stamp_if_there(path: Path) -> FileStamp:
    try:
        return _stamp(path)
    except FileNotFoundError:
        return FileStamp(str(path))
