"""A private choice among public guesses of counts: that of a guess which is far off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.curator.open_sparse_vector import whole_guess
from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.privacy.columns import CountColumns
from understudy.privacy.event import Event
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact


@dataclass(frozen=True, slots=True)
class Candidate:
    """A `query` and a public `guess` of its count, in people: a private selection looks for the worst guess."""

    query: LinearQuery
    guess: Fraction


@dataclass(frozen=True, eq=False)
class WorstCandidate:
    """The exponential mechanism over candidates by |count - guess|, in people: a `mechanism.look.Look`.

    Privacy     ε-DP and ε²/8-zCDP: guesses are public, and one person moves each score by as much as its count.
    Accuracy    [Lecture 18, Theorem 0.1], in people.
    """

    marginals: tuple[Marginal, ...]
    guesses: tuple[int, ...]
    mechanism: ExponentialMechanism

    @classmethod
    def of(cls, candidates: Sequence[Candidate], epsilon: Number, relation: Relation) -> WorstCandidate:
        """The look at these candidates for `epsilon`; guesses are rounded to whole people.

        Raises ParameterError without candidates, and where nobody can move a count of them.
        """
        if not candidates:
            raise ParameterError("a selection needs at least one candidate")
        marginals = tuple(Marginal.of(candidate.query) for candidate in candidates)
        guesses = tuple(whole_guess(candidate.guess) for candidate in candidates)
        moved = _farthest(marginals, relation).l1
        mechanism = ExponentialMechanism(epsilon=exact(epsilon, "epsilon"), sensitivity=moved)
        return cls(marginals, guesses, mechanism)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(_farthest(self.marginals, relation))

    @property
    def key(self) -> str:
        guessed = zip(self.marginals, self.guesses, strict=True)
        return f"choose {' '.join(f'{marginal.key}?{guess}' for marginal, guess in guessed)}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """How far each guess is off."""
        gaps = [abs(int(count) - guess) for count, guess in zip(counts, self.guesses, strict=True)]
        return np.array(gaps, dtype=np.int64)


def _farthest(marginals: Sequence[Marginal], relation: Relation) -> Sensitivity:
    """How far neighbours can move the count that they move farthest."""
    return max(
        (relation.moves(CountColumns.of(marginal)) for marginal in marginals), key=lambda moved: moved.l1
    )
