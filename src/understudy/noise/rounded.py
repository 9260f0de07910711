"""What symmetric laws on whole numbers share: the comparison of bits, π and sines between integers.

A magnitude |X| is drawn from one uniform number u below 1/2: it is m where u lies between P[Z > m + 1/2] and
P[Z > m - 1/2] for the law Z that is rounded. Floats may decide from the first bits of u; where they do not,
`magnitude` compares its bits, as many as it takes, with these tails, enclosed by integers. No law is inverted
there: a guess only says where to begin.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from understudy.noise.samplers import WORD, NoiseSource

Cut = Callable[[int, int], tuple[int, int]]
"""m and bits to integers with low ≤ 2^bits · P[Z > m + 1/2] ≤ high."""

Near = Callable[[float], float]
"""About which magnitude a number u between 0 and 1/2 makes, in floats."""


def magnitude(cut: Cut, near: Near, start: int, bits: int, noise: NoiseSource) -> int:
    """|X| at a number u in (0, 1/2) that begins with the `bits` bits of `start`; draws more until certain."""
    while True:
        found = _certain(cut, near, start, bits)
        if found is not None:
            return found
        start, bits = start << WORD | int(noise.words(1)[0]), bits + WORD


def _certain(cut: Cut, near: Near, start: int, bits: int) -> int | None:
    """|X|, where every number that begins so has the same; else None."""
    spare = WORD
    first, last = start << spare, start + 1 << spare
    m = max(0, round(near((2 * start + 1) / (2 << bits))))
    while True:
        low, high = cut(m, bits + spare)
        if last <= low:  # u < P[Z > m + 1/2]: further out
            m += 1
        elif first < high:
            return None
        elif m == 0:
            return 0
        else:
            low, high = cut(m - 1, bits + spare)
            if last <= low:
                return m
            if first < high:
                return None
            m -= 1


@lru_cache(maxsize=16)
def pi_enclosure(precision: int) -> tuple[int, int]:
    """Integers with low < 2^precision · π < high, by Machin's π = 16·atan(1/5) - 4·atan(1/239).

    Each of at most `precision` + 64 terms of a series is rounded by less than 2, and its remainder is below 1:
    with 64 spare bits, π is within one unit of the last bit that is kept.
    """
    one = 1 << precision + 64
    pi = 16 * _arctangent_of_inverse(5, one) - 4 * _arctangent_of_inverse(239, one) >> 64
    return pi - 1, pi + 2


def _arctangent_of_inverse(n: int, one: int) -> int:
    power, total, k = one // n, 0, 0
    while power:
        total += -(power // (2 * k + 1)) if k % 2 else power // (2 * k + 1)
        power, k = power // (n * n), k + 1
    return total


def sine_over_pi_enclosure(w: Fraction, precision: int) -> tuple[int, int]:
    """Integers with low ≤ 2^precision · sin(πw)/π ≤ high, for 0 < w ≤ 1/2, a few units apart.

    By its series: the terms alternate and fall, each is rounded down for one end and up for the other, and the
    first that is left out bounds the rest.
    """
    pi_low, pi_high = pi_enclosure(precision)
    square = w * w
    ratio_low = pi_low * pi_low * square.numerator // (square.denominator << precision)
    ratio_high = -(-pi_high * pi_high * square.numerator // (square.denominator << precision))
    low = (w.numerator << precision) // w.denominator
    high = low + 1
    total_low, total_high, k = low, high, 1
    while True:
        divisor = (2 * k) * (2 * k + 1) << precision
        low, high = low * ratio_low // divisor, -(-high * ratio_high // divisor)
        if high <= 1:  # it bounds all that is left out, of either sign
            return total_low - high, total_high + high
        total_low, total_high = (total_low - high, total_high - low) if k % 2 else (
            total_low + low, total_high + high)  # fmt: skip
        k += 1
