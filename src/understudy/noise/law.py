"""The discrete Laplace and Gaussian laws: exact cumulative cuts, log-laws, tails, quantiles. Nothing random.

    discrete Laplace of scale b       P[X = k] ∝ exp(-|k|/b)
    discrete Gaussian of variance v   P[X = k] ∝ exp(-k²/(2v))        [CKS20, Definition 1]

`noise` draws from these laws by exact inversion and needs each cumulative probability to as many bits as it
takes; mechanisms need tails and quantiles for their error bars. Both read the same parameters, as rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, erfc, exp, inf, isqrt, log, log1p, nextafter, pi, sqrt
from statistics import NormalDist
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ParameterError
from understudy.rational import Number, positive, probability

MAX_SCALE = 2**40
"""Largest scale of the discrete Laplace: |X| ≥ 2⁶² has probability below exp(-4,000,000)."""

MAX_VARIANCE = 2**60
"""Largest variance of the discrete Gaussian: |X| ≥ 2⁶² has probability below exp(-2⁶³)."""

ROUNDING = 1e-12
"""Relative allowance that lifts a tail computed in floats above the true one."""

LEAST_TAIL = 1e-295
"""A Gaussian tail below this is reported as this: floats hold smaller numbers with fewer digits."""

_LEAST_BETA = Fraction(1, 10**290)
"""The least failure probability of a quantile."""


def scale_parameter(value: Number) -> Fraction:
    """A scale that the discrete Laplace supports."""
    return positive(value, "scale", at_most=MAX_SCALE)


def variance_parameter(value: Number) -> Fraction:
    """A variance that the discrete Gaussian supports."""
    return positive(value, "variance", at_most=MAX_VARIANCE)


# ------------------------------------------------------------------------------------------ exact cuts


class Law(Protocol):
    """A law on 0, 1, 2, … known through the cuts of its cumulative probabilities, to any precision.

    `cuts(bits)` lists floor(2^bits · P[X ≤ k]) for k = 0, 1, … . So if `u` is the integer made of the first
    `bits` bits of a uniform number, and equals no cut, then the number of cuts below `u` is the outcome,
    whatever bits follow. An infinite list ends with the cut 2^bits - 1, which stands for all later ones.
    """

    def cuts(self, bits: int) -> tuple[int, ...]: ...


def exp_enclosure(rate: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ 2^bits · exp(-rate) ≤ high and high - low ≤ 3, for rate ≥ 0.

    Decimal's exp is correctly rounded. With d digits, rounding the exponent (at most `bits`), exp and the
    product each move the result by at most bits · 10^(1-d) · 2^bits, far below 1 for the d used here.
    """
    if rate == 0:
        return 1 << bits, 1 << bits
    if rate > bits:
        return 0, 1  # exp(-rate) < 2^-bits
    context = _decimal_context(bits * 30103 // 100000 + len(str(bits)) + 10, ROUND_FLOOR)
    value = context.exp(context.divide(Decimal(-rate.numerator), Decimal(rate.denominator)))
    whole = int(context.multiply(value, Decimal(1 << bits)))
    return max(0, whole - 1), whole + 2


def _decimal_context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def power_enclosures(rate: Fraction, bits: int) -> Callable[[int], tuple[int, int]]:
    """A function from g ≥ 0 to integers that enclose 2^bits · exp(-rate · g), by digits of g in base 256."""

    @cache
    def digit(value: int, place: int) -> tuple[int, int]:
        return exp_enclosure(rate * (value << place), bits)

    def enclose(g: int) -> tuple[int, int]:
        low = high = 1 << bits
        for place in range(0, g.bit_length(), 8):
            below, above = digit(g >> place & 255, place)
            low, high = low * below >> bits, -(-high * above >> bits)
        return low, high

    return enclose


@dataclass(frozen=True, slots=True)
class Coin:
    """0 with probability `p`, else 1; p is rational."""

    p: Fraction

    def cuts(self, bits: int) -> tuple[int, ...]:
        return ((self.p.numerator << bits) // self.p.denominator,)


@dataclass(frozen=True, slots=True)
class ExpCoin:
    """0 with probability exp(-`rate`), else 1."""

    rate: Fraction

    def cuts(self, bits: int) -> tuple[int, ...]:
        margin = 32
        while True:
            low, high = exp_enclosure(self.rate, bits + margin)
            if low >> margin == high >> margin:
                return (low >> margin,)
            margin *= 2  # ends: exp of a rational other than 0 is irrational, so never on a cell's edge


@dataclass(frozen=True, slots=True)
class Magnitude:
    """k = 0, 1, 2, … with weight exp(-rate · k^power); if `folded`, k ≥ 1 counts twice.

    Folded it is |X| of a discrete Laplace (power 1) or Gaussian (power 2); plain, X given X ≥ 0.
    """

    rate: Fraction
    power: Literal[1, 2]
    folded: bool

    def cuts(self, bits: int) -> tuple[int, ...]:
        margin = 64
        while True:
            found = self._cuts(bits, margin)
            if found is not None:
                return found
            margin *= 2

    def _cuts(self, bits: int, margin: int) -> tuple[int, ...] | None:
        """The cuts from sums in fixed point with `margin` spare bits; None if those leave one in doubt."""
        low, high, rest = self._sums(bits + margin, negligible=1 << margin // 2)
        least, most, last = low[-1], high[-1] + rest, (1 << bits) - 1
        cuts: list[int] = []
        for below, above in zip(low, high, strict=True):
            cut = (below << bits) // most
            if cut >= last:
                break
            if above << bits >= (cut + 1) * least:  # another cut, or beyond the last, may be the true one
                return None
            cuts.append(cut)
        return (*cuts, last)

    def _sums(self, precision: int, *, negligible: int) -> tuple[list[int], list[int], int]:
        """Enclosures of the partial sums of 2^precision · weight, until at most `negligible` is left out.

        Interval arithmetic on integers: every product is rounded outwards. Weights come from the ratio of
        neighbours, exp(-rate), which for power 2 shrinks by exp(-2 rate) at each step.
        """
        one = 1 << precision
        ratio_low, ratio_high = exp_enclosure(self.rate, precision)
        step_low, step_high = exp_enclosure(2 * self.rate, precision) if self.power == 2 else (one, one)
        times = 2 if self.folded else 1
        low, high, most = [one], [one], negligible // times
        weight_low = weight_high = sum_low = sum_high = one
        while True:
            # The ratios never grow, so a geometric series bounds everything that is left out. It is divided out
            # only at the end: whether it is small enough is seen without.
            following, fallen = weight_high * ratio_high, one - ratio_high
            if following < most * fallen:
                return low, high, times * (following // fallen + 1)
            weight_low = weight_low * ratio_low >> precision
            weight_high = -(-following >> precision)
            sum_low, sum_high = sum_low + times * weight_low, sum_high + times * weight_high
            low.append(sum_low)
            high.append(sum_high)
            ratio_low = ratio_low * step_low >> precision
            ratio_high = -(-ratio_high * step_high >> precision)


# ------------------------------------------------------------------------------------------ log-laws


def discrete_laplace_log_law(scale: Number, points: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of P[X = k] of the discrete Laplace at each integer of `points`, to float accuracy."""
    rate = float(1 / scale_parameter(scale))
    return -rate * np.abs(np.asarray(points, dtype=np.float64)) - log((1 + exp(-rate)) / -np.expm1(-rate))


def discrete_gaussian_log_law(variance: Number, points: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of P[X = k] of the discrete Gaussian at each integer of `points`, to float accuracy."""
    v = variance_parameter(variance)
    return -np.square(np.asarray(points, dtype=np.float64)) * float(1 / (2 * v)) - log(_gaussian_sum(v))


def _gaussian_sum(variance: Fraction) -> float:
    """Σ exp(-k²/(2 variance)) over all integers k.

    For a variance above 1 by Poisson summation, √(2πv) · Σ exp(-2π²v n²): both series converge at once.
    """
    v = float(variance)
    if v < 1:
        return 1 + 2 * sum(exp(-k * k / (2 * v)) for k in range(1, 12))
    return sqrt(2 * pi * v) * (1 + 2 * exp(-2 * pi * pi * v) + 2 * exp(-8 * pi * pi * v))


# ------------------------------------------------------------------------------------------ tails, quantiles


def discrete_laplace_tail(scale: Number, t: int) -> float:
    """P[|X| > t] = 2 exp(-(t+1)/scale) / (1 + exp(-1/scale)), rounded up to a float.

    >>> discrete_laplace_tail(1, 0) == nextafter(2 * exp(-1) / (1 + exp(-1)), 1)
    True
    """
    return _laplace_tail(scale_parameter(scale), t)


def _laplace_tail(scale: Fraction, t: int) -> float:
    if t < 0:
        return 1.0
    up, down = _decimal_context(40, ROUND_CEILING), _decimal_context(40, ROUND_FLOOR)
    numerator = up.exp(up.divide(Decimal(-(t + 1) * scale.denominator), Decimal(scale.numerator)))
    ratio = down.exp(down.divide(Decimal(-scale.denominator), Decimal(scale.numerator)))
    doubled = up.multiply(2, up.next_plus(numerator))
    tail = up.divide(doubled, down.add(1, down.next_minus(ratio)))
    nearest = float(tail)
    return min(1.0, nearest if Decimal(nearest) >= tail else nextafter(nearest, inf))


def discrete_gaussian_tail(variance: Number, t: int) -> float:
    """An upper bound on P[|X| > t], above it by at most 2e-12 of itself or 1e-295; decreasing in t."""
    return _gaussian_tail(variance_parameter(variance), t)


def _gaussian_tail(variance: Fraction, t: int) -> float:
    if t < 0:
        return 1.0
    if Fraction(t) ** 2 > 37**2 * variance:
        return LEAST_TAIL  # the tail is below exp(-684)
    halves = _tail_by_integral(variance, t)
    if halves is None:
        halves = _tail_by_summation(variance, t)
    tail = 2 * halves / _gaussian_sum(variance) * (1 + ROUNDING)
    return min(1.0, max(tail, LEAST_TAIL))


def _tail_by_summation(variance: Fraction, t: int) -> float:
    """Σ exp(-k²/(2v)) over k > t, its terms taken until they are below exp(-46) of the first."""
    first = t + 1
    terms = isqrt(first * first + ceil(92 * variance)) - first + 2
    j = np.arange(terms, dtype=np.float64)
    relative = np.exp(-j * (2.0 * first + j) * float(1 / (2 * variance)))
    return exp(-float(first * first / (2 * variance))) * float(relative.sum())


def _tail_by_integral(variance: Fraction, t: int) -> float | None:
    """The same sum from above by Euler-Maclaurin at a = t + 1/2; None where its remainder is not negligible.

    With f(x) = exp(-x²/(2v)) and K the midpoint rule's Peano kernel, two integrations by parts give
        Σ_{k>t} f(k) = ∫_a^∞ f + f'(a)/24 + ∫_a^∞ g f'''',   0 ≤ g ≤ 1/384.
    In z = a/σ the remainder is at most ((z³ + 9z)φ(z) + 12 Q(z)) / (384 σ⁴), in units of σ√(2π).
    """
    v = float(variance)
    z = float(Fraction(2 * t + 1, 2) ** 2 / variance) ** 0.5
    density, tail = exp(-z * z / 2) / sqrt(2 * pi), erfc(z / sqrt(2)) / 2
    remainder = ((z**3 + 9 * z) * density + 12 * tail) / (384 * v * v)
    if remainder > ROUNDING / 8 * tail:
        return None
    return sqrt(2 * pi * v) * (tail - z * density / (24 * v) + remainder)


def discrete_laplace_quantile(scale: Number, beta: Number) -> int:
    """The smallest t with P[|X| > t] ≤ beta.

    >>> discrete_laplace_quantile(10, 0.05)
    30
    """
    return _laplace_quantile(scale_parameter(scale), failure_probability(beta))


@lru_cache(maxsize=1024)
def _laplace_quantile(scale: Fraction, beta: Fraction) -> int:
    exponent = log(2 / float(beta)) - log1p(exp(-float(1 / scale)))
    return smallest(lambda t: _laplace_tail(scale, t) <= beta, near=int(scale * Fraction(exponent)))


def discrete_gaussian_quantile(variance: Number, beta: Number) -> int:
    """The smallest t with P[|X| > t] ≤ beta, or, where that is a tie within 2e-12 of beta, the next.

    >>> discrete_gaussian_quantile(100, 0.05)
    20
    """
    return _gaussian_quantile(variance_parameter(variance), failure_probability(beta))


@lru_cache(maxsize=1024)
def _gaussian_quantile(variance: Fraction, beta: Fraction) -> int:
    near = sqrt(float(variance)) * -NormalDist().inv_cdf(float(beta) / 2)
    return smallest(lambda t: _gaussian_tail(variance, t) <= beta, near=int(near))


def failure_probability(beta: Number) -> Fraction:
    """A probability of failure that quantiles can be found for; a ParameterError for a smaller one."""
    failure = probability(beta)
    if failure < _LEAST_BETA:
        raise ParameterError(f"beta must be at least {float(_LEAST_BETA):g}, not {beta}")
    return failure


def smallest(holds: Callable[[int], bool], *, near: int) -> int:
    """The smallest t ≥ 0 at which `holds`, a condition that stays true once it is: gallop, then bisect."""
    fails, step = near - 1, 1
    while fails >= 0 and holds(fails):
        fails, step = fails - step, 2 * step
    fails = max(fails, -1)
    success, step = fails + 1, 1
    while not holds(success):
        fails, success, step = success, success + step, 2 * step
    while success - fails > 1:
        middle = (fails + success) // 2
        fails, success = (fails, middle) if holds(middle) else (middle, success)
    return success
