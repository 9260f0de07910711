"""`understudy check`: validate a declaration against its source, by schema or by reading every row once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import Json, ProjectFile, emit, listed
from understudy.cli.progress import busy
from understudy.cli.terminal import say, say_table

if TYPE_CHECKING:
    from understudy.declaration.declaration import Declaration
    from understudy.table.fit import Fit
    from understudy.table.read_record import ReadRecord


def check(
    project: ProjectFile = Path("understudy.yml"),
    read_through: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Also read every row once: damage shows here, and how many rows fit no declared cell. "
            "Status 1 where more cannot be read than is tolerated.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Validate a declaration against its source, by schema only: no row is read unless --read asks for it.

    What --read finds is written down beside the declaration, for its owner alone. Where more values or lines
    cannot be read than the declaration tolerates, the exit status is 1, and questions about them are refused
    from then on.
    """
    from understudy.declaration.file import located, read, record_place
    from understudy.declaration.outline import unreviewed
    from understudy.ledger.declared import check_ledger
    from understudy.query.constraint import described
    from understudy.table.read_record import write_record
    from understudy.table.source import open_source

    path = located(project)
    declaration = read(path)
    source = open_source(declaration.source, base=path.parent, columns=declaration.columns, candid=True)
    source.check(declaration.domain, declaration.unit)
    check_ledger(declaration, base=path.parent, file=path)
    fit, found, failed = None, None, list[str]()
    if read_through:
        with busy("Reading the table", quiet=as_json):
            fit = source.read_through(declaration.domain, declaration.unit)
        found = write_record(record_place(path), declaration, source, fit)
        failed = _failures(declaration, fit, found)
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
                "limits": list(declaration.limits.described(declaration.budget.cap)),
                "lines_to_review": marked,
                **({"read": {**fit.as_dict(), "failures": failed}} if fit else {}),
            }
        )
        if failed:
            sys.exit(1)
        return
    rows = [(attribute.name, attribute.kind, f"{attribute.size:,} cells") for attribute in domain]
    say_table(rows, left={0, 1}, heads=False, indent=2)
    say(
        f"{declaration.name}: {len(domain)} attributes, a universe of {_large(domain.size())} cells, budget "
        f"{declaration.budget}, neighbours {declaration.neighbours}. The source has every declared column."
    )
    for line in described(declaration.constraints):
        say(f"  declared: {line}")
    for line in declaration.limits.described(declaration.budget.cap):
        say(f"  limit: {line}")
    for line in fit.lines() if fit else []:
        say(line)
    if fit and found:
        for warning in fit.lost_lines(failed=found.incomplete) + fit.warnings_beside(found.unreadable):
            say(f"{warning}.", fg="yellow", err=True)
    for attribute in domain:
        dtype = source.columns[attribute.column]
        if (idle := attribute.intake.reads_text_only) and not (dtype.is_string() or dtype.is_integer()):
            keys = " and ".join(f"`{key}`" for key in idle)
            say(
                f"{attribute.name}: {keys} says how text is read, and the column is no text: it is read as it is.",
                fg="yellow",
                err=True,
            )
    for line in declaration.limits.without_effect(declaration.budget.cap):
        say(f"limits: {line}.", fg="yellow", err=True)
    if marked:
        say(f"Lines still marked READ OFF THE DATA: {listed(marked)}.", fg="yellow", err=True)
    for failure in failed:
        say(f"{failure}.", fg="red", err=True)
    if failed:
        sys.exit(1)


def _failures(declaration: Declaration, fit: Fit, found: ReadRecord) -> list[str]:
    """What could not be read well enough, with what to do about it: exact counts, for the custodian."""
    said = []
    if found.incomplete:
        dropped = fit.lost.dropped_of(fit.rows)
        said.append(
            f"{dropped[0].upper()}{dropped[1:]}. That is more than the tolerated "
            f"{float(declaration.unreadable):.4g} of them (`unreadable`): until it is mended every question is "
            f"refused"
        )
    for misfits in fit.attributes:
        attribute = misfits.attribute
        if attribute.name in found.unreadable:
            dated = "`format`, `missing`"
            keys = {"date": dated, "timestamp": dated, "boolean": "`missing`, or another type"}
            usual = "`missing`, `strip`, `decimal`, `thousands`, `percent`, or another type"
            said.append(
                f"{attribute.name}: {misfits.unreadable:,} of {fit.rows:,} rows cannot be read as "
                f"{attribute.kind}, more than the tolerated {float(declaration.tolerated(attribute)):.4g} "
                f"of them. Declare how the column {attribute.column!r} is written "
                f"({keys.get(attribute.kind, usual)}), or tolerate more with `unreadable`. Until then "
                f"questions about {attribute.name} are refused"
            )
    return said


def _large(count: int) -> str:
    return (
        f"{count:,}" if count < 10**15 else f"{count:.3e}" if count < 10**300 else f"10^{len(str(count)) - 1}"
    )
