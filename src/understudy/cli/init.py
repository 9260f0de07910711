"""`understudy init`: draft a declaration from a table, or from another tool's description of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import Json, busy, emit, listed

if TYPE_CHECKING:
    from understudy.declaration.outline import Outline


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
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: mark what FILE lacks as MISSING.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Draft a declaration from a table, or from another tool's description of it.

    Every line read off the data is marked for review. What a description lacks is asked for at a terminal, else
    marked as MISSING; then the exit status is 1, and `understudy check` refuses the draft until it is filled in.
    """
    from understudy.table.draft import unreviewed, write, write_described
    from understudy_importers.formats import read

    lacking: dict[int, str] = {}
    if description is not None:
        talking = sys.stdin.isatty() and sys.stderr.isatty() and not (yes or as_json)
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
        with busy("Reading the table", quiet=as_json):
            text = write(data, output, table=table, overwrite=overwrite)
    else:
        raise typer.BadParameter("name the data, or a description with --from")
    _show_draft(output, unreviewed(text), lacking, as_json=as_json)
    if lacking:
        sys.exit(1)


def _ask_for_lacks(outline: Outline) -> Outline:
    from understudy_importers.asking import complete

    if outline.unfilled():
        how = "Press Enter to leave a line for later, or answer - to leave a column out."
        typer.echo(f"The description lacks some things. {how}", err=True)
    return complete(
        outline,
        ask=lambda question: typer.prompt(question, default="", show_default=False, err=True),
        tell=lambda problem: typer.secho(f"  {problem}", fg="yellow", err=True),
    )


def _show_draft(output: Path, marked: list[int], lacking: dict[int, str], *, as_json: bool) -> None:
    if as_json:
        lines = [{"line": line, "missing": what} for line, what in lacking.items()]
        emit({"written": str(output), "lines_to_review": marked, "lines_to_fill": lines})
        return
    typer.echo(f"Wrote {output}.")
    if marked:
        typer.secho(
            f"{len(marked)} lines were READ OFF THE DATA (lines {listed(marked)}). Publishing them tells what "
            "the table holds: replace them by what is publicly known, remove the marks, then run "
            "`understudy check`.",
            fg="yellow",
            err=True,
        )
    if lacking:
        typer.secho(
            f"{len(lacking)} lines lack something. Fill them in, then run `understudy check`:",
            fg="red",
            err=True,
        )
        for line, what in lacking.items():
            typer.echo(f"  line {line}, {what}", err=True)
