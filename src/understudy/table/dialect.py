"""What an engine needs to be told in its own words: text to numbers, numbers to bins, categories to cells.

Everything else about encoding is the same on every engine and stands in `encode.py`. Each of these expressions is
total: it fails on no value of any column that `check_type` lets pass. Engines differ in what their casts accept
and in which they refuse, and a refusal in the middle of a look would tell of a value; so text is checked against
one written rule first, the one that DuckDB's own forgiving casts follow.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import floor
from typing import Any, Protocol

import ibis
import ibis.expr.datatypes as dtypes

from understudy.errors import SourceError

Expression = Any
"""An Ibis column; Ibis types its columns at run time."""

Edge = int | float | dt.date

WHITE = r"[ \t\n\r\x0b\x0c]"
_DIGITS = "[0-9]+(_[0-9]+)*"
NUMBER = rf"^[+-]?({_DIGITS}[.]?({_DIGITS})?|[.]{_DIGITS})([eE][+-]?{_DIGITS})?"
"""Text that is a number: an underscore may stand between digits."""

DAY = r"^(-?[0-9]{1,6})([-/ \\])([0-9]{1,2})\2([0-9]{1,2})([^0-9]|"
"""Text that begins with a day; the engine's own mark for the end of a text, and a bracket, are still to come."""

MAX_TEXT = 1000
"""Characters of a number; longer text is none. Within it no number exceeds what a wide decimal can hold."""

ALL = 2**62
"""More rows than any table has."""

EXACT = 2**50
"""Whole numbers up to here are told apart, and divided exactly, in floating point."""

MANY_STARTS = 64
"""Up to so many starts a search by nested conditions is planned and run quickly."""

SMALLEST = 1e-300
"""Decimals nearer to zero are zero: some engines refuse to round them."""


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


def _constant(value: object, type: Any = None) -> Expression:
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


def _read_day(stripped: Expression, end: str, whole: Any) -> Expression:
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


def _infinite(stripped: Expression, end: str) -> Expression:
    """Plus or minus infinity where a text says so; null elsewhere."""
    word = stripped.lower()
    return ibis.cases(
        (word.re_search("^[+]?inf(inity)?" + end), ibis.literal(float("inf"))),
        (word.re_search("^-inf(inity)?" + end), ibis.literal(float("-inf"))),
    )


@ibis.udf.scalar.builtin
def nfc_normalize(text: str) -> str:
    """DuckDB: Unicode's normal form C."""
    ...


