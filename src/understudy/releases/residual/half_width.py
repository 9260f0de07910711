"""How far a weighted sum of Gaussian noises on whole numbers can be off: half-widths of error bars."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

ROUNDING = 1 + 1e-9
"""Lifts an error computed in floats above the true one."""


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Noise on whole numbers: discrete Gaussian of the parameter `variance`, or N(0, `variance`) `rounded`."""

    variance: float
    rounded: bool

    @property
    def lift(self) -> float:
        """l such that whatever happens is at most exp(l) times as likely as with a rounded normal number."""
        return 0.0 if self.rounded else 1 / (24 * self.variance)

    @property
    def looseness(self) -> float:
        """c such that E exp(λX) ≤ exp(cλ²v/2), v the `variance`."""
        return (1 + 1 / (2 * sqrt(self.variance))) ** 2 if self.rounded else 1.0


def half_width(
    variance: Values, beta: Fraction, *, reach: float, lift: float, looseness: float = 1.0
) -> Values:
    """t with P[|Σ a_j X_j| > t] ≤ beta, for independent noises X_j by laws of parameters v_j (`GaussianLaw`).

    `variance` is V = Σ a_j² v_j, `reach` Σ|a_j|, `lift` the sum of the lifts and `looseness` the largest one of
    the noises, c. The smaller of two bounds:

        √(2cV ln(2/β))
            E exp(λX) ≤ exp(cλ²v/2). Discrete, c = 1: completing the square leaves a sum of exp(-(k - s)²/(2v))
            over the integers k, which is largest at s = 0. Rounded, X = N + R with |R| ≤ ½ and E R = 0 by
            symmetry: for 1/p + 1/q = 1, E exp(λX) ≤ (E exp(pλN))^(1/p)·(E exp(qλR))^(1/q) ≤ exp(λ²(pv + q/4)/2),
            by Hölder and Hoeffding, and the best p makes pv + q/4 = (√v + ½)².
        √V·z(β·exp(-lift)) + reach/2, z the two-sided quantile of the normal law
            Rounded normal numbers are off from normal ones by at most ½ each, and have no lift. Discrete,
            P[X = k] ≤ φ_v(k), as Σ_k φ_v(k) ≥ 1 (Poisson summation), and φ_v(k) ≤ exp(1/(24v))·∫ φ_v over k ± ½,
            as the arithmetic mean of φ_v(k ± u) is at least the geometric one, φ_v(k)·exp(-u²/(2v)). So whatever
            happens to (X_j) is at most exp(lift) times as likely as for rounded normal numbers.
    """
    deviation = np.sqrt(variance)
    chernoff = deviation * sqrt(2 * looseness * log(2 / float(beta)))
    tail = float(beta) * float(np.exp(-lift)) / 2
    if tail < 1e-290:
        return chernoff * ROUNDING
    normal = deviation * -NormalDist().inv_cdf(tail) + reach / 2
    return np.minimum(chernoff, normal) * ROUNDING
