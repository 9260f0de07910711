"""The command line: arguments to the same calls that Python makes.

Exit status 0: done; 1: refused, with the reason; 2: the question or the files are wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import Abort, Exit, TyperException

from understudy.cli.ask import ask
from understudy.cli.audit import audit
from understudy.cli.holdout import holdout, validity_audit
from understudy.cli.ledger import ledger
from understudy.cli.options import Json, ProjectFile, as_options, busy, emit
from understudy.cli.plan import plan
from understudy.cli.release import release

INTERRUPTED = 130

if TYPE_CHECKING:
    from understudy.declaration.outline import Outline

app = typer.Typer(
    name="understudy",
    help="A public stand-in for a sensitive table: private answers with honest error bars.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(ledger, name="ledger")
app.add_typer(audit, name="audit")
app.add_typer(holdout, name="holdout")
audit.command("validity")(validity_audit)


def main() -> None:
    """Run the program; every failure is a message and an exit status, never a traceback."""
    from understudy.errors import LedgerError, RefusedError, SourceError, UnderstudyError

    try:
        status = app(standalone_mode=False)
    except (RefusedError, SourceError, LedgerError) as error:
        _fail(error, 1)
    except UnderstudyError as error:
        _fail(error, 2)
    except (Abort, KeyboardInterrupt):
        _fail("interrupted", 1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", 1)
    except TyperException as error:
        _fail(_usage(error), 2)
    except Exit as stop:
        sys.exit(stop.exit_code)
    else:
        if status == INTERRUPTED:  # typer turns Ctrl-C into this
            _fail("interrupted", 1)
        if isinstance(status, int) and status:
            sys.exit(status)


def _usage(error: TyperException) -> str:
    """What is wrong with a command line, and whose help tells how it is meant."""
    context, names = getattr(error, "ctx", None), []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    if not names:  # told by a command itself
        known = {
            command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands
        }
        names = sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in known else []
    text = error.format_message()
    return text if text.startswith("Usage: ") else f"{text} (try {' '.join(['understudy', *names])} --help)"


def _fail(error: Exception | str, status: int) -> None:
    kind = type(error).__name__ if isinstance(error, Exception) else "Usage"
    message = as_options(str(error))
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": {"kind": kind, "message": message}}) + "\n")
    else:
        sys.stderr.write(f"understudy: {message}\n")
    sys.exit(status)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """A public stand-in for a sensitive table: private answers with honest error bars."""
    if show:
        from understudy import __version__

        typer.echo(f"understudy {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
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
            f"{len(marked)} lines were READ OFF THE DATA (lines {_listed(marked)}). Publishing them tells what "
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


@app.command()
def check(
    project: ProjectFile = Path("understudy.yml"),
    read_through: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Also read every row once: damage shows here, and how many rows fit no declared cell.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Validate a declaration against its source, by schema only: no row is read unless --read asks for it."""
    from understudy.declaration.file import located, read
    from understudy.ledger.declared import check_ledger
    from understudy.query.constraint import described
    from understudy.table.draft import unreviewed
    from understudy.table.source import open_source

    path = located(project)
    declaration = read(path)
    source = open_source(declaration.source, base=path.parent, candid=True)
    source.check(declaration.domain, declaration.unit)
    check_ledger(declaration, base=path.parent)
    fit = None
    if read_through:
        with busy("Reading the table", quiet=as_json):
            fit = source.read_through(declaration.domain, declaration.unit)
    marked = unreviewed(path.read_text(encoding="utf-8"))
    domain = declaration.domain
    if as_json:
        emit(
            {
                "name": declaration.name,
                "attributes": {a.name: {"type": a.kind, "cells": a.size} for a in domain},
                "universe": str(domain.size()),
                "budget": str(declaration.budget),
                "neighbours": declaration.neighbours,
                "protect": declaration.protect,
                "constraints": described(declaration.constraints),
                "lines_to_review": marked,
                **({"read": fit.as_dict()} if fit else {}),
            }
        )
        return
    width = max(len(attribute.name) for attribute in domain)
    for attribute in domain:
        typer.echo(f"  {attribute.name:<{width}}  {attribute.kind:<8}  {attribute.size:>6,} cells")
    typer.echo(
        f"{declaration.name}: {len(domain)} attributes, a universe of {_large(domain.size())} cells, budget "
        f"{declaration.budget}, neighbours {declaration.neighbours}. The source has every declared column."
    )
    for line in described(declaration.constraints):
        typer.echo(f"  declared: {line}")
    for line in fit.lines() if fit else []:
        typer.echo(line)
    for warning in fit.warnings if fit else []:
        typer.secho(f"{warning}.", fg="yellow", err=True)
    if marked:
        typer.secho(f"Lines still marked READ OFF THE DATA: {_listed(marked)}.", fg="yellow", err=True)


app.command("ask")(ask)
app.command("plan")(plan)
app.command("release")(release)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the invented town is written.")] = Path(
        "demo"
    ),
    people: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many people to invent.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Another town for another number.")] = 7,
    as_json: Json = False,
) -> None:
    """Invent a town, question it privately, release it, attack its holdout: with the truth beside everything."""
    from understudy_demo.demo import run

    with busy(f"Inventing a town of {people:,} people", quiet=as_json):
        town = run(folder, people=people, seed=seed)
    if as_json:
        emit(town.as_dict())
        return
    from understudy_demo.demo import render

    render(town)


def _listed(lines: list[int]) -> str:
    return ", ".join(map(str, lines[:12])) + (", …" if len(lines) > 12 else "")


def _large(count: int) -> str:
    return (
        f"{count:,}" if count < 10**15 else f"{count:.3e}" if count < 10**300 else f"10^{len(str(count)) - 1}"
    )


if __name__ == "__main__":
    main()
