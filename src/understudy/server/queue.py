"""A fair queue: work of many analysts on a few threads, one analyst after the other.

Each analyst has a line of their own. Whoever has work waiting gets the next free thread in turn, so that a
hundred questions of one analyst delay another's by one of them and not by a hundred. At most `at_once` pieces of
an analyst run together and at most `waiting` wait; the next is refused with a 429. Pieces that name the same
resource (`alone`, such as a session, whose purchases follow one another anyway) run one at a time, so that no
thread is held by one that only waits. Pieces of one kind of work that is cheaper for many at once (`SharedWork`,
such as debits that share a transaction) are taken from the lines in the same turns, as many as wait, and done by
one thread: the interpreter runs one thread at a time, and every change between threads takes time.

Looks at tables have a queue of their own, and what is free another, with other threads: an answer for nothing
never stands behind a look. The queue is used from the thread of its event loop only; the work runs on its
threads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from understudy.server.problems import Problem

Given = TypeVar("Given")


MOST_TOGETHER = 32
"""Pieces of work that one thread does at once."""

Told = Iterable[list[tuple[int, Any]]]
"""Outcomes of some pieces in portions: the place of each among them, and what it returns, or raises."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedWork:
    """A kind of work that one thread does for many at once.

    `work` gets what is asked for, the items of at most `MOST_TOGETHER` pieces, and yields their outcomes in
    portions, each of which is told at once; an exception is raised where the piece is waited for. One thread does
    it at a time: what comes meanwhile is gathered for the next.
    """

    work: Callable[[list[Any]], Told]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    work: Callable[[], Any] | None
    analyst: str
    alone: str
    done: asyncio.Future[Any]
    together: SharedWork | None = None
    item: Any = None


class FairQueue:
    """Work by turns: `threads` of it at a time, `at_once` of one analyst, and `waiting` more of theirs in line."""

    def __init__(self, name: str, *, threads: int, at_once: int, waiting: int) -> None:
        self._threads = threads
        self._at_once = at_once
        self._waiting = waiting
        self._lines: OrderedDict[str, deque[_Piece]] = OrderedDict()
        self._of: dict[str, int] = {}
        self._busy: set[str] = set()
        self._doing: set[SharedWork] = set()
        self._active = 0
        self._is_closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    @property
    def active(self) -> int:
        """How many threads work now."""
        return self._active

    @property
    def length(self) -> int:
        """How many pieces of work wait now."""
        return sum(map(len, self._lines.values()))

    async def run(self, work: Callable[[], Given], *, analyst: str, alone: str = "") -> Given:
        """Have `work` done on a thread when it is the analyst's turn; returns, or raises, what it does.

        Raises the `Problem` 429 where too much of the analyst's work waits, and 503 where the server is stopping.
        """
        done: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        return await self._queued(_Piece(work, analyst, alone, done))

    async def run_together(self, together: SharedWork, item: Any, *, analyst: str) -> Any:
        """Have `together` done for an item, with others', when it is the analyst's turn; raises as `run` does."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        return await self._queued(_Piece(None, analyst, "", done, together, item))

    async def _queued(self, piece: _Piece) -> Any:
        if self._is_closed:
            raise stopping()
        line = self._lines.get(piece.analyst)
        if line is None:
            line = self._lines[piece.analyst] = deque()
        elif len(line) >= self._waiting:
            raise Problem(
                429,
                "queue",
                f"{self._waiting} requests of analyst {piece.analyst} are waiting already.",
                hint="Wait for their answers before asking on.",
                retry_after=1.0,
            )
        line.append(piece)
        if self._may_run(piece):  # else nothing can start that could not before
            self._start()
        return await piece.done

    def _start(self) -> None:
        """Start what may run, one piece of each analyst in turn."""
        while self._active < self._threads:
            piece = self._next(None)
            if piece is None:
                return
            self._active += 1
            loop = asyncio.get_running_loop()
            if piece.together is None:
                self._pool.submit(self._do, loop, piece)
                continue
            pieces = [piece]
            while len(pieces) < MOST_TOGETHER and (another := self._next(piece.together)) is not None:
                pieces.append(another)
            self._doing.add(piece.together)
            self._pool.submit(self._do_together, loop, piece.together, pieces)

    def _next(self, wanted: SharedWork | None) -> _Piece | None:
        """The piece whose turn it is, out of its line; of those that are done together, where `wanted` says so."""
        for analyst, line in self._lines.items():
            if self._of.get(analyst, 0) >= self._at_once:
                continue
            for place, piece in enumerate(line):
                if self._may_run(piece) if wanted is None else piece.together is wanted:
                    del line[place]
                    self._taken(piece)
                    return piece
        return None

    def _may_run(self, piece: _Piece) -> bool:
        if piece.together is not None:
            return piece.together not in self._doing
        return piece.alone not in self._busy  # nothing is ever busy under the empty name

    def _taken(self, piece: _Piece) -> None:
        self._of[piece.analyst] = self._of.get(piece.analyst, 0) + 1
        if piece.alone:
            self._busy.add(piece.alone)
        self._lines.move_to_end(piece.analyst)
        if not self._lines[piece.analyst]:
            del self._lines[piece.analyst]

    def _do(self, loop: asyncio.AbstractEventLoop, piece: _Piece) -> None:
        """Runs on a thread: do the work of a piece, and tell what it came to."""
        assert piece.work is not None
        try:
            outcome = piece.work()
        except BaseException as error:
            outcome = error
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(self._finish, [(piece, outcome)], None)

    def _do_together(
        self, loop: asyncio.AbstractEventLoop, together: SharedWork, pieces: list[_Piece]
    ) -> None:
        """Runs on a thread: do the work of some pieces, and tell each portion of outcomes as it comes."""
        left = dict(enumerate(pieces))
        failure: BaseException = RuntimeError("the work ended without an outcome for every piece")
        try:
            for portion in together.work([piece.item for piece in pieces]):
                told = [(left.pop(place), outcome) for place, outcome in portion]
                loop.call_soon_threadsafe(self._tell, told)
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._finish, [(piece, failure) for piece in left.values()], together)

    def _tell(self, told: list[tuple[_Piece, Any]]) -> None:
        for piece, outcome in told:
            self._busy.discard(piece.alone)
            left = self._of[piece.analyst] - 1
            if left:
                self._of[piece.analyst] = left
            else:
                del self._of[piece.analyst]
            if piece.done.done():  # whoever waited was cancelled
                continue
            if isinstance(outcome, BaseException):
                piece.done.set_exception(outcome)
            else:
                piece.done.set_result(outcome)

    def _finish(self, told: list[tuple[_Piece, Any]], together: SharedWork | None) -> None:
        """A thread is free again."""
        self._tell(told)
        self._active -= 1
        if together is not None:
            self._doing.remove(together)
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
