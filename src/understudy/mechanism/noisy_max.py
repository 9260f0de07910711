"""Report noisy max: the candidate whose score is largest after one-sided noise, on a public lattice."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, ChoiceSubject, Family
from understudy.mechanism.parameters import scores_sensitivity, whole
from understudy.noise.law import scale_parameter
from understudy.noise.samplers import NoiseSource, discrete_laplace, uniform_array
from understudy.privacy.event import NoisyMaximum
from understudy.privacy.relation import Sensitivity
from understudy.rational import privacy_parameter, probability


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoisyMax:
    """Add to each of k integer scores a geometric number, P[G ≥ g] = e^(-λg), λ = ε/(2Δ); the largest sum wins.

    Ties are broken uniformly. That is the law of the maximum with *continuous* exponential noise: X = G + R with
    G geometric and an independent rest R in [0, 1), so among equal whole parts the largest of the rests wins, and
    those are alike. With qᵢ = e^(-λ(max s - sᵢ)) it is P[i] = ∫₀¹ qᵢ·∏_{j≠i}(1 - u·qⱼ) du (put u = e^(-λy) with y
    the winner's lead on max s), which is also the law of permute-and-flip.

    Privacy     ε-DP, if one person moves every score by at most Δ = `sensitivity`. Fix the other noises: i wins
                when its own exceeds t = max_{j≠i}(sⱼ + Xⱼ) - sᵢ, which has probability min(1, e^(-λt)); one person
                moves t by at most 2Δ.
    Accuracy    P[max s - s_chosen ≥ (2Δ/ε)·ln(k/β)] ≤ β: one of k - 1 noises must reach that far.
    Complexity  O(k) draws, whatever the scores are.
    """

    epsilon: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        scores_sensitivity(self.sensitivity)
        scale_parameter(self.scale)  # refused here, not after it was paid for

    @property
    def scale(self) -> Fraction:
        """1/λ, in lattice steps."""
        return 2 * self.sensitivity / self.epsilon

    @property
    def event(self) -> NoisyMaximum:
        return NoisyMaximum(epsilon=self.epsilon)

    def event_for(self, moved: Sensitivity) -> NoisyMaximum:
        """The event of a choice by scores of which neighbours move each by at most `moved.l1`."""
        return NoisyMaximum(epsilon=2 * moved.l1 / self.scale)

    def choose(self, scores: NDArray[np.int64], *, noise: NoiseSource) -> int:
        """The index of the chosen candidate."""
        return int(self.choose_many(scores, 1, noise=noise)[0])

    def choose_many(self, scores: NDArray[np.int64], count: int, *, noise: NoiseSource) -> NDArray[np.int64]:
        """So many independent choices by the same scores; each costs as one."""
        if scores.ndim != 1 or scores.size == 0 or not np.issubdtype(scores.dtype, np.integer):
            raise ParameterError("scores must be a non-empty vector of integers on the lattice")
        wide = scores.astype(np.int64)
        # Scores further below the best than any noise reaches count as that far: it moves none by more than Δ.
        below = np.minimum((wide.max() - np.maximum(wide, -(2**62))).astype(np.uint64), np.uint64(2**62))
        drawn = one_sided(self.scale, count * wide.size, noise=noise).reshape(count, wide.size)
        sums = drawn - below.astype(np.int64)
        is_best = sums == sums.max(axis=1, keepdims=True)
        winners, ties = is_best.argmax(axis=1), is_best.sum(axis=1)
        for size in np.unique(ties[ties > 1]).tolist():
            rows = np.flatnonzero(ties == size)
            tied = np.nonzero(is_best[rows])[1].reshape(rows.size, size)
            winners[rows] = tied[np.arange(rows.size), uniform_array(size, rows.size, noise=noise)]
        return winners

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[int]:
        """So many independent choices by the same scores, `values`; each costs as one."""
        return self.choose_many(values, times, noise=noise).tolist()

    def regret(self, candidates: int, beta: float) -> float:
        """Lattice steps that the chosen score is below the best one, except with probability `beta`."""
        whole(candidates, "candidates", at_least=1)
        return float(self.scale) * (log(candidates) - log(probability(beta)))

    def law(self, scores: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[i] for each candidate: Gauss-Legendre quadrature, exact for these polynomials up to rounding."""
        wide = scores.astype(np.int64)
        q = np.array([exp(float((int(s) - int(wide.max())) / self.scale)) for s in wide])
        nodes, weights = np.polynomial.legendre.leggauss(wide.size // 2 + 1)
        u = (nodes[:, None] + 1) / 2
        factors = 1 - u * q
        others = np.array([np.delete(factors, i, axis=1).prod(axis=1) for i in range(q.size)])
        return q * (others @ weights) / 2


def one_sided(scale: Fraction, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """Geometric numbers, P[G = g] = (1 - q)·q^g with q = e^(-1/scale): a discrete Laplace X folded at -1/2.

    G = X for X ≥ 0 and -X - 1 for X < 0: P[X = g] + P[X = -g - 1] = (1 - q)/(1 + q)·(q^g + q^(g+1)).
    """
    drawn = discrete_laplace(scale, size, noise=noise)
    return np.where(drawn >= 0, drawn, -drawn - 1)


CARD = Card(
    name="report noisy max (permute-and-flip)",
    family=Family.SELECTION,
    privacy="ε",
    accuracy="(2Δ/ε)·ln(k/β) below the best",
    source="Dwork, Roth 2014, section 3.3",
    events=(NoisyMaximum,),
    audited=(
        ChoiceSubject(
            "noisy-max",
            "mechanism.noisy_max.ReportNoisyMax.choose",
            lambda epsilon, moved: ReportNoisyMax(epsilon=epsilon, sensitivity=moved),
        ),
    ),
)
