"""The query of a finite class that a public hypothesis answers worst, chosen privately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gap import MAX_COUNT
from understudy.mechanism.look import decided
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Event
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.query.workload import Workload
from understudy.rational import exact

STEPS = 256
"""Lattice steps in one person: a guess is rounded to 1/256 of a person."""

Law = Literal["exponential", "noisy-max"]


@dataclass(frozen=True, eq=False)
class QueryClass:
    """A finite class C of counting queries: the cells of marginals, in order; a single query is one cell."""

    domain: Domain
    marginals: tuple[Marginal, ...]

    def __post_init__(self) -> None:
        if not self.marginals:
            raise QueryError("a class of queries must not be empty")
        if any(marginal.domain != self.domain for marginal in self.marginals):
            raise QueryError("the queries of a class must be about one domain")
        if not all(marginal.where.is_counting for marginal in self.marginals):
            raise QueryError("a class of queries holds counting queries: weights must be 0 or 1")

    @classmethod
    def of(cls, queries: Iterable[LinearQuery]) -> QueryClass:
        given = tuple(Marginal.of(query) for query in queries)
        if not given:
            raise QueryError("a class of queries must not be empty")
        return cls(given[0].domain, given)

    @classmethod
    def cells(cls, workload: Workload) -> QueryClass:
        """Every cell of every marginal of a workload."""
        return cls(workload.domain, tuple(Marginal(workload.domain, clique) for clique in workload))

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.cumsum([marginal.size for marginal in self.marginals], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    @cached_property
    def key(self) -> str:
        return sha256("\n".join(marginal.key for marginal in self.marginals).encode()).hexdigest()

    def query(self, index: int) -> LinearQuery:
        """One query of the class."""
        if not 0 <= index < len(self):
            raise QueryError(f"a class of {len(self)} queries has no number {index}")
        place = int(np.searchsorted(self.ends, index, side="right"))
        marginal = self.marginals[place]
        cell = np.unravel_index(index - int(self.ends[place]) + marginal.size, marginal.shape)
        parts = [
            Factor((name,), (np.arange(self.domain[name].size) == code).astype(np.float64))
            for name, code in zip(marginal.by, cell, strict=True)
        ]
        return LinearQuery(self.domain, tuple(parts)) & marginal.where

    def answers(self, projection: Projection) -> NDArray[np.float64]:
        """Q(D) as a rate, for each query of the class."""
        return np.concatenate([np.ravel(marginal.answer(projection)) for marginal in self.marginals])


@dataclass(frozen=True, eq=False)
class WorstQuery:
    """Choose a query by |c - g|, its exact count against a public guess, both in people.

    Privacy     ε-DP by the exponential mechanism (ε²/8-zCDP) or report noisy max: a score
                moves by at most as much as the one count that it is made of (`privacy.relation`, Lemma 3).
    Accuracy    The chosen gap is within `regret` people of the largest, except with probability γ
                [Lecture 7, Theorem 6]; guesses are rounded to 1/256 of a person, which is counted.
    """

    queries: QueryClass
    guesses: NDArray[np.float64]
    epsilon: Fraction
    relation: Relation
    law: Law = "exponential"

    def __post_init__(self) -> None:
        if np.shape(self.guesses) != (len(self.queries),):
            raise ParameterError("a selection needs one guess for each query of its class")
        if not np.isfinite(self.guesses).all() or np.abs(self.guesses).max() > MAX_COUNT:
            raise ParameterError("a guess of a count must be within 2^44 of 0")
        decided(self.mechanism)

    @property
    def mechanism(self) -> ExponentialMechanism | ReportNoisyMax:
        return self._mechanism

    @cached_property
    def _mechanism(self) -> ExponentialMechanism | ReportNoisyMax:
        return selection(self.law, self.epsilon, self.relation)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        return np.rint(np.asarray(self.guesses, dtype=np.float64) * STEPS).astype(np.int64)

    @property
    def marginals(self) -> Sequence[Marginal]:
        return self.queries.marginals

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def event_under(self, relation: Relation) -> Event:
        return self.mechanism.event_for(_moved(relation))

    @property
    def key(self) -> str:
        digest = sha256(self.queries.key.encode() + self.steps.tobytes()).hexdigest()
        return f"choose the worst of {len(self.queries)} queries by {self.law} #{digest}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """How far each guess is off, in steps."""
        exact_counts = np.concatenate([np.ravel(count) for count in counts])
        return np.abs(np.minimum(exact_counts, MAX_COUNT) * STEPS - self.steps)


def selection(law: Law, epsilon: Fraction, relation: Relation) -> ExponentialMechanism | ReportNoisyMax:
    """The mechanism that selects by gaps in steps of 1/`STEPS` people."""
    moved = _moved(relation).l1
    price = exact(epsilon, "epsilon")
    if law == "exponential":
        return ExponentialMechanism(epsilon=price, sensitivity=moved)
    if law == "noisy-max":
        return ReportNoisyMax(epsilon=price, sensitivity=moved)
    raise ParameterError(f"a selection is by 'exponential' or 'noisy-max', not {law!r}")


def _moved(relation: Relation) -> Sensitivity:
    """How far neighbours can move a gap, in steps."""
    return relation.moves(ONE_COUNT).of_distance * STEPS


def regret(mechanism: ExponentialMechanism | ReportNoisyMax, candidates: int, gamma: float) -> float:
    """F·n in people: how far the chosen query's gap is below the largest, except with probability `gamma`.

    (2Δ/ε)·ln(|C|/γ), and one step for the rounding of two guesses by half a step. [Lecture 7, Theorem 6]
    """
    return (mechanism.regret(candidates, gamma) + 1) / STEPS
