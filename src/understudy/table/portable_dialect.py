"""What every engine understands: the words for one of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from understudy.errors import SourceError
from understudy.table.dialect import Edge, Expression, chain, search
from understudy.table.duckdb_dialect import nfc_normalize


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

    def instant(self, text: Expression) -> Expression:
        raise SourceError(
            "this engine cannot read a column of text as timestamps; give it a column of timestamps"
        )

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


PORTABLE = Portable()
PORTABLE_DUCKDB = Portable(nfc_normalize)
