"""The last sweep of an adaptive release: all of the workload once, or all pairs that were never measured well.

A stand-in that is right on average may be far off in a few cells. So a part of the price measures everything, by
residuals over groups of values; the stand-in learns from that, and answers combine both (`shrink`).

A sweep over the workload is planned before the rounds, to the last precision: the bars of what a round measures
may then count on it (`combined`). One over pairs is planned after them, when it is known which pairs are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.matrix.many_marginals import JointStrategy
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.mechanism.merged import MergedStrategy
from understudy.privacy.relation import Relation
from understudy.query.merging import Merging
from understudy.query.workload import Workload
from understudy.releases.adaptive.beta import beta_of_cells
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Run
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Noisy counts of groups for `cliques`, all from the same residuals."""

    cliques: tuple[Clique, ...] = ()
    tables: ResidualTables | None = None

    def about(self, clique: Clique) -> Measurement | None:
        """What was measured of a clique that lies in one of the sweep's; None where nothing was.

        Of attributes with one group each, where the number of rows is public, there is nothing to measure.
        """
        if self.tables is None or not any(set(clique) <= set(c) for c in self.cliques):
            return None
        told = self._measured(clique)
        return told if told.variance > 0 else None

    @property
    def pairs(self) -> tuple[Clique, ...]:
        """All pairs of attributes that lie in a clique of the sweep."""
        return tuple(dict.fromkeys(pair for clique in self.cliques for pair in combinations(clique, 2)))

    @cached_property
    def measured(self) -> dict[Clique, Measurement]:
        return {clique: self._measured(clique) for clique in self.cliques}

    def _measured(self, clique: Clique) -> Measurement:
        assert self.tables is not None
        return Measurement(clique, self.tables.table(clique), float(np.mean(self.tables.variance(clique))))

    def beta_of_cells(self, beta: Fraction) -> dict[Clique, Fraction]:
        """β of each cell of what was swept, and of the pairs in it; all their bars hold jointly but for `beta`."""
        if self.tables is None:
            return {}
        public = self.tables.rows is not None
        cliques = dict.fromkeys((*self.cliques, *self.pairs))
        return beta_of_cells(self.tables.residuals.domain, cliques, beta, rows_public=public)


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """What a sweep will measure of groups of values, and how precisely; nothing where all of it is public."""

    merging: Merging
    cliques: tuple[Clique, ...]
    residuals: Residuals
    look: JointStrategy | None

    @classmethod
    def of(
        cls,
        relation: Relation,
        merging: Merging,
        cliques: Sequence[Clique],
        weights: Sequence[Fraction],
        price: Fraction,
        *,
        rounded: bool,
    ) -> SweepPlan:
        """The residuals below the cliques, such that the largest variance of their cells is least.

        The noise is `rounded` normal noise, or discrete (`Run.rounded`).
        """
        residuals = Residuals.of(
            Workload.of(merging.coarse, cliques, weights), total=not relation.rows_are_public
        )
        look = None
        if residuals.cliques:
            look = residuals.strategies(residuals.precisions(), relation, price, rounded=rounded)
        return cls(merging, tuple(cliques), residuals, look)

    def buy(self, run: Run) -> Sweep:
        """Measure what was planned."""
        if self.look is None:
            return Sweep()
        released = np.array(run.look("guard", MergedStrategy(self.merging, self.look)), np.int64)
        rows = float(run.curator.rows) if run.curator.relation.rows_are_public else None
        return Sweep(self.cliques, ResidualTables(self.residuals, self.look, released, rows))
