"""`understudy keys`: the values of a column that nobody listed and enough people hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json, ProjectFile, emit
from understudy.cli.terminal import say, say_table
from understudy.percent import percent_of

LISTED = 50
"""Keys that a terminal shows, the most frequent first."""


def keys(
    column: Annotated[str, typer.Argument(help="A column of the table; it need not be declared.")],
    project: ProjectFile = Path("understudy.yml"),
    epsilon: Annotated[float, typer.Option(help="The price, as a part of the whole budget.")] = 0.05,
    delta: Annotated[
        float | None, typer.Option(help="Its own delta; a tenth of the budget's delta for keys, otherwise.")
    ] = None,
    at_least: Annotated[
        int, typer.Option(min=1, help="No value of fewer people is told, with certainty.")
    ] = 10,
    request: Annotated[
        str | None, typer.Option(help="A name under which this is never charged twice.")
    ] = None,
    analyst: Annotated[str, typer.Option(help="Whose share of the budget pays.")] = "",
    as_json: Json = False,
) -> None:
    """Find the values of a column that enough people hold, privately, with noisy counts.

    A value is told where its count with noise passes a threshold. Values of fewer people are not told, and
    neither is how many of them there are. The budget needs a part of delta for it: `key_delta` in the declaration.
    """
    from understudy.starting.find_keys import find_keys

    bought = find_keys(
        project, column, epsilon=epsilon, delta=delta, at_least=at_least, request=request, analyst=analyst
    )
    found = bought.found
    if as_json:
        emit(
            {
                "column": column,
                "keys": dict(zip(found.labels, found.counts, strict=True)),
                "of": bought.who,
                "threshold": found.threshold,
                "at_least": found.at_least,
                "error": found.error,
                "cost": bought.cost.amount,
                "currency": bought.cost.currency,
                "share": bought.budget.share(bought.cost),
                "delta": float(bought.delta),
            }
        )
        return
    rows = [(label, f"{count:,}") for label, count in zip(found.labels, found.counts, strict=True)]
    if rows:
        say_table([(column, f"{bought.who}, about"), *rows[:LISTED]], left={0}, indent=2)
    more = f" {len(rows) - LISTED:,} more are told by --json." if len(rows) > LISTED else ""
    part = percent_of(bought.cost.units, bought.budget.cap.units)
    say(
        f"{len(rows):,} values of which {found.threshold:,} {bought.who} or more were counted, each within "
        f"{found.error:,} with probability 0.95.{more} It takes {part} of the budget "
        f"({bought.cost.currency} {bought.cost.amount:.4g}), and delta {float(bought.delta):.3g}."
    )
