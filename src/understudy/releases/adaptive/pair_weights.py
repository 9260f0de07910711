"""How closely the last sweep looks at pairs that no round measured, by how much they were seen to be off.

A last sweep over all pairs does two things. It finds what is wrong with pairs that no round looked at, and it
measures the others once more. Where attributes depend on few others, the rounds have found these, and noise in
what they measured is all that is left to mend; where everything depends on everything, there is much to find in
the rest. The gaps of the last round tell which: they are L1 distances of the stand-in from the table, in people.

    A stand-in that is right in law is still off by chance, in a cell of m people by 0.8·√m. So of all pairs P
    that were not measured

        found = Σ_P (gap - Σ_cells 0.8·√m) / Σ_P (what the noise of the sweep would leave)

    is how far they are off, beyond chance, in units of what can be told. From `WORTH` on they weigh as much as the
    others, and below in proportion less, down to `LIGHTEST`.

They never weigh so little that their bars would be wider than those of direct questions: each keeps a part of the
price that is `SAFE` times that of one of all the marginals which are told. Gaps were released, with noise, so this
is post-processing; and weights are fixed before the sweep's noise is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from understudy.releases.adaptive.pick import MEAN_ABSOLUTE, NoiseForecast

Values = NDArray[np.float64]

WORTH = 0.1
"""Gaps beyond chance, in units of the noise that a sweep leaves, from which on pairs are worth a full look."""

LIGHTEST = 0.1
"""The least weight of a pair: where few were measured, these are not to have nearly all of the price."""

SAFE = 1.3
"""Times a direct question's part of the price: bars of the sweep share their part of β in another way."""

STEPS = 1000
"""Of a weight, which is a short fraction."""


@dataclass(frozen=True, eq=False)
class SeenPairs:
    """What the last round saw of every pair: the stand-in's `tables` and their noisy `gaps`, both in people.

    `measured` says which of them lie in a marginal that a round measured.
    """

    tables: Sequence[Values]
    gaps: Values
    measured: NDArray[np.bool_]

    def found(self, precision: float) -> float:
        """How far pairs that were not measured are off beyond chance, if all pairs share a `precision`, 1/σ²."""
        rest = np.flatnonzero(~self.measured)
        std = np.full(rest.size, np.sqrt(len(self.tables) / precision))
        noise = NoiseForecast(self.tables).error(rest, std).sum()
        chance = sum(float(np.sqrt(np.maximum(self.tables[i], 0.0)).sum()) for i in rest.tolist())
        return (float(self.gaps[rest].sum()) - MEAN_ABSOLUTE * chance) / max(float(noise), 1e-9)

    def weights(
        self,
        precision: float,
        *,
        share: float,
        told: int,
        importance: Sequence[float] | None = None,
        beside: float = 0.0,
    ) -> tuple[Fraction, ...]:
        """Of each pair in a sweep that has the `share` of a price which pays for `told` marginals.

        A pair's `importance` is what it would weigh if the rounds had measured it, 1 where nothing is said. Larger
        marginals of the sweep weigh so much `beside` the pairs.
        """
        wanted = np.ones(len(self.tables)) if importance is None else np.array(importance, np.float64)
        least = SAFE / told / share
        if least * (len(self.tables) + beside) < 1:
            if 0 < np.count_nonzero(self.measured) < len(self.tables):
                light = min(max(self.found(precision) / WORTH, LIGHTEST), 1.0)
                wanted = np.where(self.measured, wanted, light * wanted)
            wanted = raised(wanted, least, beside)
        return tuple(Fraction(ceil(round(STEPS * weight, 6)), STEPS) for weight in wanted.tolist())


def raised(weights: Values, least: float, beside: float = 0.0) -> Values:
    """The weights, of which those that are too small are raised to a part of `least` in the sum of all.

    To that sum other marginals add what they weigh, `beside`; `least` times the number of all is less than 1.
    """
    low = np.zeros(weights.shape, np.bool_)
    while True:
        whole = (float(weights[~low].sum()) + beside) / (1 - least * int(np.count_nonzero(low)))
        more = weights < least * whole * (1 - 1e-12)
        if (more <= low).all():
            return np.where(low, least * whole, weights)
        low |= more
