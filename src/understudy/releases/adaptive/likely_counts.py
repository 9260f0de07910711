"""What the noisy counts of a column let expect of each of its values.

A noisy count alone says little of a value that holds few people for its noise. All values of the column together
say more: how many are empty, how large the others are, and whether one that follows another is of about its size,
as bins of ages are and names of countries are not. So the column is taken to come from one of several public laws,
and the expected count of each value, given all noisy ones, is told; a law counts by how likely it makes the noisy
counts. (Each law is a hidden Markov model of the counts, worked out by forward and backward sums.) This is made of
released numbers, and no error bar rests on it.
"""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.compile import compiled

Values = NDArray[np.float64]

EMPTY, SHAPES = (0.03, 0.3, 0.8), (0.0, 0.5, 1.0)
"""Laws of a single value: the chance that it is empty, and the shape of a Gamma law for those that are not, the
column's mean count its mean. A shape of 0 is even in the logarithm of the count."""

ALIKE, SCALES, APART = 0.3, (0.2, 0.6), 0.1
"""How probable it is, before anything is seen, that values follow their neighbours; the scales of the difference
of logarithms, which is Laplace's; and the chance that a value starts anew, whatever the one before it is."""

LEAST, RATIO, STEP, FAR = 0.25, 1.3, 0.5, 12.0
"""Counts that are told apart, in standard deviations of the noise: the least, the ratio of one to the next, the
most between two of them, and those far above all noise, which may be farther apart and are told as they are."""

POSSIBLE = 1e-30
"""How likely every count is at least, so that none is ruled out by a law alone."""

BLOCK = 1024
"""Values that are taken for one column, at most: longer ones are several."""


def likely_counts(noisy: Values, variance: float) -> Values:
    """The expected count of each value, by noisy counts of this variance; none is negative."""
    std = sqrt(max(variance, 1e-6))
    parts = np.array_split(noisy, -(-noisy.size // BLOCK))
    return np.concatenate([_of_block(part / std) * std for part in parts])


def _of_block(noisy: Values) -> Values:
    """The same in standard deviations of the noise."""
    levels = _levels(float(noisy.max()) + 4)
    places = np.log(np.maximum(levels, levels[1] / RATIO))
    widths = np.gradient(places)
    mean = max(float(noisy.sum()), 1.0) / noisy.size
    laws = []
    for empty, shape in product(EMPTY, SHAPES):
        law = widths * levels**shape * np.exp(-shape * levels / mean)
        law[0] = 0.0
        law = np.maximum(law * ((1 - empty) / law.sum()), POSSIBLE)
        law[0] = empty
        laws.append(law)
    fits = -((noisy[:, None] - levels) ** 2) / 2
    seen = np.exp(fits - fits.max(axis=1, keepdims=True))
    nearness = np.array([np.exp(-np.diff(places) / scale) for scale in SCALES])
    found = _expected(seen, levels, np.array(laws), nearness, APART, log(ALIKE / len(SCALES)), log(1 - ALIKE))
    return np.where(noisy > FAR, noisy, found)


def _levels(most: float) -> Values:
    """Counts that are told apart, from 0 to at least `most`."""
    found = [0.0, LEAST]
    while found[-1] < most:
        last = found[-1]
        found.append(last + min((RATIO - 1) * last, STEP) if last < FAR else last * RATIO)
    return np.array(found)


@compiled
def _expected(seen, levels, laws, nearness, apart, alike, alone):
    """The expected level of each value, over all laws by how likely they are.

    `seen` is how likely each noisy count is at each level, up to a factor. `nearness` has e^(-distance/scale) of
    each level to the next for each scale; `alike` and `alone` are the logarithms of what laws with a scale, and
    without, are given beforehand.
    """
    count, size = seen.shape
    kinds = nearness.shape[0] + 1
    means, likely = np.zeros((laws.shape[0] * kinds, count)), np.zeros(laws.shape[0] * kinds)
    forward, now, sums, norm = np.zeros((count, size)), np.zeros(size), np.zeros(size), np.zeros(size)
    for which in range(likely.size):
        law, scale = laws[which // kinds], which % kinds - 1
        near = nearness[max(scale, 0)]
        start = 1.0 if scale < 0 else apart
        likely[which] = alone if scale < 0 else alike
        _spread(law, near, norm)
        for i in range(count):
            if i > 0 and scale >= 0:
                for v in range(size):
                    now[v] = forward[i - 1, v] / norm[v]
                _spread(now, near, sums)
            total = 0.0
            for v in range(size):
                before = start + (1 - start) * sums[v] if i > 0 else 1.0
                forward[i, v] = law[v] * before * seen[i, v]
                total += forward[i, v]
            for v in range(size):
                forward[i, v] /= total
            likely[which] += np.log(total)
        for v in range(size):
            now[v] = 1.0  # what the values after the last say of each level
        for i in range(count - 1, -1, -1):
            held = mean = anew = 0.0
            for v in range(size):
                held += forward[i, v] * now[v]
                mean += forward[i, v] * now[v] * levels[v]
                now[v] *= law[v] * seen[i, v]
                anew += now[v]
            means[which, i] = mean / held
            _spread(now, near, sums)
            for v in range(size):
                now[v] = start + (1 - start) * sums[v] / norm[v] / anew
    best = likely[0]
    for which in range(likely.size):
        best = max(best, likely[which])
    found, whole = np.zeros(count), 0.0
    for which in range(likely.size):
        weight = np.exp(likely[which] - best)
        whole += weight
        for i in range(count):
            found[i] += weight * means[which, i]
    for i in range(count):
        found[i] /= whole
    return found


@compiled
def _spread(numbers, near, sums):
    """Sums over all levels, each weighed by its nearness to this one."""
    held = 0.0
    for v in range(numbers.size):
        held = (held * near[v - 1] if v else 0.0) + numbers[v]
        sums[v] = held
    held = 0.0
    for v in range(numbers.size - 1, 0, -1):
        held = (held + numbers[v]) * near[v - 1]
        sums[v - 1] += held
