"""Subjects that run through a Curator: everything it released, in order, is what an attacker sees.

A method whose module is not there is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from itertools import islice
from math import floor
from typing import Any

import numpy as np

from understudy.curator.curator import Curator
from understudy.mechanism.small_database.classes import QueryClass as SmallClass
from understudy.noise.samplers import NoiseSource, SeededNoise, SystemNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.relation import Neighbours
from understudy.query.family import prefixes
from understudy.query.marginal import Marginal
from understudy_audit.acts import (
    AB,
    BOTH,
    CELLS,
    ONE,
    ONE_CELL,
    ONE_ROUND,
    PURE,
    SWEEPS,
    A,
    Act,
    B,
    measure,
    measure_gaussian,
    measure_weights,
    median,
    net,
    noisy_gaps,
    online,
    release,
    select,
    session,
    small_database,
    sparse,
    strategy,
    worst_guess,
    worst_query,
)
from understudy_audit.claim import Claim, ConcentratedClaim, PureClaim
from understudy_audit.events import Draws
from understudy_audit.neighbours import (
    DOMAIN,
    Rows,
    Setting,
    TablePair,
    TellingLedger,
    around,
    table_pairs,
)
from understudy_audit.privacy import Draw, Pair, Subject, stacked
from understudy_audit.unfold import Beginning, Unfolding, beginning


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
    is_cut: bool = False
    """Runs go on after so many looks, and what they are told then is left out."""
    spends: Fraction = ONE
    """The part of the budget that the dearest run has spent at its last look."""
    given: int = 0
    """So many first looks have the same outcomes in all runs on both tables; what they cost is not claimed."""
    pairs: Callable[[], Sequence[TablePair]] | None = None
    """Tables at which this one is at its worst, instead of the usual ones."""
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

    def begun(self, rows: Rows, seed: int = 0) -> Beginning:
        """The given looks, as they come out on a table with coins that are the same every time.

        Any outcomes would do: what follows must keep its price after all of them.
        """
        return beginning(self.act, self._fresh(rows), self.given, SeededNoise(seed))

    @property
    def most(self) -> Cost:
        """What the dearest run spends; the unfolding refuses whatever goes beyond."""
        cap = self.budget.cap
        return type(cap)(floor(cap.units * self.spends))

    def claim(self, begun: Beginning) -> Claim:
        """What runs spend after the given looks."""
        left = Fraction(self.most.units - begun.spent.units, UNITS)
        return PureClaim(left) if self.budget.is_pure else ConcentratedClaim(left)

    def draw(self, rows: Rows, begun: Beginning | None = None) -> Draw:
        """Runs that share what they are told as far as that goes (`unfold`)."""
        return Unfolding(
            self.act,
            self._fresh(rows),
            self.looks,
            self.width,
            self.is_last,
            self.is_cut,
            self.most,
            (begun or self.begun(rows)).outcomes,
        ).draw

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
        usual = table_pairs(self.neighbours, rows=self.rows) if self.pairs is None else self.pairs()
        return list(islice(usual, count))

    def subject(self) -> Subject:
        def pairs() -> list[Pair]:
            return [self._pair(pair, seed) for seed, pair in enumerate(self.tables())]

        path = f"{self.path}, after a fixed beginning" if self.given else self.path
        return Subject(self.name, path, "run", pairs)

    def _pair(self, pair: TablePair, seed: int) -> Pair:
        begun = self.begun(pair.first, seed)
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
        _released(
            "mwem-gaussian",
            "understudy.releases.mwem:mwem",
            {"rounds": 1, "per_round": 1, "passes": 2},
            budget=BOTH,
            rows=400,
            looks=4,
            is_last=_is_everything,
            given=1,
        ),
        _released("mwem-everything", "understudy.releases.mwem:mwem", {"passes": 2}, budget=BOTH),
        _released("residual", "understudy.releases.residual.residual:residual", {}, budget=BOTH),
        *(
            _released(
                name,
                "understudy.releases.adaptive.adaptive:adaptive",
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
        _released(
            "aim",
            "understudy.releases.aim:aim",
            {},
            budget=BOTH,
            rows=400,
            looks=7,
            is_cut=True,
            given=5,
        ),
        *(
            Composite(
                name,
                "sessions.session.Session",
                partial(session, alpha=alpha, queries=queries),
                budget,
                rows=100,
                looks=2,
                spends=spends,
                needs=("understudy.sessions.session",),
            )
            for name, budget, alpha, queries, spends in (
                ("session", PURE, 0.2, 4, Fraction(8656, 10_000)),
                ("session-gaussian", BOTH, 0.3, 2, Fraction(537, 1000)),
            )
        ),
        *(
            Composite(
                name,
                f"lectures.{name}.{what}",
                act,
                looks=7,
                is_last=lambda value: isinstance(value, list),  # the one update that is paid for
                spends=Fraction(98948, 100_000),
                needs=(f"understudy.lectures.{name}",),
                pairs=partial(around, edge),
            )
            for name, what, act, edge in (
                ("online", "OnlineConstruction", online, 172),
                ("median", "private_median", median, 152),
            )
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
