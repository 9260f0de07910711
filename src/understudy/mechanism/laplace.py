"""The Laplace mechanism, on integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.parameters import lattice_sensitivity, lattice_values, share_of
from understudy.noise.law import discrete_laplace_log_law, discrete_laplace_quantile, scale_parameter
from understudy.noise.samplers import NoiseSource, discrete_laplace
from understudy.privacy.event import LaplaceNoise
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number, privacy_parameter
from understudy.theory.planned import PRIVACY, PlanInputs, Planned, Width, planned_epsilon


@dataclass(frozen=True, kw_only=True)
class LaplaceMechanism:
    """Add to each of a vector of integers independent noise with P[k] ∝ exp(-|k|ε/Δ), Δ = `l1`.

    Privacy     ε-DP, if one person moves the vector by at most Δ in total (L1).
                [Lecture 4, Theorem 5]: for every output the two probabilities differ by a factor of at most
                exp(ε·|shift|/Δ), since | |y - a| - |y - b| | ≤ |a - b| [Lecture 4, Claim 3].
    Accuracy    P[|noise| > t] = 2q^(t+1)/(1 + q), q = exp(-ε/Δ): the lattice form of [Lecture 4, Claim 6],
                of which exp(-ε·t/Δ) is an upper bound at integers t.
    Complexity  O(1) draws for each entry.
    Gap         None: integers in, integers out, the law is exact.
    """

    epsilon: Fraction
    l1: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        lattice_sensitivity(self.l1)
        if self.l1:
            scale_parameter(self.scale)  # refused here, not after it was paid for

    @cached_property
    def scale(self) -> Fraction:
        """Δ/ε; of no meaning when nobody can move the values (Δ = 0)."""
        return self.l1 / self.epsilon

    @property
    def parameter(self) -> Fraction:
        """The number that the law of the noise depends on: its scale."""
        return self.scale

    @property
    def spread(self) -> float:
        """The length that the noise grows with: its scale."""
        return float(self.scale)

    @property
    def variance(self) -> float:
        """Of the noise on one entry: 2q/(1 - q)² with q = exp(-ε/Δ); below 2(Δ/ε)², that of continuous noise."""
        if self.l1 == 0:
            return 0.0
        q = exp(-1 / float(self.scale))
        return 2 * q / (1 - q) ** 2

    @property
    def event(self) -> LaplaceNoise:
        return LaplaceNoise(l1=Fraction(self.l1), scale=1 / self.epsilon if self.l1 == 0 else self.scale)

    def event_for(self, moved: Sensitivity) -> LaplaceNoise:
        """The event of this noise on values that neighbours move by `moved`; `event`, if it was made for that."""
        return LaplaceNoise(l1=Fraction(moved.l1), scale=self.event.scale)

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]:
        """The values with noise; exact where nobody can move them."""
        values = lattice_values(values)
        if self.l1 == 0:
            return values
        return values + discrete_laplace(self.scale, values.size, noise=noise).reshape(values.shape)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases of a vector; each costs as one."""
        return self.release(np.tile(values, (times, 1)), noise=noise).tolist()

    def error(self, beta: Number, *, cells: int = 1) -> int:
        """t such that all `cells` noises are within t, except with probability `beta`."""
        return 0 if self.l1 == 0 else discrete_laplace_quantile(self.scale, share_of(beta, cells))

    def log_law(self, value: int, outputs: ArrayLike) -> NDArray[np.float64]:
        """ln P[output | value], for outputs that are integers."""
        return discrete_laplace_log_law(self.scale, np.asarray(outputs, dtype=np.int64) - value)


def _planned(s: PlanInputs) -> Width:
    from understudy.theory.lecture4 import laplace_error  # late: noise is drawn without it

    epsilon = planned_epsilon(s)
    return laplace_error(epsilon, s.rows, s.queries, s.beta), {"scale": s.queries / (epsilon * s.rows)}


def _one_answer(s: PlanInputs) -> LaplaceMechanism:
    return LaplaceMechanism(epsilon=Fraction(repr(planned_epsilon(s))) / s.queries, l1=1)


CARD = Card(
    name="Laplace, on integers",
    family=Family.NOISE,
    privacy="ε",
    accuracy="P[off by more than t] = 2qᵗ⁺¹/(1+q), q = exp(-ε/Δ)",
    source="Lecture 4, Theorem 5 and Claim 6",
    events=(LaplaceNoise,),
    plans=(
        Planned(
            name="laplace",
            promises=PRIVACY,
            theorem="Lecture 4, Theorems 5 and 8, Claim 6",
            width=_planned,
            one_answer=_one_answer,
        ),
    ),
    audited=(
        NoiseSubject(
            "laplace",
            "mechanism.laplace.LaplaceMechanism.release",
            lambda epsilon, moved, _: LaplaceMechanism(epsilon=epsilon, l1=moved),
        ),
    ),
)
