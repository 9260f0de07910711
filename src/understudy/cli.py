"""The command line: arguments to the same calls that Python makes.

Exit status 0: done; 1: refused, with the reason; 2: the question or the files are wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import Abort, Exit, TyperException

from understudy.audit.command import audit
from understudy.ledger.command import ledger
from understudy.options import Json, ProjectFile, emit
from understudy.planner.command import plan
from understudy.releases.command import release
from understudy.validity.command import holdout, validity_audit

INTERRUPTED = 130

if TYPE_CHECKING:
    from understudy.answer import Answer
    from understudy.importing.outline import Outline
    from understudy.interactive.session import Session
    from understudy.sql_answer import SqlAnswer

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
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": {"kind": kind, "message": str(error)}}) + "\n")
    else:
        sys.stderr.write(f"understudy: {error}\n")
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
    from understudy.draft import unreviewed, write, write_described

    lacking: dict[int, str] = {}
    if description is not None:
        talking = sys.stdin.isatty() and sys.stderr.isatty() and not (yes or as_json)
        outline = write_described(
            description,
            output,
            data=data,
            table=table,
            overwrite=overwrite,
            complete=_ask_for_lacks if talking else None,
        )
        text, lacking = outline.text(), outline.unfilled()
    elif data is not None:
        with _busy("Reading the table", as_json):
            text = write(data, output, table=table, overwrite=overwrite)
    else:
        raise typer.BadParameter("name the data, or a description with --from")
    _show_draft(output, unreviewed(text), lacking, as_json=as_json)
    if lacking:
        sys.exit(1)


def _ask_for_lacks(outline: Outline) -> Outline:
    from understudy.importing.asking import complete

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
    from understudy.declaration_file import located, read
    from understudy.draft import unreviewed
    from understudy.ledger.declared import check_ledger
    from understudy.query.constraint import described
    from understudy.table.source import open_source

    path = located(project)
    declaration = read(path)
    source = open_source(declaration.source, base=path.parent, candid=True)
    source.check(declaration.domain, declaration.unit)
    check_ledger(declaration, base=path.parent)
    fit = None
    if read_through:
        with _busy("Reading the table", as_json):
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


@app.command()
def ask(
    questions: Annotated[
        list[str],
        typer.Argument(help="Such as: count age<30 and sex=F by district; or: SELECT avg(age) FROM town"),
    ],
    project: ProjectFile = Path("understudy.yml"),
    epsilon: Annotated[float | None, typer.Option(help="Price of each question, Laplace noise.")] = None,
    rho: Annotated[float | None, typer.Option(help="Price of each question, Gaussian noise.")] = None,
    error: Annotated[
        float | None, typer.Option(help="Ask for this error, in people, and pay what it takes.")
    ] = None,
    beta: Annotated[float, typer.Option(help="Chance that an answer's error bar does not hold.")] = 0.05,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show price and error; ask nothing.")] = False,
    analyst: Annotated[str, typer.Option(help="Who asks, where analysts have limits.")] = "",
    request: Annotated[
        str,
        typer.Option(help="A name for this request: asked again under it, it is answered from the ledger."),
    ] = "",
    session: Annotated[
        str | None, typer.Option(help="Ask in the session of this name: one promise for all of its answers.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="A session's error, as a part of all rows, such as 0.02.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Questions that are expected in the session; 10000 if nothing is said.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer questions privately; without a price each costs a hundredth of the budget."""
    from understudy.errors import ParameterError
    from understudy.project import open_project

    if session is None and (alpha is not None or queries is not None):
        raise ParameterError("--alpha and --queries belong to a session: add --session NAME")
    if "#" in request:
        raise ParameterError("a request's name must not hold '#', which numbers the purchases of a session")
    if session == "":
        raise ParameterError("a session's name must not be empty: write --session NAME")
    opened = open_project(project)
    price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "error": error, "beta": beta}
    if session is not None:
        from understudy.interactive.command import open_named

        terms = {"alpha": alpha, "beta": beta, "queries": queries, "analyst": analyst}
        entered = open_named(opened, session, **terms, price=price, request=request)
        _ask_in_session(entered, questions, dry_run=dry_run, as_json=as_json)
        return
    quotes = [
        opened.quote(question, **price) for question in questions
    ]  # every mistake is found before any look
    if dry_run:
        _show_quotes(questions, quotes, as_json=as_json)
        return
    answers = []
    names = [f"{request} {i}" if len(questions) > 1 else request for i in range(1, len(questions) + 1)]
    for question, name in zip(questions, names, strict=True):
        with _busy(f"Looking: {question}", as_json):
            answers.append(opened.ask(question, **price, analyst=analyst, request=name if request else None))
        if not as_json:
            _show_answer(question, answers[-1])
    left = opened.ledger.remaining
    if as_json:
        rows = [{"question": q, **a.as_dict()} for q, a in zip(questions, answers, strict=True)]
        emit({"answers": rows, "remaining": {left.currency: left.amount}})
        return
    typer.echo(f"{left.currency} left: {left.amount:.6g} of {opened.ledger.budget.cap.amount:.6g}")


