"""`understudy release --dry-run`: what a release would say of its marginals and rows, and what it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from understudy.cli.options import emit
from understudy.cli.prices import left_as_plain, left_told, price_told

if TYPE_CHECKING:
    from understudy.project import Project
    from understudy.query.workload import Workload
    from understudy.releases.forecast import MarginalForecast, ReleaseForecast

SHOWN = 20
"""Marginals that a terminal shows: those with the largest errors."""


def show_forecast(
    project: Project, workload: Workload, terms: dict[str, Any], *, rows: int | None, as_json: bool
) -> None:
    """Forecast a release and show it; nothing is spent, and no data is read."""
    from understudy.releases.forecast import forecast

    found = forecast(project, workload, **terms, rows=rows)
    left, budget = project.ledger.remaining, project.ledger.budget
    if as_json:
        emit({**found.as_dict(), **left_as_plain(left, budget)})
        return
    typer.echo(f"{found.method}: {found.summary}")
    for line in _table(found):
        typer.echo(line)
    if found.rows_error is not None:
        part = f"{found.rows_error:.1%}" if found.rows_error >= 0.0005 else "less than 0.1%"
        typer.echo(
            f"synthetic rows: a marginal would differ from the table's in about {part} of the rows by noise "
            "alone; what was not measured comes on top"
        )
    typer.echo(f"would take {price_told(found.cost, budget)} and {found.need}; {left_told(left, budget)}")


def _table(found: ReleaseForecast) -> list[str]:
    known = [one for one in found.marginals if one.error is not None]
    if not known:
        return ["what is measured, and so the error of each marginal, depends on the table"]
    worst = sorted(known, key=lambda one: -(one.error or 0.0))[:SHOWN]
    width = max(len(_name(one)) for one in worst)
    lines = [f"  {'marginal':<{width}}  {'cells':>9}  error (people)  usual error of a cell"]
    for one in worst:
        usual = "" if one.usual is None else f"{one.usual:,.1f}"
        lines.append(
            f"  {_name(one):<{width}}  {one.cells:>9,}  {f'± {one.error:,.0f}':>14}  {usual:>21}".rstrip()
        )
    if len(known) > len(worst):
        lines.append(f"  … {len(known) - len(worst):,} more with smaller errors")
    if len(known) < len(found.marginals):
        lines.append(f"  … {len(found.marginals) - len(known):,} more, whose errors depend on the table")
    lines.append(f"  every cell within its error, all together with probability {1 - found.beta:g}")
    return lines


def _name(one: MarginalForecast) -> str:
    return ", ".join(one.clique) or "everyone"
