"""The noise on released sums, as far as ratios of them need to know it: nearly normal, of a known variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise on each cell of a marginal, by itself: within `step` of normal noise of `variance`.

    That is, both can be drawn together so that they are never further apart. `beta` is the marginal's part of the
    probability with which some number of the answer is outside its bounds.
    """

    variance: float
    step: float
    beta: float

    def on(self, released: Floats) -> TallyNoise:
        """That on a tally of one cell for each group, of which only one ratio is made."""
        return TallyNoise(
            released, np.full(released.shape, self.variance), np.full(released.shape, self.step), self.beta
        )


@dataclass(frozen=True, slots=True)
class TallyNoise:
    """What was released of a tally in each group before it was cut to what is possible, and the noise on it.

    `beta` is the probability that is left for ratios that the tally is a part of: 0 where its own bounds are used.
    """

    released: Floats
    variance: Floats
    step: Floats
    beta: float
