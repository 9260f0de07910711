"""Where the table is: a file, a database, a cluster or a frame in memory, behind one Ibis expression.

Opening a source reads its schema and nothing else. A CSV file has no schema but its header, so its columns are
read as text and cast by the declaration, never by a guess from the data. A file that lacks its header begins with
somebody's row: so what was read from a source is named to the custodian only (`candid`), never to an analyst.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import entry_points, metadata
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from understudy.declaration.declaration import Counting, SourceSpec, Unit
from understudy.domain.domain import Domain
from understudy.errors import SourceChangedError, SourceError, UnderstudyError
from understudy.table.engine import AnyIbis, Embedded, Engine
from understudy.table.file_view import ASK_CUSTODIAN, FileTable, LostLines, connect_in_memory, held_frame
from understudy.table.files import check_file, is_parquet, open_file
from understudy.table.stamp import Stamps, is_database, settled_stamps, stamps_of
from understudy.table.storage import Storage, storage_of_frame, storage_of_schema
from understudy.table.text_file import is_text
from understudy.table.text_reader import FORGIVING, READING

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.table.fit import Fit
    from understudy.table.text_rows import TextRows
    from understudy.table.view_reader import Codes, ViewReader


_DAMAGED = "The file is damaged, or holds what is no text, such as zero bytes: mend it, or write it anew"
_AWAY = "Read the table with another program, which says what is wrong with it or with the connection"
"""What a custodian can do where an engine fails at rows: `understudy check` would fail in the same words."""


@dataclass(frozen=True)
class Source:
    """An open table. `stamps` are what the files looked like that it is read from, when it was opened.

    `opening` gives the engine's table when it is first needed: a file of which there is a coded copy is not even
    opened. `description` is all that the declaration says about how the rows are read. `pinned` says that no row
    can change without a change of the stamps; a view in a database's file, say, may read other files.

    Whether an engine drops a malformed line of text depends on the columns it reads; `text` makes it read the
    same ones always, so that every look sees the same rows. `count` says where a remote engine's rows are
    counted. `candid` lets errors list what the source's schema says: for the custodian's eyes only. `late` says
    that nothing was opened yet. `storage` says how the columns of a frame are stored.
    """

    opening: Callable[[], FileTable]
    path: Path | None = None
    stamps: Stamps | None = None
    description: str = ""
    pinned: bool = True
    text: bool = False
    engine: Engine = field(default_factory=Embedded)
    count: Counting = Counting.AUTO
    candid: bool = False
    late: bool = False
    storage: Storage = field(default_factory=dict[str, str])
    token: str = field(default_factory=lambda: token_hex(8), repr=False)

    @cached_property
    def _table(self) -> FileTable:
        return self.opening()

    @property
    def expression(self) -> Any:
        """The rows, as an expression of Ibis."""
        return self._table.expression

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, of which the expression may have the declared ones only."""
        return self._table.names

    def close(self) -> None:
        """Let go of the engine's connection and of what was copied for it. The source cannot be read any more."""
        if self.late and "_table" not in self.__dict__:  # it was never opened
            return
        with suppress(Exception):  # a server that is gone has let go already
            self.engine.close(self.expression)
        self._table.release()

    @property
    def text_rows(self) -> TextRows | None:
        """The rows of a file of text, to be counted or drawn; None elsewhere."""
        return self._table.text

    def lost(self) -> LostLines:
        """How many lines of a text file are no rows: for the custodian's eyes only."""
        return self._table.lost()

    @property
    def version(self) -> str | None:
        """A name for the rows as they were when the source was opened, made of nothing that is in them.

        That of a file is made of how it is read and of the stamps of all files that are read with it; a frame's
        copy is nobody else's. Where rows can change unnoticed, in a database or behind a view, there is none.
        """
        if self.engine.remote or not self.pinned:
            return None
        return self.token if self.stamps is None else repr((self.description, self.stamps))

    @property
    def former_version(self) -> str | None:
        """The name that version 0.1 gave to a file's rows, under which its ledgers hold questions."""
        if self.stamps is None:
            return None
        return repr((self.stamps[0].modified_ns, self.stamps[0].inode))

    @property
    def columns(self) -> dict[str, Any]:
        """Column names and types."""
        return dict(self.expression.schema().items())

    @property
    def told_types(self) -> dict[str, str]:
        """Names of the columns' types as a schema that somebody chose has them: empty for a file of text.

        The precision of a frame's decimals is that of its largest value, so that it is not told.
        """
        if self.text:
            return {}
        types = {name: str(kind) for name, kind in self.columns.items()}
        in_memory = self.stamps is None and not self.engine.remote
        return {name: kind for name, kind in types.items() if not (in_memory and "decimal" in kind)}

    @property
    def told_storage(self) -> dict[str, str]:
        """How the columns of a frame or a Parquet file are stored, where `told_types` does not tell."""
        if self.path is None or not is_parquet(self.path):
            return dict(self.storage)
        import pyarrow.parquet

        with self._quiet("the schema of the table cannot be read"):
            return storage_of_schema(pyarrow.parquet.read_schema(self.path))

    def check(self, domain: Domain, unit: Unit | None = None) -> None:
        """Every declared column exists and can be read as declared. Looks at the schema only."""
        from understudy.table.encode import check_type
        from understudy.table.view_reader import check_compiles

        columns = self.columns
        wanted = [attribute.column for attribute in domain] + ([unit.column] if unit else [])
        missing = [column for column in wanted if column not in columns]
        if missing:
            raise SourceError(self._lacks(missing, wanted))
        for attribute in domain:
            check_type(attribute, columns[attribute.column], candid=self.candid)
        with self._quiet("the declaration cannot be put to this table"):
            check_compiles(self.expression, self.engine, domain, unit)

    def _lacks(self, missing: list[str], wanted: list[str]) -> str:
        lacking = ", ".join(map(repr, missing))
        if not self.candid:
            plural = "s" if len(missing) > 1 else ""
            return f"the table lacks the declared column{plural} {lacking}: {ASK_CUSTODIAN}"
        columns = list(self.names)
        hint = ""
        if len(columns) == 1:
            hint = f" The table has the single column {columns[0]!r}: is the delimiter right?"
        elif self.text and len(missing) == len(wanted):
            hint = " If these are values of a row, the file lacks the line that names its columns."
        more = ", …" if len(columns) > 20 else ""
        return f"the table has no column {lacking}; it has: {', '.join(columns[:20])}{more}.{hint}"

    def check_unchanged(self) -> None:
        """Refuse to go on with another file than the one that was opened."""
        if self.engine.remote:
            with self._quiet("the engine could not read the table"):
                self.engine.check_unchanged()
        if self.path is None:
            return
        try:
            now = stamps_of(self.path)
        except OSError as error:
            raise SourceError(f"the table {self.path} cannot be read any more: {error.strerror}") from None
        if now != self.stamps:
            raise SourceChangedError(
                f"the table {self.path} has changed since it was opened. A budget belongs to one table: open the "
                f"project again if this is the same people's data, or start a new project for a new table"
            )

    @contextmanager
    def look(self) -> Iterator[ViewReader]:
        """A look at the table, for as many questions as belong together: at the rows that were stamped, or none.

        The engine's own error text may quote data, so it is not passed on.
        """
        from understudy.table.view_reader import ViewReader

        if not self.engine.remote:
            self.check_unchanged()
        with self._quiet("the engine could not read the table"), self.engine.look() as view:
            yield ViewReader(self.expression, self.engine, view, self.text)
        if not self.engine.remote:
            self.check_unchanged()

    @contextmanager
    def _quiet(self, what: str) -> Iterator[None]:
        """Turn an engine's error into one that quotes nothing; that the file has changed is a better reason."""
        try:
            yield
        except UnderstudyError as error:
            if isinstance(error, SourceError) and self.path is not None:
                self.check_unchanged()
            raise
        except Exception as error:
            if self.path is not None:
                self.check_unchanged()
            raise SourceError(
                f"{what} ({type(error).__name__}); nothing of the engine's message is shown, as it may hold data. "
                f"{_DAMAGED if self.path is not None else _AWAY}"
            ) from None

    def rows(self, domain: Domain, unit: Unit | None = None) -> int:
        """The number of rows that count: public under `replace`, private under `add-remove`."""
        with self.look() as look:
            return look.number_of_rows(domain, unit)

    def read_through(self, domain: Domain, unit: Unit | None = None) -> Fit:
        """Read every declared value once, for the custodian: damage is found before any charge.

        What comes back are exact counts of the table: for nobody else.
        """
        with self.look() as look:
            return replace(look.read_through(domain, unit), lost=self.lost())

    def batches(self, domain: Domain, clique: tuple[str, ...], unit: Unit | None = None) -> Iterator[Codes]:
        """The codes of the clique's attributes, batch by batch, encoded by the engine."""
        with self.look() as look:
            yield from look.batches(domain, clique, unit)


