"""A first draft of a declaration, read off the data: for the custodian's eyes only, to be reviewed line by line.

A domain that was read off the data tells what the data holds. So every such line carries a mark, and `check`
goes on warning until the custodian has reviewed it and taken the mark away.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import Any

import ibis
import yaml

from understudy.declaration import SourceSpec
from understudy.errors import SourceError
from understudy.table.source import TEXT_ENDINGS, open_source, read_header

MARK = "# READ OFF THE DATA: review"
MAX_CATEGORIES = 60
BINS = 20


@dataclass(frozen=True)
class Column:
    """What was seen in one column."""

    name: str
    kind: str
    rows: int
    distinct: int
    nulls: bool
    low: Any = None
    high: Any = None
    values: tuple[str, ...] = ()


def draft(data: Path, *, table: str = "", location: str | None = None) -> str:
    """The text of a declaration for a data file."""
    delimiter = _delimiter(data) if _is_text(data) else ","
    source = open_source(SourceSpec(str(data.resolve()), table, delimiter), base=Path())
    seen = [_look(column, source.expression) for column in _typed(source.expression, text=_is_text(data))]
    lines = [
        "# Drafted by `understudy init`. Lines marked READ OFF THE DATA tell what the table holds: replace what",
        "# they say by what is publicly known (code lists, legal limits, round numbers), then remove the mark.",
        "understudy: 1",
        f"name: {_table_name(data)}",
        f"source: {_scalar(location or str(data))}",
        *([f"table: {_scalar(table)}"] if table else []),
        *([f"delimiter: {_scalar(delimiter)}"] if delimiter != "," else []),
        "protect: privacy        # or validity: a holdout set that nobody needs protection from",
        "neighbours: replace     # the number of rows is public; add-remove keeps it private",
        "budget: {epsilon: 1}    # the total for this table, for ever; add delta for Gaussian noise",
        "attributes:",
    ]
    lines += [f"  {line}" for column in seen for line in _declare(column)]
    return "\n".join(lines) + "\n"


def _is_text(data: Path) -> bool:
    return bool(TEXT_ENDINGS & {suffix.lower() for suffix in data.suffixes[-2:]})


def _delimiter(data: Path) -> str:
    """The delimiter that cuts the header line into most columns."""
    try:
        return max(",;\t|", key=lambda mark: len(read_header(data, mark)))
    except csv.Error:
        return ","


def _typed(table: Any, *, text: bool) -> Iterator[Any]:
    """The columns, those of a text file as numbers or dates where every value reads as one."""
    for name in table.columns:
        column = table[name]
        yield _guess(column, table) if text else column


def _guess(column: Any, table: Any) -> Any:
    """A column of text as the first type in which all of its values can be read."""
    filled = column.nullif("")
    number, truth = filled.try_cast("float64"), filled.lower().isin(("true", "false"))
    guesses = {
        "integer": (filled.try_cast("int64"), (number == number.floor()).sum()),
        "real": (number, number.count()),
        "date": (filled.try_cast("date"), filled.try_cast("date").count()),
        "boolean": (truth, truth.sum()),
    }
    counted = table.aggregate(total=filled.count(), **{kind: fits for kind, (_, fits) in guesses.items()})
    read = counted.to_pyarrow().to_pylist()[0]
    fitting = [guess for kind, (guess, _) in guesses.items() if read["total"] and read[kind] == read["total"]]
    return (fitting[0] if fitting else filled).name(column.get_name())


def _look(column: Any, table: Any) -> Column:
    name, dtype = column.get_name(), column.type()
    if dtype.is_timestamp():
        column = column.cast("date").name(name)
    ordered = dtype.is_numeric() or dtype.is_date() or dtype.is_timestamp()
    found = (
        table.aggregate(
            distinct=column.nunique(),
            total=column.count(),
            rows=table.count(),
            **({"low": column.min(), "high": column.max()} if ordered else {}),
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    values: tuple[str, ...] = ()
    kind = "integer" if dtype.is_integer() else "date" if dtype.is_date() or dtype.is_timestamp() else "real"
    if dtype.is_boolean():
        kind = "boolean"
    elif not ordered:
        kind = "category"
        if 0 < found["distinct"] <= MAX_CATEGORIES and dtype.is_string():
            listed = table.select(value=column).filter(ibis._.value.notnull()).distinct().order_by("value")
            values = tuple(listed.to_pyarrow().column("value").to_pylist())
    return Column(
        name=name,
        kind=kind,
        rows=found["rows"],
        distinct=found["distinct"],
        nulls=found["total"] < found["rows"],
        low=found.get("low"),
        high=found.get("high"),
        values=values,
    )


def _declare(column: Column) -> Iterator[str]:
    name = _scalar(column.name)
    null = ", null: true" if column.nulls else ""
    if column.kind == "boolean":
        yield f"{name}: {{type: boolean{null}}}" + (f"  {MARK}" if null else "")
    elif column.kind == "category" and column.values:
        values = ", ".join(_scalar(value) for value in column.values)
        yield f"{name}: {{type: category, values: [{values}]{null}}}  {MARK}"
    elif column.kind == "category" or _is_identifier(column) or column.low is None or not _is_finite(column):
        yield f"# {name}: left out, {column.distinct:,} distinct values (an identifier or free text?)  {MARK}"
    elif column.kind == "integer" and column.high - column.low < 2 * BINS:
        high = max(column.high, column.low + 1)
        yield f"{name}: {{type: integer, bounds: [{column.low}, {high}]{null}}}  {MARK}"
    else:
        edges = _year_edges(column) if column.kind == "date" else _round_edges(column)
        yield f"{name}: {{type: {column.kind}, edges: [{', '.join(edges)}]{null}}}  {MARK}"


def _is_identifier(column: Column) -> bool:
    """Whole numbers that name the rows: no two alike, in a table where that is no accident."""
    return column.kind == "integer" and column.distinct == column.rows > MAX_CATEGORIES


def _is_finite(column: Column) -> bool:
    return column.kind == "date" or (isfinite(column.low) and isfinite(column.high))


def _round_edges(column: Column) -> list[str]:
    """About twenty bins with round edges around the values seen."""
    low, high = float(column.low), float(column.high)
    rough = max((high - low) / BINS, 1e-9)
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    if column.kind == "integer":
        step = max(1.0, step)
    first, last = floor(low / step), ceil(high / step)
    edges = [i * step for i in range(first, max(last, first + 1) + 1)]
    return [str(int(edge)) if column.kind == "integer" else f"{edge:.10g}" for edge in edges]


def _year_edges(column: Column) -> list[str]:
    first, last = column.low.year, column.high.year + 1
    step = max(1, ceil((last - first) / BINS))
    years = list(range(first, last + step, step))
    return [dt.date(min(year, 9999), 1, 1).isoformat() for year in years]


def _table_name(data: Path) -> str:
    name = re.sub(r"[^\w.-]+", "-", data.name.split(".")[0], flags=re.ASCII).strip("-.") or "table"
    return name[:100]


def _scalar(text: str) -> str:
    """Text as YAML that reads back as the same text, inside brackets as well."""
    if re.fullmatch(r"[A-Za-z_][\w-]*", text, flags=re.ASCII):
        return text
    quoted = yaml.dump(text, default_style='"', allow_unicode=True, width=10**9).strip()
    return quoted


def unreviewed(text: str) -> list[int]:
    """The numbers of the lines that still carry the mark."""
    return [i for i, line in enumerate(text.splitlines(), 1) if MARK in line]


def write(data: Path, target: Path, *, table: str = "", overwrite: bool = False) -> str:
    """Draft a declaration into `target`, which must not exist unless it may be overwritten."""
    if target.exists() and not overwrite:
        raise SourceError(f"{target} exists already; remove it first, or write elsewhere with --output")
    try:
        location = str(data.resolve().relative_to(target.resolve().parent))
    except ValueError:
        location = str(data.resolve())
    try:
        text = draft(data, table=table, location=location)
    except SourceError:
        raise
    except Exception as error:  # an engine's own text may quote rows
        raise SourceError(f"{data} cannot be read through ({type(error).__name__}); draft by hand") from None
    target.write_text(text, encoding="utf-8")
    return text
