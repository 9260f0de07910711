"""The Gaussian mechanism, on integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.concentrated_noise import ConcentratedNoise
from understudy.noise.law import discrete_gaussian_log_law, discrete_gaussian_quantile, variance_parameter
from understudy.noise.samplers import NoiseSource, discrete_gaussian
from understudy.privacy.compose import zcdp_rho
from understudy.privacy.event import GaussianNoise
from understudy.theory.planned import PRIVACY, PlanInputs, Planned, Width, planned_epsilon


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism(ConcentratedNoise[GaussianNoise]):
    """Add to each of a vector of integers independent noise with P[k] ∝ exp(-k²/(2σ²)), σ² = Δ²/(2ρ).

    Privacy     ρ-zCDP, if one person moves the vector by at most Δ in Euclidean length (Δ² = `l2_squared`).
                [CKS20, Theorem 14]
    Accuracy    P[|noise| > t] ≤ 2·exp(-t²/(2σ²)); `error` inverts the exact tail. [CKS20, Corollary 9]
    Complexity  O(1) draws for each entry.
    Gap         None: integers in, integers out, the law is exact.
    """

    @property
    def variance(self) -> Fraction:
        """σ² = Δ²/(2ρ), which the noise on one entry never exceeds; 0 when nobody can move the values (Δ = 0)."""
        return self.parameter

    def _check(self) -> None:
        variance_parameter(self.parameter)

    def _event(self, l2_squared: Fraction, variance: Fraction) -> GaussianNoise:
        return GaussianNoise(l2_squared=l2_squared, variance=variance)

    def _draw(self, size: int, noise: NoiseSource) -> NDArray[np.int64]:
        return discrete_gaussian(self.parameter, size, noise=noise)

    def _quantile(self, beta: Fraction) -> int:
        return discrete_gaussian_quantile(self.parameter, beta)

    def _log_law(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        return discrete_gaussian_log_law(self.parameter, steps)


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
