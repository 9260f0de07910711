"""What is known of where a column's numbers lie after some rounds of noisy counts: masses of cells, in people.

Everything here is a function of counts that have their noise, and of public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.column_profile.grid import Edges, Line

Masses = NDArray[np.float64]

DETAIL = 3.0
"""Two halves of a cell are told apart where their noisy counts differ by more than so many deviations."""

EVIDENT = 3.5
"""A cell that was empty is occupied where its count is above so many deviations of its noise."""

BESIDE = 2.5
"""The same for an octave beside occupied ones."""

AROUND = 3
"""Octaves that are counted beyond the occupied ones."""


@dataclass(frozen=True)
class Density:
    """Cells between `edges` with the `masses` that they are estimated to have, 0 where nobody was found.

    `variances` are about those of the estimates.
    """

    line: Line
    edges: Edges
    masses: Masses
    variances: Masses

    @classmethod
    def of_octaves(cls, line: Line, noisy: Masses, deviation: float, *, among: int) -> Density | None:
        """The occupied octaves and some around them, from noisy counts of all; None where none is occupied.

        An octave is occupied where its count is above what noise reaches in any of `among` counts with probability
        1/20. Octaves beside it are, where they are likely to be.
        """
        edges = line.octaves()
        height = deviation * sqrt(2 * log(20 * among))
        occupied = noisy > height
        if not occupied.any():
            return None
        first, last = int(np.argmax(occupied)), len(noisy) - 1 - int(np.argmax(occupied[::-1]))
        while first > 0 and noisy[first - 1] > BESIDE * deviation:
            first -= 1
        while last < len(noisy) - 1 and noisy[last + 1] > BESIDE * deviation:
            last += 1
        low, high = max(first - AROUND, 0), min(last + AROUND, len(noisy) - 1)
        occupied[[first, last]] = True
        masses = np.where(occupied, np.maximum(noisy, 1.0), 0.0)[low : high + 1]
        return cls(line, edges[low : high + 2], masses, np.full(masses.size, deviation**2))

    @property
    def hull(self) -> tuple[float, float]:
        """From where to where people were found."""
        found = np.flatnonzero(self.masses > 0)
        return float(self.edges[found[0]]), float(self.edges[found[-1] + 1])

    def refined(self, cells: int) -> tuple[Edges, NDArray[np.int64]]:
        """Edges that cut each cell by its share of about so many cells; and for each new cell the old one."""
        parts = np.rint(cells * self.masses / self.masses.sum()).astype(int)
        edges, parents = [self.edges[:1]], list[int]()
        for place, part in enumerate(parts):
            inner = self.line.split(float(self.edges[place]), float(self.edges[place + 1]), int(part))
            edges += [inner, self.edges[place + 1 : place + 2]]
            parents += [place] * (inner.size + 1)
        return np.concatenate(edges), np.array(parents, np.int64)

    def after(self, edges: Edges, parents: NDArray[np.int64], noisy: Masses, deviation: float) -> Density:
        """The density after noisy counts on cells that `refined` has made; it never becomes empty."""
        masses, variances = np.zeros(noisy.size), np.full(noisy.size, deviation**2)
        starts = np.flatnonzero(np.r_[True, np.diff(parents) > 0])
        for start, end in zip(starts, [*starts[1:], noisy.size], strict=True):
            old = int(parents[start])
            before, spread = float(self.masses[old]), float(self.variances[old])
            counts = noisy[start:end]
            own = counts.size * deviation**2
            whole = (own * before + spread * counts.sum()) / (own + spread)
            if before > 0:
                masses[start:end] = _shared(counts, max(whole, 0.0), deviation)
            elif whole > EVIDENT * deviation:
                masses[start:end] = whole / counts.size
            variances[start:end] = own * spread / (own + spread)
        if not masses.any():
            return self
        return Density(self.line, edges, masses, variances)._stretched(deviation)

    def _stretched(self, deviation: float) -> Density:
        """The same masses, with the empty cells between and beside them cut anew, the nearer the finer."""
        low, high = self.hull
        width, count = high - low, self.masses.size
        edges, masses, variances = list[Edges](), list[float](), list[float]()
        place = 0
        while place < count:
            start = place
            if self.masses[place] > 0:
                place += 1
                edges.append(self.edges[start:place])
                masses.append(float(self.masses[start]))
                variances.append(float(self.variances[start]))
                continue
            while place < count and self.masses[place] <= 0:
                place += 1
            inner = self.line.between(
                float(self.edges[start]),
                float(self.edges[place]),
                width,
                from_low=start > 0,
                from_high=place < count,
            )
            edges += [self.edges[start : start + 1], inner]
            masses += [0.0] * (inner.size + 1)
            variances += [deviation**2] * (inner.size + 1)
        edges.append(self.edges[-1:])
        return Density(self.line, np.concatenate(edges), np.array(masses), np.array(variances))

    def at(self, shares: NDArray[np.float64]) -> Edges:
        """Where these shares of the mass are reached, as possible edges."""
        reached = np.concatenate([[0.0], np.cumsum(self.masses)])
        return self.line.rounded(np.interp(shares, reached / reached[-1], self.edges))


def _shared(noisy: Masses, whole: float, deviation: float) -> Masses:
    """A mass shared out to cells by their noisy counts, where these tell halves of them apart; else evenly.

    (Haar wavelets with a hard threshold, from the coarsest to the finest.) A half that has less than its noise may
    be is left empty where the other has more.
    """
    reached = [0.0, *np.cumsum(noisy).tolist()]  # numbers of Python are faster than many arrays of a few
    found = np.zeros(noisy.size)
    left_to_do = [(0, noisy.size, whole)]
    while left_to_do:
        start, end, mass = left_to_do.pop()
        size = end - start
        if mass <= 0:
            continue
        if size == 1:
            found[start] = mass
            continue
        middle = start + size // 2
        left, right = middle - start, end - middle
        part = mass * left / size
        below, above = reached[middle] - reached[start], reached[end] - reached[middle]
        apart = (below * right - above * left) / size
        if abs(apart) > DETAIL * deviation * sqrt(left * right / size):
            part += apart
        part = min(max(part, 0.0), mass)
        least, other = DETAIL * deviation * sqrt(left), DETAIL * deviation * sqrt(right)
        if part < least and mass - part >= other:
            part = 0.0
        elif mass - part < other and part >= least:
            part = mass
        left_to_do += [(start, middle, part), (middle, end, mass - part)]
    return found
