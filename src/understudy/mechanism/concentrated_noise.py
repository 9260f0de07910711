"""Noise whose price is one of concentrated privacy: what the discrete Gaussian and the rounded normal share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.mechanism.parameters import lattice_sensitivity, lattice_values, share_of
from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import GaussianNoise, RoundedNormal
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number, privacy_parameter

Charged = TypeVar("Charged", bound=GaussianNoise | RoundedNormal)


@dataclass(frozen=True, kw_only=True)
class ConcentratedNoise(ABC, Generic[Charged]):
    """Independent noise on each of a vector of integers, of a law with the parameter σ² = Δ²/(2ρ).

    One person moves the vector by at most Δ in Euclidean length (Δ² = `l2_squared`), for a price of ρ. A mechanism
    says which law it is: how it is drawn, its quantile, its event, and which σ² cannot be drawn.
    """

    rho: Fraction
    l2_squared: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", privacy_parameter(self.rho, "rho"))
        lattice_sensitivity(self.l2_squared)
        if self.l2_squared:
            self._check()  # refused here, not after it was paid for

    @cached_property
    def parameter(self) -> Fraction:
        """The number that the law of the noise depends on: σ²; 0 when nobody can move the values (Δ = 0)."""
        return self.l2_squared / (2 * self.rho)

    @property
    def spread(self) -> float:
        """The length that the noise grows with: σ."""
        return float(self.parameter) ** 0.5

    @property
    def event(self) -> Charged:
        return self._charged(Fraction(self.l2_squared))

    def event_for(self, moved: Sensitivity) -> Charged:
        """The event of this noise on values that neighbours move by `moved`; `event`, if it was made for that."""
        return self._charged(Fraction(moved.l2_squared))

    def _charged(self, l2_squared: Fraction) -> Charged:
        return self._event(l2_squared, self.parameter if self.l2_squared else 1 / (2 * self.rho))

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]:
        """The values with noise; exact where nobody can move them."""
        values = lattice_values(values)
        if self.l2_squared == 0:
            return values
        return values + self._draw(values.size, noise).reshape(values.shape)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases of a vector; each costs as one."""
        return self.release(np.tile(values, (times, 1)), noise=noise).tolist()

    def error(self, beta: Number, *, cells: int = 1) -> int:
        """t such that all `cells` noises are within t, except with probability `beta`."""
        return 0 if self.l2_squared == 0 else self._quantile(share_of(beta, cells))

    def log_law(self, value: int, outputs: ArrayLike) -> NDArray[np.float64]:
        """ln P[output | value], for outputs that are integers."""
        return self._log_law(np.asarray(outputs, dtype=np.int64) - value)

    @abstractmethod
    def _check(self) -> None:
        """Raises a `ParameterError` where noise of this σ² cannot be drawn."""

    @abstractmethod
    def _event(self, l2_squared: Fraction, variance: Fraction) -> Charged: ...

    @abstractmethod
    def _draw(self, size: int, noise: NoiseSource) -> NDArray[np.int64]: ...

    @abstractmethod
    def _quantile(self, beta: Fraction) -> int:
        """The smallest t with P[|noise| > t] ≤ beta."""

    @abstractmethod
    def _log_law(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln P[noise = step], for each of some integers."""
