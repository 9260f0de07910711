"""Selections, noisy max and sparse vectors: many independent runs at once, through the mechanisms' own vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from understudy.mechanism.card import ChoiceSubject, ChoosesMany, StreamSubject
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.noise.samplers import NoiseSource
from understudy.privacy.cost import epsilon, rho
from understudy_audit.claim import ConcentratedClaim, PureClaim
from understudy_audit.events import UNSAID, Draws
from understudy_audit.privacy import Draw, Pair

SCORE_STEP = 2
"""Lattice steps by which a neighbour moves a score."""

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


def choice_pairs(subject: ChoiceSubject, price: Fraction) -> list[Pair]:
    """A selection on all of `score_pairs`, against its pure price or the one in zCDP."""
    mechanism = subject.build(price, SCORE_STEP)
    event = mechanism.event
    claim = ConcentratedClaim(rho(event)) if subject.concentrated else PureClaim(epsilon(event))
    return [
        Pair(name, chosen_many(mechanism, one), chosen_many(mechanism, two), claim)
        for name, one, two in score_pairs(SCORE_STEP)
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


def sparse_pairs(subject: StreamSubject, price: Fraction) -> list[Pair]:
    """Streams for one hit, and those with several certain hits for two."""
    found = []
    for name, one, two in stream_pairs(subject.moved):
        mechanism = subject.build(price, subject.moved, 2 if "certain" in name else 1)
        claim = PureClaim(epsilon(mechanism.event))
        found.append(Pair(name, streamed(mechanism, one), streamed(mechanism, two), claim))
    return found
