"""The public grid on which scores with noise are told: their low bits say nothing of the sealed rows.

A float c/n + σ·g has low bits that depend on c, and so on the labels: an analyst who knows the sampler can tell
which c make it possible. Here every row's value is rounded to a multiple of 1/M, M = `grid(n)`, the rounded
values are summed as whole numbers, whole noise is added, and the sum over n·M is told. All that is ever told
lies on the grid of 1/(n·M), whatever the rows are.

With rounded normal noise (`noise.normal`) what is told is the rounding, to this grid, of an ideal normal answer
about the rounded values: in total variation it is 0 from that, so β pays for nothing, and theorems on normal
noise apply. The score moves by at most 1/(2M) where values are rounded, and by half a step where the answer is:
`rounding`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FINEST = 2**20
"""Steps between 0 and 1 for the value of one row."""

MOST_BITS = 42
"""A sum of steps has no more bits than this, or the grid is coarser: noise on it stays in its samplers' range."""


def grid(rows: int) -> int:
    """M: steps between 0 and 1 for the value of one of `rows` rows; 2²⁰ up to four million rows."""
    return max(1, min(FINEST, 1 << max(0, MOST_BITS - rows.bit_length())))


def rounding(rows: int, steps: float = 0.5) -> float:
    """How far rounding can move a score: values by half of 1/M, the answer by so many steps of 1/(n·M)."""
    return (0.5 + steps / rows) / grid(rows)


def total(values: NDArray[np.float64], steps: int) -> int:
    """The sum of values in [0, 1], each in whole steps of 1/`steps`."""
    return int(np.rint(values * steps).astype(np.int64).sum())


def told(found: int, steps: int) -> float:
    """`found` steps of 1/`steps`, or the nearer end of [0, 1]: the float nearest to a point of the grid."""
    return min(max(found, 0), steps) / steps
