"""Normal noise, rounded to integers: the Gaussian mechanism whose privacy is that of the continuous law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.concentrated_noise import ConcentratedNoise
from understudy.noise.normal import (
    normal_variance,
    rounded_normal_log_law,
    rounded_normal_of_variance,
    rounded_normal_quantile,
)
from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import RoundedNormal


@dataclass(frozen=True, kw_only=True)
class RoundedNormalMechanism(ConcentratedNoise[RoundedNormal]):
    """Add to each of a vector of integers an independent N(0, σ²) number, rounded to an integer; σ² = Δ²/(2ρ).

    Privacy     μ-GDP with μ² = Δ²/σ² = 2ρ, and so ρ-zCDP, if one person moves the vector by at most Δ in Euclidean
                length (Δ² = `l2_squared`): for integers x, x + round(N) is a function of x + N, its rounding.
                [DRS22]
    Accuracy    P[|noise| > t] = 2Φ(-(t + 1/2)/σ); `error` inverts it.
    Complexity  O(1) draws for each entry.
    Gap         None: integers in, integers out, the law is exact.
    """

    @property
    def variance(self) -> Fraction:
        """What the variance of the noise on one entry never exceeds, σ² + 1/12; 0 when nobody can move the values.

        By Poisson's summation formula it is σ² + 1/12 + Σ (-1)ᵏ(4σ² + 1/(πk)²)·exp(-2π²k²σ²) over k ≥ 1: terms
        that alternate and fall, of which the first is negative.
        """
        return self.parameter + Fraction(1, 12) if self.l2_squared else Fraction(0)

    def _check(self) -> None:
        normal_variance(self.parameter)

    def _event(self, l2_squared: Fraction, variance: Fraction) -> RoundedNormal:
        return RoundedNormal(l2_squared=l2_squared, variance=variance)

    def _draw(self, size: int, noise: NoiseSource) -> NDArray[np.int64]:
        return rounded_normal_of_variance(self.parameter, size, noise=noise)

    def _quantile(self, beta: Fraction) -> int:
        return rounded_normal_quantile(self.parameter, beta)

    def _log_law(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        return rounded_normal_log_law(self.parameter, steps)


CARD = Card(
    name="normal, rounded to integers",
    family=Family.NOISE,
    privacy="μ-GDP, μ² = Δ²/σ²; ρ-zCDP, ρ = μ²/2",
    accuracy="P[off by more than t] = 2Φ(-(t + ½)/σ)",
    source="Dong, Roth, Su 2022",
    events=(RoundedNormal,),
    audited=(
        NoiseSubject(
            "rounded-normal",
            "mechanism.rounded_normal.RoundedNormalMechanism.release",
            lambda epsilon, _, shift: RoundedNormalMechanism(
                rho=epsilon**2 / 2, l2_squared=sum(step * step for step in shift)
            ),
        ),
    ),
)
