"""A draft of a declaration is written into a file: that of a data file, or of a description by another tool.

What is there already is not written over unless somebody asked for that, and the data never is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from understudy.declaration.declaration import SourceSpec
from understudy.declaration.outline import Outline, OutlineEntry, scalar, unquoted
from understudy.errors import SourceError
from understudy.output import check_no_dangling_link, write_file
from understudy.table.draft import Drafted, drafted_file, file_shape, is_one_table, shape_settings
from understudy.table.drafted_column import declared_column
from understudy.table.source import open_source
from understudy.table.survey import look
from understudy.table.text_file import is_text
from understudy.table.text_shape import Custodian, shape_of

Result = TypeVar("Result")

URL = re.compile(r"[a-z][a-z0-9+.-]*:/|spark(:|$)")
"""The beginning of a URL, of which a path keeps one slash; or of one of Spark's own places."""


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
        lambda: drafted_file(
            data, file_shape(data, **given), table=table, location=_location(data, target), kept=kept
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
    if data.is_dir():
        raise SourceError(f"{data} is a folder; name a CSV, TSV, Parquet or DuckDB file in it")
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
    if is_one_table(data):
        table = ""
    place = str(data.resolve())
    spec = SourceSpec(place, table) if shape is None else shape.spec(place)
    rows = open_source(spec, base=Path(), candid=True).expression
    if any(entry.lacks for entry in outline.attributes) and not rows.count().to_pyarrow().as_py():
        raise SourceError(
            f"{data.name} has no rows: what the description lacks cannot be read off it; leave it out, and fill "
            "the draft in by hand"
        )
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
    for entry in reversed([] if shape is None else shape_settings(shape)):
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
    found = declared_column(replace(look(column.name(entry.key), rows), kind=kind))
    described = {key: value for key, value in entry.fields.items() if key in ("null", "column")}
    seen = {key: value for key, value in found.fields.items() if key != "null"}
    return found if found.left_out else replace(found, fields=seen | described)
