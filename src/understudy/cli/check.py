"""`understudy check`: validate a declaration against its source, by schema or by reading every row once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json, ProjectFile, busy, emit, listed


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
    source = open_source(declaration.source, base=path.parent, columns=declaration.columns, candid=True)
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
        typer.secho(f"Lines still marked READ OFF THE DATA: {listed(marked)}.", fg="yellow", err=True)


def _large(count: int) -> str:
    return (
        f"{count:,}" if count < 10**15 else f"{count:.3e}" if count < 10**300 else f"10^{len(str(count)) - 1}"
    )