class DuckDB:
    """The embedded engine, whose `TRY_CAST` sets the rule for the others."""

    end = "$"

    def stripped(self, text: Expression) -> Expression:
        return text.strip()

    def staged(self, rows: Expression) -> Expression:
        return rows

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        # One search in a constant array: many times faster than a condition for each value.
        place: Expression = _constant(list(known), "array<string>").index(text)
        cells = list(known.values())
        cell = place if cells == [*range(len(cells))] else _constant(cells, "array<int64>")[place]
        return ibis.ifelse(place >= 0, cell, ibis.null())

    def word(self, text: Expression) -> Expression:
        return text.strip().lower()

    def number(self, text: Expression) -> Expression:
        return text.try_cast("float64")

    def decimal(self, column: Expression) -> Expression:
        return column.cast("float64")

    def day(self, text: Expression) -> Expression:
        return text.try_cast("date")

    def is_nan(self, number: Expression) -> Expression:
        return number.isnan()

    def composed(self, text: Expression) -> Expression:
        return nfc_normalize(text)

    def place(self, number: Expression, starts: Sequence[Edge]) -> Expression:
        if (width := _width(starts)) is not None:
            return self._equal_steps(number, starts, width)
        if len(starts) > MANY_STARTS and (rate := _rate(starts)) is not None:
            return self._near_guess(number, starts, rate)
        return self._in_blocks(number, starts) if len(starts) > MANY_STARTS else search(number, starts)

    @staticmethod
    def _in_blocks(number: Expression, starts: Sequence[Edge]) -> Expression:
        """Of many starts that are anyhow apart: the block by a search, and the place in it by counting.

        Conditions for all starts would be planned for seconds before the first row is read.
        """
        block = search(number, starts[::MANY_STARTS])
        blocks = [starts[i : i + MANY_STARTS] for i in range(0, len(starts), MANY_STARTS)]
        below = _listed(blocks)[block].filter(lambda start: start <= number).length()
        return ibis.greatest(block * MANY_STARTS + below - 1, 0)

    @staticmethod
    def _equal_steps(number: Expression, starts: Sequence[Edge], width: int) -> Expression:
        """Of whole numbers, or days, that are equally far apart: arithmetic will do.

        NaN is above every number here, so that it becomes the last start, and no cast fails.
        """
        first, last = ibis.literal(starts[0]), ibis.literal(starts[-1])
        inside: Expression = ibis.greatest(ibis.least(number, last), first)
        if isinstance(starts[0], dt.date):
            steps = inside.delta(first, unit="day")
        else:  # a number is at or above a whole start if, rounded down, it is
            steps = inside.floor().cast("int64") - starts[0]
        return steps if width == 1 else steps // width

    @staticmethod
    def _near_guess(number: Expression, starts: Sequence[Any], rate: float) -> Expression:
        """Of real numbers that are nearly equally far apart: a guess that is off by one at most, mended."""
        first, last = ibis.literal(float(starts[0])), ibis.literal(float(starts[-1]))
        inside: Expression = ibis.greatest(ibis.least(number, last), first)
        guess: Expression = ((inside - first) * rate).floor().cast("int64")
        guess = ibis.greatest(ibis.least(guess, len(starts) - 1), 0)
        starts = [float(start) for start in starts]
        above: Expression = _listed((*starts[1:], float("inf")))[guess]
        below: Expression = _listed((float("-inf"), *starts[1:]))[guess]
        return guess + (inside >= above).cast("int64") - (inside < below).cast("int64")


def _listed(edges: Sequence[Any]) -> Expression:
    """DuckDB: a constant array of edges, or of blocks of them, told as one text.

    One text is one node for Ibis and for the engine's parser, however many edges there are. And numbers in an
    array would be read as decimals first, and so rounded twice.
    """
    first = edges[0][0] if isinstance(edges[0], Sequence) else edges[0]
    kind = {float: "float64", int: "int64", dt.date: "date"}[type(first)]
    nested = f"array<array<{kind}>>" if isinstance(edges[0], Sequence) else f"array<{kind}>"
    return _constant(_bracketed(edges)).cast(nested)


def _bracketed(edges: Any) -> str:
    """Edges as DuckDB reads arrays from text.

    >>> _bracketed([[0.5, 1.0], [2.5]]), _bracketed([dt.date(2000, 1, 31)])
    ('[[0.5,1.0],[2.5]]', '[2000-01-31]')
    """
    if isinstance(edges, Sequence):
        return f"[{','.join(map(_bracketed, edges))}]"
    return repr(edges) if isinstance(edges, float) else str(edges)


def _width(starts: Sequence[Any]) -> int | None:
    """The distance between whole numbers, or days, that are equally far apart; None where they are not.

    >>> _width([10, 15, 20]), _width([10, 15, 21]), _width([0.0, 0.5])
    (5, None, None)
    """
    if all(type(start) is int and abs(start) < EXACT for start in starts):
        steps = {high - low for low, high in pairwise(starts)}
    elif all(type(start) is dt.date for start in starts):
        steps = {(high - low).days for low, high in pairwise(starts)}
    else:
        return None
    return steps.pop() if len(steps) == 1 else None


def _rate(starts: Sequence[Any]) -> float | None:
    """Starts for each unit, if ⌊(x - first)·rate⌋ is off by at most one for every x; None where it is not.

    Subtraction, multiplication and rounding down are monotone, in floating point too. So it suffices that at the
    i-th start the guess is i - 1 or i: between it and the next start the guess is then i - 1, i or i + 1.
    """
    if any(isinstance(start, dt.date) for start in starts):
        return None
    first, last = float(starts[0]), float(starts[-1])
    rate = (len(starts) - 1) / (last - first)
    if not 0 < rate < float("inf"):
        return None
    guesses = [floor((float(start) - first) * rate) for start in starts]
    return rate if all(i - 1 <= guess <= i for i, guess in enumerate(guesses)) else None


