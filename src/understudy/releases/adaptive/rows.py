"""The stand-in of an adaptive release: a tree over groups of values, and measurements that did not fit into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.merging import Merging
from understudy.standin.graphical.model import GraphicalStandIn
from understudy.standin.graphical.projected import projected
from understudy.standin.local_fit import EVEN, LocalSlack, Observation, locally_fitted
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]
Codes = dict[str, NDArray[np.int64]]

ANSWERED = LocalSlack(sparse=16.0)
"""Where tables answer: noise in cells that hold few people is not to be learnt, as in the tree's own fit.

Between rounds the even slack is kept, so that what a round asks for stays the same.
"""

WEIGHED = LocalSlack(share=1.6, sparse=16.0)
"""Where each table is then weighed against a measurement of its own, which repairs what the slack misses."""


@dataclass(frozen=True, eq=False)
class AdaptiveStandIn:
    """A graphical stand-in over groups of values, answering about the values themselves.

    Measurements outside of its tree are fitted into the answers that hold them, and may be missed by `slack`.
    """

    merging: Merging
    model: GraphicalStandIn
    outside: tuple[Measurement, ...] = ()
    slack: LocalSlack = EVEN

    @property
    def domain(self) -> Domain:
        return self.merging.domain

    @property
    def total(self) -> float:
        return self.model.total

    def project(self, clique: Clique) -> Values:
        """Rates that sum to 1, shaped in domain order."""
        return self.project_many([clique])[0]

    def project_many(self, cliques: Iterable[Clique]) -> list[Values]:
        """The projections on many cliques; what they have in common is worked out once."""
        named = [self.domain.clique(clique) for clique in cliques]
        for clique in named:
            self.domain.allocatable_shape(clique)
        return [
            self.merging.expand(clique, table / max(self.total, 1.0))
            for clique, table in zip(named, self.grouped(named), strict=True)
        ]

    def grouped(self, cliques: list[Clique]) -> list[Values]:
        """Counts of groups."""
        total = max(self.total, 1.0)
        return [
            locally_fitted(clique, total * rates, self._observed(clique), total, slack=self.slack)
            for clique, rates in zip(cliques, projected(self.model, cliques), strict=True)
        ]

    def _observed(self, clique: Clique) -> list[Observation]:
        """What was measured inside of a clique, and is not in the tree."""
        wanted = set(clique)
        near = (self._by_first.get(name, ()) for name in clique)
        inside = sorted(i for places in near for i in places if wanted.issuperset(self.outside[i].clique))
        return [Observation(m.clique, m.counts, m.variance) for m in map(self.outside.__getitem__, inside)]

    @cached_property
    def _by_first(self) -> dict[str, list[int]]:
        """Where the measurements outside of the tree stand, by the first attribute of each."""
        found: dict[str, list[int]] = {}
        for i, m in enumerate(self.outside):
            found.setdefault(m.clique[0], []).append(i)
        return found

    def sample_codes(self, rows: int, *, rng: np.random.Generator) -> Codes:
        """Synthetic rows: groups from the model, values dealt to the rows of a group by their shares.

        Measurements outside of the tree do not show in them; they do in the answers, with which a release makes
        its rows agree (`releases.agreement`).
        """
        drawn = self.model.sample_codes(rows, rng=rng)
        return {
            name: self._values(i, drawn[name].astype(np.int64), rng)
            for i, name in enumerate(self.domain.names)
        }

    def _values(self, i: int, group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of a group stand at equal distances along its values' shares, in random order."""
        starts, shares = self.merging.starts[i], self.merging.shares[i]
        codes = starts[group]
        for g in np.flatnonzero(self.merging.widths[i] > 1):
            own = np.flatnonzero(group == g)
            first = int(starts[g])
            ends = np.cumsum(shares[first : first + int(self.merging.widths[i][g])])
            places = (rng.permutation(own.size) + rng.random()) / max(own.size, 1) * ends[-1]
            codes[own] = first + np.minimum(np.searchsorted(ends, places, side="right"), ends.size - 1)
        return codes
