"""What was done, as frozen records. What it costs is another matter (`cost`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

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
class Pure:
    """Something that is known by its pure parameter `epsilon` alone."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ParameterError("nothing can earn budget: epsilon must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Pure):
    """One run of the exponential mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(Pure):
    """A sparse vector was opened: everything that it will ever say is paid for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedReport(Pure):
    """Every row reported its value through randomised response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBefore(Pure):
    """What was spent on the table before its ledger was opened."""


@dataclass(frozen=True, slots=True)
class Together:
    """Several things done one after the other, each possibly chosen after seeing the ones before."""

    events: tuple[Event, ...]


Event = LaplaceNoise | GaussianNoise | Pure | Together

_NAMED = {
    kind.__name__: kind
    for kind in (LaplaceNoise, GaussianNoise, Selection, SparseVector, RandomizedReport, SpentBefore)
}


def as_plain(event: Event) -> dict[str, Any]:
    """An event as plain values; rationals are written as ``3/10``.

    >>> as_plain(Selection(epsilon=Fraction(3, 10)))
    {'event': 'Selection', 'epsilon': '3/10'}
    """
    if isinstance(event, Together):
        return {"event": "Together", "events": [as_plain(part) for part in event.events]}
    parameters = {field.name: str(getattr(event, field.name)) for field in fields(event)}
    return {"event": type(event).__name__, **parameters}


def from_plain(plain: dict[str, Any]) -> Event:
    """The inverse of `as_plain`; what is not known is refused, never guessed."""
    if plain.get("event") == "Together":
        return Together(tuple(from_plain(part) for part in plain["events"]))
    kind = _NAMED.get(plain.get("event", ""))
    if kind is None or {field.name for field in fields(kind)} != plain.keys() - {"event"}:
        raise ParameterError("a recorded event is not understood by this version of the program")
    return kind(**{name: Fraction(text) for name, text in plain.items() if name != "event"})
