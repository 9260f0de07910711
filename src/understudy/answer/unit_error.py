"""How far the numbers of an answer can be off in their own unit, whatever the table holds. Reads no data.

A count is off by the error of its noise, whoever is counted. A sum is off by that error times the range of its
values. A share, a rate or an average is divided by a number of rows: where that number is public, its error is
known beforehand as well, and where it is not, the group may be empty, and nothing is known of it beforehand.

So the answer is worked out for tables that are as bad as can be: those in which the rows that each of its
counts is about, or all of them, are as few as possible, one in which they are as many, one with all rows in the
first cell of every attribute, one with all in the last, and one in which they are spread evenly; each with
noise that leaves out as many rows as it can. Errors of counts and sums are the same on all tables. That of an
average over a public number of rows depends on where the average lies, and is largest at one of the ends or in
the middle. Every other ratio is without a bound on the table in which the rows that it is divided by are none,
which is one of these. Of expressions that are no sums of such ratios nothing is promised beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.around_question import AroundQuestion
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.forecast import SPREAD_CELLS, even_counts, half_width
from understudy.answer.reader import CountQuestion, ReadQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.privacy.cost import Cost
from understudy.query.cell_noise import CellNoise
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd

Floats = NDArray[np.float64]

EACH_ITS_OWN = "its own unit"
"""The unit of several released columns, each of which has its own."""


def unit_of(question: ReadQuestion[Any]) -> str:
    """The unit of the `error` that may be asked of a question: `people`, or what its released column is called.

    It is people for counts, for quantiles, which are made of ranks, and for SELECT statements that tell a
    number of people or a quantile beside other columns: then it is the error of that number.
    """
    released = [column.name for column in question.columns if column.kind == "value"]
    if isinstance(question, CountQuestion | AroundQuestion) or not released or tells_people(question):
        return "people"
    if isinstance(question, SelectQuestion):
        return released[0] if len(released) == 1 else EACH_ITS_OWN
    return str(getattr(question, "unit", "")) or released[0]


def tells_people(question: ReadQuestion[Any]) -> bool:
    """Whether an answer has a number of people, or a quantile, which counts tell."""
    if any(isinstance(marginal.moment, QuantileEnd) for marginal in question.marginals):
        return True
    return isinstance(question, SelectQuestion) and question.compiled.program.tells_people


def is_made_of_ratios(question: ReadQuestion[Any]) -> bool:
    """Whether the numbers of an answer are counts, sums, averages, shares and rates, and sums of such."""
    from understudy.answer.measure_question import MeasureQuestion  # late: it loads the parser of SQL

    if isinstance(question, MeasureQuestion):
        return question.asked.aggregate in ("sum", "avg")
    return not isinstance(question, SelectQuestion) or question.compiled.program.is_made_of_ratios


def largest_half_width(question: ReadQuestion[Any], counts: SourceCounts) -> float:
    """How far the farthest number of an answer can be off, in its own unit, from counts with their half-widths.

    Rows that HAVING, ORDER BY or LIMIT would leave out are among them. Infinite where a number has no bound.
    """
    whole = question.with_all_rows() if isinstance(question, SelectQuestion) else question
    answer = whole.answer(counts)
    if not isinstance(answer, SqlAnswer):
        return float(answer.error.max(initial=0.0))
    released = [i for i, column in enumerate(answer.columns) if column.kind == "value"]
    widths = (half_width(row[i]) for row in answer.cells for i in released)
    return max((inf if width is None else width for width in widths), default=0.0)


def worst_error(
    question: ReadQuestion[Any],
    errors: Sequence[float],
    *,
    rows: float,
    most: float,
    beta: float,
    nothing: Cost,
    noises: Sequence[CellNoise | None] = (),
) -> float:
    """How far a number of the answer can be off in its own unit, whatever table of `rows` rows is behind it.

    `errors` are those of the marginals' cells, `noises` their noise where it is known, and `most` the largest
    number of rows that there can be. Infinite where no bound is known beforehand, and where the question has
    too many cells.
    """
    marginals, off = question.marginals, [float(error) for error in errors]
    known = list(noises) or [None] * len(marginals)
    worst = 0.0
    for table in _tables(marginals, rows):
        cells: list[CellCounts] = []
        for marginal, counts, error, noise in zip(marginals, table, off, known, strict=True):
            width = np.full(counts.shape, error)
            told = counts - error
            answer = Answer(marginal, told, width, told, nothing, beta)
            cells.append(CellCounts(answer, told, width, noise=noise))
        bounds = RowBounds(rows, most, None if most > rows else rows)
        worst = max(worst, largest_half_width(question, SourceCounts(tuple(cells), bounds, beta, nothing)))
        if worst == inf:
            break
    return inf if not marginals else worst


def _tables(marginals: Sequence[Marginal], rows: float) -> Iterator[list[Floats]]:
    """The counts of marginals on tables of `rows` rows that are as bad as can be; where they are too large, on an
    empty one.
    """
    if not marginals:
        return
    domain = marginals[0].domain
    names = domain.clique({name for marginal in marginals for name in marginal.reads})
    shape = domain.shape(names)
    if prod(shape) > SPREAD_CELLS or any(marginal.domain != domain for marginal in marginals):
        yield [np.zeros(marginal.shape) for marginal in marginals]  # no ratio has a bound there
        return
    held = [marginal.where.weights(names) for marginal in marginals]
    total = np.sum(held, axis=0)
    extreme = [int(total.argmin()), int(total.argmax()), 0, total.size - 1, *(int(w.argmin()) for w in held)]
    for place in dict.fromkeys(extreme):
        at = dict(zip(names, (int(i) for i in np.unravel_index(place, shape)), strict=True))
        yield [_in_one_cell(marginal, at, rows) for marginal in marginals]
    even = [even_counts(marginal, rows) for marginal in marginals]
    yield [np.zeros(m.shape) if counts is None else counts for m, counts in zip(marginals, even, strict=True)]


def _in_one_cell(marginal: Marginal, at: dict[str, int], rows: float) -> Floats:
    """The counts of a marginal where all rows are in one cell."""
    shape = marginal.domain.shape(marginal.reads)
    weights = np.broadcast_to(marginal.grid_weights(), shape)
    counts = np.zeros(marginal.shape)
    counts[tuple(at[name] for name in marginal.by)] = (
        rows * weights[tuple(at[name] for name in marginal.reads)]
    )
    return counts
