"""The loop that weighs kinds of synthetic rows (`raking`), compiled."""

from __future__ import annotations

import numpy as np

from understudy.standin.graphical.compile import compiled

LEAST = 0.3
"""Rows: cells that are told or found to hold fewer count as holding so many, so that no weight becomes 0."""

MOST_RATIO = 5.0
"""By which a weight changes at once, at most, or its inverse."""


@compiled
def rake(kinds, weights, members, width, starts, strides, wanted, sweeps):
    """Scale the weights to the cells of one table after the other, so many times over; in place."""
    at = np.empty(weights.size, np.uint32)
    for _ in range(sweeps):
        for t in range(width.size):
            end = starts[t + 1] if t + 1 < width.size else wanted.size
            found, told = np.zeros(end - starts[t], np.float64), wanted[starts[t] : end]
            for i in range(at.size):
                at[i] = 0
            for k in range(width[t]):
                line, step = kinds[members[t, k]], np.uint32(strides[t, k])
                for i in range(at.size):
                    at[i] += step * line[i]
            for i in range(at.size):
                found[at[i]] += weights[i]
            for cell in range(found.size):
                ratio = max(told[cell], LEAST) / max(found[cell], LEAST)
                found[cell] = min(max(ratio, 1 / MOST_RATIO), MOST_RATIO)
            for i in range(at.size):
                weights[i] *= found[at[i]]
