"""What was done, as frozen records: each kind of event knows its name, its numbers and what it costs.

A kind of event is one class. Its fields are what a ledger records; `pure_cost` and `zcdp_cost` are its price in
the two currencies, exactly, with the statement that proves it; `privacy_losses` is how a privacy-loss-distribution
accountant sees it. `@recorded` enters the class under its name, which is stored in ledgers and never changes.
`cost` rounds prices to whole units, and `ledger.verifier` repeats all of this on purpose, in code of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from math import sqrt
from typing import Any, Literal, NamedTuple, TypeVar, cast

from understudy.errors import ParameterError, RefusedError
from understudy.privacy.tails import covers, gaussian_tail, truncated_geometric_end


class PrivacyLoss(NamedTuple):
    """`times` independent runs of a mechanism whose privacy loss a law dominates.

    pure            ε-DP, ε the parameter: randomised response is the worst.
    bounded range   log-ratios within an interval of length ε, the parameter.
    gaussian        normal noise, the parameter its deviation in units of the sensitivity.
    failure         everything is told with a probability of the parameter, and else nothing.
    """

    law: Literal["pure", "bounded range", "gaussian", "failure"]
    parameter: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done to the people of a table, and what is known of its privacy.

    A kind of event states its pure price; unless it knows better, the rest follows from that.
    """

    def pure_cost(self) -> Fraction:
        """The ε of pure differential privacy; RefusedError where there is none."""
        raise ParameterError(f"no pure cost is known for {type(self).__name__}")

    def zcdp_cost(self) -> Fraction:
        """The ρ of zCDP: ε-DP implies ε²/2-zCDP. [BunSteinke16, Proposition 1.4]"""
        return self.pure_cost() ** 2 / 2

    def delta_cost(self) -> Fraction:
        """The δ for which it is δ-approximately `zcdp_cost`-zCDP; 0 for most.

        That is: for either of two neighbours there is an event of probability 1 - δ at least, and given these the
        two laws of what is told are as far apart as zCDP allows. (Bun and Steinke 2016, Definition 8.1.)
        """
        return Fraction(0)

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """Runs that dominate it, all fixed beforehand; none where nobody can be affected."""
        cost = self.pure_cost()
        return (PrivacyLoss("pure", float(cost)),) if cost else ()


Kind = TypeVar("Kind", bound=type[Event])

_RECORDED: dict[str, type[Event]] = {}


def recorded(kind: Kind) -> Kind:
    """Enter a kind of event under its name: only these are written into ledgers and read back."""
    _RECORDED[kind.__name__] = kind
    return kind


