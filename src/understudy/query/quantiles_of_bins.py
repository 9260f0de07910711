"""Which bins quantiles can lie in, from bounds of running sums: the counts of each bin and all before it.

With N rows the quantile of level p lies between the order statistics of ranks floor and ceil of p·(N - 1), from 0.
Bin j or one before it holds the lower one only if through(j) > p·(N - 1), and bin j or one after it the upper one
only if below(j) < p·(N - 1) + 1. Both are asked of the running sums most favourable to them, the last
of which is N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CLOSE = 1e-9
"""Running sums that are this close to a rank are taken to reach it."""


@dataclass(frozen=True)
class QuantilesOfBins:
    """The quantiles that a statement takes of one marginal: of the attribute `over`, at these levels.

    `bins` are its first cells, in order; the cells after them, of values that are missing, do not count.
    """

    over: str
    levels: tuple[float, ...]
    bins: int

    def joined(self, other: QuantilesOfBins) -> QuantilesOfBins:
        """The levels of both, which are of one attribute."""
        return QuantilesOfBins(self.over, tuple(sorted({*self.levels, *other.levels})), self.bins)


def can_hold(least: Floats, most: Floats, level: float) -> tuple[Bools, Bools]:
    """Where a quantile can begin and end, from the ends of running sums along the last axis.

    The first array says of each bin whether it or one before it may hold the quantile, the second whether it or
    one after it may.
    """
    begins = most - level * least[..., -1:] + level > -CLOSE
    below = np.concatenate([np.zeros_like(least[..., :1]), least[..., :-1]], axis=-1)
    ends = below - level * most[..., -1:] + level - 1 < CLOSE
    return begins, ends
