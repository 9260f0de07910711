"""The desk: statements in SQL on public rows, run by processes that never opened a table."""

from __future__ import annotations

import difflib
import itertools
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from understudy.desk.allowed import FUNCTIONS
from understudy.desk.postgres_type import type_of_duck
from understudy.desk.refusal import refusal
from understudy.desk.rows import RowColumn, Rows, from_plain, shape_as_plain, values_as_plain
from understudy.desk.worker import Worker, WorkerEndedError
from understudy.errors import ClosedError, ParameterError, StatementError

Statement = str | exp.Expr
"""A SELECT: its text in the dialect of DuckDB, or its parse tree."""


@dataclass(frozen=True, slots=True)
class DeskLimits:
    """What one statement may take, and how long it may wait.

    seconds    of processor time; it is also ended after three times as many seconds of the clock
    rows       of its result
    megabytes  of its process, with what is loaded there
    processes  statements that run at the same time
    waiting    seconds that a statement waits for one of them before it is refused
    """

    seconds: float = 2.0
    rows: int = 50_000
    megabytes: int = 512
    processes: int = 2
    waiting: float = 30.0

    def __post_init__(self) -> None:
        if min(self.seconds, self.rows, self.processes) <= 0 or self.megabytes < 128 or self.waiting < 0:
            raise ParameterError(
                "a desk has at least one process of 128 MB, and time and rows for a statement"
            )

    @property
    def longest(self) -> float:
        """Seconds of the clock after which a process that has not replied is ended."""
        return 4 * self.seconds + 1


_keys = itertools.count(1)
_ROWS_AT_ONCE = 20_000
_CHARACTERS_AT_ONCE = 4_000_000
"""Rows of a table, and characters of all, that are sent to a process at once."""
_LOADING_SECONDS = 60.0


class DeskDatabase:
    """Tables that stay in a desk's processes: a catalog, or the synthetic rows of a release.

    tables      by pairs of a schema, which may be empty, and a name; names differ by more than case
    statements  what makes views of them and functions on them. They are run as they are, before anything else:
                they are the program's own, and never made of an analyst's text
    """

    def __init__(self, tables: Mapping[tuple[str, str], Rows], *, statements: Sequence[str] = ()) -> None:
        self.key = str(next(_keys))
        self.tables = dict(tables)
        self._statements = list(statements)

    def requests(self) -> Iterator[dict[str, Any]]:
        """What a process is told, one after the other, to hold the database."""
        shapes = {place: shape_as_plain(rows) for place, rows in self.tables.items()}
        named = [{"schema": schema, "name": name, **shapes[schema, name]} for schema, name in self.tables]
        yield {"do": "make", "key": self.key, "tables": named}
        batch: list[dict[str, Any]] = []
        size = 0
        for table in named:
            rows = self.tables[table["schema"], table["name"]].rows
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                values = values_as_plain(rows[start : start + _ROWS_AT_ONCE])
                batch.append({**table, "values": values})
                size += sum(map(len, values))
                if size > _CHARACTERS_AT_ONCE:
                    yield {"do": "fill", "key": self.key, "tables": batch}
                    batch, size = [], 0
        yield {"do": "fill", "key": self.key, "tables": batch}
        yield {"do": "finish", "key": self.key, "statements": self._statements}


