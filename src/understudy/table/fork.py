"""A lock that no process forks while it is held.

A forked child inherits the state of a lock and of an engine, and none of the threads that would have gone on: a
look that was under way would hold its lock in the child for ever, and leave the engine in the middle of a
statement. So a fork waits for the looks under way. Between two looks an engine is at rest, and the child may go on
using it.
"""

from __future__ import annotations

import os
from threading import RLock
from types import TracebackType
from weakref import WeakSet


class LookLock:
    """One thread at a time, which may enter again; a fork of the process waits until nobody else is inside."""

    def __init__(self) -> None:
        self._lock = RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


_LOCKS: WeakSet[LookLock] = WeakSet()
_held: list[list[LookLock]] = []


def _before_fork() -> None:
    locks = list(_LOCKS)
    for lock in locks:
        lock.__enter__()
    _held.append(locks)


def _after_fork() -> None:
    for lock in _held.pop():
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
