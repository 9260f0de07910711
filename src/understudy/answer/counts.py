"""What every source of counts says of marginals, so that one reader makes the same answers of all of them.

There are three sources: the table, measured through the Curator (`project`); a session; a release. Each turns
marginals into `SourceCounts`, and `reader` turns `SourceCounts` into what the user gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.answer.cut_bins import CutBins
from understudy.privacy.cost import Cost
from understudy.query.cell_noise import CellNoise

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellCounts:
    """The counts of one marginal's cells, in people, with their half-widths, cost, source and population error.

    `answer` is what a user who asked for these counts gets. The table's counts are also within `half_width` of
    `centre`: of what was released before it was cut to what is possible, where that is unbiased. Sums and ratios
    are made of this interval, which is the narrower one: noise of -30 ± 40 people leaves 0 to 10, where 0 ± 40
    leaves 0 to 40. `noise` is that on `centre`, where it is known to be nearly normal.

    Where the interval need not lie evenly around `centre`, `low` and `high` are its ends, and `half_width` reaches
    to the farther one. Where a condition cuts bins that the source knows as a whole only, `cut_bins` says what is
    certain in place of them.

    `through` is asked for the bounds of running sums: for an attribute that the marginal groups by, in order of
    its cells, the ends of the counts of each cell and all before it. It is None where a source knows no more of
    them than of the cells, and says None where it knows nothing of this attribute.
    """

    answer: Answer
    centre: Floats
    half_width: Floats
    low: Floats | None = None
    high: Floats | None = None
    cut_bins: CutBins | None = None
    through: Callable[[str], tuple[Floats, Floats] | None] | None = None
    noise: CellNoise | None = None

    @property
    def below(self) -> Floats:
        """How far the table's counts can be below `centre`."""
        low = self.low if self.cut_bins is None else self.cut_bins.low
        return self.half_width if low is None else self.centre - low

    @property
    def above(self) -> Floats:
        """How far the table's counts can be above `centre`."""
        high = self.high if self.cut_bins is None else self.cut_bins.high
        return self.half_width if high is None else high - self.centre

    def knowing(self, excluded: NDArray[np.bool_] | None) -> CellCounts:
        """The same with exact zeros in the cells `excluded`, which the question's own condition rules out."""
        if excluded is None or self.cut_bins is not None:
            return self
        told, own = (
            {
                name: np.where(excluded, 0.0, values)
                for name in names
                if (values := getattr(whose, name)) is not None
            }
            for whose, names in (
                (self.answer, ("value", "error", "noisy", "population_error", "low", "high")),
                (self, ("centre", "half_width", "low", "high")),
            )
        )
        return replace(self, answer=replace(self.answer, **told), **own)

    def without_bins(self) -> CellCounts:
        """The same with the half-widths that there would be if rows were spread evenly in cut bins."""
        if self.cut_bins is None:
            return self
        return replace(self, half_width=self.cut_bins.own, cut_bins=None)


@dataclass(frozen=True)
class PopulationReach:
    """How far shares can be from the population's, as a share; by which theorem, and how probably it fails."""

    error: float
    beta: float
    theorem: str


@dataclass(frozen=True)
class RowBounds:
    """The number of all rows is between `least` and `most`: equal where it is public, infinite without a bound.

    `estimate` is the best guess between them, if there is one. `share_population` tells how far shares of a number
    that is not known exactly can be from the population's, where a theorem does; it is called for shares alone,
    because it takes a look at the ledger.
    """

    least: float
    most: float
    estimate: float | None = None
    share_population: Callable[[], PopulationReach | None] | None = None

    @classmethod
    def measured(cls, everyone: CellCounts) -> RowBounds:
        """The bounds that follow from a count of all rows."""
        number = float(everyone.centre)
        return cls(number - float(everyone.below), number + float(everyone.above), number)

    @property
    def bound(self) -> float | None:
        """The most rows that there can be; None where nothing is known."""
        return self.most if self.most < inf else None


@dataclass(frozen=True, eq=False)
class SourceCounts:
    """Counts of several marginals from one source: with probability 1 - `beta` all are within their half-widths.

    `cells` has the counts of each marginal. `rows` is what the source knows of the number of all rows without
    measuring it, and `nothing` a cost of 0 in the currency of its ledger. `is_measured` says that all values rest
    on noise and its bounds, and none is an estimate of a model, which can be good where its bounds say nothing.
    """

    cells: tuple[CellCounts, ...]
    rows: RowBounds
    beta: float
    nothing: Cost
    is_measured: bool = False

    @property
    def cost(self) -> Cost:
        """What the ledger charged for all of them together."""
        cost = self.nothing
        for cells in self.cells:
            cost = cost + cells.answer.cost  # type: ignore[operator]  # one currency
        return cost  # pyright: ignore[reportUnknownVariableType]

    @property
    def population_widths(self) -> list[Floats] | None:
        """How far the population's numbers can be from each marginal's centres; None unless all have an error."""
        widths = [
            cells.answer.population_error + np.abs(cells.centre - cells.answer.value)
            for cells in self.cells
            if cells.answer.population_error is not None
        ]
        return widths if self.cells and len(widths) == len(self.cells) else None
