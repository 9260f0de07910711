"""The declaration that is made of what was bought: bins of numbers and days, keys, why columns are left out."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from understudy.curator.column_curator import FoundKeys
from understudy.declaration import cells
from understudy.declaration.outline import OutlineEntry, scalar
from understudy.declaration.round_edges import SECONDS
from understudy.domain.attribute import same_text
from understudy.domain.edge import as_number
from understudy.domain.instant import instant_of, seconds_of
from understudy.domain.instants import FIRST, LAST
from understudy.mechanism.column_profile.profile import ABOVE_ZERO, BINS, ColumnProfile
from understudy.table.column_reader import NumberReading, ValueKind

IDENTIFIER = 0.95
"""A column of whole numbers is taken for an identifier where so many of its values are different ones."""

LEAST_IDENTIFIER = 0.8
"""Where noise is large, a share down to this one may be that of an identifier."""

UNLUCKY = 2.0
"""Deviations by which noise may make an identifier's different values seem fewer."""

COVERED = 0.5
"""A column of text is left out where the keys that were found cover less than this of its texts."""

MOST_KEYS = 1000
"""Keys of one column that a declaration lists: the most frequent ones."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands in a text for bytes that are not in the encoding in which the file is read."""

DIGITS = 4
"""Digits of an edge, counted from those of the width of its bins."""


@dataclass(frozen=True, slots=True)
class StartedColumn:
    """What became of one column: a line of the declaration, and what is known of it for the summary.

    `kind` is a type of the declaration, empty where the column was left out; `why` says why. `keys` are values
    of text with noisy counts, `quarters` the numbers or days below which about a quarter, half and three
    quarters of the rows lie, and `missing` about how many rows have no value there.
    """

    name: str
    kind: str
    why: str
    entry: OutlineEntry
    keys: tuple[tuple[str, float], ...] = ()
    missing: float = 0.0
    quarters: tuple[str, ...] = ()


def left_out(name: str, why: str) -> StartedColumn:
    """A column that no attribute is made of."""
    return StartedColumn(name, "", why, OutlineEntry.without(name, why))


def without_name(places: Sequence[int]) -> list[StartedColumn]:
    """Columns that the header has no name for: by the header alone they are left out, at no price."""
    why = "the header has no name for it: if it holds anything, name it in the first line of the file"
    return [left_out(f"column {place}", why) for place in places]


def flag(name: str, why: str, missing: Sequence[str] = ()) -> StartedColumn:
    """A column of yes and no, of which nothing had to be bought. `missing` are texts that stand for no value."""
    entry = OutlineEntry(name, {"type": "boolean"} | _words(missing) | {"null": "true"}, {})
    return StartedColumn(name, "boolean", why, entry)


def of_numbers(
    name: str,
    reading: NumberReading,
    found: ColumnProfile,
    why: str,
    missing: Sequence[str] = (),
    *,
    rows: float,
    distinct_deviation: float,
) -> StartedColumn:
    """A column of numbers or days, cut where its bins were found. `missing` are texts that stand for no value.

    `rows` is about how many rows were read of it, and `distinct_deviation` that of the noise on the number of its
    different values; both are public, as all that is found.
    """
    if reading.kind is ValueKind.WHOLE and _is_identifier(found, rows, distinct_deviation):
        return left_out(name, f"{why}, nearly all of them different: an identifier, it seems")
    if found.low is None or found.high is None:
        return left_out(name, f"{why}: too few values for bounds that noise would not hide")
    numbers = [found.low, *found.cuts, found.high]
    kind, edges = _edges(reading, numbers)
    labels = [_shown(edge) for edge in edges]
    fields = {"type": kind, "edges": f"[{', '.join(map(str, edges))}]"} | _intake(reading)
    if kind == "integer" and edges[-1] - edges[0] < 2 * BINS:  # a cell for each number
        fields = {"type": kind, "bounds": f"[{edges[0]}, {edges[-1]}]"} | _intake(reading)
    fields |= _words(missing)
    without = found.missing if found.missing > 2 * found.deviation else 0.0
    if without:
        fields["null"] = "true"
    counts = _merged(numbers, found.counts, [_number(edge) for edge in edges])
    return StartedColumn(
        name,
        kind,
        f"{why}, about {labels[0]} to {labels[-1]}",
        OutlineEntry(name, fields, {}),
        (),
        without,
        tuple(_below(labels, counts, share) for share in (0.25, 0.5, 0.75)),
    )


def _is_identifier(found: ColumnProfile, rows: float, deviation: float) -> bool:
    """Whether nearly all numbers of a column are different, as far as noise lets that be seen.

    How many there are is told by the rows that have none, which is one noisy count; the bins are many. Of fewer
    than four deviations nothing can be seen.
    """
    people = rows - (found.missing if found.missing > 2 * found.deviation else 0.0)
    least = max(IDENTIFIER * people - UNLUCKY * deviation, LEAST_IDENTIFIER * people)
    return found.distinct > max(least, 4 * deviation)


