"""A fair queue: work of many analysts on a few threads, one analyst after the other.

Each analyst has a line of their own. Whoever has work waiting gets the next free thread in turn, so that a
hundred questions of one analyst delay another's by one of them and not by a hundred. At most `at_once` pieces of
an analyst run together and at most `waiting` wait; the next is refused with a 429. Pieces that name the same
resource (`alone`, such as a session, whose purchases follow one another anyway) run one at a time, so that no
thread is held by one that only waits.

Looks at tables have a queue of their own, and what is free another, with other threads: an answer for nothing
never stands behind a look. The queue is used from the thread of its event loop only; the work runs on its
threads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from understudy.server.problems import Problem

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    work: Callable[[], Any]
    analyst: str
    alone: str
    done: asyncio.Future[Any]


class FairQueue:
    """Work by turns: `threads` of it at a time, `at_once` of one analyst, and `waiting` more of theirs in line."""

    def __init__(self, name: str, *, threads: int, at_once: int, waiting: int) -> None:
        self._threads = threads
        self._at_once = at_once
        self._waiting = waiting
        self._lines: OrderedDict[str, deque[_Piece]] = OrderedDict()
        self._of: dict[str, int] = {}
        self._busy: set[str] = set()
        self._active = 0
        self._is_closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    @property
    def active(self) -> int:
        """How many pieces of work run now."""
        return self._active

    @property
    def length(self) -> int:
        """How many pieces of work wait now."""
        return sum(map(len, self._lines.values()))

    async def run(self, work: Callable[[], Given], *, analyst: str, alone: str = "") -> Given:
        """Have `work` done on a thread when it is the analyst's turn; returns, or raises, what it does.

        Raises the `Problem` 429 where too much of the analyst's work waits, and 503 where the server is stopping.
        """
        if self._is_closed:
            raise stopping()
        line = self._lines.get(analyst)
        if line is None:
            line = self._lines[analyst] = deque()
        elif len(line) >= self._waiting:
            raise Problem(
                429,
                "queue",
                f"{self._waiting} requests of analyst {analyst} are waiting already.",
                hint="Wait for their answers before asking on.",
                retry_after=1.0,
            )
        piece = _Piece(work, analyst, alone, asyncio.get_running_loop().create_future())
        line.append(piece)
        self._start()
        return await piece.done

    def _start(self) -> None:
        """Start what may run, one piece of each analyst in turn."""
        while self._active < self._threads:
            piece = self._next()
            if piece is None:
                return
            self._active += 1
            self._of[piece.analyst] = self._of.get(piece.analyst, 0) + 1
            if piece.alone:
                self._busy.add(piece.alone)
            self._lines.move_to_end(piece.analyst)
            if not self._lines[piece.analyst]:
                del self._lines[piece.analyst]
            future = self._pool.submit(piece.work)
            future.add_done_callback(partial(self._ended, asyncio.get_running_loop(), piece))

    def _next(self) -> _Piece | None:
        for analyst, line in self._lines.items():
            if self._of.get(analyst, 0) >= self._at_once:
                continue
            for place, piece in enumerate(line):
                if piece.alone not in self._busy:  # nothing is ever busy under the empty name
                    del line[place]
                    return piece
        return None

    def _ended(self, loop: asyncio.AbstractEventLoop, piece: _Piece, done: Future[Any]) -> None:
        """Called on the thread that did the work."""
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(self._finish, piece, done)

    def _finish(self, piece: _Piece, done: Future[Any]) -> None:
        self._active -= 1
        self._busy.discard(piece.alone)
        left = self._of[piece.analyst] - 1
        if left:
            self._of[piece.analyst] = left
        else:
            del self._of[piece.analyst]
        if not piece.done.done():  # whoever waited may have been cancelled
            error = done.exception()
            if error is None:
                piece.done.set_result(done.result())
            else:
                piece.done.set_exception(error)
        self._start()

    async def close(self, seconds: float) -> bool:
        """Refuse what waits and all that comes, and let what runs end. Returns whether it did within `seconds`."""
        self._is_closed = True
        for line in self._lines.values():
            for piece in line:
                if not piece.done.done():
                    piece.done.set_exception(stopping())
        self._lines.clear()
        end = asyncio.get_running_loop().time() + seconds
        while self._active and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        self._pool.shutdown(wait=not self._active, cancel_futures=True)
        return not self._active


def stopping() -> Problem:
    """The refusal of a server that was told to stop."""
    return Problem(
        503,
        "stopping",
        "The server is stopping and takes no new work.",
        hint="Ask again under the same request id when it is back.",
        retry_after=5.0,
    )
