"""What is promised of a mechanism, as epsilon for each delta."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log, log1p
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from understudy.noise.bounded import bounded_log_law
from understudy.noise.law import discrete_gaussian_log_law
from understudy.privacy.compose import zcdp_epsilon

CURVE = (0.1, 0.01, 1e-3, 1e-5)
"""The deltas at which a promise without a pure epsilon is looked at."""


class Claim(Protocol):
    """ε(δ): for every event E and both orders of the neighbours, P[E] ≤ e^ε(δ)·P'[E] + δ."""

    @property
    def deltas(self) -> tuple[float, ...]:
        """Where it is worth testing."""
        ...

    def epsilon(self, delta: float) -> float: ...


@dataclass(frozen=True, slots=True)
class PureClaim:
    """ε-DP."""

    amount: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return (0.0,)

    def epsilon(self, delta: float) -> float:
        del delta
        return float(self.amount)


@dataclass(frozen=True, slots=True)
class ConcentratedClaim:
    """ρ-zCDP, as the (ε, δ) that it implies."""

    rho: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return CURVE

    def epsilon(self, delta: float) -> float:
        return _concentrated_epsilon(float(self.rho), delta)


@dataclass(frozen=True, slots=True)
class ApproximateClaim:
    """(ε, δ)-DP: nothing is promised at a smaller δ."""

    amount: Fraction
    delta: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return (float(self.delta),)

    def epsilon(self, delta: float) -> float:
        return float(self.amount) if delta >= float(self.delta) else inf


@dataclass(frozen=True, slots=True)
class ApproximateConcentratedClaim:
    """δ'-approximate ρ-zCDP, as the (ε, δ) that it implies: ρ-zCDP at δ - δ'."""

    rho: Fraction
    delta: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return tuple(float(self.delta) + each for each in CURVE)

    def epsilon(self, delta: float) -> float:
        rest = delta - float(self.delta)
        return _concentrated_epsilon(float(self.rho), rest) if rest > 0 else inf


@dataclass(frozen=True, slots=True)
class GaussianClaim:
    """The exact curve of discrete Gaussian noise on one number that moves by `shift`.

    Much tighter than the curve of its ρ: it also tells noise that is a few hundredths too small.
    """

    shift: int
    variance: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return CURVE

    def epsilon(self, delta: float) -> float:
        return _gaussian_epsilon(self.shift, self.variance, delta)


@dataclass(frozen=True, slots=True)
class RenyiClaim:
    """A divergence at one Rényi order outside outputs of mass `delta`, as the (ε, δ) that it implies."""

    order: Fraction
    divergence: Fraction
    delta: Fraction

    @property
    def deltas(self) -> tuple[float, ...]:
        return tuple(float(self.delta) + each for each in CURVE)

    def epsilon(self, delta: float) -> float:
        """[CKS20, Corollary 13] at this order, for what is left of δ."""
        rest, order = delta - float(self.delta), float(self.order)
        if rest <= 0:
            return inf
        converted = (log(1 / rest) + (order - 1) * log1p(-1 / order) - log(order)) / (order - 1)
        return max(0.0, float(self.divergence) + converted)


@dataclass(frozen=True, slots=True)
class BoundedClaim:
    """The exact curve of bounded noise on one number that moves by `shift`."""

    shift: int
    reach: int

    @property
    def deltas(self) -> tuple[float, ...]:
        return CURVE

    def epsilon(self, delta: float) -> float:
        return _bounded_epsilon(self.shift, self.reach, delta)


@dataclass(frozen=True, slots=True)
class NormalClaim:
    """The exact curve of a normal number of standard deviation 1 that moves by `shift`."""

    shift: float

    @property
    def deltas(self) -> tuple[float, ...]:
        return CURVE

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) ≤ δ, from above, by bisection."""
        low, high = 0.0, self.shift**2 / 2 + 10 * self.shift
        for _ in range(60):
            middle = (low + high) / 2
            far = middle / self.shift
            spent = ndtr(self.shift / 2 - far) - exp(middle) * ndtr(-self.shift / 2 - far)
            low, high = (low, middle) if spent <= delta else (middle, high)
        return high


@lru_cache(maxsize=256)
def _concentrated_epsilon(rho: float, delta: float) -> float:
    return zcdp_epsilon(rho, delta)


@lru_cache(maxsize=256)
def _gaussian_epsilon(shift: int, variance: Fraction, delta: float) -> float:
    """The smallest ε with Σ (p(y) - e^ε·q(y))₊ ≤ δ, from above, by bisection."""
    reach = abs(shift) + 40 * max(1, int(float(variance) ** 0.5 + 1))
    outputs = np.arange(-reach, reach + 1)
    first = discrete_gaussian_log_law(variance, outputs)
    second = discrete_gaussian_log_law(variance, outputs - shift)
    return _exact_epsilon(first, second, delta)


@lru_cache(maxsize=256)
def _bounded_epsilon(shift: int, reach: int, delta: float) -> float:
    """The same for bounded noise; infinite where outcomes that only one table has are likelier than δ."""
    outputs = np.arange(-reach - abs(shift), reach + abs(shift) + 1)
    first, second = bounded_log_law(reach, outputs), bounded_log_law(reach, outputs - shift)
    alone = np.isneginf(second)
    left = delta - float(np.exp(first[alone]).sum())
    return _exact_epsilon(first[~alone], second[~alone], left) if left > 0 else inf


def _exact_epsilon(first: NDArray[np.float64], second: NDArray[np.float64], delta: float) -> float:
    low, high = 0.0, max(float((first - second).max()), 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        spent = float(np.maximum(np.exp(first) - np.exp(middle + second), 0).sum())
        low, high = (low, middle) if spent <= delta else (middle, high)
    return high
