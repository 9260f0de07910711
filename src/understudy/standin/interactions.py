"""What noisy marginals say, taken apart into interactions; and tables over all cells, taken apart and summed.

An interaction of a clique's attributes is a table whose every axis sums to 0: the residual of the clique
(`query.residuals`), the part of its table that no smaller one shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.residuals import centred, parts_of
from understudy.standin.measurement import Interaction, Measurement

Values = NDArray[np.float64]


def interactions_of(measurements: Sequence[Measurement]) -> list[Interaction]:
    """Everything that the measurements say, taken apart into interactions, which lie in orthogonal spaces.

    A table t over c is Σ_{s ⊆ c} u_s/|c∖s|, each interaction u_s spread evenly over the other axes, and
    ‖t‖² = Σ ‖u_s‖²·|s|/|c| with |s| the number of cells. So the squared error of all measurements is, up to a
    constant, Σ_s ‖u_s(p) - ū_s‖²/v_s, where ū_s averages the measurements of every clique that contains s with
    weights |s|/(|c|·v_c), and 1/v_s is the sum of those weights.
    """
    if any(m.variance <= 0 for m in measurements):
        raise ParameterError("a fit needs measurements with noise: exact counts have no finite potential")
    weights: dict[Clique, float] = {}
    sums: dict[Clique, Values] = {}
    for told in measurements:
        for inner in sorted(parts_of(told.clique), key=len):
            dropped = tuple(axis for axis, name in enumerate(told.clique) if name not in inner)
            table = centred(told.counts.sum(axis=dropped))
            weight = table.size / (told.counts.size * told.variance)
            weights[inner] = weights.get(inner, 0.0) + weight
            sums[inner] = sums.get(inner, 0.0) + weight * table
    return [Interaction(clique, sums[clique] / weights[clique], 1 / weights[clique]) for clique in weights]


@dataclass(frozen=True)
class AllCells:
    """The cells of a domain as one flat table, and sums along its axes.

    Sums over cliques go through indicators. An indicator is a cell of the whole domain in which code 0 of an
    attribute stands for "any" and a code a > 0 for the attribute's cell a; so one table of |X| numbers holds the
    probability of every indicator of every clique (`moments`).

    Complexity  O(|X|·attributes) for all cliques together, and their own cells.
    """

    domain: Domain

    @cached_property
    def strides(self) -> tuple[int, ...]:
        shape = self.domain.shape()
        return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))

    def indicators(self, clique: Clique, first: int) -> NDArray[np.int64]:
        """Flat places of the cells with a clique's codes from `first` on, and 0 elsewhere."""
        flat = np.zeros(1, np.int64)
        for name in clique:
            position = self.domain.position(name)
            codes = np.arange(first, self.domain[name].size) * self.strides[position]
            flat = np.add.outer(flat, codes).ravel()
        return flat

    def spread(self, coefficients: Values) -> Values:
        """In place: from a coefficient of every indicator to the sum of those that hold in each cell."""
        for view in self._axes(coefficients):
            view[:, 1:] += view[:, :1]
        return coefficients

    def moments(self, rates: Values) -> Values:
        """The probability of every indicator, in a table like the domain's."""
        table = rates.copy()
        for view in self._axes(table):
            view[:, 0] = view.sum(axis=1)
        return table

    def _axes(self, table: Values) -> list[Values]:
        shape = self.domain.shape()
        return [table.reshape(-1, size, stride) for size, stride in zip(shape, self.strides, strict=True)]


@dataclass(frozen=True)
class Projections:
    """Many cliques' tables at once, one after the other: the projections of all cells, and their adjoint."""

    cells: AllCells
    cliques: tuple[Clique, ...]

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [self.cells.domain.shape(clique) for clique in self.cliques]

    @cached_property
    def _from_indicators(self) -> tuple[csr_array, NDArray[np.int64]]:
        """The cells of all tables in terms of indicators, and the places of those."""
        rows, columns, signs, cells = [], [], [], 0
        for shape in self.shapes:
            row, column, sign = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1)
            for size in shape:  # Kronecker products, as triples of row, column and value
                here, there, by = _first_cell_of(size)
                row = np.add.outer(row * size, here).ravel()
                column = np.add.outer(column * size, there).ravel()
                sign = np.multiply.outer(sign, by).ravel()
            rows.append(row + cells)
            columns.append(column + cells)
            signs.append(sign)
            cells += prod(shape)
        places = np.concatenate([self.cells.indicators(clique, 0) for clique in self.cliques])
        used, at = np.unique(places, return_inverse=True)
        triples = np.concatenate(signs), (np.concatenate(rows), at[np.concatenate(columns)])
        return csr_array(triples, shape=(len(places), len(used))), used

    @cached_property
    def _to_indicators(self) -> csr_array:
        return csr_array(self._from_indicators[0].T)

    def project(self, rates: Values) -> Values:
        """The tables of every clique."""
        cells, used = self._from_indicators
        return cells @ self.cells.moments(rates)[used]

    def lift(self, potentials: Values) -> Values:
        """Σ θ(x) over all cliques' tables θ, for every cell x."""
        flat = np.zeros(self.cells.domain.size())
        flat[self._from_indicators[1]] = self._to_indicators @ potentials
        return self.cells.spread(flat)

    def split(self, values: Values) -> list[Values]:
        """One table for each clique."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(values, ends), self.shapes, strict=True)]


@lru_cache(maxsize=8)
def projections_of(domain: Domain, cliques: tuple[Clique, ...]) -> Projections:
    """The projections on these cliques; the last ones are kept, since they are fitted over and over."""
    return Projections(AllCells(domain), cliques)


def _first_cell_of(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Values]:
    """The cells of one attribute in terms of its indicators, as rows, columns and values of a matrix.

    "Any" less all other cells is the first cell; the others are their own indicators.
    """
    codes, others = np.arange(size), np.arange(1, size)
    signs = np.concatenate([np.ones(1), -np.ones(size - 1), np.ones(size - 1)])
    return np.concatenate([np.zeros(size, np.int64), others]), np.concatenate([codes, others]), signs
