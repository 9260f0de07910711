"""What an engine has to do: give a look at one state of a table, and columns of whole numbers from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.table.cover import CACHED_CELLS

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.table.dialect import Dialect, Expression

BATCH_ROWS = 1 << 17

Columns = dict[str, NDArray[Any]]
"""Columns of a batch of rows by name; none of them has a missing value."""


class View(Protocol):
    """One look's view of the table."""

    def rows(self, expression: Expression) -> Iterator[Columns]:
        """The rows of an expression whose columns are all integers, batch by batch, in bounded memory."""
        ...

    def groups(self, expression: Expression) -> Iterator[Columns]:
        """The same for the result of a GROUP BY, which has as many rows as it has groups."""
        ...


@dataclass(frozen=True, slots=True)
class Habits:
    """What is cheap on a kind of engine: public constants, by which it is decided where to count."""

    group_cells: int = CACHED_CELLS
    """Cells of a table that the engine groups by at once."""
    few_groups: int = 1
    """Up to so many GROUP BYs are cheaper than sending every row's codes."""
    narrow: bool = True
    """The engine has unsigned types, and hands over its own memory: codes need not be packed."""


class Engine(Protocol):
    """A kind of engine, opened on one table."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def habits(self) -> Habits: ...

    @property
    def remote(self) -> bool:
        """The table is elsewhere: its rows are not kept here, and may be counted there."""
        ...

    def check_unchanged(self) -> None:
        """Refuse to go on where the table is not the one that was opened. Reads no row."""
        ...

    def prepare(self, expression: Expression) -> None:
        """Have the engine plan a statement: what it cannot do is found before any charge. Reads no row."""
        ...

    def look(self) -> AbstractContextManager[View]:
        """A view of the table as it is now; where the engine can, the same for all that is read from it."""
        ...

    def close(self, expression: Expression) -> None:
        """Let go of the connection that the table's expression is read through, where one is kept."""
        ...


def as_numpy(column: pa.Array) -> NDArray[Any]:
    """The values of an Arrow column. Whole numbers without nulls are shared, and pandas is not loaded for them."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return np.from_dlpack(column)
    return column.to_numpy(zero_copy_only=False)


_steps_lock = Lock()
_steps_wanted = 0
_fused_before = True


@contextmanager
def step_by_step() -> Iterator[None]:
    """Let Ibis write a subquery for each step of an expression.

    Else it would write the expression of a column at every place where the column is used, however large it is. It
    is Ibis's setting for all threads: as long as one of them wants it, all have it.
    """
    global _steps_wanted, _fused_before
    import ibis

    with _steps_lock:
        if not _steps_wanted:
            _fused_before = ibis.options.sql.fuse_selects
            ibis.options.sql.fuse_selects = False
        _steps_wanted += 1
    try:
        yield
    finally:
        with _steps_lock:
            _steps_wanted -= 1
            if not _steps_wanted:
                ibis.options.sql.fuse_selects = _fused_before


class IbisView:
    """Batches as Ibis gives them."""

    def rows(self, expression: Expression) -> Iterator[Columns]:
        with step_by_step():
            batches = expression.to_pyarrow_batches(chunk_size=BATCH_ROWS)
        for batch in batches:
            yield {name: as_numpy(batch.column(i)) for i, name in enumerate(batch.schema.names)}

    def groups(self, expression: Expression) -> Iterator[Columns]:
        return self.rows(expression)


class EmbeddedView(IbisView):
    """Batches of DuckDB, of which a statement can be asked as it is written."""

    def written(self, expression: Expression) -> str:
        """The statement whose rows are those of an expression."""
        with step_by_step():
            return expression.get_backend().compile(expression)

    def rows_of(self, table: Expression, statement: str) -> Iterator[Columns]:
        """The rows of a statement about a table, as `rows` gives those of its expression."""
        engine = table.op().source.con
        for batch in engine.execute(statement).fetch_record_batch(BATCH_ROWS):
            yield {name: as_numpy(batch.column(i)) for i, name in enumerate(batch.schema.names)}


@dataclass(frozen=True)
class Embedded:
    """DuckDB in this process, over a file or a frame."""

    habits: Habits = Habits()
    remote: bool = False

    @property
    def dialect(self) -> Dialect:
        """DuckDB's words, for which Ibis is loaded: not before they are needed."""
        from understudy.table.duckdb_dialect import DUCKDB

        return DUCKDB

    def check_unchanged(self) -> None:
        """Files have stamps (`Source`), frames are copies: nothing is left to check."""

    def prepare(self, expression: Expression) -> None:
        """Ibis has typed the expression already."""

    @contextmanager
    def look(self) -> Iterator[View]:
        yield EmbeddedView()

    def close(self, expression: Expression) -> None:
        for backend in expression._find_backends()[0]:
            backend.disconnect()


HABITS = Habits(few_groups=8, narrow=False)
"""Of engines about which nothing is known."""


@dataclass(frozen=True)
class AnyIbis:
    """Any other backend of Ibis, in what every SQL engine understands."""

    connection: Any
    dialect: Dialect
    habits: Habits = HABITS
    remote: bool = True

    def check_unchanged(self) -> None:
        """Nothing is known about how this engine's tables change."""

    def prepare(self, expression: Expression) -> None:
        with step_by_step():
            expression.limit(0).to_pyarrow()

    @contextmanager
    def look(self) -> Iterator[View]:
        yield IbisView()

    def close(self, expression: Expression) -> None:
        del expression
        self.connection.disconnect()
