"""A domain with more edges, for one question: its cells are parts of the declared ones.

A question may cut an ordered attribute where no declared edge is. The edges that it names are public, as it is
itself; the bins that they cut are counted in parts, and every declared cell is a union of cells of the refined
domain.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.edge import Ordered
from understudy.errors import DomainError


@dataclass(frozen=True, repr=False)
class RefinedDomain(Domain):
    """A domain whose cells are parts of those of a `declared` one: it has more edges in one attribute or more."""

    declared: Domain = field(kw_only=True, compare=False)

    @cached_property
    def has_all_edges(self) -> bool:
        """Whether it is the declared one with more edges, or the same: found once, since every price asks it."""
        return _has_edges_of(self, self.declared)

    @property
    def cut(self) -> frozenset[str]:
        """The attributes that have more edges than declared."""
        pairs = zip(self.attributes, self.declared.attributes, strict=True)
        return frozenset(one.name for one, other in pairs if one is not other and one != other)

    @property
    def new_edges(self) -> dict[str, tuple[Ordered, ...]]:
        """The starts of bins that are not declared, by attribute."""
        found: dict[str, tuple[Ordered, ...]] = {}
        for name in self.names:
            one, other = self[name], self.declared[name]
            if name in self.cut and isinstance(one, Bins) and isinstance(other, Bins):
                known = set(other.starts)
                found[name] = tuple(start for start in one.starts if start not in known)
        return found


def refined(domain: Domain, name: str, edges: Iterable[Ordered]) -> Domain:
    """The domain with more starts of bins in one attribute; raises a `DomainError` where that has none.

    It is a `RefinedDomain` of the declared one that `domain` is or refines, or `domain` where no edge is new.

    >>> refined(Domain((Bins.between("age", [0, 18, 65]),)), "age", [30])["age"].labels
    ('0-17', '18-29', '30-65')
    """
    attribute = domain[name]
    if not isinstance(attribute, Bins):
        raise DomainError(f"{name} has no bins")
    starts = tuple(sorted({*attribute.starts, *edges}))
    if len(starts) == len(attribute.starts):
        return domain
    finer = replace(attribute, starts=starts, in_full=True)
    declared = domain.declared if isinstance(domain, RefinedDomain) else domain
    return RefinedDomain(
        tuple(finer if one.name == attribute.name else one for one in domain), declared=declared
    )


def refines(fine: Domain, coarse: Domain) -> bool:
    """Whether a domain is another one with more edges, or the same."""
    if fine is coarse:
        return True
    if isinstance(fine, RefinedDomain) and fine.declared is coarse:
        return fine.has_all_edges
    return _has_edges_of(fine, coarse)


def _has_edges_of(fine: Domain, coarse: Domain) -> bool:
    return fine.names == coarse.names and all(
        one is other
        or one == other
        or (
            isinstance(one, Bins)
            and isinstance(other, Bins)
            and set(other.starts) <= set(one.starts)
            and other.starts[0] == one.starts[0]
            and replace(one, starts=other.starts) == other
        )
        for one, other in zip(fine, coarse, strict=True)
    )


def coarse_cells(fine: Domain, coarse: Domain, name: str) -> NDArray[np.intp]:
    """For each cell of an attribute of the finer domain the declared cell that it is a part of."""
    one, other = fine[name], coarse[name]
    if one == other or not isinstance(one, Bins) or not isinstance(other, Bins):
        return np.arange(other.size)
    proper = [bisect_right(other.starts, start) - 1 for start in one.starts]
    return np.array([*proper, *range(other.proper_size, other.size)], np.intp)
