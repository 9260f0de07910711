"""The public rule for parts of bins: values are spread evenly within their bin.

A stand-in knows declared cells only. What it says of a part of a bin is the bin's mass times the part's share of
the bin's length (of its integers or days, where values are whole). Nobody vouches for that share; what is certain
is that the part holds between nothing and the whole bin (`enclosing`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.edge import as_number
from understudy.domain.refinement import coarse_cells
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection

Values = NDArray[np.float64]


def portions(fine: Domain, declared: Domain, name: str) -> Values:
    """For each cell of an attribute of the finer domain its share of the length of its declared cell.

    >>> from understudy.domain.refinement import refined
    >>> declared = Domain((Bins.between("age", [0, 30, 60]),))
    >>> portions(refined(declared, "age", [28]), declared, "age").round(3).tolist()
    [0.933, 0.067, 1.0]
    """
    one = fine[name]
    if one == declared[name] or not isinstance(one, Bins):
        return np.ones(one.size)
    edges = [as_number(edge) for edge in (*one.starts, one.upper)]
    lengths = np.ones(one.size)
    lengths[: one.proper_size] = np.diff(edges)
    if one.discrete:
        lengths[one.proper_size - 1] += one.spacing  # the last bin holds its upper end
    cells = coarse_cells(fine, declared, name)
    whole = np.bincount(cells, weights=lengths, minlength=declared[name].size)
    return lengths / whole[cells]


@dataclass(frozen=True, eq=False)
class EvenlySpread:
    """A projection onto declared cells, as one onto the cells of a refined domain: by the rule of the module."""

    declared: Projection
    domain: Domain

    def project(self, clique: Clique) -> Values:
        """Rates that sum to 1, shaped by the clique's attributes in domain order."""
        return spread(self.declared.project(clique), clique, self.domain, self.declared.domain)


def spread(table: Values, clique: Clique, fine: Domain, declared: Domain) -> Values:
    """A table over declared cells as one over the cells of a refined domain, by the rule of the module."""
    for axis, name in enumerate(clique):
        if fine[name] != declared[name]:
            along = [-1 if i == axis else 1 for i in range(len(clique))]
            taken = table.take(coarse_cells(fine, declared, name), axis=axis)
            table = taken * portions(fine, declared, name).reshape(along)
    return table


def averaged(query: LinearQuery, declared: Domain) -> LinearQuery:
    """The weights of a query over a refined domain, averaged over each declared cell by the rule of the module."""
    factors = []
    for factor in query.factors:
        weights = factor.weights
        for axis, name in enumerate(factor.clique):
            if query.domain[name] != declared[name]:
                along = np.moveaxis(weights, axis, -1) * portions(query.domain, declared, name)
                into = np.zeros((query.domain[name].size, declared[name].size))
                into[np.arange(len(into)), coarse_cells(query.domain, declared, name)] = 1.0
                weights = np.moveaxis(along @ into, -1, axis)
        factors.append(Factor(factor.clique, np.clip(weights, 0.0, 1.0)))
    return LinearQuery(declared, tuple(factors))


def enclosing(query: LinearQuery, declared: Domain) -> tuple[LinearQuery, LinearQuery]:
    """The least and the largest weights of a query within each declared cell, as two queries over declared cells.

    Whatever rows there are, the query's sum lies between the sums of the two: where weights are 0 and 1 the first
    counts the whole cells of the condition, and the second those and the cells that it cuts.
    """
    inner, outer = [], []
    for factor in query.factors:
        least = most = factor.weights
        for axis, name in enumerate(factor.clique):
            if query.domain[name] != declared[name]:
                starts = np.flatnonzero(np.diff(coarse_cells(query.domain, declared, name), prepend=-1))
                least = np.minimum.reduceat(least, starts, axis=axis)
                most = np.maximum.reduceat(most, starts, axis=axis)
        inner.append(Factor(factor.clique, least))
        outer.append(Factor(factor.clique, most))
    return LinearQuery(declared, tuple(inner)), LinearQuery(declared, tuple(outer))


def declared_groups(marginal: Marginal, declared: Domain, table: Values) -> Values:
    """A table by a question's groups in declared cells, repeated for the parts of each: shaped as the question."""
    for axis, name in enumerate(marginal.by):
        if marginal.domain[name] != declared[name]:
            table = table.take(coarse_cells(marginal.domain, declared, name), axis=axis)
    return table


def whole_groups(marginal: Marginal, declared: Domain) -> NDArray[np.bool_]:
    """Which of a question's groups are declared cells, and no parts of them; shaped as the question."""
    whole = np.ones((1,) * len(marginal.by), bool)
    for axis, name in enumerate(marginal.by):
        cells = coarse_cells(marginal.domain, declared, name)
        alone = np.bincount(cells, minlength=declared[name].size)[cells] == 1
        whole = whole & alone.reshape([-1 if i == axis else 1 for i in range(len(marginal.by))])
    return np.broadcast_to(whole, marginal.shape)
