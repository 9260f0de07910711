"""Column profiling: bounds, bins of equal mass and the share of missing values of many columns of numbers at once.

All columns are profiled in the same few rounds. In a round each column is counted on a grid of its own, and all
counts of all columns get one noise. The first grid is that of the signed octaves; the next ones cut what is
occupied ever finer, so that numbers far from 0 that lie close together (years, say) are found as well as those
that spread over many octaves; the last one has cells of about equal mass, and what is told is read off its
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.column_profile.density import Density
from understudy.mechanism.column_profile.grid import ZERO, Edges, Line
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.look import decided
from understudy.mechanism.parameters import whole
from understudy.noise.samplers import NoiseSource
from understudy.privacy.columns import ONE_COUNT, CountColumns
from understudy.privacy.event import Together
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation, Sensitivity

SHARES = (Fraction(18, 100), Fraction(8, 100), Fraction(6, 100), Fraction(6, 100), Fraction(59, 100))
"""What each round takes of the price: octaves, three zooms, and the cells of equal mass."""

DISTINCT = Fraction(3, 100)
"""What the number of different values takes of it."""

ZOOMED = 256
"""Cells that a zoom cuts the occupied ones into, about."""

FINAL = 20
"""Cells of equal mass in the last round: with more of them noise adds up, with fewer a cut lies within a cell."""

TAILS = (0.001, 0.003, 0.006, 0.012)
"""Shares of the mass at which the last round's cells are cut besides, at either end."""

WIDE, PARTS = 1 / 6, 3
"""A cell that is wider than this part of the whole is cut into so many: what was thought of it may be wrong."""

BEYOND = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
"""How far beyond both ends it counts, as parts of the width between them."""

FARTHEST, NEAREST = 3.4, 2.2
"""People are beyond an end where counts there are so many deviations above their noise, the more the farther."""

INSIDE = 0.3
LEAST = 0.001
"""An end is where more than this share of all, and so many deviations, lie between it and the last cell."""

MARGIN = 0.06
"""The part of the width that is added at both ends, but not across 0."""

HEAVIER = 1.8
"""Beyond three deviations, Laplace noise is about as rare as normal noise of so many times its deviation."""

BINS = 16

ABOVE_ZERO = 1e-12
"""The cut between 0 and what is above it, where 0 alone fills a bin."""

Whole = NDArray[np.int64]

