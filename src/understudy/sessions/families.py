"""Families of sets of cells of one attribute, and the strategy that measures them well.

    ranges, prefixes, suffixes     of an ordered attribute; prefixes have the first cell, suffixes the last
    subsets, cells                 of an unordered one: all sets, or each cell by itself

A class of questions is a product of families (`family_product`).

Promise     A family's weights tell all cells of its attribute apart, whatever was rounded.
Why         Where rounding would confuse some, the cells themselves are measured (`matrix`).
Cost        No privacy: weights follow from the number of cells and the kind alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.mechanism.matrix.ranges import MINIMAX_CELLS, minimax_prefixes
from understudy.query.box import Cells
from understudy.sessions.found_once import found_once

Values = NDArray[np.float64]

Kind = Literal["ranges", "prefixes", "suffixes", "subsets", "cells"]

MOST_MEMBERS = 1 << 11
"""Members of a family up to which they are listed one by one."""


SURELY_APART = 1 << 8
"""From this resolution on, rounded weights are not looked at for telling all cells apart: they do by far."""


@dataclass(frozen=True)
class CellFamily:
    """The non-empty sets of one kind of an attribute's `size` cells; `laplace` names the noise they have."""

    size: int
    kind: Kind
    laplace: bool = False

    @property
    def members(self) -> int:
        """How many sets the family has."""
        if self.kind == "subsets":
            return 2**self.size - 1
        return self.size * (self.size + 1) // 2 if self.kind == "ranges" else self.size

    @property
    def sizes(self) -> dict[int, int]:
        """How many sets there are of each number of cells."""
        if self.kind == "cells":
            return {1: self.size}
        of = {
            "ranges": lambda cells: self.size + 1 - cells,
            "subsets": lambda cells: comb(self.size, cells),
        }.get(self.kind, lambda _: 1)
        return {cells: of(cells) for cells in range(1, self.size + 1)}

    def holds(self, cells: Cells) -> bool:
        """Whether a non-empty set of cells is a member."""
        if self.kind == "subsets":
            return True
        if self.kind == "cells":
            return int(np.count_nonzero(cells)) == 1
        run = cells.astype(bool, copy=False).tobytes().strip(b"\0")  # a byte for each cell
        one_run = bool(run) and b"\0" not in run
        return one_run and bool(self.kind == "ranges" or cells[0 if self.kind == "prefixes" else -1])

    def holds_kind(self, kind: Kind) -> bool:
        """Whether every set of cells of this kind is a member."""
        return kind == self.kind or self.kind == "subsets" or (self.kind == "ranges" and kind != "subsets")

    @property
    def holds_all(self) -> bool:
        """Whether the set of all cells is a member."""
        return self.kind != "cells" or self.size == 1

    @property
    def holds_cells(self) -> bool:
        """Whether every single cell is a member."""
        return self.kind in {"ranges", "subsets", "cells"} or self.size == 1

    def matrix(self, resolution: int) -> NDArray[np.int64]:
        """The combinations of cells that are measured, one a row: integers, the largest of them `resolution`.

        They tell the cells apart: where rounding would confuse some, the cells themselves are measured.
        """
        cells = np.eye(self.size, dtype=np.int64)
        if self.laplace or self.size == 1 or resolution == 1:
            return cells
        whole = self._weights()
        found = np.rint(whole * (resolution / np.abs(whole).max())).astype(np.int64)
        if resolution < SURELY_APART and np.linalg.matrix_rank(found) < self.size:
            return cells
        return found

    def _weights(self) -> Values:
        """The combinations of cells that measure the family best, one a row, before rounding."""
        if self.kind == "cells":
            return np.eye(self.size)
        if (minimax := self.minimax()) is not None:
            return minimax if self.kind != "suffixes" else minimax[:, ::-1]
        even = np.full((self.size, self.size), 1 / self.size)
        return np.eye(self.size) + (_tilt(self.size) - 1) * even

    def minimax(self) -> Values | None:
        """The weights of the family on a line, which take long to find; None where it has none."""
        on_a_line = self.kind not in {"cells", "subsets"} and 2 < self.size <= MINIMAX_CELLS
        return _minimax_weights(self.size, prefixes=self.kind != "ranges") if on_a_line else None

    @cached_property
    def sets(self) -> Values:
        """Every member, as a row of 0s and 1s; raises a `ValueError` where there are too many to list."""
        if self.members > MOST_MEMBERS:
            raise ValueError("too many members to list")
        if self.kind == "subsets":
            codes = np.arange(1, 2**self.size)
            return (codes[:, None] >> np.arange(self.size) & 1).astype(np.float64)
        if self.kind == "ranges":
            starts, ends = np.triu_indices(self.size + 1, 1)
            at = np.arange(self.size)
            return ((at >= starts[:, None]) & (at < ends[:, None])).astype(np.float64)
        return self._line

    @property
    def _line(self) -> Values:
        """The members of a family that has as many as cells."""
        if self.kind == "cells":
            return np.eye(self.size)
        return np.tri(self.size) if self.kind != "suffixes" else np.tri(self.size)[:, ::-1]

    @cached_property
    def largest(self) -> Values:
        """Members among which the extremes of any norm are found: by symmetry one subset of each size."""
        if self.kind == "subsets":
            return np.tri(self.size)
        return self.sets if self.members <= MOST_MEMBERS else self._line

    @property
    def sums(self) -> Values:
        """What `extreme` looks at: on a line running sums, from that of no cell to that of all; else the cells."""
        if self.kind in {"cells", "subsets"}:
            return np.eye(self.size)
        running = np.tri(self.size + 1, self.size, -1)
        return running[:, ::-1] if self.kind == "suffixes" else running

    def extreme(self, noise: Values) -> Values:
        """The largest |sum| over the members, for noise on the family's `sums` along the first axis."""
        if self.kind == "cells":
            return np.abs(noise).max(axis=0)
        if self.kind == "subsets":
            return np.maximum(np.maximum(noise, 0).sum(axis=0), np.maximum(-noise, 0).sum(axis=0))
        high, low = noise.max(axis=0), noise.min(axis=0)
        return high - low if self.kind == "ranges" else np.maximum(high, -low)

    def number_above(self, noise: Values, width: float) -> NDArray[np.int64]:
        """How many members have a |sum| above `width`, for noise on the family's `sums` along the first axis.

        A range is a difference of two running sums. Raises a `ValueError` where subsets are too many to list.
        """
        if self.kind == "ranges":
            lags = range(1, len(noise))
            return sum(
                ((np.abs(noise[lag:] - noise[:-lag]) > width).sum(axis=0) for lag in lags),
                start=np.zeros(noise.shape[1:], np.int64),
            )
        members = self.sets @ noise if self.kind == "subsets" else noise
        return (np.abs(members) > width).sum(axis=0)


@found_once(2 * MINIMAX_CELLS)
def _minimax_weights(size: int, *, prefixes: bool) -> Values:
    """The combinations that measure all ranges of a line best, or all prefixes. All that there are are kept."""
    if prefixes:
        return minimax_prefixes(size).astype(np.float64)
    return HistogramDesign(size, ordered=True, centred=False).matrix.astype(np.float64)


@lru_cache(maxsize=64)
def _tilt(size: int) -> float:
    """The weight of the whole beside the differences, for the least (largest variance) × (price of a row)."""
    sizes = np.arange(1, size + 1)

    def cost(tilt: float) -> float:
        variance = sizes * (size - sizes) / size + sizes**2 / size / tilt**2
        return float(variance.max() * (1 - 1 / size + tilt**2 / size))

    from scipy.optimize import minimize_scalar  # late: it takes a quarter of a second to load

    return float(minimize_scalar(cost, bounds=(0.3, 8.0), method="bounded").x)  # type: ignore[union-attr]
