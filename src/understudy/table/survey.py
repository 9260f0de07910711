"""What a table's columns hold, for a custodian who declares them: types by majority, bounds, values, and why.

Some rows are looked at to guess how text is written; then every row is read, a few times for all columns
together, to count what the guess can read. Exact facts of the table come back: for nobody but the custodian.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ibis

from understudy.domain.attribute import Attribute
from understudy.domain.bins import Bins
from understudy.domain.instant import EPOCH, SECOND, instant_of
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake
from understudy.table.dialect import Expression
from understudy.table.duckdb_dialect import DUCKDB
from understudy.table.encode import as_number
from understudy.table.engine import step_by_step
from understudy.table.intake import taken_in
from understudy.table.writing import MAJORITY, Writing, decimals_of, is_token, writing_of

MAX_CATEGORIES = 60
"""A column of text with more values than this is no category that anybody would list."""

SAMPLED = 1000
"""Rows from which the writing of text is guessed."""

AT_ONCE = 200
"""Columns that one statement counts."""

SHOWN = 40
"""Texts that cannot be read, of which the most frequent are looked at."""

REPEATED = 10
"""A short text without digits that stands so often among numbers or dates says that there is none."""

WIDEST = 1e300

CLOCKS = 0.01
"""The part of a column's days that must have a time of day other than midnight for it to hold moments."""


@dataclass(frozen=True)
class ColumnSummary:
    """What was seen in one column.

    kind        category, integer, real, date, timestamp or boolean
    nulls       whether some rows have no value, or none that can be read
    writing     how its text is written, where it is text
    missing     texts in it that stand for missing values
    unreadable  rows whose text is neither of its kind nor stands for a missing value
    sample      numbers from some rows, where the whole table was looked at
    """

    name: str
    kind: str
    rows: int
    distinct: int
    nulls: bool
    low: Any = None
    high: Any = None
    values: tuple[str, ...] = ()
    writing: Writing = field(default_factory=Writing)
    missing: tuple[str, ...] = ()
    unreadable: int = 0
    sample: tuple[float, ...] = ()

    @property
    def is_identifier(self) -> bool:
        """Whether it has whole numbers that name the rows: no two alike, in a table where that is no accident."""
        return self.kind == "integer" and self.distinct == self.rows > MAX_CATEGORIES


def survey(table: Any) -> list[ColumnSummary]:
    """What is in each column of a table of the embedded engine."""
    writings, samples, decimals = _sampled(table)
    found: list[ColumnSummary] = []
    names = list(table.columns)
    with step_by_step():
        for first in range(0, len(names), AT_ONCE):
            found += _surveyed(table, {name: writings.get(name) for name in names[first : first + AT_ONCE]})
    found = [replace(seen, sample=samples.get(seen.name, ())) for seen in found]
    return [
        replace(seen, writing=replace(seen.writing, decimals=decimals[seen.name]))
        if seen.name in decimals
        else seen
        for seen in found
    ]


def look(column: Any, table: Any) -> ColumnSummary:
    """What is in one column that has its type."""
    name = column.get_name()
    with step_by_step():
        (seen,) = _surveyed(table.select(column), {name: None})
    return seen


def _sampled(table: Any) -> tuple[dict[str, Writing], dict[str, tuple[float, ...]], dict[str, int]]:
    """From some rows of the whole table: how columns of text are written, the numbers of those that have some, and
    how many decimals the numbers have in columns of rounded ones that are no text.
    """
    types = table.schema()
    looked_at = [name for name, dtype in types.items() if dtype.is_string() or dtype.is_numeric()]
    if not looked_at:
        return {}, {}, {}
    connection = table.get_backend()
    rows = connection.compile(table.select(looked_at))
    sampled = f"SELECT * FROM ({rows}) USING SAMPLE reservoir({SAMPLED} ROWS) REPEATABLE (1)"
    columns = connection.con.execute(sampled).fetch_arrow_table()
    writings: dict[str, Writing] = {}
    numbers: dict[str, tuple[float, ...]] = {}
    decimals: dict[str, int] = {}
    for i, name in enumerate(looked_at):
        values: list[Any] = [value for value in columns.column(i).to_pylist() if value not in (None, "")]
        if types[name].is_string():
            writings[name] = writing_of(values)
            read = writings[name].intake.value
            values = [read(text, "real") for text in values] if writings[name].kind == "number" else []
        elif not types[name].is_integer():
            rounded_to = decimals_of(values, single=types[name].is_float32())
            decimals |= {} if rounded_to is None else {name: rounded_to}
        finite = (float(value) for value in values if value is not None)
        numbers[name] = tuple(number for number in finite if abs(number) < WIDEST)
    return writings, numbers, decimals


