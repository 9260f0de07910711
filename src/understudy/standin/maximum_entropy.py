"""The histogram of largest entropy that agrees with noisy marginals, over every cell of a small domain.

Multiplicative weights on all past measurements at once: the histogram is exp(Σ θ_m) of one table of potentials for
each measured clique, and replaying every measurement until nothing changes is ascent in θ. With y_m the noisy
counts of clique m, v_m their variance, n the number of rows, the potentials maximise

    Σ ⟨θ_m, y_m⟩ - n·ln Σ_x exp(Σ θ_m(x)) - (κ/2) Σ v_m ‖θ_m‖²,

the dual of: minimise Σ ‖n·M_m p - y_m‖²/(2 v_m) + κn·KL(p ‖ uniform) over histograms p. So noise is weighted by
its variance, and cells that nothing was measured about stay as even as they can. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.constraint import Constraint, allowed_cells
from understudy.standin.measurement import Measurement

Table = NDArray[np.float64]

ENTROPY = 0.4
"""κ times the standard deviation of the noise, in people: enough to keep empty what the noise alone would fill."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Every cell of a domain as a matrix: the first attributes down, the others across.

    A clique is the product of a set of rows' attributes and a set of columns' ones, so all marginals of a batch
    are the blocks of two matrix products, Rᵀ·P·C with 0/1 matrices R and C; potentials come back as R·Θ·Cᵀ.

    Complexity  O(|X|·r + sqrt|X|·r·c) for a batch, with r and c the cells of its distinct parts.
    """

    domain: Domain
    down: Clique
    across: Clique

    @classmethod
    def of(cls, domain: Domain) -> Cells:
        """The split whose longer side is shortest."""
        names = domain.names
        cut = min(range(len(names) + 1), key=lambda i: max(domain.size(names[:i]), domain.size(names[i:])))
        return cls(domain, names[:cut], names[cut:])

    @property
    def shape(self) -> tuple[int, int]:
        return self.domain.size(self.down), self.domain.size(self.across)


class Batch:
    """Cliques that are projected to, and lifted from, together."""

    def __init__(self, cells: Cells, cliques: Sequence[Clique]) -> None:
        self.cells = cells
        self.cliques = tuple(cliques)
        downs = [tuple(name for name in clique if name in cells.down) for clique in cliques]
        acrosses = [tuple(name for name in clique if name in cells.across) for clique in cliques]
        self._rows, row_at = _indicators(cells.domain, cells.down, downs)
        self._columns, column_at = _indicators(cells.domain, cells.across, acrosses)
        self._blocks = [
            (row_at[down], column_at[across]) for down, across in zip(downs, acrosses, strict=True)
        ]
        shapes = [cells.domain.shape(clique) for clique in cliques]
        self.shapes = tuple(shapes)
        ends = np.cumsum([prod(shape) for shape in shapes]).tolist()
        self.parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        self.size = ends[-1] if ends else 0

    def project(self, histogram: Table) -> Table:
        """The marginals of a histogram (a matrix of cells), one after the other."""
        found = np.empty(self.size)
        tables = (self._rows.T @ histogram) @ self._columns
        for part, (rows, columns) in zip(self.parts, self._blocks, strict=True):
            found[part] = tables[rows, columns].ravel()
        return found

    def lift(self, potentials: Table) -> Table:
        """Σ θ_m(x) for every cell x."""
        tables = np.zeros((self._rows.shape[1], self._columns.shape[1]))
        for part, (rows, columns) in zip(self.parts, self._blocks, strict=True):
            block = tables[rows, columns]
            block += potentials[part].reshape(block.shape)
        return (self._rows @ tables) @ self._columns.T

    def split(self, values: Table) -> list[Table]:
        """One table for each clique."""
        return [values[part].reshape(shape) for part, shape in zip(self.parts, self.shapes, strict=True)]


def _indicators(domain: Domain, side: Clique, wanted: Sequence[Clique]) -> tuple[Table, dict[Clique, slice]]:
    """0/1 columns, one for each cell of each distinct clique of one side, and where each clique's columns are."""
    codes = np.indices(domain.shape(side)).reshape(len(side), domain.size(side))
    places: dict[Clique, slice] = {}
    columns: list[Table] = []
    at = 0
    for clique in dict.fromkeys(wanted):
        flat = np.zeros(codes.shape[1], dtype=np.intp)
        for name in clique:
            flat = flat * domain[name].size + codes[side.index(name)]
        size = domain.size(clique)
        columns.append((flat[:, None] == np.arange(size)).astype(np.float64))
        places[clique] = slice(at, at + size)
        at += size
    return np.concatenate(columns, axis=1), places


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A histogram over all cells; `potentials` are those that it was fitted with, by clique."""

    cells: Cells
    histogram: Table
    potentials: dict[Clique, Table]

    @classmethod
    def uniform(cls, domain: Domain, constraints: Sequence[Constraint] = ()) -> DenseModel:
        cells = Cells.of(domain)
        return cls(cells, _normalised(np.zeros(cells.shape) + _forbidden(cells, constraints))[0], {})

    @property
    def domain(self) -> Domain:
        return self.cells.domain

    def project(self, clique: Clique) -> Table:
        wanted = self.domain.clique(clique)
        return Batch(self.cells, [wanted]).project(self.histogram).reshape(self.domain.shape(wanted))

    def project_all(self, cliques: Sequence[Clique]) -> list[Table]:
        """Many marginals at once."""
        batch = Batch(self.cells, cliques)
        return batch.split(batch.project(self.histogram))


@dataclass(frozen=True, eq=False)
class Component:
    """What the measurements together say about the interaction of a clique's attributes, with noise of `variance`.

    `counts` is the part of the clique's table that is in none of its smaller marginals: each axis sums to 0.
    """

    clique: Clique
    counts: Table
    variance: float


def centred(table: Table) -> Table:
    """A table less its means along each axis: the interaction of all its attributes."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def components(measurements: Sequence[Measurement]) -> list[Component]:
    """Everything that the measurements say, taken apart into interactions, which lie in orthogonal spaces.

    A table t over c is Σ_{s ⊆ c} u_s/|c∖s|, each interaction u_s spread evenly over the other axes, and
    ‖t‖² = Σ ‖u_s‖²·|s|/|c| with |s| the number of cells. So the squared error of all measurements is, up to a
    constant, Σ_s ‖u_s(p) - ū_s‖²/v_s, where ū_s averages the measurements of every clique that contains s with
    weights |s|/(|c|·v_c), and 1/v_s is the sum of those weights.
    """
    weights: dict[Clique, float] = {}
    sums: dict[Clique, Table] = {}
    for told in measurements:
        for order in range(len(told.clique) + 1):
            for kept in combinations(range(len(told.clique)), order):
                inner = tuple(told.clique[i] for i in kept)
                dropped = tuple(i for i in range(len(told.clique)) if i not in kept)
                table = centred(told.counts.sum(axis=dropped))
                weight = table.size / (told.counts.size * told.variance)
                weights[inner] = weights.get(inner, 0.0) + weight
                sums[inner] = sums.get(inner, 0.0) + weight * table
    return [Component(clique, sums[clique] / weights[clique], 1 / weights[clique]) for clique in weights]


