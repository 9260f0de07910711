"""`understudy release --dry-run`: what a release would say of its marginals and rows, and what it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.cli.options import emit
from understudy.cli.prices import left_as_plain, left_told, price_told
from understudy.cli.terminal import say, say_table, warn

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
    say(f"{found.method}: {found.summary}")
    _show_marginals(found)
    if found.rows_error is not None:
        part = f"{found.rows_error:.1%}" if found.rows_error >= 0.0005 else "less than 0.1%"
        say(
            f"synthetic rows: a marginal would differ from the table's in about {part} of the rows by noise "
            "alone; what was not measured comes on top"
        )
    if found.noise_words:
        warn(found.noise_words)
    say(f"would take {price_told(found.cost, budget)} and {found.need}; {left_told(left, budget)}")


def _show_marginals(found: ReleaseForecast) -> None:
    known = [one for one in found.marginals if one.error is not None]
    if not known:
        say("what is measured, and so the error of each marginal, depends on the table")
        return
    worst = sorted(known, key=lambda one: -(one.error or 0.0))[:SHOWN]
    rows = [("marginal", "cells", "error (people)", "usual error of a cell")]
    for one in worst:
        usual = "" if one.usual is None else f"{one.usual:,.1f}"
        rows.append((_name(one), f"{one.cells:,}", f"± {one.error:,.0f}", usual))
    say_table(rows, left={0}, indent=2)
    if len(known) > len(worst):
        say(f"  … {len(known) - len(worst):,} more with smaller errors")
    if len(known) < len(found.marginals):
        say(f"  … {len(found.marginals) - len(known):,} more, whose errors depend on the table")
    say(f"  every cell within its error, all together with probability {1 - found.beta:g}")


def _name(one: MarginalForecast) -> str:
    return ", ".join(one.clique) or "everyone"
