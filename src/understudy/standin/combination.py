"""A stand-in near noisy interactions: a histogram of every cell where that fits, else a junction tree.

An interaction of a clique's attributes is a table whose every axis sums to 0: the part of a marginal that no
smaller one shows. In orthonormal coordinates y of all interactions, with noise of variances v, the histogram is
p ∝ exp(Φz) with coordinates z that minimise

    n·ln Σ_x exp(Φz)(x) - ⟨y, z⟩ + (κ/2) Σ v z²,

the dual of: minimise Σ (n·Φᵀp - y)²/(2v) + κn·KL(p ‖ uniform). Its second derivative is n times the covariance of
the coordinates under p. Written in indicators 1[x_A = a], whose products are indicators or 0, that covariance is
looked up in one table of |X| probabilities, so a step of Newton's method costs no more than solving for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import csc_array

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.constraint import Constraint
from understudy.query.projection import Projection
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.graphical.model import CandidateSizes, GraphicalStandIn, fit, model_cells
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]

ENTROPY = 0.7
"""κ times the standard deviation of the noise, in people: enough to keep empty what the noise alone would fill."""

NEWTON_LIMIT = 2048
"""Coordinates up to which second derivatives are held and solved for; beyond, gradients alone are followed."""

NEWTON_CELLS = 1 << 22
FOLLOWED_CELLS = 1 << 18
"""Cells of a universe whose histogram is fitted within seconds, by second derivatives or by gradients."""

TREE_CELLS = 1 << 19
"""Cells of a junction tree's tables, where the universe is larger."""

TREE_TRIES = 400
"""Cliques that are tried for the tree, the most telling first."""

STEPS = 60
"""Of Newton's method, at most; a dozen is usual."""

PASSES = 300
"""Of following gradients, at most."""


@dataclass(frozen=True, eq=False)
class Interaction:
    """A noisy interaction; `variance` is that of each of its orthonormal coordinates."""

    clique: Clique
    counts: Values
    variance: float


def stand_in(
    domain: Domain, told: Sequence[Interaction], *, rows: float, constraints: Sequence[Constraint] = ()
) -> Projection:
    """A distribution near all interactions; with every clique its smaller ones must be told too.

    Where `constraints` say that cells are empty, it is a tree, which keeps them so.
    """
    if constraints:
        return fit_tree(domain, told, rows=rows, constraints=constraints)
    coordinates = sum(_own(domain, part.clique) for part in told if part.clique)
    if domain.size() <= (NEWTON_CELLS if coordinates <= NEWTON_LIMIT else FOLLOWED_CELLS):
        return DenseWeights.histogram(domain, fit_histogram(domain, told, rows=rows), threads=1)
    return fit_tree(domain, told, rows=rows)


def fit_tree(
    domain: Domain,
    told: Sequence[Interaction],
    *,
    rows: float,
    cells: int = TREE_CELLS,
    constraints: Sequence[Constraint] = (),
) -> GraphicalStandIn:
    """A junction tree of at most `cells` cells on the cliques that tell most beyond their noise."""
    by_clique = {part.clique: part for part in told if part.clique}
    chosen = _chosen(domain, list(by_clique.values()), cells, [c.clique for c in constraints])
    largest = [c for c in chosen if not any(set(c) < set(other) for other in chosen)]
    tables = [_measurement(domain, by_clique, c, rows) for c in largest]
    return fit(domain, tables, total=rows, constraints=constraints)


def _chosen(domain: Domain, told: Sequence[Interaction], limit: int, fixed: Sequence[Clique]) -> list[Clique]:
    """All attributes, and greedily the clique that tells most for each cell by which it makes the tree grow.

    The tree holds the `fixed` cliques whatever is chosen.
    """
    chosen: list[Clique] = [part.clique for part in told if len(part.clique) == 1]
    scored = [(_telling(part), part) for part in told if len(part.clique) > 1]
    best = sorted((found for found in scored if found[0] > 0), key=lambda found: -found[0])[:TREE_TRIES]
    if not best:
        return chosen
    scores = np.array([score for score, _ in best])
    own = np.array([part.counts.size for _, part in best], np.float64)
    sizes = CandidateSizes(domain, [part.clique for _, part in best])
    now = model_cells(domain, [*chosen, *fixed])
    left = np.ones(len(best), np.bool_)
    while True:
        grown = np.asarray(sizes.cells([*chosen, *fixed]), np.float64)
        left &= grown <= limit
        if not left.any():
            return chosen
        found = int(np.argmax(np.where(left, scores / (np.maximum(grown - now, 0) + own), -1.0)))
        chosen.append(best[found][1].clique)
        left[found], now = False, grown[found]


