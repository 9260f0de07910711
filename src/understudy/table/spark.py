"""A table in Spark: in this process, on a cluster's master, or through Spark Connect.

Codes are made and counted by the executors; what comes back is one row for each cell that occurs. Spark has no
transactions: each GROUP BY of a look reads the table as it is then.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from understudy.declaration.declaration import SourceSpec
from understudy.errors import SourceChangedError, SourceError
from understudy.table.dialect import Dialect, Expression
from understudy.table.engine import BATCH_ROWS, Columns, Habits, View, step_by_step
from understudy.table.spark_dialect import SPARK

TIME_LIMIT = 3600
"""Seconds for one statement where the declaration names no other limit. Depends on nothing that is private."""

INTERRUPT_AGAIN = 0.5
"""Seconds between two interruptions of a statement that has passed its limit and has not ended."""

SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",  # checks of every sum and product, where none can overflow
    "spark.sql.variable.substitute": "false",  # a declared value may look like a variable
    # Old days are days: the default stops at the first one, and that would tell of a value.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}

ALONE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",  # a page for everybody on the network, which quotes what tasks failed on
}
"""Settings of a Spark that runs in this machine alone."""

HABITS = Habits(group_cells=1 << 20, few_groups=64, narrow=False)
"""Fewer and larger GROUP BYs win, and nearly any number of them beats handing rows to the driver."""

_numbers = count()


class SparkView:
    """Statements of one look."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine

    def groups(self, expression: Expression) -> Iterator[Columns]:
        with self._engine.limited():
            table: pa.Table = self._engine.frame(expression).toArrow()
        yield {name: table.column(name).to_numpy() for name in table.column_names}

    def rows(self, expression: Expression) -> Iterator[Columns]:
        """Rows as a list for each chunk of them: Spark hands rows to the driver one by one, which is slow."""
        names = list(expression.columns)
        lists = ", ".join(f"collect_list({_quoted(name)})" for name in names)
        chunk = f"shiftright(monotonically_increasing_id(), {BATCH_ROWS.bit_length() - 1})"
        inner = self._engine.compiled(expression)
        chunked = self._engine.session.sql(
            f"SELECT {lists} FROM (SELECT *, {chunk} AS chunk FROM ({inner})) GROUP BY chunk"
        )
        with self._engine.limited():
            for row in chunked.toLocalIterator():
                yield {name: np.array(values, np.int64) for name, values in zip(names, row, strict=True)}


@dataclass(frozen=True)
class SparkEngine:
    """A table or a folder of Parquet files, seen through a Spark session."""

    connection: Any
    relation: str
    columns: Any
    time_limit: int = TIME_LIMIT
    dialect: Dialect = SPARK
    habits: Habits = HABITS
    remote: bool = True

    @property
    def session(self) -> Any:
        return self.connection._session

    def frame(self, expression: Expression) -> Any:
        return self.session.sql(self.compiled(expression))

    def compiled(self, expression: Expression) -> str:
        with step_by_step():
            return self.connection.compile(expression)

    def check_unchanged(self) -> None:
        if self.session.table(self.relation).schema != self.columns:
            raise SourceChangedError(
                "the columns of the table have changed since it was opened. A budget belongs to one table: open "
                "the project again if this is the same people's data"
            )

    def prepare(self, expression: Expression) -> None:
        _ = self.frame(expression).schema  # the plan is analysed here

    @contextmanager
    def look(self) -> Iterator[View]:
        yield SparkView(self)

    def close(self, expression: Expression) -> None:
        """Forget the view of the table; the session is the process's own, and may serve others."""
        self.session.catalog.dropTempView(expression.get_name())

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Interrupt what runs longer than the limit: the session then reports an error.

        An interruption reaches jobs that run, not those that Spark is still planning, so it is repeated until the
        statement has ended.
        """
        tag = f"understudy-{os.getpid()}-{next(_numbers)}"
        add, remove, interrupt = self._tagging()
        ended = Event()

        def interrupt_late_jobs() -> None:
            wait: float = self.time_limit
            while not ended.wait(wait):
                interrupt(tag)
                wait = INTERRUPT_AGAIN

        add(tag)
        Thread(target=interrupt_late_jobs, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            remove(tag)

    def _tagging(self) -> tuple[Any, Any, Any]:
        """How jobs are marked and cancelled: a cluster's own context reaches those that collect Arrow, too."""
        if hasattr(self.session, "_jsparkSession"):
            context = self.session.sparkContext
            return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
        return self.session.addTag, self.session.removeTag, self.session.interruptTag


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def open_spark(spec: SourceSpec, *, base: Path) -> tuple[Expression, SparkEngine]:
    """Find or start the session, and read the table's columns."""
    if bool(spec.table) == bool(spec.path):
        raise SourceError("say what Spark shall read: `table:` or `path:` (of Parquet files), one of them")
    try:
        connection: Any = ibis.pyspark.connect(_session(spec.location))
        for key, value in SESSION.items():
            connection._session.conf.set(key, value)
        view = f"understudy_{next(_numbers)}"
        connection._session.sql(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM {_relation(spec, base)}")
        expression = connection.table(view)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(
            f"Spark cannot be reached or does not have the table ({type(error).__name__}); try the same with "
            f"spark-sql"
        ) from None
    limit = TIME_LIMIT if spec.time_limit is None else spec.time_limit
    columns = connection._session.table(_relation(spec, base)).schema
    return expression, SparkEngine(connection, _relation(spec, base), columns, limit)


def _relation(spec: SourceSpec, base: Path) -> str:
    """What stands after FROM. Names have dots between catalogue, schema and table."""
    if spec.path:
        path = spec.path if "://" in spec.path else str((base / spec.path).absolute())
        return f"parquet.{_quoted(path)}"
    return ".".join(_quoted(part) for part in f"{spec.schema}.{spec.table}".strip(".").split("."))


def _session(location: str) -> Any:
    """A session of its own on the place that a location names, or that the environment names for `spark`."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise SourceError("reading from Spark needs pyspark: install understudy[spark]") from None
    place = location.removeprefix("spark:") if not location.startswith("spark://") else location
    if place == "spark":
        place = os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_MASTER") or ""
    if place.startswith("sc://"):
        return SparkSession.builder.appName("understudy").remote(place).create()
    if SparkContext._active_spark_context is None:
        _start(place)
    running = SparkSession.builder.getOrCreate()
    if place and running.sparkContext.master != place:
        raise SourceError(f"this process already runs Spark on {running.sparkContext.master}, not on {place}")
    return running.newSession()


def _start(place: str) -> None:
    """Start Spark's driver so that nobody hears it: what a failing task logs may quote values.

    The process of Java gets no place to write to, since some of its lines come before any setting of its log. A
    Spark that runs here alone listens here alone.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    settings = SparkConf().setAppName("understudy").set("spark.ui.showConsoleProgress", "false")
    if place:
        settings.setMaster(place)
    if place.startswith("local"):
        settings.setAll(list(ALONE.items()))
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway = SparkContext._gateway or launch_gateway(settings, silent)
    SparkContext(conf=settings, gateway=gateway).setLogLevel("OFF")
