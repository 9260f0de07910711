"""Normal noise rounded to whole numbers, with its exact law.

round(N(0, σ²)) is m with probability Φ((m + 1/2)/σ) - Φ((m - 1/2)/σ). For a whole number s, s + round(N) is the
rounding of s + N: whoever releases the first releases a function of the ideal answer s + N, in total variation 0
from it, and on a lattice that is the same whatever s is. A theorem about normal noise holds for it as it stands.

A draw is decided by the first bits of one uniform number u: the magnitude is m where u lies between Φ(-(m +
1/2)/σ) and Φ(-(m - 1/2)/σ). Floats decide where both ends of the cell of u, moved by a guard that exceeds their
error, fall into one m. Elsewhere more bits of u are compared with Φ, enclosed by integers (`rounded`); Φ is never
inverted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from understudy.noise.law import exp_enclosure
from understudy.noise.rounded import magnitude, pi_enclosure
from understudy.noise.samplers import WORD, NoiseSource, draw_count
from understudy.rational import Number, positive

MAX_SIGMA = 2**50
"""Largest standard deviation: |X| ≥ 2⁶² has probability below exp(-2²²)."""


def rounded_normal(sigma: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers, each the nearest to an N(0, σ²) number, exactly, for any rational σ up to 2⁵⁰.

    Complexity  One word a draw. At σ = 2²⁸ about one draw in 2,000 needs the exact comparison, of a few 0.1 ms.
    """
    return RoundedNormal(positive(sigma, "sigma", at_most=MAX_SIGMA)).draw(draw_count(size), noise)


@dataclass(frozen=True, slots=True)
class RoundedNormal:
    """The sampler. `guard` is relative to |z| + 1, for z = Φ⁻¹(u).

    Where u is rounded to 53 bits, z moves by at most 2⁻⁵³·u/φ(z) ≤ 1.26·2⁻⁵³; scipy's `ndtri` and the products
    err by a few units of 2⁻⁵³ of |z|. The guard exceeds all of it 1,000 times.
    """

    sigma: Fraction
    guard: float = 2.0**-40

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        """The first bit of a word is the sign, the other 63 are the first bits of u, below 1/2."""
        from scipy.special import (
            ndtri,  # late: it takes a quarter of a second to import, and no privacy needs it
        )

        words = noise.words(count)
        minus = words >> np.uint64(WORD - 1) == 0
        starts = words & np.uint64((1 << WORD - 1) - 1)
        nearest, farthest = (-ndtri(ends * 2.0**-WORD) for ends in (starts + np.uint64(1), starts))
        sigma = float(self.sigma)
        least = np.floor(sigma * (nearest - self.guard * (nearest + 1)) + 0.5)
        most = np.floor(sigma * (farthest + self.guard * (farthest + 1)) + 0.5)
        decided = (least == most) & (most < 2.0**62)
        magnitudes = np.maximum(np.where(decided, most, 0.0), 0.0).astype(np.int64)
        for i in np.flatnonzero(~decided):
            magnitudes[i] = magnitude(self._cut, self._near, int(starts[i]), WORD, noise)
        return np.where(minus, -magnitudes, magnitudes)

    def _near(self, u: float) -> float:
        from scipy.special import ndtri

        return -float(ndtri(u)) * float(self.sigma)

    def _cut(self, m: int, bits: int) -> tuple[int, int]:
        return tail_enclosure((m + Fraction(1, 2)) / self.sigma, bits)


def tail_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ 2^bits · Φ(-x) ≤ high, and high - low ≤ 3, for x > 0.

    Φ(-x) = 1/2 - e^{-r}/√(2π) · Σ x^{2k+1}/(1·3·…·(2k+1)) with r = x²/2: all terms are positive, so each is
    rounded down for one end and up for the other. The sum is at most 1.26·e^r, hence the further bits for r.
    """
    square = x * x
    r = square / 2
    if r > bits:
        return 0, 1  # Φ(-x) ≤ e^{-r}/2 < 2^-bits
    precision = bits + int(r * Fraction(3, 2)) + 48
    low, high = _series(x, square, precision)
    exp_low, exp_high = exp_enclosure(r, precision)
    root_low, root_high = _inverse_root_of_2_pi(precision)
    shift = 3 * precision - bits
    half = 1 << bits - 1
    least = half - 1 - (exp_high * root_high * high >> shift)
    return max(least, 0), half - (exp_low * root_low * low >> shift)


def _series(x: Fraction, square: Fraction, precision: int) -> tuple[int, int]:
    """Enclosure of 2^precision · Σ x^{2k+1}/(1·3·…·(2k+1))."""
    low = (x.numerator << precision) // x.denominator
    high = low + 1
    total_low, total_high, odd = low, high, 1
    while True:
        odd += 2
        divisor = square.denominator * odd
        low = low * square.numerator // divisor
        high = -(-high * square.numerator // divisor)
        if (
            high <= 4 and 2 * square <= odd
        ):  # the terms that are left halve at least: together at most twice the next
            return total_low, total_high + 2 * high
        total_low, total_high = total_low + low, total_high + high


@lru_cache(maxsize=16)
def _inverse_root_of_2_pi(precision: int) -> tuple[int, int]:
    """Enclosure of 2^precision / √(2π)."""
    pi_low, pi_high = pi_enclosure(precision)
    cube = 1 << 3 * precision
    return isqrt(cube // (2 * pi_high)), isqrt(cube // (2 * pi_low)) + 1
