"""Workers of one test run compile a function once among them, and not each for itself.

numba keeps machine code beside the sources, and looks for it before it compiles. Workers that start together in a
fresh checkout look at the same time and all find nothing: each would compile every loop of the package, for ten
seconds and more. So a worker looks and compiles under a lock, and one that had to wait finds the code. Where
everything was compiled before, nobody waits.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any

from numba.core.dispatcher import Dispatcher


class SharedLock:
    """A lock that one process holds at a time, and that the thread which holds it may take again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = RLock()
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._threads:
            if self._depth:
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                return
            with open(self._path, "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._depth = 1
                try:
                    yield
                finally:
                    self._depth = 0


def compile_once(place: Path) -> None:
    """From now on this process compiles under the lock in that file, which all workers name alike."""
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = SharedLock(place)
    compiled = Dispatcher.compile

    @wraps(compiled)
    def alone(self: Any, sig: Any) -> Any:
        with lock.held():
            return compiled(self, sig)

    Dispatcher.compile = alone
