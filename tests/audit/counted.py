"""Tables as counts of the cells of their domain: what `Truth` finds, without an engine (`test_sensitivity`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.domain import Domain
from understudy.query.marginal import Marginal


class CountedTruth:
    """Meets what a Curator asks of a `Truth`."""

    version, is_file = "0" * 16, False

    def __init__(self, domain: Domain, codes: NDArray[np.int64]) -> None:
        self.domain, self.rows = domain, len(codes)
        cells = np.ravel_multi_index(tuple(codes.T), domain.shape()) if len(codes) else np.zeros(0, np.int64)
        self._counts = np.bincount(cells, minlength=domain.size()).reshape(domain.shape())

    def check_size(self, marginals) -> None:
        """Everything here is small."""

    def check_unchanged(self) -> None:
        """Nobody can change it."""

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> NDArray[np.int64]:
        names = self.domain.names
        counts = self._counts.sum(
            axis=tuple(i for i, name in enumerate(names) if name not in marginal.clique)
        )
        steps = np.rint(marginal.where.weights(marginal.clique) * resolution).astype(np.int64)
        summed = tuple(i for i, name in enumerate(marginal.clique) if name not in marginal.by)
        return (counts * steps).sum(axis=summed, dtype=np.int64)

    def sums_of(self, marginals, *, resolution: int = 1) -> list[NDArray[np.int64]]:
        return [self.sums(marginal, resolution=resolution) for marginal in marginals]
