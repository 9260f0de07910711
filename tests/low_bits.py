"""An analyst who reads labels off the low bits of scores with floating-point normal noise.

A score `fl(c/n + fl(σ·Φ⁻¹(u)))` with u on a grid of 2⁻⁵³ can only be one of the floats that c makes reachable. The
analyst predicts labels for three rows, abstains on all others (a label that does not occur), and keeps those of
the eight patterns of three labels under which every score is reachable. Repeated with other predictions, one is
left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from understudy.validity.modes import Gaussian, Heard, SealedLook

ABSTAIN = 2
"""A label that never occurs: its row counts as wrong, whatever its label is."""

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class AllBits(Gaussian):
    """The mutant: version 0.1 added floating-point noise to the exact mean, and told all of it."""

    def say(self, look: SealedLook, heard: Heard, *, noise):
        word = int(noise.words(1)[0]) >> 11
        return {"value": min(max(look.mean + self.sigma * float(ndtri((word + 0.5) / 2**53)), 0.0), 1.0)}


def reachable(score: float, mean: float, sigma: float) -> bool:
    """Whether some word of 53 bits makes this float of this mean, by the arithmetic of the old sampler."""
    near = np.nextafter(score - mean, [-np.inf, np.inf])
    low, high = sorted(int(ndtr(x / sigma) * 2**53) for x in near)
    words = np.clip(np.arange(low - 8, high + 9), 0, 2**53 - 1)
    return bool((mean + sigma * ndtri((words + 0.5) / 2**53) == score).any())


def read_labels(
    ask: Callable[[Labels], float],
    rows: int,
    sigma: float,
    *,
    times: int,
    draw: np.random.Generator,
    read: int | None = None,
) -> Labels:
    """Labels of the first `read` rows, or of all, three at a time, each triple asked about `times` times."""
    count = rows if read is None else read
    found = np.empty(count, np.int64)
    for first in range(0, count, 3):
        places = np.arange(first, min(first + 3, count))
        patterns = [np.array(labels) for labels in product((0, 1), repeat=len(places))]
        for _ in range(times):
            predicted = np.full(rows, ABSTAIN)
            predicted[places] = draw.integers(0, 2, len(places))
            patterns = _compatible(ask(predicted), predicted[places], patterns, rows, sigma) or patterns
        found[places] = patterns[draw.integers(len(patterns))]
    return found


def _compatible(
    score: float, predicted: Labels, patterns: Sequence[Labels], rows: int, sigma: float
) -> list[Labels]:
    if not 0 < score < 1:  # it was clipped
        return list(patterns)
    means = [int((labels == predicted).sum()) / rows for labels in patterns]
    told = {mean: reachable(score, mean, sigma) for mean in set(means)}
    return [labels for labels, mean in zip(patterns, means, strict=True) if told[mean]]
