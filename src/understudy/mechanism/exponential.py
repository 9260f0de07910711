"""The exponential mechanism, on scores from a public lattice."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, ChoiceSubject, Family
from understudy.mechanism.parameters import scores_sensitivity, whole
from understudy.noise.samplers import NoiseSource
from understudy.noise.selection import choose_many
from understudy.privacy.event import Selection
from understudy.privacy.relation import Sensitivity
from understudy.rational import privacy_parameter, probability


class ExponentialSelection:
    """What draws by the exponential mechanism have in common: their rate, and the event of one of them.

    Candidates have weights exp(-rate·loss), and one person moves every loss by at most `sensitivity`.
    """

    __slots__ = ()

    epsilon: Fraction
    sensitivity: int

    @property
    def rate(self) -> Fraction:
        """What the log-weight of a candidate loses for each unit of loss, or lattice step below the best score."""
        return self.epsilon / (2 * self.sensitivity)

    @property
    def event(self) -> Selection:
        return Selection(epsilon=self.epsilon)

    def event_for(self, moved: Sensitivity) -> Selection:
        """The event of a draw by losses that neighbours move by at most `moved.l1`."""
        return Selection(epsilon=2 * self.rate * moved.l1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism(ExponentialSelection):
    """Choose one of k candidates; candidate i with probability ∝ exp(ε·sᵢ/(2Δ)). [Lecture 18, Algorithm 1]

    Scores are integers: multiples of a public lattice step, in which Δ = `sensitivity` is counted as well.

    Privacy     ε-DP and ε²/8-zCDP, if one person moves every score by at most Δ. [DworkRoth14, Theorem 3.10]
    Accuracy    P[max s - s_chosen ≥ (2Δ/ε)(ln k + ln(1/β))] ≤ β. [Lecture 18, Theorem 0.1]
    Complexity  O(k) time and memory, whatever the scores are.
    Gap         None: the law is exact at any gap between scores, also where a weight underflows every float.
    """

    epsilon: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        scores_sensitivity(self.sensitivity)

    def choose(self, scores: NDArray[np.int64], *, noise: NoiseSource) -> int:
        """The index of the chosen candidate."""
        return int(self.choose_many(scores, 1, noise=noise)[0])

    def choose_many(self, scores: NDArray[np.int64], count: int, *, noise: NoiseSource) -> NDArray[np.int64]:
        """So many independent choices by the same scores; each costs as one."""
        if scores.ndim != 1 or scores.size == 0 or not np.issubdtype(scores.dtype, np.integer):
            raise ParameterError("scores must be a non-empty vector of integers on the lattice")
        wide = scores.astype(np.int64)  # differences of narrow integers wrap around
        # Scores more than 2^62 below the best count as that far: this moves none by more than Δ, and an error
        # would tell that there was one.
        lowest = max(int(wide.max()) - 2**62, -(2**63))
        return choose_many(wide.max() - np.maximum(wide, lowest), self.rate, count, noise=noise)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[int]:
        """So many independent choices by the same scores, `values`; each costs as one."""
        return self.choose_many(values, times, noise=noise).tolist()

    def regret(self, candidates: int, beta: float) -> float:
        """Lattice steps that the chosen score is below the best one, except with probability `beta`."""
        whole(candidates, "candidates", at_least=1)
        return float(2 * self.sensitivity / self.epsilon) * (log(candidates) - log(probability(beta)))

    def expected_regret(self, candidates: int) -> float:
        """E[max s - s_chosen] ≤ (2Δ/ε)·ln k."""
        whole(candidates, "candidates", at_least=1)
        return float(2 * self.sensitivity / self.epsilon) * log(candidates)

    def log_law(self, scores: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln P[i] for each candidate, to float accuracy."""
        wide = scores.astype(np.int64)
        weights = float(self.rate) * (wide - wide.max()).astype(np.float64)  # at most 0: no exp overflows
        return weights - np.log(np.exp(weights).sum())


def _with(epsilon: Fraction, moved: int) -> ExponentialMechanism:
    return ExponentialMechanism(epsilon=epsilon, sensitivity=moved)


_PATH = "mechanism.exponential.ExponentialMechanism.choose"

CARD = Card(
    name="exponential",
    family=Family.SELECTION,
    privacy="ε; ε²/8-zCDP",
    accuracy="(2Δ/ε)(ln k + ln 1/β) below the best",
    source="Lecture 18, Theorem 0.1",
    events=(Selection,),
    audited=(
        ChoiceSubject("exponential", _PATH, _with),
        ChoiceSubject("exponential-zcdp", _PATH, _with, concentrated=True),
    ),
)
