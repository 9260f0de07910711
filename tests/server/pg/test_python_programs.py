"""Programs that people use from Python: each reads the catalog in its own way, and gets the same rows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from served_wire import BY_SEX, WireTown

YOUNG = "SELECT sex, count(*) AS n FROM town WHERE age < {} AND district = {} GROUP BY sex ORDER BY sex"


@pytest.fixture(scope="module")
def by_sex(town: WireTown) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(town.dsn()) as connection:
        return connection.execute(BY_SEX).fetchall()


@pytest.fixture(scope="module")
def young(town: WireTown) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(town.dsn()) as connection:
        return connection.execute(YOUNG.format("%s", "%s"), (30, "Inkwharf")).fetchall()


def test_psycopg2(town: WireTown, by_sex: list[Any], young: list[Any]) -> None:
    import psycopg2

    connection = psycopg2.connect(town.dsn())
    try:
        cursor = connection.cursor()
        cursor.execute(BY_SEX)
        assert cursor.fetchall() == by_sex
        cursor.execute(YOUNG.format("%s", "%s"), (30, "Inkwharf"))
        assert cursor.fetchall() == young
        assert any("source" in notice for notice in connection.notices)
        named = connection.cursor("in parts")
        named.itersize = 1
        named.execute(BY_SEX)
        assert list(named) == by_sex
        with pytest.raises(psycopg2.errors.FeatureNotSupported) as refused:
            cursor.execute("SELECT max(age) FROM town")
        assert "quantile_disc" in refused.value.diag.message_hint
        connection.rollback()
        assert connection.get_parameter_status("server_version") == "15.0"
        cursor.execute("SELECT count(*) FROM town WHERE district IN %s", (("Inkwharf", "The Vale"),))
        assert cursor.fetchone()
    finally:
        connection.close()


def test_asyncpg(town: WireTown, by_sex: list[Any], young: list[Any]) -> None:
    import asyncpg

    async def main() -> None:
        connection = await asyncpg.connect(town.url())
        try:
            assert [tuple(row) for row in await connection.fetch(BY_SEX)] == by_sex
            rows = await connection.fetch(YOUNG.format("$1", "$2"), 30, "Inkwharf")
            assert [tuple(row) for row in rows] == young
            statement = await connection.prepare(YOUNG.format("$1", "$2"))
            assert [kind.name for kind in statement.get_parameters()] == ["int4", "text"]
            assert [(a.name, a.type.name) for a in statement.get_attributes()] == [
                ("sex", "text"),
                ("n", "float8"),
            ]
            some = "SELECT count(*) FROM town WHERE district = ANY($1::text[])"
            assert await connection.fetchval(some, ["Inkwharf"]) is not None
            async with connection.transaction():
                found = [tuple(row) async for row in connection.cursor(BY_SEX, prefetch=1)]
            assert found == by_sex
            with pytest.raises(asyncpg.UndefinedColumnError):
                await connection.fetch("SELECT count(*) FROM town WHERE agee < 30")
            assert await connection.fetchval("SELECT current_user") == "ada"
        finally:
            await connection.close()

    asyncio.run(main())


def test_pg8000(town: WireTown, by_sex: list[Any], young: list[Any]) -> None:
    import pg8000.native

    connection = pg8000.native.Connection(
        "ada", host="127.0.0.1", port=town.port, password=town.tokens["ada"], database="understudy"
    )
    try:
        assert [tuple(row) for row in connection.run(BY_SEX)] == by_sex
        rows = connection.run(YOUNG.format(":age", ":place"), age=30, place="Inkwharf")
        assert [tuple(row) for row in rows] == young
        with pytest.raises(pg8000.native.DatabaseError, match="0A000"):
            connection.run("SELECT max(age) FROM town")
    finally:
        connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy_reflects_and_selects(town: WireTown, driver: str) -> None:
    engine = sa.create_engine(town.url(driver=f"postgresql+{driver}"))
    try:
        found = sa.inspect(engine)
        assert found.get_table_names() == ["town"]
        assert {"information_schema", "public", "synthetic"} == set(found.get_schema_names())
        assert found.get_table_names(schema="synthetic") == ["spring"]
        columns = {column["name"]: column for column in found.get_columns("town")}
        kinds = {name: str(column["type"]) for name, column in columns.items()}
        assert kinds == {
            "age": "INTEGER", "sex": "TEXT", "district": "TEXT", "smoker": "BOOLEAN", "moved_in": "DATE",
            "income": "DOUBLE PRECISION",
        }  # fmt: skip
        assert columns["age"]["comment"] == "bins at 0, 10, 20, 30, 40, 50, …, 100"
        assert columns["sex"]["comment"] == "one of F, M"
        assert found.get_pk_constraint("town")["constrained_columns"] == []
        assert found.get_foreign_keys("town") == found.get_indexes("town") == []
        assert found.get_unique_constraints("town") == found.get_check_constraints("town") == []
        assert "private" in (found.get_table_comment("town")["text"] or "")
        assert found.has_table("town")
        assert not found.has_table("tawn")
        table = sa.Table("town", sa.MetaData(schema="public"), autoload_with=engine)
        with engine.connect() as connection:
            select = (
                sa.select(table.c.sex, sa.func.count().label("n"))
                .where(
                    table.c.age < 30, table.c.district.in_(["Inkwharf", "The Vale"]), table.c.smoker.is_(True)
                )
                .group_by(table.c.sex)
                .order_by(sa.desc("n"))
            )
            assert len(connection.execute(select).all()) >= 2
            inner = (
                sa.select(table.c.district, sa.func.count().label("n")).group_by(table.c.district).subquery()
            )
            shares = sa.select(inner.c.district, (inner.c.n / sa.func.sum(inner.c.n).over()).label("share"))
            assert sum(share for _, share in connection.execute(shares)) == pytest.approx(1)
            with pytest.raises(sa.exc.DBAPIError):
                connection.execute(sa.select(table).limit(5))
    finally:
        engine.dispose()


def test_pandas_and_ibis(town: WireTown, by_sex: list[Any]) -> None:
    import ibis
    import pandas as pd

    engine = sa.create_engine(town.url(driver="postgresql+psycopg"))
    try:
        frame = pd.read_sql(BY_SEX, engine)
        assert list(frame.columns) == ["sex", "n", "years"]
        assert str(frame["n"].dtype) == "float64"
        assert frame["n"].tolist() == [row[1] for row in by_sex]
        wanted = "SELECT district, count(*) AS n FROM town WHERE age < %(age)s GROUP BY district"
        assert len(pd.read_sql(wanted, engine, params={"age": 30})) >= 4
    finally:
        engine.dispose()
    connection = ibis.postgres.connect(
        host="127.0.0.1", port=town.port, user="ada", password=town.tokens["ada"], database="understudy"
    )
    try:
        table = connection.table("town")
        assert dict(table.schema())["moved_in"].is_date()
        young = table.filter(table.age < 30)
        found = young.group_by("sex").aggregate(n=young.count()).to_pyarrow()
        assert set(found["sex"].to_pylist()) >= {"F", "M"}
    finally:
        connection.disconnect()


def test_polars_and_connectorx_read_columns(town: WireTown, by_sex: list[Any]) -> None:
    import connectorx
    import polars as pl

    frame = pl.read_database_uri(BY_SEX, town.url(), engine="adbc")
    assert frame.rows() == by_sex
    assert frame.schema == {"sex": pl.String, "n": pl.Float64, "years": pl.Float64}
    for protocol in ("binary", "csv", "cursor"):
        read = connectorx.read_sql(town.url(), BY_SEX, protocol=protocol, return_type="polars")
        assert sorted(read.rows()) == sorted(by_sex), protocol


def test_pgcli(town: WireTown, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pgcli")
    if not program.exists():
        pytest.skip("pgcli is not installed: pip install pgcli")
    told = subprocess.run(
        [program, town.url(), "--less-chatty"],
        input=BY_SEX + ";\n\\dt\n\\q\n", capture_output=True, text=True, timeout=60,
        env=os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PAGER": "cat", "TERM": "dumb"},
    )  # fmt: skip
    assert "years" in told.stdout, told.stderr[-2000:]
    assert "town" in told.stdout
