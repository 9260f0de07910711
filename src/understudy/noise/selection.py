"""One of many candidates, drawn with exact probabilities: what the exponential mechanism is made of.

The cumulative weights are inverted at one uniform number. Floats decide where its first bits stay clear of every
cumulative weight by a guard that exceeds their rounding errors; elsewhere more bits of it are compared with the
weights, computed to more bits.

Gap: a draw takes a time that depends only on the number of candidates (and on the digits of multiplicities, if
given), except about once in 5,000,000 draws at a million candidates, when exact arithmetic settles it in up to a
few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from operator import index

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.noise.law import power_enclosures
from understudy.noise.samplers import WORD, NoiseSource, draw_count, uniform_below
from understudy.rational import Number, exact

MAX_RATE = 2**40
MIN_RATE = Fraction(1, 2**200)
"""Limits of the rate of `choose`: between them its products with level gaps are ordinary floats."""

_FAN = 64
"""Weights per partial sum."""


def choose(
    levels: NDArray[np.int64],
    rate: Number,
    *,
    noise: NoiseSource,
    multiplicities: Sequence[int] | None = None,
) -> int:
    """Index i with probability ∝ multiplicities[i] · exp(-rate · levels[i]), exactly.

    A candidate far above the lowest level is as unlikely as the law says, never impossible.

    Complexity  O(k) time and memory for k candidates, whatever their levels.
    """
    return int(choose_many(levels, rate, 1, noise=noise, multiplicities=multiplicities)[0])


def choose_many(
    levels: NDArray[np.int64],
    rate: Number,
    count: int,
    *,
    noise: NoiseSource,
    multiplicities: Sequence[int] | None = None,
) -> NDArray[np.int64]:
    """`count` independent draws of `choose`: the weights are summed once, each draw takes O(log k)."""
    scores, rate, count = _integer_levels(levels), _selection_rate(rate), draw_count(count)
    counts = None if multiplicities is None else _multiplicities(multiplicities, scores.size)
    if counts is not None:
        possible = np.array([count > 0 for count in counts])
        scores = np.where(possible, scores, scores[possible].min())
    # Modulo 2⁶⁴ the difference is right even where it exceeds the signed range.
    gaps = (scores - scores.min()).view(np.uint64)
    return _SelectionSampler(gaps, rate, counts).draw(count, noise)


@dataclass(frozen=True, slots=True, eq=False)
class _SelectionSampler:
    """Index i with weight counts[i] · exp(-rate · gaps[i]), by inverting the cumulative weights.

    `margin` is the least distance to a boundary, as a share of all weight, at which floats are trusted: it
    can only widen the proven error bound.
    """

    gaps: NDArray[np.uint64]
    rate: Fraction
    counts: list[int] | None = None
    margin: float = 0.0

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        starts = noise.words(count)
        found = self.by_floats(starts)
        for i in np.flatnonzero(found < 0):
            found[i] = self._exactly(int(starts[i]), noise)
        return found

    def _exactly(self, start: int, noise: NoiseSource) -> int:
        """The index at the uniform number that begins with the word `start`; draws more."""
        bits = WORD
        distinct, groups = np.unique(self.gaps, return_inverse=True)
        gaps, members = distinct.tolist(), groups.tolist()
        while True:
            found = self.by_integers(gaps, members, start, bits)
            if found is not None:
                return found
            start, bits = start << bits | uniform_below(1 << bits, noise=noise), 2 * bits

    def by_floats(self, starts: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The index at each uniform number start/2⁶⁴, or -1 where floats cannot tell.

        Weights are summed in a tree of `_FAN` children a node, which is descended from the root. Errors, as
        shares of all weight W, with u = 2⁻⁵³ and k candidates: a sum of m terms, in any order, is within mu,
        so a prefix and W together are within (2·depth + 3)·_FAN·u. An exponent x is within 4ux and exp within
        16u; as the largest weight is 1, Σ w x ≤ W ln k (normalised weights have entropy at most ln k), so all
        weights together are within (4 ln k + 16)u. With counts, x comes from numbers of at most `size` and is
        within 7u·size. Exponents are cut at -700: no denormals, so time does not depend on the levels; that
        adds at most k·exp(-700).
        """
        weights, size = self._float_weights()
        tree = [weights]
        while tree[-1].size > _FAN:
            tree[-1] = _padded(tree[-1])
            tree.append(tree[-1].reshape(-1, _FAN).sum(axis=1))
        total = float(tree[-1].sum())
        edges = np.zeros(tree[-1].size + 1)
        np.cumsum(tree[-1], out=edges[1:])
        targets = starts.astype(np.float64) * (2.0**-WORD * total)
        places = np.minimum(np.searchsorted(edges[1:], targets, side="right"), edges.size - 2)
        targets -= edges[places]
        for sums in reversed(tree[:-1]):
            targets, places = _descend(sums, targets, places)
        error = 2.0**-53 * ((2 * len(tree) + 3) * _FAN + 16 * size) + weights.size * 1e-300
        slack = max(error, self.margin) * total
        # What lies in the padding has weight 0, so it is never certain.
        certain = (slack < targets) & (targets < tree[0][places] - slack)
        return np.where(certain, places, -1)

    def _float_weights(self) -> tuple[NDArray[np.float64], float]:
        """Weights over the largest one, and the size of the exponents that were subtracted."""
        weights = self.gaps * -float(self.rate)
        size = log(weights.size) + 2
        if self.counts is not None:
            logs = np.array([log(count) if count else -np.inf for count in self.counts])
            weights += logs
            weights -= weights.max()
            size = 2 * float(logs.max()) + 710
        np.maximum(weights, -700, out=weights)
        return np.exp(weights, out=weights), size

    def by_integers(self, gaps: list[int], members: list[int], start: int, bits: int) -> int | None:
        """The index at the uniform numbers that begin with these `bits` bits, if it is one for all of them.

        Candidate i has the gap gaps[members[i]]. Interval arithmetic on integers throughout.
        """
        counts = self.counts if self.counts is not None else [1] * len(members)
        enclose = power_enclosures(self.rate, bits + WORD + max(counts).bit_length())
        weights = [enclose(gap) for gap in gaps]
        least = sum(count * weights[group][0] for count, group in zip(counts, members, strict=True))
        most = sum(count * weights[group][1] for count, group in zip(counts, members, strict=True))
        target_low, target_high = start * least >> bits, ((start + 1) * most >> bits) + 1
        low = high = 0
        last = len(members) - 1
        for i, (count, group) in enumerate(zip(counts, members, strict=True)):
            low += count * weights[group][0]
            high += count * weights[group][1]
            if high > target_low:
                return i if target_high <= low or i == last else None
        return None


