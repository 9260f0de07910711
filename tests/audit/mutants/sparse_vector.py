"""The four broken sparse vectors of the literature, and others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from audit.contract import (
    counts_hits,
)
from audit.mutants.mutant import ERROR, ONE, Mutant
from understudy.mechanism.sparse_vector import AboveThreshold
from understudy.noise.samplers import SeededNoise, discrete_laplace
from understudy_audit.claim import PureClaim
from understudy_audit.privacy import Pair, audit_pair


@dataclass(frozen=True)
class Svt:
    """AboveThreshold, and the four broken variants (Lyu, Su and Li, 2017) by field; promised: ε = 4 with Δ = 1.

    Drawn for many runs at once: column i of the noise is for value i.
    """

    threshold_scale: Fraction | None = Fraction(1, 2)
    value_scale: Fraction | None = Fraction(1)
    hits: int = 1
    tells_noisy_value: bool = False
    answer_scale: Fraction | None = None
    reuses_value_noise: bool = False

    def draw(self, values):
        def told(count, noise):
            size = (count, len(values))
            drawn = self._noise(self.value_scale, size, noise)
            if self.reuses_value_noise:
                drawn[:] = drawn[:, :1]
            noisy = np.array(values) + drawn
            above = noisy >= self._noise(self.threshold_scale, (count, 1), noise)
            above &= np.cumsum(above, axis=1) <= self.hits
            closed = np.cumsum(above, axis=1) - above >= self.hits
            number = noisy if self.tells_noisy_value else np.array(values)
            if not self.tells_noisy_value:
                number = number + self._noise(self.answer_scale, size, noise)
                number = number if self.answer_scale else np.zeros(size, np.int64)
            found = np.stack([np.where(closed, -1, above), np.where(above, number, 0)], axis=2)
            return found.reshape(count, -1)

        return told

    def _noise(self, scale, size, noise):
        if scale is None:
            return np.zeros(size, np.int64)
        return discrete_laplace(scale, size[0] * size[1], noise=noise).reshape(size)


def sparse_caught(mechanism, one, two, *, samples=400_000) -> bool:
    pair = Pair("mutant", mechanism.draw(one), mechanism.draw(two), PureClaim(Fraction(4)))
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(7)))


class Miscounting(AboveThreshold):
    """Closes one answer late, or never."""

    late = 1

    def ask(self, state, value, *, noise):
        return AboveThreshold.ask(
            self, replace(state, above=max(state.above - self.late, 0)), value, noise=noise
        )


class NeverCounting(Miscounting):
    late = 10**9


def above(kind, hits=1):
    return kind(epsilon=ONE, sensitivity=1, threshold=0, hits=hits)


SPARSE_VECTOR = [
    Mutant("sparse vector variant 3: the comparison's own noisy value is told", "statistical",
           lambda: sparse_caught(Svt(tells_noisy_value=True), [0] * 6 + [1], [1] * 6 + [0])),
    Mutant("sparse vector variant 4: value noise that does not grow with the hits", "statistical",
           lambda: sparse_caught(Svt(ONE, Fraction(3, 4), hits=8), [0] * 8, [1] * 4 + [-1] * 4)),
    Mutant("sparse vector variant 5: no noise on the values", "statistical",
           lambda: sparse_caught(Svt(value_scale=None), [0, 1], [1, 0], samples=50_000)),
    Mutant("sparse vector variant 6: any number of hits at one price", "statistical",
           lambda: sparse_caught(Svt(hits=12), [0] * 12, [1] * 6 + [-1] * 6)),
    Mutant("sparse vector without noise on the threshold", "statistical",
           lambda: sparse_caught(Svt(threshold_scale=None, value_scale=Fraction(1, 2)), [-1] * 4, [0] * 4,
                                 samples=100_000)),
    Mutant("sparse vector that draws its value noise once", "statistical",
           lambda: sparse_caught(Svt(reuses_value_noise=True), [0, 1], [1, 0], samples=50_000)),
    Mutant("sparse vector whose told value was never paid for", "statistical",
           lambda: sparse_caught(Svt(answer_scale=Fraction(1, 8)), [30], [31], samples=50_000)),
    Mutant("sparse vector that counts one hit too few", "contract",
           lambda: bool(counts_hits(above(Miscounting), hits=1, noise=SeededNoise(1)))),
    Mutant("sparse vector that never counts", "contract",
           lambda: bool(counts_hits(above(NeverCounting, 3), hits=3, noise=SeededNoise(1)))),
]  # fmt: skip