def known_event(event: object) -> Event:
    """The event itself; what is no event has no price and is refused, never guessed."""
    if not isinstance(event, Event):
        raise ParameterError(f"no cost is known for {type(event).__name__}")
    return event


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(Event):
    """Discrete Laplace noise of `scale` on integers that one person moves by at most `l1` in total."""

    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        if self.l1 < 0 or self.scale <= 0:
            raise ParameterError("Laplace noise needs a sensitivity of at least 0 and a positive scale")

    def pure_cost(self) -> Fraction:
        """Δ₁/b. [Lecture 4, Theorem 5]"""
        return self.l1 / self.scale


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(Event):
    """Discrete Gaussian noise on integers that one person moves by at most sqrt(l2_squared)."""

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        if self.l2_squared < 0 or self.variance <= 0:
            raise ParameterError("Gaussian noise needs a sensitivity of at least 0 and a positive variance")

    def pure_cost(self) -> Fraction:
        if self.l2_squared == 0:
            return Fraction(0)
        raise RefusedError(
            "Gaussian noise gives no pure epsilon",
            remedy="declare a budget with a delta, or ask for Laplace noise",
        )

    def zcdp_cost(self) -> Fraction:
        """Discrete Gaussian noise on integers: Δ²/(2σ²). [CKS20, Theorem 14]"""
        return self.l2_squared / (2 * self.variance)

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """The continuous law of the same variance, which the discrete one follows up to rounding."""
        if self.l2_squared == 0:
            return ()
        return (PrivacyLoss("gaussian", sqrt(self.variance / self.l2_squared)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Event):
    """Something that is known by its pure parameter `epsilon` alone."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ParameterError("nothing can earn budget: epsilon must not be negative")

    def pure_cost(self) -> Fraction:
        return self.epsilon


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Pure):
    """One run of the exponential mechanism."""

    def zcdp_cost(self) -> Fraction:
        """The exponential mechanism is ε²/8-zCDP. [CesarRogers21]

        Its log-likelihood ratio between neighbours lies in an interval of length ε (the scores move by ±Δ and the
        normaliser is the same for all candidates), so Hoeffding's lemma bounds the Rényi divergence of order α by
        α·ε²/8.
        """
        return self.epsilon**2 / 8

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return (PrivacyLoss("bounded range", float(self.epsilon)),) if self.epsilon else ()


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMaximum(Pure):
    """One run of report noisy max."""


@recorded
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

    def zcdp_cost(self) -> Fraction:
        """c runs, of which each is (1 - t)ε/c-DP for comparing and tε/c-DP for telling: ((1 - t)² + t²)·ε²/(2c).

        Runs are adaptively composed: each draws all its noise anew and starts when the one before has ended, so
        what it says is ε/c-DP given everything that was said before, whatever is asked. Pure ε'-DP is ε'²/2-zCDP
        [BunSteinke16, Proposition 1.4], and zCDP adds up [BunSteinke16, Lemma 1.7]. Other questions may be asked
        while a run is under way: an interactive ε'-DP mechanism is an interactive post-processing of one
        randomised response with ε', drawn when it starts [VadhanWang21], which is ε'²/2-zCDP.
        """
        return ((1 - self.told) ** 2 + self.told**2) * self.epsilon**2 / (2 * self.hits)

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        shares = (part * self.epsilon / self.hits for part in (1 - self.told, self.told))
        return tuple(PrivacyLoss("pure", float(share), self.hits) for share in shares if share)


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedReport(Pure):
    """Every row reported its value through randomised response."""


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBefore(Pure):
    """What was spent on the table before its ledger was opened."""


class _KeySelection(Event):
    """What the selections of keys have in common: each is paid for with a δ, and none has a pure ε."""

    __slots__ = ()

    def pure_cost(self) -> Fraction:
        raise RefusedError(
            "keys that nobody listed are found with a delta, and this budget of pure epsilon has none",
            remedy="declare a budget with a delta of which a part is for keys: "
            "`budget: {epsilon: 1, delta: 1e-9, key_delta: 5e-10}`, or list the keys",
        )


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometricKeys(_KeySelection):
    """Keys were told whose counts, with noise on -`reach`, …, `reach` of rate `epsilon`, pass a threshold.

    Neighbours move the counts of at most `keys` keys, each by one, and `delta` covers the ends of the noise on all
    of them (`mechanism.key_selection` has the proof).
    """

    epsilon: Fraction
    keys: int
    reach: int
    delta: Fraction

    def __post_init__(self) -> None:
        for name in ("keys", "reach"):
            object.__setattr__(self, name, _whole(getattr(self, name)))
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise ParameterError("a selection of keys has a positive epsilon, and a delta between 0 and 1")
        if not covers(self.delta, truncated_geometric_end(self.epsilon, self.reach), self.keys):
            raise ParameterError("the delta of a selection of keys does not cover the ends of its noise")

    def zcdp_cost(self) -> Fraction:
        """Each key is δ/c-approximately ε-DP, hence ε²/2-zCDP, and c keys add up."""
        return self.keys * self.epsilon**2 / 2

    def delta_cost(self) -> Fraction:
        return self.delta

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        pure = PrivacyLoss("pure", float(self.epsilon), self.keys)
        return (pure, PrivacyLoss("failure", float(self.delta)))


@recorded
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKeys(_KeySelection):
    """Keys were told whose counts, with discrete Gaussian noise, are `reach` or more above the least count.

    Neighbours move the counts by at most sqrt(`l2_squared`), and `keys` of them at most become keys of the least
    count in either table; `delta` covers that noise lifts one of these (`mechanism.key_selection`).
    """

    l2_squared: Fraction
    variance: Fraction
    keys: int
    reach: int
    delta: Fraction

    def __post_init__(self) -> None:
        for name in ("keys", "reach"):
            object.__setattr__(self, name, _whole(getattr(self, name)))
        if self.l2_squared <= 0 or self.variance <= 0 or not 0 < self.delta < 1:
            raise ParameterError("a selection of keys has a variance, a sensitivity, and a delta below 1")
        if not covers(self.delta, gaussian_tail(self.variance, self.reach), self.keys):
            raise ParameterError("the delta of a selection of keys does not cover the tail of its noise")

    def zcdp_cost(self) -> Fraction:
        """Discrete Gaussian noise on integers: Δ²/(2σ²). [CKS20, Theorem 14]"""
        return self.l2_squared / (2 * self.variance)

    def delta_cost(self) -> Fraction:
        return self.delta

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        normal = PrivacyLoss("gaussian", sqrt(self.variance / self.l2_squared))
        return (normal, PrivacyLoss("failure", float(self.delta)))


def _whole(number: Fraction | int) -> int:
    if int(number) != number or number < 1:
        raise ParameterError("a selection of keys counts keys and steps in whole numbers of at least 1")
    return int(number)


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
class Located(Event):
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

    def pure_cost(self) -> Fraction:
        return self.noise.pure_cost()

    def zcdp_cost(self) -> Fraction:
        return self.noise.zcdp_cost()

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return self.noise.privacy_losses()


@dataclass(frozen=True, slots=True)
class Together(Event):
    """Several things done one after the other, each possibly chosen after seeing the ones before."""

    events: tuple[Event, ...]

    def pure_cost(self) -> Fraction:
        """Composition adds up, also when later mechanisms are chosen after seeing earlier answers.
        [Lecture 4, Theorem 8]
        """
        return sum((known_event(part).pure_cost() for part in self.events), Fraction(0))

    def zcdp_cost(self) -> Fraction:
        """[BunSteinke16, Lemma 1.7] adds it up over adaptive composition."""
        return sum((known_event(part).zcdp_cost() for part in self.events), Fraction(0))

    def delta_cost(self) -> Fraction:
        """One of several fails with probability at most the sum, whatever the ones before it said."""
        return sum((known_event(part).delta_cost() for part in self.events), Fraction(0))

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return tuple(loss for part in self.events for loss in known_event(part).privacy_losses())


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
    if type(event) is not _RECORDED.get(type(event).__name__):
        raise ParameterError(f"no ledger can record {type(event).__name__}: it is no kind of event")
    given = ((field, getattr(event, field.name)) for field in fields(event))
    parameters = {field.name: str(value) for field, value in given if value != field.default}
    return {"event": type(event).__name__, **parameters}


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
    known = _RECORDED.get(kind) if isinstance(kind, str) else None
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
    if not isinstance(found, LaplaceNoise | GaussianNoise):
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
