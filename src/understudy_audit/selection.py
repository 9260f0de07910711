"""Selections, noisy max and sparse vectors: many independent runs at once, through the mechanisms' own vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.noise.samplers import NoiseSource
from understudy.privacy.cost import epsilon, rho
from understudy_audit.claim import Claim, ConcentratedClaim, PureClaim
from understudy_audit.events import UNSAID, Draws
from understudy_audit.privacy import Draw, Pair, Subject


class ChoosesMany(Protocol):
    """A selection by scores, many times over."""

    def choose_many(
        self, scores: NDArray[np.int64], count: int, *, noise: NoiseSource
    ) -> NDArray[np.int64]: ...


MOST_SCORES = 2**20
"""Scores with noise that are held in memory at a time."""


# ---- selections


def chosen_many(mechanism: ChoosesMany, scores: Sequence[int]) -> Draw:
    """Runs of a selection on one vector of scores, many at a time."""
    array = np.array(scores, np.int64)
    most = max(1, MOST_SCORES // array.size)

    def draw(count: int, noise: NoiseSource) -> Draws:
        parts = [
            mechanism.choose_many(array, min(most, count - start), noise=noise)
            for start in range(0, count, most)
        ]
        return np.concatenate(parts)[:, None]

    return draw


def score_pairs(moved: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """Scores of neighbours that differ by at most `moved` in every entry: where selections leak most.

    One rises while the others fall; flat scores; one far above; gaps at which weights underflow.
    """
    for k in (2, 3, 5, 9, 17):
        yield f"{k} equal, one up and the others down", [0] * k, [moved] + [-moved] * (k - 1)
        yield f"{k} equal, one down and the others up", [0] * k, [-moved] + [moved] * (k - 1)
    yield "a rare one rises", [0, 4 * moved, 4 * moved], [moved, 3 * moved, 3 * moved]
    yield "the best falls", [6 * moved, 0, 0, 0], [5 * moved, moved, moved, moved]
    yield "two camps", [0, 0, 3 * moved, 3 * moved], [moved, moved, 2 * moved, 2 * moved]
    yield "alternating", [0] * 6, [moved, -moved] * 3
    yield "a gap of 800", [0, 800 * moved], [moved, 799 * moved]
    yield "large scores", [2**50, 2**50], [2**50 + moved, 2**50 - moved]
    yield "negative scores", [-(2**50)] * 3, [-(2**50) + moved, -(2**50) - moved, -(2**50) - moved]
    yield "only one moves", [0] * 4, [moved, 0, 0, 0]
    yield "wide ladder", [i * moved for i in range(8)], [(i + 1) * moved for i in range(7)] + [6 * moved]
    yield "one candidate of many", [0] * 40, [moved] + [-moved] * 39


def selection_pairs(mechanism: ChoosesMany, moved: int, claim: Claim) -> list[Pair]:
    """A selection on all of `score_pairs`."""
    return [
        Pair(name, chosen_many(mechanism, one), chosen_many(mechanism, two), claim)
        for name, one, two in score_pairs(moved)
    ]


# ---- sparse vectors


def streamed(mechanism: AboveThreshold | NumericSparse, values: Sequence[int]) -> Draw:
    """What handles say about a stream of values, until they are closed: 0, or 1 and the number that is told."""

    def draw(count: int, noise: NoiseSource) -> Draws:
        rows = np.full((count, 2 * len(values)), UNSAID, np.int64)
        runs, states = np.arange(count), mechanism.open_many(count, noise=noise)
        for i, value in enumerate(values):
            if isinstance(mechanism, NumericSparse):
                above, told, states = mechanism.ask_many(states, value, noise=noise)
            else:
                (above, states), told = mechanism.ask_many(states, value, noise=noise), 0
            rows[runs, 2 * i] = above
            rows[runs, 2 * i + 1] = 0
            rows[runs[above], 2 * i + 1] = told
            is_open = states.above < mechanism.hits
            runs, states = runs[is_open], states[is_open]
        return rows

    return draw


def stream_pairs(moved: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """Streams of neighbours around a threshold of 0: long runs below, one above, all moving together or apart."""
    for k in (1, 2, 4, 8):
        yield f"{k} at the threshold, all up", [0] * k, [moved] * k
        yield f"{k} at the threshold, the last up and the others down", [0] * k, [-moved] * (k - 1) + [moved]
    yield "below, then above", [-3 * moved] * 4 + [3 * moved], [-2 * moved] * 4 + [2 * moved]
    yield "far below, all up", [-8 * moved] * 6, [-7 * moved] * 6
    yield "alternating", [0] * 6, [moved, -moved] * 3
    yield "one certain hit", [20 * moved, 0, 0], [21 * moved, moved, moved]
    yield "two certain hits", [20 * moved, 20 * moved, 0], [19 * moved, 21 * moved, moved]
    yield "three certain hits", [20 * moved] * 4, [21 * moved] * 4
    yield "only one moves", [0] * 4, [0, 0, 0, moved]
    yield "none, then many", [-(10**6) * moved, *([0] * 4)], [-(10**6) * moved, *([moved] * 4)]
    yield "8 below, then one from below", [0] * 8 + [-2 * moved], [-moved] * 8 + [-moved]
    yield "far above, then below", [12 * moved, -4 * moved, 0], [11 * moved, -3 * moved, moved]
    yield "a ladder, all up", [i * moved for i in range(-4, 3)], [(i + 1) * moved for i in range(-4, 3)]
    yield "12 above, the last up and the others down", [0] * 12, [-moved] * 11 + [moved]


def sparse_pairs(
    build: Callable[[int, int], AboveThreshold | NumericSparse], claim: Claim, *, moved: int = 1
) -> list[Pair]:
    """`build(sensitivity, hits)`: streams for one hit, and those with several certain hits for two."""
    found = []
    for name, one, two in stream_pairs(moved):
        hits = 2 if "certain" in name else 1
        mechanism = build(moved, hits)
        found.append(Pair(name, streamed(mechanism, one), streamed(mechanism, two), claim))
    return found


def single_subjects(price: Fraction = Fraction(1)) -> list[Subject]:
    """The exponential mechanism, in pure ε and as ε²/8-zCDP, report noisy max, and both sparse vectors."""
    exponential = ExponentialMechanism(epsilon=price, sensitivity=2)
    noisy_max = ReportNoisyMax(epsilon=price, sensitivity=2)
    pure = PureClaim(epsilon(exponential.event))
    range_claim = ConcentratedClaim(rho(exponential.event))

    def above(moved: int, hits: int) -> AboveThreshold:
        return AboveThreshold(epsilon=price, sensitivity=moved, threshold=0, hits=hits)

    def numeric(moved: int, hits: int) -> NumericSparse:
        return NumericSparse(epsilon=price, sensitivity=moved, threshold=0, hits=hits)

    mechanism = "mechanism.exponential.ExponentialMechanism.choose"
    return [
        Subject("exponential", mechanism, "vector", lambda: selection_pairs(exponential, 2, pure)),
        Subject(
            "exponential-zcdp", mechanism, "vector", lambda: selection_pairs(exponential, 2, range_claim)
        ),
        Subject(
            "noisy-max",
            "mechanism.noisy_max.ReportNoisyMax.choose",
            "vector",
            lambda: selection_pairs(noisy_max, 2, PureClaim(epsilon(noisy_max.event))),
        ),
        Subject(
            "above-threshold",
            "mechanism.sparse_vector.AboveThreshold",
            "vector",
            lambda: sparse_pairs(above, PureClaim(price)),
        ),
        Subject(
            "numeric-sparse",
            "mechanism.sparse_vector.NumericSparse",
            "vector",
            lambda: sparse_pairs(numeric, PureClaim(price), moved=2),
        ),
    ]
