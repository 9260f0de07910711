"""A page about a table that was started: each column with its quarters or keys, what was left out, and the cost.

Everything on it was released with noise, and may be published with the declaration.
"""

from __future__ import annotations

from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import (
    banner,
    facts,
    figure,
    glossary,
    many,
    paragraph,
    section,
    table,
)
from understudy.pages.shell import document
from understudy.percent import percent_of
from understudy.starting.described import StartedColumn
from understudy.starting.start import Started

MOST_DRAWN = 40
"""Columns of text whose values are drawn."""

MOST_BARS = 16
"""Bars of one column."""

GLOSSARY = {
    "bought privately": (
        "Counts with noise, paid for from the table's privacy budget before the table was looked at. What is on "
        "this page, and in the declaration, says of nobody whether they are in the table."
    ),
    "about": "A count with noise. The noise is the same for small and large counts.",
    "a quarter below": "The end of a bin below which about a quarter of the rows lie.",
    "left out": "A column of which the declaration has no attribute. It can be declared by hand.",
    "key": "A value of a column of text that enough rows hold; rarer ones are counted together as `other`.",
}


def summary(started: Started, *, made: str = "") -> str:
    """The page."""
    budget, cost = started.budget, started.cost
    left = [column for column in started.columns if not column.kind]
    texts = [column for column in started.kept if column.keys]
    rows = [
        [column.name, column.kind, column.why, *(column.quarters or ("", "", "")), _about(column.missing)]
        for column in started.kept
    ]
    delta = f"delta {float(started.delta):.3g}" if started.delta else ""
    return document(
        "start",
        f"Summary of {started.name}",
        facts(
            {
                "rows": f"{started.rows:,.0f}",
                "columns declared": (f"{len(started.kept):,}", f"of {len(started.columns):,}"),
                "cost": (
                    f"{percent_of(cost.units, budget.cap.units)} of the budget",
                    f"{cost.currency} {cost.amount:.6g} {delta}",
                ),
                "budget": str(budget),
            }
        ),
        "" if started.share >= 1 else _sampled(started.share),
        section(
            "Columns",
            table(
                [
                    "column",
                    "type",
                    "what was found",
                    "a quarter below",
                    "half below",
                    "three quarters below",
                    "missing",
                ],
                rows,
                numbers=(3, 4, 5, 6),
                words="The columns that were declared",
                stack=True,
            ),
        ),
        section("Values of text", "".join(map(_drawn, texts[:MOST_DRAWN]))) if texts else "",
        section(
            "Left out",
            table(["column", "why"], [[c.name, c.why] for c in left], words="Columns left out", stack=True),
        )
        if left
        else "",
        glossary(GLOSSARY),
        lead="Where the values of each column lie, from counts with noise that say nothing of any single row.",
        made=made,
    )


def _sampled(share: float) -> str:
    words = f"Of each column {share:.1%} of the rows were read, chosen at random: counts are of these."
    return banner("good", "A sample of the rows", words)


def _about(count: float) -> str:
    return f"{count:,.0f}" if count > 0 else ""


def _drawn(column: StartedColumn) -> str:
    lines = [
        PlotBar(label, max(count, 0.0), hint=f"{label}: about {count:,.0f}")
        for label, count in column.keys[:MOST_BARS]
    ]
    more = len(column.keys) - MOST_BARS
    note = paragraph(f"{many(more, 'more value')} are in the declaration.", "note") if more > 0 else ""
    drawing = bars(lines, words=f"About how many rows hold each value of {column.name}", unit="rows, about")
    return figure(drawing, column.name) + note
