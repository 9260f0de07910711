"""Public knowledge that some cells are always empty: structural zeros, and attributes that determine others.

It is declared before the table is opened, and costs nothing: whoever reads a release could have applied it. Where
it is wrong, a release is wrong there too, and its errors do not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError, QueryError, TooLargeError
from understudy.query.expression import parse

MOST_CONSTRAINT_CELLS = 1 << 20
"""Cells of the attributes that one constraint speaks of: a stand-in has to hold them together."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Cells of a clique that are always empty: `allowed` is False there, in domain order."""

    clique: Clique
    allowed: NDArray[np.bool_]

    def __post_init__(self) -> None:
        allowed = np.array(self.allowed)
        if allowed.dtype != np.bool_ or allowed.ndim != len(self.clique):
            raise ParameterError("a constraint is True or False for each cell of its clique")
        if not allowed.any():
            raise ParameterError("a constraint must allow at least one cell")
        allowed.flags.writeable = False
        object.__setattr__(self, "allowed", allowed)

    def over(self, clique: Clique) -> NDArray[np.bool_]:
        """`allowed` as a table that broadcasts over the cells of a larger clique."""
        sizes = dict(zip(self.clique, self.allowed.shape, strict=True))
        return self.allowed.reshape([sizes.get(name, 1) for name in clique])


def impossible(domain: Domain, condition: str) -> Constraint:
    """No row meets the condition, which is one of the question language.

    >>> from understudy.domain.attribute import Boolean
    >>> from understudy.domain.bins import Bins
    >>> domain = Domain((Bins.between("age", [0, 16, 120]), Boolean(name="retired")))
    >>> impossible(domain, "age < 16 and retired = true").allowed.tolist()
    [[True, False], [True, True]]
    """
    marginal = parse(f"count {condition}", domain).marginal
    if marginal.by or not marginal.where.factors:
        raise QueryError("a constraint is a condition that not every row meets, and no `by`")
    clique = marginal.where.clique
    if (cells := domain.size(clique)) > MOST_CONSTRAINT_CELLS:
        raise TooLargeError("a constraint over these attributes", cells=cells, limit=MOST_CONSTRAINT_CELLS)
    return Constraint(clique, marginal.where.weights() == 0)


def determines(domain: Domain, attribute: str, other: str, cells: Mapping[int, int]) -> Constraint:
    """Rows in a cell of `attribute` are in one cell of `other`, by `cells`; of cells not in it nothing is said."""
    if attribute == other:
        raise ParameterError("an attribute determines another one, not itself")
    if (size := domain.size((attribute, other))) > MOST_CONSTRAINT_CELLS:
        raise TooLargeError("a constraint over these attributes", cells=size, limit=MOST_CONSTRAINT_CELLS)
    allowed = np.ones((domain[attribute].size, domain[other].size), np.bool_)
    for cell, told in cells.items():
        allowed[cell] = np.arange(domain[other].size) == told
    clique = domain.clique((attribute, other))
    return Constraint(clique, allowed if clique[0] == attribute else allowed.T)


def allowed_cells(
    constraints: Iterable[Constraint], domain: Domain, clique: Clique
) -> NDArray[np.bool_] | None:
    """Where a clique's cells may be non-empty by what constraints say of it alone; None if they say nothing."""
    inside = [c for c in constraints if set(c.clique) <= set(clique)]
    if not inside:
        return None
    table = np.ones(domain.shape(clique), np.bool_)
    for constraint in inside:
        table &= constraint.over(clique)
    return table


def described(constraints: Sequence[Constraint]) -> list[str]:
    """The attributes that constraints speak of, and how many of their cells are empty, for a certificate."""
    return [f"{', '.join(c.clique)}: {int((~c.allowed).sum()):,} cells are empty" for c in constraints]
