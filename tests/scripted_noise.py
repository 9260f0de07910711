"""Noise whose every word a test has chosen."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Script:
    """A noise source that plays the given words, then refuses: a test sees exactly how many were needed."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > len(self.left):
            raise EOFError
        played, self.left = self.left[:count], self.left[count:]
        return np.array(played, dtype=np.uint64)


class WordSampler(Protocol):
    """What draws whole numbers by the words of a noise source."""

    def draw(self, count: int, noise: Script, /) -> NDArray[np.int64]: ...


def drawn(sampler: WordSampler, *words: int) -> int | None:
    """What these words make, all of them used up; None where more are needed."""
    script = Script(*words)
    try:
        found = int(sampler.draw(1, script)[0])
    except EOFError:
        return None
    assert not script.left
    return found
