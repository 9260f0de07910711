"""The loop that weighs kinds of synthetic rows (`raking`), compiled."""

from __future__ import annotations

import numpy as np

from understudy.standin.graphical.compile import compiled

LEAST = 0.3
"""Rows: cells that are told or found to hold fewer count as holding so many, so that no weight becomes 0."""

LANES, FEW_CELLS = 4, 64
"""In so many lanes weights are added up in tables of few cells: a processor waits where it adds to one place again
and again."""

MOST_RATIO = 5.0
"""By which a weight changes at once, at most, or its inverse."""


@compiled
def rake(kinds, weights, members, width, starts, strides, wanted, sweeps):
    """Scale the weights to the cells of one table after the other, so many times over; in place."""
    at = np.empty(weights.size, np.uint32)
    for _ in range(sweeps):
        for t in range(width.size):
            end = starts[t + 1] if t + 1 < width.size else wanted.size
            told = wanted[starts[t] : end]
            found = np.zeros((LANES if told.size <= FEW_CELLS else 1, told.size), np.float64)
            for i in range(at.size):
                at[i] = 0
            for k in range(width[t]):
                line, step = kinds[members[t, k]], np.uint32(strides[t, k])
                for i in range(at.size):
                    at[i] += step * line[i]
            if told.size <= FEW_CELLS:
                for i in range(at.size):
                    found[i % LANES, at[i]] += weights[i]
            else:
                for i in range(at.size):
                    found[0, at[i]] += weights[i]
            ratios = found[0]
            for cell in range(told.size):
                ratio = max(told[cell], LEAST) / max(found[:, cell].sum(), LEAST)
                ratios[cell] = min(max(ratio, 1 / MOST_RATIO), MOST_RATIO)
            for i in range(at.size):
                weights[i] *= ratios[at[i]]
