"""Sums of moments, inside the engine: exact whole numbers, in whatever order the rows come.

The engine makes the step of every measured value and sums products of steps (`ViewReader.sums`); no float is ever
summed. What a moment is of these sums is worked out here, exactly, and rounded once (`query.moment`).
"""

from __future__ import annotations

from collections.abc import Sequence

import ibis
import numpy as np
from numpy.typing import NDArray

from understudy.declaration.declaration import Unit
from understudy.domain.domain import Clique, Domain
from understudy.query.marginal import Marginal
from understudy.query.moment import Exponents, Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.query.told_cells import grouped_by, told
from understudy.table.dialect import Expression
from understudy.table.view_reader import Product, Sums, ViewReader

StepTable = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Steps that rows lie at, in order, and how many rows at each."""

LARGEST = 1 << 62
"""Sums in steps of a lattice are cut to this, beyond those of any table; cutting moves no two of them apart."""


def moment_sums(
    look: ViewReader, marginals: Sequence[Marginal], unit: Unit | None, *, resolution: int
) -> list[NDArray[np.int64]]:
    """For each marginal and each of its cells the sum of its moment, in steps of 1/resolution.

    One GROUP BY for all marginals of the same rows and cells.
    """
    alike: dict[tuple[str, Clique], list[int]] = {}
    for place, marginal in enumerate(marginals):
        alike.setdefault((marginal.where.key, marginal.by), []).append(place)
    found: dict[int, NDArray[np.int64]] = {}
    for places in alike.values():
        members = [marginals[place] for place in places]
        products = dict.fromkeys(p for m in members for p in (*_products(m).values(), ()))
        sums = _grouped(look, members[0], unit, list(products))
        found.update((place, _steps(m, sums, resolution)) for place, m in zip(places, members, strict=True))
    return [found[place] for place in range(len(marginals))]


def _products(marginal: Marginal) -> dict[Exponents, Product]:
    """The products of steps that a moment needs, by their exponents."""
    moment = marginal.moment
    assert isinstance(moment, Moment)
    return {
        exponents: tuple(name for name, e in zip(moment.names, exponents, strict=True) for _ in range(e))
        for exponents in moment.polynomial
    }


def step_tables(look: ViewReader, marginal: Marginal, unit: Unit | None) -> list[StepTable]:
    """For each cell of a marginal the steps of its measure that rows lie at, in order, and how many at each."""
    end, domain = marginal.moment, marginal.domain
    assert isinstance(end, QuantileEnd)
    cells = grouped_by(marginal)
    rows = _met(look, marginal, unit, end.names)
    shape = domain.shape(cells)
    axes = tuple(cells.index(name) for name in marginal.by)
    held = np.ones(shape, bool)
    for factor in marginal.where.factors:
        if factor not in told(marginal):
            held &= (factor.weights > 0).reshape(
                [domain[name].size if name in factor.clique else 1 for name in cells]
            )
    flat, found = held.ravel(), [dict[int, int]() for _ in range(marginal.size)]
    for cell, step, n in look.step_counts(domain, rows, look.index(rows, domain, cells), end.name):
        keep = flat[cell]
        place = np.unravel_index(cell[keep], shape) if cells else ()
        mine = np.zeros(int(keep.sum()), np.intp)
        for axis, size in zip(axes, marginal.shape, strict=True):
            mine = mine * size + place[axis]
        for own, at, count in zip(mine.tolist(), step[keep].tolist(), n[keep].tolist(), strict=True):
            found[own][at] = found[own].get(at, 0) + count
    return [
        (np.array(sorted(table), np.int64), np.array([table[step] for step in sorted(table)], np.int64))
        for table in found
    ]


def _met(look: ViewReader, marginal: Marginal, unit: Unit | None, measures: Sequence[str]) -> Expression:
    """The rows, as codes and steps, that meet the conditions that the engine is told."""
    domain = marginal.domain
    coded = look.coded(domain, domain.clique({*marginal.clique, *measures}), unit, measures)
    held = [
        look.index(coded, domain, factor.clique).isin(np.flatnonzero(factor.weights).tolist())
        if factor.weights.any()
        else ibis.literal(value=False)
        for factor in told(marginal)
    ]
    return coded.filter(*held) if held else coded


def _grouped(look: ViewReader, marginal: Marginal, unit: Unit | None, products: Sequence[Product]) -> Sums:
    """The sums of products for each cell of a marginal, among the rows that meet its condition."""
    domain, cells = marginal.domain, grouped_by(marginal)
    measures = tuple(dict.fromkeys(name for product in products for name in product))
    rows = _met(look, marginal, unit, measures)
    sums = look.sums(domain, rows, look.index(rows, domain, cells), domain.size(cells), products)
    if cells == marginal.by:
        return sums
    return {product: _weighed(domain, marginal, cells, column) for product, column in sums.items()}


def _weighed(domain: Domain, marginal: Marginal, cells: Clique, column: list[int]) -> list[int]:
    """Sums over the cells of more attributes in which the condition holds, for each of the marginal's cells."""
    large = [factor for factor in marginal.where.factors if factor not in told(marginal)]
    table = np.array(column, dtype=object).reshape(domain.shape(cells))
    for factor in large:
        shape = [domain[name].size if name in factor.clique else 1 for name in cells]
        table = table * factor.weights.reshape(shape).astype(np.int64)
    gone = tuple(i for i, name in enumerate(cells) if name not in marginal.by)
    return np.asarray(table.sum(axis=gone), dtype=object).ravel().tolist()


def _steps(marginal: Marginal, sums: Sums, resolution: int) -> NDArray[np.int64]:
    moment = marginal.moment
    assert isinstance(moment, Moment)
    columns = {exponents: sums[product] for exponents, product in _products(marginal).items()}
    steps = moment.steps(marginal.domain, columns, resolution)
    cut = [min(max(step, -LARGEST), LARGEST) for step in steps]
    return np.array(cut, np.int64).reshape(marginal.shape)
