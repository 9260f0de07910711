"""Spark's words for reading values, and for finding their cells fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.datatypes as dtypes

from understudy.table.dialect import (
    MAX_TEXT,
    NUMBER,
    WHITE,
    Edge,
    Expression,
    constant,
    infinite,
    int32,
    read_day,
    read_seconds,
    search,
)


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
        return ibis.ifelse(sound, read, infinite(stripped, self.end))

    def decimal(self, column: Expression) -> Expression:
        return column.cast("float64")

    def day(self, text: Expression) -> Expression:
        return read_day(self.stripped(text), self.end, lambda digits: digits.try_cast("int32"))

    def instant(self, text: Expression) -> Expression:
        return read_seconds(self.stripped(text), self.end, lambda digits: digits.try_cast("int32"))

    def is_nan(self, number: Expression) -> Expression:
        return number.isnan()

    def composed(self, text: Expression) -> Expression:
        # Spark has no function for it, and carries the library that does: since version 4.
        exactly = constant(0).cast("boolean")  # not what is merely alike, such as a ligature and its letters
        return _java("com.ibm.icu.text.Normalizer", "compose", text, exactly)

    def place(self, number: Expression, starts: Sequence[Edge]) -> Expression:
        return search(number, starts)


SPARK = Spark()
