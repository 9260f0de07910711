"""Named families of linear queries, each with its size as an exact integer and its VC dimension by name.

A family is a sequence whose members are made when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations
from math import comb

import numpy as np

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.linear import LinearQuery


@dataclass(frozen=True)
class QueryFamily:
    """`size` queries, member i made by `member(i)`."""

    name: str
    domain: Domain
    size: int
    member: Callable[[int], LinearQuery]

    def __getitem__(self, index: int) -> LinearQuery:
        if not 0 <= index < self.size:
            raise IndexError(f"{self.name} has {self.size:,} members")
        return self.member(index)

    def __iter__(self) -> Iterator[LinearQuery]:
        return (self.member(i) for i in range(self.size))


def _ordered(domain: Domain, name: str) -> Bins:
    attribute = domain[name]
    if not isinstance(attribute, Bins):
        raise QueryError(
            f"{name} is not ordered", remedy="prefixes, ranges and half-spaces need integers, reals or dates"
        )
    return attribute


def prefixes(domain: Domain, name: str) -> QueryFamily:
    """Thresholds on a chain: value in one of the first i + 1 bins; one query for each bin.

    The last is constant on the declared bins. VC dimension 1 (`understudy_textbook.vc.prefix_dimension`).
    """
    attribute = _ordered(domain, name)

    def member(i: int) -> LinearQuery:
        weights = np.zeros(attribute.size)
        weights[: i + 1] = 1
        return LinearQuery.conjunction(domain, {name: weights})

    return QueryFamily(f"prefixes of {name}", domain, attribute.proper_size, member)


def ranges(domain: Domain, name: str) -> QueryFamily:
    """Every interval of bins i..j.

    VC dimension 2 from two bins on (`understudy_textbook.vc.interval_dimension`).
    """
    attribute = _ordered(domain, name)
    bins = attribute.proper_size
    firsts = [low * bins - low * (low - 1) // 2 for low in range(bins)]  # index of the range low..low

    def member(index: int) -> LinearQuery:
        low = bisect_right(firsts, index) - 1
        high = low + index - firsts[low]
        weights = np.zeros(attribute.size)
        weights[low : high + 1] = 1
        return LinearQuery.conjunction(domain, {name: weights})

    return QueryFamily(f"ranges of {name}", domain, bins * (bins + 1) // 2, member)


def conjunctions(domain: Domain, order: int) -> QueryFamily:
    """One cell on each of `order` attributes: the cells of all `order`-way marginals."""
    cliques = list(combinations(domain.names, order))
    firsts = [0, *accumulate(domain.size(clique) for clique in cliques)]

    def member(index: int) -> LinearQuery:
        which = bisect_right(firsts, index) - 1
        clique = cliques[which]
        cell = domain.cell(index - firsts[which], clique)
        one_hot = {name: np.eye(domain[name].size)[code] for name, code in zip(clique, cell, strict=True)}
        return LinearQuery.conjunction(domain, one_hot)

    return QueryFamily(f"{order}-way conjunctions", domain, firsts[-1], member)


def parities(domain: Domain, order: int) -> QueryFamily:
    """For each set of at most `order` two-celled attributes: 1 where an odd number of them is in cell 1.

    The empty set gives the constant 0. VC dimension of all 2^d parities: d
    (`understudy_textbook.vc.parity_dimension`).
    """
    binary = [attribute.name for attribute in domain if attribute.size == 2]
    sizes = [comb(len(binary), k) for k in range(min(order, len(binary)) + 1)]
    subsets = [subset for k in range(len(sizes)) for subset in combinations(binary, k)]

    def member(index: int) -> LinearQuery:
        subset = subsets[index]
        if not subset:
            name = (*binary, *domain.names)[0]
            return LinearQuery.conjunction(domain, {name: np.zeros(domain[name].size)})
        domain.allocatable_shape(subset)
        return LinearQuery.table(domain, subset, np.indices((2,) * len(subset)).sum(axis=0) % 2)

    return QueryFamily(f"parities up to {order}", domain, sum(sizes), member)


def half_spaces(
    domain: Domain, names: Sequence[str], planes: Sequence[tuple[Sequence[float], float]]
) -> QueryFamily:
    """For each (normal a, offset b): 1 where a·x ≥ b, x the middle of a bin on each attribute.

    Computed in exact rationals. Rows outside the declared bins count as 0. VC dimension at most d + 1
    (`understudy_textbook.vc.half_space_dimension`).
    """
    clique = domain.clique(names)
    attributes = [_ordered(domain, name) for name in clique]
    axes = [[Fraction(float(middle)) for middle in a.representatives] for a in attributes]

    def member(index: int) -> LinearQuery:
        normal, offset = planes[index]
        if len(normal) != len(names):
            raise QueryError(f"a half-space over {len(names)} attributes needs as many coefficients")
        slopes = [Fraction(normal[list(names).index(name)]) for name in clique]
        weights = np.zeros(domain.allocatable_shape(clique))
        for cell in np.ndindex(*(len(axis) for axis in axes)):
            value = sum(a * axis[i] for a, axis, i in zip(slopes, axes, cell, strict=True))
            weights[cell] = value >= Fraction(offset)
        return LinearQuery.table(domain, clique, weights)

    return QueryFamily(f"half-spaces over {', '.join(clique)}", domain, len(planes), member)
