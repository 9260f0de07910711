"""Distinguishers: find, privately, a query that a hypothesis answers badly. [Lecture 7, Definition 3]

A distinguisher never holds data. It is given a `Run`, which spends, and public numbers; all that it learns about
the table is what it buys, step by step, at no more than the price it was given: a learner written by a user sees
nothing that was not paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.curator.curator import Curator
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.mechanism.parameters import whole
from understudy.mechanism.worst_query import Law, QueryClass, WorstQuery, regret, selection
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.releases.run import Run


class Distinguisher(Protocol):
    """An (F(ε), γ)-private distinguisher. [Lecture 7, Definition 3]"""

    def error(self, curator: Curator, queries: QueryClass, price: Price, gamma: float) -> float:
        """F·n, in people: the chosen gap is within it of the largest one, except with probability `gamma`.

        Infinite where nothing is claimed. Reads no data.
        """
        ...

    def distinguish(
        self, run: Run, step: str, queries: QueryClass, guesses: NDArray[np.float64], price: Price
    ) -> int:
        """The number of a query whose count is far from its guess; buys for at most `price`."""
        ...


@dataclass(frozen=True, slots=True)
class PrivateSelection:
    """One private selection over the whole class, by the exponential mechanism or by report noisy max.

    Privacy     The price, in either currency: the ε of the selection is the largest that costs no more.
    Accuracy    F = (2/(nε))·ln(|C|/γ), and 1/(256n) for the rounding of guesses. [Lecture 7, Theorem 6]
    """

    law: Law = "exponential"

    def error(self, curator: Curator, queries: QueryClass, price: Price, gamma: float) -> float:
        return regret(self._mechanism(curator, price), len(queries), gamma)

    def distinguish(
        self, run: Run, step: str, queries: QueryClass, guesses: NDArray[np.float64], price: Price
    ) -> int:
        mechanism = self._mechanism(run.curator, price)
        look = WorstQuery(queries, guesses, mechanism.epsilon, run.curator.relation, self.law)
        return int(run.look(step, look))

    def _mechanism(self, curator: Curator, price: Price) -> ExponentialMechanism | ReportNoisyMax:
        return _selection_for(self.law, price, curator.relation, curator.ledger.budget)


@lru_cache(maxsize=256)
def _selection_for(
    law: Law, price: Price, relation: Relation, budget: Budget
) -> ExponentialMechanism | ReportNoisyMax:
    """The selection whose ε is the largest that costs no more than the price, as the ledger's budget is kept."""
    unit = selection(law, Fraction(1), relation)
    return selection(law, budget.epsilon_within(price, unit.event), relation)


Claim = Callable[[Price, int, float], float]
"""From the price, |C| and γ to F·n in people."""


@dataclass(frozen=True, slots=True)
class StatisticalLearner:
    """A learner of the user's that asks noisy statistical queries: `learn(oracle, guesses)` returns a number in C.

    Privacy     The price: it is divided evenly among `asks` questions, each of them a debit, and the oracle
                refuses the next one. What `learn` sees are noisy counts and the public guesses, so its choice is
                post-processing. It must be deterministic for a killed run to be resumed.
    Accuracy    What `claim` says; nothing without one. An agnostic learner for C is a distinguisher.
                [Lecture 7, Definition 3]
    """

    learn: Callable[[Oracle, NDArray[np.float64]], int]
    asks: int
    claim: Claim | None = None

    def __post_init__(self) -> None:
        whole(self.asks, "asks", at_least=1)

    def error(self, curator: Curator, queries: QueryClass, price: Price, gamma: float) -> float:
        del curator
        return inf if self.claim is None else self.claim(price, len(queries), gamma)

    def distinguish(
        self, run: Run, step: str, queries: QueryClass, guesses: NDArray[np.float64], price: Price
    ) -> int:
        each = (price / self.asks).whole_units
        found = self.learn(Oracle(run, step, each, self.asks), guesses)
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            raise ParameterError("a learner returns the number of a query of its class")
        if not 0 <= found < len(queries):
            raise QueryError(f"a learner chose query {found} of a class of {len(queries)}")
        return int(found)


@dataclass(eq=False)
class Oracle:
    """Noisy counts for a learner, each one a debit; `left` says how many more there are."""

    _run: Run = field(repr=False)
    _step: str
    _price: Price
    left: int
    _asked: int = 0

    def ask(self, query: LinearQuery) -> float:
        """The count of a query, with noise."""
        if self.left < 1:
            raise RefusedError("this learner has asked every question that its round pays for")
        self.left -= 1
        self._asked += 1
        step = f"{self._step} ask {self._asked}"
        return float(self._run.measure(step, [Marginal.of(query)], self._price)[0].noisy)


DISTINGUISHERS: Mapping[str, Distinguisher] = {
    "exponential": PrivateSelection("exponential"),
    "noisy-max": PrivateSelection("noisy-max"),
}


def distinguisher(name: str | Distinguisher) -> Distinguisher:
    """A distinguisher by its name, or the caller's own."""
    if not isinstance(name, str):
        return name
    if name not in DISTINGUISHERS:
        raise ParameterError(
            f"a distinguisher is {' or '.join(DISTINGUISHERS)}, or one of your own, not {name!r}"
        )
    return DISTINGUISHERS[name]
