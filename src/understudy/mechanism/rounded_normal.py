"""Normal noise, rounded to integers: the Gaussian mechanism whose privacy is that of the continuous law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.parameters import lattice_sensitivity, lattice_values, share_of
from understudy.noise.normal import (
    normal_variance,
    rounded_normal_log_law,
    rounded_normal_of_variance,
    rounded_normal_quantile,
)
from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import RoundedNormal
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number, privacy_parameter


@dataclass(frozen=True, kw_only=True)
class RoundedNormalMechanism:
    """Add to each of a vector of integers an independent N(0, σ²) number, rounded to an integer; σ² = Δ²/(2ρ).

    Privacy     μ-GDP with μ² = Δ²/σ² = 2ρ, and so ρ-zCDP, if one person moves the vector by at most Δ in Euclidean
                length (Δ² = `l2_squared`): for integers x, x + round(N) is a function of x + N, its rounding.
                [DRS22]
    Accuracy    P[|noise| > t] = 2Φ(-(t + 1/2)/σ); `error` inverts it.
    Complexity  O(1) draws for each entry.
    Gap         None: integers in, integers out, the law is exact.
    """

    rho: Fraction
    l2_squared: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", privacy_parameter(self.rho, "rho"))
        lattice_sensitivity(self.l2_squared)
        if self.l2_squared:
            normal_variance(self.normal_variance)  # refused here, not after it was paid for

    @cached_property
    def normal_variance(self) -> Fraction:
        """σ² = Δ²/(2ρ), of the number that is rounded; 0 when nobody can move the values (Δ = 0)."""
        return self.l2_squared / (2 * self.rho)

    @property
    def variance(self) -> Fraction:
        """What the variance of the noise on one entry never exceeds, σ² + 1/12; 0 when nobody can move the values.

        By Poisson's summation formula it is σ² + 1/12 + Σ (-1)ᵏ(4σ² + 1/(πk)²)·exp(-2π²k²σ²) over k ≥ 1: terms
        that alternate and fall, of which the first is negative.
        """
        return self.normal_variance + Fraction(1, 12) if self.l2_squared else Fraction(0)

    @property
    def parameter(self) -> Fraction:
        """The number that the law of the noise depends on: σ²."""
        return self.normal_variance

    @property
    def spread(self) -> float:
        """The length that the noise grows with: σ."""
        return float(self.normal_variance) ** 0.5

    @property
    def event(self) -> RoundedNormal:
        variance = 1 / (2 * self.rho) if self.l2_squared == 0 else self.normal_variance
        return RoundedNormal(l2_squared=Fraction(self.l2_squared), variance=variance)

    def event_for(self, moved: Sensitivity) -> RoundedNormal:
        """The event of this noise on values that neighbours move by `moved`; `event`, if it was made for that."""
        return RoundedNormal(l2_squared=Fraction(moved.l2_squared), variance=self.event.variance)

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]:
        """The values with noise; exact where nobody can move them."""
        values = lattice_values(values)
        if self.l2_squared == 0:
            return values
        drawn = rounded_normal_of_variance(self.normal_variance, values.size, noise=noise)
        return values + drawn.reshape(values.shape)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases of a vector; each costs as one."""
        return self.release(np.tile(values, (times, 1)), noise=noise).tolist()

    def error(self, beta: Number, *, cells: int = 1) -> int:
        """t such that all `cells` noises are within t, except with probability `beta`."""
        if self.l2_squared == 0:
            return 0
        return rounded_normal_quantile(self.normal_variance, share_of(beta, cells))

    def log_law(self, value: int, outputs: ArrayLike) -> NDArray[np.float64]:
        """ln P[output | value], for outputs that are integers."""
        return rounded_normal_log_law(self.normal_variance, np.asarray(outputs, dtype=np.int64) - value)


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
