"""Marginals that are about different rows: one noise for all of them costs what it costs on one of them.

Where no row counts in two of several marginals, their cells side by side are cells of one partition: a row adds to
one of them. So the whole vector moves no further than one marginal's does (`privacy.columns.CountColumns`), and is
measured as one, at the whole price, instead of in parts of it. A rate is made of two such marginals: the rows of
each group that meet a condition, and those that do not.

The same holds of weights between 0 and 1 where those of a row add up to 1 at most, whatever marginals it counts
in: a row adds at most one unit to the whole vector. An average is made of two such marginals (`sql.shares`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.linear import Factor, LinearQuery, product_table
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd

MAX_TABLE = 1 << 16
"""Cells of the largest table that is made to find out whether two conditions exclude each other.

Of 64 marginals that a statement may need there are 2,016 pairs, and whoever may ask for a price may send it.
"""

SLACK = 2.0**-40
"""By so much the weights of a row may add up to more than 1: a weight and what is left of it to 1 are rounded."""


@lru_cache(maxsize=64)
def excludes(one: LinearQuery, other: LinearQuery) -> bool:
    """Whether no row has a weight under both queries; False where it would take too large a table to tell.

    The product of two queries is one of factors on disjoint cliques, and is 0 everywhere just where one of these
    is: factors are multiplied where their attributes overlap, and only there.
    """
    for factors in _overlapping([*one.factors, *other.factors]):
        clique = one.domain.clique(_names(factors))
        if one.domain.size(clique) <= MAX_TABLE and not _product(one.domain, factors).any():
            return True
    return False


def _product(domain: Domain, factors: Sequence[Factor]) -> NDArray[np.float64]:
    """The product of factors as a table over all of their attributes.

    The groups of a statement are conditions on the same attributes, and there may be thousands of pairs of them:
    their tables are multiplied as they are.
    """
    first = factors[0]
    if any(factor.clique != first.clique for factor in factors):
        return product_table(domain, factors).weights
    return reduce(np.multiply, [factor.weights for factor in factors])


@lru_cache(maxsize=16)
def are_disjoint(queries: tuple[LinearQuery, ...]) -> bool:
    """Whether no row has a weight under two of several queries, as far as `excludes` can tell.

    Whoever looks for a price asks it again for every price that is tried, and `excludes` remembers fewer pairs.
    """
    return all(excludes(*pair) for pair in combinations(queries, 2))


@lru_cache(maxsize=64)
def row_parts(queries: tuple[LinearQuery, ...]) -> NDArray[np.float64] | None:
    """The weights of rows under each query, if those of no row add up to more than 1; else None.

    A line for each query, and a place in it for each cell of the attributes that tell the queries apart.
    Conditions that all of them have in common are left out: a row that does not meet them has weights of 0
    alone. None also where it would take too large a table to tell, and where a weight is the product of two that
    are not 0 or 1: of others the weight that is found here is exactly the one that a row is counted with, since
    a product with 0 or 1 is not rounded.
    """
    if any(sum(not factor.is_counting for factor in query.factors) > 1 for query in queries):
        return None
    named = [{factor.name: factor for factor in query.factors} for query in queries]
    common = {name for name, factor in named[0].items() if factor.is_counting}
    common = common.intersection(*map(set, named))
    apart = [[factor for name, factor in factors.items() if name not in common] for factors in named]
    domain = queries[0].domain
    clique = domain.clique(set().union(*map(_names, apart)))
    if len(queries) * domain.size(clique) > MAX_TABLE or any(query.domain != domain for query in queries):
        return None
    tables = [LinearQuery(domain, tuple(factors)).weights(clique).ravel() for factors in apart]
    found = np.array(tables)
    found.flags.writeable = False
    return found if (found.sum(axis=0) <= 1 + SLACK).all() else None


def shares_a_unit(marginals: Sequence[Marginal]) -> bool:
    """Whether marginals are moments of the same rows that add up to 1: each row gives one unit to all of them."""
    first = marginals[0]
    if first.moment is None or not first.moment.unit:  # also an end of a quantile
        return False
    kinds = [marginal.moment.kind if marginal.moment else "" for marginal in marginals]
    alike = all(_same_rows(first, marginal) for marginal in marginals)
    return alike and sorted(kinds) == sorted(first.moment.unit)


def are_quantiles_of_one(marginals: Sequence[Marginal]) -> bool:
    """Whether marginals are ends of quantiles of one measure over the same rows: one set of counts tells them."""
    ends = all(isinstance(marginal.moment, QuantileEnd) for marginal in marginals)
    return ends and all(_same_rows(marginals[0], marginal) for marginal in marginals)


def _same_rows(one: Marginal, other: Marginal) -> bool:
    names = [marginal.moment.names if marginal.moment else () for marginal in (one, other)]
    return names[0] == names[1] and one.by == other.by and one.where == other.where


def disjoint_stacks(marginals: Sequence[Marginal], *, weighted: bool = True) -> tuple[tuple[int, ...], ...]:
    """The places of marginals, put together where no row counts in two of them.

    Each marginal goes to the first stack whose members all exclude it. Those with weights other than 0 and 1,
    which are measured on a lattice of their own, go to the first stack of such whose weights add up to 1 at most
    with theirs, in every row. Moments stay alone, but those that add up to 1, which are one stack, and the ends
    of quantiles of one measure over the same rows. Every place is in one stack.

    Where not `weighted`, those with weights other than 0 and 1 stay alone, as they did in earlier versions.
    """
    if len(marginals) < 2:
        return tuple((place,) for place in range(len(marginals)))
    return _stacked(tuple(marginals), weighted)


@lru_cache(maxsize=16)
def _stacked(marginals: tuple[Marginal, ...], weighted: bool) -> tuple[tuple[int, ...], ...]:  # noqa: FBT001 (cached)
    """`disjoint_stacks`, of the same marginals for every price and noise that is tried."""
    stacks: list[list[int]] = []
    for place, marginal in enumerate(marginals):
        if marginal.moment is not None:
            if not any(place in stack for stack in stacks):
                stacks.append(_unit_of(marginals, place))
            continue
        home = None
        if marginal.where.factors and (weighted or marginal.where.is_counting):
            home = next((found for found in stacks if _takes(marginals, found, marginal)), None)
        if home is None:
            stacks.append([place])
        else:
            home.append(place)
    return tuple(map(tuple, stacks))


def _unit_of(marginals: Sequence[Marginal], place: int) -> list[int]:
    """The places of what is measured with the moment at `place`, itself among them: `disjoint_stacks` says why."""
    first = marginals[place]
    if isinstance(first.moment, QuantileEnd):
        return [i for i, other in enumerate(marginals) if are_quantiles_of_one([first, other])]
    unit = first.moment.unit if first.moment else ()
    found = [
        i
        for i, other in enumerate(marginals)
        if i >= place and other.moment is not None and other.moment.kind in unit and _same_rows(first, other)
    ]
    return found if found and shares_a_unit([marginals[i] for i in found]) else [place]


def _takes(marginals: Sequence[Marginal], stack: Sequence[int], new: Marginal) -> bool:
    if any(marginals[place].moment is not None for place in stack):
        return False
    held = [marginals[place].where for place in stack]
    if any(where.is_counting != new.where.is_counting for where in held):
        return False
    if not new.where.is_counting:
        return row_parts((*held, new.where)) is not None
    return all(excludes(where, new.where) for where in held)


def _overlapping(factors: Sequence[Factor]) -> list[list[Factor]]:
    """The factors in groups, so that those of different groups have no attribute in common."""
    groups: list[list[Factor]] = []
    for factor in factors:
        touched = [group for group in groups if _names(group) & set(factor.clique)]
        groups = [group for group in groups if all(group is not other for other in touched)]
        groups.append([*(held for group in touched for held in group), factor])
    return groups


def _names(factors: Sequence[Factor]) -> set[str]:
    return {name for factor in factors for name in factor.clique}
