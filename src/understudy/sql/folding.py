"""Released cells, summed over the groups of a statement: a value with bounds for each tally of each group.

If all cells are within their bounds, so is every sum. Where running sums or the law of the noise are known,
they are folded beside it: some aggregates have closer bounds by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.query.cell_noise import CellNoise, TallyNoise
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.sql.aggregate import Count, Folded
from understudy.sql.collect import Aggregate
from understudy.sql.grid import Floats
from understudy.sql.group import Grouping, Part, Tally
from understudy.sql.measured import MeasuredMean, MeasuredSpread
from understudy.sql.shares import OfShares, SharedCount

Noises = Sequence[CellNoise | None]
"""For each marginal the noise on its cells, where it is known; empty where nothing is."""

Through = Callable[[str], tuple[Floats, Floats] | None]
"""Tells the lower and upper ends of running sums along an attribute of a marginal; None where it knows none."""


@dataclass(frozen=True, eq=False)
class ReleasedCells:
    """What is known of the cells of a statement's marginals, in the order of the marginals.

    values    the released value of each cell
    above     how far the truth can be above it
    below     how far the truth can be below it
    most      the most rows that there can be
    throughs  for each marginal the bounds of running sums along an attribute, or None; empty where there are none
    noises    for each marginal the noise on its cells, or None; empty where none is known
    measured  whether the values rest on noise and its bounds alone, and not on a model that knows more than these
    """

    values: Sequence[Floats]
    above: Sequence[Floats]
    below: Sequence[Floats]
    most: float
    throughs: Sequence[Through | None] = ()
    noises: Noises = ()
    measured: bool = False


@dataclass(frozen=True, eq=False)
class Folding:
    """How the cells of a statement's marginals are summed: by its groups, for its aggregates.

    `parts` are for each tally the places of its marginals, and which part of the tally each of them is.
    """

    grouping: Grouping
    aggregates: Mapping[int, Aggregate]
    parts: Mapping[tuple[str, str], Sequence[tuple[int, Part]]]

    def folded(self, tally: Tally, cells: ReleasedCells) -> Folded:
        """The sums of a tally in each group, between bounds that hold where those of the cells do."""
        places = self.parts[tally.key]
        parts = [part for _, part in places]
        value = self.grouping.fold(tally, parts, [cells.values[i] for i, _ in places])
        over = self.grouping.fold(tally, parts, [cells.above[i] for i, _ in places])
        under = over
        if cells.below is not cells.above:
            under = self.grouping.fold(tally, parts, [cells.below[i] for i, _ in places])
        least, largest = (0.0, cells.most) if tally.moment is None else _range_of(tally.moment, cells.most)
        through = self._through(tally, cells.throughs) if cells.throughs and tally.over else None
        value, low, high = (np.clip(part, least, largest) for part in (value, value - under, value + over))
        noise = self._noise(tally, cells.values, cells.noises)
        return Folded(value, low, high, through, noise, cells.most, cells.measured)

    def error(self, errors: Sequence[Floats], noises: Noises, listed: NDArray[np.bool_]) -> float:
        """How far a number of people can be off in one of the listed groups (`CompiledSql.error`)."""
        nothing = [np.zeros(cells.shape) for cells in errors]

        def fold(tally: Tally) -> Folded:
            parts = [part for _, part in self.parts[tally.key]]
            off = self.grouping.fold(tally, parts, [errors[place] for place, _ in self.parts[tally.key]])
            return Folded(np.zeros(off.shape), -off, off, noise=self._noise(tally, nothing, noises))

        counts = [one for one in self.aggregates.values() if isinstance(one, Count | SharedCount)]
        found = [float(one.half_width(fold)[listed].max(initial=0.0)) for one in counts]
        told = {place for one in counts for tally in one.tallies for place, _ in self.parts[tally.key]}
        found += [float(cells.max(initial=0.0)) for i, cells in enumerate(errors) if i not in told]
        return max(found, default=0.0)

    def _through(self, tally: Tally, throughs: Sequence[Through | None]) -> tuple[Floats, Floats] | None:
        """The ends of the running sums along the tally's attribute, where every part of it has some."""
        found = []
        for place, part in self.parts[tally.key]:
            known = throughs[place]
            ends = None if known is None or (part.possible == 0).any() else known(tally.over)
            if ends is None:
                return None
            found.append((part, ends))
        if not found:
            return None
        parts = [part for part, _ in found]
        low, high = (self.grouping.fold(tally, parts, [ends[side] for _, ends in found]) for side in (0, 1))
        return low, high

    def _noise(self, tally: Tally, values: Sequence[Floats], noises: Noises) -> TallyNoise | None:
        """The noise on a tally in each group, where that on all its marginals is known."""
        known = self._known(tally, noises)
        if known is None:
            return None
        places, parts = zip(*self.parts[tally.key], strict=True)
        released = [values[i] for i in places]
        each = [np.ones(cells.shape) for cells in released]
        variances = [cells * noise.variance for cells, noise in zip(each, known, strict=True)]
        steps = [cells * noise.step for cells, noise in zip(each, known, strict=True)]
        alone = self._ratios_alone(noises)
        left = (noise.beta / alone[i] for i, noise in zip(places, known, strict=True) if i in alone)
        noisy = [cells * (noise.variance > 0) for cells, noise in zip(each, known, strict=True)]
        rounded = [cells * noise.rounding for cells, noise in zip(each, known, strict=True)]
        of_cells = (released, variances, steps, noisy, rounded)
        *folded, rounding = (self.grouping.fold(tally, parts, cells) for cells in of_cells)
        plain = {noise.plain for noise in known if noise.variance}
        return TallyNoise(
            *folded,
            beta=sum(left),
            bound=next((noise.bound for noise in known if noise.variance), None),
            plain=plain.pop() if len(plain) == 1 else None,
            rounding=rounding,
        )

    def _known(self, tally: Tally, noises: Noises) -> list[CellNoise] | None:
        """The noises on the marginals of a tally, where the law of what they add up to is known; else None."""
        places = [place for place, _ in self.parts[tally.key]]
        known = [noise for noise in (noises[i] for i in places if noises) if noise is not None]
        if len(known) < len(places) or not known or tally.over:
            return None
        if any(noise.coarse for noise in known) and not self._adds_up:
            return None
        return known if len({noise.bound for noise in known if noise.variance}) <= 1 else None

    @cached_property
    def _adds_up(self) -> bool:
        """Whether each tally whose noise an interval can rest on has groups of several cells.

        It is decided for all of them together: β is paid once, for laws or for errors of cells, and not for both.
        """
        tallies = {tally.key: tally for found in self._by_law.values() for tally in found}
        return all(self._merges(tally) for tally in tallies.values())

    def _ratios_alone(self, noises: Noises) -> dict[int, int]:
        """For each marginal that averages and variances alone are made of, how many of these there are.

        Only those count whose intervals rest on laws (`_lawful`). One that rests on errors of cells uses up β of
        all its marginals, and of these nothing is left for the others.
        """
        users: dict[int, list[bool]] = {}
        laws = {name: self._lawful(name, noises) for name in self.aggregates}
        different = {one.key if laws[name] else name: name for name, one in self.aggregates.items()}
        for name in different.values():
            aggregate, lawful = self.aggregates[name], {tally.key for tally in laws[name]}
            used = {(place, tally.key) for tally in aggregate.tallies for place, _ in self.parts[tally.key]}
            for place, key in used:
                users.setdefault(place, []).append(key in lawful)
        return {place: len(ratios) for place, ratios in users.items() if all(ratios)}

    def _lawful(self, name: int, noises: Noises) -> tuple[Tally, ...]:
        """Those of `_by_law` of an aggregate, if the laws of all noises on them are known and alike; else none.

        This is when `JointNoise` joins them, if something is left of β.
        """
        tallies = self._by_law[name]
        known = [self._known(tally, noises) for tally in tallies]
        kinds = {noise.bound for noises_of in known for noise in noises_of or () if noise.variance}
        return tallies if all(known) and len(kinds) <= 1 else ()

    @cached_property
    def _by_law(self) -> dict[int, tuple[Tally, ...]]:
        """The tallies of each aggregate on whose noise its interval can rest; none where it rests on errors."""
        return {name: self._with_law(aggregate) for name, aggregate in self.aggregates.items()}

    def _with_law(self, aggregate: Aggregate) -> tuple[Tally, ...]:
        if isinstance(aggregate, OfShares):
            return aggregate.shares.tallies
        if isinstance(aggregate, Count):
            return aggregate.tallies if self._merges(aggregate.rows) else ()
        return aggregate.tallies if isinstance(aggregate, MeasuredMean | MeasuredSpread) else ()

    def _merges(self, tally: Tally) -> bool:
        """Whether some group is made of several cells in which a row can have a weight."""
        for _, part in self.parts[tally.key]:
            possible = np.broadcast_to(part.possible > 0, part.marginal.shape).ravel()
            if np.bincount(part.groups, weights=possible).max(initial=0) > 1:
                return True
        return False


def _range_of(moment: Moment | QuantileEnd, rows: float) -> tuple[float, float]:
    """The least and the most that a moment can add up to over so many rows; a place is between 0 and 1."""
    if isinstance(moment, QuantileEnd):
        return 0.0, 1.0
    return (float(moment.low) * rows if moment.low else 0.0), float(moment.high) * rows
