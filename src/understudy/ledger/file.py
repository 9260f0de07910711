"""The file of a SQLite ledger: it has one name, nobody else may read it, and it stays the file that was opened.

SQLite locks a database by its inode, but keeps what was committed last in a write-ahead log whose name is made of
the database's path: `NAME-wal`, with its index `NAME-shm`. A file with two names (a hard link, or a bind mount of
the file alone) therefore has two logs, and a program that uses one name does not see what a program that uses the
other has committed: each can spend the whole budget. Such a file is refused, under either name. A folder with two
names is no trouble: the log is in it.

A connection keeps its file when the path is given to another one. What it commits then is in no ledger that is
opened later, and what the new file grants it does not see. So device and inode of the path are compared with those
of the file that was opened, inside every transaction. While a connection is open its inode is not used again.

The file is never opened here once it exists: to close any handle of a file gives up all POSIX locks of the process
on it, those of SQLite's connections included. `stat` is enough.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from understudy.errors import LedgerError

PRIVATE = 0o600
"""The mode of a new ledger. SQLite gives the same one to the log and to its index."""

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")

FileIdentity = tuple[int, int]
"""The device and the inode of a file."""


def make(path: Path) -> None:
    """Make an empty file for a ledger that only its owner may read and write, unless there is one.

    Raises a LedgerError where the folder is missing or may not be written.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        return
    except OSError as error:
        raise LedgerError(
            f"the ledger cannot be opened ({path}: {error.strerror})",
            remedy="Its folder must exist and be writable",
        ) from None


def is_there(file: Path) -> bool:
    """Whether there is a ledger's file that holds anything: an empty one is as good as none.

    What cannot be looked at, is no file, or has lost its half, is not called absent, but refused with a
    LedgerError.
    """
    if _size(file):
        return True
    log = file.with_name(file.name + "-wal")
    if not log.exists() or not log.stat().st_size:
        return False
    if _size(file):  # another program began it meanwhile, and then its log
        return True
    raise LedgerError(
        f"half of the ledger is missing: {log.name} is there, and {file.name} is "
        f"{'empty' if file.exists() else 'not'}",
        remedy="Put the file back, and do not remove the other. If it is lost, declare what was spent as "
        f"`opening: {{epsilon: …}}`, move {log.name} away, and `understudy ledger new` begins another. "
        "Nothing was spent now",
    )


def _size(file: Path) -> int:
    """The bytes of a file; 0 where there is none."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise _hidden(file, error) from error
    _check_regular(file, found)
    return found.st_size


def identity(path: Path | str) -> FileIdentity:
    """Device and inode of the ledger's file, which must have one name; a LedgerError if it has none or several."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise _gone(path) from None
    except OSError as error:
        raise _hidden(path, error) from None
    _check_regular(path, found)
    if found.st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has {found.st_nlink} names (hard links): programs that use different ones do not "
            f"see each other's debits",
            remedy="Remove all names but one, with every program closed; nothing was spent",
        )
    return found.st_dev, found.st_ino


def check_not_mounted(path: Path) -> None:
    """Refuse a file that is a mount point itself: it has another name where it was mounted from."""
    if is_mount_point(path):
        raise LedgerError(
            f"the ledger {path} is a mount point: under its other name it has another log, and programs that use "
            f"different names do not see each other's debits",
            remedy="Mount the folder that holds the ledger, not the file alone; nothing was spent",
        )


def check_same(path: Path | str, *opened: FileIdentity) -> None:
    """Refuse to go on when the path no longer leads to the file that was opened, each time that it was."""
    found = identity(path)
    if any(found != one for one in opened):
        raise LedgerError(
            f"the ledger {path} was replaced by another file while this program used it",
            remedy="Put back the one that was there, or start again with the newest; nothing was granted",
        )


def is_mount_point(path: Path) -> bool:
    """Whether a file is mounted on itself. On Linux the kernel's list tells, also of mounts within one device."""
    try:
        lines = _MOUNTS.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return os.path.ismount(path)
    wanted = os.path.realpath(path)
    listed = [line.split(" ")[4] for line in lines if line.count(" ") > 4]
    # Spaces, tabs, line feeds and backslashes of a path are octal there.
    return wanted in (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), place) for place in listed)


def _check_regular(path: Path | str, found: os.stat_result) -> None:
    """Refuse what is no file, such as a folder, whose links are not names of it."""
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(
            f"the ledger {path} is {'a folder' if stat.S_ISDIR(found.st_mode) else 'no file'}",
            remedy="A ledger is one file: move this away, or declare another `ledger:`. Nothing was spent",
        )


def _hidden(path: Path | str, error: OSError) -> LedgerError:
    return LedgerError(
        f"the ledger {path} cannot be looked at: {error.strerror}", remedy="Ask whoever keeps it"
    )


def _gone(path: Path | str) -> LedgerError:
    return LedgerError(
        f"the ledger {path} was removed or renamed while this program used it",
        remedy="Put it back under its name; nothing was granted",
    )
