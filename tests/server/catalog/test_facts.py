"""The facts that the emulated catalog is made of are those of a real Postgres 15."""

from __future__ import annotations

import psycopg
import pytest

from catalog_facts import KEPT, read
from own_postgres import own_postgres
from understudy.server.pg.catalog.facts import facts
from understudy.server.pg.catalog.functions import FORMS
from understudy.server.pg.catalog.views import VIEWS


@pytest.mark.slow("reads the whole catalog of a Postgres server")
def test_the_facts_are_those_of_a_server():
    with own_postgres(fsync="off") as server:
        with psycopg.connect(server.url) as first:
            if first.info.server_version // 10_000 != 15:
                pytest.skip("UNDERSTUDY_AUDIT needs Postgres 15 here")
            first.execute("CREATE ROLE reader LOGIN")
        found = read(server.url_of("reader", "postgres"))
    held = facts()
    assert {schema: set(names) for schema, names in found["relations"].items()} == {
        schema: set(names) for schema, names in held.relations.items()
    }
    for name in ("pg_type", "pg_proc", "pg_operator", "pg_cast", "pg_namespace", "pg_am"):
        assert found["rows"][name] == held.rows[name], name
    assert found["keywords"] == held.keywords


def test_the_facts_hold_together():
    held = facts()
    for name in KEPT.split():
        columns, rows = held.relations["pg_catalog"][name], held.rows[name]
        assert len(columns) == len(rows)
        assert len({len(column) for column in rows}) == 1
    assert held.formats[23] == "integer"
    homes = {"pgc": "pg_catalog", "inf": "information_schema"}
    for schema, view in VIEWS:
        assert view in held.relations[homes[schema]] or view.startswith("us_")


def test_every_function_of_the_catalog_is_one_of_postgres():
    held = facts()
    names = [name for name, _ in held.relations["pg_catalog"]["pg_proc"]]
    known = set(held.rows["pg_proc"][names.index("proname")])
    helpers = ("_out", "setting_of")
    ours = {name for name in FORMS if not name.endswith(helpers) and not name.startswith("vector_")}
    assert ours - known <= {"pg_get_acl", "quote_nullable", "to_regproc"}
