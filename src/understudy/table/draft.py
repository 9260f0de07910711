"""A first draft of a declaration, for the custodian's eyes only, to be reviewed line by line.

It is read off the data (here, column by column in `drafted_column`), or off a description that another tool has of
the table, or off both (`draft_file`, which writes it). A domain that was read off the data tells what the data
holds: every such line carries a mark, and `check` goes on warning until the custodian has reviewed it and taken
the mark away. What a description lacks is marked as well, and `check` refuses the file until it is filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.declaration.declaration import UNREADABLE, SourceSpec
from understudy.declaration.file import parse
from understudy.declaration.outline import (
    Outline,
    OutlineEntry,
    name_from,
    scalar,
)
from understudy.domain.attribute import Attribute
from understudy.errors import SourceError
from understudy.table.drafted_column import ColumnNote, declared_column, note_of
from understudy.table.file_view import held, places_of
from understudy.table.source import Source, open_source
from understudy.table.survey import ColumnSummary, survey
from understudy.table.text_file import is_packed, is_text
from understudy.table.text_shape import TextShape, shape_of

HELD = 256 << 20
"""Bytes of text that are read once and then held in memory: parsing them takes longer than looking at them."""

PACKED = 8
"""How many times smaller a packed text may be."""


@dataclass(frozen=True)
class Drafted:
    """A draft: its text, what was made of each column, and what was found out about the file."""

    text: str
    columns: tuple[ColumnNote, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_attributes(self) -> bool:
        """Whether some column is declared; a draft of which all were left out is no declaration yet."""
        return any(column.kind for column in self.columns)


_KEPT = {"zcdp": "", "renyi": ", key_delta: 1e-10, filter: renyi", "gdp": ", filter: gdp"}
"""What the budget of a draft says of its filter; `renyi` sets a part of δ aside, for bounded noise and keys."""


def draft(data: Path, *, table: str = "", location: str | None = None) -> str:
    """The text of a declaration for a data file."""
    return drafted_file(data, file_shape(data), table=table, location=location or str(data)).text


def file_shape(data: Path, **given: Any) -> TextShape | None:
    """How a file of text is made; None for any other file, about which nothing of that kind can be given."""
    if is_text(data):
        return shape_of(data, **given)
    if given.get("encoding") is not None or given.get("header") is not None:
        raise SourceError(f"{data.name} is no file of text: leave --encoding, --header and --no-header out")
    return None


def drafted_file(
    data: Path, shape: TextShape | None, *, table: str, location: str, kept: str = "zcdp"
) -> Drafted:
    """The draft for a data file of that shape; `location` is its name in the declaration, `kept` the filter.

    Raises a `SourceError` where the file cannot be read, or holds one table and a `table` is named.
    """
    if table and is_one_table(data):
        raise SourceError(
            f"{data.name} holds one table: leave --table out, which names a table of a database"
        )
    place = str(data.resolve())
    spec = SourceSpec(place, table) if shape is None else shape.spec(place)
    source = open_source(spec, base=Path(), candid=True)
    notes = [*(shape.notes if shape else ()), *_lost(data, source)]
    seen = survey(held(source.expression) if _is_small(data) else source.expression)
    check_rows(seen, data.name, "draft it once it has some, or from a description with --from")
    entries = [declared_column(column) for column in seen]
    outline = Outline(
        heading=(
            "Drafted by `understudy init`. Lines marked READ OFF THE DATA tell what the table holds: replace what",
            "they say by what is publicly known (code lists, legal limits, round numbers), then remove the mark.",
        ),
        settings=(
            OutlineEntry.of("name", name_from(data.name.split(".")[0])),
            OutlineEntry.of("source", scalar(location)),
            *([OutlineEntry.of("table", scalar(table))] if table else []),
            *([] if shape is None else shape_settings(shape)),
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
    columns = tuple(note_of(column, entry) for column, entry in zip(seen, entries, strict=True))
    return Drafted(outline.text(), columns, tuple(notes))


def check_rows(seen: Sequence[ColumnSummary], name: str, remedy: str) -> None:
    """Refuse a table without rows, of which nothing can be read off; raises a `SourceError`."""
    if seen and not seen[0].rows:
        raise SourceError(
            f"{name} has no rows: there is nothing to read values and bounds off; {remedy}, or declare its "
            "columns by hand"
        )


def _is_small(data: Path) -> bool:
    """Whether a file is one of text that may be held in memory while its columns are looked at."""
    return is_text(data) and data.stat().st_size * (PACKED if is_packed(data) else 1) <= HELD


def shape_settings(shape: TextShape) -> list[OutlineEntry]:
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
        seen = survey(table.select(list(columns)))
        entries = [declared_column(column) for column in seen]
    except Exception as error:  # an engine's own text may quote rows
        raise SourceError(
            f"the frame cannot be read through ({type(error).__name__}); give its attributes"
        ) from None
    check_rows(seen, "the frame", "give its `attributes`")
    kept = tuple(entry for entry in entries if not entry.left_out)
    left_out = {entry.key: entry.left_out for entry in entries if entry.left_out}
    if not kept:
        return (), left_out
    settings = {"name": "frame", "source": "frame", "budget": "{epsilon: 1}"}
    outline = Outline((), tuple(OutlineEntry.of(key, value) for key, value in settings.items()), kept)
    return tuple(parse(outline.text()).domain), left_out


def is_one_table(data: Path) -> bool:
    """Whether a file holds one table, which has no name; a database holds several."""
    return is_text(data) or data.suffix.lower() == ".parquet"
