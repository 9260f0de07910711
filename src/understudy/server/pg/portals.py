"""Portals: a statement with its values, executed when its rows are first wanted, and a place among its rows.

Cursors that DECLARE makes are portals too, and can move back and forth: the rows of an answer are held, since they
were paid for once. A portal of the protocol goes forward only, and forgets its rows once all of them are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.server.pg.commands import Fetch
from understudy.server.pg.plans import Row, StatementPlan, Values

MOST_PORTALS = 100
"""Portals of one connection that may be open."""

MOST_HELD = 64_000_000
"""Bytes of rows, as `size_of` counts them, that the portals of a connection may hold when another is executed."""


def size_of(rows: Sequence[Row]) -> int:
    """About how many bytes rows take: 16 for each value, and the lengths of texts."""
    return sum(16 + (len(value) if isinstance(value, str | bytes) else 0) for row in rows for value in row)


class Portal:
    """A statement that is being executed; `hold` lets it outlive its transaction, `formats` are its result's.

    A portal that `scrolls` keeps its rows for going back. `check_room`, which a connection sets, refuses to
    execute it where the portals of the connection hold too many bytes already.
    """

    def __init__(
        self,
        plan: StatementPlan,
        values: Values,
        formats: tuple[int, ...] = (),
        *,
        hold: bool = False,
        scrolls: bool = False,
    ) -> None:
        self.plan = plan
        self.values = values
        self.formats = formats
        self.hold = hold
        self.scrolls = scrolls
        self._size: int | None = 0
        self.check_room: Callable[[], None] | None = None
        self._rows: Sequence[Row] | None = None
        self._place = 0  # rows up to the current one: 0 is before the first

    @property
    def was_run(self) -> bool:
        return self._rows is not None

    @property
    def size(self) -> int:
        """About how many bytes the rows take that are held; counted when it is first wanted."""
        if self._size is None:
            self._size = size_of(self._rows or ())
        return self._size

    async def rows(self) -> Sequence[Row]:
        """All rows; the statement is executed the first time."""
        if self._rows is None:
            if self.check_room is not None:
                self.check_room()
            self._rows = await self.plan.run(self.values)
            self._size = None
        return self._rows

    async def forward(self, most: int) -> tuple[Sequence[Row], bool]:
        """The next rows, all for `most` 0, and whether there are more after them."""
        rows = await self.rows()
        begin = self._place
        end = len(rows) if most <= 0 else min(begin + most, len(rows))
        self._place = max(end, begin)
        found, more = rows[begin:end], end < len(rows)
        if not more and not self.scrolls:
            self._rows, self._place, self._size = (), 0, 0
        return found, more

    async def fetched(self, fetch: Fetch) -> Sequence[Row]:
        """The rows that FETCH asks for, after which the cursor stands where FETCH leaves it."""
        rows = await self.rows()
        count = len(rows)
        if fetch.how in ("absolute", "relative"):
            wanted = fetch.count or 0
            if fetch.how == "relative":
                wanted += self._place
            elif wanted < 0:
                wanted += count + 1
            self._place = min(max(wanted, 0), count + 1)
            return rows[self._place - 1 : self._place] if 1 <= self._place <= count else ()
        if fetch.count == 0:
            return rows[self._place - 1 : self._place] if 1 <= self._place <= count else ()
        if fetch.how == "forward":
            begin = min(self._place, count)
            end = count + 1 if fetch.count is None else self._place + fetch.count
            self._place = min(end, count + 1)
            return rows[begin : min(end, count)]
        begin = 0 if fetch.count is None else max(self._place - fetch.count, 0)
        told = rows[max(begin - 1, 0) if begin else 0 : max(self._place - 1, 0)]
        self._place = begin
        return tuple(reversed(told))
