"""Exact samplers on integers, from a stream of uniform 64-bit words. Noise is drawn here and in
`normal` and `cosine` alone.

Every law here is exact. Floats and tables of 64-bit cuts are filters: they settle an outcome only where the
first bits of a uniform number settle it whatever its later bits are. Where they do not (a tie with a cut, a
value within a guard band that exceeds every rounding error), more bits of the same uniform number are drawn
and compared with the law computed to more bits, until the outcome is certain.

    discrete Laplace and Gaussian, small   invert |X| by table, then a sign
    the same, large                        |X| = B·h + r: h by table, r uniform below B, then rejection
    choose                                 invert the cumulative weights

Gap: the time of a draw depends slightly on the noise drawn (rejections, ties). `choose` takes a time that
depends only on the number of candidates (and on the digits of multiplicities, if given), except about once in
5,000,000 draws at a million candidates, when exact arithmetic settles it in up to a few seconds.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log
from operator import index
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.noise.law import (
    Coin,
    ExpCoin,
    Law,
    Magnitude,
    power_enclosures,
    scale_parameter,
    variance_parameter,
)
from understudy.rational import Number, exact

WORD = 64

MAX_RATE = 2**40
MIN_RATE = Fraction(1, 2**200)
"""Limits of the rate of `choose`: between them its products with level gaps are ordinary floats."""

_BATCH = 1 << 15
"""Words per pass: the temporaries of a pass stay in the processor's cache."""

_COARSE = 32
"""Up to this scale, or standard deviation, a table holds the whole law; above it, that of the high part."""

_FAN = 64
"""Weights per partial sum in `choose`."""


class NoiseSource(Protocol):
    """A stream of independent, uniform 64-bit words. Every draw is derived from it."""

    def words(self, count: int) -> NDArray[np.uint64]: ...


