"""SQL on the synthetic rows of releases: `synthetic.RELEASE` takes any SELECT, since nobody's data is in it.

The rows are read from the release's folder when they are first named, and stay with the desk, which runs the
statements in a process that never opened a table.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlglot import exp

from understudy.desk.desk import Desk, DeskDatabase
from understudy.desk.rows import RowColumn, Rows
from understudy.releases.files import SYNTHETIC
from understudy.server.pg.catalog.reading import parsed
from understudy.server.pg.routing import PublicResult, relations
from understudy.server.pg.states import Refusal
from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases

SCHEMA = "synthetic"

MOST_CELLS = 5_000_000
"""Rows times columns of a synthetic table that is offered for SQL."""

MOST_LOADED = 8
"""Releases, or sets of them that a statement names together, that stay with the desk."""


class SyntheticRows:
    """The synthetic tables of served releases, as tables of a desk."""

    def __init__(self, desk: Desk, releases: ServedReleases) -> None:
        self._desk = desk
        self._releases = releases
        self._loaded: OrderedDict[tuple[tuple[str, int], ...], DeskDatabase] = OrderedDict()
        self._lock = threading.Lock()

    def describe(self, sql: str, user: str, settings: Mapping[str, str]) -> Sequence[RowColumn]:
        """The columns of a statement, which is not run."""
        tree, database = self._read(sql)
        return self._desk.describe(tree, database=database)

    def answer(self, sql: str, user: str, settings: Mapping[str, str]) -> PublicResult:
        """The rows of a statement."""
        tree, database = self._read(sql)
        return PublicResult(self._desk.run(tree, database=database))

    def _read(self, sql: str) -> tuple[exp.Query, DeskDatabase]:
        tree = parsed(sql)
        named: set[str] = set()
        for table in relations(tree):
            if table.db.lower() != SCHEMA:
                raise Refusal(
                    "0A000",
                    f'a statement on {SCHEMA} rows reads nothing else, and this names "{table.name[:60]}"',
                    hint="Ask about each in a statement of its own, and join the answers in your program.",
                )
            table.set("catalog", None)
            named.add(table.name)
        return tree, self._database(sorted(named))

    def _database(self, names: Sequence[str]) -> DeskDatabase:
        paths = {name: self._path(name) for name in names}
        key = tuple((name, path.stat().st_mtime_ns) for name, path in paths.items())
        with self._lock:
            found = self._loaded.get(key)
            if found is None:
                found = DeskDatabase({(SCHEMA, name): _rows(path) for name, path in paths.items()})
                self._loaded[key] = found
                while len(self._loaded) > MOST_LOADED:
                    self._loaded.popitem(last=False)
            else:
                self._loaded.move_to_end(key)
            return found

    def _path(self, name: str) -> Path:
        try:
            return self._releases.file(name, SYNTHETIC)[0]
        except Problem:
            known = [one["name"] for one in self._releases.listed() if SYNTHETIC in one["files"]]
            listed = ", ".join(f'{SCHEMA}."{other}"' for other in known[:10]) or "no release yet"
            raise Refusal(
                "42P01", f'relation "{SCHEMA}.{name[:60]}" does not exist', hint=f"There is {listed}."
            ) from None


def _rows(path: Path) -> Rows:
    import pyarrow.parquet as parquet  # untyped, and slow to load: most statements are not about these rows

    about: Any = parquet.ParquetFile(path)
    cells = about.metadata.num_rows * about.metadata.num_columns
    if cells > MOST_CELLS:
        raise Refusal(
            "54000",
            f"the synthetic table has {cells:,} cells; at most {MOST_CELLS:,} are offered for SQL",
            hint="Download it over HTTP: /v1/releases says where.",
        )
    table = about.read()
    columns = [
        (name, type_of_arrow(str(kind)))
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
    ]
    values = [column.to_pylist() for column in table.columns]
    return Rows.of(columns, list(zip(*values, strict=True)))


def type_of_arrow(kind: str) -> str:
    """The name in Postgres of a type of Arrow."""
    if kind.startswith(("int", "uint")):
        return "int4" if kind in ("int8", "int16", "int32", "uint8", "uint16") else "int8"
    if kind.startswith(("float", "double", "half")):
        return "float8"
    if kind.startswith("timestamp"):
        return "timestamp"
    return {"bool": "bool", "date32[day]": "date"}.get(kind, "text")
