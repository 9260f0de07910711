"""The part of a release's report that says what models learn from the synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.pages.markup import paragraph, section, table
from understudy.releases.report_words import percent
from understudy.releases.utility import PredictionUtility


def utility_part(found: Sequence[PredictionUtility], beta: float) -> str:
    """A section with a line for each predicted column; empty where no answered marginal tells about any."""
    if not found:
        return ""
    rows = [
        [
            one.target,
            ", ".join(one.features),
            percent(one.baseline),
            percent(one.on_rows),
            percent(one.in_table),
            "nothing" if one.low <= 0 and one.high >= 1 else f"{percent(one.low)} to {percent(one.high)}",
        ]
        for one in found
    ]
    heads = [
        "column",
        "predicted from",
        "usual value",
        "right in the rows",
        "right in the table",
        "certainly",
    ]
    return section(
        "What a model learns from the rows",
        paragraph(
            "For each column, a table of decisions was learned from one half of the synthetic rows: for every "
            "cell of other columns, the most frequent value. It was tried on the other half. How often it is "
            "right in the table itself is told by the released answers: nothing was looked at again."
        )
        + table(heads, rows, numbers=(2, 3, 4, 5), stack=True, words="Models learned from the synthetic rows")
        + paragraph(
            "“Usual value” is how often the most frequent value alone would be right: a column whose model is no "
            "better cannot be predicted from columns that were answered together. Where the rows promise much "
            "more than the table holds, the rows mislead. “Certainly” holds with probability "
            f"{1 - beta:g}, together with all error bars of this page; it adds up the error bars of all "
            "cells, and can say nothing where these are many.",
            "note",
        ),
    )
