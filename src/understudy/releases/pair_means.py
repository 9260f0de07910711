"""Pairs of attributes as larger tables tell them together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique

Values = NDArray[np.float64]


def pair_means(tables: Iterable[tuple[Clique, Values]]) -> dict[Clique, Values]:
    """Of every pair of attributes that a table holds, the mean of its counts over all tables that hold it.

    Tables with noise of their own disagree about what they share. Where their noises are of one size and nothing
    else is known, the mean of several has the least.
    """
    sums: dict[Clique, list[Values]] = {}
    for clique, table in tables:
        for kept in combinations(range(len(clique)), 2):
            gone = tuple(i for i in range(len(clique)) if i not in kept)
            sums.setdefault((clique[kept[0]], clique[kept[1]]), []).append(table.sum(axis=gone))
    return {pair: np.mean(held, axis=0) for pair, held in sums.items()}
