"""Newton's method for the histogram of largest entropy (`maximum_entropy`).

In orthonormal coordinates y of all interactions, with noise of variances v, the histogram is p ∝ exp(Φz) with
coordinates z that minimise n·ln Σ_x exp(Φz)(x) - ⟨y, z⟩ + (κ/2) Σ v z². Its second derivative is n times the
covariance of the coordinates under p. Written in indicators 1[x_A = a], whose products are indicators or 0, that
covariance is looked up in one table of |X| probabilities, so a step costs no more than solving for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.standin.interactions import AllCells

Values = NDArray[np.float64]

STEPS = 60
"""Of Newton's method, at most; a dozen is usual."""


class NoCurvatureError(ArithmeticError):
    """Rounding left second derivatives that cannot be solved for."""


def newton(domain: Domain, cliques: tuple[Clique, ...], wanted: Values, ridge: Values, rows: float) -> Values:
    """The rates, shaped like the domain, for wanted coordinates of the cliques' interactions, one after another.

    Steps are halved where they would not gain, until the loss can fall by a thousandth for each coordinate at
    most. With every clique its smaller ones must be there too. Raises NoCurvatureError where a step cannot be
    solved for.
    """
    problem = _Coordinates(domain, cliques)

    def loss(z: Values) -> tuple[float, Values]:
        rates, log_total = normalised(problem.logits(z))
        return rows * log_total - float(z @ wanted) + 0.5 * float(ridge @ z**2), rates

    z = np.zeros(wanted.size)
    value, rates = loss(z)
    for _ in range(STEPS):
        moments = problem.cells.moments(rates)
        gradient = rows * problem.mean(moments) - wanted + ridge * z
        curvature = rows * problem.covariance(moments)
        curvature[np.diag_indices(z.size)] += ridge
        try:
            factor = cho_factor(curvature, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise NoCurvatureError from None
        step = cho_solve(factor, gradient, check_finite=False)
        gain = float(gradient @ step)
        if gain <= 1e-3 * z.size:
            break
        length = 1.0
        while (tried := loss(z - length * step))[0] > value - 1e-4 * length * gain and length > 1e-9:
            length /= 2
        z, (value, rates) = z - length * step, tried
    return normalised(problem.logits(z))[0].reshape(domain.shape())


def normalised(logits: Values) -> tuple[Values, float]:
    """exp(logits), scaled to sum to 1, and the logarithm of its sum before that."""
    top = float(logits.max())
    weights = np.exp(logits - top)
    total = float(weights.sum())
    return weights / total, top + float(np.log(total))


def coordinates(table: Values) -> Values:
    """The orthonormal coordinates of an interaction, shaped as its clique with one cell less along each axis."""
    for axis, size in enumerate(table.shape):
        table = np.moveaxis(np.tensordot(_differences(size), table, axes=(0, axis)), 0, axis)
    return table


def _differences(size: int) -> Values:
    """Columns: an orthonormal basis of the vectors of that size that sum to 0 (Helmert's)."""
    found = np.zeros((size, size - 1))
    for j in range(1, size):
        found[:j, j - 1] = 1 / sqrt(j * (j + 1))
        found[j, j - 1] = -j / sqrt(j * (j + 1))
    return found


def _in_indicators(size: int) -> Values:
    """`_differences` written as a constant (row 0) and indicators of the other cells."""
    found = _differences(size)
    found[1:] -= found[0]
    return found


@dataclass(frozen=True)
class _Coordinates:
    """Coordinates of all interactions of `cliques`, and the indicators that they are made of."""

    domain: Domain
    cliques: tuple[Clique, ...]

    @cached_property
    def cells(self) -> AllCells:
        return AllCells(self.domain)

    @cached_property
    def indicators(self) -> NDArray[np.int64]:
        return np.concatenate([self.cells.indicators(clique, 1) for clique in self.cliques])

    @cached_property
    def change(self) -> csc_array:
        """Coordinates in terms of indicators; their constants are kept apart."""
        place = {int(flat): i for i, flat in enumerate(self.indicators)}
        rows, columns, values = [], [], []
        at = 0
        for clique in self.cliques:
            block = reduce(np.kron, [_in_indicators(size) for size in self.domain.shape(clique)])
            flat = self.cells.indicators(clique, 0)
            where, column = np.nonzero(block)
            keep = flat[where] != 0
            try:
                rows.append(np.array([place[int(i)] for i in flat[where[keep]]], np.int64))
            except KeyError:
                raise ParameterError("with a clique its smaller ones must be told too") from None
            columns.append(column[keep] + at)
            values.append(block[where[keep], column[keep]])
            at += block.shape[1]
        found = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return csc_array(found, shape=(at, at))

    def logits(self, z: Values) -> Values:
        """(Φz)(x) for every cell x."""
        table = np.zeros(self.domain.size())
        table[self.indicators] = self.change @ z
        table[0] = self._constant @ z
        return self.cells.spread(table)

    def mean(self, moments: Values) -> Values:
        """E Φ."""
        return self.change.T @ moments[self.indicators] + self._constant

    @cached_property
    def _constant(self) -> Values:
        """The constant term of each coordinate: its value where all indicators are 0."""
        first = [
            reduce(np.kron, [_differences(size)[0] for size in self.domain.shape(clique)])
            for clique in self.cliques
        ]
        return np.concatenate(first)

    @cached_property
    def _products(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """For each two indicators the one that is their product, and whether there is one."""
        flat = self.indicators
        both = np.zeros((flat.size, flat.size), np.int64)
        possible = np.ones((flat.size, flat.size), np.bool_)
        for size, stride in zip(self.domain.shape(), self.cells.strides, strict=True):
            codes = flat // stride % size
            down, across = codes[:, None], codes[None, :]
            both += np.maximum(down, across) * stride
            possible &= (down == 0) | (across == 0) | (down == across)
        return both, possible

    def covariance(self, moments: Values) -> Values:
        """Of the coordinates."""
        both, possible = self._products
        own = moments[self.indicators]
        raw = np.where(possible, moments[both], 0.0) - np.multiply.outer(own, own)
        return self.change.T @ np.ascontiguousarray((self.change.T @ raw).T)
