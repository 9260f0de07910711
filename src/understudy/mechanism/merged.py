"""Private looks at merged counts: combinations of many marginals measured at once, and gaps of guesses.

Merging adjacent values of each attribute takes each row to a row of groups. So merged counts move as plain counts
of groups do, and their L1 distance from a public guess as a plain gap does (`privacy.relation`, Lemmas 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, QueryError
from understudy.mechanism.additive import ROUNDED_KEY, Additive, noise_for
from understudy.mechanism.gap import MAX_COUNT
from understudy.mechanism.look import decided
from understudy.mechanism.matrix.many_marginals import JointStrategy, PartsNoise
from understudy.privacy.columns import CountColumns
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import NOTHING, Relation, Sensitivity
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging

Whole = NDArray[np.int64]


def _merging_key(merging: Merging) -> str:
    digest = sha256()
    for begin in merging.starts:
        digest.update(np.ascontiguousarray(begin, np.int64).tobytes() + b"|")
    return digest.hexdigest()


def _moved(relation: Relation, merging: Merging, marginal: Marginal) -> Sensitivity:
    """How far one person can move a marginal's merged counts."""
    return relation.moves(CountColumns(merging.coarse.size(marginal.by)))


@dataclass(frozen=True, eq=False)
class MergedGaps:
    """How far guesses of merged marginals are off in L1, in people: weighted, with the noise that a price buys.

    What is released of guess i is wᵢ·gapᵢ + noise, with a whole weight wᵢ: a larger one buys a closer look. The
    noise of a price in rho is `rounded` normal noise, or discrete (`noise_for`).

    Privacy     The price: one person moves gapᵢ by at most Δᵢ, the L1 sensitivity of its counts, so the vector by
                at most √(Σ wᵢ²Δᵢ²) in Euclidean length and Σ wᵢΔᵢ in L1. [CKS20, Theorem 14]
    """

    merging: Merging
    marginals: tuple[Marginal, ...]
    guesses: tuple[Whole, ...]
    weights: tuple[int, ...]
    price: Price
    relation: Relation
    rounded: bool = False

    def __post_init__(self) -> None:
        if not self.marginals or not len(self.marginals) == len(self.guesses) == len(self.weights):
            raise ParameterError("gaps need a guess and a weight for each of at least one marginal")
        for marginal, guess in zip(self.marginals, self.guesses, strict=True):
            if marginal.where.factors or guess.shape != self.merging.coarse.shape(marginal.by):
                raise QueryError(
                    "a guess gives one count for each merged cell of a marginal of the whole table"
                )
            if np.abs(guess).sum(dtype=np.float64) > MAX_COUNT:
                raise ParameterError("the guessed counts of a marginal must sum to at most 2^44 people")
        if min(self.weights) < 1 or max(self.weights) > 1 << 10:
            raise ParameterError("the weight of a gap is a whole number between 1 and 1024")
        decided(self.mechanism)

    @property
    def mechanism(self) -> Additive:
        return self._mechanism

    @cached_property
    def _mechanism(self) -> Additive:
        return noise_for(self.price, self._moved(self.relation), rounded=self.rounded)

    def _moved(self, relation: Relation) -> Sensitivity:
        moved = NOTHING
        for marginal, weight in zip(self.marginals, self.weights, strict=True):
            moved += _moved(relation, self.merging, marginal).of_distance * weight
        return moved

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(self._moved(relation))

    @property
    def key(self) -> str:
        return self._key

    @cached_property
    def _key(self) -> str:
        """Guesses are many numbers, and the name is asked for more than once."""
        digest = sha256(_merging_key(self.merging).encode())
        for marginal, guess, weight in zip(self.marginals, self.guesses, self.weights, strict=True):
            digest.update(f"{marginal.key} {weight} ".encode())
            digest.update(np.ascontiguousarray(guess, np.int64).tobytes())
        digest.update(ROUNDED_KEY if self.rounded else b"")
        return f"gaps of {len(self.marginals)} merged marginals #{digest.hexdigest()}"

    def values(self, counts: Sequence[Whole]) -> Whole:
        """The weighted gaps."""
        gaps = [
            weight * int(np.abs(self.merging.merge(m.by, np.minimum(count, MAX_COUNT)) - guess).sum())
            for m, guess, weight, count in zip(
                self.marginals, self.guesses, self.weights, counts, strict=True
            )
        ]
        return np.array(gaps, np.int64)


@dataclass(frozen=True, eq=False)
class MergedStrategy:
    """Combinations of merged counts: `JointStrategy` over the domain of groups.

    Privacy     That of the strategies. Merging takes each row to one row of groups, so tables that differ by a
                person's rows, or by one row that is replaced, are taken to tables that differ so or are equal.
    """

    merging: Merging
    strategies: JointStrategy

    def __post_init__(self) -> None:
        if self.strategies.domain != self.merging.coarse:
            raise QueryError("merged strategies are over the domain of groups")

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return self._marginals

    @cached_property
    def _marginals(self) -> tuple[Marginal, ...]:
        return tuple(Marginal(self.merging.domain, m.by) for m in self.strategies.marginals)

    @property
    def mechanism(self) -> PartsNoise:
        return self.strategies.mechanism

    @property
    def event(self) -> Event:
        return self.strategies.event

    def event_under(self, relation: Relation) -> Event:
        return self.strategies.event_under(relation)

    @property
    def key(self) -> str:
        digest = sha256(f"{_merging_key(self.merging)} {self.strategies.key}".encode())
        for marginal in self.marginals:
            digest.update(marginal.key.encode())
        return f"{len(self.strategies.parts)} combinations of merged counts #{digest.hexdigest()}"

    def values(self, counts: Sequence[Whole]) -> Whole:
        """The combinations of the merged counts."""
        merged = [self.merging.merge(m.by, count) for m, count in zip(self.marginals, counts, strict=True)]
        return self.strategies.values(merged)
