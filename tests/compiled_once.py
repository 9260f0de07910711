"""Machine code that several workers need is compiled by one of them, and read from numba's cache by the others.

In a fresh clone nothing is compiled yet, and the workers of a test run come to the same loops within seconds of
each other: each would compile all of them, some forty seconds of a core. Here a worker that wants a function
waits while another compiles it, and then finds it in the cache. What is compiled, and how, is the same.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Turns:
    """Locks in a folder, one for each function, that processes take in turn; one that dies lets others in."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._ours: set[str] = set()

    @contextmanager
    def of(self, function: Callable[..., Any]) -> Iterator[None]:
        """While no other process is here for the same function; whoever has the turn may take it again."""
        code = function.__code__
        name = hashlib.sha256(f"{code.co_filename}:{code.co_firstlineno}".encode()).hexdigest()[:16]
        if name in self._ours:
            yield
            return
        with (self._folder / name).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._ours.add(name)
            try:
                yield
            finally:
                self._ours.discard(name)
                fcntl.flock(file, fcntl.LOCK_UN)  # a fork may still have the file open


@contextmanager
def compiling_in_turn(folder: Path) -> Iterator[None]:
    """What numba compiles meanwhile in this process, no other process with this folder compiles with it."""
    from numba.core.caching import NullCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    turns, compile_here = Turns(folder), Dispatcher.compile

    def compile_once(self: Any, signature: Any) -> Any:
        if isinstance(self._cache, NullCache):  # nobody could read it from there
            return compile_here(self, signature)
        # Threads first take the lock of their own process, so that none waits with the other one in its hand; and
        # a function's turn comes before the turns of those it calls, in every process.
        with global_compiler_lock, turns.of(self.py_func):
            return compile_here(self, signature)

    Dispatcher.compile = compile_once
    try:
        yield
    finally:
        Dispatcher.compile = compile_here


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Among the workers of one run, which share the folder above their own; where there are none, nobody waits."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    with compiling_in_turn(tmp_path_factory.getbasetemp().parent / "compiling"):
        yield
