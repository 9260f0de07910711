"""Noise whose every word a test has chosen."""

from __future__ import annotations

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
