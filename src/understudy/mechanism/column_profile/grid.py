"""Public grids on a line of numbers: signed octaves, and finer cuts of intervals that were found to be occupied.

A grid is a rising list of edges; its cells are everything below the first edge, the intervals between
neighbours, each with its lower edge and without its upper one, and everything from the last edge on. No value
of a table goes into a grid: the first one is the same for every table, and later ones are made of counts that
have their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.float64]

LOWEST_OCTAVE, HIGHEST_OCTAVE = -40, 63
"""The octaves that are told apart: from 2^-40, below which a number is taken for 0, to 2^64."""

ZERO = 2.0**LOWEST_OCTAVE
"""What is nearer to 0 than this counts as 0."""

NEAREST = 1 / 8
"""The first empty cell beside occupied ones has this part of their whole width, each next one twice as much."""


@dataclass(frozen=True, slots=True)
class Line:
    """The line on which a column's numbers lie: where they are `whole`, so are all edges."""

    whole: bool

    def octaves(self) -> Edges:
        """Edges of the signed octaves, with one cell around 0: …, -2, -1, (0), 1, 2, 4, ….

        Whole numbers: the cells are {0}, {1}, {2, 3}, {4, …, 7}, and the same below 0.
        """
        if self.whole:
            positive = np.exp2(np.arange(0, HIGHEST_OCTAVE + 2, dtype=np.float64))
            return np.concatenate([1 - positive[::-1], positive])
        positive = np.exp2(np.arange(LOWEST_OCTAVE, HIGHEST_OCTAVE + 2, dtype=np.float64))
        return np.concatenate([-positive[::-1], positive])

    def split(self, low: float, high: float, parts: int) -> Edges:
        """The inner edges that cut [low, high) into at most so many parts of about equal width."""
        if parts < 2:
            return np.empty(0)
        if not self.whole:
            inner = low + (high - low) * np.arange(1, parts) / parts
            return np.unique(inner[(inner > low) & (inner < high)])
        step = max(1.0, (high - low) / parts)
        inner = np.unique(np.floor(low + step * np.arange(1, parts)))
        return inner[(inner > low) & (inner < high)]

    def between(self, low: float, high: float, width: float, *, from_low: bool, from_high: bool) -> Edges:
        """Inner edges of an empty stretch [low, high), ever farther apart from what is occupied beside it."""
        steps = min(width, high - low) * NEAREST * np.exp2(np.arange(80, dtype=np.float64))
        middle = (low + high) / 2
        found: list[Edges] = []
        if from_low:
            found.append((low + steps)[low + steps < (middle if from_high else high)])
        if from_high:
            found.append((high - steps)[high - steps > (middle if from_low else low)])
        inner = self.rounded(np.concatenate([np.empty(0), *found]))
        return inner[(inner > low) & (inner < high)]

    def rounded(self, edges: Edges) -> Edges:
        """Edges that are possible on this line, rising and different."""
        return np.unique(np.floor(edges + 0.5) if self.whole else edges)

    def bound(self, value: float, *, up: bool) -> float:
        """A bound on this line, no nearer to the middle than the value."""
        if not self.whole:
            return 0.0 if abs(value) <= ZERO else float(value)
        return float(ceil(value) if up else floor(value))
