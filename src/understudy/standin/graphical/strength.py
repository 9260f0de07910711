"""How strong dependences are, and how much slack they should be fitted with.

A fit lets measurements be missed by more where a log potential is large, as if small ones were more likely. How
large they usually are depends on the table: where attributes follow from each other they are large, and slack
that suits a weak dependence loses what was measured of a strong one. A first, smoother fit tells how large they
are, in cells of enough people to show it. This is post-processing of what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.standin.graphical.tree import Attributes, Values

USUAL = 0.25
"""Mean square of the log potentials of an interaction for which the slack is right as it is."""

KNOWN = 2.0
"""Standard deviations of its noise that a cell's people must be, to show how strong a dependence is."""

IMAGINED = 5.0
"""Cells of the mean strength, beside those of an interaction that show its own: few would say too little."""

LEAST, MOST = 0.5, 2.0
"""Times the usual slack: a dependence is never trusted or doubted more, whatever the first fit says."""


@dataclass(frozen=True)
class SeenStrength:
    """The sum of the squares of log potentials in the cells of a part that show them, and how many these are."""

    squares: float
    cells: int

    @classmethod
    def of(cls, effects: Values, held: Values, deviation: float) -> SeenStrength:
        """Of a part with these log potentials, which holds so many people, measured with that noise."""
        known = held > KNOWN * deviation
        return cls(float(np.sum(effects[known] ** 2)), int(np.count_nonzero(known)))


def slack_times(seen: Mapping[Attributes, SeenStrength]) -> tuple[dict[Attributes, float], float]:
    """By how much to multiply the slack of each interaction, and that of single attributes: by all together.

    A log potential t ~ N(0, s) that moves m·t people, measured with noise of variance v, is most likely missed by
    v/(m·s) for each unit: slack is inverse to the strength s.
    """
    squares, cells = sum(one.squares for one in seen.values()), sum(one.cells for one in seen.values())
    mean = squares / cells if cells else USUAL
    own = {part: (s.squares + IMAGINED * mean) / (s.cells + IMAGINED) for part, s in seen.items()}
    return {part: _times(strength) for part, strength in own.items()}, _times(mean)


def _times(strength: float) -> float:
    return min(max(USUAL / max(strength, 1e-9), LEAST), MOST)
