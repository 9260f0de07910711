"""L-BFGS on one thread: the same numbers give the same bits, however many threads a linear algebra library has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.compile import compiled

Vector = NDArray[np.float64]


@compiled
def dot(a, b):
    """Σ ab on one thread, so that the sum does not depend on how many there are."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@compiled
def _quasi_newton(gradient, guess, moved, turned, curvature, count, first):
    """The L-BFGS direction; pair k of `count`, oldest first, stands in row (first + k) mod len."""
    rows = moved.shape[0]
    direction = -gradient
    shares = np.empty(rows)
    for k in range(count - 1, -1, -1):
        r = (first + k) % rows
        shares[r] = dot(moved[r], direction) / curvature[r]
        for i in range(direction.size):
            direction[i] -= shares[r] * turned[r, i]
    scale = 0.3  # cautious before anything is known: overlapping cliques each claim the same error
    if count > 0:
        r = (first + count - 1) % rows
        bend = 0.0
        for i in range(direction.size):
            bend += guess[i] * turned[r, i] * turned[r, i]
        scale = curvature[r] / bend
    for i in range(direction.size):
        direction[i] *= guess[i] * scale
    for k in range(count):
        r = (first + k) % rows
        share = shares[r] - dot(turned[r], direction) / curvature[r]
        for i in range(direction.size):
            direction[i] += share * moved[r, i]
    return direction


class StepMemory:
    """The last steps, and how the gradient turned along them."""

    def __init__(self, rows: int, size: int) -> None:
        self._moved, self._turned = np.empty((rows, size)), np.empty((rows, size))
        self._curvature = np.empty(rows)
        self._count = self._first = 0

    def direction(self, gradient: Vector, guess: Vector) -> Vector:
        return _quasi_newton(
            gradient, guess, self._moved, self._turned, self._curvature, self._count, self._first
        )

    def learn(self, moved: Vector, turned: Vector) -> None:
        curvature = dot(moved, turned)
        if curvature <= 0:
            return
        rows = len(self._curvature)
        if self._count == rows:
            self._first = (self._first + 1) % rows
            self._count -= 1
        r = (self._first + self._count) % rows
        self._moved[r], self._turned[r], self._curvature[r] = moved, turned, curvature
        self._count += 1
