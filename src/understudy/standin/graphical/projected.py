"""Marginals of a junction tree by rows of the model where the exact way needs too large a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import TooLargeError
from understudy.standin.graphical.model import GraphicalStandIn

Values = NDArray[np.float64]

MOST_ON_THE_WAY = 1 << 24
"""Cells of a table that is held for a moment on the way to a marginal (128 MiB)."""

DRAWN_ROWS = 1 << 18
"""Rows of the model that stand for it where it cannot be projected exactly."""


def projected(
    model: GraphicalStandIn, cliques: Sequence[Clique], *, most: int = MOST_ON_THE_WAY
) -> list[Values]:
    """Rates over each clique. The same model gives the same numbers: rows are drawn from a fixed seed.

    A marginal across a tree is worked out by meeting conditional rates, whose tables can be far larger than the
    marginal itself. Where one has more than `most` cells, the marginal is counted in rows that are drawn from the
    model. The tree is made of released numbers, so this depends on nothing else and costs nothing.
    """
    try:
        return model.project_many(cliques, most=most)
    except TooLargeError:
        pass
    drawn: dict[str, NDArray[np.int64]] = {}
    found: list[Values] = []
    for clique in cliques:
        try:
            found += model.project_many([clique], most=most)
        except TooLargeError:
            if not drawn:
                rows = model.sample_codes(DRAWN_ROWS, rng=np.random.default_rng(0))
                drawn = {name: codes.astype(np.int64) for name, codes in rows.items()}
            found.append(_counted(model, clique, drawn))
    return found


def _counted(model: GraphicalStandIn, clique: Clique, drawn: dict[str, NDArray[np.int64]]) -> Values:
    shape = model.domain.allocatable_shape(clique)
    cell = np.ravel_multi_index([drawn[name] for name in clique], shape)
    return np.bincount(cell, minlength=model.domain.size(clique)).reshape(shape) / DRAWN_ROWS
