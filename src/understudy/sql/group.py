"""GROUP BY: the public list of groups, and which marginals measure a number for each of them.

Groups come from the declared cells of the attributes, never from rows, so every group is listed, empty or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError, TooLargeError
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.sql.factors import conjunction, is_nobody
from understudy.sql.grid import MAX_REGION, Floats, Numbers, Scope, Texts, Truths, Value

AXIS = "GROUP"
"""The one axis of a scope of groups."""

MAX_GROUPS = 1 << 20
MAX_APART = 32
"""Values of grouping expressions that may be measured one by one, each at a part of the price."""

MAX_DISJOINT = 64
"""Values of grouping expressions that may be measured one by one at one price, being about different rows."""


@dataclass(frozen=True)
class Tally:
    """A weight for every row, to be summed in each group, and in each cell of `over` where that is named.

    With a `moment` the query counts the rows, and each adds what the moment is of its measured values.
    """

    query: LinearQuery
    over: str = ""
    moment: Moment | QuantileEnd | None = None

    @cached_property
    def key(self) -> tuple[str, str]:
        return self.query.key, self.over if self.moment is None else self.moment.describe()


@dataclass(frozen=True, eq=False)
class Part:
    """A marginal, the group of each of its cells (without `over`), and 1 where a row can have a weight, else 0."""

    marginal: Marginal
    groups: NDArray[np.intp]
    possible: Floats


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups numbered 0, 1, …: `group_of` gives the group of each cell of `clique`.

    Where every key is an attribute, a group is a cell. Where keys are expressions, the cells of a group are either
    all measured and added up, or each value of the expressions is measured as a condition of its own
    (`conditions`), whichever has the smaller error.
    """

    domain: Domain
    scope: Scope
    clique: Clique
    group_of: NDArray[np.intp]
    count: int
    by: Clique
    conditions: tuple[tuple[LinearQuery, NDArray[np.intp]], ...] = ()

    def parts(self, tally: Tally) -> list[Part]:
        """What has to be measured for a tally; nothing where no row can have a weight."""
        if tally.over and tally.over in self.clique:
            raise QueryError(
                f"{tally.over} is a group already", remedy="take its quantile in groups of something else"
            )
        by = self.domain.clique({*self.by, *([tally.over] if tally.over else [])})
        if (cells := self.domain.size(by)) > MAX_GROUPS:
            raise TooLargeError(f"a table by {', '.join(by)}", cells=cells, limit=MAX_GROUPS)
        pieces = [(tally.query, self.group_of)]
        if self.conditions:
            pieces = [
                (conjunction(self.domain, self.scope, [*tally.query.factors, *condition.factors]), groups)
                for condition, groups in self.conditions
            ]
        return [
            Part(Marginal(self.domain, by, query, tally.moment), groups, self._possible(query, by))
            for query, groups in pieces
            if not is_nobody(query)
        ]

    def fold(self, tally: Tally, parts: Sequence[Part], cells: Sequence[Floats]) -> Floats:
        """The cells of the parts, added up into groups; a second axis is that of `over`."""
        width = self.domain[tally.over].size if tally.over else 1
        total = np.zeros((self.count, width))
        for part, table in zip(parts, cells, strict=True):
            possible = (
                np.where(part.possible > 0, table, 0.0) * part.possible
            )  # nobody is nobody, however unsure
            if tally.over:
                possible = np.moveaxis(possible, part.marginal.by.index(tally.over), -1)
            np.add.at(total, part.groups, possible.reshape(-1, width))
        return total if tally.over else total[:, 0]

    def possible(self, where: LinearQuery) -> NDArray[np.bool_]:
        """Which groups a row that meets the condition can be in; the others are left out, as in SQL.

        The factors of a condition share no attribute, so a cell is possible where each of them has some weight.
        """
        cells = np.broadcast_to(self._possible(where, self.clique) > 0, self.domain.shape(self.clique))
        return np.bincount(self.group_of, weights=cells.reshape(-1), minlength=self.count) > 0

    def _possible(self, query: LinearQuery, by: Clique) -> Floats:
        """1 in the cells where some row could have a weight, 0 elsewhere."""
        mask: Floats = np.ones((1,) * len(by))
        for factor in query.factors:
            gone = tuple(i for i, name in enumerate(factor.clique) if name not in by)
            held = (factor.weights > 0).any(axis=gone)
            shape = [self.domain[name].size if name in factor.clique else 1 for name in by]
            mask = mask * held.reshape(shape)
        return mask

    def over_groups(self, value: Value, words: str) -> Value:
        """A value over cells as a value over groups; refused where it varies inside a group."""
        if not value.clique:
            return value
        if missing := set(value.clique) - set(self.clique):
            name = min(missing)
            raise QueryError(
                f"{words}: {name} must be listed in GROUP BY or stand inside an aggregate such as count({name})"
            )
        first = self._first_cells
        flat = {
            part: self.scope.spread(getattr(value, part), value.clique, self.clique).reshape(-1)
            for part in _PARTS[type(value)]
        }
        for array in flat.values():
            if not (array[first][self.group_of] == array).all():
                raise QueryError(
                    f"{words} is not the same everywhere in a group", remedy="list it in GROUP BY"
                )
        arrays = {part: array[first] for part, array in flat.items()}
        if isinstance(value, Numbers):
            return Numbers((AXIS,), **arrays, kind=value.kind)
        return Texts((AXIS,), **arrays) if isinstance(value, Texts) else Truths((AXIS,), **arrays)

    @cached_property
    def _first_cells(self) -> NDArray[np.intp]:
        first = np.zeros(self.count, np.intp)
        first[self.group_of[::-1]] = np.arange(self.group_of.size)[::-1]
        return first


