"""`understudy start`: a declared project from a file and a budget, everything in between bought privately."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import FilterChoice, Json, Overwrite, check_output, emit, project_option
from understudy.cli.progress import busy
from understudy.cli.terminal import say, say_table
from understudy.percent import percent_of
from understudy.privacy.relation import Neighbours

if TYPE_CHECKING:
    from understudy.starting.forecast import StartForecast
    from understudy.starting.start import Started


def start(
    data: Annotated[Path, typer.Argument(help="A CSV, TSV, Parquet or DuckDB file, with a header.")],
    epsilon: Annotated[float, typer.Option(help="The whole budget of the table, for ever.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Its delta; 0 for pure epsilon, which finds no keys.")] = 1e-9,
    kept: Annotated[
        FilterChoice, typer.Option("--filter", help="How rho is added up, for ever; `plan` recommends one.")
    ] = FilterChoice.ZCDP,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the declaration.")] = Path(
        "understudy.yml"
    ),
    report: Annotated[Path, typer.Option(help="Where to write the summary, a page.")] = Path("start.html"),
    neighbours: Annotated[
        Neighbours,
        typer.Option(help="Which tables are compared. Under replace the number of rows is public."),
    ] = Neighbours.REPLACE,
    table: Annotated[str, typer.Option(help="The table, in a database of several.")] = "",
    encoding: Annotated[str, typer.Option(help="Of a file of text.")] = "utf-8",
    delimiter: Annotated[
        str | None, typer.Option(help="Of a file of text; the one that the header has most of, otherwise.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing",
            help="A text that stands for no value in a file of text; repeat it. In place of the usual list: "
            "N/A, NA, -, ?, null, none, nan.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would cost and how precise it would be; buy nothing."),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Buy bounds, bins and keys of every column with a tenth of the budget, and write a declaration.

    Nothing has to be known of the table: only its header and number of rows are taken as public (and the types
    of a Parquet file's columns). How columns are written, where their numbers lie, and which values of text
    enough rows hold is bought privately, and paid for once: to start again costs nothing. Identifiers and free
    text are left out, and named. `ask`, `release` and `serve` take what is written.
    """
    from understudy import __version__
    from understudy.output import write_file
    from understudy.privacy.relation import Relation
    from understudy.starting.forecast import forecast_file
    from understudy.starting.opening import own_files
    from understudy.starting.start import budget_of
    from understudy.starting.start import start as begin
    from understudy.starting.summary import summary

    words = None if missing is None else [word for word in missing if word]
    if dry_run:
        expected = forecast_file(
            data,
            output,
            budget_of(epsilon, delta, kept.value),
            Relation(neighbours),
            table=table,
            encoding=encoding,
            delimiter=delimiter,
            missing=words,
        )
        _foretell(expected, as_json=as_json)
        return
    check_output(report, overwrite=True, belonging=[output, *own_files(data, output, os.environ)])
    with busy("Buying bounds, bins and keys", quiet=as_json):
        found = begin(
            data,
            output,
            epsilon=epsilon,
            delta=delta,
            kept=kept.value,
            neighbours=neighbours,
            table=table,
            encoding=encoding,
            delimiter=delimiter,
            missing=words,
            overwrite=overwrite,
        )
    made = f"Made with understudy {__version__} at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    write_file(report, summary(found, made=made), overwrite=True)
    if as_json:
        emit(_plain(found, output, report))
        return
    _show(found, output, report)


def _foretell(expected: StartForecast, *, as_json: bool) -> None:
    if as_json:
        emit(
            {
                "columns": expected.columns,
                "price": float(expected.price.amount),
                "currency": expected.price.currency,
                "share": expected.share,
                "deviation": expected.deviation,
                "threshold": expected.threshold,
                "repeated": expected.repeated,
            }
        )
        return
    keys = (
        "Keys need a delta: columns of text would be left out."
        if expected.threshold is None
        else f"A value of text would be told from about {expected.threshold:,} rows on, if all columns held text."
    )
    say(
        f"{expected.columns:,} columns for {expected.price.currency} {float(expected.price.amount):.4g}, "
        f"{percent_of(expected.share)} of the budget. A count of a bin would have noise of deviation "
        f"{expected.deviation:,.0f}, if all columns held numbers. {keys} "
        f"{'What was bought of it before is not paid for again. ' if expected.repeated else ''}Nothing was spent."
    )


def _plain(found: Started, output: Path, report: Path) -> dict[str, object]:
    return {
        "written": str(output),
        "report": str(report),
        "cost": found.cost.amount,
        "currency": found.cost.currency,
        "delta": float(found.delta),
        "share": found.budget.share(found.cost),
        "repeated": found.again,
        "earlier_reading": found.former,
        "columns": [
            {"column": column.name, "type": column.kind or None, "why": column.why}
            for column in found.columns
        ],
    }


def _show(found: Started, output: Path, report: Path) -> None:
    from understudy.starting.start import FORMER

    rows = [(column.name, column.kind or "left out", column.why) for column in found.columns]
    say_table([("column", "type", "what was found"), *rows], left={0, 1, 2}, indent=2)
    own = f", and delta {float(found.delta):.3g}" if found.delta else ""
    paid = "was paid before, and nothing now" if found.again else "was paid"
    if 0 < found.now.units < found.cost.units:
        paid = f"was paid, {found.now.currency} {found.now.amount:.6g} of it now and the rest before"
    if found.former:
        say(f"{FORMER} The declaration reads the file so; `--missing WORD` reads it anew, and is paid for.")
    part = percent_of(found.cost.units, found.budget.cap.units)
    say(
        f"Wrote {output} and {report}. {found.cost.currency} {found.cost.amount:.6g} "
        f"({part} of the budget{own}) {paid}. "
        f"Next: `{_next(found, output)}`."
    )


def _next(found: Started, output: Path) -> str:
    """A command to go on with, as a shell takes it."""
    from understudy.domain.attribute import as_asked

    question = quote(f"count by {as_asked(found.kept[0].name)}")
    return f"understudy ask {question} --epsilon 0.05{project_option(output)}"
