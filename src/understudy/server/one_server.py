"""One server at a time for a state folder, and for a ledger in a SQLite file.

The lock is on a file beside the one that is guarded, and goes with the process that holds it, however that ends.
Other programs, such as `understudy token` and `understudy ask`, do not take it: they may work beside a server.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from understudy.errors import StoreError

ENDING = ".serving"
"""Of the file beside a guarded one."""


@contextmanager
def only_server(state: Path, ledgers: Iterable[Path] = ()) -> Generator[None, None, None]:
    """Be the only server of a `server.db` and of these SQLite ledgers; a StoreError where there is another."""
    with ExitStack() as held:
        held.enter_context(
            _alone(
                state,
                "this state folder",
                "Stop that server first, or start this one with another server.yml",
            )
        )
        for ledger in sorted({path.resolve() for path in ledgers}):
            held.enter_context(
                _alone(
                    ledger,
                    f"the ledger {ledger}",
                    "Serve each table from one server, or keep its ledger on Postgres",
                )
            )
        yield


@contextmanager
def _alone(path: Path, what: str, remedy: str) -> Generator[None, None, None]:
    place = path.with_name(path.name + ENDING)
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"the lock {place} cannot be made ({error.strerror})",
            remedy="Its folder must exist and be writable",
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            by = os.read(handle, 20).decode("ascii", "replace").strip()
            whose = f"process {by}" if by.isdecimal() else "another process"
            raise StoreError(f"{whose} serves {what} already", remedy=remedy) from None
        with suppress(OSError):  # who holds it is a help for people, and a full disk no reason not to serve
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
