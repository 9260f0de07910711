"""Sweeps of an adaptive release: some marginals measured at once, by residuals over groups of values.

A round sweeps the marginals that it picked. The last sweep is over all of the workload, or over all pairs: a
stand-in that is right on average may be far off in a few cells, so a part of the price measures everything; the
stand-in learns from that, and answers combine both (`shrink`).

A sweep over the workload is planned before the rounds, to the last precision: the bars of what a round measures
may then count on it (`combined`). One over pairs is planned after them, when it is known what is left to learn
(`pair_weights`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
from understudy.releases.adaptive.beta import beta_of_swept
from understudy.releases.residual.small_bars import MOST, ratios_of_bars, with_small_bars
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Run
from understudy.standin.measurement import Interaction, Measurement

Values = NDArray[np.float64]

SMALL, PAIRS = (1, 2), (2,)
"""The orders of the marginals below a workload that are told beside it, with bars of their own: by the last sweep,
and by a round, whose single attributes have `one_way` bars alone.
"""

MOST_SMALL = 0.5
"""Of a sweep's price, for shorter bars of pairs and single attributes, where the workload has larger marginals."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Noisy counts of groups, as planned, all from the same residuals; without a plan nothing was measured."""

    plan: SweepPlan | None = None
    tables: ResidualTables | None = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """What was measured."""
        return () if self.plan is None else self.plan.cliques

    def about(self, clique: Clique) -> Measurement | None:
        """What was measured of a clique that lies in one of the sweep's; None where nothing was.

        Of attributes with one group each, where the number of rows is public, there is nothing to measure.
        """
        if self.tables is None or not any(set(clique) <= set(c) for c in self.cliques):
            return None
        told = Measurement(clique, self.tables.table(clique), float(np.mean(self.tables.variance(clique))))
        return told if told.variance > 0 else None

    @property
    def pairs(self) -> tuple[Clique, ...]:
        """All pairs of attributes that lie in a clique of the sweep."""
        return tuple(dict.fromkeys(pair for clique in self.cliques for pair in combinations(clique, 2)))

    @property
    def residuals(self) -> list[Interaction]:
        """What was measured of each residual, but for the number of rows."""
        return [] if self.tables is None else self.tables.told()

    @property
    def rows(self) -> Measurement | None:
        """The number of rows, where it is private and was measured."""
        if self.tables is None or () not in self.tables.noise:
            return None
        return Measurement((), self.tables.interactions[()], self.tables.noise[()])

    def beta_of_cells(
        self, beta: Fraction, orders: Sequence[int], *, alike: bool = False
    ) -> dict[Clique, Fraction]:
        """β of each cell of what was swept and of its parts of these orders."""
        return {} if self.plan is None else self.plan.beta_of_cells(beta, orders, alike=alike)


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
        price: Fraction,
        *,
        rounded: bool,
        weights: Sequence[Fraction] | None = None,
        precisions: Callable[[Residuals], Values] = Residuals.precisions,
    ) -> SweepPlan:
        """The residuals below the cliques, for that price, with the given `precisions` up to a common factor.

        Where none are given, the largest variance of a cell, times its clique's weight, is least. The noise is
        `rounded` normal noise, or discrete (`Run.rounded`).
        """
        residuals = Residuals.of(
            Workload.of(merging.coarse, cliques, weights), total=not relation.rows_are_public
        )
        look = None
        if residuals.cliques:
            look = residuals.strategies(precisions(residuals), relation, price, rounded=rounded)
        return cls(merging, tuple(cliques), residuals, look)

    def with_small_bars(
        self, relation: Relation, price: Fraction, widest: Mapping[Clique, float], beta: Fraction
    ) -> SweepPlan:
        """The plan, with so much more precision for its pairs and single attributes that their bars, by the sweep
        alone, are at most `widest`, where that can be; `beta` is that of all bars of the sweep.
        """
        if self.look is None:
            return self
        betas = self.beta_of_cells(beta, SMALL)
        look = with_small_bars(
            self.residuals,
            np.array([float(part.precision) for part in self.look.parts]),
            relation,
            price,
            {clique: most for clique, most in widest.items() if clique in betas},
            betas,
            most=MOST_SMALL if any(len(clique) > 2 for clique in self.cliques) else MOST,
            rounded=self.look.rounded,
        )
        return replace(self, look=look)

    def beta_of_cells(
        self, beta: Fraction, orders: Sequence[int], *, alike: bool = False
    ) -> dict[Clique, Fraction]:
        """β of each cell of what is planned and of its parts of these orders (`beta_of_swept`)."""
        if self.look is None:
            return {}
        domain, public = self.residuals.domain, self.look.relation.rows_are_public
        return beta_of_swept(domain, self.cliques, orders, beta, rows_public=public, alike=alike)

    def bars_over(
        self, widest: Mapping[Clique, float], betas: Mapping[Clique, Fraction]
    ) -> dict[Clique, float]:
        """Bars by the sweep alone, over those of `widest`; `betas` are those of each cell."""
        if self.look is None:
            return {}
        return ratios_of_bars(self.residuals, self.look, self.look.relation, list(widest), widest, betas)

    def buy(self, run: Run, step: str) -> Sweep:
        """Measure what was planned, under the name of a `step`."""
        if self.look is None:
            return Sweep()
        released = np.array(run.look(step, MergedStrategy(self.merging, self.look)), np.int64)
        rows = float(run.curator.rows) if run.curator.relation.rows_are_public else None
        return Sweep(self, ResidualTables(self.residuals, self.look, released, rows))
