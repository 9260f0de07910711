"""Events as ledgers write and read them: the kinds that can be recorded, and their plain form.

A kind is a class of event in one of three modules, and is recorded under the name of the class and of its fields,
which never change. Another class is neither written nor read, and no name that stands in data is ever looked up
elsewhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any, cast

from understudy.errors import ParameterError
from understudy.privacy import bounded_noise, key_event
from understudy.privacy import event as single_events
from understudy.privacy.event import AdditiveNoise, Event, Located, Pure, Span, Together

FILES = (single_events, bounded_noise, key_event)
"""The modules whose kinds of event are recorded."""

KINDS: dict[str, type[Event]] = {
    name: kind
    for file in FILES
    for name, kind in vars(file).items()
    if isinstance(kind, type) and issubclass(kind, Event) and not name.startswith("_")
    if kind
    not in (Event, AdditiveNoise, Pure, Located, Together)  # what kinds are derived from, or made of them
}
"""The kinds of event that are recorded by their numbers, by name; `Located` and `Together` are made of them."""

_FIELDS: dict[type[Event], tuple[tuple[str, Any], ...]] = {
    kind: tuple((field.name, field.default) for field in fields(kind)) for kind in KINDS.values()
}
"""The names and defaults of the fields of each kind, found once."""

RATIONAL = re.compile(r"[0-9]{1,4000}(/0*[1-9][0-9]{0,3999})?")
MASK = re.compile(r"[0-9a-f]+")


def as_plain(event: Event) -> dict[str, Any]:
    """An event as plain values; rationals are written as ``3/10``.

    >>> as_plain(KINDS["Selection"](epsilon=Fraction(3, 10)))
    {'event': 'Selection', 'epsilon': '3/10'}
    """
    if isinstance(event, Together):
        return {"event": "Together", "events": [as_plain(part) for part in event.events]}
    if isinstance(event, Located):
        region = [[span.attribute, span.size, f"{span.mask:x}"] for span in event.region]
        where = {"region": region, "relation": event.relation, "split": event.split}
        return {"event": "Located", "noise": as_plain(event.noise), **where}
    if type(event) is not KINDS.get(type(event).__name__):
        raise ParameterError(f"no ledger can record {type(event).__name__}: it is no kind of event")
    plain: dict[str, Any] = {"event": type(event).__name__}
    for name, default in _FIELDS[type(event)]:
        value = getattr(event, name)
        if default is MISSING or value != default:
            plain[name] = str(value)
    return plain


def from_plain(plain: object) -> Event:
    """The inverse of `as_plain`; what is not known is refused, never guessed."""
    if not isinstance(plain, dict):
        raise _not_understood()
    written = cast("dict[object, object]", plain)
    kind = written.get("event")
    parts = written.get("events") if kind == "Together" else None
    if isinstance(parts, list) and len(written) == 2:
        return Together(tuple(from_plain(part) for part in cast("list[object]", parts)))
    if kind == "Located":
        return _located(written)
    known = KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise _not_understood()
    numbers = {str(name): recorded_number(text) for name, text in written.items() if name != "event"}
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


def _located(plain: dict[object, object]) -> Located:
    if plain.keys() != {"event", "noise", "region", "relation", "split"}:
        raise _not_understood()
    noise, region, relation, split = (plain[key] for key in ("noise", "region", "relation", "split"))
    found = from_plain(noise)
    if not (isinstance(region, list) and isinstance(relation, str) and isinstance(split, bool)):
        raise _not_understood()
    if not isinstance(found, AdditiveNoise):
        raise _not_understood()
    spans = tuple(_span(part) for part in cast("list[object]", region))
    return Located(noise=found, region=spans, relation=relation, split=split)


def _span(plain: object) -> Span:
    written = cast("list[object]", plain) if isinstance(plain, list) else []
    if len(written) != 3:
        raise _not_understood()
    name, size, mask = written
    if not (isinstance(name, str) and type(size) is int and isinstance(mask, str) and MASK.fullmatch(mask)):
        raise _not_understood()
    return Span(name, size, int(mask, 16))


def recorded_number(text: object) -> Fraction:
    """A number as `str` of a Fraction writes it: an exponent could stand for a number that fills the memory."""
    if not isinstance(text, str) or not RATIONAL.fullmatch(text):
        raise _not_understood()
    return Fraction(text)


def _not_understood() -> ParameterError:
    return ParameterError("a recorded event is not understood by this version of the program")
