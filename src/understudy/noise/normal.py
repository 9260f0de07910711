"""Normal noise rounded to whole numbers, with its exact law.

round(N(0, σ²)) is m with probability Φ((m + 1/2)/σ) - Φ((m - 1/2)/σ). For a whole number s, s + round(N) is the
rounding of s + N: whoever releases the first releases a function of the ideal answer s + N, in total variation 0
from it, and on a lattice that is the same whatever s is. A theorem about normal noise holds for it as it stands.

A draw is decided by the first bits of one uniform number u: the magnitude is m where u lies between Φ(-(m +
1/2)/σ) and Φ(-(m - 1/2)/σ). Floats decide where -σ·Φ⁻¹(u) is further from a half-integer than the image of the
cell of u and a guard that exceeds their error. Elsewhere more bits of u are compared with Φ, enclosed by integers
(`rounded`); Φ is never inverted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import erfc, isqrt, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.noise.law import LEAST_TAIL, ROUNDING, exp_enclosure, failure_probability, smallest
from understudy.noise.rounded import magnitude, pi_enclosure
from understudy.noise.samplers import BATCH, WORD, NoiseSource, draw_count
from understudy.rational import Number, positive

MAX_SIGMA = 2**50
"""Largest standard deviation: |X| ≥ 2⁶² has probability below exp(-2²²)."""

_FEW = 4
"""So few numbers are taken one by one."""

_LEAST_START = 1 << 30
"""Numbers u below 2⁻³⁴ are left to the exact comparison: their cells are wide, and the floats' formula ends."""


