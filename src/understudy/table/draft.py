"""A first draft of a declaration, for the custodian's eyes only, to be reviewed line by line.

It is read off the data, or off a description that another tool has of the table, or off both. A domain that was
read off the data tells what the data holds: every such line carries a mark, and `check` goes on warning until
the custodian has reviewed it and taken the mark away. What a description lacks is marked as well, and `check`
refuses the file until it is filled in.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any

import ibis

from understudy.declaration import cells
from understudy.declaration.declaration import SourceSpec
from understudy.declaration.file import parse
from understudy.declaration.outline import (
    MARK,
    Outline,
    OutlineEntry,
    name_from,
    scalar,
    unquoted,
    unreviewed,
)
from understudy.domain.attribute import Attribute
from understudy.errors import SourceError
from understudy.output import check_no_dangling_link, write_file
from understudy.table.source import TEXT_ENDINGS, open_source, read_header

__all__ = ["MARK", "draft", "drafted", "unreviewed", "write", "write_described"]

MAX_CATEGORIES = 60

URL = re.compile(r"[a-z][a-z0-9+.-]*:/|spark(:|$)")
"""The beginning of a URL, of which a path keeps one slash; or of one of Spark's own places."""


@dataclass(frozen=True)
class ColumnSummary:
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
    return _outline(data, table=table, location=location or str(data)).text()


def _outline(data: Path, *, table: str, location: str) -> Outline:
    if table and _is_one_table(data):
        raise SourceError(
            f"{data.name} holds one table: leave --table out, which names a table of a database"
        )
    delimiter = _delimiter(data) if _is_text(data) else ","
    source = open_source(SourceSpec(str(data.resolve()), table, delimiter), base=Path(), candid=True)
    seen = [_look(column, source.expression) for column in _typed(source.expression, text=_is_text(data))]
    return Outline(
        heading=(
            "Drafted by `understudy init`. Lines marked READ OFF THE DATA tell what the table holds: replace what",
            "they say by what is publicly known (code lists, legal limits, round numbers), then remove the mark.",
        ),
        settings=(
            OutlineEntry.of("name", name_from(data.name.split(".")[0])),
            OutlineEntry.of("source", scalar(location)),
            *([OutlineEntry.of("table", scalar(table))] if table else []),
            *([OutlineEntry.of("delimiter", scalar(delimiter))] if delimiter != "," else []),
            OutlineEntry.of(
                "protect", "privacy", "or validity: a holdout set that nobody needs protection from"
            ),
            OutlineEntry.of(
                "neighbours", "replace", "the number of rows is public; add-remove keeps it private"
            ),
            OutlineEntry.of(
                "budget",
                "{epsilon: 1, delta: 1e-9}",
                "the total for this table, for ever; keep delta far below 1 / people",
            ),
        ),
        attributes=tuple(map(_declare, seen)),
    )


def drafted(table: Any, columns: Sequence[str]) -> tuple[tuple[Attribute, ...], dict[str, str]]:
    """Attributes that are read off columns of a table with types, such as a frame. Looks at the data.

    Beside them, for each column that no attribute was made of, why not.
    """
    try:
        entries = [_declare(_look(table[name], table)) for name in columns]
    except Exception as error:  # an engine's own text may quote rows
        raise SourceError(
            f"the frame cannot be read through ({type(error).__name__}); give its attributes"
        ) from None
    kept = tuple(entry for entry in entries if not entry.left_out)
    left_out = {entry.key: entry.left_out for entry in entries if entry.left_out}
    if not kept:
        return (), left_out
    settings = {"name": "frame", "source": "frame", "budget": "{epsilon: 1}"}
    outline = Outline((), tuple(OutlineEntry.of(key, value) for key, value in settings.items()), kept)
    return tuple(parse(outline.text()).domain), left_out


def _is_text(data: Path) -> bool:
    return bool(TEXT_ENDINGS & {suffix.lower() for suffix in data.suffixes[-2:]})


def _is_one_table(data: Path) -> bool:
    return _is_text(data) or data.suffix.lower() == ".parquet"


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


def _look(column: Any, table: Any) -> ColumnSummary:
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
    return ColumnSummary(
        name=name,
        kind=kind,
        rows=found["rows"],
        distinct=found["distinct"],
        nulls=found["total"] < found["rows"],
        low=found.get("low"),
        high=found.get("high"),
        values=values,
    )


def _declare(column: ColumnSummary) -> OutlineEntry:
    if column.kind == "boolean":
        return replace(cells.boolean(column.name, null=column.nulls), seen=column.nulls)
    if column.kind == "category" and column.values:
        return replace(cells.category(column.name, column.values, null=column.nulls), seen=True)
    if column.kind == "category" or _is_identifier(column) or column.low is None or not _is_finite(column):
        why = f"{column.distinct:,} distinct values (an identifier or free text?)"
        return OutlineEntry.without(column.name, why, seen=True)
    entry = cells.ordered(column.name, column.kind, *_rounded(column), null=column.nulls)
    return replace(entry, seen=True, remark="")


def _is_identifier(column: ColumnSummary) -> bool:
    """Whole numbers that name the rows: no two alike, in a table where that is no accident."""
    return column.kind == "integer" and column.distinct == column.rows > MAX_CATEGORIES


def _is_finite(column: ColumnSummary) -> bool:
    return column.kind == "date" or (isfinite(column.low) and isfinite(column.high))


