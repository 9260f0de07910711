"""What events cost, in exact integers of a small unit, always rounded up.

Two currencies that are never mixed: pure epsilon, and rho of zero-concentrated differential privacy (zCDP).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from math import ceil, floor
from typing import ClassVar, Literal

from understudy.errors import ParameterError, RefusedError
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    Pure,
    Selection,
    SparseVector,
    Together,
)

UNITS = 10**15
"""Units in one epsilon or one rho. Every total of a real table fits into 64 bits."""


@dataclass(frozen=True, slots=True, order=True)
class PureDP:
    """ε-differential privacy, as a count of units of 10^-15."""

    units: int
    currency: ClassVar[Literal["epsilon"]] = "epsilon"

    @property
    def amount(self) -> float:
        return self.units / UNITS

    def __add__(self, other: PureDP) -> PureDP:
        if type(other) is not PureDP:
            return NotImplemented
        return PureDP(self.units + other.units)


@dataclass(frozen=True, slots=True, order=True)
class ZCDP:
    """ρ-zero-concentrated differential privacy, as a count of units of 10^-15."""

    units: int
    currency: ClassVar[Literal["rho"]] = "rho"

    @property
    def amount(self) -> float:
        return self.units / UNITS

    def __add__(self, other: ZCDP) -> ZCDP:
        if type(other) is not ZCDP:
            return NotImplemented
        return ZCDP(self.units + other.units)


Cost = PureDP | ZCDP


def rounded_up(amount: Fraction) -> int:
    """Whole units that cover `amount`."""
    return ceil(amount * UNITS)


def rounded_down(amount: Fraction) -> Fraction:
    """The largest amount of whole units that is no more than `amount`."""
    return Fraction(floor(amount * UNITS), UNITS)


@singledispatch
def epsilon(event: Event) -> Fraction:
    """The pure-DP parameter of an event; an event that has none, or is unknown, is refused, never guessed.

    Composition adds up, also when later mechanisms are chosen after seeing earlier answers.
    [Lecture 4, Theorem 8]
    """
    raise ParameterError(f"no pure cost is known for {type(event).__name__}")


@singledispatch
def rho(event: Event) -> Fraction:
    """The zCDP parameter of an event. [BunSteinke16, Lemma 1.7] adds it up over adaptive composition."""
    raise ParameterError(f"no zCDP cost is known for {type(event).__name__}")


@epsilon.register
def _(event: LaplaceNoise) -> Fraction:
    return event.l1 / event.scale


@epsilon.register
def _(event: GaussianNoise) -> Fraction:
    if event.l2_squared == 0:
        return Fraction(0)
    raise RefusedError(
        "Gaussian noise gives no pure epsilon: declare a budget with a delta, or ask for Laplace noise"
    )


@epsilon.register
def _(event: Pure) -> Fraction:
    return event.epsilon


@epsilon.register
def _(event: Located) -> Fraction:
    return epsilon(event.noise)


@epsilon.register
def _(event: Together) -> Fraction:
    return sum((epsilon(part) for part in event.events), Fraction(0))


@rho.register(LaplaceNoise)
@rho.register(Pure)
def _(event: LaplaceNoise | Pure) -> Fraction:
    """ε-DP implies ε²/2-zCDP. [BunSteinke16, Proposition 1.4]"""
    return epsilon(event) ** 2 / 2


@rho.register
def _(event: GaussianNoise) -> Fraction:
    """Discrete Gaussian noise on integers: Δ²/(2σ²). [CKS20, Theorem 14]"""
    return event.l2_squared / (2 * event.variance)


@rho.register
def _(event: Selection) -> Fraction:
    """The exponential mechanism is ε²/8-zCDP. [CesarRogers21]

    Its log-likelihood ratio between neighbours lies in an interval of length ε (the scores move by ±Δ and the
    normaliser is the same for all candidates), so Hoeffding's lemma bounds the Rényi divergence of order α by
    α·ε²/8.
    """
    return event.epsilon**2 / 8


@rho.register
def _(event: SparseVector) -> Fraction:
    """c runs, of which each is (1 - t)ε/c-DP for comparing and tε/c-DP for telling: ((1 - t)² + t²)·ε²/(2c).

    Runs are adaptively composed: each draws all its noise anew and starts when the one before has ended, so what
    it says is ε/c-DP given everything that was said before, whatever is asked. Pure ε'-DP is ε'²/2-zCDP
    [BunSteinke16, Proposition 1.4], and zCDP adds up [BunSteinke16, Lemma 1.7]. Other questions may be asked
    while a run is under way: an interactive ε'-DP mechanism is an interactive post-processing of one randomised
    response with ε', drawn when it starts [VadhanWang21], which is ε'²/2-zCDP.
    """
    return ((1 - event.told) ** 2 + event.told**2) * event.epsilon**2 / (2 * event.hits)


@rho.register
def _(event: Located) -> Fraction:
    return rho(event.noise)


@rho.register
def _(event: Together) -> Fraction:
    return sum((rho(part) for part in event.events), Fraction(0))


def pure(event: Event) -> PureDP:
    """An event's price in pure epsilon, rounded up to whole units."""
    return PureDP(rounded_up(epsilon(event)))


def concentrated(event: Event) -> ZCDP:
    """An event's price in rho, rounded up to whole units."""
    return ZCDP(rounded_up(rho(event)))
