"""Marginals that are about different rows: one noise for all of them costs what it costs on one of them.

Where no row counts in two of several marginals, their cells side by side are cells of one partition: a row adds to
one of them. So the whole vector moves no further than one marginal's does (`privacy.columns.CountColumns`), and is
measured as one, at the whole price, instead of in parts of it. A rate is made of two such marginals: the rows of
each group that meet a condition, and those that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from understudy.query.linear import Factor, LinearQuery, product_table
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd

MAX_TABLE = 1 << 16
"""Cells of the largest table that is made to find out whether two conditions exclude each other.

Of 64 marginals that a statement may need there are 2,016 pairs, and whoever may ask for a price may send it.
"""


@lru_cache(maxsize=64)
def excludes(one: LinearQuery, other: LinearQuery) -> bool:
    """Whether no row has a weight under both queries; False where it would take too large a table to tell.

    The product of two queries is one of factors on disjoint cliques, and is 0 everywhere just where one of these
    is: factors are multiplied where their attributes overlap, and only there.
    """
    for factors in _overlapping([*one.factors, *other.factors]):
        clique = one.domain.clique(_names(factors))
        if one.domain.size(clique) <= MAX_TABLE and not product_table(one.domain, factors).weights.any():
            return True
    return False


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


def disjoint_stacks(marginals: Sequence[Marginal]) -> tuple[tuple[int, ...], ...]:
    """The places of marginals, put together where no row counts in two of them.

    Each marginal goes to the first stack whose members all exclude it. Those with weights other than 0 and 1 stay
    alone: they are measured on a lattice of their own. So do moments, but those that add up to 1, which are one
    stack, and the ends of quantiles of one measure over the same rows. Every place is in one stack.
    """
    stacks: list[list[int]] = []
    for place, marginal in enumerate(marginals):
        if marginal.moment is not None:
            if not any(place in stack for stack in stacks):
                stacks.append(_unit_of(marginals, place))
            continue
        home = None
        if marginal.where.is_counting and marginal.where.factors:
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
    return all(where.is_counting and excludes(where, new.where) for where in held)


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