@dataclass(frozen=True, slots=True)
class SystemNoise:
    """The operating system's generator, asked at every call: no buffer that a fork could repeat."""

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededNoise:
    """Words that follow from `seed` (Philox). For tests and simulations only, never for real data.

    Whoever knows the seed can subtract the noise. A fork repeats the parent's stream.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.random_raw(count)


# ------------------------------------------------------------------------------------------ exact inversion


@dataclass(frozen=True, slots=True, eq=False)
class _InversionTable:
    """Inversion of `law`: the outcome for each `head_bits`-bit start of a uniform number.

    `guide[head]` is -1 where a cut falls inside that head's cell. Then the number is extended to `word_bits`
    bits and searched among `cuts`; a tie with a cut is settled by as many further bits as it needs.
    """

    law: Law
    head_bits: int
    word_bits: int
    guide: NDArray[np.int16]
    cuts: NDArray[np.uint64]

    def invert(self, heads: NDArray[np.int64], noise: NoiseSource) -> NDArray[np.int64]:
        outcomes = self.guide.take(heads).astype(np.int64)
        open_ = np.flatnonzero(outcomes < 0)
        if open_.size:
            outcomes[open_] = self._invert_words(heads[open_], noise)
        return outcomes

    def _invert_words(self, heads: NDArray[np.int64], noise: NoiseSource) -> NDArray[np.int64]:
        more = self.word_bits - self.head_bits
        fresh = noise.words(heads.size) >> np.uint64(WORD - more)
        words = (heads.view(np.uint64) << np.uint64(more)) | fresh
        outcomes = np.searchsorted(self.cuts, words, side="right")
        tied = np.flatnonzero(self.cuts[np.maximum(outcomes, 1) - 1] == words)
        for i in tied:
            outcomes[i] = _invert_exactly(self.law, int(words[i]), self.word_bits, noise)
        return outcomes


def _invert_exactly(law: Law, start: int, bits: int, noise: NoiseSource) -> int:
    """The outcome of `law` at a uniform number that begins with the `bits` bits of `start`; draws more."""
    while True:
        cuts = _cuts(law, bits)
        outcome = bisect_right(cuts, start)
        if outcome == 0 or cuts[outcome - 1] != start:
            return outcome
        start, bits = start << WORD | int(noise.words(1)[0]), bits + WORD


@lru_cache(maxsize=64)
def _cuts(law: Law, bits: int) -> tuple[int, ...]:
    return law.cuts(bits)


@lru_cache(maxsize=128)
def _table(law: Law, head_bits: int = 16, word_bits: int = WORD) -> _InversionTable:
    cuts = np.array(law.cuts(word_bits), dtype=np.uint64)
    heads = (cuts >> np.uint64(word_bits - head_bits)).astype(np.int64)
    inside = np.bincount(heads, minlength=1 << head_bits)
    guide = np.where(inside, -1, np.cumsum(inside)).astype(np.int16)
    return _InversionTable(law, head_bits, word_bits, guide, cuts)


# ------------------------------------------------------------------------------------------ coins


def bernoulli(p: Number, size: int, *, noise: NoiseSource) -> NDArray[np.bool_]:
    """True with probability exactly `p`."""
    p, size = exact(p, "p"), _count(size)
    if not 0 <= p <= 1:
        raise ParameterError(f"p must lie between 0 and 1, not {p}")
    return np.full(size, p == 1) if p in (0, 1) else _flip(Coin(p), size, noise)


def bernoulli_exp(rate: Number, size: int, *, noise: NoiseSource) -> NDArray[np.bool_]:
    """True with probability exactly exp(-`rate`)."""
    rate, size = exact(rate, "rate"), _count(size)
    if rate < 0:
        raise ParameterError(f"rate must not be negative: {rate}")
    return np.ones(size, dtype=np.bool_) if rate == 0 else _flip(ExpCoin(rate), size, noise)


def _flip(law: Coin | ExpCoin, size: int, noise: NoiseSource) -> NDArray[np.bool_]:
    table, per_word = _table(law), WORD // 16
    heads = noise.words(-(-size // per_word)).view(np.uint16)[:size].astype(np.int64)
    return table.invert(heads, noise) == 0


def uniform_below(bound: int, *, noise: NoiseSource) -> int:
    """An integer from 0 to `bound` - 1, each with the same probability."""
    bound = index(bound)
    if bound < 1:
        raise ParameterError(f"bound must be at least 1, not {bound}")
    bits = (bound - 1).bit_length()
    words = -(-bits // WORD)
    while True:
        drawn = int.from_bytes(noise.words(words).tobytes(), "little") >> (WORD * words - bits)
        if drawn < bound:
            return drawn


def uniform_array(bound: int, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers from 0 to `bound` - 1 (`bound` up to 2⁶²), each with the same probability."""
    bound, size = index(bound), _count(size)
    if not 1 <= bound <= 2**62:
        raise ParameterError(f"bound must lie between 1 and 2^62, not {bound}")
    bits = (bound - 1).bit_length()
    draws = np.zeros(size, dtype=np.int64)
    waiting = np.arange(size) if bits else np.arange(0)
    while waiting.size:
        drawn = (noise.words(waiting.size) >> np.uint64(WORD - bits)).view(np.int64)
        draws[waiting] = drawn
        waiting = waiting[drawn >= bound]
    return draws


# ------------------------------------------------------------------------------------------ Laplace, Gaussian


