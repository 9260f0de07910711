"""A lock that no process forks while it is held.

A forked child inherits the state of a lock and of an engine, and none of the threads that would have gone on: a
look that was under way would hold its lock in the child for ever, and leave the engine in the middle of a
statement. So a fork waits for the looks under way. Between two looks an engine is at rest, and the child may go on
using it.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()
_held: list[list[Any]] = []


def look_lock() -> Any:
    """A lock for one thread at a time, which may enter again; a fork of the process waits until it is free."""
    lock = RLock()
    _LOCKS.add(lock)
    return lock


def _before_fork() -> None:
    locks = list(_LOCKS)
    for lock in locks:
        lock.acquire()
    _held.append(locks)


def _after_fork() -> None:
    for lock in _held.pop():
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
