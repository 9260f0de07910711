"""What a draft declares of one column that was looked at: its line of the declaration, and why it is so.

Bounds are round numbers around what was seen, and bins of a skewed column are cut where its values are.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Any

from understudy.declaration import cells
from understudy.declaration.outline import OutlineEntry, scalar
from understudy.declaration.round_edges import round_edges, round_step
from understudy.declaration.skew import Cut, cut_of
from understudy.domain.instants import FIRST, LAST
from understudy.table.survey import ColumnSummary, intake_of


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was made of a column, and why. `kind` is empty where it was left out."""

    name: str
    kind: str
    why: str


def declared_column(column: ColumnSummary) -> OutlineEntry:
    """The line of a declaration for a column: its cells, or why it is left out."""
    if column.kind == "boolean":
        entry = cells.boolean(column.name, null=column.nulls, words=column.writing.words)
        entry = replace(entry, seen=column.nulls or "words" in entry.fields)
        return replace(entry, fields=entry.fields | _intake_fields(column))
    if column.kind == "category" and column.values:
        return replace(cells.category(column.name, column.values, null=column.nulls), seen=True)
    if column.kind == "category" or column.is_identifier or column.low is None or not _is_finite(column):
        return OutlineEntry.without(column.name, _why_left_out(column), seen=True)
    cut = _cut(column)
    entry = cells.ordered(
        column.name, column.kind, *_rounded(column), null=column.nulls, cut=cut.edges if cut else ()
    )
    return replace(entry, fields=entry.fields | _intake_fields(column), seen=True, remark="")


def _cut(column: ColumnSummary) -> Cut | None:
    """Where the range of a column of numbers is cut; None for times, and where every value is a cell."""
    if column.kind in ("date", "timestamp"):
        return None
    low, high = _rounded(column)
    if column.kind == "integer" and high - low < 2 * cells.BINS:
        return None
    equal = round_edges(low, high, column.kind)
    return cut_of(equal, column.sample, whole=column.kind == "integer")


def _why_left_out(column: ColumnSummary) -> str:
    many = _distinct(column)
    if column.writing.why:
        return f"{many}: {column.writing.why}"
    if column.is_identifier:
        return f"{many}, one for each row (an identifier?)"
    return f"{many} (an identifier or free text?)" if column.distinct else f"{many}: it is empty"


def _distinct(column: ColumnSummary) -> str:
    return f"{column.distinct:,} distinct value{'' if column.distinct == 1 else 's'}"


def _intake_fields(column: ColumnSummary) -> dict[str, str]:
    """What the line says about how the column is written, as YAML."""
    intake, fields = intake_of(column), dict[str, str]()
    formats = [_double(format.text) for format in intake.formats]
    if formats:
        fields["format"] = formats[0] if len(formats) == 1 else f"[{', '.join(formats)}]"
    for key, texts in (("missing", intake.missing), ("strip", intake.strip)):
        if texts:
            fields[key] = f"[{', '.join(map(_double, texts))}]"
    if intake.decimal != ".":
        fields["decimal"] = _double(intake.decimal)
    if intake.thousands:
        fields["thousands"] = _double(intake.thousands)
    if intake.percent:
        fields["percent"] = "true"
    if (decimals := _decimals(column)) is not None:
        fields["decimals"] = str(decimals)
    return fields


def _decimals(column: ColumnSummary) -> int | None:
    return column.writing.decimals if column.kind == "real" else None


def _double(text: str) -> str:
    """Text as YAML with quotation marks around it, whatever it is."""
    written = scalar(text)
    return written if written.startswith('"') else f'"{written}"'


def note_of(column: ColumnSummary, entry: OutlineEntry) -> ColumnNote:
    """What was made of a column, in words."""
    if entry.left_out:
        return ColumnNote(column.name, "", f"left out: {entry.left_out}")
    said = [column.writing.why] if column.writing.why else []
    if column.kind == "category":
        said.append(_distinct(column))
    elif column.kind != "boolean":
        low, high = _rounded(column)
        said.append(f"from {_shown(low)} to {_shown(high)}")
        if (cut := _cut(column)) is not None and cut.why:
            said.append(cut.why)
        if (decimals := _decimals(column)) is not None:
            said.append(f"rounded to {decimals} decimal{'' if decimals == 1 else 's'}")
    if column.missing:
        said.append(f"{', '.join(map(repr, column.missing))} read as missing")
    if column.unreadable:
        said.append(f"{column.unreadable:,} of {column.rows:,} values cannot be read")
    elif column.nulls and not column.missing:
        said.append("some are missing")
    return ColumnNote(column.name, column.kind, "; ".join(said))


def _shown(bound: Any) -> str:
    return f"{float(bound):,.12g}" if isinstance(bound, Fraction) else str(bound)


def _is_finite(column: ColumnSummary) -> bool:
    return column.kind in ("date", "timestamp") or (isfinite(column.low) and isfinite(column.high))


def _rounded(column: ColumnSummary) -> tuple[Any, Any]:
    """Round bounds around the values seen; those of a few whole numbers as they are."""
    if column.kind == "timestamp":
        return _rounded_moments(column.low, column.high)
    if column.kind == "date":
        last = min(column.high.year + 1, 9999)
        return column.low.replace(month=1, day=1), column.high.replace(year=last, month=1, day=1)
    low, high = Fraction(column.low), Fraction(column.high)
    if column.kind == "integer" and high - low < 2 * cells.BINS:
        return low, max(high, low + 1)
    step = round_step(low, high, column.kind)
    first, last = floor(low / step), ceil(high / step)
    return first * step, max(last, first + 1) * step


def _rounded_moments(first: dt.datetime, last: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """The begins of years around moments that are more than a year apart, of days around others.

    Like those of dates, the last one is an edge that no moment reaches, unless the calendar ends before: edges
    lie between `FIRST` and `LAST`, and moments beyond these count in the first and the last bin.
    """
    long = last - first > dt.timedelta(days=366)
    low = dt.datetime.combine(first.replace(month=1, day=1) if long else first, dt.time())
    low = min(max(low, FIRST), dt.datetime.combine(LAST, dt.time()))
    if long:
        return low, LAST if last.year == dt.MAXYEAR else dt.datetime(last.year + 1, 1, 1)
    day = dt.datetime.combine(last, dt.time())
    return low, LAST if day.date() >= LAST.date() else max(day, low) + dt.timedelta(days=1)
