"""Histories of scores as a notebook shows them."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.pages import notebook
from understudy.validity.score import Score


def history_table(told: Sequence[tuple[str, Score]]) -> notebook.Markup:
    """The newest scores of a history, for a notebook; one that was no better than the best so far is a dash."""
    rows: list[list[notebook.Cell]] = [
        [
            f"{place:,}",
            label,
            *(("–", "–", notebook.ErrorBar(None)) if score.repeats else _shown(score)),
        ]
        for place, (label, score) in list(enumerate(told, start=1))[: -notebook.MOST_ROWS - 1 : -1]
    ]
    heads = ["", "name", "score", "between", ""]
    return notebook.table(heads, rows, numbers=("score", "between"), total=len(told))


def _shown(score: Score) -> tuple[str, str, notebook.ErrorBar]:
    bar = notebook.ErrorBar(score.value, score.low, score.high)
    return f"{score.value:.4f}", f"{score.low:.4f} and {score.high:.4f}", bar