_PARTS = {
    Numbers: ("point", "low", "high", "low_open", "high_open", "null", "unknown"),
    Texts: ("values", "null", "unknown"),
    Truths: ("true", "false"),
}


def grouping(
    domain: Domain,
    scope: Scope,
    attributes: Sequence[str],
    expressions: Sequence[tuple[str, Value]],
    *,
    disjoint: bool = False,
) -> Grouping:
    """Groups by attributes and by expressions over attributes (each with its words, for messages).

    `disjoint` says that counts of different rows share one price, as those of two groups are: then measuring the
    values of the expressions one by one (`Grouping.conditions`) is better wherever a group has several cells.
    """
    plain = domain.clique(dict.fromkeys(attributes))
    derived = domain.clique({name for _, value in expressions for name in value.clique} - set(plain))
    clique = domain.clique({*plain, *derived})
    cells = prod(domain.shape(clique))
    if cells > MAX_GROUPS:
        raise TooLargeError(f"GROUP BY {', '.join(clique)}", cells=cells, limit=MAX_GROUPS)
    if not derived:
        return Grouping(domain, scope, clique, np.arange(cells), cells, clique)
    codes = [_codes(scope, clique, value, words) for words, value in expressions]
    codes += [scope.spread(np.arange(domain[name].size), (name,), clique).reshape(-1) for name in plain]
    _, first, group_of = np.unique(_together(codes), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # groups in the order in which the cells first show them
    group_of = rank[group_of.reshape(-1)]
    whole = Grouping(domain, scope, clique, group_of, len(first), clique)
    return _apart(whole, plain, derived, expressions, disjoint=disjoint) or whole


def _codes(scope: Scope, clique: Clique, value: Value, words: str) -> NDArray[np.int64]:
    """Numbers for the distinct values of an expression; it must be one value in each cell."""
    if isinstance(value, Numbers):
        if (value.known & ~value.exact).any():
            raise QueryError(
                f"{words} varies inside a bin, so it makes no groups",
                remedy="group by the attribute, or by a CASE on its edges",
            )
        kept = np.where(value.known, value.low, 0.0)
        state = value.null * 1 + value.unknown * 2
    elif isinstance(value, Texts):
        kept = np.where(value.null | value.unknown, "", value.values).astype(str)
        state = value.null * 1 + value.unknown * 2
    elif isinstance(value, Truths):
        kept, state = value.true * 1, value.null * 1
    else:
        return np.zeros(prod(scope.sizes[name] for name in clique), np.int64)
    _, codes = np.unique(kept, return_inverse=True)
    codes = codes.reshape(np.shape(kept)) * 3 + state
    return scope.spread(np.asarray(codes, np.int64), value.clique, clique).reshape(-1)


def _together(codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One number for each combination of codes."""
    whole = codes[0]
    for more in codes[1:]:
        _, dense = np.unique(whole, return_inverse=True)
        whole = dense.reshape(-1) * (int(more.max()) + 1) + more
    return whole


def _apart(
    whole: Grouping,
    plain: Clique,
    derived: Clique,
    expressions: Sequence[tuple[str, Value]],
    *,
    disjoint: bool,
) -> Grouping | None:
    """The same groups, each value of the expressions measured as a condition; None where that is worse.

    Adding up m cells multiplies the error by m at most; measuring T values one after the other divides the price
    by T, unless the counts are about different rows and share it (`disjoint`).
    """
    if any(set(value.clique) & set(plain) for _, value in expressions):
        return None
    domain, scope = whole.domain, whole.scope
    codes = [_codes(scope, derived, value, words) for words, value in expressions]
    _, kinds = np.unique(_together(codes), return_inverse=True)
    kinds = kinds.reshape(-1)
    count = int(kinds.max()) + 1
    most, cells = (MAX_DISJOINT, 2) if disjoint else (MAX_APART, count + 1)
    if count > most or int(np.bincount(kinds).max()) < cells or domain.size(derived) > MAX_REGION:
        return None
    shape = domain.shape(derived)
    spread = scope.spread(kinds.reshape(shape), derived, whole.clique).reshape(-1)
    cell_of = scope.spread(
        np.arange(prod(domain.shape(plain))).reshape(domain.shape(plain)), plain, whole.clique
    ).reshape(-1)
    conditions = []
    for kind in range(count):
        weights = (kinds == kind).astype(np.float64).reshape(shape)
        groups = np.zeros(prod(domain.shape(plain)), np.intp)
        groups[cell_of[spread == kind]] = whole.group_of[spread == kind]
        conditions.append((conjunction(domain, scope, [Factor(derived, weights)]), groups))
    return Grouping(domain, scope, whole.clique, whole.group_of, whole.count, plain, tuple(conditions))