def maximum_entropy(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    rows: float,
    start: DenseModel | None = None,
    passes: int = 200,
    tolerance: float = 1e-2,
    constraints: Sequence[Constraint] = (),
) -> DenseModel:
    """Fit every measurement at once, from the potentials of `start`; cells that `constraints` forbid stay empty.

    It ends after `passes` evaluations, or when no potential's gradient, in people, is above `tolerance` times the
    standard deviation of its noise.
    """
    if any(m.variance <= 0 for m in measurements):
        raise ParameterError("a fit needs measurements with noise: exact counts have no finite potential")
    told = [part for part in components(measurements) if part.clique]
    if rows <= 0 or not told:
        return start or DenseModel.uniform(domain, constraints)
    cells = Cells.of(domain) if start is None else start.cells
    batch = Batch(cells, [part.clique for part in told])
    problem = _Problem.of(batch, told, rows, _forbidden(cells, constraints))
    first = np.concatenate([_potential(start, part).ravel() for part in told]) / problem.unit
    potentials = problem.solve(first, passes, tolerance) * problem.unit
    histogram, _ = problem.histogram(potentials)
    tables = problem.batch.split(potentials)
    return DenseModel(cells, histogram, {part.clique: t for part, t in zip(told, tables, strict=True)})


@dataclass(frozen=True, eq=False)
class _Problem:
    """The dual in potentials, each scaled by `unit`, the root of its curvature: rows of a cell, and the ridge."""

    batch: Batch
    rows: float
    wanted: Table
    std: Table
    ridge: Table
    unit: Table
    forbidden: Table | float

    @classmethod
    def of(cls, batch: Batch, told: Sequence[Component], rows: float, forbidden: Table | float) -> _Problem:
        sizes = [part.counts.size for part in told]
        variance = np.repeat([part.variance for part in told], sizes)
        ridge = variance * (ENTROPY / sqrt(float(np.exp(np.mean(np.log(variance))))))
        unit = 1 / np.sqrt(rows / np.repeat(np.asarray(sizes, dtype=np.float64), sizes) + ridge)
        wanted = np.concatenate([part.counts.ravel() for part in told])
        return cls(batch, rows, wanted, np.sqrt(variance), ridge, unit, forbidden)

    def histogram(self, potentials: Table) -> tuple[Table, float]:
        return _normalised(self.batch.lift(potentials) + self.forbidden)

    def loss(self, scaled: Table) -> tuple[float, Table]:
        potentials = scaled * self.unit
        histogram, log_total = self.histogram(potentials)
        tables = self.batch.split(self.batch.project(histogram))
        found = np.concatenate([centred(table).ravel() for table in tables])
        gradient = self.rows * found - self.wanted + self.ridge * potentials
        value = self.rows * log_total - float(potentials @ self.wanted)
        return value + 0.5 * float(self.ridge @ potentials**2), gradient * self.unit

    def solve(self, first: Table, passes: int, tolerance: float) -> Table:
        limit = tolerance * float(np.min(self.std * self.unit))
        options = {"maxfun": passes, "maxiter": passes, "maxcor": 20, "ftol": 0.0, "gtol": limit}
        return minimize(self.loss, first, jac=True, method="L-BFGS-B", options=options).x


def _forbidden(cells: Cells, constraints: Sequence[Constraint]) -> Table | float:
    """What is added to the logits: -∞ in cells that are always empty."""
    everything = cells.domain.names
    allowed = allowed_cells(constraints, cells.domain, everything)
    if allowed is None:
        return 0.0
    if not allowed.any():
        raise ParameterError("the constraints forbid every cell")
    return np.where(allowed.reshape(cells.shape), 0.0, -np.inf)


def _potential(start: DenseModel | None, part: Component) -> Table:
    known = None if start is None else start.potentials.get(part.clique)
    return np.zeros_like(part.counts) if known is None else known


def _normalised(logits: Table) -> tuple[Table, float]:
    top = float(logits.max())
    weights = np.exp(logits - top)
    total = float(weights.sum())
    return weights / total, top + float(np.log(total))
