"""The catalog that a server shows: its declared tables, and the synthetic tables of its releases.

Columns bear comments that say where they can be compared or what values they have, so that programs which show
comments show what can be asked. The catalog is made anew where a table was declared anew, or a release was added.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from understudy.desk.desk import Desk
from understudy.desk.postgres_type import TYPES_BY_OID
from understudy.desk.rows import RowColumn, Rows
from understudy.domain.attribute import Attribute, Categories
from understudy.domain.bins import Bins
from understudy.errors import LedgerError, SourceError
from understudy.project import Project
from understudy.releases.files import SYNTHETIC
from understudy.server.pg.catalog.catalog import Catalog
from understudy.server.pg.catalog.relations import CatalogColumn, CatalogTable
from understudy.server.pg.catalog.session_facts import SessionFacts
from understudy.server.pg.routing import PublicResult, attribute_type
from understudy.server.pg.synthetic import SCHEMA, type_of_arrow
from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases
from understudy.server.served_tables import ServedTables

MOST_NAMED = 8
"""Edges or values that a comment names."""


class ServedCatalog:
    """The catalog of served tables and releases, answered by a desk."""

    def __init__(self, served: ServedTables, releases: ServedReleases, desk: Desk) -> None:
        self._served = served
        self._releases = releases
        self._desk = desk
        self._lock = threading.Lock()
        self._made_of: tuple[Any, ...] = ()
        self._catalog: Catalog | None = None
        self._tables: dict[str, CatalogTable] = {}

    @property
    def catalog(self) -> Catalog:
        """The catalog as things stand now."""
        generations = tuple(table.generation for table in self._served.tables.values())
        releases = tuple(
            (one["name"], self._releases.file(one["name"], SYNTHETIC)[0])
            for one in self._releases.listed()
            if SYNTHETIC in one["files"]
        )
        made_of = (generations, releases)
        with self._lock:
            if self._catalog is None or made_of != self._made_of:
                tables = [self._private(name) for name in self._served.tables]
                found = (_synthetic(name, path) for name, path in releases)
                self._catalog = Catalog([*tables, *(table for table in found if table is not None)])
                self._made_of = made_of
            return self._catalog

    def start(self) -> None:
        """Have the desk load the catalog in the background."""
        self._desk.start([self.catalog.database])

    def describe(self, sql: str, user: str, settings: Mapping[str, str]) -> Sequence[RowColumn]:
        """The columns of a statement, which is not run."""
        return self.catalog.prepared(sql, user=user, settings=settings).describe(self._desk)

    def answer(self, sql: str, user: str, settings: Mapping[str, str]) -> PublicResult:
        """The rows of a statement, and the settings that it makes by `set_config`."""
        catalog = self.catalog
        rows: Rows = catalog.prepared(sql, user=user, settings=settings).answer(self._desk)
        if "set_config" not in sql.lower():
            return PublicResult(rows)
        facts = SessionFacts(user, catalog.database_name, settings)
        return PublicResult(rows, catalog.rewritten(sql, facts).settings)

    def _private(self, name: str) -> CatalogTable:
        """A declared table; as it was last seen where it cannot be opened now."""
        try:
            with self._served.tables[name].use() as opened:
                self._tables[name] = _declared(opened.project)
        except (LedgerError, SourceError, Problem):
            pass
        return self._tables.get(name) or CatalogTable("public", name, ())


def _declared(project: Project) -> CatalogTable:
    declared = project.declaration
    columns = tuple(
        CatalogColumn(
            attribute.name,
            TYPES_BY_OID[attribute_type(attribute)].name,
            nullable=attribute.null,
            comment=_comment(attribute),
        )
        for attribute in project.domain
    )
    comment = f"private: aggregates only, every answer is paid from one budget, {declared.budget}"
    return CatalogTable("public", declared.name, columns, comment)


def _comment(attribute: Attribute) -> str:
    if isinstance(attribute, Bins):
        edges = [_edge(edge) for edge in (*attribute.starts, attribute.upper)]
        return f"bins at {_named(list(dict.fromkeys(edges)))}"
    if isinstance(attribute, Categories):
        return f"one of {_named([str(value) for value in attribute.values])}"
    return f"one of {_named(list(attribute.labels))}"


def _edge(edge: object) -> str:
    return str(int(edge)) if isinstance(edge, float) and edge.is_integer() else str(edge)


def _named(words: list[str]) -> str:
    if len(words) <= MOST_NAMED:
        return ", ".join(words)
    return f"{', '.join(words[: MOST_NAMED - 2])}, …, {words[-1]}"


def _synthetic(name: str, path: Path) -> CatalogTable | None:
    """A release's synthetic table; None where its file cannot be read."""
    try:
        schema: Any = parquet.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    columns = tuple(
        CatalogColumn(field.name, type_of_arrow(str(field.type)), comment="synthetic") for field in schema
    )
    return CatalogTable(SCHEMA, name, columns, f"synthetic rows of the release {name}: nobody's data")
