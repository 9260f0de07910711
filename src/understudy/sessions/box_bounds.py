"""What counts of boxes say of other boxes: at most what a box around it has, at least what one inside it has.

This is monotonicity alone; it costs neither privacy nor any of the failure probability. All boxes that were
learnt are compared at once, as words of bits (`query.box.Grid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.query.box import Box, Grid

Words = NDArray[np.uint64]
Values = NDArray[np.float64]
Interval = tuple[float, float]

MOST_BOXES = 1 << 15
"""Boxes that are kept; beyond so many the oldest are forgotten first."""


@dataclass(eq=False)
class BoxBounds:
    """Intervals of the counts of boxes, in people, and the bounds that follow for others by monotonicity.

    Promise     Where the intervals hold, so does every bound that follows.
    """

    grid: Grid
    _words: Words = field(init=False)
    _masks: Words = field(init=False)
    _low: Values = field(init=False)
    _high: Values = field(init=False)
    _used: int = 0

    def __post_init__(self) -> None:
        self._words = np.zeros((64, self.grid.everyone.size), np.uint64)
        self._low, self._high = np.zeros(64), np.zeros(64)
        self._masks = np.zeros(64, np.uint64)

    def __bool__(self) -> bool:
        """Whether anything was learnt."""
        return self._used > 0

    def copy(self) -> BoxBounds:
        """The same bounds, to be added to; this one stays as it is as long as nobody adds to it.

        Both hold one list of boxes: `learn` writes beyond the end that this one knows, or copies the list first.
        """
        return copy(self)

    def learn(self, box: Box, interval: Interval) -> None:
        """Add that the count of a box lies in an interval, in people."""
        if self._used == len(self._low) and self._used < MOST_BOXES:
            self._words = np.concatenate([self._words, np.zeros_like(self._words)])
            self._masks = np.concatenate([self._masks, np.zeros_like(self._masks)])
            self._low = np.concatenate([self._low, np.zeros_like(self._low)])
            self._high = np.concatenate([self._high, np.zeros_like(self._high)])
        if self._used >= MOST_BOXES:  # the oldest is written over, which readers of other copies look at
            self._words, self._masks = self._words.copy(), self._masks.copy()
            self._low, self._high = self._low.copy(), self._high.copy()
        place = self._used % MOST_BOXES
        self._words[place] = self.grid.words(box)
        self._masks[place] = self.grid.mask(box)
        self._low[place], self._high[place] = interval
        self._used += 1

    def interval(self, box: Box) -> Interval:
        """At most what a box around it has, at least what a box inside it has."""
        used = min(self._used, MOST_BOXES)
        if not used:
            return 0.0, np.inf
        own, mask, masks = self.grid.words(box), self.grid.mask(box), self._masks[:used]
        # A box around it has no condition on any other attribute, and one inside it has one on each of its own.
        around, inside = np.flatnonzero((masks & ~mask) == 0), np.flatnonzero((masks & mask) == mask)
        low, high = 0.0, np.inf
        if around.size:
            held = ((self._words[around] & own) == own).all(axis=1)
            high = float(self._high[around[held]].min(initial=np.inf))
        if inside.size:
            held = ((self._words[inside] & ~own) == 0).all(axis=1)
            low = float(self._low[inside[held]].max(initial=0.0))
        return low, high

    def intervals(self, boxes: Sequence[Box]) -> tuple[Values, Values]:
        """The same for several boxes that have conditions on the same attributes: their lower and upper ends."""
        low, high = np.zeros(len(boxes)), np.full(len(boxes), np.inf)
        used = min(self._used, MOST_BOXES)
        if not used:
            return low, high
        mine = np.stack([self.grid.words(box) for box in boxes])
        mask, masks = self.grid.mask(boxes[0]), self._masks[:used]
        # A box around one has no condition on any other attribute, and holds at least what all of them share.
        around = np.flatnonzero((masks & ~mask) == 0)
        if around.size:
            shared = np.bitwise_and.reduce(mine)
            around = around[((self._words[around] & shared) == shared).all(axis=1)]
        # A box inside one has a condition on each of its attributes, and holds no more than all of them together.
        inside = np.flatnonzero((masks & mask) == mask)
        if inside.size:
            whole = np.bitwise_or.reduce(mine)
            inside = inside[((self._words[inside] & ~whole) == 0).all(axis=1)]
        for i, own in enumerate(mine):
            if around.size:
                held = ((self._words[around] & own) == own).all(axis=1)
                high[i] = self._high[around[held]].min(initial=np.inf)
            if inside.size:
                held = ((self._words[inside] & ~own) == 0).all(axis=1)
                low[i] = self._low[inside[held]].max(initial=0.0)
        return low, high
