"""What an engine needs to be told in its own words: text to numbers, numbers to bins, categories to cells.

Everything else about encoding is the same on every engine and stands in `encode.py`. Each of these expressions is
total: it fails on no value of any column that `check_type` lets pass. Engines differ in what their casts accept
and in which they refuse, and a refusal in the middle of a look would tell of a value; so text is checked against
one written rule first, the one that DuckDB's own forgiving casts follow.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import ibis

from understudy.domain.instant import INSTANT

Expression = Any
"""An Ibis column; Ibis types its columns at run time."""

Edge = int | float | dt.date
"""Of one attribute all of one type; a `datetime` is a moment of time in UTC."""

WHITE = r"[ \t\n\r\x0b\x0c]"
_DIGITS = "[0-9]+(_[0-9]+)*"
NUMBER = rf"^[+-]?({_DIGITS}[.]?({_DIGITS})?|[.]{_DIGITS})([eE][+-]?{_DIGITS})?"
"""Text that is a number: an underscore may stand between digits."""

DAY = r"^(-?[0-9]{1,6})([-/ \\])([0-9]{1,2})\2([0-9]{1,2})([^0-9]|"
"""Text that begins with a day; the engine's own mark for the end of a text, and a bracket, are still to come."""

MAX_TEXT = 1000
"""Characters of a number; longer text is none. Within it no number exceeds what a wide decimal can hold."""

EXACT = 2**50
"""Whole numbers up to here are told apart, and divided exactly, in floating point."""


class Dialect(Protocol):
    """How one engine says it. Text that cannot be read becomes null; NaN may become null."""

    @property
    def end(self) -> str:
        """The end of a text in the engine's regular expressions."""
        ...

    def stripped(self, text: Expression) -> Expression:
        """Text without white space around it."""
        ...

    def staged(self, rows: Expression) -> Expression:
        """Rows whose computed columns the engine computes once, however often they are used."""
        ...

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        """The number that belongs to a text; null where it is not known."""
        ...

    def word(self, text: Expression) -> Expression:
        """Text without white space around it, in lower case."""
        ...

    def number(self, text: Expression) -> Expression:
        """Text as float64."""
        ...

    def decimal(self, column: Expression) -> Expression:
        """A decimal as float64."""
        ...

    def day(self, text: Expression) -> Expression:
        """Text as something that orders as its day does: a date, or `day_number`."""
        ...

    def instant(self, text: Expression) -> Expression:
        """Text as a moment of time: whole seconds since 1970-01-01 00:00:00 in UTC, rounded down."""
        ...

    def is_nan(self, number: Expression) -> Expression:
        """Whether a float64 is not a number."""
        ...

    def composed(self, text: Expression) -> Expression:
        """Text in Unicode's normal form C: two spellings of the same characters become one."""
        ...

    def place(self, number: Expression, starts: Sequence[Edge]) -> Expression:
        """How many of the starts after the first are at or below the number, which is not null and not NaN."""
        ...


def day_number(day: dt.date) -> int:
    """A whole number that orders as days do.

    >>> day_number(dt.date(1990, 2, 28))
    19900228
    """
    return day.year * 10_000 + day.month * 100 + day.day


def constant(value: object, type: Any = None) -> Expression:
    """A value as a constant, of the type that Ibis finds for it or of the given one."""
    return ibis.literal(value, type=type)


def int32(cell: int) -> Expression:
    """A whole number as a constant of 32 bits, as codes of cells are."""
    return ibis.literal(cell, type="int32")


def search(number: Expression, starts: Sequence[Edge]) -> Expression:
    """Binary search as nested conditions: what every engine can do."""

    def within(low: int, high: int) -> Expression:
        if high - low == 1:
            return int32(low)
        middle = (low + high) // 2
        return ibis.ifelse(number < ibis.literal(starts[middle]), within(low, middle), within(middle, high))

    return within(0, len(starts))


def chain(text: Expression, known: Mapping[str, int]) -> Expression:
    """One condition for each known text."""
    return ibis.cases(*((text == spelling, int32(cell)) for spelling, cell in known.items()))


def read_day(stripped: Expression, end: str, whole: Any) -> Expression:
    """`day_number` of text such as 2000-02-29, 2000/2/29 10:00 or 44-03-15 (BC), if there is such a day.

    `whole` reads digits as an integer; `end` is the end of a text in the engine's regular expressions.
    """
    written = whole(stripped.re_extract("^(-?[0-9]{1,6})", 1))
    month = whole(stripped.re_extract(r"^-?[0-9]{1,6}[-/ \\]([0-9]{1,2})", 1))
    day = whole(stripped.re_extract(r"^-?[0-9]{1,6}[-/ \\][0-9]{1,2}[-/ \\]([0-9]{1,2})", 1))
    year: Expression = ibis.ifelse(stripped.re_search(r"[(][bB][cC][)]" + end), int32(1) - written, written)
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    days = ibis.cases(
        (month == 2, ibis.ifelse(leap, int32(29), int32(28))),
        (month.isin((4, 6, 9, 11)), int32(30)),
        else_=int32(31),
    )
    sound = stripped.re_search(DAY + end + ")") & month.between(1, 12) & (day >= 1) & (day <= days)
    far = int32(2_000_000_000)
    word = stripped.lower()
    return ibis.cases(
        (sound, year * 10_000 + month * 100 + day),
        (word == "infinity", far),
        (word == "-infinity", -far),
        (word == "epoch", int32(19_700_101)),
    )


def read_seconds(stripped: Expression, end: str, whole: Any) -> Expression:
    """Seconds since 1970 of text such as 2000-02-29 10:00:00.5+02:00, if there is such a moment: `read_instant`.

    `whole` reads digits as an integer, and what is no digits as null; `end` is the end of a text in the engine's
    regular expressions. Days are counted by the rule of the Gregorian calendar, from 1 March of the year 0.
    """

    def part(group: int) -> Expression:
        return ibis.coalesce(whole(stripped.re_extract(INSTANT + end, group)), int32(0)).cast("int64")

    year, month, day = (part(group) for group in (1, 2, 3))
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    days = ibis.cases(
        (month == 2, ibis.ifelse(leap, int32(29), int32(28))),
        (month.isin((4, 6, 9, 11)), int32(30)),
        else_=int32(31),
    )
    sound = (
        stripped.re_search(INSTANT + end)
        & month.between(1, 12) & (day >= 1) & (day <= days)
    )  # fmt: skip
    # Years begin in March, so that a leap day is the last of its year.
    begun: Expression = ibis.ifelse(month <= 2, year - 1, year)
    since = (month + 9) % 12
    number = begun * 365 + begun // 4 - begun // 100 + begun // 400 + (since * 306 + 5) // 10 + day - 719_469
    clock = part(4) * 3600 + part(5) * 60 + part(6)
    offset = part(8) * 3600 + part(9) * 60
    ahead = stripped.re_extract(INSTANT + end, 7) == "-"
    seconds = number * 86_400 + clock + ibis.ifelse(ahead, offset, -offset)
    return ibis.ifelse(sound, seconds.cast("int64"), ibis.null("int64"))


def infinite(stripped: Expression, end: str) -> Expression:
    """Plus or minus infinity where a text says so; null elsewhere."""
    word = stripped.lower()
    return ibis.cases(
        (word.re_search("^[+]?inf(inity)?" + end), ibis.literal(float("inf"))),
        (word.re_search("^-inf(inity)?" + end), ibis.literal(float("-inf"))),
    )
