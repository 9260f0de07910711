"""Where the table is: a file, a database or a frame in memory, behind one Ibis expression.

Opening a source reads its schema and nothing else. A CSV file has no schema but its header, so its columns are
read as text and cast by the declaration, never by a guess from the data.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ibis
import narwhals as nw
import numpy as np
import pyarrow
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from understudy.declaration import SourceSpec, Unit
from understudy.domain import Clique, Domain
from understudy.errors import SourceChangedError, SourceError
from understudy.table.encode import Expression, check_type, code_type, encode

BATCH_ROWS = 1 << 17
TEXT_ENDINGS = {".csv", ".tsv", ".txt"}

Codes = dict[str, NDArray[np.unsignedinteger]]
"""For each attribute, one code for each row of a batch."""


@dataclass(frozen=True)
class Source:
    """An open table. `stamp` is what the file looked like when it was opened.

    Whether an engine drops a malformed line of text depends on the columns it reads; `text` makes it read the
    same ones always, so that every look sees the same rows.
    """

    expression: Any
    path: Path | None = None
    stamp: tuple[int, int, int] | None = None
    text: bool = False

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
        try:
            _coded(self.expression, domain)
        except Exception as error:
            raise SourceError(
                f"the declaration cannot be put to this table ({type(error).__name__})"
            ) from None

    def check_unchanged(self) -> None:
        """Refuse to go on with another file than the one that was opened."""
        if self.path is None:
            return
        try:
            now = _stamp(self.path)
        except OSError as error:
            raise SourceError(f"the table {self.path} cannot be read any more: {error.strerror}") from None
        if now != self.stamp:
            raise SourceChangedError(
                f"the table {self.path} has changed since it was opened. A budget belongs to one table: open the "
                f"project again if this is the same people's data, or start a new project for a new table"
            )

    def rows(self, domain: Domain, unit: Unit | None = None) -> int:
        """The number of rows that count: public under `replace`, private under `add-remove`."""
        if self.text or unit is not None:
            first = domain.names[:1]
            return sum(len(batch[first[0]]) for batch in self.batches(domain, first, unit))
        return int(self._run(self.expression.count().to_pyarrow).as_py())

    def read_through(self, domain: Domain, unit: Unit | None = None) -> None:
        """Read every declared value once, for the custodian: damage is found before any charge."""
        for _ in self.batches(domain, domain.names, unit):
            pass

    def batches(self, domain: Domain, clique: Clique, unit: Unit | None = None) -> Iterator[Codes]:
        """The codes of the clique's attributes, batch by batch, encoded by the engine."""
        if unit is not None:
            coded = _at_most(self.expression, domain, unit)
        else:
            coded = _coded(self.expression, domain if self.text else domain.project(clique))
        if not self.text:
            coded = coded.select(*map(_column, clique))
        reader = self._run(lambda: coded.to_pyarrow_batches(chunk_size=BATCH_ROWS))
        while (batch := self._run(lambda: next(reader, None))) is not None:
            yield {name: batch.column(_column(name)).to_numpy(zero_copy_only=True) for name in clique}

    def _run(self, look: Any) -> Any:
        """Run the engine; its own error text may quote data, so it is not passed on."""
        self.check_unchanged()
        try:
            return look()
        except Exception as error:
            self.check_unchanged()
            raise SourceError(
                f"the engine could not read the table ({type(error).__name__}); nothing of its message is shown, "
                f"as it may hold data. Check the source with `understudy check`"
            ) from None


def _column(name: str) -> str:
    """A column name that no source column can take."""
    return f"code of {name}"


def _coded(rows: Any, domain: Domain, **kept: str) -> Any:
    """Rows as codes, with the columns in `kept` beside them."""
    codes = {
        _column(attribute.name): encode(attribute, rows[attribute.column]).cast(code_type(attribute))
        for attribute in domain
    }
    return rows.select(**codes, **kept)


