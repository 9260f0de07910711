"""Exact samplers on integers, from a stream of uniform 64-bit words. Noise is drawn here and in
`selection`, `normal`, `cosine` and `bounded` alone.

Every law here is exact. Floats and tables of 64-bit cuts are filters: they settle an outcome only where the
first bits of a uniform number settle it whatever its later bits are. Where they do not (a tie with a cut, a
value within a guard band that exceeds every rounding error), more bits of the same uniform number are drawn
and compared with the law computed to more bits, until the outcome is certain.

    discrete Laplace and Gaussian, small   invert |X| by table, then a sign
    the same, large                        |X| = B·h + r: h by table, r uniform below B, then rejection

Gap: the time of a draw depends slightly on the noise drawn (rejections, ties).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
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
    scale_parameter,
    variance_parameter,
)
from understudy.rational import Number, exact

WORD = 64

BATCH = 1 << 15
"""Words per pass: the temporaries of a pass stay in the processor's cache."""

_FEW = 1 << 9
"""Fewer draws than this are inverted without a list of all outcomes."""

_COARSE = 32
"""Up to this scale, or standard deviation, a table holds the whole law; above it, that of the high part."""


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


@dataclass(frozen=True, eq=False)
class _InversionTable:
    """Inversion of `law`: the outcome for each `head_bits`-bit start of a uniform number.

    A head has no outcome, and -1 stands there, where a cut falls inside its cell. Then the number is extended to
    `word_bits` bits and searched among `cuts`; a tie with a cut is settled by as many further bits as it needs.
    """

    law: Law
    head_bits: int
    word_bits: int
    cuts: NDArray[np.uint64]
    heads: NDArray[np.int64]
    """The starts of the cuts."""

    @property
    def guide(self) -> NDArray[np.int16]:
        """The outcome of every head, for many draws: to list them takes longer than to search for a few.

        It is kept without a lock, which a process that is forked meanwhile would wait for in vain.
        """
        known: NDArray[np.int16] | None = self.__dict__.get("_guide")
        if known is None:
            inside = np.bincount(self.heads, minlength=1 << self.head_bits)
            known = self.__dict__["_guide"] = np.where(inside, -1, np.cumsum(inside)).astype(np.int16)
        return known

    def invert(self, heads: NDArray[np.int64], noise: NoiseSource) -> NDArray[np.int64]:
        outcomes = self._found(heads) if heads.size < _FEW else self.guide.take(heads).astype(np.int64)
        open_ = np.flatnonzero(outcomes < 0)
        if open_.size:
            outcomes[open_] = self._invert_words(heads[open_], noise)
        return outcomes

    def _found(self, heads: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the guide says of some heads."""
        upto = np.searchsorted(self.heads, heads, side="right")
        return np.where(np.searchsorted(self.heads, heads) < upto, -1, upto)

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
    return _InversionTable(law, head_bits, word_bits, cuts, heads)


# ------------------------------------------------------------------------------------------ coins


def bernoulli(p: Number, size: int, *, noise: NoiseSource) -> NDArray[np.bool_]:
    """True with probability exactly `p`."""
    p, size = exact(p, "p"), draw_count(size)
    if not 0 <= p <= 1:
        raise ParameterError(f"p must lie between 0 and 1, not {p}")
    return np.full(size, p == 1) if p in (0, 1) else _flip(Coin(p), size, noise)


def bernoulli_exp(rate: Number, size: int, *, noise: NoiseSource) -> NDArray[np.bool_]:
    """True with probability exactly exp(-`rate`)."""
    rate, size = exact(rate, "rate"), draw_count(size)
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
    bound, size = index(bound), draw_count(size)
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
    return _fill(_sampler(1 / scale_parameter(scale), 1), draw_count(size), noise)


def truncated_geometric(epsilon: Number, reach: int, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers from -reach to reach with P[X = k] ∝ exp(-ε·|k|), exactly: what of Laplace noise is within.

    Complexity  Two words a draw at most in the mean, for `reach` of 1 or more: half of the noise is within one
                scale of 0 where ε is small, and more where it is large, unless `reach` is below the scale.
    """
    draws, waiting = np.empty(draw_count(size), np.int64), np.arange(draw_count(size))
    scale, reach = 1 / exact(epsilon, "epsilon"), index(reach)
    if reach < 1:
        raise ParameterError(f"reach must be at least 1, not {reach}")
    while waiting.size:
        drawn = discrete_laplace(scale, waiting.size, noise=noise)
        draws[waiting] = drawn
        waiting = waiting[np.abs(drawn) > reach]
    return draws


def discrete_gaussian(variance: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers with P[X = k] ∝ exp(-k²/(2 variance)), exactly, for any rational variance up to 2⁶⁰.

    Complexity  One word a draw, and 0 to 3% of them again.
    """
    return _fill(_sampler(1 / (2 * variance_parameter(variance)), 2), draw_count(size), noise)


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
        batch = sampler.draw(min(size - done, BATCH), noise)
        draws[done : done + batch.size] = batch
        done += batch.size
    return draws


def draw_count(size: int) -> int:
    """How many numbers are asked for, refused where it is no whole number or negative."""
    count = index(size)
    if count < 0:
        raise ParameterError(f"size must not be negative: {size}")
    return count
