"""What a statement will do, known before it is executed: its columns, its parameters' types, and its work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from understudy.query.column import Column
from understudy.server.pg import wire
from understudy.server.pg.commands import CopyOptions
from understudy.server.pg.frames import formats_of
from understudy.server.pg.parameters import Template
from understudy.server.pg.values import BOOL, DATE, FLOAT8, INT8, SIZES, TEXT, TIMESTAMP
from understudy.server.pg.wire import ResultColumn

Row = Sequence[Any]
Values = tuple[Any, ...]

OF_TYPE = {"int": INT8, "float": FLOAT8, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP}
"""The types of Postgres in which the columns of answers are sent."""


def result_column(name: str, oid: int) -> ResultColumn:
    """A column with the size of its type."""
    return ResultColumn(name, oid, SIZES.get(oid, -1))


def answer_columns(
    columns: Sequence[Column], names: Sequence[str], *, bounds: bool
) -> tuple[ResultColumn, ...]:
    """The columns of an answer under these names; with `bounds`, a released x is followed by x_low and x_high."""
    found: list[ResultColumn] = []
    for column, name in zip(columns, names, strict=True):
        oid = OF_TYPE[column.type]
        found.append(result_column(name, oid))
        if bounds and column.kind == "value":
            found += (result_column(f"{name}_low", oid), result_column(f"{name}_high", oid))
    return tuple(found)


@dataclass(frozen=True, eq=False, slots=True)
class Select:
    """A SELECT that was read, and not asked: shared by all connections that write the same text.

    goes_to     `gate` for a question to the private table `table`, `catalog` or `synthetic` for public rows
    parameters  the types of its parameters
    asks        the columns of its answer as the library calls them; None where it is no question
    names       the same columns as the statement, or Postgres, calls them
    """

    goes_to: str
    table: str
    template: Template
    columns: tuple[ResultColumn, ...]
    parameters: tuple[int, ...]
    asks: tuple[Column, ...] | None = None
    names: tuple[str, ...] = ()
    text: str = ""

    def filled(self, values: Values) -> str:
        """The text of the statement with its values."""
        return self.template.filled(values) if self.parameters else self.text


@dataclass(frozen=True, eq=False, slots=True)
class StatementPlan:
    """A statement, ready to be executed on one connection.

    tag         the word of its completion, or what says it before it is executed; `counts` adds the number of rows
    run         does the work, with values for the parameters, and returns the rows
    columns     None where the statement returns no rows
    formats     of its rows where the client did not ask for any: those of a binary cursor
    ends        whether it may be executed in a transaction that failed: it ends it
    """

    tag: str | Callable[[], str]
    run: Callable[[Values], Awaitable[Sequence[Row]]]
    columns: tuple[ResultColumn, ...] | None = None
    parameters: tuple[int, ...] = ()
    counts: bool = False
    ends: bool = False
    copy: CopyOptions | None = None
    formats: tuple[int, ...] = ()

    @property
    def word(self) -> str:
        """The tag, as things stand before the statement is executed; empty for an empty statement."""
        return self.tag if isinstance(self.tag, str) else self.tag()


@lru_cache(maxsize=1024)
def described(columns: tuple[ResultColumn, ...] | None, formats: tuple[int, ...]) -> bytes:
    """The description of a result; formats as a client gave them."""
    if columns is None:
        return wire.NO_DATA
    return wire.row_description(columns, formats_of(formats, len(columns)))
