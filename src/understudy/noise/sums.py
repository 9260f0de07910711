"""Tails of sums of independent noises, from above. Nothing random.

Counts of neighbouring cells, each with noise of its own, are added up to counts below a cut and above it. What is
told of such sums needs the tail of w·S + w'·S' (+ …), where S is a sum of j noises and S' one of k, all
independent, and the weights are positive. (The laws are symmetric: signs make no difference.)

Gaussian noise    A sum of two independent discrete Gaussians of variances a and b has at z the probability of
                  one of variance a + b, but for a factor: by Poisson summation Σ exp(-(x - m)²/(2c)) over whole x,
                  with c = ab/(a + b), is √(2πc) times a number within 3·exp(-2π²c) of 1, whatever m is. With
                  variances of at least 4 each addition so costs a factor of less than 1 + 10⁻¹⁵. One discrete
                  Gaussian is at most 1 above a normal number that goes with it (`sessions.simulation` says why),
                  so that w·S + w'·S' is at most w + w' above a normal number of the same variance.
Laplace noise     Each w·X is rounded up to a grid, and their laws are convolved there. Rounding up makes no tail
                  smaller, and values beyond the grid are counted as failures. So are those of Gaussian noise of a
                  smaller variance. Of very many noises Chernoff's bound is taken.
Rounded noise     Normal numbers, each rounded to a whole one: a sum of n of them is within n/2 of a normal number.
                  Where that is much beside its deviation, laws are convolved as those of Laplace noise are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, erfc, exp, expm1, log, log1p, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEARLY_NORMAL = 4
"""From this variance on a sum of discrete Gaussians is one, for all that floats can tell."""

FINENESS = 64
"""Steps of the grid in the deviation of one noise, times the root of the number of noises."""

LEAST_BETA = 1e-9
"""Below this probability float sums say too little, and Chernoff's bound is taken."""

SLACK = 1e-12
"""What float arithmetic, and the factor of a sum of Gaussians, can make a tail too small by."""

TAIL = 1e-15
"""Tails of the grid that are cut off, and counted as failures."""

TRIED = 100
"""Exponents that Chernoff's bound for Laplace noise is taken at, and as many smaller ones for many noises."""

CONVOLVED = 2048
"""Of more noises than these laws are not convolved, which takes time and memory in proportion to their number:
Chernoff's bound is taken, which is a fifth larger or so."""


LITTLE = 0.01
"""The part of a bound up to which what rounding can add to normal noise is simply added."""

