"""Where the table is: a file, a database, a cluster or a frame in memory, behind one Ibis expression.

Opening a source reads its schema and nothing else. A CSV file has no schema but its header, so its columns are
read as text and cast by the declaration, never by a guess from the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, cast
from urllib.parse import quote

import ibis
import narwhals as nw
import pyarrow
import pyarrow as pa
import pyarrow.compute

from understudy.declaration import Counting, SourceSpec, Unit
from understudy.domain import Domain
from understudy.errors import SourceChangedError, SourceError, UnderstudyError
from understudy.table.encode import check_type
from understudy.table.engine import AnyIbis, Embedded, Engine
from understudy.table.files import TEXT_ENDINGS, file_stamp, is_text, open_file, read_header
from understudy.table.look import Codes, Look, check_compiles
from understudy.table.postgres import open_postgres, password
from understudy.table.spark import open_spark

__all__ = ["TEXT_ENDINGS", "Codes", "Source", "in_memory", "open_source", "read_header"]


@dataclass(frozen=True)
class Source:
    """An open table. `stamp` is what the file looked like when it was opened.

    Whether an engine drops a malformed line of text depends on the columns it reads; `text` makes it read the
    same ones always, so that every look sees the same rows. `count` says where a remote engine's rows are counted.
    """

    expression: Any
    path: Path | None = None
    stamp: tuple[int, int, int] | None = None
    text: bool = False
    engine: Engine = field(default_factory=Embedded)
    count: Counting = Counting.AUTO
    token: str = field(default_factory=lambda: token_hex(8), repr=False)

    @property
    def version(self) -> str | None:
        """A name for the rows as they are now, made of nothing that is in them.

        That of a file is its time stamp and identity; a frame's copy is nobody else's. In a database rows can
        change unnoticed: it has none.
        """
        if self.engine.remote:
            return None
        return self.token if self.stamp is None else repr(self.stamp[1:])

    @property
    def columns(self) -> dict[str, Any]:
        """Column names and types."""
        return dict(self.expression.schema().items())

    def check(self, domain: Domain, unit: Unit | None = None) -> None:
        """Every declared column exists and can be read as declared. Looks at the schema only."""
        columns = self.columns
        wanted = [attribute.column for attribute in domain] + ([unit.column] if unit else [])
        missing = [column for column in wanted if column not in columns]
        if missing:
            hint = ""
            if len(columns) == 1:
                hint = f" The table has the single column {next(iter(columns))!r}: is the delimiter right?"
            raise SourceError(
                f"the table has no column {', '.join(map(repr, missing))}; it has: "
                f"{', '.join(list(columns)[:20])}{', …' if len(columns) > 20 else ''}.{hint}"
            )
        for attribute in domain:
            check_type(attribute, columns[attribute.column])
        with _quiet("the declaration cannot be put to this table"):
            check_compiles(self.expression, self.engine, domain, unit)

    def check_unchanged(self) -> None:
        """Refuse to go on with another file than the one that was opened."""
        if self.engine.remote:
            with self._quiet():
                self.engine.check_unchanged()
        if self.path is None:
            return
        try:
            now = file_stamp(self.path)
        except OSError as error:
            raise SourceError(f"the table {self.path} cannot be read any more: {error.strerror}") from None
        if now != self.stamp:
            raise SourceChangedError(
                f"the table {self.path} has changed since it was opened. A budget belongs to one table: open the "
                f"project again if this is the same people's data, or start a new project for a new table"
            )

    @contextmanager
    def look(self) -> Iterator[Look]:
        """A look at the table, for as many questions as belong together.

        The engine's own error text may quote data, so it is not passed on.
        """
        if not self.engine.remote:
            self.check_unchanged()
        with self._quiet(), self.engine.look() as view:
            yield Look(self.expression, self.engine, view, text=self.text)
        if not self.engine.remote:
            self.check_unchanged()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        try:
            with _quiet("the engine could not read the table"):
                yield
        except SourceError:
            if self.path is not None:
                self.check_unchanged()  # a better reason, where it is one
            raise

    def rows(self, domain: Domain, unit: Unit | None = None) -> int:
        """The number of rows that count: public under `replace`, private under `add-remove`."""
        with self.look() as look:
            return look.number_of_rows(domain, unit)

    def read_through(self, domain: Domain, unit: Unit | None = None) -> None:
        """Read every declared value once, for the custodian: damage is found before any charge."""
        with self.look() as look:
            look.read_through(domain, unit)

    def batches(self, domain: Domain, clique: tuple[str, ...], unit: Unit | None = None) -> Iterator[Codes]:
        """The codes of the clique's attributes, batch by batch, encoded by the engine."""
        with self.look() as look:
            yield from look.batches(domain, clique, unit)