CountsOn = Callable[[Edges], Whole]
"""The exact counts of a column on a grid: below the first edge, between edges, beyond the last, and missing."""


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What was found of one column; all of it is public.

    low, high  bounds between which nearly all of its numbers lie; None where too few people have one for a bound
    cuts       rising numbers between them that cut the column into bins of about equal mass: at most 15
    counts     about how many people are in each bin, which are one more than the cuts
    missing    about how many people have no number there
    distinct   about how many different numbers there are
    deviation  of the noise on a count of the last round, in people
    """

    low: float | None
    high: float | None
    cuts: tuple[float, ...]
    counts: tuple[float, ...]
    missing: float
    distinct: float
    deviation: float

    def as_plain(self) -> dict[str, Any]:
        """As a ledger keeps it."""
        return {
            "low": self.low,
            "high": self.high,
            "cuts": list(self.cuts),
            "counts": list(self.counts),
            "missing": self.missing,
            "distinct": self.distinct,
            "deviation": self.deviation,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> ColumnProfile:
        return cls(
            plain["low"],
            plain["high"],
            tuple(plain["cuts"]),
            tuple(plain["counts"]),
            plain["missing"],
            plain["distinct"],
            plain["deviation"],
        )


@dataclass(frozen=True, kw_only=True)
class ColumnProfiling:
    """The mechanism, for so many `columns`, at a price for all of them together.

    Privacy     In each round every row counts in one cell of every column: the counts of all columns side by side
                move by the sum of what a partition moves (`privacy.relation`, Lemmas 1 and 2), and get noise
                for that. Grids depend on earlier rounds' noisy counts alone, so that the rounds compose
                adaptively: the price is the sum of theirs, whatever is found. The number of different values of
                a column moves by one at most for each row that is added, removed or replaced.
    Accuracy    None is promised; `python -m bench columns` measures it.
    Complexity  One sorted copy of a column in memory, and a few hundred searches in it for each round.
    Gap         Bounds leave out a little of the mass, and more of it where noise hides more.
    """

    columns: int
    price: Price
    relation: Relation

    def __post_init__(self) -> None:
        whole(self.columns, "the number of columns", at_least=1)
        decided(self.rounds, self.different)

    @property
    def moved(self) -> Sensitivity:
        """How far neighbours move all counts of a round."""
        return self.relation.moves(CountColumns(2)).repeated(self.columns)

    @cached_property
    def rounds(self) -> tuple[Additive, ...]:
        """The noise of each round."""
        return tuple(noise_for(self.price * share, self.moved) for share in SHARES)

    @cached_property
    def different(self) -> Additive:
        """The noise of the numbers of different values."""
        one = self.relation.moves(ONE_COUNT)  # a row that is added raises the number by 0 or 1: Lemma 5
        return noise_for(self.price * DISTINCT, one.repeated(self.columns))

    @property
    def event(self) -> Together:
        return Together(tuple(mechanism.event for mechanism in (*self.rounds, self.different)))

    def profile(
        self, counts_on: CountsOn, *, distinct: int, whole: bool, noise: NoiseSource
    ) -> ColumnProfile:
        """The profile of one column, which is asked for its exact counts on one grid after the other.

        `distinct` is its exact number of different values.
        """
        line = Line(whole)
        values = float(self.different.release(np.array([distinct], np.int64), noise=noise)[0])
        octaves, *zooms, last = self.rounds
        noisy = _noisy(octaves, counts_on(line.octaves()), noise)
        among = self.columns * (noisy.size - 3)
        density = Density.of_octaves(line, noisy[1:-2], _reach(octaves), among=among)
        for zoom in zooms:
            if density is not None:
                edges, parents = density.refined(ZOOMED)
                noisy = _noisy(zoom, counts_on(edges), noise)
                density = density.after(edges, parents, noisy[1:-2], _reach(zoom))
        if density is None:  # nobody was found: only what is missing is told
            noisy = _noisy(last, counts_on(np.zeros(1)), noise)
            missing = float(max(noisy[-1], 0))
            return ColumnProfile(None, None, (), (), missing, values, _deviation(last))
        edges = _final_grid(density)
        noisy = _noisy(last, counts_on(edges), noise)
        return _read_off(line, density, edges, noisy, last, values)


def _noisy(mechanism: Additive, counts: Whole, noise: NoiseSource) -> NDArray[np.float64]:
    return mechanism.release(counts, noise=noise).astype(np.float64)


def _deviation(mechanism: Additive) -> float:
    return float(mechanism.variance) ** 0.5


def _reach(mechanism: Additive) -> float:
    """What thresholds are multiples of: the deviation, or more where noise has heavier tails than normal noise."""
    return _deviation(mechanism) * (HEAVIER if isinstance(mechanism, LaplaceMechanism) else 1.0)


def _final_grid(density: Density) -> Edges:
    """Cells of about equal mass, finer ones at both ends, and some beyond."""
    low, high = density.hull
    inner = np.arange(1, FINAL) / FINAL
    tails = np.array(TAILS)
    beyond = np.array(BEYOND) * (high - low)
    shares = np.unique(np.concatenate([tails, inner, 1 - tails]))
    inside = np.unique(np.concatenate([[low], density.at(shares), [high]]))
    wide = np.flatnonzero(np.diff(inside) > WIDE * (high - low))
    split = [density.line.split(float(inside[at]), float(inside[at + 1]), PARTS) for at in wide]
    return density.line.rounded(np.concatenate([low - beyond, inside, *split, high + beyond]))


def _read_off(
    line: Line,
    density: Density,
    edges: Edges,
    noisy: NDArray[np.float64],
    mechanism: Additive,
    distinct: float,
) -> ColumnProfile:
    counts, missing = noisy[1:-2], float(max(noisy[-1], 0))
    low, high = density.hull
    before, behind = int((edges[:-1] < low).sum()), int((edges[1:] > high).sum())
    people = max(float(counts[before : counts.size - behind].sum()), 1.0)
    first = _end(counts, before, people, _reach(mechanism))
    last = counts.size - 1 - _end(counts[::-1], behind, people, _reach(mechanism))
    if last < first:  # noise alone: take all that was counted within the hull
        first, last = before, max(counts.size - behind - 1, before)
    start, end = float(edges[first]), float(edges[last + 1])
    reached = np.concatenate([[0.0], np.cumsum(counts[first : last + 1])])
    reached = (np.maximum.accumulate(reached) + np.minimum.accumulate(reached[::-1])[::-1]) / 2
    reached = np.maximum.accumulate(np.clip(reached, 0.0, None))
    total = max(float(reached[-1]), 1.0)
    # A tiny slope makes every share be reached at one place.
    slope = np.arange(reached.size) * 1e-9 * total
    places = np.interp(np.arange(1, BINS) / BINS * total, reached + slope, edges[first : last + 2])
    cuts = np.unique([_cut(line, float(place)) for place in places])
    margin = MARGIN * (end - start)
    bottom = line.bound(max(start - margin, 0.0) if start >= 0 else start - margin, up=False)
    top = line.bound(min(end + margin, 0.0) if end <= 0 else end + margin, up=True)
    if top <= bottom:
        top = bottom + (1.0 if line.whole else max(abs(bottom) * 2.0**-40, 2.0**-40))
    inside = cuts[(cuts > bottom) & (cuts < top)]
    ranks = np.interp(np.concatenate([[bottom], inside, [top]]), edges[first : last + 2], reached)
    return ColumnProfile(
        bottom,
        top,
        tuple(map(float, inside)),
        tuple(round(float(count), 1) for count in np.diff(ranks)),
        round(missing, 1),
        distinct,
        round(_deviation(mechanism), 3),
    )


def _cut(line: Line, place: float) -> float:
    """Where a bin begins; one that would begin within the cell of 0 begins right above 0, which is then a bin."""
    return ABOVE_ZERO if not line.whole and abs(place) <= ZERO else line.bound(place, up=False)


def _end(counts: NDArray[np.float64], beyond: int, people: float, deviation: float) -> int:
    """The cell at which the people begin, of cells from outside in, of which `beyond` are beyond the hull."""
    outside = np.linspace(FARTHEST, NEAREST, beyond)
    inside = np.full(counts.size - beyond, INSIDE)
    for cells, deviations, first in ((counts[:beyond], outside, 0), (counts[beyond:], inside, beyond)):
        height = LEAST * people + deviations * deviation * np.sqrt(np.arange(1, cells.size + 1))
        above = np.flatnonzero(np.cumsum(cells) > height)
        if above.size:
            return first + int(above[0])
    return beyond


def counts_of(chunks: Sequence[NDArray[np.float64]], missing: int) -> CountsOn:
    """The counts of a column that is held in memory, in sorted pieces."""

    def counts_on(edges: Edges) -> Whole:
        total = np.zeros(edges.size + 1, np.int64)
        for chunk in chunks:
            places = np.searchsorted(chunk, edges, side="left")
            total += np.diff(np.concatenate([[0], places, [chunk.size]]))
        return np.append(total, missing)

    return counts_on


def distinct_of(chunks: Sequence[NDArray[np.float64]]) -> int:
    """How many different values there are in sorted pieces of a column."""
    firsts = [chunk[np.r_[True, chunk[1:] != chunk[:-1]]] for chunk in chunks if chunk.size]
    if len(firsts) <= 1:
        return sum(first.size for first in firsts)
    return int(np.unique(np.concatenate(firsts)).size)
