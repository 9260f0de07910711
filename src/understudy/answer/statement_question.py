"""What questions in SQL have in common: a text, and the compiled statements whose marginals it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.query.marginal import Marginal
from understudy.query.quantiles_of_bins import QuantilesOfBins

if TYPE_CHECKING:
    from understudy.sql import CompiledAround, CompiledSql


@dataclass(frozen=True, eq=False)
class StatementQuestion:
    """A question in SQL, which has one price for all of its marginals, whatever their number."""

    text: str
    compiled: CompiledSql | CompiledAround

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """What is counted for it."""
        return self.compiled.marginals

    @property
    def running(self) -> dict[int, QuantilesOfBins]:
        """The quantiles for which running sums of counts are enough, by the places of their marginals."""
        return self.compiled.running

    @property
    def words(self) -> str:
        """The question as it was asked."""
        return self.text
