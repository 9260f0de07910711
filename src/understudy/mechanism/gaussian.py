"""The Gaussian mechanism, on integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.parameters import lattice_sensitivity, lattice_values, share_of
from understudy.noise.law import discrete_gaussian_log_law, discrete_gaussian_quantile, variance_parameter
from understudy.noise.samplers import NoiseSource, discrete_gaussian
from understudy.privacy.compose import zcdp_rho
from understudy.privacy.event import GaussianNoise
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number, privacy_parameter
from understudy.theory.planned import PRIVACY, PlanInputs, Planned, Width, planned_epsilon


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism:
    """Add to each of a vector of integers independent noise with P[k] ∝ exp(-k²/(2σ²)), σ² = Δ²/(2ρ).

    Privacy     ρ-zCDP, if one person moves the vector by at most Δ in Euclidean length (Δ² = `l2_squared`).
                [CKS20, Theorem 14]
    Accuracy    P[|noise| > t] ≤ 2·exp(-t²/(2σ²)); `error` inverts the exact tail. [CKS20, Corollary 9]
    Complexity  O(1) draws for each entry.
    Gap         None: integers in, integers out, the law is exact.
    """

    rho: Fraction
    l2_squared: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", privacy_parameter(self.rho, "rho"))
        lattice_sensitivity(self.l2_squared)
        if self.l2_squared:
            variance_parameter(self.variance)  # refused here, not after it was paid for

    @cached_property
    def variance(self) -> Fraction:
        """σ² = Δ²/(2ρ), which the noise on one entry never exceeds; 0 when nobody can move the values (Δ = 0)."""
        return self.l2_squared / (2 * self.rho)

    @property
    def parameter(self) -> Fraction:
        """The number that the law of the noise depends on: σ²."""
        return self.variance

    @property
    def spread(self) -> float:
        """The length that the noise grows with: σ."""
        return float(self.variance) ** 0.5

    @property
    def event(self) -> GaussianNoise:
        variance = 1 / (2 * self.rho) if self.l2_squared == 0 else self.variance
        return GaussianNoise(l2_squared=Fraction(self.l2_squared), variance=variance)

    def event_for(self, moved: Sensitivity) -> GaussianNoise:
        """The event of this noise on values that neighbours move by `moved`; `event`, if it was made for that."""
        return GaussianNoise(l2_squared=Fraction(moved.l2_squared), variance=self.event.variance)

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]:
        """The values with noise; exact where nobody can move them."""
        values = lattice_values(values)
        if self.l2_squared == 0:
            return values
        return values + discrete_gaussian(self.variance, values.size, noise=noise).reshape(values.shape)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases of a vector; each costs as one."""
        return self.release(np.tile(values, (times, 1)), noise=noise).tolist()

    def error(self, beta: Number, *, cells: int = 1) -> int:
        """t such that all `cells` noises are within t, except with probability `beta`."""
        return 0 if self.l2_squared == 0 else discrete_gaussian_quantile(self.variance, share_of(beta, cells))

    def log_law(self, value: int, outputs: ArrayLike) -> NDArray[np.float64]:
        """ln P[output | value], for outputs that are integers."""
        return discrete_gaussian_log_law(self.variance, np.asarray(outputs, dtype=np.int64) - value)


def _planned(s: PlanInputs) -> Width:
    from understudy.theory.normal_noise import union_quantile  # late: it imports scipy

    rho = zcdp_rho(planned_epsilon(s), s.delta)
    sigma = sqrt(s.queries / (2 * rho)) / s.rows
    width = sigma * union_quantile(s.queries, s.beta) + 1 / s.rows  # on the lattice, one count more
    return width, {"sigma": sigma, "rho": rho}


def _one_answer(s: PlanInputs) -> GaussianMechanism:
    if not s.delta:
        raise ParameterError("Gaussian noise needs a delta")
    rho = Fraction(floor(zcdp_rho(planned_epsilon(s), s.delta) * 10**12), 10**12)
    return GaussianMechanism(rho=rho / s.queries, l2_squared=1)


CARD = Card(
    name="Gaussian, on integers",
    family=Family.NOISE,
    privacy="ρ-zCDP, ρ = Δ²/2σ²",
    accuracy="Gaussian tail",
    source="Canonne, Kamath, Steinke 2020",
    events=(GaussianNoise,),
    plans=(
        Planned(
            name="gaussian",
            promises=PRIVACY,
            theorem="Canonne, Kamath and Steinke 2020, Theorem 14; zCDP composition",
            width=_planned,
            needs=("delta",),
            one_answer=_one_answer,
        ),
    ),
    audited=(
        NoiseSubject(
            "gaussian",
            "mechanism.gaussian.GaussianMechanism.release",
            lambda epsilon, _, shift: GaussianMechanism(
                rho=epsilon**2 / 2, l2_squared=sum(step * step for step in shift)
            ),
        ),
    ),
)
