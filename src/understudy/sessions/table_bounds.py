"""Upper bounds that released tables give for tables inside them.

A cell of a marginal by B, of the rows in a box W, is a box itself: the rows of W with certain values on B. It
holds no more rows than any box around it. So a cell of a table by A, of the rows in V, bounds it from above if V
holds W and every attribute of A is one of B, or is fixed to a single cell by W: a table bounds its drill-downs.
This is monotonicity alone; it costs neither privacy nor any of the failure probability.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.query.box import Box

if TYPE_CHECKING:
    from understudy.sessions.knowledge import ReleasedClass

Values = NDArray[np.float64]

MOST_NAMES = 6
"""A table on more attributes, with those that its rows fix, is not looked for inside others."""

MOST_ALIKE = 1 << 10
"""Tables by the same attributes that are kept; older ones are forgotten first."""


@dataclass(eq=False)
class UpperEnds:
    """The upper ends of the cells of released tables, and what they say of the tables inside them.

    Promise     Where the upper ends hold, so does every bound that follows.
    Why         Monotonicity, as the module says.
    """

    _held: dict[Clique, deque[tuple[Box, Values]]] = field(default_factory=dict)

    def copy(self) -> UpperEnds:
        """The same ends, to be added to."""
        return UpperEnds({by: held.copy() for by, held in self._held.items()})

    def learn(self, by: Clique, where: Box, high: Values) -> None:
        """Add upper ends, in people, for the cells of `by` among the rows in a box."""
        self._held.setdefault(by, deque(maxlen=MOST_ALIKE)).append((where, high))

    def above(self, by: Clique, where: Box) -> Values:
        """Upper ends, in people, for the cells of a marginal; infinite where no released table contains them."""
        bounds = np.full(where.domain.shape(by), np.inf)
        for names in around(by, where):
            for outer, high in self._held.get(names, ()):
                if _holds(outer, where):
                    bounds = np.minimum(bounds, along(high, names, by, where))
        return bounds


def around(by: Clique, where: Box) -> Iterator[Clique]:
    """The attributes of tables that may be around a marginal: its own, and those that its rows fix."""
    fixed = [name for name, cells in where.sides.items() if cells.sum() == 1]
    names = where.domain.clique((*by, *fixed))
    if len(names) <= MOST_NAMES:
        for size in range(1, len(names) + 1):
            yield from combinations(names, size)


def of_marginals(held: ReleasedClass, by: Clique, where: Box) -> tuple[Values, Values]:
    """Ends that marginals of all rows give the cells of one of the rows in a box: those around it, and its own."""
    low, high = np.zeros(where.domain.shape(by)), np.full(where.domain.shape(by), np.inf)
    everyone, whole = Box(where.domain, {}), where.domain.clique({*by, *where.sides})
    for names in around(by, where):
        if len(names) > 2 and names != whole:
            continue  # many more cells, and few that are not known from pairs
        table = held.table(names, everyone)
        if table is not None:
            high = np.minimum(high, along(table.high, names, by, where))
            if names == whole:
                low = np.maximum(low, along(table.low, names, by, where))
    return low, high


def along(table: Values, names: Clique, by: Clique, where: Box) -> Values:
    """A table by `names`, at the cells that the rows in a box fix, laid along the axes of `by`."""
    at = tuple(slice(None) if name in by else int(np.flatnonzero(where.sides[name])[0]) for name in names)
    sizes = dict(zip(names, table.shape, strict=True))
    return table[at].reshape([sizes[name] if name in names else 1 for name in by])


def _holds(outer: Box, inner: Box) -> bool:
    """Whether one box lies within another."""
    return all(
        name in inner.sides and not (inner.sides[name] & ~cells).any() for name, cells in outer.sides.items()
    )