def _at_most(rows: Any, domain: Domain, unit: Unit) -> Any:
    """At most `max_rows` coded rows of each unit, those with the smallest keyed hash; rows of nobody go.

    Which rows stay depends on the unit's own rows alone, so adding or removing a unit changes at most
    `max_rows` rows of the result.
    """
    coded = _coded(rows.filter(rows[unit.column].notnull()), domain, unit=unit.column)
    codes = [coded[_column(name)] for name in domain.names]
    key: Expression = ibis.literal(unit.key)
    digest = key.concat(*(part for code in codes for part in ("|", code.cast("string"))))
    rank = ibis.row_number().over(group_by=coded.unit, order_by=[digest.hash(), *codes])
    ranked = coded.mutate(rank=rank)
    return ranked.filter(ranked.rank < unit.max_rows)


def _stamp(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def open_source(spec: SourceSpec, *, base: Path) -> Source:
    """Open a CSV, TSV or Parquet file or a DuckDB database; relative paths are seen from `base`."""
    path = (base / spec.location).resolve()
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        stamp = _stamp(path)
    except OSError as error:
        raise SourceError(f"the table {path} cannot be read: {error.strerror}") from None
    if path.is_dir():
        raise SourceError(f"the table {path} is a folder; name a CSV, Parquet or DuckDB file")
    if suffixes[-1:] == [".parquet"]:
        expression = _opened(path, lambda: ibis.duckdb.connect().read_parquet(path))
    elif suffixes[-1:] in ([".duckdb"], [".db"]):
        expression = _opened(path, lambda: _database_table(path, spec.table))
    elif TEXT_ENDINGS & set(suffixes[-2:]):
        expression = _opened(path, lambda: _text_table(path, spec.delimiter))
    else:
        raise SourceError(f"{path.name}: the ending says nothing known; use .csv, .tsv, .parquet or .duckdb")
    return Source(expression, path, stamp, text=bool(TEXT_ENDINGS & set(suffixes[-2:])))


def _opened(path: Path, how: Any) -> Any:
    try:
        return how()
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"the table {path} cannot be opened ({type(error).__name__})") from None


def _database_table(path: Path, table: str) -> Any:
    connection = ibis.duckdb.connect(path, read_only=True)
    tables = connection.list_tables()
    if not table and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        raise SourceError(f"{path.name} has the tables {', '.join(tables)}; say which with `table:`")
    return connection.table(table)


def _text_table(path: Path, delimiter: str) -> Any:
    header = read_header(path, delimiter)
    doubled = {name for name in header if header.count(name) > 1}
    if doubled:
        raise SourceError(f"{path.name}: the header names {', '.join(sorted(doubled))} more than once")
    return ibis.duckdb.connect().read_csv(
        path,
        columns=dict.fromkeys(header, "VARCHAR"),
        auto_detect=False,
        header=True,
        delim=delimiter,
        quote='"',
        escape='"',
        # A malformed row must not stop the program: what an error says depends on the data.
        ignore_errors=True,
        null_padding=True,
        strict_mode=False,
        parallel=False,  # the parallel reader fails on a quoted line break, which is valid text
        max_line_size=16 << 20,
    )


def read_header(path: Path, delimiter: str) -> list[str]:
    """The column names in the first line of a text file."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        # The reader looks ahead of the header; what stands there must not matter.
        with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            header = next(csv.reader(lines, delimiter=delimiter), [])
        "".join(header).encode()
    except (UnicodeEncodeError, csv.Error, zlib.error, OSError) as error:
        raise SourceError(f"the header of {path.name} cannot be read ({type(error).__name__})") from None
    if not any(header):
        raise SourceError(f"{path.name} has no header line: the first line must name the columns")
    return header


def in_memory(frame: Any) -> Source:
    """A frame in memory: pandas, polars, Arrow, or whatever narwhals can read."""
    kind = type(frame).__name__
    if not isinstance(frame, pa.Table):
        try:
            frame = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise SourceError(f"a {kind} is not a table; give a pandas, polars or Arrow frame") from None
    try:
        table = frame if isinstance(frame, pa.Table) else frame.to_arrow()
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