@ibis.udf.scalar.builtin
def jsonb_object_field_text(
    object: dtypes.JSON(binary=True),  # type: ignore[valid-type]
    key: str,
) -> str:
    """Postgres: a binary search by the bytes of the key."""
    ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.float64, dtypes.dtype("array<float64>")), dtypes.int32)
)
def _real_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.int64, dtypes.dtype("array<int64>")), dtypes.int32)
)
def _whole_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin(
    name="width_bucket", signature=((dtypes.date, dtypes.dtype("array<date>")), dtypes.int32)
)
def _date_bucket(number: Any, starts: Any) -> Any: ...


@ibis.udf.scalar.builtin
def normalize(text: str) -> str:
    """Postgres: Unicode's normal form C, of text in UTF-8."""
    ...


class Postgres:
    """Casts that fail stop the statement, so nothing is cast before it is known to be castable."""

    end = "$"

    def stripped(self, text: Expression) -> Expression:
        return text.strip()

    def staged(self, rows: Expression) -> Expression:
        return rows.limit(ALL)  # else the planner writes a subquery's expressions wherever they are used

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        # No text of this engine has a zero byte, and none may be sent to it.
        members = {spelling: cell for spelling, cell in known.items() if "\0" not in spelling}
        object = _constant(json.dumps(members)).cast(dtypes.JSON(binary=True))
        return jsonb_object_field_text(object, text).cast("int32")

    def word(self, text: Expression) -> Expression:
        return text.strip().lower()

    def number(self, text: Expression) -> Expression:
        stripped = text.strip()
        plain = stripped.replace("_", "")
        small = plain.re_search("^[^eE]*([eE][+-]?0*[0-9]{1,3})?" + self.end)
        zero = ~plain.re_search("^[^eE]*[1-9]")
        negative = plain.startswith("-")
        shrinks = plain.re_search("[eE]-")
        huge = ibis.cases(
            (zero | shrinks, ibis.literal(0.0)),
            (negative, ibis.literal(float("-inf"))),
            else_=ibis.literal(float("inf")),
        )
        read = ibis.ifelse(small, self.decimal(plain.cast("decimal")), huge)
        sound = stripped.re_search(NUMBER + self.end) & (stripped.length() <= MAX_TEXT)
        return ibis.ifelse(sound, read, _infinite(stripped, self.end))

    def decimal(self, column: Expression) -> Expression:
        largest = _constant("1.7976931348623157e308").cast("decimal")
        nan = _constant("NaN").cast("decimal")
        return ibis.cases(
            (column.isnull() | (column == nan), ibis.null("float64")),
            (column > largest, ibis.literal(float("inf"))),
            (column < -largest, ibis.literal(float("-inf"))),
            (column.abs() < _constant(str(SMALLEST)).cast("decimal"), ibis.literal(0.0)),
            else_=column.cast("float64"),
        )

    def day(self, text: Expression) -> Expression:
        return _read_day(text.strip(), self.end, lambda digits: digits.cast("int32"))

    def is_nan(self, number: Expression) -> Expression:
        return number.isnan()

    def composed(self, text: Expression) -> Expression:
        return normalize(text)

    def place(self, number: Expression, starts: Sequence[Any]) -> Expression:
        bucket: Expression
        if isinstance(starts[0], dt.date):
            bucket = _date_bucket(number, ibis.array(list(starts)))
        elif number.type().is_integer() and isinstance(starts[0], int):
            bucket = _whole_bucket(number.cast("int64"), _constant(list(starts), "array<int64>"))
        else:
            edges = _constant([float(start) for start in starts], "array<float64>")
            bucket = _real_bucket(
                number.cast("float64"), _constant(edges, "array<float64>").cast("array<float64>")
            )
        return ibis.greatest(bucket - 1, 0)


@ibis.udf.scalar.builtin
def unhex(digits: str) -> bytes:
    """Spark: bytes from hexadecimal digits."""
    ...


