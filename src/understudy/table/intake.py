"""A column as its declared writing says, inside the engine: text in one plain writing, and null for no value.

A number is rewritten with a decimal point and no other mark, a day as 2024-12-31, and a text that stands for a
missing value as null; what does not follow the declared writing becomes `UNREADABLE`, which no kind of attribute
can read. After that every column is read in the same way, however it was written. Each expression is total: it
fails on no value. The rule is `Intake.value`; tests hold all engines equal to it.

Texts of the declaration reach an engine as literals, quoted by Ibis; marks of numbers are from a fixed list, and
fields of dates are patterns of our own: nothing that is declared can end a statement.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

import ibis

from understudy.domain.attribute import Attribute
from understudy.domain.date_format import DAYS, MONTH_NAMES, MONTH_NUMBERS, MONTHS, PIVOT, YEARS, DateFormat
from understudy.domain.instant import read_instant
from understudy.domain.intake import Intake
from understudy.table.dialect import Dialect, Expression

UNREADABLE = "?"
"""Stands in the place of text that does not follow its declared writing."""


def _without_missing(attribute: Attribute, column: Expression, dialect: Dialect) -> Expression:
    """The column with null where a value stands for a missing one. A typed column is compared in its own type."""
    tokens = attribute.intake.missing
    if not tokens:
        return column
    dtype = column.type()
    if dtype.is_string():
        found = dialect.stripped(column).isin(sorted(attribute.intake.tokens))
    elif dtype.is_boolean():
        found = _any_of(column, [token == "true" for token in tokens if token in ("true", "false")])
    elif dtype.is_integer():
        found = _any_of(column, [w for t in tokens if (w := _whole(t)) is not None])
    elif dtype.is_numeric():
        number = dialect.decimal(column) if dtype.is_decimal() else column.cast("float64")
        found = _any_of(number, [f for t in tokens if (f := _real(t)) is not None])
    elif attribute.kind == "timestamp" and (dtype.is_date() or dtype.is_timestamp()):
        moments = [moment for token in tokens if (moment := read_instant(token)) is not None]
        found = _any_of(column.cast("timestamp"), moments)
    elif dtype.is_date() or dtype.is_timestamp():
        found = _any_of(column.cast("date"), [day for token in tokens if (day := _day(token)) is not None])
    else:
        return column
    if found is None:
        return column
    # A null compares to null: `found` is then no reason to change it.
    return ibis.ifelse(found, ibis.null(dtype), column)


def _any_of(column: Expression, values: Iterable[Any]) -> Expression | None:
    listed = list(dict.fromkeys(values))
    return column.isin(listed) if listed else None


def _whole(token: str) -> int | None:
    number = _real(token)
    if number is None or not number.is_integer() or not -(2**63) <= number < 2**63:
        return None
    try:
        return int(token)
    except ValueError:
        return int(number)


def _real(token: str) -> float | None:
    try:
        number = float(token)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _day(token: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(token)
    except ValueError:
        return None


def taken_in(attribute: Attribute, column: Expression, dialect: Dialect) -> Expression:
    """The column in the plain writing that `encode` reads."""
    intake = attribute.intake
    if not intake:
        return column
    column = _without_missing(attribute, column, dialect)
    if (
        attribute.kind in ("date", "timestamp") and column.type().is_integer()
    ):  # digits such as 20241231, which a format reads
        column = column.cast("string")
    if not column.type().is_string() or attribute.kind in ("category", "boolean"):
        return column
    bare = _bare(intake, column, dialect)
    if attribute.kind in ("date", "timestamp"):
        return _plain_day(attribute, bare, dialect) if intake.formats else bare
    return _plain_number(intake, bare, dialect) if intake.marks_numbers else bare


def _bare(intake: Intake, text: Expression, dialect: Dialect) -> Expression:
    for part in intake.strip:
        text = text.replace(part, "")
    text = dialect.stripped(text)
    if intake.percent:
        text = dialect.stripped(text.re_replace("%" + dialect.end, ""))
    return text


def _plain_number(intake: Intake, bare: Expression, dialect: Dialect) -> Expression:
    sound = bare.re_search(intake.number_pattern + dialect.end)
    plain = bare.replace(intake.thousands, "") if intake.thousands else bare
    plain = plain.replace(intake.decimal, ".") if intake.decimal != "." else plain
    return ibis.cases((bare.isnull(), ibis.null("string")), (sound, plain), else_=ibis.literal(UNREADABLE))


def _plain_day(attribute: Attribute, bare: Expression, dialect: Dialect) -> Expression:
    """The day or moment in the first format that a text follows; whether there is such a day is seen later."""
    follows = [
        (
            bare.re_search(format.pattern() + dialect.end),
            _rewritten(format, bare, dialect, timed=attribute.kind == "timestamp"),
        )
        for format in attribute.intake.formats
    ]
    return ibis.cases((bare.isnull(), ibis.null("string")), *follows, else_=ibis.literal(UNREADABLE))


def _rewritten(format: DateFormat, bare: Expression, dialect: Dialect, *, timed: bool) -> Expression:
    """Year, month and day of a text that follows the format, with dashes between; and the time, if `timed`."""

    def field(kind: tuple[str, ...]) -> Expression:
        return bare.re_extract(format.pattern(kind) + dialect.end, 1)

    year, day = field(YEARS), field(DAYS)
    if "y" in format.fields:
        century: Expression = ibis.ifelse(year >= str(PIVOT), "19", "20")
        year = century.concat(year)
    if "m" in format.fields:
        month = field(MONTH_NUMBERS)
    else:
        named = field(MONTH_NAMES).lower()
        numbers = ((named.startswith(name), f"{number:02}") for number, name in enumerate(MONTHS, 1))
        month = ibis.cases(*numbers, else_=UNREADABLE)
    written = year.concat("-", month, "-", day)
    return written.concat(" ", _clock(format, field)) if timed else written


def _clock(format: DateFormat, field: Callable[[tuple[str, ...]], Expression]) -> Expression:
    """The time of day of a text that follows the format, as 09:30:15+02:00; an hour that is none stays so."""

    def two(letter: str) -> Expression:
        return field((letter,)).lpad(2, "0") if letter in format.fields else ibis.literal("00")

    hour: Expression = two("H")
    if "I" in format.fields and "H" not in format.fields:
        hour = two("I")
        pm = field(("p",)).lower() == "pm" if "p" in format.fields else None
        numbered = [(f"{h:02}", f"{h % 12:02}", f"{h % 12 + 12:02}") for h in range(1, 13)]
        cases = [
            (hour == said, said if pm is None else ibis.ifelse(pm, after, before))
            for said, before, after in numbered
        ]
        hour = ibis.cases(*cases, else_=UNREADABLE)
    clock = hour.concat(":", two("M"), ":", two("S"))
    return clock.concat(field(("z",))) if "z" in format.fields else clock
