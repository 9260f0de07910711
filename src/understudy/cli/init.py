"""`understudy init`: draft a declaration from a table, or from another tool's description of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import FilterChoice, Json, emit, listed, project_option
from understudy.cli.progress import busy
from understudy.cli.terminal import as_question, say, say_table

if TYPE_CHECKING:
    from understudy.declaration.outline import Outline
    from understudy.table.draft import Drafted
    from understudy.table.text_shape import Custodian


def init(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="A CSV, TSV, Parquet or DuckDB file. With --from, read for what FILE lacks only."
        ),
    ] = None,
    description: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="SmartNoise metadata, or a Frictionless table schema or data package, to draft from.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the draft.")] = Path(
        "understudy.yml"
    ),
    table: Annotated[str, typer.Option(help="The table, in a database or a description of several.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line of a text file names its columns."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Of a text file: utf-8, cp1252, latin-1, utf-16 …; found out otherwise."),
    ] = None,
    kept: Annotated[
        FilterChoice,
        typer.Option(
            "--filter",
            help="How rho is added up, for ever; `plan` recommends one, and gdp suits a table of releases alone. "
            "Not with --from.",
        ),
    ] = FilterChoice.ZCDP,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: mark what FILE lacks as MISSING.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Draft a declaration from a table, or from another tool's description of it.

    Every line read off the data is marked for review. What a description lacks is asked for at a terminal, else
    marked as MISSING; then the exit status is 1, and `understudy check` refuses the draft until it is filled in.
    So it is where no column could be declared. A table without rows is refused: nothing can be read off it.

    A column is what nine in ten of its values are; how they are written (dates, currencies, decimal commas,
    words for missing values) becomes part of the draft, and what was made of each column is told, and why.
    """
    from understudy.declaration.outline import unreviewed
    from understudy.table.draft_file import write, write_described
    from understudy_importers.formats import read

    lacking: dict[int, str] = {}
    drafted = None
    talking = sys.stdin.isatty() and sys.stderr.isatty() and not (yes or as_json)
    if description is not None:
        if header is not None or encoding is not None or kept is not FilterChoice.ZCDP:
            raise typer.BadParameter("--header, --encoding and --filter are about a table without --from")
        outline = write_described(
            description,
            output,
            read=read,
            data=data,
            table=table,
            overwrite=overwrite,
            complete=_ask_for_lacks if talking else None,
        )
        text, lacking = outline.text(), outline.unfilled()
    elif data is not None:
        with busy("Reading the table", quiet=as_json) as pause:
            drafted = write(
                data,
                output,
                table=table,
                overwrite=overwrite,
                encoding=encoding,
                header=header,
                custodian=_custodian(pause) if talking else None,
                kept=kept.value,
            )
        text = drafted.text
    else:
        raise typer.BadParameter("name the data, or a description with --from")
    _show_draft(output, unreviewed(text), lacking, drafted, as_json=as_json)
    if lacking or (drafted is not None and not drafted.has_attributes):
        sys.exit(1)


def _ask_for_lacks(outline: Outline) -> Outline:
    from understudy_importers.asking import complete

    if outline.unfilled():
        how = "Press Enter to leave a line for later, or answer - to leave a column out."
        say(f"The description lacks some things. {how}", err=True)
    return complete(
        outline,
        ask=lambda question: typer.prompt(
            as_question(question, answer=24), default="", show_default=False, err=True
        ),
        tell=lambda problem: say(f"  {problem}", fg="yellow", err=True),
    )


def _custodian(pause: Callable[[], AbstractContextManager[None]]) -> Custodian:
    """The person at the terminal."""
    from understudy.table.text_shape import Custodian

    def confirm(question: str) -> bool:
        with pause():
            return typer.confirm(as_question(question), default=False, err=True)

    def enter(question: str, usual: str) -> str:
        with pause():
            return typer.prompt(as_question(question, answer=24), default=usual, err=True)

    return Custodian(confirm, enter)


def _show_columns(drafted: Drafted) -> None:
    """What was made of each column, and why: a table at a terminal, a line for each elsewhere."""
    for note in drafted.notes:
        say(f"{note[0].upper()}{note[1:]}.")
    if not sys.stdout.isatty():
        for column in drafted.columns:
            kind = f"{column.kind}; " if column.kind and column.why else column.kind
            say(f"  {column.name}: {kind}{column.why}")
        return
    rows = [
        (column.name, column.kind or "left out", column.why.removeprefix("left out: "))
        for column in drafted.columns
    ]
    say_table([("column", "type", "what was made of it"), *rows], left={0, 1, 2}, indent=2)


def _show_draft(
    output: Path,
    marked: list[int],
    lacking: dict[int, str],
    drafted: Drafted | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        lines = [{"line": line, "missing": what} for line, what in lacking.items()]
        told = {"written": str(output), "lines_to_review": marked, "lines_to_fill": lines}
        if drafted is not None:
            columns = [{"column": c.name, "type": c.kind or None, "why": c.why} for c in drafted.columns]
            told |= {"notes": list(drafted.notes), "columns": columns}
        emit(told)
        return
    say(f"Wrote {output}.")
    if drafted is not None:
        _show_columns(drafted)
    if marked:
        say(
            f"{len(marked)} lines were READ OFF THE DATA (lines {listed(marked)}). Publishing them tells what "
            "the table holds: replace them by what is publicly known, remove the marks, then run "
            f"`understudy check{project_option(output)}`.",
            fg="yellow",
            err=True,
        )
    if drafted is not None and not drafted.has_attributes:
        say(
            "No column could be declared: the draft is not usable before you declare one by hand.",
            fg="red",
            err=True,
        )
    if lacking:
        say(
            f"{len(lacking)} lines lack something. Fill them in, then run "
            f"`understudy check{project_option(output)}`:",
            fg="red",
            err=True,
        )
        for line, what in lacking.items():
            say(f"  line {line}, {what}", err=True)