@ibis.udf.scalar.builtin
def decode(text: bytes, encoding: str) -> str:
    """Spark: text from bytes."""
    ...


@ibis.udf.scalar.builtin(
    name="reflect", signature=((dtypes.string, dtypes.string, dtypes.string, dtypes.boolean), dtypes.string)
)
def _java(name: Any, method: Any, text: Any, flag: Any) -> Any:
    """Spark: a static method of Java."""


class Spark:
    """Whose literals and casts are those of Java."""

    end = r"\z"

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        """Binary search in the order of UTF-8, which is the engine's own."""
        ordered = sorted(known, key=str.encode)

        def within(low: int, high: int) -> Expression:
            if high - low == 1:
                return ibis.ifelse(
                    text == self._literal(ordered[low]), int32(known[ordered[low]]), ibis.null("int32")
                )
            middle = (low + high) // 2
            return ibis.ifelse(
                text < self._literal(ordered[middle]), within(low, middle), within(middle, high)
            )

        return within(0, len(ordered))

    @staticmethod
    def _literal(text: str) -> Expression:
        # A control character would be written with an escape that this engine reads as a letter.
        if text.isprintable():
            return ibis.literal(text)
        return decode(unhex(text.encode().hex()), "utf-8")

    def stripped(self, text: Expression) -> Expression:
        return text.re_replace(rf"^{WHITE}+|{WHITE}+" + self.end, "")

    def staged(self, rows: Expression) -> Expression:
        return rows

    def word(self, text: Expression) -> Expression:
        return self.stripped(text).lower()

    def number(self, text: Expression) -> Expression:
        stripped = self.stripped(text)
        sound = stripped.re_search(NUMBER + self.end) & (stripped.length() <= MAX_TEXT)
        read = stripped.replace("_", "").try_cast("float64")
        return ibis.ifelse(sound, read, _infinite(stripped, self.end))

    def decimal(self, column: Expression) -> Expression:
        return column.cast("float64")

    def day(self, text: Expression) -> Expression:
        return _read_day(self.stripped(text), self.end, lambda digits: digits.try_cast("int32"))

    def is_nan(self, number: Expression) -> Expression:
        return number.isnan()

    def composed(self, text: Expression) -> Expression:
        # Spark has no function for it, and carries the library that does: since version 4.
        exactly = _constant(0).cast("boolean")  # not what is merely alike, such as a ligature and its letters
        return _java("com.ibm.icu.text.Normalizer", "compose", text, exactly)

    def place(self, number: Expression, starts: Sequence[Edge]) -> Expression:
        return search(number, starts)


class Portable:
    """What any SQL engine can say. Casts of text may fail there, so columns of text stay text.

    `composing` is the engine's function for Unicode's normal form C, where it is known to have one.
    """

    end = "$"

    def __init__(self, composing: Callable[[Expression], Expression] | None = None) -> None:
        self._composing = composing

    def stripped(self, text: Expression) -> Expression:
        return text.strip()

    def staged(self, rows: Expression) -> Expression:
        return rows

    def find(self, text: Expression, known: Mapping[str, int]) -> Expression:
        return chain(text, known)

    def word(self, text: Expression) -> Expression:
        return text.strip().lower()

    def number(self, text: Expression) -> Expression:
        raise SourceError("this engine cannot read a column of text as numbers; give it a column of numbers")

    def decimal(self, column: Expression) -> Expression:
        return column.cast("float64")

    def day(self, text: Expression) -> Expression:
        raise SourceError("this engine cannot read a column of text as dates; give it a column of dates")

    def is_nan(self, number: Expression) -> Expression:
        return number != number

    def composed(self, text: Expression) -> Expression:
        if self._composing is not None:
            return self._composing(text)
        raise SourceError(
            "this engine cannot bring the spellings of a unit's text into one form (Unicode NFC), and would take "
            "one person for two; declare a `unit` column of whole numbers"
        )

    def place(self, number: Expression, starts: Sequence[Edge]) -> Expression:
        return search(number, starts)


DUCKDB = DuckDB()
POSTGRES = Postgres()
SPARK = Spark()
PORTABLE = Portable()
PORTABLE_DUCKDB = Portable(nfc_normalize)
