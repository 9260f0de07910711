"""Facts about the catalog of Postgres 15, from a real server: `python tests/catalog_facts.py` reads them anew.

The emulated catalog shows what every database of that version holds: relations and their columns, types,
functions, operators and so on. They are read once, by an ordinary role, and kept in a file beside the code. What
belongs to a machine or an installation (paths, ports, statistics, locales) is left out, or replaced by what the
program is delivered with.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import psycopg

from own_postgres import own_postgres
from understudy.server.pg.catalog import facts

KEPT = """
pg_aggregate pg_am pg_attribute pg_auth_members pg_cast pg_class pg_collation pg_constraint pg_conversion
pg_depend pg_description pg_extension pg_index pg_language pg_namespace pg_opclass pg_operator pg_opfamily
pg_proc pg_range pg_roles pg_settings pg_shdescription pg_tablespace pg_ts_config pg_ts_dict pg_ts_parser
pg_ts_template pg_type
"""
"""Relations whose rows are the same in every database of the version. Of the others only the columns are kept."""

_KEYS = {
    "pg_aggregate": "aggfnoid",
    "pg_attribute": "attrelid",
    "pg_auth_members": "roleid",
    "pg_depend": "objid",
    "pg_description": "objoid",
    "pg_index": "indexrelid",
    "pg_range": "rngtypid",
    "pg_settings": "name",
    "pg_shdescription": "objoid",
}
_ORDER = {"pg_attribute": "attrelid, attnum", "pg_description": "objoid, classoid, objsubid"}
_FIRST_OWN_OID = 16384
_LOCALES = (100, 950, 951)
"""The collations that do not depend on the machine."""
_CASTS = {
    "oid": "{}::int8", "regproc": "{}::oid::int8", "regtype": "{}::oid::int8", "xid": "{}::text::int8",
    "char": "{}::text", "name": "{}::text", "int2vector": "{}::int2[]", "oidvector": "{}::oid[]::int8[]",
    "_oid": "{}::int8[]", "_regtype": "{}::oid[]::int8[]", "_char": "{}::text[]", "_aclitem": "{}::text[]",
    "_name": "{}::text[]", "float4": "{}::float8", "pg_node_tree": "NULL", "anyarray": "NULL", "bytea": "NULL",
    "timestamptz": "{}::text", "interval": "{}::text",
}  # fmt: skip
_BASE = {"information_schema": {"cardinal_number": "int4", "character_data": "varchar", "sql_identifier": "name",
                                "time_stamp": "timestamptz", "yes_or_no": "varchar"}}  # fmt: skip


def read(url: str) -> dict[str, Any]:
    """The facts, as one role without rights of its own sees them."""
    with psycopg.connect(url) as connection:
        relations = _relations(connection)
        return {
            "relations": relations,
            "rows": {name: _rows(connection, name, relations["pg_catalog"][name]) for name in KEPT.split()},
            **{name: _all(connection, sql) for name, sql in _COMPUTED.items()},
        }


_COMPUTED = {
    "formats": "SELECT oid::int8, format_type(oid, NULL) FROM pg_type WHERE oid < 16384 ORDER BY 1",
    "indexes": "SELECT indexrelid::int8, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true) "
    "FROM pg_index ORDER BY 1",
    "constraints": "SELECT oid::int8, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) "
    "FROM pg_constraint ORDER BY 1",
    "functions": "SELECT oid::int8, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), "
    "pg_get_function_result(oid) FROM pg_proc WHERE oid < 16384 ORDER BY 1",
    "keywords": "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords() ORDER BY 1",
}
"""What functions say about objects, which the emulation looks up."""


def _all(connection: psycopg.Connection[Any], sql: str) -> list[list[Any]]:
    return [list(row) for row in connection.execute(sql.encode()).fetchall()]


def _relations(connection: psycopg.Connection[Any]) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """The columns of every relation of the two schemas, each with the name of its type; of a domain, its base."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = {"information_schema": {}, "pg_catalog": {}}
    for schema, relation, column, home, kind in connection.execute(
        """SELECT n.nspname, c.relname, a.attname, tn.nspname, t.typname
           FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
           JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
           WHERE n.nspname IN ('information_schema', 'pg_catalog') AND c.relkind IN ('r', 'v') AND a.attnum > 0
           ORDER BY n.nspname, c.relname, a.attnum"""
    ).fetchall():
        base = str(_BASE.get(home, {}).get(kind, kind))
        found[schema].setdefault(relation, []).append((column, base))
    return found


def _rows(
    connection: psycopg.Connection[Any], relation: str, columns: list[tuple[str, str]]
) -> list[list[Any]]:
    """The rows, column by column."""
    key = _KEYS.get(relation, "oid")
    shown = ", ".join(_CASTS.get(kind, "{}").format(f'"{name}"') for name, kind in columns)
    for deparsed in ("proargdefaults", "typdefaultbin"):
        if deparsed in dict(columns):
            place = [name for name, _ in columns].index(deparsed)
            shown = ", ".join(
                f'pg_get_expr("{deparsed}", 0)' if number == place else part
                for number, part in enumerate(shown.split(", "))
            )
    where = "TRUE" if relation == "pg_settings" else f"{key}::oid < {_FIRST_OWN_OID}"
    if relation == "pg_depend":
        where += " AND deptype = 'e'"
    if relation == "pg_collation":
        where += f" AND oid IN {_LOCALES}"
    if relation == "pg_description":
        where += " AND (classoid <> 'pg_collation'::regclass)"
    if relation == "pg_constraint":
        where += " AND conrelid < 16384"
    rows = _all(
        connection, f"SELECT {shown} FROM {relation} WHERE {where} ORDER BY {_ORDER.get(relation, key)}"
    )
    if relation == "pg_settings":
        rows = [_default(dict(zip((name for name, _ in columns), row, strict=True))) for row in rows]
    return [[_own(value) for value in column] for column in zip(*rows, strict=True)] or [[] for _ in columns]


def _default(setting: dict[str, Any]) -> list[Any]:
    """A setting as the program is delivered, whatever this machine's file says."""
    if setting["boot_val"] is not None:
        setting |= {"setting": setting["boot_val"], "reset_val": setting["boot_val"], "source": "default"}
    return list(setting.values())


def _own(value: Any) -> Any:
    """The superuser of the tests' server under the name that a custodian has."""
    if isinstance(value, list):
        return [_own(part) for part in value]
    if isinstance(value, str) and "understudy" in value:
        return value.replace("understudy", "custodian")
    return value


def write(found: dict[str, Any], path: Path) -> None:
    """Write the facts; the same facts make the same file."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    with own_postgres(fsync="off") as server:
        with psycopg.connect(server.url) as first:
            first.execute("CREATE ROLE reader LOGIN")
        write(
            read(server.url.replace("understudy@", "reader@")),
            Path(facts.__file__).with_name("postgres15.json.gz"),
        )
    sys.stdout.write(f"{Path(facts.__file__).with_name('postgres15.json.gz').stat().st_size:,} bytes\n")
