"""How far public guesses of whole marginals are off: one chosen privately, or all of them with noise.

A gap is ‖c - g‖₁, the distance of a marginal's exact counts c from a public guess g in whole people. It moves by
at most as much as the counts do in L1 (`privacy.relation`, Lemma 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, QueryError
from understudy.mechanism.additive import ROUNDED_KEY, Additive, noise_for
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.look import decided
from understudy.privacy.columns import CountColumns
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import NOTHING, Relation, Sensitivity
from understudy.query.marginal import Marginal
from understudy.rational import exact, positive

WEIGHT_STEPS = 2**16
"""Weights of candidates are rounded up to this many steps of the largest."""

MAX_COUNT = 2**44
"""Far above every table: counts and guesses are moved here, so that weighted sums of them stay within 64 bits."""


@dataclass(frozen=True, eq=False)
class Guess:
    """A marginal of the whole table and a public guess of its counts.

    A selection prefers the largest weight·(gap - offset); both are public.
    """

    marginal: Marginal
    counts: NDArray[np.int64]
    weight: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not self.marginal.where.is_counting:
            raise QueryError("guesses are of counting queries: weights must be 0 or 1")
        if np.shape(self.counts) != self.marginal.shape:
            raise QueryError("a guess gives one count for each cell of its marginal")
        whole = np.clip(np.nan_to_num(np.rint(self.counts)), -MAX_COUNT, MAX_COUNT)
        counts = np.array(whole, dtype=np.int64)
        if np.abs(counts).sum(dtype=np.float64) > MAX_COUNT:
            raise ParameterError("the guessed counts of a marginal must sum to at most 2^44 people")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "weight", positive(self.weight, "the weight of a candidate"))
        object.__setattr__(self, "offset", exact(self.offset, "offset"))
        if abs(self.offset) > MAX_COUNT:
            raise ParameterError("an offset, in people, must be within 2^44 of 0")

    def gap(self, counts: NDArray[np.int64]) -> int:
        return int(np.abs(np.minimum(counts, MAX_COUNT) - self.counts).sum())

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """How far one person can move the gap."""
        return relation.moves(CountColumns.counting(self.marginal)).of_distance


def _key(guesses: Sequence[Guess], noise: bytes = b"") -> str:
    digest = sha256(noise)
    for guess in guesses:
        digest.update(guess.marginal.key.encode() + guess.counts.tobytes())
        digest.update(f"{guess.weight} {guess.offset}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class WorstGuess:
    """The exponential mechanism over guesses, by weight·(gap - offset).

    Privacy     ε-DP and ε²/8-zCDP: scores are sᵢ = wᵢ·gapᵢ - oᵢ in whole steps, with integer weights wᵢ and
                public oᵢ; one person moves each by at most Δ = max wᵢ·(its gap's sensitivity).
    Accuracy    [Lecture 18, Theorem 0.1], in steps of the largest weight / `WEIGHT_STEPS`.
    """

    guesses: tuple[Guess, ...]
    epsilon: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        if not self.guesses:
            raise ParameterError("a selection needs at least one candidate")
        decided(self.mechanism)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return tuple(guess.marginal for guess in self.guesses)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The weights in whole steps, rounded up; all equal weights are 1 step."""
        largest = max(guess.weight for guess in self.guesses)
        if all(guess.weight == largest for guess in self.guesses):
            return (1,) * len(self.guesses)
        return tuple(-((-guess.weight * WEIGHT_STEPS) // largest) for guess in self.guesses)

    @property
    def mechanism(self) -> ExponentialMechanism:
        return self._mechanism

    @cached_property
    def _mechanism(self) -> ExponentialMechanism:
        moved = self._moved(self.relation)
        return ExponentialMechanism(epsilon=exact(self.epsilon, "epsilon"), sensitivity=moved.l1)

    def _moved(self, relation: Relation) -> Sensitivity:
        """How far neighbours can move the score that they move farthest."""
        scores = zip(self.guesses, self.steps, strict=True)
        return max((guess.sensitivity(relation) * step for guess, step in scores), key=lambda moved: moved.l1)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(self._moved(relation))

    @property
    def key(self) -> str:
        return f"choose among {len(self.guesses)} marginals #{_key(self.guesses)}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The scores of the guesses, in steps."""
        scores = [
            step * guess.gap(count) - round(step * guess.offset)
            for guess, step, count in zip(self.guesses, self.steps, counts, strict=True)
        ]
        return np.array(scores, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NoisyGaps:
    """Every gap with the noise that a price buys: of a price in rho `rounded` normal noise, or discrete.

    Privacy     The vector of gaps has L1 sensitivity ΣΔᵢ and squared Euclidean sensitivity ΣΔᵢ², Δᵢ those of the
                gaps: ε-DP or ρ-zCDP as the mechanism that adds the noise.
    """

    guesses: tuple[Guess, ...]
    relation: Relation
    price: Price
    rounded: bool = False

    def __post_init__(self) -> None:
        if not self.guesses:
            raise ParameterError("gaps need at least one guess")
        decided(self.mechanism)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return tuple(guess.marginal for guess in self.guesses)

    @property
    def mechanism(self) -> Additive:
        return self._mechanism

    @cached_property
    def _mechanism(self) -> Additive:
        return noise_for(self.price, self._moved(self.relation), rounded=self.rounded)

    def _moved(self, relation: Relation) -> Sensitivity:
        return sum((guess.sensitivity(relation) for guess in self.guesses), NOTHING)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(self._moved(relation))

    @property
    def key(self) -> str:
        return f"gaps of {len(self.guesses)} marginals #{_key(self.guesses, ROUNDED_KEY if self.rounded else b'')}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The gaps, in people."""
        gaps = [guess.gap(count) for guess, count in zip(self.guesses, counts, strict=True)]
        return np.array(gaps, np.int64)
