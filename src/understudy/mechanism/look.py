"""What a mechanism owes the Curator that runs it: a look, of which only values with noise are told.

A look never draws noise. It says which counts it reads, what exact `values` it makes of them, which `mechanism` of
this room makes those public, and the `event` that it is to be charged. The Curator derives the event once more,
from that mechanism's own noise and from how far the project's relation moves the values (`event_under`), and
refuses a look whose two events differ before it charges; then it has the mechanism draw.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.additive import Additive
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import NoiseSource
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    RoundedNormal,
    Together,
    unversioned,
)
from understudy.privacy.region import located
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal

Whole = NDArray[np.int64]


class Draws(Protocol):
    """What makes exact values public: noise that is added to them, or a choice among candidates by them."""

    def draw_many(self, values: Whole, times: int, *, noise: NoiseSource) -> Sequence[Any]:
        """So many independent releases of the same values, a vector; each costs as one.

        A release is a whole number or a (nested) list of them.
        """
        ...


class Look(Protocol):
    """One private look at exact counts: what it reads, what it makes of it, what draws the noise, what it costs.

    The proof obligation of every look: neighbours under a relation move `values` by no more than `event_under` of
    that relation takes them to. Whatever could make a look fail, or take long, is decided by public values in its
    constructor, before anything is charged.
    """

    @property
    def marginals(self) -> Sequence[Marginal]:
        """What is read: counting queries on the declared domain, each in whole people."""
        ...

    @property
    def mechanism(self) -> Draws:
        """What makes the values public: a mechanism of this room."""
        ...

    @property
    def event(self) -> Event:
        """What is charged: the event of the mechanism, with its region where only some rows move the values."""
        ...

    def event_under(self, relation: Relation) -> Event:
        """The event of the noise that `mechanism` draws, for values that move as far as `relation` says.

        It has no region. It is what `event` says where the mechanism was made for this relation, and else not.
        """
        ...

    @property
    def key(self) -> str:
        """A name for the look and all its public parameters: equal keys ask the same of the same counts."""
        ...

    def values(self, counts: Sequence[Whole]) -> Whole:
        """The exact values, a vector, of the exact counts of `marginals`. They are never told as they are."""
        ...


def released(look: Look, counts: Sequence[Whole], *, noise: NoiseSource) -> Any:
    """What a look at these counts tells: a draw of its mechanism, and nothing else."""
    return look.mechanism.draw_many(look.values(counts), 1, noise=noise)[0]


def checked_event(look: Look, relation: Relation) -> Event:
    """The event of a look, if it is that of the noise that the look draws, under this relation.

    Raises ParameterError where the look's noise is drawn by a class that is not of this room, where its event is
    not the one that follows from that noise and the relation, and where the event has another region than the one
    marginal that the look reads. How far neighbours move the values is the look's own word.
    """
    drawn = look.mechanism
    check_known(drawn)
    event, derived = look.event, look.event_under(relation)
    if unversioned(event) != derived or not _is_its_noise(drawn, derived):
        raise ParameterError(
            f"a look must be charged the event of the noise that it draws: under `{relation}` that is {derived}, "
            f"and the look says {event}. Make its mechanism for what `relation.moves` says of its values"
        )
    if isinstance(event, Together) and any(isinstance(part, Located) for part in event.events):
        raise ParameterError("a part of an event has no region of its own: one look reads one region, or all")
    if isinstance(event, Located):
        (marginal,) = look.marginals if len(look.marginals) == 1 else (None,)
        if marginal is None or event != located(marginal, event.noise, relation):
            raise ParameterError(
                "an event with a region is for a look at one marginal, and has the region of that marginal"
            )
    return event


def _is_its_noise(mechanism: object, event: Event) -> bool:
    """Whether an event tells of the noise that a mechanism draws; of a choice there is nothing to compare."""
    if isinstance(mechanism, Blocks):  # each block has a part of the event, or all have the one noise
        blocks = mechanism.mechanisms
        parts = event.events if isinstance(event, Together) else (event,) * len(blocks)
        return len(parts) == len(blocks) and all(map(_is_its_noise, blocks, parts))
    if isinstance(mechanism, LaplaceMechanism):  # made for values that nobody moves, it draws nothing
        if not isinstance(event, LaplaceNoise) or event.scale != mechanism.event.scale:
            return False
        return mechanism.l1 > 0 or event.l1 == 0
    if isinstance(mechanism, GaussianMechanism | RoundedNormalMechanism):
        kind = GaussianNoise if isinstance(mechanism, GaussianMechanism) else RoundedNormal
        if not isinstance(event, kind) or event.variance != mechanism.event.variance:
            return False
        return mechanism.l2_squared > 0 or event.l2_squared == 0
    if isinstance(mechanism, BoundedMechanism):
        if not isinstance(event, BoundedNoise) or event.reach != mechanism.reach:
            return False
        return mechanism.l1 > 0 or event.l1 == 0
    return True


def check_known(mechanism: object) -> None:
    """Refuse, with a ParameterError, what draws noise and is no mechanism of this room."""
    kind = type(mechanism)
    if isinstance(mechanism, Blocks):
        for part in mechanism.mechanisms:
            if type(part) not in get_args(Additive):
                raise ParameterError("the blocks of a vector get noise that is added, each block its own")
    home = sys.modules.get(kind.__module__)  # what a class says of its module can be false
    if (
        not kind.__module__.startswith(f"{__package__}.")
        or getattr(home, kind.__qualname__, None) is not kind
    ):
        raise ParameterError(
            f"the noise of a look is drawn by a mechanism of `{__package__}`, not by {kind.__qualname__}: only "
            f"those are known to draw what their events say"
        )


@dataclass(frozen=True, slots=True)
class Blocks:
    """Noise on blocks of a vector, one after the other: block i, of `sizes[i]` values, by `mechanisms[i]`."""

    mechanisms: tuple[Additive, ...]
    sizes: tuple[int, ...]

    def draw_many(self, values: Whole, times: int, *, noise: NoiseSource) -> list[list[list[int]]]:
        """For each release a list of values for each block."""
        parts = np.split(values, np.cumsum(self.sizes)[:-1])
        drawn = [
            mechanism.draw_many(part, times, noise=noise)
            for mechanism, part in zip(self.mechanisms, parts, strict=True)
        ]
        return [list(blocks) for blocks in zip(*drawn, strict=True)]


def decided(*parts: object) -> None:
    """For a look's constructor: `parts` are what its release will need, and making them was what checked them.

    They are cached properties of the look. One that cannot be made raises its error here, before anything is
    charged; afterwards they are there.
    """
    del parts
