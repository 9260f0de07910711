"""Bounded noise: whole numbers |x| ≤ R with P[x] ∝ cos(πx/(2(R + 1)))^(7/2), drawn exactly.

A number x is proposed, each from -R to R with the same probability, and kept where a uniform number u is below
cos(πx/(2(R + 1)))^(7/2). One word gives x and the first bits of u. Integers that were cut from floats decide
where u stays clear of that power by a guard that exceeds the floats' error. Elsewhere u² is compared with
cos^7, enclosed by integers, with as many further bits of u as it takes. About 0.4 of the proposals are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, pi
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ParameterError
from understudy.noise.rounded import pi_enclosure, sine_over_pi_enclosure
from understudy.noise.samplers import BATCH, WORD, NoiseSource, draw_count

MAX_REACH = 1 << 17
"""The largest R: a table holds a number for each outcome."""

KEPT = 0.3975
"""About the part of the proposals that is kept, for every R that is not small."""


def bounded(reach: int, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers from -reach to reach with P[x] ∝ cos(πx/(2(reach + 1)))^(7/2), exactly.

    Complexity  2.5 to 5 words a draw, and a table of 16(reach + 1) bytes, which is kept for the latest 8 reaches.
    """
    sampler, draws = _sampler(checked_reach(reach)), np.empty(draw_count(size), np.int64)
    done = 0
    while done < draws.size:
        proposals = min(ceil((draws.size - done) / sampler.kept * 1.05) + 16, BATCH)
        batch = sampler.draw(proposals, noise)[: draws.size - done]
        draws[done : done + batch.size] = batch
        done += batch.size
    return draws


def checked_reach(reach: int) -> int:
    """A reach of which bounded noise can be drawn; a ParameterError for any other."""
    whole = index(reach)
    if not 1 <= whole <= MAX_REACH:
        raise ParameterError(f"reach must lie between 1 and {MAX_REACH}, not {reach}")
    return whole


def bounded_log_law(reach: int, points: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of P[x] at each integer of `points`, to float accuracy; minus infinity beyond the reach."""
    reach = checked_reach(reach)
    x = np.abs(np.asarray(points, dtype=np.float64))
    total = log(float(_power(reach, np.arange(-reach, reach + 1, dtype=np.float64)).sum()))
    with np.errstate(divide="ignore"):
        return np.where(x > reach, -np.inf, np.log(_power(reach, np.minimum(x, reach))) - total)


def _power(reach: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """cos(πx/(2(R + 1)))^(7/2), by the sine of the distance from the end: within a few 2⁻⁵³ of itself."""
    sine = np.sin(pi / (2 * reach + 2) * (reach + 1 - np.abs(x)))
    return sine * sine * sine * np.sqrt(sine)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedSampler:
    """The sampler. `guard` bounds the error of the floats that the `cuts` were made of.

    A word's first bits are the place of x, from 0 to 2R; the other `spare` are the first bits of u. Of place i,
    2^spare · u is below cuts[i] where it is kept for sure, and above cuts[i] + `doubt` where it is not.
    """

    reach: int
    spare: int
    cuts: NDArray[np.int64]
    doubt: int

    @classmethod
    def of(cls, reach: int, guard: float = 2.0**-40) -> BoundedSampler:
        spare = WORD - (2 * reach).bit_length()
        chances = _power(reach, np.arange(-reach, reach + 1, dtype=np.float64))
        cuts = np.floor(np.clip(chances - guard, 0.0, 1.0) * 2.0**spare).astype(np.int64)
        doubt = min(ceil(2 * guard * 2**spare) + 2, 1 << spare) if guard < 1 else 1 << spare
        return cls(reach, spare, cuts, doubt)

    @property
    def kept(self) -> float:
        """About the part of the words that make a draw."""
        return KEPT * (2 * self.reach + 1) / 2.0 ** (WORD - self.spare)

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        """Up to `count` draws: what is left of `count` proposals."""
        words = noise.words(count)
        places = (words >> np.uint64(self.spare)).view(np.int64)
        inside = places <= 2 * self.reach
        places, words = places[inside], words[inside]
        starts = (words & np.uint64((1 << self.spare) - 1)).view(np.int64)
        beyond = starts - self.cuts.take(places)
        keep = beyond < 0
        for i in np.flatnonzero((beyond >= 0) & (beyond <= self.doubt)):
            keep[i] = self._keeps(int(places[i]), int(starts[i]), noise)
        return places[keep] - self.reach

    def _keeps(self, place: int, start: int, noise: NoiseSource) -> bool:
        """Whether u < cos^(7/2) for a number u that begins with the bits of `start`; draws more until certain."""
        bits = self.spare
        from_end = min(place + 1, 2 * self.reach + 1 - place)
        w = Fraction(from_end, 2 * self.reach + 2)  # the cosine is sin(πw)
        while True:
            precision = bits + WORD
            low, high = _sine_enclosure(w, precision)
            shift = 7 * precision - 2 * bits
            if (start + 1) ** 2 << shift <= low**7:
                return True
            if start**2 << shift >= high**7:
                return False
            start, bits = start << WORD | int(noise.words(1)[0]), bits + WORD


def _sine_enclosure(w: Fraction, precision: int) -> tuple[int, int]:
    """Integers with low ≤ 2^precision · sin(πw) ≤ high, for 0 < w ≤ 1/2."""
    if 2 * w == 1:
        return 1 << precision, 1 << precision
    (low, high), (pi_low, pi_high) = sine_over_pi_enclosure(w, precision), pi_enclosure(precision)
    return low * pi_low >> precision, -(-high * pi_high >> precision)


@lru_cache(maxsize=8)
def _sampler(reach: int) -> BoundedSampler:
    return BoundedSampler.of(reach)
