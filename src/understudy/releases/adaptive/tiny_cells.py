"""Cells that are more likely empty than not are told as empty, as long as no value loses people that are noticed.

A stand-in expects 0.3 people in one cell and 0.1 in another. The table has whole people there, mostly none: a
Poisson count of a mean below ln 2 has the median 0, and the number with the least expected distance from a count
is its median, not its mean. A table of thousands of such cells is nearer to the truth with 0 in them.

Sums over many such cells would be too small then. So the least cells are emptied first, and of the people with one
value of an attribute at most `LOST` standard deviations of the noise of a typical measurement: noise moves these
sums by more. The number of rows is kept: all other cells are scaled up alike. Pairs and columns are told for
themselves and are not touched. All of it is post-processing.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.compile import compiled

Values = NDArray[np.float64]

TINY = 0.5
"""People expected in a cell, below which it is told as empty. That is less than ln 2, as stand-ins expect too few
people rather than too many in such cells."""

LOST = 0.5
"""Standard deviations of the noise of a typical measurement: people whom a table may lose of any one value."""


def with_tiny_cells_empty(table: Values, noise: float) -> Values:
    """A table of counts with its tiny cells emptied and the same sum; `noise` is the standard deviation above.

    Tables of fewer than three attributes stay as they are: sums of larger ones are compared with them.
    """
    if table.ndim < 3:
        return table
    flat = table.ravel().copy()
    tiny = np.flatnonzero((flat > 0) & (flat < TINY))
    least_first = tiny[np.argsort(flat[tiny], kind="stable")]
    starts = [0, *accumulate(table.shape)]
    values = np.stack(
        [
            place + start
            for place, start in zip(np.unravel_index(least_first, table.shape), starts, strict=False)
        ]
    )
    _empty(flat, least_first, values, np.zeros(starts[-1]), LOST * noise)
    held = float(flat.sum())
    return flat.reshape(table.shape) * (float(table.sum()) / held) if held > 0 else table


@compiled
def _empty(counts, cells, values, lost, most):
    """Empty cells in this order, each where none of its values has then lost more than `most`."""
    for i in range(cells.size):
        count = counts[cells[i]]
        fits = True
        for a in range(values.shape[0]):
            fits = fits and lost[values[a, i]] + count <= most
        if fits:
            counts[cells[i]] = 0.0
            for a in range(values.shape[0]):
                lost[values[a, i]] += count
