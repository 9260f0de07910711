"""Questions over a refined domain, with no more edges than they need.

Two questions that mean the same have the same least refinement, whatever edges they were read with: so a
repetition is recognised, and a question that is a union of declared cells is one over the declared domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.refinement import RefinedDomain
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal


def least_refined(marginal: Marginal, declared: Domain) -> Marginal:
    """The same question over the refinement of `declared` with the fewest edges that can still ask it.

    Cells of `by` stay as they are. The marginal is over `declared`, or over a refinement of it.

    >>> from understudy.domain.refinement import refined
    >>> from understudy.query.expression import parse
    >>> declared = Domain((Bins.between("age", [0, 18, 65]),))
    >>> fine = refined(declared, "age", [10, 30])
    >>> least_refined(parse("count age < 30", fine).marginal, declared).domain["age"].labels
    ('0-17', '18-29', '30-65')
    >>> least_refined(parse("count age < 18", fine).marginal, declared).domain is declared
    True
    """
    if marginal.domain is declared or marginal.domain == declared:
        return marginal if marginal.domain is declared else _over(marginal, declared, {})
    kept = {
        attribute.name: _kept_cells(marginal, attribute, declared)
        for attribute in marginal.domain
        if isinstance(attribute, Bins) and attribute != declared[attribute.name]
    }
    coarser = [_with_cells(attribute, kept.get(attribute.name)) for attribute in marginal.domain]
    if all(one == other for one, other in zip(coarser, declared, strict=True)):
        return _over(marginal, declared, kept)
    # Attributes that are not cut are the declared objects, so that comparing domains stays quick.
    whole = [other if one == other else one for one, other in zip(coarser, declared, strict=True)]
    return _over(marginal, RefinedDomain(tuple(whole), declared=declared), kept)


def _kept_cells(marginal: Marginal, attribute: Bins, declared: Domain) -> NDArray[np.intp]:
    """The cells of a refined attribute that a question tells from the cell before, or that are declared starts."""
    other = declared[attribute.name]
    assert isinstance(other, Bins)
    if attribute.name in marginal.by:
        return np.arange(attribute.size)
    needed = np.arange(attribute.size) >= attribute.proper_size
    starts = set(other.starts)
    needed[: attribute.proper_size] = [start in starts for start in attribute.starts]
    for factor in marginal.where.factors:
        if attribute.name in factor.clique:
            along = np.moveaxis(factor.weights, factor.clique.index(attribute.name), 0)
            changes = (along[1:] != along[:-1]).reshape(attribute.size - 1, -1).any(axis=1)
            needed[1:] |= changes
    return np.flatnonzero(needed)


def _with_cells(attribute: Any, kept: NDArray[np.intp] | None) -> Any:
    if kept is None or not isinstance(attribute, Bins):
        return attribute
    starts = tuple(attribute.starts[int(cell)] for cell in kept if cell < attribute.proper_size)
    return replace(attribute, starts=starts)


def _over(marginal: Marginal, domain: Domain, kept: Mapping[str, NDArray[np.intp]]) -> Marginal:
    """The question over a coarser domain, whose cells are those of the kept ones and of all that follow them."""
    factors = []
    for factor in marginal.where.factors:
        weights = factor.weights
        for axis, name in enumerate(factor.clique):
            if name in kept:
                weights = weights.take(kept[name], axis=axis)
        factors.append(Factor(factor.clique, weights))
    return Marginal(domain, marginal.by, LinearQuery(domain, tuple(factors)), marginal.moment)
