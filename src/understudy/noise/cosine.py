"""Bounded noise of density cos²(πz/2R)/R on [-R, R], rounded to whole numbers, with its exact law.

Z is beyond x·R with probability T(x) = (1 - x)/2 - sin(πx)/(2π), 0 ≤ x ≤ 1, beyond R never: the rounded noise is m
with probability T((m - 1/2)/R) - T((m + 1/2)/R) for m ≥ 1, likewise -m, and |X| ≤ R + 1/2 for sure. For a whole
number s, s + X is the rounding of s + Z: whoever releases the first releases a function of the ideal answer, on a
lattice that is the same whatever s is, so that a theorem about the ideal law holds for it as it stands.

A draw is decided by the first bits of one uniform number, in floats where they stay clear of the two tails around
it by a guard that exceeds the floats' error, else by comparing more bits with T between integers (`rounded`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import cbrt, pi, sin

import numpy as np
from numpy.typing import NDArray

from understudy.noise.rounded import magnitude, sine_over_pi_enclosure
from understudy.noise.samplers import WORD, NoiseSource, draw_count
from understudy.rational import Number, positive

MAX_REACH = 2**50
"""Largest half-width."""

_STEPS = 7
"""Newton's steps for a guess of |X|: from the cubic root of u they reach floats' precision."""

_FEW = 4
"""So few guesses are made one by one: each call on an array takes as long as a whole guess in plain floats."""


def rounded_cosine(reach: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers, each the nearest to a number of density cos²(πz/2R)/R on [-R, R], R = `reach`, exactly.

    Complexity  One word a draw. At R = 2³² about one draw in 10,000 needs the exact comparison, of a few 0.1 ms.
    """
    return RoundedCosine(positive(reach, "reach", at_most=MAX_REACH)).draw(draw_count(size), noise)


@dataclass(frozen=True, slots=True)
class RoundedCosine:
    """The sampler. `guard` bounds the absolute error of the floats that stand for u and the tails around it.

    u is rounded to 53 bits, (R - m - 1/2)/R in two operations, and T has a slope of at most 1: each errs by a few
    units of 2⁻⁵³. The guard exceeds all of it 8 times.
    """

    reach: Fraction
    guard: float = 2.0**-48

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        """The first bit of a word is the sign, the other 63 are the first bits of u, below 1/2."""
        words = noise.words(count)
        minus = words >> np.uint64(WORD - 1) == 0
        starts = words & np.uint64((1 << WORD - 1) - 1)
        low = starts.astype(np.float64) * 2.0**-WORD
        high = (starts + np.uint64(1)).astype(np.float64) * 2.0**-WORD
        reach = float(self.reach)
        m = np.maximum(np.rint(reach * (1 - _edge(high))), 0.0)
        beyond, before = (np.clip((reach - m - half) / reach, 0.0, 1.0) for half in (0.5, -0.5))
        decided = (_tail(beyond) + self.guard < low) | ((beyond == 0) & (low > self.guard))
        decided &= (high < _tail(before) - self.guard) | (m == 0)
        magnitudes = np.where(decided, m, 0.0).astype(np.int64)
        for i in np.flatnonzero(~decided):
            magnitudes[i] = magnitude(self._cut, self._near, int(starts[i]), WORD, noise)
        return np.where(minus, -magnitudes, magnitudes)

    def _near(self, u: float) -> float:
        return float(self.reach) * (1 - float(_edge(np.array([u]))[0]))

    def _cut(self, m: int, bits: int) -> tuple[int, int]:
        return cosine_tail_enclosure((m + Fraction(1, 2)) / self.reach, bits)


def _tail(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """T(1 - v) = v/2 - sin(πv)/(2π); for small v by its series, since the difference would lose its digits."""
    z = (pi * v) ** 2
    series = v * z / 12 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110))))
    return np.where(v < 0.05, series, v / 2 - np.sin(pi * v) / (2 * pi))


def _edge(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """About the v in [0, 1] with T(1 - v) = u: that function is convex, and below π²v³/12."""
    if u.size <= _FEW:
        return np.array([_edge_of(one) for one in u.tolist()], np.float64)
    v = np.minimum(np.cbrt(12 / pi**2 * u), 1.0)
    for _ in range(_STEPS):
        slope = np.sin(pi / 2 * v) ** 2
        v = np.clip(v - (_tail(v) - u) / np.maximum(slope, 1e-300), 0.0, 1.0)
    return v


def _edge_of(u: float) -> float:
    """The same for one number."""
    v = min(cbrt(12 / pi**2 * u), 1.0)
    for _ in range(_STEPS):
        z = (pi * v) ** 2
        series = v * z / 12 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110))))
        tail = series if v < 0.05 else v / 2 - sin(pi * v) / (2 * pi)
        slope = sin(pi / 2 * v) ** 2
        v = min(max(v - (tail - u) / max(slope, 1e-300), 0.0), 1.0)
    return v


def cosine_tail_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ 2^bits · T(x) ≤ high, and high - low ≤ 3, for x > 0."""
    if x >= 1:
        return 0, 0
    precision = bits + 32
    sine_low, sine_high = sine_over_pi_enclosure(min(x, 1 - x), precision)
    whole = 1 - x
    straight_low = (whole.numerator << precision) // whole.denominator
    straight_high = straight_low + 1
    return max(0, (straight_low - sine_high) >> 33), -(-(straight_high - sine_low) >> 33)
