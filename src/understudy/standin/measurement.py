"""What was bought about a table, and is public from then on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a clique's cells, in domain order: unbiased, independent, of one `variance`."""

    clique: Clique
    counts: NDArray[np.float64]
    variance: float

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        if counts.ndim != len(self.clique) or not np.isfinite(counts).all():
            raise ParameterError("a measurement is one finite number for each cell of its clique")
        if not 0 <= self.variance < np.inf:
            raise ParameterError(f"a variance must be a finite number of at least 0, not {self.variance}")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    def averaged(self, other: Measurement) -> Measurement:
        """The mean of two measurements of one clique, weighted by their precisions."""
        a, b = 1 / self.variance, 1 / other.variance
        return Measurement(self.clique, (a * self.counts + b * other.counts) / (a + b), 1 / (a + b))


@dataclass(frozen=True, eq=False)
class Interaction:
    """A noisy interaction of a clique's attributes, in domain order: every axis of the table sums to 0.

    It is the residual of the clique (`query.residuals`): what its table tells beyond smaller ones. `variance` is
    that of each of its coordinates in an orthonormal basis.
    """

    clique: Clique
    counts: NDArray[np.float64]
    variance: float
