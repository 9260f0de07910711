"""Subjects that are called once for each draw: selections, noisy max, sparse vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.audit.claim import Claim, ConcentratedClaim, PureClaim
from understudy.audit.events import Draws
from understudy.audit.privacy import Draw, Pair, Subject, stacked
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.noise import NoiseSource
from understudy.privacy.cost import epsilon, rho


class Chooses(Protocol):
    """A selection by scores."""

    def choose(self, scores: NDArray[np.int64], *, noise: NoiseSource) -> int: ...


class Sparse(Protocol):
    """A sparse vector as functions from state to state."""

    def open(self, *, noise: NoiseSource) -> Any: ...

    def ask(self, state: Any, value: int, *, noise: NoiseSource) -> tuple[Any, Any]: ...


# ---- selections


def chosen(mechanism: Chooses, scores: Sequence[int]) -> Draw:
    """Runs of a selection on one vector of scores."""
    array = np.array(scores, np.int64)

    def draw(count: int, noise: NoiseSource) -> Draws:
        return np.array([[mechanism.choose(array, noise=noise)] for _ in range(count)], np.int64)

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


def selection_pairs(mechanism: Chooses, moved: int, claim: Claim) -> list[Pair]:
    """A selection on all of `score_pairs`."""
    return [
        Pair(name, chosen(mechanism, one), chosen(mechanism, two), claim)
        for name, one, two in score_pairs(moved)
    ]


# ---- sparse vectors


def streamed(mechanism: Sparse, values: Sequence[int], *, hits: int) -> Draw:
    """What a handle says about a stream of values, until it is closed: 0 for below, 1 or the number for above."""

    def once(noise: NoiseSource) -> list[int]:
        state, above, told = mechanism.open(noise=noise), 0, []
        for value in values:
            answer, state = mechanism.ask(state, value, noise=noise)
            if answer is None or answer is False:
                told.extend((0, 0))
                continue
            told.extend((1, 0 if answer is True else int(answer)))
            above += 1
            if above == hits:
                break
        return told

    def draw(count: int, noise: NoiseSource) -> Draws:
        return stacked([once(noise) for _ in range(count)], 2 * len(values))

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


def sparse_pairs(build: Callable[[int, int], Any], claim: Claim, *, moved: int = 1) -> list[Pair]:
    """`build(sensitivity, hits)`: streams for one hit, and those with several certain hits for two."""
    found = []
    for name, one, two in stream_pairs(moved):
        hits = 2 if "certain" in name else 1
        mechanism = build(moved, hits)
        found.append(
            Pair(name, streamed(mechanism, one, hits=hits), streamed(mechanism, two, hits=hits), claim)
        )
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
        Subject("exponential", mechanism, "single", lambda: selection_pairs(exponential, 2, pure)),
        Subject(
            "exponential-zcdp", mechanism, "single", lambda: selection_pairs(exponential, 2, range_claim)
        ),
        Subject(
            "noisy-max",
            "mechanism.noisy_max.ReportNoisyMax.choose",
            "single",
            lambda: selection_pairs(noisy_max, 2, PureClaim(epsilon(noisy_max.event))),
        ),
        Subject(
            "above-threshold",
            "mechanism.sparse_vector.AboveThreshold",
            "single",
            lambda: sparse_pairs(above, PureClaim(price)),
        ),
        Subject(
            "numeric-sparse",
            "mechanism.sparse_vector.NumericSparse",
            "single",
            lambda: sparse_pairs(numeric, PureClaim(price), moved=2),
        ),
    ]
