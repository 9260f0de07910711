"""The rows of the emulated catalog: the facts of Postgres 15, and those that a few served tables add to them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.desk.postgres_type import TYPES
from understudy.desk.rows import RowColumn, Rows
from understudy.server.pg.catalog.facts import facts
from understudy.server.pg.catalog.kinds import REFERENCES, Kind

CUSTODIAN = 10
"""The number of the role that owns everything."""
ANALYST = 16383
"""The number of the role that asks, whoever that is."""
DATABASE = 16384
SYNTHETIC = 16385
"""The number of the schema of synthetic tables."""
_FIRST_TABLE = 20_000
_SCHEMAS = {"public": 2200, "synthetic": SYNTHETIC}
_HEAP = 2


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column of a served table: its name, the name of its type in `pg_type`, and what the declaration says."""

    name: str
    type: str
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as programs see it: a declared one in the schema `public`, or a release's in `synthetic`."""

    schema: str
    name: str
    columns: tuple[CatalogColumn, ...]
    comment: str = ""


class CatalogRelations:
    """Every relation of the catalog with its rows, and the numbers by which objects are found."""

    def __init__(self, tables: Sequence[CatalogTable], *, database: str) -> None:
        held = facts()
        self.database = database
        self._columns = held.relations["pg_catalog"]
        self._rows = {name: list(zip(*rows, strict=True)) for name, rows in held.rows.items()}
        self.formats = dict(held.formats)
        self.oids = _numbered(tables)
        self._shared()
        for table in tables:
            self._table(table)
        self.relations: dict[tuple[str, str], int] = self._relations()
        self.types = self._types()
        self.functions = self._by_name("pg_proc", "proname")
        names = [row[self._place("pg_proc", "proname")] for row in self._rows["pg_proc"]]
        self.overloaded = {name for name, count in Counter(names).items() if count > 1}
        self.namespaces = self._by_name("pg_namespace", "nspname")
        self.roles = self._by_name("pg_roles", "rolname")

    def value(self, relation: str, row: Sequence[Any], column: str) -> Any:
        """A value of a row of `pg_catalog`."""
        return row[self._place(relation, column)]

    def tables(self) -> Mapping[tuple[str, str], Rows]:
        """Every relation of `pg_catalog` that is no view of ours, and those behind functions, for a desk."""
        found = {
            ("pgc", name): Rows(
                tuple(RowColumn(column, stored(kind)) for column, kind in columns), self._held(name)
            )
            for name, columns in self._columns.items()
        }
        held = facts()
        found["pgc", "us_formats"] = Rows.of([("oid", "oid"), ("name", "text")], list(self.formats.items()))
        definition = [("oid", "oid"), ("text", "text"), ("pretty", "text")]
        found["pgc", "us_indexes"] = Rows.of(definition, held.indexes)
        found["pgc", "us_constraints"] = Rows.of(definition, held.constraints)
        found["pgc", "us_functions"] = Rows.of(
            [("oid", "oid"), ("arguments", "text"), ("identity", "text"), ("result", "text")], held.functions
        )
        found["pgc", "us_keywords"] = Rows.of(
            [
                ("word", "text"),
                ("catcode", "text"),
                ("barelabel", "bool"),
                ("catdesc", "text"),
                ("baredesc", "text"),
            ],
            held.keywords,
        )
        return found

    # ---- what is found by name

    def _relations(self) -> dict[tuple[str, str], int]:
        schemas = {oid: name for name, oid in self._by_name("pg_namespace", "nspname").items()}
        name, schema = self._place("pg_class", "relname"), self._place("pg_class", "relnamespace")
        return {(schemas[row[schema]], row[name]): row[0] for row in self._rows["pg_class"]}

    def _types(self) -> dict[str, int]:
        """Types by what a cast to `regtype` reads: the name in SQL, or the name in `pg_type`."""
        name, schema = self._place("pg_type", "typname"), self._place("pg_type", "typnamespace")
        visible = (_SCHEMAS["public"], 11)
        known = {row[name]: row[0] for row in self._rows["pg_type"] if row[schema] in visible}
        return known | {text: oid for oid, text in self.formats.items()} | {"char": 18}

    def _by_name(self, relation: str, column: str) -> dict[str, int]:
        name, oid = self._place(relation, column), self._place(relation, "oid")
        return {row[name]: row[oid] for row in reversed(self._rows[relation]) if row[name] is not None}

    # ---- rows

    def _held(self, name: str) -> list[tuple[Any, ...]]:
        return self._rows.get(name, [])

    def _place(self, relation: str, column: str) -> int:
        return next(place for place, (name, _) in enumerate(self._columns[relation]) if name == column)

    def _put(self, relation: str, like: Mapping[str, Any] | None = None, **values: Any) -> None:
        whole = {**(like or {}), **values}
        self._rows.setdefault(relation, []).append(
            tuple(whole.get(name) for name, _ in self._columns[relation])
        )

    def _like(self, relation: str, oid: int) -> dict[str, Any]:
        """The row of that number, to be put again with other values."""
        names = [name for name, _ in self._columns[relation]]
        row = next(row for row in self._rows[relation] if row[names.index("oid")] == oid)
        return dict(zip(names, row, strict=True))

    def _shared(self) -> None:
        """What a database has besides tables: itself, its schemas and its roles."""
        self._rows["pg_shdescription"] = []
        self._put(
            "pg_database", oid=DATABASE, datname=self.database, datdba=CUSTODIAN, encoding=6, datlocprovider="c",
            datistemplate=False, datallowconn=True, datconnlimit=-1, datfrozenxid=716, datminmxid=1,
            dattablespace=1663, datcollate="C", datctype="C",
        )  # fmt: skip
        self._put(
            "pg_namespace", oid=SYNTHETIC, nspname="synthetic", nspowner=CUSTODIAN,
            nspacl=["custodian=UC/custodian", "=U/custodian"],
        )  # fmt: skip
        self._put("pg_roles", self._like("pg_roles", CUSTODIAN), oid=ANALYST, rolname=None, rolsuper=False,
                  rolcreaterole=False, rolcreatedb=False, rolreplication=False, rolbypassrls=False)  # fmt: skip

    def _table(self, table: CatalogTable) -> None:
        oid = self.oids[table.schema, table.name]
        schema = _SCHEMAS[table.schema]
        self._put("pg_class", _CLASS, oid=oid, relname=table.name, relnamespace=schema, reltype=oid + 2,
                  relfilenode=oid, relnatts=len(table.columns))  # fmt: skip
        row_type = {
            **self._like("pg_type", _A_ROW_TYPE),
            "typnamespace": schema,
            "typrelid": oid,
            "typacl": None,
        }
        self._put("pg_type", row_type, oid=oid + 2, typname=table.name, typarray=oid + 1)
        array = {**self._like("pg_type", _AN_ARRAY_TYPE), "typnamespace": schema, "typacl": None}
        self._put("pg_type", array, oid=oid + 1, typname=f"_{table.name}"[:63], typelem=oid + 2)
        name = (
            _identifier(table.name)
            if table.schema == "public"
            else f"{table.schema}.{_identifier(table.name)}"
        )
        self.formats |= {oid + 2: name, oid + 1: f"{name}[]"}
        for number, attribute in _SYSTEM_COLUMNS.items():
            self._put("pg_attribute", _ATTRIBUTE | attribute, attrelid=oid, attnum=number)
        for number, column in enumerate(table.columns, 1):
            self._column(oid, number, column)
        if table.comment:
            self._put(
                "pg_description", objoid=oid, classoid=_CLASS_OID, objsubid=0, description=table.comment
            )

    def _column(self, oid: int, number: int, column: CatalogColumn) -> None:
        kind = self._like("pg_type", TYPES[column.type].oid)
        self._put(
            "pg_attribute", _ATTRIBUTE, attrelid=oid, attname=column.name, atttypid=kind["oid"], attnum=number,
            attlen=kind["typlen"], attbyval=kind["typbyval"], attalign=kind["typalign"], attstattarget=-1,
            attstorage=kind["typstorage"], attnotnull=not column.nullable, attcollation=kind["typcollation"],
        )  # fmt: skip
        if column.comment:
            self._put(
                "pg_description", objoid=oid, classoid=_CLASS_OID, objsubid=number, description=column.comment
            )