LawKind = Literal["laplace", "gaussian", "rounded"]


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Discrete Laplace noise of a scale, discrete Gaussian or rounded normal noise of a variance: `parameter`."""

    kind: LawKind
    parameter: Fraction

    @property
    def deviation(self) -> float:
        """At least the standard deviation of one noise."""
        if self.kind == "laplace":
            return sqrt(2) * float(self.parameter)
        return sqrt(self.parameter) + (0.5 if self.kind == "rounded" else 0.0)

    def log_moments(self, t: Floats) -> Floats:
        """At least ln E exp(t·X) for each t, below the inverse of the scale of Laplace noise in absolute value.

        A discrete Gaussian has at most the normal's, t²σ²/2. [CKS20] Rounding moves a number by a half at most.
        """
        if self.kind != "laplace":
            rounding = np.abs(t) / 2 if self.kind == "rounded" else 0.0
            return t * t * float(self.parameter) / 2 + rounding
        rate = 1 / float(self.parameter)
        # (1 - q)²/((1 - q·eᵗ)(1 - q·e⁻ᵗ)) with q = exp(-rate)
        return 2 * log(-expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))

    def cumulative(self, at: Floats) -> Floats:
        """P[X ≤ k], for whole numbers k; of Gaussian noise, for variances of at most `NEARLY_NORMAL`."""
        if self.kind == "laplace":
            scale = float(self.parameter)
            log_one_and_q = log1p(exp(-1 / scale))
            below = np.exp(np.minimum(at, 0.0) / scale - log_one_and_q)
            above = 1 - np.exp(-(np.maximum(at, 0.0) + 1) / scale - log_one_and_q)
            return np.where(at < 0, below, above)
        if self.kind == "rounded":
            deviation = sqrt(self.parameter)
            most = ceil(9 * deviation) + 2
            summed = np.array([erfc(-(k + 0.5) / (sqrt(2) * deviation)) / 2 for k in range(-most, most + 1)])
            return np.where(at < -most, 0.0, summed[np.clip(at + most, 0, 2 * most).astype(np.int64)])
        most = 40
        terms = np.exp(-(np.arange(-most, most + 1.0) ** 2) / (2 * float(self.parameter)))
        summed = np.cumsum(terms) / terms.sum()
        return np.where(at < -most, 0.0, summed[np.clip(at + most, 0, 2 * most).astype(np.int64)])


@lru_cache(maxsize=4096)
def sum_bound(law: NoiseLaw, cells: tuple[int, int], weight: Fraction, beta: float) -> float:
    """A number t with P[w·S + w'·S' ≥ t] ≤ `beta`: S a sum of so many noises, weighed by `weight`, S' one of the
    others, weighed by 1 less that. `weighted_bound` says how near to the least such number it is.
    """
    pairs = zip(cells, (weight, 1 - weight), strict=True)
    return weighted_bound(law, tuple((n, float(w)) for n, w in pairs), beta)


@lru_cache(maxsize=4096)
def weighted_bound(law: NoiseLaw, summed: tuple[tuple[int, float], ...], beta: float) -> float:
    """A number t with P[w·S + w'·S' + … ≥ t] ≤ `beta`, for pairs of a number of noises, which S adds up, and w.

    The least such number, but for the rounding that the module names, which is about a hundredth of it.
    """
    parts = [(n, w) for n, w in summed if n and w]
    if not parts:
        return 0.0
    if beta < LEAST_BETA:
        return float(_chernoff(law, parts, beta))
    normal = sqrt(float(law.parameter) * sum(n * w * w for n, w in parts)) * -NormalDist().inv_cdf(
        beta - SLACK
    )
    if law.kind == "gaussian" and law.parameter >= NEARLY_NORMAL:
        return normal + sum(w for _, w in parts)
    moved = sum(n * w for n, w in parts) / 2
    if law.kind == "rounded" and moved <= LITTLE * normal:
        return normal + moved
    total = sum(n for n, _ in parts)
    if total > CONVOLVED:
        return float(_chernoff(law, parts, beta))
    step = law.deviation * max(w for _, w in parts) / (FINENESS * sqrt(total))
    reach = ceil(float(_chernoff(law, parts, TAIL)) / step) + total
    longest = max(ceil(float(_chernoff(law, [(1, w)], TAIL)) / step) + 1 for _, w in parts)
    length = 1 << (2 * max(reach, longest) + 1).bit_length()
    product: NDArray[np.complex128] = np.ones(length // 2 + 1, np.complex128)
    for n, w in parts:
        product *= _transformed(law, w, step, length) ** n
    chances = np.fft.irfft(product, length)
    tail = np.cumsum(np.maximum(chances[reach:0:-1], 0.0))[
        ::-1
    ]  # P[rounded sum ≥ i·step] for i = 1, …, reach
    lost = (total + 2) * TAIL + SLACK
    return (
        float(step * (1 + int(np.argmax(tail <= beta - lost))))
        if tail[-1] <= beta - lost
        else step * (reach + 1)
    )


def _transformed(law: NoiseLaw, weight: float, step: float, length: int) -> NDArray[np.complex128]:
    """The Fourier transform of the law of ⌈w·X/step⌉; values below 0 stand at the end of the grid."""
    half = length // 2 - 1
    ends = np.arange(-half - 1, half + 1) * (step / weight)
    ends = np.floor(ends - np.abs(ends) * 1e-15)  # a float that is rounded up must not let a value through
    placed = np.zeros(length)
    placed[np.arange(-half, half + 1) % length] = np.diff(law.cumulative(ends))
    return np.fft.rfft(placed)


@lru_cache(maxsize=1024)
def quick_bounds(law: NoiseLaw, cells: int, weight: Fraction, beta: float) -> Floats:
    """For S of 1, 2, … noises and S' of the others of so many cells, numbers of which `sum_bound` is none above.

    They are Chernoff's bounds: a third larger or so, and found at once for all of them.
    """
    below = np.arange(1, cells, dtype=np.float64)
    return _chernoff(law, [(below, float(weight)), (cells - below, float(1 - weight))], beta) + 1


def _chernoff(law: NoiseLaw, parts: Sequence[tuple[Floats | int, float]], beta: float) -> Floats:
    """Chernoff's bound: the least (Σ n·ln E exp(t·wX) + ln 1/β)/t over some t."""
    if law.kind != "laplace":
        squares, moved = sum(n * w * w for n, w in parts), sum(n * w for n, w in parts) / 2
        normal = np.asarray(np.sqrt(2 * float(law.parameter) * squares * -log(beta)))
        return normal + moved if law.kind == "rounded" else normal
    tried = np.concatenate([np.geomspace(1 / TRIED**2, 1 / TRIED, TRIED)[:-1], np.arange(1, TRIED) / TRIED])
    t = tried / (float(law.parameter) * max(w for _, w in parts))
    total = np.full((t.size, *np.shape(parts[0][0])), -log(beta))
    for n, w in parts:
        total += np.multiply.outer(law.log_moments(t * w), n)
    return np.asarray((total.T / t).T.min(axis=0))
