"""One table in DuckDB, Postgres and Spark: all must put every value into the same cell, and count alike."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.declaration.declaration import Counting, SourceSpec, Unit
from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.date_format import DateFormat
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table import truth as truth_module
from understudy.table.source import Source, open_source
from understudy.table.spark_dialect import SPARK
from understudy.table.truth import Truth
from understudy.table.view_reader import ViewReader

pytestmark = [
    # Spark leaves sockets of its own to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TEXTS = [
    "a", "A", " a", "a ", "é", "e\u0301", "", "\u00a0", "it's", 'quo"te', "back\\slash", "new\nline",
    "v\x0bt", "vvt",
    "${x}", "$x", "🦊", "ﬁ", "fi", "%", "_", "null", "NULL", "tab\t", "\\n", "\x7f", "x\x0cy", "xfy", None,
]  # fmt: skip
NUMBERS = [
    "5", " 5 ", "\t5\n", "+5", "5.", ".5", "1e1", "1E+1", "1e999", "-1e999", "1e-999", "0e9999", "-0e5000",
    "nan", "NaN",
    "-nan", "inf", "-Infinity", "+inf", "infinity", "1_000", "1__0", "_1", "1_", "1d", "1f", "0x10",
    "0x1p3", "1,5", "",
    "-", "e5", "1e", "٣", "5 x", "--5", "1e1.5", "9" * 23, "9" * 400, "0." + "0" * 350 + "1", "\u00a05",
    "5\u2028", "- 5",
    "\x0b5", "\x0c5", "1e0000000001", "5\x00", None, "1e400", "-1e-400", "7e-310", "1_0e1_0", ".", "+",
    "true",
]  # fmt: skip
DAYS = [
    "2000-02-29", " 2000-02-29 ", "\t2000-02-29\n", "2000-2-9", "2000-02-30", "2001-02-29", "1900-02-29",
    "2000/02/29",
    "2000/2-9", "20000229", "2000-02-29 10:00:00", "2000-02-29T10:00:00", "2000-02-29 x", "29-02-2000",
    "+2000-02-29",
    "-2000-02-29", "0000-01-01", "99-01-01", "12345-01-01", "2000-01-01 (BC)", "infinity", "-infinity",
    "epoch",
    "2000 01 01", "2000\\01\\01", "2000-001-01", "2000-01-001", "2000-01", "2000", "", "2000-13-01",
    "2000-00-10",
    "2000-01-00", "2000-04-31", "1999-12-31", "2010-01-01", "٢٠٠٠-01-01", "2000-01-01\u2028", None,
    "Jan 1 2000",
]  # fmt: skip
WORDS = [
    "true", "TRUE", " Yes ", "\ty\n", "t", "f", "F", "\x0cno\x0b", "vtrue", "ftrue", "0", "1", "01",
    "so-so", "", " ",
    "falsef", "n", "N", "on", "1.0", None,
]  # fmt: skip
WRITTEN_DAYS = [
    "31/12/1999", "1/1/2000", "01/01/2000", " 29/02/2000 ", "29/02/1900", "30/02/2000", "12/31/1999", "1/1/00",
    "01-Jan-2000", "1-JAN-2000", "1-january-2000", "31 december 1999", "3 Mai 2000", "20000229", "2000229",
    "2000-02-29", "0000-00-00", "00/00/0000", "N/A", " N/A", "n/a", "-", "", " ", "31/12/1999 23:59",
    "31/12/1999 23:59:59", "31/12/1999  7:05", "31/12/1999x", "x31/12/1999", "31/12/99", "01/01/0000",
    "01/01/9999", "٣١/12/1999", "31/12/1999\n", "31//12/1999", "1/1/68", "1/1/69", "é", "e\u0301", "it's",
    "\\N", None,
]  # fmt: skip
AMOUNTS = [
    "€ 1.234,50", "1.234,50 €", "1234,5", "1.5", "1,5", "-€ 3", "€ -3", "-3,00", "+3", "1.23", "12.345",
    "1.234.567,00", "12.34.567,5", "1.2345", "1..234", ".234", ",5", "5,", "1,2,3", "1e3", "1,5e3", "nan", "inf",
    "NaN", "€", "", " ", "N/A", "-", "'; DROP TABLE x; --", "\\", "$1", "1 234", "€\u00a07,25", "7,25\t",
    "9" * 30, "0,0", "007", None,
]  # fmt: skip
RATES = [
    "13.5%", "13.5 %", "13.5", "%", "%%", "13%%", "13,5%", " 7% ", "-1%", "1e1%", "1%2", "inf%", "100%",
    "1,234.5%", "12,34,567%", "1,23", "N/A", "it's", "?", "é", "e\u0301", None,
]  # fmt: skip
REALS = [
    float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.1, np.nextafter(0.1, 0), np.nextafter(0.1, 1),
    5e-324, 1e308,
    -1e308, 7.25, np.nextafter(7.25, 8), -0.5, None,
]  # fmt: skip
WHOLE = [-(2**63), 2**63 - 1, 2**62, 2**62 + 5, 2**62 + 9, 2**62 + 10, 0, -1, 1, 7, 2**53 + 1, None]
SHORT = [-(2**15), 2**15 - 1, -8, -7, -3, -2, 0, 2, 3, 8, 9, 10, 11, None]
DECIMALS = [Decimal(text) for text in (
    "0", "0.1", "0.099999999999", "0.100000000001", "-99999999999999999999.5", "99999999999999999999.5",
    "7.25", "5",
)] + [None]  # fmt: skip
DATES = [
    dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1989, 12, 31), dt.date(1990, 1, 1), dt.date(2000, 2, 28),
    dt.date(2000, 2, 29), dt.date(2010, 1, 1), dt.date(2010, 1, 2), dt.date(9999, 12, 31), None,
]  # fmt: skip
TIMES = [
    dt.datetime(1989, 12, 31, 23, 59, 59, 999999), dt.datetime(1990, 1, 1), dt.datetime(2000, 2, 28, 23, 30),
    dt.datetime(2000, 2, 29, 0, 30), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 12), None,
]  # fmt: skip
MOMENTS = [
    dt.datetime(2024, 3, 1, 9, 29, 59, 999999), dt.datetime(2024, 3, 1, 9, 30), dt.datetime(2024, 3, 1,
    9, 30, 0, 1),
    dt.datetime(2024, 3, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 500000), dt.datetime(2024, 2, 29),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 58, 1),
    dt.datetime(1970, 1, 1),
    dt.datetime(1960, 2, 29, 12), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 3, 1, 18), dt.datetime(2024, 3, 1, 18, 0, 0, 900000), dt.datetime(2024, 3, 1, 18,
    0, 1), None,
]  # fmt: skip
"""Fractions of seconds, midnight, before 1970, leap days, and the second that the last bin ends with."""
WRITTEN_MOMENTS = [
    *(moment and moment.isoformat(" ") for moment in MOMENTS),
    *(moment and moment.isoformat() for moment in MOMENTS),
    "2024-03-01", "2024-3-1 9:30", "2024-03-01T09:30Z", "2024-03-01t11:30:00+02:00", "2024-03-01 11:29:59.9+0200",
    "2024-03-01 04:00:00 -05:30", "2024-02-29 23:30:00-09", "2023-02-29 10:00", "1900-02-29 10:00", "2024-02-30",
    "2024-03-01 24:00:00", "2024-03-01 09:60", "2024-03-01 09:30:60", "2024-03-01 9", "2024-03-01 09:30 UTC",
    "2024-03-01+02:00", "2024-03-01 09:30:00,7", "2024-03-01 09:30:00.", "2024-03-01 09:30+19:00",
    " 2024-03-01 09:30\t",
    "0000-01-01 00:00", "0001-01-01 00:00:00+02:00", "9999-12-31 23:59:59-02:00", "10000-01-01 00:00",
    "now", "epoch",
    "infinity", "", " ", "N/A", "2024-13-01", "2024-00-10", "2024-03-00", "2024/03/01 09:30", "٢٠٢٤-03-01", "é",
    "2024-03-01 09:30:00\n", "x2024-03-01", "2024-03-01 09:30:00.1234567891", "-2024-03-01",
    "2024-03-01  18:00:00",
]  # fmt: skip
CLOCKS = [
    "29/02/2024 09:30", "1/3/2024 9:30", "01/03/2024 09:30:00", "01/03/2024 12:05 AM",
    "1/3/2024 12:05 pm", "1/3/2024 9:29 am",
    "1/3/2024 6:00 PM", "1/3/2024 13:05 PM", "1/3/2024 0:05 AM", "01/03/2024 25:00",
    "01/03/2024 09:61", "30/02/2024 09:30",
    "01-Mar-2024 09:30:00.5 +0200", "01-mar-2024 11:30:00.999 +02:00", "01-Mar-2024 09:30:00.1 Z",
    "01-Mar-2024 09:30:00.1 +9900", "20240301093000", "20240301", "01/03/2024", "2024-03-01 09:30",
    "N/A", "", None,
]  # fmt: skip
MANY = tuple(f"district {i:04}" for i in range(1001))
EDGES = [dt.date(1990, 1, 1), dt.date(2000, 2, 29), dt.date(2010, 1, 1)]
MOMENT_EDGES = [
    dt.datetime(1960, 2, 29), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29),
    dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 1, 9, 30), dt.datetime(2024, 3, 1, 18),
]  # fmt: skip
REAL_EDGES = [-0.5, 0.0, 0.1, 7.25]
KNOWN = (
    "a",
    "é",
    "",
    "it's",
    'quo"te',
    "back\\slash",
    "new\nline",
    "v\x0bt",
    "${x}",
    "🦊",
    "fi",
    "%",
    "null",
    "x\x0cy",
)

COLUMNS: dict[str, tuple[list, pa.DataType, str]] = {
    "text": (TEXTS, pa.string(), "text"),
    "many": ([*MANY[::67], MANY[-1], "district", None], pa.string(), "text"),
    "number": ([None if t is not None and "\0" in t else t for t in NUMBERS], pa.string(), "text"),
    "day": (DAYS, pa.string(), "varchar(40)"),
    "word": (WORDS, pa.string(), "text"),
    "written day": (WRITTEN_DAYS, pa.string(), "text"),
    "amount": (AMOUNTS, pa.string(), "text"),
    "rate": (RATES, pa.string(), "text"),
    "digits": ([20000229, 20000230, 19991231, -1, 0, 20100101, None], pa.int32(), "int"),
    "real": (REALS, pa.float64(), "double precision"),
    "single": (REALS, pa.float32(), "real"),
    "whole": (WHOLE, pa.int64(), "bigint"),
    "short": (SHORT, pa.int16(), "smallint"),
    "decimal": (DECIMALS, pa.decimal128(38, 12), "numeric(38, 12)"),
    "date": (DATES, pa.date32(), "date"),
    "time": (TIMES, pa.timestamp("us"), "timestamp"),
    "zoned": (
        [None if t is None else t.replace(tzinfo=dt.UTC) for t in TIMES], pa.timestamp("us", "UTC"),
    "timestamptz",
    ),
    "flag": ([True, False, None], pa.bool_(), "boolean"),
    "moment": (MOMENTS, pa.timestamp("us"), "timestamp"),
    "zoned moment": (
        [None if t is None else t.replace(tzinfo=dt.UTC) for t in MOMENTS], pa.timestamp("us", "UTC"),
        "timestamptz",
    ),
    "written moment": (WRITTEN_MOMENTS, pa.string(), "text"),
    "clock": (CLOCKS, pa.string(), "text"),
}  # fmt: skip
ROWS = max(len(values) for values, _, _ in COLUMNS.values())


def _attributes() -> list[Attribute]:
    full = Categories(name="text", values=KNOWN, null=True)
    return [
        full,
        Categories(name="text null", column="text", values=KNOWN[:2], outside=Outside.NULL, null=True),
        Categories(name="many", values=MANY, null=True),
        Categories(name="whole word", column="whole", values=("0", "-1", str(2**63 - 1))),
        Categories(name="flag word", column="flag", values=("true", "false"), null=True),
        Bins(name="number", starts=(0, 5, 10, 1001), upper=10**6, outside=Outside.OTHER, null=True),
        Bins(name="number real", column="number", starts=(-1.0, 0.0, 5.5), upper=9.0, null=True),
        Bins(name="day", starts=tuple(EDGES[:-1]), upper=EDGES[-1], outside=Outside.OTHER, null=True),
        Bins(name="day clamped", column="day", starts=tuple(EDGES[:-1]), upper=EDGES[-1]),
        Boolean(name="word", null=True),
        Boolean(name="flag"),
        Boolean(name="short word", column="short", null=True),
        Boolean(name="real flag", column="real", null=True),
        Boolean(name="single flag", column="single"),
        Categories(name="real word", column="real", values=("0", "1", "-0", "inf", "0.1"), null=True),
        Bins.between("real", REAL_EDGES, outside=Outside.OTHER, null=True),
        Bins(name="real whole", column="real", starts=(0, 3), upper=10),
        Bins(name="single", starts=tuple(REAL_EDGES[:-1]), upper=REAL_EDGES[-1]),
        Bins.integers("whole", 2**62, 2**62 + 9),
        Bins(name="whole wide", column="whole", starts=(-(2**63), 0), upper=2**63 - 1),
        Bins(
            name="whole real", column="whole", starts=(-0.5, 0.5), upper=7.5, outside=Outside.NULL, null=True
        ),
        Bins(name="whole steps", column="whole", starts=tuple(range(-3, 12, 4)), upper=11),
        Bins.between("short", [-7, -2, 3, 8, 10], outside=Outside.OTHER, null=True),
        Bins(name="decimal", starts=tuple(REAL_EDGES[:-1]), upper=REAL_EDGES[-1], outside=Outside.OTHER),
        Bins(name="decimal whole", column="decimal", starts=(0, 5), upper=8, null=True),
        Bins(name="date", starts=tuple(EDGES[:-1]), upper=EDGES[-1], outside=Outside.OTHER, null=True),
        Bins(name="time", starts=tuple(EDGES[:-1]), upper=EDGES[-1], null=True),
        Bins(name="zoned", starts=tuple(EDGES[:-1]), upper=EDGES[-1]),
        *_instants(),
        *_taken_in(),
    ]


def _instants() -> list[Attribute]:
    """Moments of time, of columns of every type that can be read as such."""
    bins = {"starts": tuple(MOMENT_EDGES[:-1]), "upper": MOMENT_EDGES[-1]}
    other = {**bins, "outside": Outside.OTHER, "null": True}
    minutes = tuple(dt.datetime(2024, 2, 29) + dt.timedelta(hours=4 * i) for i in range(12))
    clocks = _formats(
        "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %I:%M %p", "%d-%b-%Y %H:%M:%S.%f %z",
        "%Y%m%d%H%M%S",
    )  # fmt: skip
    return [
        Instants(name="moment", **other),
        Instants(name="moment clamped", column="moment", **bins),
        Instants(
            name="equal minutes", column="moment", starts=minutes, upper=minutes[-1], step=60, null=True
        ),
        Instants(name="zoned moment", **other),
        Instants(name="moment of day", column="date", **other),
        Instants(name="moment of time", column="time", **bins),
        Instants(name="written moment", **other),
        Instants(name="written minutes", column="written moment", starts=minutes, upper=minutes[-1], step=60),
        Instants(name="clock", intake=Intake(clocks, ("N/A",)), **other),
        Instants(name="moment of digits", column="digits", intake=Intake(_formats("%Y%m%d")), **other),
        Instants(
            name="missing moment", column="moment", intake=Intake(missing=("2024-03-01 09:30", "x")), **other
        ),
        Bins(name="day of moment", column="moment", starts=tuple(EDGES[:-1]), upper=EDGES[-1], null=True),
    ]


def _formats(*texts: str) -> tuple[DateFormat, ...]:
    return tuple(DateFormat(text) for text in texts)


def _taken_in() -> list[Attribute]:
    """Attributes whose columns are written otherwise than the engines write."""
    tokens = ("N/A", "-", "0000-00-00", "é", "it's", "\\N", "${x}", "🦊", "%")
    days = {"starts": tuple(EDGES[:-1]), "upper": EDGES[-1], "outside": Outside.OTHER, "null": True}
    several = _formats("%d/%m/%Y", "%d-%b-%Y", "%d %B %Y", "%Y%m%d", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S")
    return [
        Bins(name="one format", column="written day", intake=Intake(_formats("%d/%m/%Y"), tokens), **days),
        Bins(name="formats", column="written day", intake=Intake(several, ("",)), **days),
        Bins(name="short years", column="written day", intake=Intake(_formats("%d/%m/%y", "%m/%d/%Y")), **days),
        Bins(name="day of digits", column="digits", intake=Intake(_formats("%Y%m%d"), ("-1", "x")), **days),
        Bins(name="missing day", column="date", intake=Intake(missing=("2000-02-29", "N/A")), **days),
        Bins(name="missing time", column="time", intake=Intake(missing=("2000-02-29",)), **days),
        Bins(
            name="amount", starts=(-5.0, 0.0, 3.0, 1000.0, 12345.0), upper=1e7, outside=Outside.OTHER, null=True,
            intake=Intake((), tokens, ("€", " ", "\u00a0"), ",", "."),
        ),
        Bins(
            name="grouped", column="amount", starts=(0.0, 2.0, 500.0), upper=1e7, null=True,
            intake=Intake(strip=("€",), thousands=" "),
        ),
        Bins(name="rate", starts=(0.0, 7.0, 13.5), upper=100.0, outside=Outside.OTHER, null=True,
             intake=Intake(missing=tokens, percent=True)),
        Bins(name="grouped rate", column="rate", starts=(0, 100, 10_000), upper=10**7, null=True,
             intake=Intake(thousands=",", percent=True)),
        Bins(name="missing real", column="real", starts=(-1.0, 0.5), upper=8.0, null=True,
             intake=Intake(missing=("0.1", "7.25", "inf", "x"))),
        Bins(name="missing whole", column="whole", starts=(-1, 1), upper=7, null=True,
             intake=Intake(missing=("-1", "7", "9223372036854775807", "7.5"))),
        Bins(name="missing decimal", column="decimal", starts=(-1.0, 0.5), upper=8.0, null=True,
             intake=Intake(missing=("0.1", "5"))),
        Categories(name="missing text", column="text", values=KNOWN, null=True, intake=Intake(missing=tokens)),
        Boolean(name="missing word", column="word", null=True, intake=Intake(missing=("so-so", "N", "1"))),
        Boolean(name="missing flag", column="flag", null=True, intake=Intake(missing=("false", "x"))),
    ]  # fmt: skip


DOMAIN = Domain((Bins.integers("id", 0, ROWS - 1), *_attributes()))
PAIRS = [("id", attribute.name) for attribute in _attributes()]
BY_RULE = [
    a.name for a in _attributes()
    if a.column in ("text", "many", "real", "whole", "short", "date", "time", "flag", "written day",
                    "rate", "moment", "zoned moment",
                    "written moment", "clock")
    and not (a.intake.missing and a.column not in ("text", "written day", "rate"))
]  # fmt: skip
"""Attributes whose every value Python holds as it is, so that `Attribute.code` is the rule."""


def value(column: str, row: int) -> object:
    values = COLUMNS[column][0]
    return values[row] if row < len(values) else None


def arrow_table() -> pa.Table:
    columns = {"id": pa.array(range(ROWS), pa.int32())}
    for name, (_, dtype, _) in COLUMNS.items():
        columns[name] = pa.array([value(name, row) for row in range(ROWS)], dtype)
    columns["person"] = pa.array([row // 7 if row % 11 else None for row in range(ROWS)], pa.int32())
    columns["called"] = pa.array([("é", "e\u0301", "ö", "o\u0308", None)[row % 5] for row in range(ROWS)])
    return pa.table(columns)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "nasty.parquet"
    pq.write_table(arrow_table(), path)
    return path


@pytest.fixture(scope="module")
def postgres_table(server) -> str:
    import psycopg

    types = {
        "id": "int",
        **{name: written for name, (_, _, written) in COLUMNS.items()},
        "person": "int",
        "called": "text",
    }
    table = arrow_table()
    with psycopg.connect(server.url) as connection:
        listed = ", ".join(f'"{name}" {written}' for name, written in types.items())
        connection.execute("CREATE SCHEMA clinic")
        connection.execute(f'CREATE TABLE clinic."nasty table" ({listed})')
        marks = ", ".join(["%s"] * len(types))
        rows = [tuple(row[name] for name in types) for row in table.to_pylist()]
        with connection.cursor() as cursor:
            cursor.executemany(f'INSERT INTO clinic."nasty table" VALUES ({marks})', rows)
    return "nasty table"


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def spec(request, parquet) -> SourceSpec:
    if request.param == "postgres":
        table = request.getfixturevalue("postgres_table")
        return SourceSpec(request.getfixturevalue("server").url, table, schema="clinic")
    if request.param == "spark":
        request.getfixturevalue("spark")
        return SourceSpec("spark", path=str(parquet))
    return SourceSpec(str(parquet))


@pytest.fixture(scope="module")
def source(spec) -> Source:
    return open_source(spec, base=Path())


def as_codes(tables: dict) -> dict[str, list[int]]:
    """The code of each row, from counts over (row, attribute)."""
    for pair in PAIRS:
        np.testing.assert_array_equal(tables[pair].sum(axis=1), 1)
    return {name: tables[first, name].argmax(axis=1).tolist() for first, name in PAIRS}


@pytest.fixture(scope="module")
def by_duckdb(parquet) -> dict[str, list[int]]:
    return as_codes(Truth(open_source(SourceSpec(str(parquet)), base=Path()), DOMAIN).counts(PAIRS))


def test_every_engine_puts_every_value_into_the_same_cell(source, by_duckdb):
    found = as_codes(Truth(source, DOMAIN).counts(PAIRS))
    for name in by_duckdb:
        values = [value(DOMAIN[name].column, row) for row in range(ROWS)]
        assert list(zip(values, found[name], strict=True)) == list(
            zip(values, by_duckdb[name], strict=True)
        ), name


STREAMED = (
    "id",
    "text",
    "number real",
    "real",
    "whole",
    "short",
    "date",
    "zoned",
    "moment",
    "written moment",
    "clock",
)


def test_streamed_codes_are_the_same(source, by_duckdb):
    batches = list(source.batches(DOMAIN, STREAMED))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in STREAMED}
    order = np.argsort(columns["id"])
    np.testing.assert_array_equal(columns["id"][order], np.arange(ROWS))
    for name in STREAMED[1:]:
        assert columns[name][order].tolist() == by_duckdb[name], name
        assert columns[name].dtype.kind == "u"


def test_the_rule_is_that_of_the_attribute(by_duckdb):
    for name in BY_RULE:
        attribute = DOMAIN[name]
        expected = [attribute.code(value(attribute.column, row)) for row in range(ROWS)]
        assert by_duckdb[name] == expected, name


FEW = Domain(tuple(DOMAIN[name] for name in ("short", "flag", "word", "real", "id")))
QUESTIONS = [
    Marginal(FEW, ("flag",), LinearQuery.conjunction(FEW, {"short": [0, 0.25, 0.25, 1, 0.7, 0.7]})),
    Marginal(FEW, (), LinearQuery.table(FEW, ("flag", "word"), [[0.1, 0.9, 1], [0, 0.3, 0.3]])),
    Marginal(FEW, ("short", "word")),
    Marginal(FEW, (), LinearQuery.conjunction(FEW, {"flag": [0, 0]})),
    Marginal(FEW, ()),
]


@pytest.fixture(scope="module")
def expected(parquet) -> list[np.ndarray]:
    return Truth(open_source(SourceSpec(str(parquet)), base=Path()), FEW).sums_of(
        QUESTIONS, resolution=1 << 20
    )


@pytest.mark.parametrize("count", list(Counting))
def test_sums_agree_wherever_they_are_counted(spec, source, expected, count, monkeypatch):
    if spec.location == "spark" and count is Counting.INSIDE:
        return  # this engine counts inside unless told otherwise
    declared = replace(source, count=count)
    dense = Truth(declared, FEW)
    for got, wanted in zip(dense.sums_of(QUESTIONS, resolution=1 << 20), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    monkeypatch.setattr(truth_module, "DENSE_CELLS", 0)  # every clique is too large to be held
    by_row = Truth(declared, FEW).sums_of(QUESTIONS[:-1], resolution=1 << 20)
    for got, wanted in zip(by_row, expected, strict=False):
        np.testing.assert_array_equal(got, wanted)


UNIT = Unit("person", 3)


@pytest.fixture(scope="module")
def kept(parquet) -> np.ndarray:
    return Truth(open_source(SourceSpec(str(parquet)), base=Path()), FEW, UNIT).count(("id",))


def test_every_engine_keeps_the_same_rows_of_a_person(source, kept):
    people = np.array([-1 if row % 11 == 0 else row // 7 for row in range(ROWS)])
    assert all(kept[people == person].sum() <= 3 for person in range(ROWS))
    assert kept[people == -1].sum() == 0
    truth = Truth(source, FEW, UNIT)
    np.testing.assert_array_equal(truth.count(("id",)), kept)
    if source.engine.remote and source.engine.dialect is not SPARK:
        streamed = Truth(replace(source, count=Counting.STREAM), FEW, UNIT)
        np.testing.assert_array_equal(streamed.count(("id",)), kept)
    assert truth.rows == kept.sum()


WRITTEN = Domain(tuple(DOMAIN[name] for name in ("id", "formats", "amount", "rate", "missing text")))
WRITTEN_PAIRS = [("id", name) for name in WRITTEN.names[1:]]


@pytest.fixture(scope="module")
def written_by_duckdb(parquet) -> dict[tuple[str, ...], np.ndarray]:
    return Truth(open_source(SourceSpec(str(parquet)), base=Path()), WRITTEN, UNIT).counts(WRITTEN_PAIRS)


def test_a_person_s_rows_are_read_as_they_are_written_on_every_engine(source, written_by_duckdb):
    found = Truth(source, WRITTEN, UNIT).counts(WRITTEN_PAIRS)
    for pair in WRITTEN_PAIRS:
        np.testing.assert_array_equal(found[pair], written_by_duckdb[pair])


def test_two_spellings_of_a_name_are_one_person_on_every_engine(source):
    """NFC and NFD write the same characters: a person in both would have twice the rows that count."""
    truth = Truth(source, FEW, Unit("called", 3))
    kept = truth.count(("id",))
    assert [kept[np.isin(np.arange(ROWS) % 5, spelt)].sum() for spelt in ([0, 1], [2, 3], [4])] == [3, 3, 0]
    assert truth.rows == 6


def test_rows_are_counted_and_read_through(source):
    assert source.rows(FEW) == ROWS
    assert source.read_through(FEW, UNIT).rows == ROWS
    source.check_unchanged()


@pytest.fixture(scope="module")
def unfit_by_duckdb(parquet) -> dict[str, Any]:
    """What is said of each attribute's column, by its name."""
    here = open_source(SourceSpec(str(parquet)), base=Path()).read_through(DOMAIN)
    return {found.attribute.name: found for found in here.attributes}


def test_every_engine_finds_the_same_rows_that_fit_no_cell(source, unfit_by_duckdb):
    found = source.read_through(DOMAIN)
    assert found.rows == ROWS
    assert {m.attribute.name: m for m in found.attributes} == unfit_by_duckdb


def test_remote_rows_are_not_kept_here(source, monkeypatch):
    if not source.engine.remote:
        return  # the table is here
    monkeypatch.setattr(Truth, "_keep", lambda *_: pytest.fail("the table was pulled here"))
    monkeypatch.setattr(ViewReader, "batches", lambda *_: pytest.fail("rows were sent for one count"))
    truth = Truth(source, FEW)
    for _ in range(2):
        assert truth.count(("flag",)).sum() == ROWS
