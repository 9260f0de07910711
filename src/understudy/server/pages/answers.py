"""An answer as a page shows it: one table for questions of the small language and for SELECT statements alike.

Every released number stands with its bounds, as words and as a drawn bar with a whisker over them. All bars of a
column have one scale, so that they can be compared by eye.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.answer.answer import flat_numbers
from understudy.answer.cut_bins import CutBins
from understudy.answer.sql_answer import UNCERTIFIED_ORDER
from understudy.output import csv_text
from understudy.pages.svg import line, rectangle
from understudy.server.pages import words

MOST_ROWS = 200
"""Rows of an answer that a page shows; all of them are in its CSV file."""

WIDTH, HEIGHT = 200.0, 18.0


@dataclass(frozen=True, slots=True)
class Released:
    """A released number with its bounds; None for a value or a bound that does not exist."""

    value: float | str | None
    low: float | str | None
    high: float | str | None

    @property
    def shown(self) -> str:
        return words.number(self.value)

    @property
    def reach(self) -> str:
        """How far off the value can be: `± 12`, `3 to 9`, `exact`, or that there is no bound."""
        value, low, high = self.value, self.low, self.high
        if low is None and high is None:
            return "no bound"
        if low is None or high is None:
            return f"at most {words.number(high)}" if low is None else f"at least {words.number(low)}"
        if low == high == value:
            return "exact"
        if isinstance(value, int | float) and isinstance(low, int | float) and isinstance(high, int | float):
            down, up = value - low, high - value
            if abs(up - down) <= 1e-6 * max(abs(up), abs(down)):
                return f"± {words.number(_rounded(up))}"
        return f"{words.number(low)} to {words.number(high)}"


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A released column: its name, its unit, and the least and the largest number on its scale."""

    name: str
    unit: str
    least: float
    most: float

    def bar(self, cell: Released) -> str:
        """The drawing of one number: a bar from 0, and a whisker over its bounds."""

        def at(value: float) -> float:
            held = min(max(value, self.least), self.most)
            return 1 + (held - self.least) / ((self.most - self.least) or 1.0) * (WIDTH - 2)

        drawn: list[str] = []
        if isinstance(cell.value, int | float):
            zero, end = at(0.0), at(float(cell.value))
            kind = "bar doubtful" if cell.low is None and cell.high is None else "bar"
            drawn.append(rectangle(min(zero, end), 3, abs(end - zero), HEIGHT - 6, kind))
        if isinstance(cell.low, int | float) and isinstance(cell.high, int | float):
            a, b, middle = at(float(cell.low)), at(float(cell.high)), HEIGHT / 2
            drawn.append(line(a, middle, b, middle, "whisker"))
            drawn += [line(end, middle - 5, end, middle + 5, "whisker") for end in (a, b)]
        return (
            f'<svg class="spread" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" '
            f'aria-hidden="true">{"".join(drawn)}</svg>'
        )


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer: the names of its groups, its released columns, its rows, and where it came from."""

    keys: tuple[str, ...]
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Released, ...]], ...]
    beta: float
    source: str
    share: float
    population: str
    remark: str = ""
    is_certain: bool = False
    cut_bins: tuple[str, ...] = ()
    """What is certain where a condition cuts bins that a release knows as a whole only."""

    @property
    def single(self) -> Released | None:
        """The one number of an answer without groups."""
        return (
            self.rows[0][1][0] if len(self.rows) == 1 and len(self.columns) == 1 and not self.keys else None
        )

    @property
    def is_bounded(self) -> bool:
        """Whether some number has a bound on both sides."""
        return any(cell.low is not None and cell.high is not None for _, cells in self.rows for cell in cells)

    @property
    def is_uncertified(self) -> bool:
        return self.source == "uncertified"

    def csv(self) -> str:
        """All rows as CSV: groups, and for every released column its value, lower and upper bound."""
        out = io.StringIO()
        writer = csv.writer(out)
        heads = [
            head
            for column in self.columns
            for head in (column.name, f"{column.name} low", f"{column.name} high")
        ]
        writer.writerow([csv_text(head) for head in (*self.keys, *heads)])
        for labels, cells in self.rows:
            numbers = [number for cell in cells for number in (cell.value, cell.low, cell.high)]
            writer.writerow(
                [*map(csv_text, labels), *("" if number is None else number for number in numbers)]
            )
        return out.getvalue()


def shown_answer(plain: Mapping[str, Any]) -> ShownAnswer:
    """The plain values of an answer, as the gate tells them, for a page."""
    keys, columns, rows = _of_sql(plain) if "columns" in plain else _of_cells(plain)
    return ShownAnswer(
        keys=keys, columns=columns, rows=rows, beta=float(plain.get("beta") or 0.0),
        source=str(plain.get("source", "")), share=float(plain.get("share") or 0.0),
        population=_population(plain), remark=_remark(plain), is_certain=plain.get("beta") == 0,
        cut_bins=_cut_bins(plain),
    )  # fmt: skip


def _cut_bins(plain: Mapping[str, Any]) -> tuple[str, ...]:
    if plain.get("cut_bins") is None:
        return ()
    found = CutBins.from_dict(plain["cut_bins"])
    said = found.told(unit=str(plain.get("unit", "")), beta=float(plain.get("beta") or 0.0))
    return tuple(f"{line[0].upper()}{line[1:]}." for line in said)


def _remark(plain: Mapping[str, Any]) -> str:
    """What is to be known of an answer besides its bounds: that it has none, or that its order is not sure."""
    if plain.get("bounds") == "none":
        made = "These rows were made of released ones, and have no bounds."
        return f"{made} {plain.get('problem', '')}".strip()
    return UNCERTIFIED_ORDER if plain.get("order") == "uncertified" else ""


Rows = tuple[tuple[tuple[str, ...], tuple[Released, ...]], ...]
Parts = tuple[tuple[str, ...], tuple[ShownColumn, ...], Rows]


def _of_cells(plain: Mapping[str, Any]) -> Parts:
    unit = str(plain.get("unit", ""))
    listed = plain.get("rows", [{"cell": [], "value": plain.get("value"), "error": plain.get("error")}])
    released = [_around(row["value"], row["error"]) for row in listed]
    cut = plain.get("cut_bins")
    told = cut or plain
    if "low" in told and "high" in told:  # the ends need not lie evenly around the value
        ends = zip(released, flat_numbers(told["low"]), flat_numbers(told["high"]), strict=True)
        released = [  # of what nobody vouches for nothing is proved
            number if cut is not None and number.high is None else Released(number.value, low, high)
            for number, low, high in ends
        ]
    rows: Rows = tuple(
        (tuple(str(label) for label in row["cell"]), (number,))
        for row, number in zip(listed, released, strict=True)
    )
    name = unit.partition(" ")[0]  # people, share, rate, or an aggregate of measures such as avg
    column = _scaled(name, unit, [cells[0] for _, cells in rows])
    return tuple(str(name) for name in plain.get("by", ())), (column,), rows


def _of_sql(plain: Mapping[str, Any]) -> Parts:
    told: Sequence[Mapping[str, str]] = plain["columns"]
    values = [place for place, column in enumerate(told) if column["kind"] == "value"]
    keys = [place for place in range(len(told)) if place not in values]
    rows: Rows = tuple(
        (
            tuple("null" if row[place] is None else str(row[place]) for place in keys),
            tuple(_estimate(row[place]) for place in values),
        )
        for row in plain["rows"]
    )
    columns = tuple(
        _scaled(told[place]["name"], "", [cells[number] for _, cells in rows])
        for number, place in enumerate(values)
    )
    return tuple(told[place]["name"] for place in keys), columns, rows


def _around(value: float | None, error: float | None) -> Released:
    if value is None or error is None:
        return Released(value, None, None)
    return Released(value, value - error, value + error)


def _estimate(cell: Any) -> Released:
    if not isinstance(cell, Mapping):
        return Released(cell, None, None)
    return Released(cell.get("value"), cell.get("low"), cell.get("high"))


def _scaled(name: str, unit: str, cells: Sequence[Released]) -> ShownColumn:
    ends = [
        float(end)
        for cell in cells
        for end in (cell.value, cell.low, cell.high)
        if isinstance(end, int | float)
    ]
    least = min([0.0, *ends])
    if least < 0 and all(not isinstance(cell.value, int | float) or cell.value >= 0 for cell in cells):
        least = 0.0  # whiskers of counts that reach below 0 end there
    return ShownColumn(name, unit, least, max([*ends, least + 1e-9]))


def _population(plain: Mapping[str, Any]) -> str:
    beta = plain.get("population_beta")
    if beta is None:
        return ""
    by = plain.get("population_theorem")
    said = f"Bounds for the population behind the table hold with probability {words.chances(beta)}"
    return f"{said}." if by is None else f"{said}, by {by}."


def _rounded(value: float) -> float:
    return round(value) if value >= 100 else value
