"""A question about measures in the small language: which moments it needs, and the answer that their sums give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer, noise_together, on_population, weakest
from understudy.answer.counts import SourceCounts
from understudy.query.cell_noise import CellNoise
from understudy.query.column import Column, cell_columns
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.measure_words import MeasureWords
from understudy.query.quantile_end import QuantileEnd, ends_of
from understudy.sql.aggregate import Folded
from understudy.sql.grid import Numbers
from understudy.sql.group import Tally
from understudy.sql.measured import (
    Family,
    MeasuredMean,
    MeasuredQuantile,
    MeasuredSpread,
    MeasuredSum,
    moments,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasureQuestion:
    """A sum, an average, a variance, a standard deviation or a covariance of measures, for each cell of `by`.

    `family` says which moments the source of counts can tell, and `shared` that everybody knows the number of
    rows. Variances and covariances are those of the rows themselves: they divide by the number of rows.
    """

    asked: MeasureWords
    family: Family
    shared: bool
    words: str = field(default="", compare=False)

    @cached_property
    def _aggregate(self) -> MeasuredSum | MeasuredMean | MeasuredSpread | MeasuredQuantile:
        asked, rows = self.asked, self._rows
        if asked.level is not None:
            drawn = ends_of(asked.level, asked.measures[0].name)
            return MeasuredQuantile(asked.measures[0], tuple(Tally(rows, moment=end) for end in drawn))
        family = self.family
        if family == "shares" and self.shared and not rows.factors and not asked.marginal.by:
            family = "centred"
        if asked.aggregate == "sum":
            from_zero = asked.measures[0].lower_bound == 0
            return MeasuredSum(moments("positions" if from_zero else family, "x", rows, asked.measures))
        if asked.aggregate == "avg":
            return MeasuredMean(moments(family, "x", rows, asked.measures))
        if asked.aggregate == "covariance":
            return MeasuredSpread(moments(family, "xy", rows, asked.measures), "covariance", sample=False)
        what = "variance" if asked.aggregate == "variance" else "deviation"
        return MeasuredSpread(moments(family, "xx", rows, asked.measures), what, sample=False)

    @cached_property
    def _rows(self) -> LinearQuery:
        """The rows of the condition in which every measure has a value."""
        query = self.asked.marginal.where
        for measure in self.asked.measures:
            known = np.arange(measure.size) < measure.proper_size
            query = query & LinearQuery.table(query.domain, (measure.name,), known)
        return query

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return self._marginals

    @cached_property
    def _marginals(self) -> tuple[Marginal, ...]:
        asked = self.asked.marginal
        return tuple(Marginal(asked.domain, asked.by, t.query, t.moment) for t in self._aggregate.tallies)

    @property
    def columns(self) -> tuple[Column, ...]:
        return cell_columns(self.asked.marginal.by, self.asked.aggregate)

    @property
    def unit(self) -> str:
        """What the numbers are: ``avg of income``."""
        if self.asked.aggregate == "quantile" and self.asked.level is not None:
            return f"quantile {float(self.asked.level):g} of {self.asked.measures[0].name}"
        return f"{self.asked.aggregate} of {', '.join(measure.name for measure in self.asked.measures)}"

    def answer(self, counts: SourceCounts) -> Answer:
        """The aggregate in each cell, within every value that the intervals of the sums allow.

        Its population error follows from those of the sums, as that of a SELECT statement does.
        """
        centres = [cells.centre for cells in counts.cells]
        noises = [cells.noise for cells in counts.cells]
        told = self._estimate(centres, [cells.half_width for cells in counts.cells], counts, noises)
        source = weakest(cells.answer.source for cells in counts.cells)
        value, error = np.asarray(told.point, np.float64), _distance(told.point, told)
        vouched = source != "uncertified"
        reach, beta, theorem = None, None, None
        if vouched and (expected := counts.population_widths) is not None:
            wide = self._estimate(centres, expected, counts)
            reach = _distance(told.point, wide)
            beta, theorem = on_population(cells.answer for cells in counts.cells)
        shape = self.asked.marginal.shape
        return Answer(
            self.asked.marginal,
            value.reshape(shape),
            (error if vouched else np.full(error.shape, inf)).reshape(shape),
            value.reshape(shape),
            counts.cost,
            counts.beta,
            source,
            None if reach is None else reach.reshape(shape),
            beta,
            self.unit,
            population_theorem=theorem,
            noise=noise_together(cells.answer.noise for cells in counts.cells),
            low=np.asarray(told.low, np.float64).reshape(shape) if vouched else None,
            high=np.asarray(told.high, np.float64).reshape(shape) if vouched else None,
        )

    def _estimate(
        self,
        centres: list[Floats],
        widths: list[Floats],
        counts: SourceCounts,
        noises: Sequence[CellNoise | None] = (),
    ) -> Numbers:
        most = inf if counts.rows.bound is None else counts.rows.bound
        held: dict[tuple[str, str], Folded] = {}
        for i, (tally, centre, width) in enumerate(
            zip(self._aggregate.tallies, centres, widths, strict=True)
        ):
            least, largest = _possible(tally, most)
            value, off = np.ravel(centre), np.ravel(width)
            middle, low, high = (np.clip(part, least, largest) for part in (value, value - off, value + off))
            noise = noises[i] if noises else None
            told = None if noise is None else noise.on(value)
            held[tally.key] = Folded(middle, low, high, noise=told, measured=counts.is_measured)
        return self._aggregate.estimate(lambda tally: held[tally.key], discretised=True)


def _possible(tally: Tally, rows: float) -> tuple[float, float]:
    """The least and the most that a tally can be over so many rows."""
    if tally.moment is None:
        return 0.0, rows
    if isinstance(tally.moment, QuantileEnd):
        return 0.0, 1.0
    return (float(tally.moment.low) * rows if tally.moment.low else 0.0), float(tally.moment.high) * rows


def _distance(point: Floats, ends: Numbers) -> Floats:
    return np.maximum(np.maximum(ends.high - point, point - ends.low), 0.0)
