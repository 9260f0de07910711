"""An emulated catalog of two tables, and a real Postgres with empty twins of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from own_postgres import own_postgres
from understudy.desk.desk import Desk, DeskLimits
from understudy.desk.rows import Rows
from understudy.server.pg.catalog.catalog import Catalog
from understudy.server.pg.catalog.relations import CatalogColumn, CatalogTable

TABLES = (
    CatalogTable(
        "public",
        "town",
        (
            CatalogColumn("age", "int4", comment="bins at 0, 5, …, 105"),
            CatalogColumn("sex", "text"),
            CatalogColumn("income", "float8"),
            CatalogColumn("moved_in", "date", comment="it's a date"),
            CatalogColumn("smoker", "bool", nullable=False),
        ),
        "an invented town",
    ),
    CatalogTable("synthetic", "town_2024", (CatalogColumn("age", "int4"), CatalogColumn("sex", "text"))),
)
_SQL = {"int4": "integer", "text": "text", "float8": "double precision", "date": "date", "bool": "boolean"}


def statements() -> dict[str, list[str]]:
    """By program, what it was recorded to send about a catalog, and what was written in its manner.

    `{town}`, `{release}` and others stand for numbers of objects.
    """
    here = Path(__file__).parent / "server" / "catalog"
    found: dict[str, list[str]] = json.loads((here / "recorded.json").read_text())
    program = ""
    for line in (here / "written.sql").read_text().splitlines():
        if line.startswith("-- "):
            program = line[3:]
        elif line:
            found.setdefault(program, []).append(line.rstrip(";"))
    return found


@dataclass(frozen=True)
class Emulated:
    """The catalog and the desk that answers for it."""

    catalog: Catalog
    desk: Desk

    def answer(self, sql: str, user: str = "ada", **settings: str) -> Rows:
        return self.catalog.prepared(sql, user=user, settings=settings).answer(self.desk)

    def numbers(self) -> dict[str, int]:
        """The numbers of objects that are not the same in every database."""
        town, release = (self.catalog.relations.oids[table.schema, table.name] for table in TABLES)
        return {
            "town": town, "town_array": town + 1, "town_type": town + 2, "release": release,
            "release_array": release + 1, "release_type": release + 2, "database": 16384, "schema": 16385,
            "analyst": 16383,
        }  # fmt: skip


@pytest.fixture(scope="session")
def emulated() -> Iterator[Emulated]:
    with Desk(DeskLimits(seconds=10.0, processes=1)) as desk:
        yield Emulated(Catalog(TABLES), desk)


class Twin:
    """A real Postgres in which the same tables were created, and an analyst who may read them."""

    def __init__(self, connection: Any, refusal: type[Exception]) -> None:
        self.connection = connection
        self.refusal = refusal
        self.toast = {
            int(row[0])
            for row in self._rows("SELECT oid FROM pg_class WHERE relnamespace = 99 AND oid > 16383")
        }

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql.encode()).fetchall()

    def answer(self, sql: str) -> tuple[list[tuple[str, int]], list[tuple[Any, ...]]]:
        """The columns, as names and numbers of types, and the rows."""
        cursor = self.connection.execute(sql.encode())
        return [(column.name, column.type_code) for column in cursor.description], cursor.fetchall()

    def numbers(self) -> dict[str, int]:
        (row,) = self._rows(
            """SELECT t.oid::int8, t.reltype::int8, a.typarray::int8,
                      s.oid::int8, s.reltype::int8, b.typarray::int8,
                      (SELECT oid::int8 FROM pg_database WHERE datname = 'understudy'),
                      'synthetic'::regnamespace::oid::int8, 'ada'::regrole::oid::int8
               FROM pg_class t JOIN pg_type a ON a.oid = t.reltype, pg_class s JOIN pg_type b ON b.oid = s.reltype
               WHERE t.oid = 'town'::regclass AND s.oid = 'synthetic.town_2024'::regclass"""
        )
        keys = "town town_type town_array release release_type release_array database schema analyst"
        return dict(zip(keys.split(), row, strict=True))


@pytest.fixture(scope="session")
def twin() -> Iterator[Twin]:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    with own_postgres(
        superuser="custodian", fsync="off", shared_buffers="16MB", timezone="UTC", jit="off"
    ) as server:
        with psycopg.connect(server.url_of("custodian", "postgres"), autocommit=True) as first:
            first.execute(
                "CREATE DATABASE understudy TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            first.execute("CREATE ROLE ada LOGIN")
        with psycopg.connect(server.url_of("custodian", "understudy"), autocommit=True) as owner:
            owner.execute("CREATE SCHEMA synthetic")
            owner.execute("GRANT USAGE ON SCHEMA synthetic TO public")
            for table in TABLES:
                _create(owner, table)
            for other in ("postgres", "template0", "template1"):  # a server has one database
                owner.execute(f"ALTER DATABASE {other} IS_TEMPLATE false")
                owner.execute(f"DROP DATABASE {other} WITH (FORCE)")
        with psycopg.connect(server.url_of("ada", "understudy"), autocommit=True) as connection:
            yield Twin(connection, psycopg.Error)


def _create(owner: Any, table: CatalogTable) -> None:
    name = f"{table.schema}.{table.name}"
    columns = ", ".join(
        f"{one.name} {_SQL[one.type]}{'' if one.nullable else ' NOT NULL'}" for one in table.columns
    )
    owner.execute(f"CREATE TABLE {name} ({columns})")
    owner.execute(f"GRANT SELECT ON {name} TO public")
    comments = {f"TABLE {name}": table.comment} | {
        f"COLUMN {name}.{one.name}": one.comment for one in table.columns
    }
    for what, comment in comments.items():
        if comment:
            owner.execute(f"COMMENT ON {what} IS '{comment.replace(chr(39), chr(39) * 2)}'")