def _telling(part: Interaction) -> float:
    """Σ|u| that an interaction has beyond noise of its variance, less half of what that noise would bring.

    Lengths stand for sums of absolute values: √(cells·(‖u‖² - v·coordinates)) - ½·cells·√v.
    """
    noise = part.variance * prod(size - 1 for size in part.counts.shape)
    beyond = max(float((part.counts**2).sum()) - noise, 0.0)
    return sqrt(beyond * part.counts.size) - 0.5 * part.counts.size * sqrt(part.variance)


def _measurement(
    domain: Domain, told: Mapping[Clique, Interaction], clique: Clique, rows: float
) -> Measurement:
    """A table put together from interactions, with the mean variance of its cells."""
    cells = domain.size(clique)
    counts, variance = np.full(domain.shape(clique), rows / cells), 0.0
    for inside in (part for part in told if set(part) <= set(clique)):
        others = cells / domain.size(inside)
        counts = (
            counts
            + told[inside].counts.reshape([domain[name].size if name in inside else 1 for name in clique])
            / others
        )
        variance += told[inside].variance * prod(1 - 1 / k for k in domain.shape(inside)) / others**2
    return Measurement(clique, counts, variance)


def fit_histogram(
    domain: Domain, told: Sequence[Interaction], *, rows: float, entropy: float = ENTROPY
) -> Values:
    """Rates of every cell, shaped like the domain. The same arguments give the same bits on one machine."""
    told = [part for part in told if part.clique]
    if rows < 0 or any(part.variance <= 0 for part in told):
        raise ParameterError("a fit needs a number of rows, and interactions with noise")
    if not told or rows == 0:
        return np.full(domain.shape(), 1 / domain.size())
    problem = _Problem(domain, tuple(part.clique for part in told))
    wanted = np.concatenate([_coordinates(part.counts).ravel() for part in told])
    sizes = [_own(domain, part.clique) for part in told]
    variance = np.repeat([part.variance for part in told], sizes)
    ridge = variance * (entropy / sqrt(float(np.exp(np.mean(np.log(variance))))))
    solve = _newton if wanted.size <= NEWTON_LIMIT else _follow
    return problem.rates(solve(problem, wanted, ridge, rows)).reshape(domain.shape())


def _own(domain: Domain, clique: Clique) -> int:
    return prod(size - 1 for size in domain.shape(clique))


def _differences(size: int) -> Values:
    """Columns: an orthonormal basis of the vectors of that size that sum to 0 (Helmert's)."""
    found = np.zeros((size, size - 1))
    for j in range(1, size):
        found[:j, j - 1] = 1 / sqrt(j * (j + 1))
        found[j, j - 1] = -j / sqrt(j * (j + 1))
    return found


def _coordinates(table: Values) -> Values:
    for axis, size in enumerate(table.shape):
        table = np.moveaxis(np.tensordot(_differences(size), table, axes=(0, axis)), 0, axis)
    return table


