"""What was done, as frozen records. What it costs is another matter (`cost`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise:
    """Discrete Laplace noise of `scale` on integers that one person moves by at most `l1` in total."""

    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        if self.l1 < 0 or self.scale <= 0:
            raise ParameterError("Laplace noise needs a sensitivity of at least 0 and a positive scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """Discrete Gaussian noise on integers that one person moves by at most sqrt(l2_squared)."""

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        if self.l2_squared < 0 or self.variance <= 0:
            raise ParameterError("Gaussian noise needs a sensitivity of at least 0 and a positive variance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One run of the exponential mechanism with parameter `epsilon`."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """A sparse vector was opened: everything that it will ever say is paid for by `epsilon`."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedReport:
    """Every row reported its value through randomised response with parameter `epsilon`."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Together:
    """Several things done one after the other, each possibly chosen after seeing the ones before."""

    events: tuple[Event, ...]


Event = LaplaceNoise | GaussianNoise | Selection | SparseVector | RandomizedReport | Together