class Desk:
    """A few processes that run statements on public rows, for any number of threads.

    A process is started when it is first needed, or in the background by `start`; it is replaced when a statement
    ended it by taking more time or memory than it may. Close the desk at the end, or use it in a `with`.
    """

    def __init__(self, limits: DeskLimits | None = None) -> None:
        self.limits = limits or DeskLimits()
        self._empty = DeskDatabase({})
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(self.limits.processes):
            self._idle.put(None)
        self._closed = threading.Event()

    def start(self, databases: Iterable[DeskDatabase] = ()) -> None:
        """Start one process, and load databases into it, in the background: a server does not wait for that."""
        wanted = (self._empty, *databases)
        threading.Thread(target=self._warm, args=(wanted,), name="desk-start", daemon=True).start()

    def run(
        self,
        statement: Statement,
        tables: Mapping[str, Rows] | None = None,
        *,
        database: DeskDatabase | None = None,
        rows: int | None = None,
    ) -> Rows:
        """The result of a SELECT.

        statement  a parse tree, or text in the dialect of DuckDB
        tables     released rows by the names that the statement calls them, without a schema
        database   tables and functions that stay loaded, which the statement may name too
        rows       the most rows of the result, instead of those of the limits if fewer

        Raises `StatementError`, whose `reason` says why: the statement is not a SELECT, names what there is not or
        calls a function that is not allowed, fails on a value, or takes too much time, rows or memory.
        """
        reply = self._ask("run", statement, tables or {}, database, rows)
        return from_plain(_columns(reply), reply["rows"])

    def describe(
        self,
        statement: Statement,
        tables: Mapping[str, Rows] | None = None,
        *,
        database: DeskDatabase | None = None,
    ) -> tuple[RowColumn, ...]:
        """The columns that `run` would return, without running the statement; raises what `run` raises."""
        return _columns(self._ask("describe", statement, tables or {}, database, None))

    def close(self) -> None:
        """End the processes. A statement that runs is finished first; later ones raise `ClosedError`."""
        if self._closed.is_set():
            return
        self._closed.set()
        for _ in range(self.limits.processes):
            worker = self._idle.get()
            if worker is not None:
                worker.end()
        self._idle.put(None)  # whoever still waits finds the desk closed

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _ask(
        self,
        what: str,
        statement: Statement,
        tables: Mapping[str, Rows],
        database: DeskDatabase | None,
        rows: int | None,
    ) -> dict[str, Any]:
        limits = self.limits
        most = limits.rows if rows is None else min(rows, limits.rows)
        request = {
            "do": what,
            "key": (database or self._empty).key,
            "sql": _text(statement),
            "tables": [
                {"schema": "", "name": name, **shape_as_plain(held), "values": values_as_plain(held.rows)}
                for name, held in tables.items()
            ],
            "seconds": limits.seconds,
            "rows": most,
        }
        try:
            reply = self._exchanged(request, database or self._empty)
        except WorkerEndedError as error:
            raise refusal("time" if error.overran else "size", limits=limits) from None
        if "reason" in reply:
            reason, name = str(reply["reason"]), str(reply.get("name", ""))
            raise refusal(reason, limits=limits, name=name, near=_near(reason, name, tables), rows=most)
        return reply

    def _exchanged(self, request: dict[str, Any], database: DeskDatabase) -> dict[str, Any]:
        worker = self._taken()
        try:
            worker = self._loaded(worker, (database,))
            reply = worker.ask(request, seconds=self.limits.longest)
            if reply.get("missing"):
                worker.loaded.discard(database.key)
                worker = self._loaded(worker, (database,))
                reply = worker.ask(request, seconds=self.limits.longest)
            return reply
        except WorkerEndedError:
            worker = None
            raise
        except StatementError:  # what was to be loaded could not be: what the process holds is not known
            if worker is not None:
                worker.end()
            worker = None
            raise
        finally:
            self._idle.put(worker)

    def _loaded(self, worker: Worker | None, databases: Iterable[DeskDatabase]) -> Worker:
        """A process that holds the databases: this one, or a fresh one."""
        worker = worker or self._started()
        for database in databases:
            if database.key not in worker.loaded:
                for request in database.requests():
                    try:
                        reply = worker.ask(request, seconds=_LOADING_SECONDS)
                    except WorkerEndedError as error:
                        reason = "unavailable" if error.overran else "size"
                        raise refusal(reason, limits=self.limits) from None
                    if not reply.get("done"):
                        worker.end()
                        raise refusal(str(reply.get("reason", "unavailable")), limits=self.limits)
                worker.loaded.add(database.key)
        return worker

    def _started(self) -> Worker:
        try:
            return Worker(megabytes=self.limits.megabytes)
        except OSError:
            raise refusal("unavailable", limits=self.limits) from None

    def _taken(self) -> Worker | None:
        """A process that nobody uses; None in the place of one that is not started."""
        try:
            worker = self._idle.get(timeout=self.limits.waiting)
        except queue.Empty:
            raise refusal("busy", limits=self.limits) from None
        if self._closed.is_set():
            self._idle.put(worker)
            raise ClosedError("the desk was closed", remedy="open another one")
        return worker

    def _warm(self, databases: Iterable[DeskDatabase]) -> None:
        try:
            worker = self._taken()
        except (ClosedError, StatementError):
            return
        try:
            worker = self._loaded(worker, databases)
        except StatementError:
            worker = None  # whoever asks first is told
        finally:
            self._idle.put(worker)


def _text(statement: Statement) -> str:
    text = statement if isinstance(statement, str) else statement.sql(dialect="duckdb")
    return text.strip().rstrip(";").rstrip()


def _columns(reply: Mapping[str, Any]) -> tuple[RowColumn, ...]:
    return tuple(RowColumn(str(name), type_of_duck(str(kind))) for name, kind in reply["columns"])


def _near(reason: str, name: str, tables: Mapping[str, Rows]) -> list[str]:
    """Names like one that a statement has and nobody knows: of functions, or of tables and columns."""
    if reason == "no-function":
        return difflib.get_close_matches(name, sorted(FUNCTIONS), n=3, cutoff=0.7)
    if reason == "undefined-function":  # it is known, and its arguments do not fit
        return []
    columns = [column for held in tables.values() for column in held.names]
    return difflib.get_close_matches(name, [*tables, *columns], n=3)
