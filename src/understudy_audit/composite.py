"""A subject that runs through a Curator: everything it released, in order, is what an attacker sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from math import floor
from typing import Any

from understudy.curator.curator import Curator
from understudy.noise.samplers import NoiseSource, SeededNoise, SystemNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.relation import Neighbours
from understudy_audit.acts import ONE, PURE, Act
from understudy_audit.claim import Claim, ConcentratedClaim, PureClaim
from understudy_audit.events import Draws
from understudy_audit.neighbours import (
    Rows,
    Setting,
    TablePair,
    TellingLedger,
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
    size: str = "run"
    """`slow` where a run fits a model or answers many questions: it gets fewer draws in a quick audit."""
    pairs: Callable[[], Sequence[TablePair]] | None = None
    """Tables at which this one is at its worst, instead of the usual ones."""

    @cached_property
    def setting(self) -> Setting:
        return Setting(self.budget, self.neighbours, rows_at_least=1, rows_at_most=4096)

    def begun(self, rows: Rows, seed: int = 0) -> Beginning:
        """The given looks, as they come out on a table with coins that are the same every time.

        Any outcomes would do: what follows must keep its price after all of them.
        """
        if not self.given:
            return Beginning((), type(self.budget.cap)(0))
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
        return Subject(self.name, path, self.size, pairs)

    def pair(self, number: int) -> Pair:
        """The runs on one pair of `tables`, as `subject` lists them."""
        return self._pair(self.tables()[number], number)

    def _pair(self, pair: TablePair, seed: int) -> Pair:
        begun = self.begun(pair.first, seed)
        return Pair(pair.name, self.draw(pair.first, begun), self.draw(pair.second, begun), self.claim(begun))
