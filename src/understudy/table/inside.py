"""Counting inside a remote engine: few GROUP BYs over a clique cover, summed down here to what was asked.

Where to count is decided by public things alone: the kind of engine, the declared sizes, the cliques that are
asked about, and what the custodian declared. Never by the data: whoever can watch the engine sees the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import ibis
import numpy as np
from numpy.typing import NDArray

from understudy.declaration.declaration import Counting, Unit
from understudy.domain.domain import CELL_LIMIT, Clique, Domain
from understudy.query.linear import Factor
from understudy.query.marginal import Marginal
from understudy.table.counts import roll_up
from understudy.table.cover import clique_cover
from understudy.table.dialect import Expression
from understudy.table.source import Source
from understudy.table.view_reader import ViewReader

LOOKUP_CELLS = 1 << 12
"""Cells of a factor whose weights are told to the engine one by one."""

CLASS_CELLS = 1 << 20
"""Cells of the coarsened clique that the engine groups by in place of one too large."""


def grouped_cover(
    source: Source, domain: Domain, wanted: Sequence[Clique], unit: Unit | None
) -> list[Clique] | None:
    """The cliques to group by inside the engine; None where the rows' codes had better come here.

    A unit's rows have to be sorted for every GROUP BY, so that with a unit one is the most.
    """
    habits = source.engine.habits
    if not source.engine.remote or source.count is Counting.STREAM:
        return None
    positions = [tuple(domain.position(name) for name in clique) for clique in wanted]
    cover = clique_cover(positions, domain.shape(), limit=habits.group_cells)
    most = 1 if unit is not None and habits.few_groups < 8 else habits.few_groups
    if source.count is Counting.AUTO and len(cover) > most:
        return None
    return [tuple(domain.names[i] for i in clique) for clique in cover]


def group_counts(
    look: ViewReader, domain: Domain, cover: Sequence[Clique], wanted: Sequence[Clique], unit: Unit | None
) -> dict[Clique, NDArray[np.int64]]:
    """The counts of the wanted cliques from one GROUP BY for each clique of the cover."""
    at = domain.position
    tables = {tuple(map(at, clique)): look.cells(domain, clique, unit) for clique in cover}
    found = roll_up(tables, [tuple(map(at, clique)) for clique in wanted])
    return {clique: found[tuple(map(at, clique))] for clique in wanted}


def grouped_sums(
    look: ViewReader, source: Source, marginal: Marginal, unit: Unit | None, *, resolution: int
) -> NDArray[np.int64] | None:
    """The sums of a marginal whose clique is too large to hold, by one GROUP BY over coarser cells.

    Rows of equal weight under a factor are one class of it: a conjunction over thirty attributes has two classes
    for each, and the rows of weight zero do not count at all. The weight of a cell of classes is worked out here,
    by the same products in the same order as a row's. None where even that is too large, or rows are streamed.
    """
    domain, factors = marginal.domain, marginal.where.factors
    classes = [np.unique(factor.weights[factor.weights > 0]) for factor in factors]
    shape = (*marginal.shape, *(len(weights) for weights in classes))
    limit = CELL_LIMIT if source.count is Counting.INSIDE else CLASS_CELLS
    small = prod(shape) <= limit and all(f.weights.size <= LOOKUP_CELLS for f in factors)
    if not source.engine.remote or source.count is Counting.STREAM or not small:
        return None
    if not prod(shape):  # a factor that is zero everywhere
        return np.zeros(marginal.shape, np.int64)
    coded = look.coded(domain, marginal.clique, unit)
    cell = look.index(coded, domain, marginal.by)
    counted = []
    for factor, weights in zip(factors, classes, strict=True):
        place = look.index(coded, domain, factor.clique)
        counted.append(place.isin(np.flatnonzero(factor.weights).tolist()))
        cell = cell * len(weights) + _class_of(place, factor, weights)
    rows = coded.filter(*counted) if counted else coded
    counts = look.grouped(rows.select(cell=cell), prod(shape)).reshape(shape)
    summed = tuple(range(len(marginal.shape), len(shape)))
    return (counts * _steps(classes, resolution)).sum(axis=summed, dtype=np.int64)


def _class_of(place: Expression, factor: Factor, weights: NDArray[np.float64]) -> Expression:
    """Which of the distinct weights the cell at `place` has."""
    flat = factor.weights.ravel()
    groups = [np.flatnonzero(flat == weight).tolist() for weight in weights]
    last = ibis.literal(len(groups) - 1, type="int64")
    conditions = [(place.isin(cells), ibis.literal(i, type="int64")) for i, cells in enumerate(groups[:-1])]
    return ibis.cases(*conditions, else_=last) if conditions else last


def _steps(classes: Sequence[NDArray[np.float64]], resolution: int) -> NDArray[np.int64]:
    """The rounded weight of each cell of classes."""
    value = np.ones((1,) * len(classes))
    for axis, weights in enumerate(classes):
        value = value * weights.reshape([-1 if i == axis else 1 for i in range(len(classes))])
    return np.rint(value * resolution).astype(np.int64)
