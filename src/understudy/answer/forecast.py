"""How far an answer will be off, before it is asked: from the noise and from public numbers, without data.

Counts have their error whatever the table holds. A share, a rate or an average also depends on how many
people are in its cells, which nobody may know yet; it is worked out for a table of as many rows in which all
declared cells are equally frequent. Where groups are smaller than that, the error is larger.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.around_question import AroundQuestion
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.reader import CountQuestion, ReadQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.pages.notebook import number
from understudy.privacy.cost import Cost
from understudy.query.cell_noise import CellNoise
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd

SPREAD_CELLS = 1 << 20
"""Cells over which even counts are spread: of larger questions nothing is forecast beyond the error of a count."""


@dataclass(frozen=True)
class ColumnForecast:
    """How far the numbers of one column of an answer will be off, worked out before it is asked.

    `error` is the largest half-width of the column, in its own unit; None where there is no bound. `column` is
    empty where the answer has one column. `unit` says what the numbers are: `share of all rows`, a rate, or, for a
    SELECT statement, the column itself, whose unit is that of what it is made of (years for ``avg(age)``).
    """

    column: str
    unit: str
    error: float | None

    def __str__(self) -> str:
        name = f"{self.column}: " if self.column else ""
        unit = f"({self.unit})" if not self.column else "in its own unit"
        if self.error is None:
            return f"{name}no bound can be forecast"
        return f"{name}about ± {number(self.error)} {unit}, if all declared cells were equally frequent"


def forecast(
    question: ReadQuestion[Any],
    errors: Sequence[float],
    *,
    rows: float,
    beta: float,
    nothing: Cost,
    noises: Sequence[CellNoise | None],
) -> tuple[ColumnForecast, ...]:
    """What is forecast of a question whose marginals have the given errors and, where it is known, noise.

    Nothing of plain counts, whose error it is, and nothing of what is made of released rows, which has no bounds.
    """
    if isinstance(question, CountQuestion | AroundQuestion) or rows < 1:
        return ()
    if any(isinstance(marginal.moment, QuantileEnd) for marginal in question.marginals):
        return ()  # how far apart the values lie at so many ranks, only the table knows
    even = [even_counts(marginal, rows) for marginal in question.marginals]
    cells: list[CellCounts] = []
    for marginal, counts, error, noise in zip(question.marginals, even, errors, noises, strict=True):
        if counts is None:
            return ()
        off = np.full(counts.shape, float(error))
        cells.append(
            CellCounts(Answer(marginal, counts, off, counts, nothing, beta), counts, off, noise=noise)
        )
    answer = question.answer(SourceCounts(tuple(cells), RowBounds(rows, rows, rows), beta, nothing))
    if isinstance(answer, SqlAnswer):
        return _columns(answer)
    return (ColumnForecast("", answer.unit, float(answer.error.max(initial=0.0))),)


def even_counts(marginal: Marginal, rows: float) -> NDArray[np.float64] | None:
    """The counts of a marginal where all declared cells are equally frequent; None where it has too many cells."""
    size = marginal.domain.size(marginal.reads)
    if size > SPREAD_CELLS:
        return None
    weights = np.broadcast_to(marginal.grid_weights(), marginal.domain.shape(marginal.reads))
    summed = tuple(i for i, name in enumerate(marginal.reads) if name not in marginal.by)
    return np.asarray(weights.sum(axis=summed) * (rows / size), np.float64)


def _columns(answer: SqlAnswer) -> tuple[ColumnForecast, ...]:
    found: list[ColumnForecast] = []
    for i, column in enumerate(answer.columns):
        if column.kind == "value":
            widths = [half_width(row[i]) for row in answer.cells]
            worst = None if None in widths else max((w for w in widths if w is not None), default=None)
            found.append(ColumnForecast(column.name, column.name, worst))
    return tuple(found)


def half_width(cell: Any) -> float | None:
    """The farther end of an estimate, in its unit, days for a date; None where it has none."""
    if cell.value is None or cell.low is None or cell.high is None:
        return None
    ends = (cell.high - cell.value, cell.value - cell.low)
    return max(float(end.days) if isinstance(end, dt.timedelta) else float(end) for end in ends)