def _rounded(column: ColumnSummary) -> tuple[Any, Any]:
    """Round bounds around the values seen; those of a few whole numbers as they are."""
    if column.kind == "date":
        last = min(column.high.year + 1, 9999)
        return column.low.replace(month=1, day=1), column.high.replace(year=last, month=1, day=1)
    low, high = Fraction(column.low), Fraction(column.high)
    if column.kind == "integer" and high - low < 2 * cells.BINS:
        return low, max(high, low + 1)
    step = cells.round_step(low, high, column.kind)
    first, last = floor(low / step), ceil(high / step)
    return first * step, max(last, first + 1) * step


def write(data: Path, target: Path, *, table: str = "", overwrite: bool = False) -> str:
    """Draft a declaration into `target`, which must not exist unless it may be overwritten."""
    _check_readable(data)
    _check_free(target, overwrite=overwrite, read=[data])
    outline = _guarded(data, lambda: _outline(data, table=table, location=_location(data, target)))
    text = outline.text()
    write_file(target, text, overwrite=overwrite)
    return text


def write_described(
    description: Path,
    target: Path,
    *,
    read: Callable[[Path, str], Outline],
    data: Path | None = None,
    table: str = "",
    overwrite: bool = False,
    complete: Callable[[Outline], Outline] | None = None,
) -> Outline:
    """Draft a declaration from somebody else's `description` of a table into `target`.

    `read` understands the description, and says what it tells about the table of that name.
    Only where `data` is named, the table is looked at: for what the description lacks, and every such line is
    marked. `complete` may then fill in what is still lacking, by asking.
    """
    if data is not None:
        _check_readable(data)
    _check_free(target, overwrite=overwrite, read=[description, *([] if data is None else [data])])
    outline = read(description, table)
    source = outline.setting["source"]
    if data is not None:
        named = table.rsplit(".", 1)[-1]
        outline = _guarded(data, lambda: _seen(outline, data, table=named, location=_location(data, target)))
    elif not source.lacks:
        beside = description.parent / unquoted(source.fields[""])
        outline = outline.with_setting(OutlineEntry.of("source", scalar(_location(beside, target))))
    if complete is not None:
        outline = complete(outline)
    write_file(target, outline.text(), overwrite=overwrite)
    return outline


def _check_free(target: Path, *, overwrite: bool, read: Sequence[Path]) -> None:
    """Refuse to write over a file that nobody asked to replace, and ever over what is read."""
    check_no_dangling_link(target)
    if target.exists() and any(path.exists() and target.samefile(path) for path in read):
        raise SourceError(f"{target} is what is to be described: write elsewhere with --output")
    if target.exists() and overwrite and not _is_declaration(target):
        raise SourceError(f"{target} is no declaration, and is not replaced: write elsewhere with --output")
    if target.exists() and not overwrite:
        raise SourceError(
            f"{target} exists already; replace it with --overwrite, or write elsewhere with --output"
        )


def _is_declaration(path: Path) -> bool:
    """Whether a file may be a declaration, be it one with mistakes in it."""
    try:
        return re.search(r"^understudy:", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _check_readable(data: Path) -> None:
    """Say what stands in the way of a file before anything tries to read it."""
    if data.exists():
        return
    if URL.match(str(data)):
        raise SourceError(
            "init reads files: CSV, TSV, Parquet or DuckDB. For a table behind a URL write `source:` and the "
            "attributes by hand, or draft them from a description of the table with --from"
        )
    raise SourceError(f"there is no file {data}; name a CSV, TSV, Parquet or DuckDB file")


def _location(data: Path, target: Path) -> str:
    """The place of the data as the declaration in `target` would name it."""
    try:
        return str(data.resolve().relative_to(target.resolve().parent))
    except ValueError:
        return str(data.resolve())


def _guarded(data: Path, look: Callable[[], Outline]) -> Outline:
    try:
        return look()
    except SourceError:
        raise
    except Exception as error:  # an engine's own text may quote rows
        raise SourceError(f"{data} cannot be read through ({type(error).__name__}); draft by hand") from None


def _seen(outline: Outline, data: Path, *, table: str, location: str) -> Outline:
    """The outline with the lacking attributes read off the data, and the data as its source."""
    described = outline.setting.get("delimiter")
    delimiter = ","
    if _is_text(data):
        delimiter = unquoted(described.fields[""]) if described else _delimiter(data)
    if _is_one_table(data):
        table = ""
    source = open_source(SourceSpec(str(data.resolve()), table, delimiter), base=Path(), candid=True)
    rows = source.expression
    attributes = [
        _looked_up(entry, rows) if entry.lacks and entry.column in rows.columns else entry
        for entry in outline.attributes
    ]
    known = {entry.column for entry in outline.attributes}
    extra = [
        OutlineEntry.without(name, "a column of the table that is not described")
        for name in rows.columns
        if name not in known
    ]
    outline = outline.without_setting("delimiter").with_setting(OutlineEntry.of("source", scalar(location)))
    if delimiter != ",":
        outline = outline.with_setting(OutlineEntry.of("delimiter", scalar(delimiter)))
    if table:
        outline = outline.with_setting(OutlineEntry.of("table", scalar(table)))
    return replace(outline, attributes=(*attributes, *extra))


def _looked_up(entry: OutlineEntry, rows: Any) -> OutlineEntry:
    """A lacking attribute, read off its column in the type that is described."""
    kind = entry.fields["type"]
    wanted = {"category": "string", "integer": "int64", "real": "float64", "date": "date"}[kind]
    column = rows[entry.column]
    column = column.nullif("").try_cast(wanted) if column.type().is_string() else column.cast(wanted)
    found = _declare(replace(_look(column.name(entry.key), rows), kind=kind))
    described = {key: value for key, value in entry.fields.items() if key in ("null", "column")}
    seen = {key: value for key, value in found.fields.items() if key != "null"}
    return found if found.left_out else replace(found, fields=seen | described)
