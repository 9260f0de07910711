"""Rows drawn from a junction tree so that their marginals follow the model's as closely as whole rows can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.belief import Beliefs
from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.tree import Attributes, JunctionTree, Layout

Codes = NDArray[np.unsignedinteger]


def sample(
    layout: Layout, tree: JunctionTree, beliefs: Beliefs, rows: int, rng: np.random.Generator
) -> dict[int, Codes]:
    """Codes of `rows` rows for each attribute.

    Cliques are taken from the roots down. The rows that agree on a separator are dealt to the cells of the clique
    systematically: at equal distances along the clique's conditional rates, from a random beginning, in random
    order. So each row follows the model, and within each separator every run of cells gets its expected number of
    rows, rounded up or down.
    """
    codes: dict[int, Codes] = {}
    for j, clique in enumerate(tree.cliques):
        separator = tree.separators[j]
        rest = tuple(a for a in clique if a not in separator)
        rates = beliefs.clique(j).reshape(layout.shape(clique))
        rates = rates.transpose([clique.index(a) for a in (*separator, *rest)])
        cumulative = np.cumsum(rates.reshape(layout.cells(separator), -1), axis=1)
        cumulative = np.ascontiguousarray(
            cumulative
        )  # as `_place` reads it; else it would be compiled once more
        cells = np.empty(rows, np.int64)
        group = _cells(layout, separator, codes, rows)
        _place(rng.permutation(rows), group, rng.random(), cumulative, cells)
        for a, code in zip(rest, np.unravel_index(cells, layout.shape(rest)), strict=True):
            codes[a] = code.astype(np.min_scalar_type(layout.sizes[a] - 1))
    return codes


def _cells(layout: Layout, attributes: Attributes, codes: dict[int, Codes], rows: int) -> NDArray[np.int64]:
    """The cell of each row."""
    flat = np.zeros(rows, np.int64)
    for a in attributes:
        flat = flat * layout.sizes[a] + codes[a]
    return flat


@compiled
def _place(order, group, offset, cumulative, cells):
    """The cell of each row: the row that comes r-th of the n in its group stands at (r + offset) / n of its mass.

    Row g of `cumulative` holds the running sums of the rates within group g; rows come in `order`. Groups have
    offsets spaced by the golden ratio, so that what many small groups round away evens out.
    """
    groups, width = cumulative.shape
    sizes = np.zeros(groups, np.int64)
    seen = np.zeros(groups, np.int64)
    offsets = np.empty(groups)
    for i in range(group.size):
        sizes[group[i]] += 1
    for g in range(groups):
        offsets[g] = offset
        if sizes[g] > 0:
            offset = (offset + 0.6180339887498949) % 1.0
    for k in range(order.size):
        i = order[k]
        g = group[i]
        mass = cumulative[g, width - 1]
        # Strictly below the mass, so that rounding never leads into cells without any.
        position = min((seen[g] + offsets[g]) / sizes[g] * mass, mass * (1 - 2.0**-52))
        seen[g] += 1
        low, high = 0, width - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[g, middle] > position:
                high = middle
            else:
                low = middle + 1
        cells[i] = low
