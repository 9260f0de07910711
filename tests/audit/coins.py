"""Coins on record, coins replayed, and the exact law of a selection by bisection of its first coin.

Every draw of the library is a function of a stream of 64-bit words (`noise.NoiseSource`). So the stream can be
recorded on one table and replayed on another; and where a choice grows with its first word, as inverting a
cumulative law does, its law is found exactly, to 2⁻⁶³, through the shipped code: no sampling, no luck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UnderstudyError
from understudy.noise.samplers import NoiseSource

WORDS = 1 << 64


class OutOfCoinsError(UnderstudyError):
    """A replayed run asked for more words than were recorded."""


@dataclass
class RecordingNoise:
    """Words of another source, kept."""

    source: NoiseSource
    kept: list[NDArray[np.uint64]] = field(default_factory=list)

    def words(self, count: int) -> NDArray[np.uint64]:
        found = self.source.words(count)
        self.kept.append(found)
        return found

    @property
    def calls(self) -> tuple[int, ...]:
        """How many words each call asked for: the path that the samplers took."""
        return tuple(len(words) for words in self.kept)


class ReplayedNoise:
    """The same words again; after the last one those of `beyond`, if it is given.

    The words are one stream: calls need not be cut as they were.
    """

    def __init__(self, kept: list[NDArray[np.uint64]], *, beyond: NoiseSource | None = None) -> None:
        self._stream = np.concatenate(kept) if kept else np.zeros(0, np.uint64)
        self._at = 0
        self._beyond = beyond

    @property
    def left(self) -> int:
        return self._stream.size - self._at

    def words(self, count: int) -> NDArray[np.uint64]:
        found = self._stream[self._at : self._at + count]
        self._at += len(found)
        if len(found) == count:
            return found
        if self._beyond is None:
            raise OutOfCoinsError("a replayed run asked for more coins than the recorded one")
        return np.concatenate([found, self._beyond.words(count - len(found))])


class FixedCoin:
    """One first word, then `rest` for ever: a uniform number that is no cut of a law, unless both ends are 0."""

    def __init__(self, word: int, *, rest: int = 0x9E37_79B9_7F4A_7C15) -> None:
        self._next = word
        self._rest = rest

    def words(self, count: int) -> NDArray[np.uint64]:
        words = np.full(count, self._rest, np.uint64)
        if count:
            words[0], self._next = self._next, self._rest
        return words


def exact_choice_law(choose: Callable[[NoiseSource], int], candidates: int) -> list[float]:
    """P[i] for each candidate, if the choice does not fall while the first word grows; right to 2⁻⁶³."""
    cuts = [0]
    for i in range(candidates - 1):
        low, high = cuts[-1], WORDS
        while low < high:  # the first word whose choice is above i
            middle = (low + high) // 2
            if middle < WORDS and choose(FixedCoin(middle)) <= i:
                low = middle + 1
            else:
                high = middle
        cuts.append(low)
    cuts.append(WORDS)
    return [(b - a) / WORDS for a, b in pairwise(cuts)]


def largest_ratio(first: list[float], second: list[float]) -> float:
    """max |ln P[i]/P'[i]|: the exact ε of a choice, for this pair of neighbours.

    Candidates rarer than 2⁻⁴⁰ on both are passed over: there the cuts are known too coarsely.
    """
    worst = 0.0
    for p, q in zip(first, second, strict=True):
        if max(p, q) < 2.0**-40:
            continue
        worst = max(worst, inf if min(p, q) == 0 else abs(log(p / q)))
    return worst
