"""All 1-way marginals of an adaptive release, with a bar from everything that was bought (`sequential`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.merging import Merging
from understudy.releases.adaptive.beta import cells_to_cover
from understudy.releases.adaptive.sequential import NoisyTable, SequentialCells
from understudy.releases.adaptive.sweep import Sweep
from understudy.releases.evidence import Interval, possible_ends
from understudy.releases.residual.half_width import GaussianLaw

Values = NDArray[np.float64]


@dataclass(frozen=True)
class OneWayShares:
    """β of a 1-way marginal's parts: its own measurement alone, and each cell at each level of precision."""

    own: Fraction
    levels: tuple[float, ...]
    cell: Fraction

    @classmethod
    def of(
        cls, domain: Domain, name: str, beta: Fraction, again: Sequence[float], *, rows_public: bool
    ) -> OneWayShares:
        """The part of one attribute, of `beta` for all; `again` are levels that more tables may reach.

        Half is for its own measurement, which is all that merged values have. Where the number of rows is public,
        that alone makes a table more precise: a level of its own.
        """
        levels = ((1.0,) if rows_public else ()) + tuple(again)
        own = beta / len(domain) / (2 if levels else 1)
        rest = (beta / len(domain) - own) / max(len(levels), 1)
        return cls(own, levels, rest / cells_to_cover(domain, (name,), rows_public=rows_public))


@dataclass(eq=False)
class OneWayBars:
    """What is known of each attribute's values, as tables come in.

    After `first`, tables are over groups of values. They tell of values that are alone in their group, and nothing
    of others, which keep the bar of their own measurement. Which values are grouped is decided by the first
    noise: in the words of the lemma, the weights of the tables that follow are 0 for those, as of then.
    """

    merging: Merging
    rows: float | None
    rounded: bool = False
    """Whether all noise is rounded normal noise, and not discrete."""
    cells: dict[str, SequentialCells] = field(default_factory=dict)

    def first(self, name: str, counts: Values, variance: float, shares: OneWayShares) -> None:
        """An attribute's own measurement, before values are merged."""
        self.cells[name] = SequentialCells(
            self._total(NoisyTable.summed(counts, 0, self._law(variance))), shares.cell, shares.levels
        )

    def swept(self, sweep: Sweep) -> None:
        """A sweep, of a round or the last one, as far as it tells of an attribute."""
        for name in self.cells:
            told, tables = sweep.about((name,)), sweep.tables
            if told is not None and tables is not None and told.counts.size > 1:
                table = NoisyTable(told.counts, told.variance, tables.reach((name,)), tables.lift((name,)))
                self._spread(name, table)

    def _law(self, variance: float) -> GaussianLaw:
        return GaussianLaw(variance, self.rounded)

    def _total(self, table: NoisyTable) -> NoisyTable:
        return table if self.rows is None else table.with_total(self.rows)

    def _spread(self, name: str, table: NoisyTable) -> None:
        counts = self.merging.spread((name,), table.counts)
        self.cells[name].add(NoisyTable(counts, table.variance, table.reach, table.lift))

    def intervals(self) -> Iterator[Interval]:
        """What is proved of the values that are alone in their groups."""
        for name, cells in self.cells.items():
            widths = self.merging.widths[self.merging.domain.position(name)]
            alone = self.merging.spread((name,), (widths == 1).astype(np.float64)) > 0
            for told, level in zip(cells.told, cells.levels, strict=False):
                known = alone if level > 1 else np.ones(alone.shape, bool)
                low, high = possible_ends(told.counts, told.error)
                yield Interval((name,), np.where(known, low, 0.0), np.where(known, high, np.inf), "measured")

    @property
    def reached(self) -> Sequence[int]:
        """How many levels each attribute reached."""
        return [len(cells.told) for cells in self.cells.values()]
