"""Few large cliques that contain many small ones, so that one pass of counting serves them all.

A counting pass over n rows costs about n steps for each clique, however many cells it has, as long as its table
stays in the processor's cache; summing a table of 2^17 cells down to its sub-cliques costs next to nothing. So the
fewest cliques win. Finding the fewest is a set cover over exponentially many candidates; this greedy one came
within about a tenth of long simulated annealing on census-like domains.

Nothing here depends on data: only on the declared sizes and the requested cliques, both public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DomainError, ParameterError

Clique = tuple[int, ...]
"""Attribute positions in ascending order."""

CACHED_CELLS = 2**17
"""Cells of an int64 table that fills one megabyte, the second-level cache of one core."""

_CANDIDATES = 16
"""Candidates grown side by side in each round; more of them gain little and cost time in proportion."""

_PROMISE = np.array([0, 16**4, 16**3, 16**2, 16, 1])
"""What a requested clique promises to a candidate that lacks 0, 1, 2, ... of its attributes; the last entry serves
all beyond. Integers, so that the cover does not depend on the order of a summation."""

Members = NDArray[np.bool_]
"""One row for each clique, true where it has the attribute."""


def clique_cover(
    cliques: Iterable[Clique], sizes: Sequence[int], *, limit: int = CACHED_CELLS
) -> list[Clique]:
    """A short list of cliques, none within another, such that each requested one is a subset of one of them.

    Accuracy    Every clique of the cover has at most `limit` cells, or is itself requested.
    Complexity  O(k m d) time for a cover of k cliques over m requested ones and d attributes; O(m d) memory.
    Gap         Greedy: the cover is short, not the shortest.

    >>> clique_cover([(0, 1), (1, 2), (0, 2), (3,)], [4, 4, 4, 10], limit=64)
    [(0, 1, 2), (3,)]
    """
    requested = sorted(set(cliques))
    _check(requested, sizes, limit)
    if len(requested) < 2:
        return requested
    wanted = np.zeros((len(requested), len(sizes)), dtype=bool)
    for row, clique in zip(wanted, requested, strict=True):
        row[list(clique)] = True
    cover = _greedy(wanted, np.array(sizes, dtype=np.float64), limit)
    cover = _trimmed(wanted, _pruned(wanted, cover))
    return sorted(tuple(np.flatnonzero(row).tolist()) for row in cover)


def _check(requested: Sequence[Clique], sizes: Sequence[int], limit: int) -> None:
    if limit < 1:
        raise ParameterError(f"limit must be at least 1 cell, not {limit}")
    if any(size < 1 for size in sizes):
        raise ParameterError("every attribute must have at least one value")
    for clique in requested:
        within = not clique or 0 <= clique[0] <= clique[-1] < len(sizes)
        if not within or any(a >= b for a, b in pairwise(clique)):
            raise DomainError(f"a clique is ascending attribute positions below {len(sizes)}, not {clique}")


def _containing(sets: Members, cliques: Members) -> NDArray[np.bool_]:
    """Which of `sets` (rows) contain which of `cliques` (columns)."""
    with np.errstate(invalid="ignore"):  # a kernel of the linear algebra may flag what it computes on padding
        shared = sets.astype(np.float32) @ cliques.T.astype(np.float32)
    return shared == cliques.sum(axis=1)


def _greedy(wanted: Members, sizes: NDArray[np.float64], limit: int) -> Members:
    """Take the candidate that covers most of what is left, until nothing is left.

    A clique is valued by the fourth power of its bits: large ones are hard to place later.
    """
    bits = np.round(np.log2(sizes) * 16) / 16
    # Dividing by the root favours small attributes a little; dividing by the bits themselves does so too much.
    price = np.sqrt(np.maximum(bits, 0.25))
    value = np.array([min(int(np.ceil(bits[clique].sum())), 32) ** 4 + 1 for clique in wanted])
    cover = []
    while len(wanted):
        candidates, lacking = _grown(wanted, value, sizes, price, limit)
        best = int(np.argmax(((lacking == 0) * value).sum(axis=1)))
        cover.append(candidates[best])
        wanted, value = wanted[lacking[best] > 0], value[lacking[best] > 0]
    return np.array(cover)


def _grown(
    wanted: Members,
    value: NDArray[np.int64],
    sizes: NDArray[np.float64],
    price: NDArray[np.float64],
    limit: int,
) -> tuple[Members, NDArray[np.intp]]:
    """Candidates, and how many attributes each lacks of each wanted clique.

    They start from the most valuable cliques; each takes on, while there is room, the attribute of most promise.
    """
    columns = np.ascontiguousarray(wanted.T)
    chosen = wanted[np.argsort(-value, kind="stable")[:_CANDIDATES]]
    lacking = np.tile(wanted.sum(axis=1), (len(chosen), 1))
    for attribute in np.flatnonzero(chosen.any(axis=0)):
        lacking[chosen[:, attribute]] -= columns[attribute]
    cells = np.where(chosen, sizes, 1).prod(axis=1)
    # The cliques of the first attribute, of the second, ...: a sum over each run is a sparse product.
    used, members = np.nonzero(columns)
    attributes, runs = np.unique(used, return_index=True)
    promise = np.zeros(chosen.shape)
    while True:
        weights = _PROMISE[np.minimum(lacking, len(_PROMISE) - 1)] * value
        promise[:, attributes] = np.add.reduceat(weights[:, members], runs, axis=1) / price[attributes]
        promise[chosen | (cells[:, None] * sizes > limit)] = 0
        attribute = promise.argmax(axis=1)
        growing = np.flatnonzero(promise[np.arange(len(chosen)), attribute] > 0)
        if not len(growing):
            return chosen, lacking
        attribute = attribute[growing]
        chosen[growing, attribute] = True
        lacking[growing] -= columns[attribute]
        cells[growing] *= sizes[attribute]


def _pruned(wanted: Members, cover: Members) -> Members:
    """Drop cliques that later choices have made superfluous, those that cover least first."""
    covers = _containing(cover, wanted)
    times = covers.sum(axis=0)
    keep = np.ones(len(cover), dtype=bool)
    for k in np.argsort(covers.sum(axis=1), kind="stable"):
        if (times[covers[k]] > 1).all():
            keep[k] = False
            times -= covers[k]
    return cover[keep]


def _trimmed(wanted: Members, cover: Members) -> Members:
    """Shrink every clique to what it alone covers: fewer cells and shorter indices for the same cover.

    What a clique alone covers, no other contains; so none ends up within another.
    """
    covers = _containing(cover, wanted)
    times = covers.sum(axis=0)
    trimmed = cover.copy()
    for k in range(len(cover)):
        trimmed[k] = wanted[covers[k] & (times == 1)].any(axis=0)
        lost = covers[k] & wanted[:, ~trimmed[k]].any(axis=1)
        covers[k, lost] = False
        times -= lost
    return trimmed
