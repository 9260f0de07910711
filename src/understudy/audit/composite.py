"""Subjects that run through a Curator: everything it released, in order, is what an attacker sees.

Each is a function of a Curator; a method whose module is not there is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from understudy.audit.claim import Claim, ConcentratedClaim, PureClaim
from understudy.audit.events import Draws
from understudy.audit.neighbours import DOMAIN, Rows, Setting, TablePair, TellingLedger, table_pairs
from understudy.audit.privacy import Draw, Pair, Subject, stacked
from understudy.audit.unfold import Beginning, Unfolding, beginning
from understudy.curator import Candidate, Curator
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.net import NetMechanism
from understudy.mechanism.small_database import SmallDatabase
from understudy.mechanism.small_database_classes import QueryClass as SmallClass
from understudy.mechanism.strategy import Strategy
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise import NoiseSource, SeededNoise, SystemNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.neighbours import Neighbours
from understudy.query.family import prefixes
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.adaptive_rule import Rule
from understudy.standin.table import SmallTable

Act = Callable[[Curator], Any]

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

ONE, PURE, BOTH = Fraction(1), Budget.of(1), Budget.of(1, 1e-6)


# ---- what is done with a Curator; each spends its budget at most


def measure(curator: Curator) -> None:
    """Two marginals in one debit, Laplace noise."""
    curator.measure_all([A, AB], epsilon=Fraction(1, 2))


def measure_gaussian(curator: Curator) -> None:
    """The same with Gaussian noise, for the whole budget."""
    cap = curator.ledger.budget.cap.units
    curator.measure_all([A, AB], rho=Fraction(cap // 2, UNITS))


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
    kind = curator.declaration.neighbours
    curator.run(WorstQuery(QueryClass(DOMAIN, (AB,)), np.full(6, 2.0), ONE, kind, law=law))


def worst_guess(curator: Curator) -> None:
    """The worst of three marginals, with weights and an offset."""
    kind = curator.declaration.neighbours
    guesses = (
        Guess(A, np.array([6, 6])),
        Guess(AB, np.full((2, 3), 2), weight=Fraction(1, 2)),
        Guess(B, np.full(3, 4), offset=ONE),
    )
    curator.run(WorstGuess(guesses, ONE, kind))


def noisy_gaps(curator: Curator) -> None:
    """Both gaps of two guesses, with noise."""
    kind = curator.declaration.neighbours
    guesses = (Guess(A, np.array([6, 6])), Guess(AB, np.full((2, 3), 2)))
    curator.run(NoisyGaps(guesses, kind, epsilon=1))


def strategy(curator: Curator) -> None:
    """Combinations of a marginal's counts."""
    matrices = (np.array([[1, 1], [1, -1]]), np.array([[1, 1, 1], [2, -1, -1]]))
    curator.run(Strategy(AB, matrices, curator.declaration.neighbours, epsilon=1))


def small_database(curator: Curator, *, queries: SmallClass, size: int) -> None:
    """One draw of SmallDB."""
    curator.run(SmallDatabase(queries, size, curator.rows, ONE))


def net(curator: Curator) -> None:
    """One of four databases."""
    corners = [SmallTable.of_rows(DOMAIN, rows) for rows in ([(0, 0)], [(1, 2)], [(0, 0), (1, 1)], [(0, 1)])]
    curator.run(NetMechanism.of(corners, [AB], rows=curator.rows, epsilon=1))


def release(curator: Curator, *, name: str, options: dict[str, Any]) -> None:
    """A method of release, by `module:function`."""
    module, _, function = name.partition(":")
    run_of = import_module("understudy.releases.run").Run
    run = run_of(curator, WORKLOAD, curator.declaration.budget, "audit")
    getattr(import_module(module), function)(run, **options)


def session(curator: Curator) -> None:
    """Questions of which the second depends on the answer to the first."""
    opened = import_module("understudy.interactive.session").session(curator, alpha=0.15, queries=2, name="s")
    first = opened.ask(ONE_CELL)
    opened.ask(AB if float(np.asarray(first.value).sum()) > 3 else A)