def _ask_in_session(entered: Session, questions: list[str], *, dry_run: bool, as_json: bool) -> None:
    from understudy.interactive.command import answers, remarks, without_infinity

    if dry_run:
        costs = entered.dry_run(questions)
        found = [
            {"question": q, "cost": {c.currency: c.amount}} for q, c in zip(questions, costs, strict=True)
        ]
        if as_json:
            emit(found)
        for question, cost in [] if as_json else zip(questions, costs, strict=True):
            typer.echo(f"{question}\n  ± {entered.width:,} people at most {cost.currency} {cost.amount:.4g}")
        return
    given = []
    for question, answer in zip(questions, answers(entered, questions), strict=True):
        given.append({"question": question, **answer.as_dict()})
        if not as_json:
            _show_answer(question, answer)
            for remark in remarks(entered, answer):
                typer.echo(f"  {remark}")
    left = entered.remaining
    if as_json:
        remaining = {left.currency: left.amount}
        emit(
            {"answers": without_infinity(given), "remaining": remaining, "contradicted": entered.contradicted}
        )
        return
    typer.echo(f"{left.currency} left: {left.amount:.6g}")


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
    from understudy.demo import run

    with _busy(f"Inventing a town of {people:,} people", as_json):
        town = run(folder, people=people, seed=seed)
    if as_json:
        emit(town.as_dict())
        return
    from understudy.demo import render

    render(town)


@contextmanager
def _busy(what: str, quiet: bool) -> Iterator[None]:
    """A spinner on the error stream, for people at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def _listed(lines: list[int]) -> str:
    return ", ".join(map(str, lines[:12])) + (", …" if len(lines) > 12 else "")


def _large(count: int) -> str:
    return (
        f"{count:,}" if count < 10**15 else f"{count:.3e}" if count < 10**300 else f"10^{len(str(count)) - 1}"
    )


def _show_answer(question: str, answer: Answer | SqlAnswer) -> None:
    from understudy.sql_answer import SqlAnswer

    if isinstance(answer, SqlAnswer):
        _show_rows(answer)
        return
    digits = 0 if "share" not in question.split()[0].lower() else 5
    price = f"{answer.cost.currency} {answer.cost.amount:.4g}"
    typer.echo(question)
    rows = answer.rows()
    width = max(len(", ".join(labels)) for labels, _, _ in rows)
    for labels, value, error in rows:
        name = f"{', '.join(labels):<{width}}  " if width else ""
        off = f"{error:,.{digits}f}" if isfinite(error) else "∞"
        typer.echo(f"  {name}{value:>12,.{digits}f} ± {off}")
    if answer.source == "uncertified":  # there is no error to be within
        typer.echo(f"  price {price}")
        return
    typer.echo(f"  all within the error with probability {1 - answer.beta:g}; price {price}")


def _show_rows(answer: SqlAnswer) -> None:
    from understudy.sql_answer import shown

    typer.echo(answer.text)
    table = [
        [column.name for column in answer.columns],
        *([shown(cell) for cell in row] for row in answer.cells),
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        typer.echo("  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))
    price = f"{answer.cost.currency} {answer.cost.amount:.4g}"
    typer.echo(f"  all within their bounds with probability {1 - answer.beta:g}; price {price}")


def _show_quotes(questions: list[str], quotes: list[Any], *, as_json: bool) -> None:
    if as_json:
        emit(
            [
                {"question": q, "cost": {w.cost.currency: w.cost.amount}, "error": w.error, "beta": w.beta}
                for q, w in zip(questions, quotes, strict=True)
            ]
        )
        return
    for question, quote in zip(questions, quotes, strict=True):
        typer.echo(
            f"{question}\n  ± {quote.error:,.0f} people at {quote.cost.currency} {quote.cost.amount:.4g}"
        )


if __name__ == "__main__":
    main()
