"""A mechanism's card: what the rest of the program, and its documents, know of the mechanism.

The file of a mechanism ends with its `CARD`. The planner takes its entries from the card, the audit the subjects
that it attacks, and the table of docs/mechanisms.md its line. Prices are not on the card: they stand with the
event (`privacy.event`), because ledgers read events without any mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.noise.samplers import NoiseSource
from understudy.privacy.event import Event
from understudy.theory.planned import Planned


class Family(IntEnum):
    """What kind of mechanism it is: lists of mechanisms are in this order."""

    NOISE = 1
    REPORT = 2
    SELECTION = 3
    STREAM = 4
    DATABASE = 5


class Releases(Protocol):
    """A mechanism that treats every entry of an array alike and independently."""

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]: ...

    @property
    def event(self) -> Event: ...


class ChoosesMany(Protocol):
    """A selection by scores, many times over."""

    def choose_many(
        self, scores: NDArray[np.int64], count: int, *, noise: NoiseSource
    ) -> NDArray[np.int64]: ...

    @property
    def event(self) -> Event: ...


@dataclass(frozen=True, slots=True)
class NoiseSubject:
    """Noise that is audited: `build(ε, Δ, shift)` for integers that a neighbour moves by `shift`, Δ in total.

    `most` is the largest Δ that it can be built for, where there is one.
    """

    name: str
    path: str
    build: Callable[[Fraction, int, Sequence[int]], Releases]
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """Reports of single rows that are audited: `build(ε, number of values)`."""

    name: str
    path: str
    build: Callable[[Fraction, int], Releases]


@dataclass(frozen=True, slots=True)
class ChoiceSubject:
    """A selection that is audited: `build(ε, Δ)` for scores that a neighbour moves by at most Δ each.

    With `concentrated` it is its zCDP price that is put to the test, not the pure one.
    """

    name: str
    path: str
    build: Callable[[Fraction, int], ChoosesMany]
    concentrated: bool = False


@dataclass(frozen=True, slots=True)
class StreamSubject:
    """A stream of comparisons with 0 that is audited: `build(ε, Δ, hits)`; its values move by at most `moved`."""

    name: str
    path: str
    build: Callable[[Fraction, int, int], Any]
    moved: int = 1


@dataclass(frozen=True, slots=True)
class KeySubject:
    """A selection of keys that is audited: `build(ε)`, with a δ of its own that draws can show."""

    name: str
    path: str
    build: Callable[[Fraction], Releases]


Audited = NoiseSubject | ReportSubject | ChoiceSubject | StreamSubject | KeySubject
"""What is audited, by what it does: the audit knows on which neighbours that is likely to be at its worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known of one mechanism.

    `name`, `privacy`, `accuracy` and `source` are its line in docs/mechanisms.md; `events` are the kinds of event
    that a ledger is charged for it. `plans` are the planner's entries and `audited` the audit's subjects: both may
    be empty where the mechanism is planned and audited through what is built of it.
    """

    name: str
    family: Family
    privacy: str
    accuracy: str
    source: str
    events: tuple[type[Event], ...]
    plans: tuple[Planned, ...] = ()
    audited: tuple[Audited, ...] = ()