def discrete_laplace(scale: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers with P[X = k] ∝ exp(-|k|/scale), exactly, for any rational scale up to 2⁴⁰.

    Complexity  One word a draw, and 0 to 3% of them again.
    """
    return _fill(_sampler(1 / scale_parameter(scale), 1), _count(size), noise)


def discrete_gaussian(variance: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers with P[X = k] ∝ exp(-k²/(2 variance)), exactly, for any rational variance up to 2⁶⁰.

    Complexity  One word a draw, and 0 to 3% of them again.
    """
    return _fill(_sampler(1 / (2 * variance_parameter(variance)), 2), _count(size), noise)


@dataclass(frozen=True, slots=True, eq=False)
class _Sampler:
    """X with P[X = k] ∝ exp(-rate · |k|^power), |X| = B·h + r with B = 2^low_bits.

    With B = 1 the table has the law of |X| and a fair sign finishes. Otherwise h has weight
    exp(-rate · (B·h)^power), r is uniform below B, and the pair is kept with probability
    exp(-rate · (|X|^power - (B·h)^power)): the product is the weight of |X|. A fair sign, with "minus 0"
    rejected, finishes. This is [Karney16, Algorithm N] with integers for reals and a table for its steps
    N1 and N2. One word gives head, sign, r and the first bits of the rejection's uniform number.
    """

    rate: Fraction
    power: Literal[1, 2]
    low_bits: int
    table: _InversionTable
    guard: float = 2.0**-40

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        """Up to `count` draws: what rejection leaves of `count` proposals."""
        words = noise.words(count)
        used = self.table.head_bits + 1
        magnitude = self.table.invert((words >> np.uint64(WORD - used + 1)).view(np.int64), noise)
        minus = ((words >> np.uint64(WORD - used)) & np.uint64(1)).view(np.int64)
        if self.low_bits == 0:
            return (magnitude ^ -minus) + minus
        spare = WORD - used - self.low_bits
        low = ((words >> np.uint64(spare)) & np.uint64((1 << self.low_bits) - 1)).view(np.int64)
        base = magnitude << self.low_bits
        magnitude = base + low
        start = (words & np.uint64((1 << spare) - 1)).view(np.int64)
        keep = self._accept(base, low, start, spare, noise)
        keep &= (minus & (magnitude == 0)) == 0
        return ((magnitude ^ -minus) + minus)[keep]

    def _accept(
        self,
        base: NDArray[np.int64],
        low: NDArray[np.int64],
        start: NDArray[np.int64],
        bits: int,
        noise: NoiseSource,
    ) -> NDArray[np.bool_]:
        """Coins of probability exp(-e), e = rate · ((base + low)^power - base^power), from uniform numbers.

        `start` has their first `bits` bits. As exp(-e) ≥ 1 - e, most are accepted without an exponential.
        Floats err here by far less than `guard`: e and exp are within a few units of 2⁻⁵³, relative,
        wherever e ≤ 40, and beyond that exp(-e) itself is below the guard.
        """
        exponent = low * float(self.rate)
        if self.power == 2:
            exponent *= 2 * base + low
        cell = 2.0**-bits
        accepted = exponent + (start + 1) * cell <= 1 - self.guard
        rest = np.flatnonzero(~accepted)
        if not rest.size:
            return accepted
        fresh = noise.words(rest.size)
        uniform = (start[rest] + (fresh >> np.uint64(11)) * 2.0**-53) * cell
        chance = np.exp(-exponent[rest])
        accepted[rest] = uniform < chance
        for i in np.flatnonzero(np.abs(uniform - chance) <= self.guard):
            j = rest[i]
            b, r = int(base[j]), int(low[j])
            law = ExpCoin(self.rate * ((b + r) ** self.power - b**self.power))
            known = int(start[j]) << WORD | int(fresh[i])
            accepted[j] = _invert_exactly(law, known, bits + WORD, noise) == 0
        return accepted


@lru_cache(maxsize=128)
def _sampler(rate: Fraction, power: Literal[1, 2]) -> _Sampler:
    # The scale (or standard deviation) divided by 2^low_bits is at most _COARSE.
    reach = 1 / (rate * _COARSE) if power == 1 else 1 / (2 * rate * _COARSE**2)
    low_bits = 0
    while 1 << power * low_bits < reach:
        low_bits += 1
    law = Magnitude(rate * (1 << power * low_bits), power, folded=low_bits == 0)
    return _Sampler(rate, power, low_bits, _table(law))


def _fill(sampler: _Sampler, size: int, noise: NoiseSource) -> NDArray[np.int64]:
    draws = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        batch = sampler.draw(min(size - done, _BATCH), noise)
        draws[done : done + batch.size] = batch
        done += batch.size
    return draws


def _count(size: int) -> int:
    count = index(size)
    if count < 0:
        raise ParameterError(f"size must not be negative: {size}")
    return count


# ------------------------------------------------------------------------------------------ selection


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
    scores, rate, count = _integer_levels(levels), _selection_rate(rate), _count(count)
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