def of_keys(name: str, found: FoundKeys, why: str) -> StartedColumn:
    """A column of text by its keys; left out where they cover too little of it."""
    total = sum(found.counts)
    kept: dict[str, int] = {}
    for label, count in zip(found.labels, found.counts, strict=True):
        plain = same_text(label)
        if plain.isprintable():
            kept[plain] = kept.get(plain, 0) + count
    listed = dict(list(kept.items())[:MOST_KEYS])
    is_covered = total >= COVERED * found.texts
    if not listed or not is_covered:
        share = f"{min(total / found.texts, 1.0):.0%}" if found.texts > 0 < total else "nearly nothing"
        reason = (
            ", and none of them can be declared: each holds characters that cannot be printed"
            if total > 0 and is_covered
            else " (an identifier or free text, it seems)"
        )
        return left_out(
            name, f"{why}: values that {found.threshold:,} rows or more hold cover {share} of it{reason}"
        )
    entry = cells.category(name, listed, null=True)
    entry = OutlineEntry(name, entry.fields | {"outside": "other"}, {})
    many = f"{len(listed):,} values" if len(listed) > 1 else "one value"
    strange = (
        ", some with characters that are not in this encoding: start again with --encoding (latin-1, say)"
        if any(REPLACEMENT in label for label in listed)
        else ""
    )
    return StartedColumn(
        name,
        "category",
        f"{why}: {many} that about {found.threshold:,} rows or more hold each{strange}",
        entry,
        tuple((label, float(count)) for label, count in listed.items()),
    )


def _edges(reading: NumberReading, numbers: Sequence[float]) -> tuple[str, list[Any]]:
    """The type of an attribute, and its edges in it: rising, and two at least."""
    if reading.kind is ValueKind.MOMENT:
        return "timestamp", _moments(numbers)
    if reading.kind is ValueKind.DAY:
        days = sorted({_day(number) for number in numbers})
        return "date", days if len(days) > 1 else [days[0], days[0] + dt.timedelta(days=1)]
    if reading.kind is ValueKind.WHOLE:
        whole = sorted({_within_64_bits(number) for number in numbers})
        return "integer", whole if len(whole) > 1 else [whole[0], whole[0] + 1]
    return "real", _shortened(numbers)


def _number(edge: Any) -> float:
    return as_number(edge)


def _shown(edge: Any) -> str:
    if isinstance(edge, dt.datetime):
        return str(edge)
    return edge.isoformat() if isinstance(edge, dt.date) else f"{edge:,.12g}"


def _moments(numbers: Sequence[float]) -> list[dt.datetime]:
    """Edges in seconds as moments at round places, which are at most an eighth of a bin apart."""
    width = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    unit = max((length for length in SECONDS if 8 * length <= width), default=1)
    low, *inner, high = (number / unit for number in numbers)
    whole = {floor(low), ceil(high), *(round(number) for number in inner)}
    least, most = seconds_of(FIRST), seconds_of(LAST)
    edges = sorted({min(max(number * unit, least), most) for number in whole})
    return [instant_of(edge) for edge in (edges if len(edges) > 1 else [edges[0], edges[0] + unit])]


def _day(number: float) -> dt.date:
    first, last = dt.date(1, 1, 1), dt.date(9999, 12, 30)
    days = min(max(number, (first - dt.date(1970, 1, 1)).days), (last - dt.date(1970, 1, 1)).days)
    return dt.date(1970, 1, 1) + dt.timedelta(days=int(days))


def _within_64_bits(number: float) -> int:
    return int(min(max(number, -(2.0**62)), 2.0**62))


def _shortened(numbers: Sequence[float]) -> list[float]:
    """The same edges in few digits; those that fall together are one."""
    width = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    digits = DIGITS - 1 - floor(log10(width))
    short = {number if abs(number) == ABOVE_ZERO else round(number, digits) + 0.0 for number in numbers}
    return sorted(short) if len(short) > 1 else sorted(set(numbers))


def _merged(numbers: Sequence[float], counts: Sequence[float], edges: Sequence[float]) -> list[float]:
    """Noisy counts of the bins between new edges: each old bin goes where its middle lies."""
    found = [0.0] * (len(edges) - 1)
    for low, high, count in zip(numbers, numbers[1:], counts, strict=False):
        place = bisect_right(edges, (low + high) / 2) - 1
        found[min(max(place, 0), len(found) - 1)] += max(count, 0.0)
    return found


def _below(labels: Sequence[str], counts: Sequence[float], share: float) -> str:
    """The edge below which about that share of the counts lies."""
    reached = np.cumsum(counts)
    place = int(np.argmin(np.abs(reached - share * reached[-1])))
    return labels[place + 1]


def _intake(reading: NumberReading) -> dict[str, str]:
    """What the line says about how a column is written."""
    intake, fields = reading.intake, dict[str, str]()
    if intake.formats:
        fields["format"] = f"[{', '.join(_quoted(each.text) for each in intake.formats)}]"
    if intake.strip:
        fields["strip"] = f"[{', '.join(map(_quoted, intake.strip))}]"
    if intake.decimal != ".":
        fields["decimal"] = _quoted(intake.decimal)
    if intake.thousands:
        fields["thousands"] = _quoted(intake.thousands)
    if intake.percent:
        fields["percent"] = "true"
    return fields


def _words(missing: Sequence[str]) -> dict[str, str]:
    """What the line says about texts that stand for no value."""
    return {"missing": f"[{', '.join(map(_quoted, missing))}]"} if missing else {}


def _quoted(text: str) -> str:
    written = scalar(text)
    return written if written.startswith('"') else f'"{written}"'
