"""What events cost, in exact integers of a small unit, always rounded up.

Two currencies that are never mixed: pure epsilon, and rho. That is the rho of zero-concentrated differential
privacy (zCDP), unless a ledger is kept by another filter (`filter`), which counts in rho as well. Beside rho,
a few events have a δ of their own, in units of its own. The exact price of each kind of event stands with the
event (`event`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar, Literal

from understudy.privacy.event import Event, known_event

UNITS = 10**15
"""Units in one epsilon or one rho. Every total of a real table fits into 64 bits."""

DELTA_UNITS = 10**30
"""Units in a δ of one, in which events are charged their own δ."""


@dataclass(frozen=True, slots=True, order=True)
class PureDP:
    """A cost in ε of differential privacy: a whole number of `units` of 10^-15. Costs of one currency add up."""

    units: int
    currency: ClassVar[Literal["epsilon"]] = "epsilon"

    @property
    def amount(self) -> float:
        """The cost as an ε."""
        return self.units / UNITS

    def __add__(self, other: PureDP) -> PureDP:
        if type(other) is not PureDP:
            return NotImplemented
        return PureDP(self.units + other.units)


@dataclass(frozen=True, slots=True, order=True)
class ZCDP:
    """A cost in ρ, of zero-concentrated differential privacy or as another filter counts it.

    It is a whole number of `units` of 10^-15. Costs of one currency add up.
    """

    units: int
    currency: ClassVar[Literal["rho"]] = "rho"

    @property
    def amount(self) -> float:
        """The cost as a ρ."""
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


def epsilon(event: Event) -> Fraction:
    """The pure-DP parameter of an event, exactly; an event that has none, or is unknown, is refused."""
    return known_event(event).pure_cost()


def rho(event: Event) -> Fraction:
    """The zCDP parameter of an event, exactly; an event that is unknown is refused."""
    return known_event(event).zcdp_cost()


def pure(event: Event) -> PureDP:
    """An event's price in pure epsilon, rounded up to whole units."""
    return PureDP(rounded_up(epsilon(event)))


def concentrated(event: Event) -> ZCDP:
    """An event's price in rho, rounded up to whole units."""
    return ZCDP(rounded_up(rho(event)))


def delta_units(event: Event) -> int:
    """The δ that an event is charged itself, in whole units of 10^-30, rounded up; 0 for most."""
    delta = known_event(event).delta_cost()
    return ceil(delta * DELTA_UNITS) if delta else 0
