"""A lock for what answers one thread at a time, which a forked child does not wait for in vain.

A child inherits the state of every lock and none of the threads that would have let go of it. What another thread
was changing at the moment of the fork may be half changed in the child, for ever: so the child is told, in words,
and opens the thing anew. A session or a holdout goes on from its journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from weakref import WeakSet

from understudy.errors import RefusedError


class AskingLock:
    """One thread at a time, which may enter again. A child forked while another held it gets a RefusedError."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = RLock()
        self._turns = 0
        self._is_orphan = False
        _LOCKS.add(self)

    def __enter__(self) -> None:
        if self._is_orphan:
            raise RefusedError(
                f"this process was forked while another thread used the {self._what}, and "
                "cannot go on with it",
                remedy="open it again here, or start processes before threads, or by `spawn`. Nothing "
                "was spent",
            )
        self._lock.acquire()
        self._turns += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @contextmanager
    def if_free(self) -> Generator[bool]:
        """Enter where no other thread is inside, and wait for none: gives whether it was entered."""
        entered = not self._is_orphan and self._lock.acquire(blocking=False)
        if entered:  # who is not inside changes nothing here: an addition of its own could undo another's
            self._turns += 1
        try:
            yield entered
        finally:
            if entered:
                self._lock.release()

    def without(self, job: Callable[[], object]) -> bool:
        """Do a job outside, for whoever is inside: gives whether nobody entered meanwhile.

        Where this thread has entered several times, it stays inside.
        """
        before = self._turns
        self._lock.release()
        try:
            job()
        finally:
            self._lock.acquire()
        return self._turns == before

    def after_fork_in_child(self) -> None:
        """Find out whether a thread that does not live here holds the lock."""
        if self._lock.acquire(blocking=False):  # nobody did, or the thread that forked
            self._lock.release()
        else:
            self._is_orphan = True


_LOCKS: WeakSet[AskingLock] = WeakSet()


def _after_fork_in_child() -> None:
    for lock in list(_LOCKS):
        lock.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
