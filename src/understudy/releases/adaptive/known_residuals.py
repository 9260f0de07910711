"""What an adaptive release knows of each residual, from everything that it bought.

Residuals of different sets are orthogonal (`query.residuals`), and the noise of one look is independent from that
of another. So all that was bought about a residual is one weighted mean, by precision, and a table is put together
from the means of its parts. Nothing that was paid for is lost: a pair that was measured as a part of three triples
is known by all three. This is post-processing. Error bars do not rest on these means, whose weights depend on
noise that is in them (`beta`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.residuals import assembled, parts_of
from understudy.standin.measurement import Interaction, Measurement

Values = NDArray[np.float64]


@dataclass(eq=False)
class KnownResiduals:
    """The mean of what was told of each residual over a domain of groups, and its precision.

    The precision of a residual is 1/τ, where τ is the variance of its coordinates in an orthonormal basis. The
    number of rows, the residual of no attribute, is not among them (`Evidence.rows`).
    """

    domain: Domain
    _sums: dict[Clique, Values] = field(default_factory=dict)
    _precisions: dict[Clique, float] = field(default_factory=dict)

    def add(self, told: Interaction) -> None:
        """One more measurement of a residual."""
        weight = 1 / told.variance
        self._sums[told.clique] = self._sums.get(told.clique, 0.0) + weight * told.counts
        self._precisions[told.clique] = self.precision(told.clique) + weight

    def precision(self, clique: Clique) -> float:
        """1/τ of a residual; 0 where nothing was told of it."""
        return self._precisions.get(clique, 0.0)

    def below(self, cliques: Iterable[Clique]) -> list[Interaction]:
        """What is known of the residuals of all parts of these cliques."""
        inside = dict.fromkeys(part for clique in cliques for part in parts_of(clique))
        return [self._mean(part) for part in inside if part in self._sums]

    def _mean(self, clique: Clique) -> Interaction:
        precision = self._precisions[clique]
        return Interaction(clique, self._sums[clique] / precision, 1 / precision)

    def table(self, clique: Clique, rows: float) -> Measurement:
        """The counts of a clique whose parts are all known, with the mean variance of a cell.

        The number of rows is taken for known: its own noise is spread over all cells, and far below theirs.
        """
        sizes = {name: self.domain[name].size for name in clique}
        wide = tuple(name for name in clique if sizes[name] > 1)
        residuals: dict[Clique, Values] = {(): np.array(rows)}
        variance = 0.0
        for told in self.below([wide]):
            residuals[told.clique] = told.counts
            others = prod(size for name, size in sizes.items() if name not in told.clique)
            variance += told.variance * prod(1 - 1 / sizes[name] for name in told.clique) / others**2
        return Measurement(clique, assembled(clique, sizes, residuals), variance)
