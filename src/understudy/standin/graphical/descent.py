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
def _moved_on(direction, share, along, ahead):
    """Move a direction by a share of one vector; its product with another one then."""
    total = 0.0
    for i in range(direction.size):
        direction[i] += share * along[i]
        total += ahead[i] * direction[i]
    return total


@compiled
def _quasi_newton(gradient, rates, own, total, moved, turned, curvature, count, first):
    """The L-BFGS direction; pair k of `count`, oldest first, stands in row (first + k) mod len.

    The first guess of the Hessian is its diagonal, total·rates + own. Each loop takes in one remembered step and
    forms the product that the next one needs, so that the direction is read and written once for each.
    """
    rows = moved.shape[0]
    direction = -gradient
    if count == 0:
        for i in range(direction.size):
            # Cautious before anything is known: overlapping cliques each claim the same error.
            direction[i] *= 0.3 / (total * rates[i] + own[i])
        return direction
    shares = np.empty(rows)
    last = (first + count - 1) % rows
    product = dot(moved[last], direction)
    for k in range(count - 1, -1, -1):
        r = (first + k) % rows
        shares[r] = product / curvature[r]
        product = _moved_on(direction, -shares[r], turned[r], moved[(first + k - 1) % rows])
    bend = 0.0
    turn = turned[last]
    for i in range(direction.size):
        bend += (
            np.float64(turn[i]) * turn[i] / (total * rates[i] + own[i])
        )  # the square of a small one is not 0
    scale = curvature[last] / bend
    for i in range(direction.size):
        direction[i] *= scale / (total * rates[i] + own[i])
    product = dot(turned[first], direction)
    for k in range(count):
        r = (first + k) % rows
        share = shares[r] - product / curvature[r]
        product = _moved_on(direction, share, moved[r], turned[(first + k + 1) % rows])
    return direction


@compiled
def _remembered(theta, before, gradient, gradient_before, moved, turned):
    """Keep a step and how the gradient turned along it, rounded; the product of what is kept."""
    for i in range(theta.size):
        moved[i] = theta[i] - before[i]
        turned[i] = gradient[i] - gradient_before[i]
    total = 0.0
    for i in range(theta.size):
        total += np.float64(moved[i]) * np.float64(turned[i])
    return total


class StepMemory:
    """The last steps, and how the gradient turned along them.

    Both are kept in single precision: a direction is only tried, and taken where the function, in double
    precision, falls along it. What the direction takes most time for is reading them.
    """

    def __init__(self, rows: int, size: int) -> None:
        self._moved, self._turned = np.empty((rows, size), np.float32), np.empty((rows, size), np.float32)
        self._spare = np.empty((2, size), np.float32)
        self._curvature = np.empty(rows)
        self._count = self._first = 0

    def direction(self, gradient: Vector, rates: Vector, own: Vector, total: float) -> Vector:
        """Where to go from a point with this gradient; total·rates + own is the diagonal of the Hessian."""
        steps = self._moved, self._turned, self._curvature
        # For a whole number it would be compiled once more.
        return _quasi_newton(gradient, rates, own, float(total), *steps, self._count, self._first)

    def learn(self, theta: Vector, before: Vector, gradient: Vector, gradient_before: Vector) -> None:
        """Take in the step to `theta` from the point before, unless the function does not bend along it."""
        moved, turned = self._spare
        curvature = _remembered(theta, before, gradient, gradient_before, moved, turned)
        if curvature <= 0:
            return
        rows = len(self._curvature)
        if self._count == rows:
            self._first = (self._first + 1) % rows
            self._count -= 1
        r = (self._first + self._count) % rows
        self._moved[r], self._turned[r], self._curvature[r] = moved, turned, curvature
        self._count += 1
