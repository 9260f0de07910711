"""The emulated catalog against a real Postgres 15 with empty twins of the tables: names, types and rows agree."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from catalog_twin import Emulated, Twin, statements
from understudy.desk.rows import Rows
from understudy.errors import StatementError

ROWS_MAY_DIFFER = {
    r"version\(\)": "the version is our own",
    r"pg_(table|database|total_relation)_size|relpages": "sizes are not told",
    r"boot_val": "settings of the machine",
    r"pg_timezone_names": "left empty",
    r"opcfamily = f\.oid": "texts joined in an order that the statement leaves open",
    r"xmin|age\(|relfrozenxid": "numbers of transactions",
    r"int4range": "Python's values for ranges",
}
"""Statements of which only names and types are compared, and why."""

PROGRAMS = statements()
PARTS = [(program, first) for program, held in PROGRAMS.items() for first in range(0, len(held), 20)]


@pytest.mark.parametrize(("program", "first"), PARTS)
def test_every_statement_of_a_program_is_answered_alike(
    program: str, first: int, emulated: Emulated, twin: Twin
):
    ours, theirs = emulated.numbers(), twin.numbers()
    for sql in PROGRAMS[program][first : first + 20]:
        found = emulated.answer(_filled(sql, ours))
        columns, rows = twin.answer(_filled(sql, theirs))
        assert [(column.name, column.type.oid) for column in found.columns] == columns, sql
        if any(re.search(pattern, sql) for pattern in ROWS_MAY_DIFFER):
            continue
        expected = [_plain(row, theirs, twin.toast) for row in rows if not _about_toast(row, twin.toast)]
        told = [_plain(row, ours, set()) for row in _vectors_as_text(found)]
        assert Counter(told) == Counter(expected), sql
        if program.startswith("psql") and re.search(r"(?i)order by 1", sql):
            assert told == expected, sql


def _filled(sql: str, numbers: dict[str, int]) -> str:
    for name, number in numbers.items():
        sql = sql.replace("{" + name + "}", str(number))
    return sql


def _about_toast(row: tuple[Any, ...], toast: set[int]) -> bool:
    """A row about the place where Postgres keeps long texts, which an emulated table does not have."""
    for value in row[:3]:
        if isinstance(value, int) and value in toast:
            return True
        if isinstance(value, str) and re.search(r"pg_toast_(1[6-9]|[2-9]\d)\d{3}", value):
            return True
    return False


def _vectors_as_text(found: Rows) -> list[tuple[Any, ...]]:
    """Postgres writes the vectors of its catalog as numbers between spaces."""
    vectors = [column.type.name in ("int2vector", "oidvector") for column in found.columns]
    return [
        tuple(
            " ".join(map(str, value)) if vector and value is not None else value
            for value, vector in zip(row, vectors, strict=True)
        )
        for row in found.rows
    ]


def _plain(row: tuple[Any, ...], numbers: dict[str, int], toast: set[int]) -> tuple[Any, ...]:
    return tuple(
        _plain_value(value, {number: name for name, number in numbers.items()}, toast) for value in row
    )


def _plain_value(value: Any, names: dict[int, str], toast: set[int]) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return 0 if value in toast else names.get(value, value)
    if isinstance(value, float | Decimal):
        return float(value)
    if isinstance(value, list):
        return tuple(_plain_value(part, names, toast) for part in value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dt.date | dt.time):
        return str(value)
    return names.get(int(value), value) if str(value).isdigit() else str(value)


def test_columns_are_described_as_they_come(emulated: Emulated):
    ours = emulated.numbers()
    for program in PROGRAMS:
        for sql in PROGRAMS[program][3::25]:
            described = emulated.catalog.prepared(_filled(sql, ours), user="ada").describe(emulated.desk)
            assert described == emulated.answer(_filled(sql, ours)).columns, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'nothing'::regclass",
        "SELECT 'nothing'::regtype",
        "SELECT 'lower'::regproc",
        "SELECT * FROM pg_nothing",
        "SELECT nothing FROM pg_class",
        "SELECT current_setting('nothing.there')",
        "SELECT pg_nothing(1)",
        "SELECT 'x'::int",
        "SELECT 1 FROM pg_class ORDER BY nothing",
        "SELECT 1::nothing",
    ],
)
def test_what_postgres_refuses_is_refused(sql: str, emulated: Emulated, twin: Twin):
    with pytest.raises(twin.refusal):
        twin.answer(sql)
    with pytest.raises(StatementError):
        emulated.answer(sql)
