"""DuckDB's words for reading values, and for finding their cells fast."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor
from typing import Any

import ibis

from understudy.domain.instant import EPOCH, INSTANT
from understudy.table.dialect import EXACT, Edge, Expression, constant, search

_LOCAL = "^([0-9-]+(?:(?:[Tt]|[ ]+)[0-9:]+)?)"
"""The day and the clock, without fractions of seconds, of a text that is known to be a moment."""

MANY_STARTS = 64
"""Up to so many starts a search by nested conditions is planned and run quickly."""


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
        place: Expression = constant(list(known), "array<string>").index(text)
        cells = list(known.values())
        cell = place if cells == [*range(len(cells))] else constant(cells, "array<int64>")[place]
        return ibis.ifelse(place >= 0, cell, ibis.null())

    def word(self, text: Expression) -> Expression:
        return text.strip().lower()

    def number(self, text: Expression) -> Expression:
        return text.try_cast("float64")

    def decimal(self, column: Expression) -> Expression:
        return column.cast("float64")

    def day(self, text: Expression) -> Expression:
        return text.try_cast("date")

    def instant(self, text: Expression) -> Expression:
        # The engine reads the day and the clock, which are known to be written as it expects; offsets are added.
        stripped = text.strip()
        sound = stripped.re_search(INSTANT + self.end)
        local = stripped.re_extract(_LOCAL, 1).upper().try_cast("timestamp")
        seconds = local.delta(ibis.literal(EPOCH), unit="second")
        sign, hours, minutes = (stripped.re_extract(INSTANT + self.end, group) for group in (7, 8, 9))
        whole: Expression = ibis.coalesce(hours.try_cast("int64"), 0)
        parts: Expression = ibis.coalesce(minutes.try_cast("int64"), 0)
        offset = whole * 3600 + parts * 60
        shifted: Expression = ibis.cases(
            (sign == "+", seconds - offset), (sign == "-", seconds + offset), else_=seconds
        )
        return ibis.ifelse(sound, shifted, ibis.null("int64"))

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
        """Of whole numbers, days or seconds, that are equally far apart: arithmetic will do.

        NaN is above every number here, so that it becomes the last start, and no cast fails.
        """
        first, last = ibis.literal(starts[0]), ibis.literal(starts[-1])
        inside: Expression = ibis.greatest(ibis.least(number, last), first)
        if isinstance(starts[0], dt.datetime):
            steps = inside.delta(first, unit="second")
        elif isinstance(starts[0], dt.date):
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
    kind = {float: "float64", int: "int64", dt.date: "date", dt.datetime: "timestamp"}[type(first)]
    nested = f"array<array<{kind}>>" if isinstance(edges[0], Sequence) else f"array<{kind}>"
    return constant(_bracketed(edges)).cast(nested)


def _bracketed(edges: Any) -> str:
    """Edges as DuckDB reads arrays from text.

    >>> _bracketed([[0.5, 1.0], [2.5]]), _bracketed([dt.date(2000, 1, 31)])
    ('[[0.5,1.0],[2.5]]', '[2000-01-31]')
    """
    if isinstance(edges, Sequence):
        return f"[{','.join(map(_bracketed, edges))}]"
    return repr(edges) if isinstance(edges, float) else str(edges)


def _width(starts: Sequence[Any]) -> int | None:
    """The distance between whole numbers, days or seconds that are equally far apart; None where they are not.

    >>> _width([10, 15, 20]), _width([10, 15, 21]), _width([0.0, 0.5])
    (5, None, None)
    """
    if all(type(start) is int and abs(start) < EXACT for start in starts):
        steps = {high - low for low, high in pairwise(starts)}
    elif all(type(start) is dt.datetime for start in starts):
        steps = {(high - low) // dt.timedelta(seconds=1) for low, high in pairwise(starts)}
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


DUCKDB = DuckDB()
