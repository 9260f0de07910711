"""A question around private SELECTs: what is counted for it, and what a desk makes of the released rows.

The inner SELECTs are answered like any other, from one source of counts and at one price for all. What stands
around them is run by `understudy.desk`, in a process that never opened the table. Its columns are described there,
without rows, before anything is paid: a mistake in it is found at no cost.
"""

from __future__ import annotations

import atexit
import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any

from understudy.answer.answer import noise_together
from understudy.answer.around_answer import AroundAnswer
from understudy.answer.counts import CellCounts, SourceCounts
from understudy.answer.select_question import SelectQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.answer.statement_question import StatementQuestion
from understudy.errors import StatementError, TooLargeError
from understudy.query.column import Column, ColumnType

if TYPE_CHECKING:
    from understudy.desk.desk import Desk
    from understudy.desk.rows import RowColumn, Rows
    from understudy.sql import CompiledAround

_TYPES: dict[ColumnType, str] = {
    "int": "int8", "float": "float8", "text": "text", "bool": "bool", "date": "date", "timestamp": "timestamp",
}  # fmt: skip
_KINDS: dict[str, ColumnType] = {
    "bool": "bool", "int2": "int", "int4": "int", "int8": "int", "float4": "float", "float8": "float",
    "numeric": "float", "date": "date", "timestamp": "timestamp",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class AroundQuestion(StatementQuestion):
    """What a statement around SELECTs over the table asks: the counts of these, and `outer` on their rows."""

    compiled: CompiledAround = field(repr=False)
    columns: tuple[Column, ...]

    @classmethod
    def read(cls, text: str, compiled: CompiledAround) -> AroundQuestion:
        """The question, with the columns that a desk finds in its outer statement. Reads no data.

        Raises a `QueryError` where the outer statement cannot be run, or an inner one has too many rows for it.
        """
        most = shared_desk().limits.rows
        for _, part in _named(compiled):
            if (groups := part.most_rows) > most:
                raise TooLargeError(
                    "a SELECT inside another one",
                    cells=groups,
                    limit=most,
                    why="are handed on",
                    remedy="Ask for it alone, or for fewer groups",
                )
        empty = {name: _released(part.columns, ()) for name, part in _named(compiled)}
        found = shared_desk().describe(compiled.outer, empty)
        return cls(text, compiled, _columns(found))

    def answer(self, counts: SourceCounts) -> AroundAnswer:
        """The inner answers, and what the outer statement makes of their rows."""
        inner = self._inner(counts)
        tables = {
            name: _released(part.columns, answer.rows)
            for (name, part), answer in zip(_named(self.compiled), inner, strict=True)
        }
        rows: tuple[tuple[Any, ...], ...] = ()
        problem = reason = ""
        try:
            made = shared_desk().run(self.compiled.outer, tables)
            rows = tuple(
                tuple(_value(column.type, cell) for column, cell in zip(self.columns, row, strict=True))
                for row in made.rows
            )
        except StatementError as error:
            problem = f"No rows were made of what was released: {error.problem}. {error.remedy}."
            reason = error.reason
        return AroundAnswer(
            text=self.text,
            columns=self.columns,
            cells=rows,
            cost=counts.cost,
            beta=counts.beta,
            sources=tuple(cells.answer.source for cells in counts.cells),
            noise=noise_together(cells.answer.noise for cells in counts.cells),
            inner=inner,
            outer=self.compiled.outer,
            problem=problem,
            reason=reason,
        )

    def _inner(self, counts: SourceCounts) -> tuple[SqlAnswer, ...]:
        """The inner answers; a count that several of them need is paid for by the first."""
        paid: set[int] = set()
        answers: list[SqlAnswer] = []
        for part, places in zip(self.compiled.inner, self.compiled.places, strict=True):
            cells: list[CellCounts] = []
            for place in places:
                own = counts.cells[place]
                if place in paid:
                    own = replace(own, answer=replace(own.answer, cost=counts.nothing))
                paid.add(place)
                cells.append(own)
            answers.append(SelectQuestion(part.text, part).answer(replace(counts, cells=tuple(cells))))
        return tuple(answers)


def _named(compiled: CompiledAround) -> list[tuple[str, Any]]:
    from understudy.sql.around import RELEASED

    return [(f"{RELEASED}{i}", part) for i, part in enumerate(compiled.inner)]


def _released(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Rows:
    from understudy.desk.rows import Rows

    return Rows.of(
        [(column.name, _TYPES[column.type]) for column in columns], [_typed(columns, r) for r in rows]
    )


def _typed(columns: Sequence[Column], row: Sequence[Any]) -> list[Any]:
    """A row as its columns are typed: a number beside labels is a text."""
    return [
        str(cell) if column.type == "text" and cell is not None else cell
        for column, cell in zip(columns, row, strict=True)
    ]


def _columns(found: Sequence[RowColumn]) -> tuple[Column, ...]:
    taken: set[str] = set()
    columns: list[Column] = []
    for column in found:
        name, number = column.name, 1
        while name.lower() in taken:
            name, number = f"{column.name}_{number}", number + 1
        taken.add(name.lower())
        columns.append(Column(name, "derived", _KINDS.get(column.type.name, "text")))
    return tuple(columns)


def _value(kind: ColumnType, cell: Any) -> Any:
    """A value of a result as its column is typed; what is not a finite number is missing."""
    if cell is None:
        return None
    if kind == "float":
        number = float(cell)
        return number if isfinite(number) else None
    if kind == "text" and not isinstance(cell, str):
        return cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell)
    return int(cell) if isinstance(cell, Decimal) else cell


_lock = Lock()
_desk: Desk | None = None


def shared_desk() -> Desk:
    """The desk of this process, started when it is first needed and closed at the end."""
    global _desk
    with _lock:
        if _desk is None:
            from understudy.desk.desk import Desk

            _desk = Desk()
        return _desk


def _close() -> None:
    global _desk
    with _lock:
        desk, _desk = _desk, None
    if desk is not None:
        desk.close()


def _forget() -> None:
    """Have none, and a lock that nobody holds: after a fork the pipes and the locks are the parent's."""
    global _lock, _desk
    _lock, _desk = Lock(), None


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