def open_source(
    spec: SourceSpec,
    *,
    base: Path,
    columns: Collection[str] | None = None,
    candid: bool = False,
    late: bool = False,
) -> Source:
    """Open a file, a Postgres or Spark table, or what else Ibis has a URL for.

    Relative paths are seen from `base`. `columns` are those that will be read, if not all: a file with many others
    is then opened faster. `candid` is for the custodian: errors then list what the source has. With `late` a file
    is opened when its rows or its schema are first needed, which a coded copy may make needless.
    """
    scheme = spec.location.partition(":")[0]
    if ("://" in spec.location or scheme in ("spark", "sc")) and (told := spec.speaks_of_text):
        keys = " and ".join(f"`{key}`" for key in told)
        raise SourceError(f"the table is in no file of text: leave {keys} out of the declaration")
    if scheme in ("postgres", "postgresql") and "://" in spec.location:
        from understudy.table.postgres import open_postgres

        expression, engine = open_postgres(spec, base=base)
        return Source(
            _opened(expression), description=repr(spec), engine=engine, count=spec.count, candid=candid
        )
    if spec.location == "spark" or (scheme in ("spark", "sc") and ":" in spec.location):
        from understudy.table.spark import open_spark

        expression, engine = open_spark(spec, base=base)
        return Source(
            _opened(expression), description=repr(spec), engine=engine, count=spec.count, candid=candid
        )
    if "://" in spec.location:
        return _open_url(spec, base=base, candid=candid)
    path = (base / spec.location).resolve()
    try:
        stamps = settled_stamps(path)
    except OSError as error:
        raise SourceError(f"the table {path} cannot be read: {error.strerror}") from None
    check_file(path, spec)

    opening: Callable[[], FileTable] = partial(open_file, path, spec, columns=columns, candid=candid)
    pinned, late = True, late and not is_database(path)
    if not late:  # whether stamps tell of every change, an open database says
        table = opening()
        pinned, opening = table.pinned, lambda: table
    source = Source(
        opening,
        path,
        stamps,
        description=repr((*spec.reading, READING, FORGIVING)),
        pinned=pinned,
        text=is_text(path),
        candid=candid,
        late=late,
    )
    source.check_unchanged()
    return source