def _surveyed(table: Any, columns: dict[str, Writing | None]) -> Iterator[ColumnSummary]:
    """What is in some columns; those of text with how they are written."""
    counted = _counted(table, columns)
    settled: dict[str, ColumnSummary] = {}
    for i, (name, writing) in enumerate(columns.items()):
        own = {
            key: counted[f"{key}{i}"]
            for key in ("f", "n", "w", "z", "d", "lo", "hi", "s", "c", "first", "last")
            if f"{key}{i}" in counted
        }
        settled[name] = _settled(table, name, writing, own, counted["rows"])
    again = {name: Writing(why=s.writing.why) for name, s in settled.items() if s.distinct < 0}
    if again:
        settled |= {s.name: s for s in _surveyed(table, dict(again))}
        for name, before in again.items():
            settled[name] = replace(settled[name], writing=before)
    if not again or len(again) < len(columns):
        settled = _with_values(table, settled)
    yield from (settled[name] for name in columns)


def _counted(table: Any, columns: dict[str, Writing | None]) -> dict[str, Any]:
    """The facts of each column, in one pass over the rows."""
    taken, typed = {}, {}
    for i, (name, writing) in enumerate(columns.items()):
        if writing is not None and writing.kind in ("number", "date"):
            taken[f"t{i}"] = taken_in(reading_as(name, writing), table[name].nullif(""), DUCKDB)
    rows = table.mutate(**taken) if taken else table
    for i, writing in enumerate(columns.values()):
        if f"t{i}" in taken:
            text = rows[f"t{i}"]
            typed[f"v{i}"] = DUCKDB.number(text) if writing.kind == "number" else DUCKDB.day(text)  # type: ignore[union-attr]
    for i, (name, writing) in enumerate(columns.items()):
        if (moment := _moment(table[name], writing)) is not None:
            typed[f"m{i}"] = moment
    rows = rows.mutate(**typed) if typed else rows
    facts: dict[str, Expression] = {"rows": rows.count()}
    for i, (name, writing) in enumerate(columns.items()):
        facts |= {f"{key}{i}": fact for key, fact in _facts(rows, name, f"v{i}", writing).items()}
        if f"m{i}" in typed:
            seconds = rows[f"m{i}"]
            clock: Expression = ibis.ifelse(seconds % 86_400 != 0, seconds, ibis.null("int64"))
            facts |= {f"s{i}": seconds.count(), f"c{i}": clock.count()}
            facts |= {f"first{i}": seconds.min(), f"last{i}": seconds.max()}
    return rows.aggregate(**facts).to_pyarrow().to_pylist()[0]


def _moment(column: Any, writing: Writing | None) -> Expression | None:
    """The moments of a column of days or timestamps, in seconds since 1970; None for any other column."""
    if not (column.type().is_timestamp() if writing is None else writing.kind == "date"):
        return None
    intake = Intake() if writing is None else writing.intake
    reading = Instants(name=column.get_name(), starts=(EPOCH,), upper=EPOCH + SECOND, intake=intake)
    text = column if writing is None else column.nullif("")
    moment, _ = as_number(reading, taken_in(reading, text, DUCKDB), DUCKDB)
    return (moment.epoch_seconds() if moment.type().is_timestamp() else moment).cast("int64")


def _facts(rows: Any, name: str, typed: str, writing: Writing | None) -> dict[str, Expression]:
    column = rows[name]
    if writing is None:
        return _typed_facts(column)
    filled = column.nullif("")
    facts = {"f": filled.count()}
    if writing.kind == "number":
        number = rows[typed]
        sound: Expression = ibis.ifelse(
            number.abs() < WIDEST, number, ibis.null("float64")
        )  # NaN is above every bound
        # Only of whole numbers it matters whether no two are alike; counting different ones takes a table of them.
        whole: Expression = ibis.ifelse(sound == sound.floor(), sound, ibis.null("float64"))
        facts |= {"n": sound.count(), "w": whole.count(), "d": whole.nunique()}
        facts |= {"lo": sound.min(), "hi": sound.max()}
        if not writing.intake:
            facts["z"] = filled.re_search("^0[0-9]").sum()
    elif writing.kind == "date":
        day = rows[typed]
        facts |= {"n": day.count(), "d": day.nunique(), "lo": day.min(), "hi": day.max()}
    elif writing.kind == "boolean":
        facts |= {"n": filled.strip().lower().isin(("true", "false")).sum(), "d": filled.lower().nunique()}
    else:
        facts |= {"d": filled.nunique()}
    return facts


def _typed_facts(column: Any) -> dict[str, Expression]:
    dtype = column.type()
    if dtype.is_timestamp():
        column = column.cast("date")
    facts = {"f": column.count(), "d": column.nunique()}
    if dtype.is_numeric() or dtype.is_date() or dtype.is_timestamp():
        facts |= {"lo": column.min(), "hi": column.max()}
    return facts


