"""No SQLite connection may be open while a process forks.

SQLite knows in the process's memory which locks it holds on a file; a forked child inherits that knowledge but
not the locks, and any connection that it then opens to the same file trusts them. Its parent, closing what looks
like the last connection, would remove the log that the child writes to, and acknowledged debits with it. So a fork
waits for the transactions under way, and all connections are closed before it happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Condition
from weakref import WeakSet


class ForkGate:
    """Lets users of a resource in, except while the process forks; `let_go` then gives the resource up."""

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go
        self._reset()
        _GATES.add(self)

    def _reset(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def inside(self) -> Generator[None, None, None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside == 0)
        self._let_go()

    def reopen(self, *, in_child: bool) -> None:
        if in_child:  # the threads that may have held the lock do not live here
            self._reset()
            return
        with self._changed:
            self._shut = False
            self._changed.notify_all()


_GATES: WeakSet[ForkGate] = WeakSet()


def _shut_all() -> None:
    for gate in list(_GATES):
        gate.shut()


def _reopen_all(*, in_child: bool) -> None:
    for gate in list(_GATES):
        gate.reopen(in_child=in_child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_shut_all,
        after_in_parent=lambda: _reopen_all(in_child=False),
        after_in_child=lambda: _reopen_all(in_child=True),
    )
