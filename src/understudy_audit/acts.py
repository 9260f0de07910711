"""What an audit does with a Curator; each act spends the budget at most, and returns what it hands over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.lectures.asking import RepeatMemory
from understudy.lectures.median import private_median
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.net import NetMechanism
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.small_database import SmallDatabase
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.adaptive.rule import Rule
from understudy.releases.run import Run
from understudy.sessions.opening import session as open_session
from understudy.standin.multiplicative import MultiplicativeWeights
from understudy.standin.table import SmallTable
from understudy_audit.neighbours import DOMAIN

Act = Callable[[Curator], Any]

ONE, PURE, BOTH = Fraction(1), Budget.of(1), Budget.of(1, 1e-6)

A, B, AB = Marginal(DOMAIN, ("a",)), Marginal(DOMAIN, ("b",)), Marginal(DOMAIN, ("a", "b"))
ONE_CELL = LinearQuery.conjunction(DOMAIN, {"a": np.array([0, 1]), "b": np.array([0, 0, 1])})
CELLS = [
    LinearQuery.conjunction(DOMAIN, {"a": np.arange(2) == a, "b": np.arange(3) == b})
    for a in range(2)
    for b in range(3)
]
WORKLOAD = Workload.of(DOMAIN, [("a",), ("a", "b")])
ONE_ROUND = Rule(
    first=Fraction(1, 5), select=Fraction(1, 10), rounds=1, growth=1.3, merge=1.0, cells=1000, most=4,
    triples=False, guard=Fraction(0), guard_order=0,
)  # fmt: skip
"""First marginals, gaps, measurements: a whole adaptive release but for the sweep."""
SWEEPS = {
    "workload": replace(ONE_ROUND, guard=Fraction(7, 10)),
    "pairs": replace(ONE_ROUND, guard=Fraction(2, 10), guard_order=2),
}
"""With either sweep at the end."""


def measure(curator: Curator) -> None:
    """Two marginals in one debit, Laplace noise."""
    curator.measure_all([A, AB], Price.of(epsilon=Fraction(1, 2)))


def measure_gaussian(curator: Curator) -> None:
    """The same with Gaussian noise, for the whole budget."""
    curator.measure_all([A, AB], (curator.ledger.budget.whole / 2).whole_units)


def measure_weights(curator: Curator) -> None:
    """One sum of weights that are not 0 and 1: a finer lattice."""
    weighted = LinearQuery.conjunction(DOMAIN, {"b": np.array([0.0, 0.3, 1.0])})
    curator.measure(Marginal.of(weighted), epsilon=1)


def select(curator: Curator) -> None:
    """The cell whose guess is worst."""
    curator.choose([Candidate(query, Fraction(2)) for query in CELLS], epsilon=1)


def sparse(curator: Curator, *, numeric: bool) -> None:
    """Every cell against a guess, until one is above."""
    handle = curator.sparse(threshold=2, epsilon=1, numeric=numeric)
    for query in (*CELLS, ONE_CELL):
        if handle.hits_left == 0:
            break
        handle.ask(query, guess=3)


def worst_query(curator: Curator, *, law: Any) -> None:
    """The worst cell of a class, by either law."""
    curator._buy(WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 2.0), ONE, curator.relation, law=law))


def worst_guess(curator: Curator) -> None:
    """The worst of three marginals, with weights and an offset."""
    guesses = (
        Guess(A, np.array([6, 6])),
        Guess(AB, np.full((2, 3), 2), weight=Fraction(1, 2)),
        Guess(B, np.full(3, 4), offset=ONE),
    )
    curator._buy(WorstGuess(guesses, ONE, curator.relation))


def noisy_gaps(curator: Curator) -> None:
    """Both gaps of two guesses, with noise."""
    guesses = (Guess(A, np.array([6, 6])), Guess(AB, np.full((2, 3), 2)))
    curator._buy(NoisyGaps(guesses, curator.relation, Price.of(epsilon=1)))


def strategy(curator: Curator) -> None:
    """Combinations of a marginal's counts."""
    matrices = (np.array([[1, 1], [1, -1]]), np.array([[1, 1, 1], [2, -1, -1]]))
    curator._buy(Strategy(AB, matrices, curator.relation, Price.of(epsilon=1)))


def small_database(curator: Curator, *, queries: DistinctQueries, size: int) -> Any:
    """One draw of SmallDB."""
    return curator._buy(SmallDatabase(queries, size, curator.rows, ONE)).released


def net(curator: Curator) -> Any:
    """One of four databases."""
    corners = [SmallTable.of_rows(DOMAIN, rows) for rows in ([(0, 0)], [(1, 2)], [(0, 0), (1, 1)], [(0, 1)])]
    return curator._buy(NetMechanism.of(corners, [AB], rows=curator.rows, epsilon=1)).released


def release(curator: Curator, *, name: str, options: dict[str, Any]) -> list[Any]:
    """A method of release, by `module:function`, and what it hands over: its rows, answers and errors."""
    module, _, function = name.partition(":")
    run = Run(curator, WORKLOAD, curator.declaration.budget, "audit")
    found = getattr(import_module(module), function)(run, **options)
    answers = [(answer.clique, answer.counts, answer.error, answer.basis) for answer in found.answers]
    return [found.rows, answers]


def session(curator: Curator, *, alpha: float, queries: int) -> list[Any]:
    """Questions of which the second depends on the answer to the first."""
    opened = open_session(curator, alpha=alpha, queries=queries, name="s")
    first = opened.ask(ONE_CELL)
    assert isinstance(first, Answer)  # a query's answer, not a table's
    return _heard([first, opened.ask(AB if float(np.asarray(first.value).sum()) > 3 else A)])


def online(curator: Curator) -> list[Any]:
    """Four questions to private multiplicative weights."""
    weights = MultiplicativeWeights(domain=DOMAIN, alpha=Fraction(1, 4), threads=1)
    terms = practical_terms(curator, alpha=0.35, queries=4, updates=1)
    loop = OnlineConstruction(curator, weights, terms, name="o")
    return _heard([_asked_anew(loop, query) for query in (CELLS[0], CELLS[0], CELLS[0], ONE_CELL)])


def median(curator: Curator) -> list[Any]:
    """Four questions to the median behind the sparse vector."""
    loop = private_median(curator, alpha=0.35, queries=4, updates=1, name="o")
    return _heard([_asked_anew(loop, query) for query in (CELLS[0], CELLS[0], CELLS[0], ONE_CELL)])


def _asked_anew(loop: OnlineConstruction, query: LinearQuery) -> Answer:
    """An answer of a comparison of its own, also where the same was asked before."""
    loop._repeats = RepeatMemory()
    return loop.ask(query)


def _heard(answers: Sequence[Any]) -> list[Any]:
    return [(np.asarray(answer.value), np.asarray(answer.error), answer.source) for answer in answers]