def _settled(
    table: Any, name: str, writing: Writing | None, facts: dict[str, Any], rows: int
) -> ColumnSummary:
    """The column as what most of its values are; a negative number of distinct values: to be read as text."""
    seen = ColumnSummary(
        name, "category", rows, facts["d"], facts["f"] < rows, facts.get("lo"), facts.get("hi")
    )
    if writing is None:
        return _with_clock(replace(seen, kind=_kind(table[name].type())), facts, facts["f"])
    if writing.kind == "text":
        return replace(seen, writing=writing)
    readable = facts["n"] or 0
    strange = _strange(table, name, writing) if readable < facts["f"] else []
    missing = tuple(text for text, count in strange if _stands_for_nothing(text, count))
    unreadable = facts["f"] - readable - sum(count for text, count in strange if text in missing)
    whole = facts.get("w") == readable
    if readable < MAJORITY * (readable + unreadable) or not readable:
        return replace(seen, distinct=-1, writing=Writing(why="its values are of no one kind"))
    if whole and facts.get("z"):
        return replace(seen, distinct=-1, writing=Writing(why="codes with leading zeros stay text"))
    kind = {"number": "integer" if whole else "real"}.get(writing.kind, writing.kind)
    found = replace(
        seen, kind=kind, nulls=readable < rows, writing=writing, missing=missing, unreadable=unreadable
    )
    return _with_clock(found, facts, readable)


def _with_clock(seen: ColumnSummary, facts: dict[str, Any], readable: int) -> ColumnSummary:
    """A column of days as one of moments, where all of them can be read and enough have a time of day."""
    if seen.kind != "date" or facts.get("s", 0) < readable or not facts.get("c", 0) > CLOCKS * readable:
        return seen
    first, last = instant_of(facts["first"]), instant_of(facts["last"])
    return replace(seen, kind="timestamp", low=first, high=last)


def _kind(dtype: Any) -> str:
    if dtype.is_boolean():
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_date() or dtype.is_timestamp():
        return "date"
    return "real" if dtype.is_numeric() else "category"


def _stands_for_nothing(text: str, count: int) -> bool:
    short = len(text) <= 20 and not any(character.isdigit() for character in text)
    return is_token(text) or (short and count >= REPEATED)


def reading_as(name: str, writing: Writing, missing: Sequence[str] = ()) -> Attribute:
    """An attribute that reads a column as it is written; its cells do not matter."""
    intake = replace(writing.intake, missing=tuple(missing)) if missing else writing.intake
    edges: tuple[Any, Any] = (
        (dt.date(2000, 1, 1), dt.date(2001, 1, 1)) if writing.kind == "date" else (0.0, 1.0)
    )
    return Bins(name=name, starts=edges[:1], upper=edges[1], intake=intake)


def _strange(table: Any, name: str, writing: Writing) -> list[tuple[str, int]]:
    """The texts of a column that cannot be read as it is written, the most frequent first."""
    text = table[name].nullif("")
    if writing.kind == "boolean":
        readable = text.strip().lower().isin(("true", "false"))
    else:
        taken = taken_in(reading_as(name, writing), text, DUCKDB)
        readable = (
            DUCKDB.number(taken).abs() < WIDEST if writing.kind == "number" else DUCKDB.day(taken).notnull()
        )
    odd = table.select(text=text.strip(), readable=readable.fill_null(False))  # noqa: FBT003 (what null means here)
    odd = odd.filter(~odd.readable, odd.text.notnull())
    listed = odd.group_by("text").aggregate(n=odd.count()).order_by(ibis.desc("n"), "text").limit(SHOWN)
    return [(row["text"], row["n"]) for row in listed.to_pyarrow().to_pylist()]


def _with_values(table: Any, columns: dict[str, ColumnSummary]) -> dict[str, ColumnSummary]:
    """The columns, those with few texts with a list of them: one more pass over the rows for all."""
    few = [
        name
        for name, seen in columns.items()
        if seen.kind == "category" and 0 < seen.distinct <= MAX_CATEGORIES and table[name].type().is_string()
        and not seen.values
    ]  # fmt: skip
    if not few:
        return columns
    facts = {f"l{i}": table[name].nullif("").collect(distinct=True) for i, name in enumerate(few)}
    listed = table.aggregate(**facts).to_pyarrow().to_pylist()[0]
    return columns | {
        name: replace(columns[name], values=tuple(sorted(v for v in listed[f"l{i}"] if v is not None)))
        for i, name in enumerate(few)
    }


def intake_of(seen: ColumnSummary) -> Intake:
    """How the column's text is to be read, as it was seen."""
    return replace(seen.writing.intake, missing=seen.missing)
