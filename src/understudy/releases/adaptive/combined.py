"""A marginal's first measurement combined with the last sweep, residual by residual, by weights fixed beforehand.

When a round measures a clique C for the first time, by residuals whose noise has the covariances v_A times
projections, the last sweep is planned already: its residuals, their precisions and its price depend on what was
released before the rounds. So the weights of both are fixed before either noise is drawn. Given everything up to
then, the combination's error is a fixed linear function of independent noises that are still to be drawn, and
later choices change neither.

The residual of A ⊆ C has from the sweep the covariance τ_A times the same projection. Weighted by precision, with
x∥y = xy/(x + y), a cell of C has the variance

    Σ_{A ⊆ C} (τ_A ∥ v_A)·Π_{i ∈ A} (1 - 1/k_i)·Π_{i ∈ C∖A} 1/k_i²,

without A = ∅ where the number of rows is public. A measurement of C that comes later is not used: whether it is
made depends on the first one's noise. A table with noise of the same variance v in each cell would have
v_A = v·Π_{i ∈ C∖A} k_i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.query.residuals import assembled, parts_of
from understudy.releases.residual.half_width import half_width
from understudy.releases.residual.tables import ResidualTables

Values = NDArray[np.float64]
Part = tuple[int, ...]


def parallel(one: float, other: float) -> float:
    """The variance of the best average of two independent numbers with these variances."""
    return one * other / (one + other)


def cell_variance(sizes: Sequence[int], residuals: Mapping[Part, float]) -> float:
    """The variance of a marginal's cell, from that of each residual: `residuals[A]` is τ_A, A a set of axes."""
    found = 0.0
    for part, spread in residuals.items():
        own = set(part)
        found += spread * prod(1 - 1 / k if i in own else 1 / k**2 for i, k in enumerate(sizes))
    return found


def combined_variance(
    sizes: Sequence[int], first: Mapping[Part, float], sweep: Mapping[Part, float]
) -> float:
    """The variance of a cell of a marginal that was measured with v_A, `first`, and swept with τ_A."""
    return cell_variance(sizes, {part: parallel(spread, first[part]) for part, spread in sweep.items()})


@dataclass(frozen=True, eq=False)
class FirstMeasurement:
    """Noisy residuals of a clique's parts, as they were bought first."""

    clique: Clique
    tables: ResidualTables

    def with_sweep(self, swept: ResidualTables, beta: Fraction) -> tuple[Values, Values]:
        """Counts by both, and half-widths that hold for each cell alone with probability 1 - `beta`."""
        domain = swept.residuals.domain
        sizes = {name: domain[name].size for name in self.clique}
        first, last = self._spreads(self.tables, sizes), self._spreads(swept, sizes)
        residuals, reach = {}, 0.0
        if swept.rows is not None:
            residuals[()] = np.array(float(swept.rows))
        for part, spread in last.items():
            weight = spread / (spread + first[part])
            residuals[part] = (
                weight * self.tables.interactions[part] + (1 - weight) * swept.interactions[part]
            )
            others = prod(sizes[name] for name in self.clique if name not in part)
            for tables, share in ((self.tables, weight), (swept, 1 - weight)):
                bases = tables.residuals.bases
                reach += share * prod(bases[name].reach for name in part) / others
        places = {name: i for i, name in enumerate(self.clique)}
        one, other = (
            {tuple(places[name] for name in part): spread for part, spread in both.items()}
            for both in (first, last)
        )
        shape = tuple(sizes.values())
        error = half_width(
            np.full(shape, combined_variance(shape, one, other)),
            beta,
            reach=reach,
            lift=self.tables.lift(self.clique) + swept.lift(self.clique),
            looseness=max(self.tables.looseness(self.clique), swept.looseness(self.clique)),
        )
        return assembled(self.clique, sizes, residuals), error

    def _spreads(self, tables: ResidualTables, sizes: Mapping[str, int]) -> dict[Clique, float]:
        """The variance of each residual's coordinates in an orthonormal basis, for all parts of the clique."""
        wide = tuple(name for name in self.clique if sizes[name] > 1)
        return {part: tables.coordinates(part) for part in parts_of(wide) if part in tables.noise}
