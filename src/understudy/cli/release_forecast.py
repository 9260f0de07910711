"""`understudy release --dry-run`: what a release would say of its marginals and rows, and what it would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from understudy.cli.options import emit
from understudy.cli.prices import end_dry_run, left_as_plain, left_told, price_told, refusal_as_plain
from understudy.cli.terminal import say, say_table, warn

if TYPE_CHECKING:
    from understudy.project import Project
    from understudy.query.workload import Workload
    from understudy.releases.forecast import MarginalForecast, ReleaseForecast

SHOWN = 20
"""Marginals that a terminal shows, of the workload and of those beside it: those with the longest error bars."""


def show_forecast(
    project: Project, workload: Workload, terms: dict[str, Any], name: str | None, *, as_json: bool
) -> None:
    """Forecast a release and show it; nothing is spent, and no data is read.

    `name` is that of a run which may have bought something before and would go on. The command ends with the
    refusal of the ledger where it would surely not be paid.
    """
    from understudy.releases.forecast import forecast

    found = forecast(project, workload, **terms, name=name)
    left, budget = project.ledger.remaining, project.ledger.budget
    bought = found.paid is not None and found.paid.units > 0
    refusal = found.refusal if found.is_payable is False else None
    if as_json:
        told = {"run": name, "paid": {left.currency: found.paid.amount}} if bought and found.paid else {}
        why = {} if refusal is None else refusal_as_plain(refusal)
        emit({**found.as_dict(), **told, **why, **left_as_plain(left, budget)})
        end_dry_run(refusal, as_json=True)
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
    if bought and found.paid:
        say(
            f"{name} was begun before, and {price_told(found.paid, budget)} that it bought is not paid again: "
            f"under the same terms it goes on, for at most {price_told(found.rest, budget)} more"
        )
        if found.refusal is not None:
            say(
                "  what is left does not pay for the rest: it is refused, unless all of its steps were bought"
            )
    say(f"would take {price_told(found.rest, budget)} and {found.need}; {left_told(left, budget)}")
    end_dry_run(refusal, as_json=False)


def _show_marginals(found: ReleaseForecast) -> None:
    parts = {"of the workload": found.marginals, "told beside it": found.beside}
    if all(one.half_width is None for part in parts.values() for one in part):
        say("what is measured, and so the error bars of each marginal, depends on the table")
        return
    for where, part in parts.items():
        _show_part(where, part)
    say(
        f"  every count lies in its error bar, all together with probability {1 - found.beta:g}; "
        "an answer need not lie in the middle of it"
    )


def _show_part(where: str, part: Sequence[MarginalForecast]) -> None:
    """Those of some marginals with the longest bars, as a table, and how many more there are."""
    from understudy.pages.markup import many

    known = [one for one in part if one.half_width is not None]
    worst = sorted(known, key=lambda one: -(one.half_width or 0.0))[:SHOWN]
    rows = [(f"marginal {where}", "cells", "error bar (people)", "usual error of a cell")]
    for one in worst:
        usual = "" if one.usual is None else f"{one.usual:,.1f}"
        rows.append((_name(one), f"{one.cells:,}", f"± {one.half_width:,.0f}", usual))
    if worst:
        say_table(rows, left={0}, indent=2)
    if len(known) > len(worst):
        say(f"  … {len(known) - len(worst):,} more with shorter error bars")
    if left := len(part) - len(known):
        more = f"… {left:,} more" if known else f"{many(left, 'marginal')} {where}"
        say(f"  {more}, whose error bars depend on the table")


def _name(one: MarginalForecast) -> str:
    return ", ".join(one.clique) or "everyone"
