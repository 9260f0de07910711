"""A marginal's first measurement combined with the last sweep, residual by residual, by weights fixed beforehand.

When a round measures a clique C for the first time, with noise of variance v in each cell, the last sweep is
planned already: its residuals, their precisions and its price depend on what was released before the rounds. So
the weights of both are fixed before either noise is drawn. Given everything up to then, the combination's error
is a fixed linear function of independent noises that are still to be drawn, and later choices change neither.

The residual of A ⊆ C has from the measurement the covariance v·Π_{i ∈ C∖A} k_i times a projection, and from the
sweep τ_A times the same projection. Weighted by precision, with x∥y = xy/(x + y), a cell of C has the variance

    Σ_{A ⊆ C} (τ_A ∥ v·Π_{i ∈ C∖A} k_i)·Π_{i ∈ A} (1 - 1/k_i)·Π_{i ∈ C∖A} 1/k_i²,

without A = ∅ where the number of rows is public. A measurement of C that comes later is not used: whether it is
made depends on the first one's noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.query.residuals import assembled, centred, parts_of
from understudy.releases.residual.half_width import GaussianLaw, half_width
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


def combined_variance(sizes: Sequence[int], variance: float, sweep: Mapping[Part, float]) -> float:
    """The variance of a cell of a marginal that was measured with noise of `variance`, and swept with τ_A."""
    both = {}
    for part, spread in sweep.items():
        others = prod(k for i, k in enumerate(sizes) if i not in part)
        both[part] = parallel(spread, others * variance)
    return cell_variance(sizes, both)


@dataclass(frozen=True, eq=False)
class FirstMeasurement:
    """Noisy counts of a clique's groups, and the variance of their noise, as they were bought first."""

    clique: Clique
    counts: Values
    variance: float

    def with_sweep(self, swept: ResidualTables, beta: Fraction) -> tuple[Values, Values]:
        """Counts by both, and half-widths that hold for each cell alone with probability 1 - `beta`."""
        sizes = dict(zip(self.clique, self.counts.shape, strict=True))
        spread = self._planned(swept, sizes)
        own_law = GaussianLaw(self.variance, swept.look.rounded)
        residuals, both, reach = {}, {}, 0.0
        if swept.rows is not None:
            residuals[()] = np.array(float(swept.rows))
        for part, tau in spread.items():
            own = set(part)
            others = prod(sizes[name] for name in self.clique if name not in own)
            weight = tau / (tau + others * self.variance)
            axes = tuple(i for i, name in enumerate(self.clique) if name not in own)
            measured = centred(self.counts.sum(axis=axes))
            residuals[part] = weight * measured + (1 - weight) * swept.interactions[part]
            at = tuple(self.clique.index(name) for name in part)
            both[at] = parallel(tau, others * self.variance)
            bases = swept.residuals.bases
            reach += weight * prod(2 * (1 - 1 / sizes[name]) for name in part)
            reach += (1 - weight) * prod(bases[name].reach for name in part) / others
        variance = np.full(self.counts.shape, cell_variance(self.counts.shape, both))
        lift = prod(sizes.values()) * own_law.lift + swept.lift(self.clique)
        loose = max(own_law.looseness, swept.looseness(self.clique))
        error = half_width(variance, beta, reach=reach, lift=lift, looseness=loose)
        return assembled(self.clique, sizes, residuals), error

    def _planned(self, swept: ResidualTables, sizes: Mapping[str, int]) -> dict[Clique, float]:
        """τ_A of every residual that the sweep measures of the clique's parts."""
        wide = tuple(name for name in self.clique if sizes[name] > 1)
        return {
            part: swept.noise[part] / prod(sizes[name] ** 2 for name in part)
            for part in parts_of(wide)
            if part in swept.noise
        }
