"""What was done, as frozen records. What it costs is another matter (`cost`)."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, dataclass, fields
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
class NoisyMaximum(Pure):
    """One run of report noisy max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(Pure):
    """A sparse vector was opened: everything that it will ever say is paid for.

    It is `hits` runs one after the other, each with fresh noise and epsilon/`hits`; of this the part `told` buys
    the noisy value at the end of a run. One that was recorded without them (version 0.1) is one run of all of
    epsilon.
    """

    hits: int = 1
    told: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        Pure.__post_init__(self)
        if self.hits < 1 or int(self.hits) != self.hits or not 0 <= self.told <= 1:
            raise ParameterError(
                "a sparse vector has a whole number of hits, and tells for a part of its epsilon"
            )
        object.__setattr__(self, "hits", int(self.hits))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedReport(Pure):
    """Every row reported its value through randomised response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBefore(Pure):
    """What was spent on the table before its ledger was opened."""


RELATION = re.compile(r"(replace|add-remove (?P<rows>[1-9][0-9]{0,99}))( @[0-9a-f]+)?", re.ASCII)
RATIONAL = re.compile(r"[0-9]{1,4000}(/0*[1-9][0-9]{0,3999})?")
MASK = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Span:
    """Cells of one attribute: bit i of `mask` is cell i of `size`.

    `attribute` names the attribute and its cells: attributes that are cut otherwise have another name.
    """

    attribute: str
    size: int
    mask: int

    def __post_init__(self) -> None:
        if not (self.mask > 0 and self.mask.bit_length() <= self.size):
            raise ParameterError("a span holds at least one cell of its attribute, and no cell beyond")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Noise on counts that only the rows of a `region`, a product of spans, can move.

    `relation` is the neighbour relation, ``replace`` or ``add-remove m`` with m rows to a person, and behind an
    @ what names the rows and how they are cut: only events of one relation are about the same rows. Under
    `replace` a region that is not `split` is one count, to which each of its rows adds 1; where it is split,
    one row moves the counts by at most half of the sensitivity that the noise was made for (its square, for
    Gaussian noise), and two rows by all of it. On its own it costs what its noise costs; several cost less than
    their sum (`joint`).
    """

    noise: LaplaceNoise | GaussianNoise
    region: tuple[Span, ...]
    relation: str
    split: bool

    def __post_init__(self) -> None:
        names = [span.attribute for span in self.region]
        if names != sorted(set(names)) or not names:
            raise ParameterError("a region is a product of spans of different attributes, in order")
        if not RELATION.fullmatch(self.relation):
            raise ParameterError("a located event needs a neighbour relation")

    @property
    def rows(self) -> int | None:
        """The rows of a person under add-remove; None under `replace`."""
        found = RELATION.fullmatch(self.relation)
        return None if found is None or found["rows"] is None else int(found["rows"])


@dataclass(frozen=True, slots=True)
class Together:
    """Several things done one after the other, each possibly chosen after seeing the ones before."""

    events: tuple[Event, ...]


Event = LaplaceNoise | GaussianNoise | Pure | Located | Together

_NAMED = {
    kind.__name__: kind
    for kind in (
        LaplaceNoise,
        GaussianNoise,
        Selection,
        NoisyMaximum,
        SparseVector,
        RandomizedReport,
        SpentBefore,
    )
}


def is_immovable(event: Event) -> bool:
    """Whether an event is noise on values that no person can move, and nothing else."""
    if isinstance(event, Together):
        return bool(event.events) and all(is_immovable(part) for part in event.events)
    noise = event.noise if isinstance(event, Located) else event
    if isinstance(noise, LaplaceNoise):
        return noise.l1 == 0
    return isinstance(noise, GaussianNoise) and noise.l2_squared == 0


def unversioned(event: Event) -> Event:
    """What was done, whatever version of the table it was done to: where it was located is left out."""
    if isinstance(event, Together):
        return Together(tuple(unversioned(part) for part in event.events))
    return event.noise if isinstance(event, Located) else event


def as_plain(event: Event) -> dict[str, Any]:
    """An event as plain values; rationals are written as ``3/10``.

    >>> as_plain(Selection(epsilon=Fraction(3, 10)))
    {'event': 'Selection', 'epsilon': '3/10'}
    """
    if isinstance(event, Together):
        return {"event": "Together", "events": [as_plain(part) for part in event.events]}
    if isinstance(event, Located):
        region = [[span.attribute, span.size, f"{span.mask:x}"] for span in event.region]
        where = {"region": region, "relation": event.relation, "split": event.split}
        return {"event": "Located", "noise": as_plain(event.noise), **where}
    given = ((field, getattr(event, field.name)) for field in fields(event))
    parameters = {field.name: str(value) for field, value in given if value != field.default}
    return {"event": type(event).__name__, **parameters}


def from_plain(plain: Any) -> Event:
    """The inverse of `as_plain`; what is not known is refused, never guessed."""
    kind = plain.get("event") if isinstance(plain, dict) else None
    parts = plain.get("events") if kind == "Together" else None
    if isinstance(parts, list) and len(plain) == 2:
        return Together(tuple(from_plain(part) for part in parts))
    if kind == "Located":
        return _located(plain)
    known = _NAMED.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise _not_understood()
    numbers = {name: recorded_number(text) for name, text in plain.items() if name != "event"}
    needed = {field.name for field in fields(known) if field.default is MISSING}
    if not needed <= numbers.keys() <= {field.name for field in fields(known)}:
        raise _not_understood()
    return known(**numbers)  # type: ignore[arg-type]  # a whole number is checked to be one


def from_text(text: str) -> Event:
    """The event in a JSON text."""
    try:
        return from_plain(json.loads(text))
    except (ValueError, RecursionError):  # a ParameterError is a ValueError
        raise _not_understood() from None


def _located(plain: dict[str, Any]) -> Located:
    if plain.keys() != {"event", "noise", "region", "relation", "split"}:
        raise _not_understood()
    noise, region, relation, split = (plain[key] for key in ("noise", "region", "relation", "split"))
    found = from_plain(noise)
    if not (isinstance(region, list) and isinstance(relation, str) and isinstance(split, bool)):
        raise _not_understood()
    if not isinstance(found, LaplaceNoise | GaussianNoise):
        raise _not_understood()
    return Located(noise=found, region=tuple(_span(part) for part in region), relation=relation, split=split)


def _span(plain: Any) -> Span:
    if not (isinstance(plain, list) and len(plain) == 3):
        raise _not_understood()
    name, size, mask = plain
    if not (isinstance(name, str) and type(size) is int and isinstance(mask, str) and MASK.fullmatch(mask)):
        raise _not_understood()
    return Span(name, size, int(mask, 16))


def recorded_number(text: Any) -> Fraction:
    """A number as `str` of a Fraction writes it: an exponent could stand for a number that fills the memory."""
    if not isinstance(text, str) or not RATIONAL.fullmatch(text):
        raise _not_understood()
    return Fraction(text)


def _not_understood() -> ParameterError:
    return ParameterError("a recorded event is not understood by this version of the program")