@dataclass(frozen=True)
class _Problem:
    """Coordinates of all interactions of `cliques`, and the indicators that they are made of.

    An indicator is a cell of the whole domain in which 0 means "any" and a > 0 the attribute's cell a. With every
    clique its smaller ones must be there too.
    """

    domain: Domain
    cliques: tuple[Clique, ...]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        shape = self.domain.shape()
        return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))

    def _codes(self, clique: Clique, first: int) -> NDArray[np.int64]:
        """Flat cells of the domain with a clique's codes from `first` on, and 0 elsewhere."""
        flat = np.zeros(1, np.int64)
        for name in clique:
            position = self.domain.position(name)
            codes = np.arange(first, self.domain[name].size) * self.strides[position]
            flat = np.add.outer(flat, codes).ravel()
        return flat

    @cached_property
    def indicators(self) -> NDArray[np.int64]:
        return np.concatenate([self._codes(clique, 1) for clique in self.cliques])

    @cached_property
    def change(self) -> csc_array:
        """Coordinates in terms of indicators; their constants are kept apart."""
        place = {int(flat): i for i, flat in enumerate(self.indicators)}
        rows, columns, values = [], [], []
        at = 0
        for clique in self.cliques:
            block = reduce(np.kron, [_in_indicators(size) for size in self.domain.shape(clique)])
            flat = self._codes(clique, 0)
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
        for view in self._axes(table):
            view[:, 1:] += view[:, :1]
        return table

    def moments(self, rates: Values) -> Values:
        """The probability of every indicator, in a table like the domain's."""
        table = rates.copy()
        for view in self._axes(table):
            view[:, 0] = view.sum(axis=1)
        return table

    def _axes(self, table: Values) -> list[Values]:
        shape = self.domain.shape()
        return [table.reshape(-1, size, stride) for size, stride in zip(shape, self.strides, strict=True)]

    def rates(self, z: Values) -> Values:
        return _normalised(self.logits(z))[0]

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
        for size, stride in zip(self.domain.shape(), self.strides, strict=True):
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


def _in_indicators(size: int) -> Values:
    """`_differences` written as a constant (row 0) and indicators of the other cells."""
    found = _differences(size)
    found[1:] -= found[0]
    return found


def _normalised(logits: Values) -> tuple[Values, float]:
    top = float(logits.max())
    weights = np.exp(logits - top)
    total = float(weights.sum())
    return weights / total, top + float(np.log(total))


def _newton(problem: _Problem, wanted: Values, ridge: Values, rows: float) -> Values:
    """Newton's method with halved steps, until the loss can fall by a thousandth for each coordinate at most.

    Where rounding leaves second derivatives that cannot be solved for, gradients are followed instead.
    """

    def loss(z: Values) -> tuple[float, Values]:
        rates, log_total = _normalised(problem.logits(z))
        return rows * log_total - float(z @ wanted) + 0.5 * float(ridge @ z**2), rates

    z = np.zeros(wanted.size)
    value, rates = loss(z)
    for _ in range(STEPS):
        moments = problem.moments(rates)
        gradient = rows * problem.mean(moments) - wanted + ridge * z
        curvature = rows * problem.covariance(moments)
        curvature[np.diag_indices(z.size)] += ridge
        try:
            factor = cho_factor(curvature, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return _follow(problem, wanted, ridge, rows)
        step = cho_solve(factor, gradient, check_finite=False)
        gain = float(gradient @ step)
        if gain <= 1e-3 * z.size:
            break
        length = 1.0
        while (tried := loss(z - length * step))[0] > value - 1e-4 * length * gain and length > 1e-9:
            length /= 2
        z, (value, rates) = z - length * step, tried
    return z


def _follow(problem: _Problem, wanted: Values, ridge: Values, rows: float) -> Values:
    """Quasi-Newton steps from gradients, in units of the root of the curvature at the uniform histogram."""
    sizes = [_own(problem.domain, clique) for clique in problem.cliques]
    density = np.repeat([1 / problem.domain.size(clique) for clique in problem.cliques], sizes)
    unit = 1 / np.sqrt(rows * density + ridge)

    def loss(scaled: Values) -> tuple[float, Values]:
        z = scaled * unit
        rates, log_total = _normalised(problem.logits(z))
        gradient = rows * problem.mean(problem.moments(rates)) - wanted + ridge * z
        return rows * log_total - float(z @ wanted) + 0.5 * float(ridge @ z**2), gradient * unit

    options = {"maxfun": PASSES, "maxiter": PASSES, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6}
    return minimize(loss, np.zeros(wanted.size), jac=True, method="L-BFGS-B", options=options).x * unit