def rounded_normal(sigma: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """`size` integers, each the nearest to an N(0, σ²) number, exactly, for any rational σ up to 2⁵⁰.

    Complexity  One word a draw. At σ = 2²⁸ about one draw in 10,000 needs the exact comparison, of a few 0.1 ms.
    """
    return _drawn(positive(sigma, "sigma", at_most=MAX_SIGMA) ** 2, size, noise)


def rounded_normal_of_variance(variance: Number, size: int, *, noise: NoiseSource) -> NDArray[np.int64]:
    """The same for any rational σ² up to 2¹⁰⁰: σ itself may be irrational."""
    return _drawn(normal_variance(variance), size, noise)


def normal_variance(value: Number) -> Fraction:
    """A variance of which rounded normal noise can be drawn."""
    return positive(value, "variance", at_most=MAX_SIGMA**2)


def _drawn(variance: Fraction, size: int, noise: NoiseSource) -> NDArray[np.int64]:
    sampler, count = RoundedNormalSampler(variance), draw_count(size)
    if count <= BATCH:
        return sampler.draw(count, noise)
    return np.concatenate([sampler.draw(min(BATCH, count - done), noise) for done in range(0, count, BATCH)])


@dataclass(frozen=True, slots=True)
class RoundedNormalSampler:
    """The sampler of round(N(0, `variance`)). `guard` is relative to |z| + 1, for z = Φ⁻¹(u).

    It bounds what rounding does to z. The float u is within 2⁻⁵³ of itself, which moves z by at most
    2⁻⁵³·u/φ(z) ≤ 1.26·2⁻⁵³; the formula of `_quantile` and the product with σ err by less than 40 units of 2⁻⁵³
    of |z| + 1. The guard exceeds all of it 10 times. The cell of u reaches 2⁻⁶⁵ to either side of its middle, by
    which z moves by at most 1.27·2⁻⁶⁵/u, as φ(z) ≥ u/1.26 for u ≤ 1/2, and u is 2⁻³⁴ at least.
    """

    variance: Fraction
    guard: float = 2.0**-44

    def draw(self, count: int, noise: NoiseSource) -> NDArray[np.int64]:
        """The first bit of a word is the sign, the other 63 are the first bits of u, below 1/2."""
        words = noise.words(count)
        starts = (words & np.uint64((1 << WORD - 1) - 1)).view(np.int64)
        u = (starts.astype(np.float64) + 0.5) * 2.0**-WORD
        z = _quantile(u)
        sigma = sqrt(self.variance)
        y = sigma * z
        m = np.rint(y)
        room = 0.5 - np.abs(y - m)  # how far the next half-integer is
        slack = (sigma * self.guard) * (z + 1) + (1.27 * sigma * 2.0 ** -(WORD + 1)) / u
        decided = (room > slack) & (starts >= _LEAST_START) & (m < 2.0**62)
        magnitudes = m.astype(np.int64) if decided.all() else np.where(decided, m, 0.0).astype(np.int64)
        for i in np.flatnonzero(~decided):
            magnitudes[i] = magnitude(self._cut, self._near, int(starts[i]), WORD, noise)
        plus = (words >> np.uint64(WORD - 1)).view(np.int64)
        return (magnitudes ^ (plus - 1)) + (1 - plus)

    def _near(self, u: float) -> float:
        return -NormalDist().inv_cdf(u) * sqrt(self.variance)

    def _cut(self, m: int, bits: int) -> tuple[int, int]:
        return tail_enclosure((m + Fraction(1, 2)) ** 2 / self.variance, bits)


_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_TAIL = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
"""Numerators and denominators of algorithm AS 241 (Wichura 1988), highest power first."""


def _quantile(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """-Φ⁻¹(u) for 2⁻³⁶ < u ≤ 1/2, within 40 units of 2⁻⁵³ of it or of 1, whichever is larger.

    A few numbers are taken one by one, by the same operations: a call on an array takes as long as one of them.
    """
    if u.size <= _FEW:
        return np.array([_quantile_at(one) for one in u.tolist()], np.float64)
    from_middle = 0.5 - u
    z = from_middle * _ratio(_CENTRE, 0.180625 - from_middle * from_middle)
    far = np.flatnonzero(u < 0.075)
    if far.size:
        z[far] = _ratio(_TAIL, np.sqrt(-np.log(u[far])) - 1.6)
    return z


def _quantile_at(u: float) -> float:
    from_middle = 0.5 - u
    if u < 0.075:
        return _ratio_of(_TAIL, sqrt(-log(u)) - 1.6)
    return from_middle * _ratio_of(_CENTRE, 0.180625 - from_middle * from_middle)


def _ratio_of(of: tuple[tuple[float, ...], tuple[float, ...]], r: float) -> float:
    above, below = of[0][0], of[1][0]
    for one, other in zip(of[0][1:], of[1][1:], strict=True):
        above, below = above * r + one, below * r + other
    return above / below


def _ratio(of: tuple[tuple[float, ...], tuple[float, ...]], r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two polynomials by Horner's rule: all coefficients are positive, and so nothing cancels where r ≥ 0."""
    above, below = (np.full(r.shape, coefficients[0]) for coefficients in of)
    for value, coefficients in ((above, of[0]), (below, of[1])):
        for coefficient in coefficients[1:]:
            value *= r
            value += coefficient
    above /= below
    return above


# ------------------------------------------------------------------------------------------ exact tails


def tail_enclosure(square: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ 2^bits · Φ(-x) ≤ high, and high - low ≤ 3, for x > 0 with x² = `square`.

    Φ(-x) = 1/2 - e^{-r}/√(2π) · Σ x^{2k+1}/(1·3·…·(2k+1)) with r = x²/2: all terms are positive, so each is
    rounded down for one end and up for the other. The sum is at most 1.26·e^r, hence the further bits for r.
    """
    r = square / 2
    if r > bits:
        return 0, 1  # Φ(-x) ≤ e^{-r}/2 < 2^-bits
    precision = bits + int(r * Fraction(3, 2)) + 48
    low, high = _series(square, precision)
    exp_low, exp_high = exp_enclosure(r, precision)
    root_low, root_high = _inverse_root_of_2_pi(precision)
    shift = 3 * precision - bits
    half = 1 << bits - 1
    least = half - 1 - (exp_high * root_high * high >> shift)
    return max(least, 0), half - (exp_low * root_low * low >> shift)


def _series(square: Fraction, precision: int) -> tuple[int, int]:
    """Enclosure of 2^precision · Σ x^{2k+1}/(1·3·…·(2k+1)), x² = `square`."""
    low = isqrt((square.numerator << 2 * precision) // square.denominator)
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


# ------------------------------------------------------------------------------------------ law, tails, quantiles


def rounded_normal_log_law(variance: Number, points: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of P[X = k] at each integer of `points`, to float accuracy."""
    from scipy.special import log_ndtr  # late: only audits and tests ask for the law

    sigma = sqrt(normal_variance(variance))
    k = np.abs(np.asarray(points, dtype=np.float64))
    inner, outer = log_ndtr(-(k - 0.5) / sigma), log_ndtr(-(k + 0.5) / sigma)
    return inner + np.log(-np.expm1(outer - inner))


def rounded_normal_tail(variance: Number, t: int) -> float:
    """At least P[|X| > t] = 2Φ(-(t + 1/2)/σ), above it by at most 2e-12 of itself or 1e-295; decreasing in t."""
    return _tail(normal_variance(variance), t)


def _tail(variance: Fraction, t: int) -> float:
    if t < 0:
        return 1.0
    x = sqrt((t + Fraction(1, 2)) ** 2 / (2 * variance))
    return min(1.0, max(erfc(x) * (1 + ROUNDING), LEAST_TAIL))


def rounded_normal_quantile(variance: Number, beta: Number) -> int:
    """The smallest t with P[|X| > t] ≤ beta, or, where that is a tie within 2e-12 of beta, the next.

    >>> rounded_normal_quantile(100, 0.05)
    20
    """
    return _quantile_of(normal_variance(variance), failure_probability(beta))


@lru_cache(maxsize=1024)
def _quantile_of(variance: Fraction, beta: Fraction) -> int:
    near = sqrt(variance) * -NormalDist().inv_cdf(float(beta) / 2)
    return smallest(lambda t: _tail(variance, t) <= beta, near=int(near))