def online(curator: Curator) -> None:
    """Four questions to private multiplicative weights."""
    module = import_module("understudy.interactive.online")
    weights = import_module("understudy.standin.multiplicative").MultiplicativeWeights
    terms = module.practical_terms(curator, alpha=0.6, queries=4, updates=1)
    loop = module.OnlineConstruction(
        curator, weights(domain=DOMAIN, alpha=Fraction(1, 4), threads=1), terms, name="o"
    )
    for query in (CELLS[0], CELLS[5], ONE_CELL, CELLS[0]):
        loop.ask(query)


# ---- as subjects


@dataclass(frozen=True, eq=False)
class Composite:
    """An interaction with a Curator, under what declaration, and over tables of how many rows."""

    name: str
    path: str
    act: Act
    budget: Budget = PURE
    neighbours: Neighbours = Neighbours.REPLACE
    rows: int = 12
    width: int = 12
    looks: int = 1
    """No run looks more often than that."""
    is_last: Callable[[Any], bool] = lambda value: False
    """Whether a run is over with a look of this outcome."""
    given: int = 0
    """So many first looks have the same outcomes in all runs on both tables; what they cost is not claimed."""
    needs: tuple[str, ...] = field(default=())

    @cached_property
    def setting(self) -> Setting:
        return Setting(self.budget, self.neighbours, rows_at_least=1, rows_at_most=4096)

    @property
    def present(self) -> bool:
        """Whether the modules that it needs can be imported."""
        try:
            for module in self.needs:
                import_module(module)
        except ImportError:
            return False
        return True

    def begun(self, rows: Rows) -> Beginning:
        """The given looks, as they come out on a table with coins that are the same every time.

        Any outcomes would do: what follows must keep its price after all of them.
        """
        return beginning(self.act, self._fresh(rows), self.given, SeededNoise(0))

    def claim(self, begun: Beginning) -> Claim:
        """What the given looks left of the budget: the ledger refuses whatever goes beyond."""
        left = Fraction(self.budget.cap.units - begun.spent.units, UNITS)
        return PureClaim(left) if self.budget.is_pure else ConcentratedClaim(left)

    def draw(self, rows: Rows, begun: Beginning | None = None) -> Draw:
        """Runs that share what they are told as far as that goes (`unfold`)."""
        given = (begun or self.begun(rows)).outcomes
        return Unfolding(self.act, self._fresh(rows), self.looks, self.width, self.is_last, given).draw

    def draw_singly(self, rows: Rows) -> Draw:
        """Runs from the first line to the last, one after the other; none of their looks are given."""

        def told(count: int, noise: NoiseSource) -> Draws:
            return stacked([self.once(rows, noise) for _ in range(count)], self.width)

        return told

    def once(self, rows: Rows, noise: NoiseSource) -> list[int]:
        """Everything that one run releases."""
        curator = self.setting.curator(rows, noise=noise)
        self.act(curator)
        assert isinstance(curator.ledger, TellingLedger)
        return curator.ledger.told

    def _fresh(self, rows: Rows) -> Callable[[], Curator]:
        """Curators that are to be unfolded: their coins are those of the unfolding."""
        return partial(self.setting.curator, rows, noise=SystemNoise())

    def tables(self, count: int = 30) -> Sequence[TablePair]:
        return list(islice(table_pairs(self.neighbours, rows=self.rows), count))

    def subject(self) -> Subject:
        def pairs() -> list[Pair]:
            return [self._pair(pair) for pair in self.tables()]

        return Subject(self.name, self.path, "run", pairs)

    def _pair(self, pair: TablePair) -> Pair:
        begun = self.begun(pair.first)
        return Pair(pair.name, self.draw(pair.first, begun), self.draw(pair.second, begun), self.claim(begun))


