"""How well the rows fit their declaration: exact counts, for the custodian alone.

Every value has a cell, whatever it is, so no answer can tell that a column was declared as what it is not. So the
custodian is shown how many rows went to a cell because they are missing, cannot be read, or lie outside.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import singledispatch

from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.table.dialect import Dialect, Expression
from understudy.table.encode import as_number, as_text, find_cell, is_missing, within
from understudy.table.file_view import LostLines, places_of

WORTH_A_WORD = 0.05
"""A larger part of the rows than this is more likely a mistake in the declaration than in the rows."""

EXACT = "exact counts of the table, not for publication"

NAN = ("nan", "+nan", "-nan")


@dataclass(frozen=True, slots=True)
class Misfits:
    """Rows of one attribute that no declared cell holds: exact counts, never to be published."""

    attribute: Attribute
    missing: int
    unreadable: int
    outside: int

    @property
    def misplaced(self) -> int:
        """Rows that count in a cell that they may not belong to; missing values have their own where declared."""
        return self.unreadable + self.outside + (0 if self.attribute.null else self.missing)

    def warning(self, rows: int) -> str:
        """What to say of more than a few of them; empty where there is nothing to say."""
        if self.misplaced <= WORTH_A_WORD * rows:
            return ""
        attribute, said = self.attribute, []
        if self.unreadable:
            said.append(f"{self.unreadable:,} cannot be read as {attribute.kind} (counted as {self._null})")
        if self.outside:
            said.append(f"{self.outside:,} outside what is declared (counted {self._outside})")
        if self.missing and not attribute.null:
            said.append(f"{self.missing:,} missing (counted as {self._null})")
        return (
            f"{attribute.name}: {self.misplaced:,} of {rows:,} rows fit no declared cell: {', '.join(said)}. "
            f"Compare the declared type and values with how the column {attribute.column!r} is written"
        )

    @property
    def _null(self) -> str:
        return repr(self.attribute.labels[self.attribute.null_cell])

    @property
    def _outside(self) -> str:
        if self.attribute.outside is Outside.CLAMP:
            return "in the nearest cell"
        return f"as {self.attribute.labels[self.attribute.outside_cell]!r}"


@dataclass(frozen=True, slots=True)
class Fit:
    """The number of rows in the table, and those that do not fit, attribute by attribute."""

    rows: int
    attributes: tuple[Misfits, ...]
    lost: LostLines = field(default_factory=LostLines)

    @property
    def warnings(self) -> list[str]:
        """What to say of attributes of which many rows fit no declared cell."""
        return [said for misfits in self.attributes if (said := misfits.warning(self.rows))]

    def warnings_beside(self, failed: Collection[str]) -> list[str]:
        """The same, of other attributes than those of which worse is told."""
        others = tuple(m for m in self.attributes if m.attribute.name not in failed)
        return replace(self, attributes=others).warnings

    def lost_lines(self, *, failed: bool = False) -> list[str]:
        """What to say of lines that are no rows, or not whole ones.

        Where the reading `failed` for lines that are no rows, that is told elsewhere.
        """
        said = []
        if self.lost.dropped and not failed:
            dropped = self.lost.dropped_of(self.rows)
            said.append(f"{dropped[0].upper()}{dropped[1:]}")
        if self.lost.ragged:
            where = places_of(self.lost.ragged_at, self.lost.ragged)
            said.append(
                f"{self.lost.ragged:,} lines have more or fewer fields than there are columns, or a stray "
                f"quotation mark{where}: fields that lack are missing values, those that are too many are not read"
            )
        return said

    def lines(self) -> list[str]:
        """The counts for a custodian at a terminal."""
        width = max(len(misfits.attribute.name) for misfits in self.attributes)
        return [
            f"{self.rows:,} rows were read. How many have no value, or none that is declared, in {EXACT}:",
            *(
                f"  {m.attribute.name:<{width}}  {m.missing:>9,} missing  {m.unreadable:>9,} unreadable  "
                f"{m.outside:>9,} outside"
                for m in self.attributes
            ),
        ]

    def as_dict(self) -> dict[str, object]:
        """The same for machines."""
        counts = {
            m.attribute.name: {"missing": m.missing, "unreadable": m.unreadable, "outside": m.outside}
            for m in self.attributes
        }
        lost = self.lost
        lines = {
            "dropped": lost.dropped,
            "dropped_at": list(lost.dropped_at),
            "ragged": lost.ragged,
            "ragged_at": list(lost.ragged_at),
        }
        warnings = self.lost_lines() + self.warnings
        return {"note": EXACT, "rows": self.rows, "lines": lines, "misfits": counts, "warnings": warnings}


@dataclass(frozen=True, slots=True)
class Misfit:
    """Conditions on a row's value: not there; there and not readable; readable and in no declared cell."""

    missing: Expression
    unreadable: Expression
    outside: Expression


@singledispatch
def misfit(attribute: Attribute, column: Expression, dialect: Dialect) -> Misfit:
    """Where a value of a column that was taken in fits no declared cell, and why: one reason for each at most."""
    raise TypeError(f"no encoding for {type(attribute).__name__}")


@misfit.register
def _(attribute: Categories, column: Expression, dialect: Dialect) -> Misfit:
    unknown = find_cell(attribute, column, dialect).isnull()
    missing = is_missing(column, dialect)
    return Misfit(missing, _never(column), ~missing & unknown)


@misfit.register
def _(attribute: Boolean, column: Expression, dialect: Dialect) -> Misfit:
    unreadable, missing = _never(column), is_missing(column, dialect)
    if not column.type().is_boolean():
        text = as_text(column)  # null for a number that is not whole
        known = dialect.word(text).isin(attribute.TRUE + attribute.FALSE)
        unreadable = ~missing & (text.isnull() | ~known)
    return Misfit(missing, unreadable, _never(column))


@misfit.register
def _(attribute: Bins, column: Expression, dialect: Dialect) -> Misfit:
    number, nothing = as_number(attribute, column, dialect)
    unreadable = _never(column)
    if (
        column.type().is_string()
    ):  # what has a type can be read, and NaN is a way to say that nothing is there
        unreadable = column.notnull() & number.isnull() & ~dialect.word(column).isin(NAN)
    return Misfit(nothing & ~unreadable, unreadable, ~nothing & ~within(attribute, number))


def _never(column: Expression) -> Expression:
    """False in every row: a constant alone is no column that could be summed."""
    return column.isnull() & column.notnull()
