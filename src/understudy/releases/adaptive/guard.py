"""The last sweep of an adaptive release: all of the workload once, or all pairs that were never measured.

A stand-in that is right on average may be far off in a few cells. So a part of the price measures everything, by
residuals over groups of values; the stand-in learns from that, and answers combine both (`shrink`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.mechanism.merged import MergedStrategy
from understudy.query.merging import Merging
from understudy.query.workload import Workload
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
        """What was measured of a clique that lies in one of the sweep's."""
        if self.tables is None or not any(set(clique) <= set(c) for c in self.cliques):
            return None
        return self._measured(clique)

    @cached_property
    def measured(self) -> dict[Clique, Measurement]:
        return {clique: self._measured(clique) for clique in self.cliques}

    def _measured(self, clique: Clique) -> Measurement:
        assert self.tables is not None
        return Measurement(clique, self.tables.table(clique), float(np.mean(self.tables.variance(clique))))

    def errors(self, beta: Fraction) -> dict[Clique, Values]:
        """Half-widths of all cells that hold jointly with probability 1 - `beta`."""
        if self.tables is None:
            return {}
        share = beta / sum(self.tables.residuals.domain.size(c) for c in self.cliques)
        return {c: self.tables.error(c, share) for c in self.cliques}


def sweep(
    run: Run, merging: Merging, cliques: Sequence[Clique], weights: Sequence[Fraction], price: Fraction
) -> Sweep:
    """Measure the residuals below the cliques, so that the largest variance of their cells is least."""
    relation = run.curator.relation
    residuals = Residuals.of(
        Workload.of(merging.coarse, cliques, weights), total=not relation.rows_are_public
    )
    if not residuals.cliques:
        return Sweep()
    look = residuals.strategies(residuals.precisions(), relation, price)
    released = np.array(run.look("guard", MergedStrategy(merging, look)), np.int64)
    rows = float(run.curator.rows) if relation.rows_are_public else None
    tables = ResidualTables(residuals, look, released, rows)
    return Sweep(tuple(cliques), tables)
