"""How doors have work done: each request is counted, and waits for its turn among those of other analysts.

Two queues have threads of their own, so that what costs nothing never waits for a look at a table. Within each,
analysts take turns (`queue`). A server that stops refuses new work and finishes what is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from understudy.server.answering import plainly
from understudy.server.config import ServerConfig
from understudy.server.pace import RateLimiter
from understudy.server.problems import Problem
from understudy.server.queue import FairQueue, stopping
from understudy.server.served_tables import OpenTable, ServedTable, ServedTables
from understudy.server.tokens import Caller

LOOK_THREADS = 28  # most of them wait for a disk: debits that come together share a transaction
FREE_THREADS = 4

Given = TypeVar("Given")

_ADMITTED: ContextVar[bool] = ContextVar("admitted", default=False)
"""Whether the request that is being answered was counted already."""


class Turns:
    """The rates, the queues and the tables of one server. Its coroutines belong to one event loop.

    `free` is the queue of what costs nothing, and `looks` that of what may look at a table and takes long.
    """

    def __init__(self, config: ServerConfig, served: ServedTables) -> None:
        self.config = config
        self.served = served
        rates = config.rates
        self.rates = RateLimiter(rates.requests)
        limits = {"at_once": rates.at_once, "waiting": rates.waiting}
        self.looks = FairQueue("look", threads=LOOK_THREADS, **limits)
        self.free = FairQueue("free", threads=FREE_THREADS, **limits)
        self._is_stopping = False

    def admit(self, caller: Caller) -> None:
        """Count a request against the caller's rate, and refuse it while the server stops."""
        if self._is_stopping:
            raise stopping()
        if not _ADMITTED.get():
            self.rates.admit(caller.analyst)

    @contextmanager
    def one_request(self, caller: Caller) -> Iterator[None]:
        """Count all that a door does inside as one request: a page reads several things to show one."""
        self.admit(caller)
        before = _ADMITTED.set(True)  # its only parameter
        try:
            yield
        finally:
            _ADMITTED.reset(before)

    async def on_free(self, caller: Caller, work: Callable[[], Given], *, alone: str = "") -> Given:
        """Have work done that costs nothing, in turn with other analysts'; errors come as `Problem`s."""
        self.admit(caller)
        return await self.free.run(plainly(work), analyst=caller.analyst, alone=alone)

    async def on_looks(self, caller: Caller, work: Callable[[], Given], *, alone: str) -> Given:
        """Have work done that takes long, in turn with other analysts'; the caller was admitted before."""
        return await self.looks.run(plainly(work), analyst=caller.analyst, alone=alone)

    async def read(
        self, caller: Caller, table: str, read: Callable[[OpenTable], Given], *, alone: str = ""
    ) -> Given:
        """Have something read of an open table, for nothing."""
        found = self.table(table)

        def told() -> Given:
            with found.use() as opened:
                return read(opened)

        return await self.on_free(caller, told, alone=alone)

    def table(self, name: str) -> ServedTable:
        """A table by its name; a `Problem` 404 where there is none."""
        found = self.served.tables.get(name)
        if found is None:
            names = sorted(self.served.tables)
            raise Problem(
                404,
                "no-table",
                "There is no such table here.",
                hint=f"Tables are: {', '.join(names[:20])}.",
                suggestions=names[:20],
            )
        return found

    async def close(self, seconds: float) -> bool:
        """Refuse new work and finish what is under way; returns whether all of it ended within `seconds`."""
        self._is_stopping = True
        ended = await self.looks.close(seconds)
        return await self.free.close(2.0) and ended