def _descend(
    sums: NDArray[np.float64], targets: NDArray[np.float64], places: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """From nodes of the tree to those of their children in which the targets lie, and what is left of these."""
    children = np.cumsum(sums.reshape(-1, _FAN)[places], axis=1)
    child = np.minimum((children <= targets[:, None]).sum(axis=1), _FAN - 1)
    before = np.take_along_axis(children, np.maximum(child - 1, 0)[:, None], axis=1)[:, 0]
    return targets - np.where(child > 0, before, 0.0), places * _FAN + child


def _padded(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([sums, np.zeros(-sums.size % _FAN)])


def _integer_levels(levels: NDArray[np.int64]) -> NDArray[np.int64]:
    scores = np.asarray(levels)
    if scores.ndim != 1 or scores.size == 0 or not np.can_cast(scores.dtype, np.int64):
        raise ParameterError("levels must be a non-empty, one-dimensional array of 64-bit integers")
    return scores.astype(np.int64, copy=False)


def _selection_rate(rate: Number) -> Fraction:
    number = exact(rate, "rate")
    if number != 0 and not MIN_RATE <= number <= MAX_RATE:
        raise ParameterError(f"rate must be 0 or lie between 2^-200 and 2^40, not {rate}")
    return number


def _multiplicities(multiplicities: Sequence[int], size: int) -> list[int]:
    counts = [index(count) for count in multiplicities]
    if len(counts) != size or min(counts) < 0 or max(counts) == 0:
        raise ParameterError("multiplicities must be one integer per level, none negative, not all 0")
    return counts
