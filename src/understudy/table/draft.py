"""A first draft of a declaration, for the custodian's eyes only, to be reviewed line by line.

It is read off the data, or off a description that another tool has of the table, or off both. A domain that was
read off the data tells what the data holds: every such line carries a mark, and `check` goes on warning until
the custodian has reviewed it and taken the mark away. What a description lacks is marked as well, and `check`
refuses the file until it is filled in.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any, TypeVar

from understudy.declaration import cells
from understudy.declaration.declaration import UNREADABLE, SourceSpec
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
from understudy.declaration.round_edges import round_edges, round_step
from understudy.declaration.skew import Cut, cut_of
from understudy.domain.attribute import Attribute
from understudy.domain.instants import FIRST, LAST
from understudy.errors import SourceError
from understudy.output import check_no_dangling_link, write_file
from understudy.table.file_view import held, places_of
from understudy.table.source import Source, open_source
from understudy.table.survey import ColumnSummary, intake_of, look, survey
from understudy.table.text_file import is_packed, is_text
from understudy.table.text_shape import Custodian, TextShape, shape_of

__all__ = ["MARK", "ColumnNote", "Drafted", "draft", "drafted", "unreviewed", "write", "write_described"]

Result = TypeVar("Result")

HELD = 256 << 20
"""Bytes of text that are read once and then held in memory: parsing them takes longer than looking at them."""

PACKED = 8
"""How many times smaller a packed text may be."""

URL = re.compile(r"[a-z][a-z0-9+.-]*:/|spark(:|$)")
"""The beginning of a URL, of which a path keeps one slash; or of one of Spark's own places."""


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was made of a column, and why. `kind` is empty where it was left out."""

    name: str
    kind: str
    why: str


@dataclass(frozen=True)
class Drafted:
    """A draft: its text, what was made of each column, and what was found out about the file."""

    text: str
    columns: tuple[ColumnNote, ...] = ()
    notes: tuple[str, ...] = ()


_KEPT = {"zcdp": "", "renyi": ", key_delta: 1e-10, filter: renyi", "gdp": ", filter: gdp"}
"""What the budget of a draft says of its filter; `renyi` sets a part of δ aside, for bounded noise and keys."""


def draft(data: Path, *, table: str = "", location: str | None = None) -> str:
    """The text of a declaration for a data file."""
    return _drafted(data, _shape(data), table=table, location=location or str(data)).text


def _shape(data: Path, **given: Any) -> TextShape | None:
    """How a file of text is made; None for any other file, about which nothing of that kind can be given."""
    if is_text(data):
        return shape_of(data, **given)
    if given.get("encoding") is not None or given.get("header") is not None:
        raise SourceError(f"{data.name} is no file of text: leave --encoding, --header and --no-header out")
    return None


def _drafted(
    data: Path, shape: TextShape | None, *, table: str, location: str, kept: str = "zcdp"
) -> Drafted:
    if table and _is_one_table(data):
        raise SourceError(
            f"{data.name} holds one table: leave --table out, which names a table of a database"
        )
    place = str(data.resolve())
    spec = SourceSpec(place, table) if shape is None else shape.spec(place)
    source = open_source(spec, base=Path(), candid=True)
    notes = [*(shape.notes if shape else ()), *_lost(data, source)]
    seen = survey(held(source.expression) if _is_small(data) else source.expression)
    entries = [_declare(column) for column in seen]
    outline = Outline(
        heading=(
            "Drafted by `understudy init`. Lines marked READ OFF THE DATA tell what the table holds: replace what",
            "they say by what is publicly known (code lists, legal limits, round numbers), then remove the mark.",
        ),
        settings=(
            OutlineEntry.of("name", name_from(data.name.split(".")[0])),
            OutlineEntry.of("source", scalar(location)),
            *([OutlineEntry.of("table", scalar(table))] if table else []),
            *([] if shape is None else _shape_settings(shape)),
            OutlineEntry.of(
                "protect", "privacy", "or validity: a holdout set that nobody needs protection from"
            ),
            OutlineEntry.of(
                "neighbours", "replace", "the number of rows is public; add-remove keeps it private"
            ),
            OutlineEntry.of(
                "budget",
                f"{{epsilon: 1, delta: 1e-9{_KEPT[kept]}}}",
                "the total for this table, for ever; keep delta far below 1 / people",
            ),
            OutlineEntry.of(
                "coded_copy",
                "true",
                "keep the rows' cell codes beside this file, for its owner alone: faster",
            ),
        ),
        attributes=tuple(entries),
    )
    columns = tuple(_note(column, entry) for column, entry in zip(seen, entries, strict=True))
    return Drafted(outline.text(), columns, tuple(notes))


def _distinct(column: ColumnSummary) -> str:
    return f"{column.distinct:,} distinct value{'' if column.distinct == 1 else 's'}"


def _is_small(data: Path) -> bool:
    """Whether a file is one of text that may be held in memory while its columns are looked at."""
    return is_text(data) and data.stat().st_size * (PACKED if is_packed(data) else 1) <= HELD


def _shape_settings(shape: TextShape) -> list[OutlineEntry]:
    """What a declaration says about a file of text, where it is not as usual."""
    entries = []
    if shape.delimiter != ",":
        entries.append(OutlineEntry.of("delimiter", scalar(shape.delimiter)))
    if shape.encoding != "utf-8":
        entries.append(OutlineEntry.of("encoding", shape.encoding))
    if not shape.header:
        entries.append(OutlineEntry.of("header", "false"))
    if shape.columns:
        entries.append(OutlineEntry.of("columns", f"[{', '.join(map(scalar, shape.columns))}]"))
    return entries


OPTION = "say --encoding {}"
"""How a custodian tells `init` about an encoding."""


def _lost(data: Path, source: Source) -> list[str]:
    """What to say of lines that are no rows; more of them than is usually tolerated are an error."""
    lost = source.lost()
    if not lost.dropped and not lost.ragged:
        return []
    said = []
    if lost.dropped:
        rows = source.expression.count().to_pyarrow().as_py()
        if lost.dropped > UNREADABLE * (rows + lost.dropped):
            raise SourceError(f"{data.name}: {lost.dropped_of(rows, say=OPTION)}")
        said.append(lost.dropped_of(rows, say=OPTION))
    if lost.ragged:
        said.append(
            f"{lost.ragged:,} lines have more or fewer fields than there are columns, or a stray quotation "
            f"mark{places_of(lost.ragged_at, lost.ragged)}"
        )
    return said


def drafted(table: Any, columns: Sequence[str]) -> tuple[tuple[Attribute, ...], dict[str, str]]:
    """Attributes that are read off columns of a frame. Looks at the data.

    Beside them, for each column that no attribute was made of, why not.
    """
    try:
        entries = [_declare(column) for column in survey(table.select(list(columns)))]
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


def _is_one_table(data: Path) -> bool:
    return is_text(data) or data.suffix.lower() == ".parquet"


def _declare(column: ColumnSummary) -> OutlineEntry:
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
    if column.kind == "real" and column.writing.decimals is not None:
        fields["decimals"] = str(column.writing.decimals)
    return fields


def _double(text: str) -> str:
    """Text as YAML with quotation marks around it, whatever it is."""
    written = scalar(text)
    return written if written.startswith('"') else f'"{written}"'


def _note(column: ColumnSummary, entry: OutlineEntry) -> ColumnNote:
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


def write(
    data: Path,
    target: Path,
    *,
    table: str = "",
    overwrite: bool = False,
    encoding: str | None = None,
    header: bool | None = None,
    custodian: Custodian | None = None,
    kept: str = "zcdp",
) -> Drafted:
    """Draft a declaration into `target`, which must not exist unless it may be overwritten.

    `encoding` and `header` say how a file of text is made; where they are None, that is found out, and the
    `custodian` is asked about what is doubtful. Without one, a first line that looks like a row is refused.
    `kept` is the privacy filter that the budget will be declared with.
    """
    _check_readable(data)
    _check_free(target, overwrite=overwrite, read=[data])
    given = {"encoding": encoding, "header": header, "custodian": custodian}
    drafted = _guarded(
        data,
        lambda: _drafted(
            data, _shape(data, **given), table=table, location=_location(data, target), kept=kept
        ),
    )
    write_file(target, drafted.text, overwrite=overwrite)
    return drafted


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


def _guarded(data: Path, read: Callable[[], Result]) -> Result:
    try:
        return read()
    except SourceError:
        raise
    except Exception as error:  # an engine's own text may quote rows
        raise SourceError(f"{data} cannot be read through ({type(error).__name__}); draft by hand") from None


def _seen(outline: Outline, data: Path, *, table: str, location: str) -> Outline:
    """The outline with the lacking attributes read off the data, and the data as its source."""
    described = outline.setting.get("delimiter")
    shape = None
    if is_text(data):
        shape = shape_of(data, header=True, delimiter=unquoted(described.fields[""]) if described else None)
    if _is_one_table(data):
        table = ""
    place = str(data.resolve())
    spec = SourceSpec(place, table) if shape is None else shape.spec(place)
    rows = open_source(spec, base=Path(), candid=True).expression
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
    for entry in reversed([] if shape is None else _shape_settings(shape)):
        outline = outline.with_setting(entry)
    if table:
        outline = outline.with_setting(OutlineEntry.of("table", scalar(table)))
    return replace(outline, attributes=(*attributes, *extra))


def _looked_up(entry: OutlineEntry, rows: Any) -> OutlineEntry:
    """A lacking attribute, read off its column in the type that is described."""
    kind = entry.fields["type"]
    wanted = {"category": "string", "integer": "int64", "real": "float64", "date": "date"}[kind]
    column = rows[entry.column]
    column = column.nullif("").try_cast(wanted) if column.type().is_string() else column.cast(wanted)
    found = _declare(replace(look(column.name(entry.key), rows), kind=kind))
    described = {key: value for key, value in entry.fields.items() if key in ("null", "column")}
    seen = {key: value for key, value in found.fields.items() if key != "null"}
    return found if found.left_out else replace(found, fields=seen | described)
