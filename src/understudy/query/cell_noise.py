"""The noise on released sums, as far as ratios of them need to know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WeightedBound = Callable[[tuple[tuple[int, int], ...], float], float]
"""For (n, w), (n', w'), … and β a number that w·S + w'·S' + … reaches with probability β at most, where S is a sum
of n noises, S' one of n', and all are independent."""


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise on each cell of a marginal, by itself.

    Without a `bound`, it is within `step` of normal noise of `variance`: both can be drawn together so that they
    are never further apart. With one it is within `step` of other continuous noise, symmetric and unimodal, of
    that variance, and `bound` says how far weighted sums of such noises reach. `beta` is the marginal's part of
    the probability with which some number of the answer is outside its bounds.

    `plain` says how far sums of the noises as they are drawn, on their lattice, reach: no step is lost between
    them and continuous noise. `rounding` is the part of `step` that the values themselves were rounded by. The
    noise is `coarse` where a step is much beside its deviation: ratios of single cells are then closer by their
    errors.
    """

    variance: float
    step: float
    beta: float
    bound: WeightedBound | None = None
    plain: WeightedBound | None = None
    rounding: float = 0.0
    coarse: bool = False

    def on(self, released: Floats) -> TallyNoise:
        """That on a tally of one cell for each group, of which only one ratio is made."""
        return TallyNoise(
            released,
            np.full(released.shape, self.variance),
            np.full(released.shape, self.step),
            np.ones(released.shape),
            self.beta,
            self.bound,
            self.plain,
            np.full(released.shape, self.rounding),
        )


@dataclass(frozen=True, slots=True)
class TallyNoise:
    """What was released of a tally in each group before it was cut to what is possible, and the noise on it.

    `cells` says how many noises were added up in each group. `beta` is the probability that is left for ratios
    that the tally is a part of: 0 where its own bounds are used. `plain` and `rounding` are those of `CellNoise`,
    the latter added up in each group; without `plain`, nothing is known of the noises on their lattice.
    """

    released: Floats
    variance: Floats
    step: Floats
    cells: Floats
    beta: float
    bound: WeightedBound | None = None
    plain: WeightedBound | None = None
    rounding: Floats | float = 0.0
