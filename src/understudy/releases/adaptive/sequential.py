"""Error bars of 1-way marginals from every noisy table that an adaptive release buys, in the order of purchase.

A 1-way marginal is measured first by itself, then with every pair or triple that holds its attribute, last by
the sweep. Which pairs are bought depends on noise that was drawn before, so the precision that a cell has in the
end is random, and depends on the noises that it is made of. The following is true nevertheless.

    Lemma. Let X_1, X_2, … be normal noises of variances u_1, u_2, …, and w_1, w_2, … weights, such that u_t and
    w_t are fixed by what happened before X_t is drawn. Let V be fixed in advance, and stop when Σ w_t²u_t, which
    never exceeds V, is exactly V. Then

        P[it stops, and |Σ w_t X_t| > z√V] ≤ 2Φ(-z).

    Proof. Σ w_t X_t is Brownian motion looked at when its clock shows Σ w_t²u_t: each step, given the past, is
    normal with the variance by which the clock advances. Let the motion run on until the clock shows V. Its place
    then is normal of variance V, and is the sum itself where that has stopped there. ∎

    If a sum is used whose clock may stand anywhere below V, reflection gives 4Φ(-z) instead: the largest |place|
    of the motion up to V is what counts. Here a sum that does not reach V claims nothing.

The estimate Σ w_t y_t/Σ w_t of a count is then off by at most z√V/Σ w_t. The best weights are the precisions
1/u_t, for which clock and weight agree; the last weight before V is √((V - clock)/u_t), which is more than what is
missing. V is listed beforehand at several `LEVELS`, each with its own part of β, so all that are reached are told.

Noise here is discrete. P[X = k] is at most exp(1/(24u)) times the probability that a normal number of variance u
rounds to k (`half_width`), given any past. So whatever happens is at most exp(lift) times as likely as with
rounded normal numbers, which are off by ½ each; the lift is Σ 1/(24u) over the draws used. A table whose draws
would lift beyond `MOST_LIFT` is not used. Where noise is so small that little could be used, E exp(λX) ≤
exp(λ²u/2) gives √(2V·ln(2/β)) for the same sums; which of the two is taken is decided by the first variance.
Normal noise that is rounded, as it is under a budget kept in GDP, has no lift, and is treated as what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from understudy.releases.residual.half_width import ROUNDING, GaussianLaw

Values = NDArray[np.float64]

LEVELS = (1.4, 1.8, 2.3, 3.0, 4.0, 6.0)
"""Precisions at which bars may be told, in those of the first table."""

HIGH_LEVELS = (1.6, 2.2, 3.0, 4.0, 5.5, 7.5, 10.0, 14.0)
"""The same where most of the price goes to a sweep over the workload, which tells most of each attribute."""

MOST_LIFT = 0.05
"""Of the logarithm of a probability: it lengthens a bar by about a hundredth."""

SMOOTH = 25.0
"""First variances from which noise is treated as rounded normal numbers."""


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Counts with independent discrete Gaussian or rounded normal noise in them; each cell has the same law.

    `variance` is that of a cell's noise, `reach` the sum of the absolute weights with which draws enter the cell,
    and `lift` the sum of 1/(24u) over those draws, u the variance of each; 0 for rounded normal noise alone.
    """

    counts: Values
    variance: float
    reach: float
    lift: float

    @classmethod
    def summed(cls, counts: Values, axis: int, law: GaussianLaw) -> NoisyTable:
        """The sums along every other axis than `axis` of a table whose cells have noise of that law."""
        others = tuple(i for i in range(counts.ndim) if i != axis)
        cells = counts.size // counts.shape[axis]
        return cls(counts.sum(axis=others), cells * law.variance, float(cells), cells * law.lift)

    def with_total(self, rows: float) -> NoisyTable:
        """The table moved evenly so that its cells sum to the number of rows, where everybody knows that."""
        cells = self.counts.size
        return NoisyTable(
            self.counts + (rows - self.counts.sum()) / cells,
            self.variance * (1 - 1 / cells),
            self.reach * 2 * (1 - 1 / cells),
            self.lift * cells,
        )


@dataclass(frozen=True, eq=False)
class BoundedCounts:
    """Counts that are within `error` of the exact ones."""

    counts: Values
    error: float


@dataclass(eq=False)
class SequentialCells:
    """The cells of one attribute, through all noisy tables that tell of them, in order.

    `beta` is the probability for each cell at each of the `levels`, which increase: precisions in those of the
    first table, from 1. Cells have noise of the same variance, so they share their weights.
    """

    first: NoisyTable
    beta: Fraction
    levels: Sequence[float] = LEVELS
    told: list[BoundedCounts] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = 1 / self.first.variance
        rounded = self.first.lift == 0
        self._smooth = rounded or (self.first.variance >= SMOOTH and self.first.lift <= MOST_LIFT)
        self._open = [level * start for level in self.levels]
        self._clock, self._lift = 0.0, 0.0
        self._sum, self._reach = np.zeros(self.first.counts.shape), 0.0
        self.add(self.first)

    def add(self, table: NoisyTable) -> None:
        """One more table, whose variance was fixed before its noise was drawn."""
        if self._smooth and self._lift + table.lift > MOST_LIFT:
            return
        precision = 1 / table.variance
        while self._open and self._clock + precision >= self._open[0]:
            level = self._open.pop(0)
            last = sqrt(max(level - self._clock, 0.0) * precision)
            weight = self._clock + last
            counts = (self._sum + last * table.counts) / weight
            self.told.append(
                BoundedCounts(counts, self._bar(level, self._reach + last * table.reach) / weight)
            )
        self._clock += precision
        self._lift += table.lift
        self._sum = self._sum + precision * table.counts
        self._reach += precision * table.reach

    def _bar(self, variance: float, reach: float) -> float:
        """z√V, and what rounding adds."""
        beta = float(self.beta)
        if not self._smooth:
            return sqrt(2 * variance * log(2 / beta)) * ROUNDING
        normal = -NormalDist().inv_cdf(beta * exp(-MOST_LIFT) / 2)
        return (sqrt(variance) * normal + reach / 2) * ROUNDING
