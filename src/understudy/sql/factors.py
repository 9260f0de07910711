"""Conjunctions in one canonical form.

Two spellings of a condition may arrive as different products of tables. Here factors that share attributes are
multiplied, and every attribute on which the product depends only by a mask of its own is split off again, so that
equal conditions get equal factors, hence equal keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from understudy.domain.domain import Domain
from understudy.query.linear import Factor, LinearQuery
from understudy.sql.grid import Scope


def conjunction(domain: Domain, scope: Scope, factors: Iterable[Factor]) -> LinearQuery:
    """The product of the factors, canonical; the constant 0 is a table of zeros on the first attribute."""
    apart: list[Factor] = []
    for new in factors:
        if not new.clique:
            if float(new.weights) == 0:
                return nobody(domain)
            continue
        shared = [f for f in apart if set(f.clique) & set(new.clique)]
        apart = [f for f in apart if not any(f is s for s in shared)]
        apart.append(_product(scope, [*shared, new]) if shared else new)
    kept: list[Factor] = []
    for factor in apart:
        if not factor.weights.any():
            return nobody(domain)
        kept.extend(_split(factor) if len(factor.clique) > 1 else [factor])
    return LinearQuery(domain, tuple(kept))


def nobody(domain: Domain) -> LinearQuery:
    """The constant 0."""
    first = domain.attributes[0]
    return LinearQuery(domain, (Factor((first.name,), np.zeros(first.size)),))


def is_nobody(query: LinearQuery) -> bool:
    """Whether no row can have a weight."""
    return any(not factor.weights.any() for factor in query.factors)


def _product(scope: Scope, factors: list[Factor]) -> Factor:
    clique = scope.union(*(f.clique for f in factors))
    tables = [scope.spread(factor.weights, factor.clique, clique) for factor in factors]
    return Factor(clique, np.asarray(reduce(np.multiply, tables)))


def _split(factor: Factor) -> list[Factor]:
    """Attributes whose slices are either 0 or all the same are factors of their own."""
    clique = list(factor.clique)
    core: Any = factor.weights
    apart: list[Factor] = []
    for name in factor.clique:
        axis = clique.index(name)
        slices = np.moveaxis(core, axis, 0).reshape(core.shape[axis], -1)
        held = slices.any(axis=1)
        first = slices[int(held.argmax())]
        if len(clique) > 1 and (slices[held] == first).all():
            apart.append(Factor((name,), held.astype(np.float64)))
            del clique[axis]
            core = first.reshape([size for i, size in enumerate(core.shape) if i != axis])
    return [*apart, Factor(tuple(clique), core)]