def _opened(expression: Any) -> Callable[[], FileTable]:
    """A table that is open already."""
    table = FileTable(expression, tuple(expression.columns))
    return lambda: table


def _open_url(spec: SourceSpec, *, base: Path, candid: bool) -> Source:
    """A table behind a URL that Ibis understands."""
    import ibis

    from understudy.table.portable_dialect import PORTABLE, PORTABLE_DUCKDB
    from understudy.table.postgres import password

    scheme = spec.location.partition("://")[0]
    secret = password(spec, base=base)
    options = {"read_only": True} if spec.location.startswith("duckdb://") else {}
    try:
        connection: Any = ibis.connect(_with_password(spec.location, secret), **options)
        expression = connection.table(spec.table, database=spec.schema or None)
    except ImportError:
        raise SourceError(_no_driver(scheme)) from None
    except Exception as error:  # its text may hold the password
        known = sorted(entry_points(group="ibis.backends").names)
        if scheme not in known:
            raise SourceError(f"no engine reads {scheme}://; Ibis has {', '.join(known)}") from None
        raise SourceError(
            f"no engine answers to this URL with such a table ({type(error).__name__}); check host, user, "
            f"password and `table:`"
        ) from None
    dialect = PORTABLE_DUCKDB if connection.name == "duckdb" else PORTABLE
    engine = AnyIbis(connection, dialect)
    return Source(_opened(expression), description=repr(spec), engine=engine, count=spec.count, candid=candid)


def _no_driver(scheme: str) -> str:
    """What to install for a URL; an engine's extra of Ibis bears the name of its URLs."""
    offered = metadata("ibis-framework").get_all("Provides-Extra") or []
    what = f"the driver that reads {scheme}:// is not installed"
    if scheme in offered:
        return f"{what}; install it with: pip install 'ibis-framework[{scheme}]'"
    return f"{what}; see which one the backend of Ibis for it needs"


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
    import narwhals as nw
    import pyarrow as pa

    kind, native = type(frame).__name__, frame
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
        opening = _opened(held_frame(connect_in_memory(), typed))
        return Source(opening, storage=storage_of_frame(native))
    except Exception as error:  # its own text may quote a value
        raise SourceError(f"the {kind} cannot be read as a table ({type(error).__name__})") from None


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in a type whose every value the engine can read."""
    import pyarrow as pa

    dtype = column.type
    if pa.types.is_null(dtype):  # nothing but missing values: what it is read as must not depend on that
        return column.cast(pa.string())
    if pa.types.is_timestamp(dtype) and dtype.unit in ("s", "ms"):
        import pyarrow.compute

        compute: Any = pyarrow.compute  # its functions are made at run time
        factor = {"s": 10**6, "ms": 10**3}[dtype.unit]
        last = (2**63 - 1) // factor
        steps = compute.min_element_wise(column.cast(pa.int64()), last, skip_nulls=False)
        steps = compute.max_element_wise(steps, -last, skip_nulls=False)
        return compute.multiply(steps, factor).cast(pa.timestamp("us", dtype.tz))
    return column