def stored(kind: Kind) -> Any:
    """The type by which a column of the catalog is held: references are numbers, unknown types text."""
    if kind in REFERENCES:
        return TYPES["oid"]
    if kind.startswith("_") and kind[1:] in REFERENCES:
        return TYPES["_oid"]
    return TYPES.get(kind, TYPES["text"])


def _numbered(tables: Iterable[CatalogTable]) -> dict[tuple[str, str], int]:
    """A number for each table that stays the same while others come and go: three in a row are its own."""
    found: dict[tuple[str, str], int] = {}
    taken: set[int] = set()
    for table in tables:
        place = zlib.crc32(f"{table.schema}.{table.name}".encode()) % 100_000_000
        while place in taken:
            place = (place + 1) % 100_000_000
        taken.add(place)
        found[table.schema, table.name] = _FIRST_TABLE + 4 * place
    return found


def _identifier(name: str) -> str:
    plain = (
        name.isascii()
        and name.replace("_", "a").isalnum()
        and name == name.lower()
        and not name[:1].isdigit()
    )
    return name if plain else '"' + name.replace('"', '""') + '"'


_CLASS_OID = 1259
_A_ROW_TYPE = 71
"""The row type of `pg_type`, which other row types resemble."""
_AN_ARRAY_TYPE = 210
"""The array type of `pg_type`."""
_CLASS: dict[str, Any] = {
    "reloftype": 0, "relowner": CUSTODIAN, "relam": _HEAP, "reltablespace": 0, "relpages": 0, "reltuples": -1.0,
    "relallvisible": 0, "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": "p",
    "relkind": "r", "relchecks": 0, "relhasrules": False, "relhastriggers": False, "relhassubclass": False,
    "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True, "relreplident": "d",
    "relispartition": False, "relrewrite": 0, "relfrozenxid": 716, "relminmxid": 1,
    "relacl": ["custodian=arwdDxt/custodian", "=r/custodian"],
}  # fmt: skip
_ATTRIBUTE: dict[str, Any] = {
    "attstattarget": 0, "attndims": 0, "attcacheoff": -1, "atttypmod": -1, "attcompression": "",
    "atthasdef": False, "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False,
    "attislocal": True, "attinhcount": 0, "attcollation": 0, "attstorage": "p", "attnotnull": True,
}  # fmt: skip
_SYSTEM_COLUMNS: dict[int, dict[str, Any]] = {
    -1: {"attname": "ctid", "atttypid": 27, "attlen": 6, "attbyval": False, "attalign": "s"},
    -2: {"attname": "xmin", "atttypid": 28, "attlen": 4, "attbyval": True, "attalign": "i"},
    -3: {"attname": "cmin", "atttypid": 29, "attlen": 4, "attbyval": True, "attalign": "i"},
    -4: {"attname": "xmax", "atttypid": 28, "attlen": 4, "attbyval": True, "attalign": "i"},
    -5: {"attname": "cmax", "atttypid": 29, "attlen": 4, "attbyval": True, "attalign": "i"},
    -6: {"attname": "tableoid", "atttypid": 26, "attlen": 4, "attbyval": True, "attalign": "i"},
}
