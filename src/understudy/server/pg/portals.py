"""Portals: a statement with its values, executed when its rows are first wanted, and a place among its rows.

Cursors that DECLARE makes are portals too, and can move back and forth: the rows of an answer are held, since they
were paid for once.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.server.pg.commands import Fetch
from understudy.server.pg.plans import Row, StatementPlan, Values

MOST_PORTALS = 100
"""Portals of one connection that may be open."""


class Portal:
    """A statement that is being executed; `hold` lets it outlive its transaction, `formats` are its result's."""

    def __init__(
        self, plan: StatementPlan, values: Values, formats: tuple[int, ...] = (), *, hold: bool = False
    ) -> None:
        self.plan = plan
        self.values = values
        self.formats = formats
        self.hold = hold
        self._rows: Sequence[Row] | None = None
        self._place = 0  # rows up to the current one: 0 is before the first

    @property
    def was_run(self) -> bool:
        return self._rows is not None

    async def rows(self) -> Sequence[Row]:
        """All rows; the statement is executed the first time."""
        if self._rows is None:
            self._rows = await self.plan.run(self.values)
        return self._rows

    async def forward(self, most: int) -> tuple[Sequence[Row], bool]:
        """The next rows, all for `most` 0, and whether there are more after them."""
        rows = await self.rows()
        begin = self._place
        end = len(rows) if most <= 0 else min(begin + most, len(rows))
        self._place = max(end, begin)
        return rows[begin:end], end < len(rows)

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
