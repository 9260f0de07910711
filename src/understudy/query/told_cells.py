"""Which attributes rows are grouped by, and which conditions are told to an engine as lists of cells."""

from __future__ import annotations

from understudy.domain.domain import Clique
from understudy.query.linear import Factor
from understudy.query.marginal import Marginal

TOLD_CELLS = 1 << 12
"""Cells of a condition that are told to an engine one by one."""


def told(marginal: Marginal) -> tuple[Factor, ...]:
    """The conditions that an engine is told as the cells in which they hold; no other rows are grouped then."""
    return tuple(factor for factor in marginal.where.factors if factor.weights.size <= TOLD_CELLS)


def grouped_by(marginal: Marginal) -> Clique:
    """The attributes to group by: those of the marginal, and of conditions over too many cells to be told.

    >>> from understudy.domain.attribute import Boolean
    >>> from understudy.domain.domain import Domain
    >>> grouped_by(Marginal(Domain((Boolean(name="smoker"),)), ("smoker",)))
    ('smoker',)
    """
    large = {name for f in marginal.where.factors if f.weights.size > TOLD_CELLS for name in f.clique}
    return marginal.domain.clique({*marginal.by, *large})