@contextmanager
def _quiet(what: str) -> Iterator[None]:
    """Turn an engine's error into one that quotes nothing."""
    try:
        yield
    except UnderstudyError:
        raise
    except Exception as error:
        raise SourceError(
            f"{what} ({type(error).__name__}); nothing of the engine's message is shown, as it may hold data. "
            f"Check the source with `understudy check`"
        ) from None


def open_source(spec: SourceSpec, *, base: Path) -> Source:
    """Open a file, a Postgres or Spark table, or what else Ibis has a URL for.

    Relative paths are seen from `base`.
    """
    scheme = spec.location.partition(":")[0]
    if scheme in ("postgres", "postgresql") and "://" in spec.location:
        expression, engine = open_postgres(spec, base=base)
        return Source(expression, engine=engine, count=spec.count)
    if spec.location == "spark" or (scheme in ("spark", "sc") and ":" in spec.location):
        expression, engine = open_spark(spec, base=base)
        return Source(expression, engine=engine, count=spec.count)
    if "://" in spec.location:
        return _open_url(spec, base=base)
    path = (base / spec.location).resolve()
    try:
        stamp = file_stamp(path)
    except OSError as error:
        raise SourceError(f"the table {path} cannot be read: {error.strerror}") from None
    return Source(open_file(path, spec), path, stamp, text=is_text(path))


def _open_url(spec: SourceSpec, *, base: Path) -> Source:
    """A table behind a URL that Ibis understands."""
    secret = password(spec, base=base)
    options = {"read_only": True} if spec.location.startswith("duckdb://") else {}
    try:
        connection: Any = ibis.connect(_with_password(spec.location, secret), **options)
        expression = connection.table(spec.table, database=spec.schema or None)
    except Exception as error:  # its text may hold the password
        raise SourceError(
            f"no engine answers to this URL with such a table ({type(error).__name__}); check host, user, "
            f"password and `table:`"
        ) from None
    return Source(expression, engine=AnyIbis(connection), count=spec.count)


def _with_password(url: str, secret: str | None) -> str:
    """The URL that is handed to the engine, and to nobody else.

    >>> _with_password("mysql://ada@db/clinic", "a/b")
    'mysql://ada:a%2Fb@db/clinic'
    """
    if secret is None:
        return url
    scheme, rest = url.split("://", 1)
    user, _, host = rest.rpartition("@")
    return f"{scheme}://{user}:{quote(secret, safe='')}@{host}"


def in_memory(frame: Any) -> Source:
    """A frame in memory: pandas, polars, Arrow, or whatever narwhals can read."""
    kind = type(frame).__name__
    if not isinstance(frame, pa.Table):
        try:
            frame = nw.from_native(frame, eager_only=True)
        except TypeError:
            lazy = hasattr(frame, "collect")
            streams = hasattr(frame, "__arrow_c_stream__") and not lazy
            if not (streams and hasattr(frame, "schema")):  # a column alone streams, and has no schema
                hint = " (collect it first)" if lazy else ""
                raise SourceError(
                    f"a {kind} is not a table; give a pandas, polars or Arrow frame{hint}"
                ) from None
    try:
        table = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)
        typed = pa.table([_readable(column) for column in table.columns], names=table.column_names)
        return Source(ibis.duckdb.connect().create_table("frame", typed))
    except Exception as error:  # its own text may quote a value
        raise SourceError(f"the {kind} cannot be read as a table ({type(error).__name__})") from None


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in a type whose every value the engine can read."""
    dtype, compute = column.type, cast(Any, pyarrow.compute)  # its functions are made at run time
    if pa.types.is_null(dtype):  # nothing but missing values: what it is read as must not depend on that
        return column.cast(pa.string())
    if pa.types.is_timestamp(dtype) and dtype.unit in ("s", "ms"):
        factor = {"s": 10**6, "ms": 10**3}[dtype.unit]
        last = (2**63 - 1) // factor
        steps = compute.min_element_wise(column.cast(pa.int64()), last, skip_nulls=False)
        steps = compute.max_element_wise(steps, -last, skip_nulls=False)
        return compute.multiply(steps, factor).cast(pa.timestamp("us", dtype.tz))
    return column