def composites() -> list[Composite]:
    """Every mechanism that a Curator runs, each at ε = 1 (or ε = 1, δ = 10⁻⁶)."""
    add = Neighbours.ADD_REMOVE
    chain = SmallClass.of_queries(prefixes(DOMAIN, "b"))
    tree = SmallClass.of([B])
    some = SmallClass.of([A, Marginal.of(ONE_CELL), Marginal.of(CELLS[1])])
    found = [
        Composite("measure", "curator.Curator.measure_all", measure),
        Composite("measure-add-remove", "curator.Curator.measure_all", measure, neighbours=add),
        Composite("measure-gaussian", "curator.Curator.measure_all", measure_gaussian, BOTH),
        Composite("measure-weights", "curator.Curator.measure", measure_weights, neighbours=add),
        Composite("choose", "curator.Curator.choose", select),
        Composite(
            "sparse", "curator.Curator.sparse", partial(sparse, numeric=False), looks=8, is_last=_is_hit
        ),
        Composite(
            "sparse-numeric",
            "curator.Curator.sparse",
            partial(sparse, numeric=True),
            neighbours=add,
            looks=8,
            is_last=_is_hit,
        ),
        Composite("worst-query", "mechanism.worst_query.WorstQuery", partial(worst_query, law="exponential")),
        Composite(
            "worst-query-noisy-max",
            "mechanism.worst_query.WorstQuery",
            partial(worst_query, law="noisy-max"),
            neighbours=add,
        ),
        Composite("worst-guess", "mechanism.gap.WorstGuess", worst_guess),
        Composite("noisy-gaps", "mechanism.gap.NoisyGaps", noisy_gaps, neighbours=add),
        Composite("strategy", "mechanism.strategy.Strategy", strategy),
        Composite(
            "smalldb-chain",
            "mechanism.small_database_chain.Chain",
            partial(small_database, queries=chain, size=3),
        ),
        Composite(
            "smalldb-tree",
            "mechanism.small_database_tree.Tree",
            partial(small_database, queries=tree, size=3),
        ),
        Composite(
            "smalldb-enumeration",
            "mechanism.small_database_levels.Enumeration",
            partial(small_database, queries=some, size=2),
        ),
        Composite("net", "mechanism.net.NetMechanism", net),
        _released(
            "ic",
            "understudy.releases.iterative:iterative_construction",
            {"alpha": Fraction(96, 100), "most_rounds": 8},
            rows=400,
            looks=16,
        ),
        *(
            _released(
                name,
                "understudy.releases.mwem:mwem",
                {"rounds": 1, "per_round": 1, "passes": 2},
                looks=4,
                is_last=_is_everything,
                given=given,
            )
            for name, given in (("mwem", 0), ("mwem-begun", 1))
        ),
        _released("mwem-gaussian", "understudy.releases.mwem:mwem", {"passes": 2}, budget=BOTH),
        _released("residual", "understudy.releases.residual:residual", {}, budget=BOTH),
        *(
            _released(
                name,
                "understudy.releases.adaptive:adaptive",
                {"rule": rule},
                budget=BOTH,
                rows=4000,
                looks=looks,
                given=given,
            )
            for name, rule, looks, given in (
                ("adaptive", ONE_ROUND, 3, 0),
                ("adaptive-begun", ONE_ROUND, 3, 1),
                ("adaptive-workload", SWEEPS["workload"], 4, 3),
                ("adaptive-pairs", SWEEPS["pairs"], 4, 3),
            )
        ),
        Composite(
            "session",
            "interactive.session.Session",
            session,
            rows=100,
            looks=2,
            needs=("understudy.interactive.session",),
        ),
        Composite(
            "session-gaussian",
            "interactive.session.Session",
            session,
            BOTH,
            rows=100,
            looks=2,
            needs=("understudy.interactive.session",),
        ),
        Composite(
            "online",
            "interactive.online.OnlineConstruction",
            online,
            rows=400,
            looks=7,
            is_last=lambda value: isinstance(value, list),  # the one update that is paid for
            needs=("understudy.interactive.online",),
        ),
    ]
    return [composite for composite in found if composite.present]


def _is_hit(outcome: Any) -> bool:
    """Whether a sparse vector has just said that something is above its threshold."""
    return isinstance(outcome, tuple) and outcome[1].above > 0


def _is_everything(outcome: Any) -> bool:
    """Whether the largest marginal was just measured: there is nothing left that would need a bound."""
    return isinstance(outcome, list) and len(outcome) == 1 and np.size(outcome[0]) == AB.size


def _released(name: str, method: str, options: dict[str, Any], **about: Any) -> Composite:
    module = method.partition(":")[0]
    path = method.removeprefix("understudy.").replace(":", ".")
    act = partial(release, name=method, options=options)
    return Composite(name, path, act, **about, needs=(module,))
