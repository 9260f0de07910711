"""From aggregate nodes to `Aggregate`s: which linear queries each of them needs.

Sums are settled last, when it is known which numbers of rows are measured anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sqlglot import exp

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.disjoint import MAX_TABLE
from understudy.query.linear import Factor, LinearQuery
from understudy.sql import predicate
from understudy.sql.aggregate import Bounds, Count, Mean, Quantile, Sum
from understudy.sql.casts import zero_or_one
from understudy.sql.evaluate import Evaluator, Node, chain, only, shown, used
from understudy.sql.factors import conjunction, is_nobody
from understudy.sql.grid import Bools, Clique, Floats, Nothing, Numbers, Truths, Value, is_temporal
from understudy.sql.group import Tally
from understudy.sql.measure_collect import MeasureCollector, Measured
from understudy.sql.measured import Family, MeasuredQuantile
from understudy.sql.remedies import refused_aggregate
from understudy.sql.shares import RowShares, SharedCount, SharedMean, SharedSum

Aggregate = Count | Sum | Mean | Quantile | Measured | SharedCount | SharedMean | SharedSum

Averages = Literal["sums", "shares"]
"""What an average of bins is made of: a sum and a number of rows, or two sums that share each row."""

UNEVEN = 4
"""Half widths of bins are measured, not bounded by the widest one, when that is so many times the median."""


def factors_of(evaluator: Evaluator, node: Node) -> list[Factor]:
    """A condition as factors that must all hold; `not` is pushed inwards, so a conjunction is never expanded."""
    stack: list[tuple[Node, bool]] = [(node, False)]
    factors: list[Factor] = []
    while stack:
        part, negated = stack.pop()
        if isinstance(part, exp.Paren):
            stack.append((part.this, negated))
        elif isinstance(part, exp.Not):
            stack.append((part.this, not negated))
        elif isinstance(part, exp.Or if negated else exp.And):
            stack.extend((link, negated) for link in chain(part))
        else:
            holds = evaluator.condition(part)
            factors.append(Factor(holds.clique, (holds.false if negated else holds.true).astype(np.float64)))
    return factors


@dataclass(frozen=True, eq=False)
class Weighted:
    """A number for every row that meets a condition: its values on the cells that are possible."""

    clique: Clique
    query: LinearQuery
    possible: Bools
    point: Floats
    bounds: Bounds
    rows: Tally

    @property
    def lowest(self) -> float:
        return float(self.point[self.possible].min())

    @property
    def highest(self) -> float:
        return float(self.point[self.possible].max())


class Collector:
    """Aggregates of one statement. `register` reads a node; `settle` then says what each one is.

    Those of measures are read by a `MeasureCollector`, where there is one.
    """

    def __init__(
        self,
        domain: Domain,
        grid: Evaluator,
        where: LinearQuery,
        *,
        shared: bool,
        cells: bool = True,
        measured: Family | None = None,
        averages: Averages = "sums",
        person: tuple[str, int] | None = None,
    ) -> None:
        """`shared` says that everybody knows how many rows there are, and that they are one group.

        `cells` says that every group is a cell of the attributes that it is made of.
        """
        self._averages: Averages = averages
        self.domain = domain
        self.grid = grid
        self.where = where
        self._person = person
        self._shared = shared
        self._measures = (
            None if measured is None else MeasureCollector(domain, grid, measured, shared=shared, cells=cells)
        )
        self._settled: dict[int, Aggregate] = {}
        self._sums: dict[int, Weighted] = {}
        self._means: dict[int, Weighted] = {}

    def register(self, node: Node) -> str:
        """Read an aggregate; the answer is the kind of its values."""
        name = id(node)
        measured = self._measures is not None and name in self._measures
        if not (measured or any(name in read for read in (self._settled, self._sums, self._means))):
            self._read(name, node)
        found = self._settled.get(name)
        return found.kind if isinstance(found, Quantile) else "real"

    def settle(self) -> dict[int, Aggregate]:
        shared = self._settle_shares()
        for name, of in self._means.items():
            self._settled.setdefault(name, self._mean(of))
        measured = {tally.key for found in self._settled.values() for tally in found.tallies}
        alone = {name: of for name, of in self._sums.items() if name not in shared}
        for weighted in alone.values():  # those whose rows are needed come first
            if not weighted.bounds.exact:
                measured.add(weighted.rows.key)
        for name, weighted in alone.items():
            self._settled[name] = self._sum(weighted, weighted.rows.key in measured)
        if self._measures is not None:
            self._settled.update(self._measures.settle(self._settled))
        return self._settled

    # ---- reading

    def _read(self, name: int, node: Node) -> None:
        query = self.where
        if isinstance(node, exp.Filter):
            only(node)
            query = self._narrowed(query, node.expression.this)
            node = node.this
        inner = node.this if isinstance(node, exp.WithinGroup) else node
        if isinstance(inner.this, exp.Distinct):
            self._settled[name] = Count(Tally(self._people(node, query)))
            return
        if self._measures is not None and self._measures.register(name, node, query):
            return
        if isinstance(node, exp.Count):
            self._settled[name] = Count(self._count(node, query))
        elif isinstance(node, exp.CountIf):
            only(node)
            self._settled[name] = Count(Tally(self._narrowed(query, node.this)))
        elif isinstance(node, exp.Sum):
            only(node)
            self._sums[name] = self._weighted(node, query)
        elif isinstance(node, exp.Avg):
            only(node)
            weighted = self._weighted(node, query)
            if self._averages == "shares":
                self._means[name] = weighted
            else:
                self._settled[name] = self._mean(weighted)
        else:
            self._settled[name] = self._quantile(node, query)

    def _narrowed(self, query: LinearQuery, condition: Node) -> LinearQuery:
        return self._conjunction(query, *factors_of(self.grid, condition))

    def _conjunction(self, query: LinearQuery, *more: Factor) -> LinearQuery:
        return conjunction(self.domain, self.grid.scope, [*query.factors, *more])

    def _people(self, node: Node, query: LinearQuery) -> LinearQuery:
        """count(DISTINCT x) where x says whose row it is: the people, each of whom has one row."""
        only(node, "big_int")
        of = node.this.expressions
        column = of[0].unnest() if len(of) == 1 else None
        if isinstance(node, exp.Count) and isinstance(column, exp.Column) and self._person is not None:
            whose, most = self._person
            if column.name.lower() == whose.lower():
                if most == 1:
                    return query
                raise QueryError(
                    f"{shown(node)}: a person has up to {most} rows, and rows are what is counted",
                    remedy=f"the number of people lies between count(*) / {most} and count(*)",
                    suggestions=(f"count(*) / {most}", "count(*)"),
                )
        if not isinstance(node, exp.Count):
            raise QueryError(
                f"{shown(node)}: DISTINCT belongs to no aggregate but count", remedy="leave it out"
            )
        listed = ", ".join(shown(part) for part in of)
        raise QueryError(
            f"{shown(node)}: how many different values occur is not a count of people",
            remedy=f"SELECT {listed}, count(*) … GROUP BY {listed} counts the people of each declared value; "
            "where every row is a person, count(*) counts them",
            suggestions=("count(*)",),
        )

    def _count(self, node: Node, query: LinearQuery) -> Tally:
        only(node, "big_int")
        if node.expressions:
            raise QueryError("count takes one column, or *")
        if isinstance(node.this, exp.Star) or node.this is None:
            return Tally(query)
        missing = predicate.is_null(self.grid.value(node.this))
        return Tally(self._conjunction(query, Factor(missing.clique, missing.false.astype(np.float64))))

    def _weighted(self, node: Node, query: LinearQuery) -> Weighted:
        value = _summed(self.grid.value(node.this), node)
        scope = self.grid.scope
        shape = tuple(scope.sizes[name] for name in value.clique)
        possible = np.array(np.broadcast_to(value.known, shape))
        known = Factor(value.clique, possible.astype(np.float64))
        for factor in query.factors:
            if set(factor.clique) & set(value.clique):
                wide = scope.union(value.clique, factor.clique)
                gone = tuple(i for i, name in enumerate(wide) if name not in value.clique)
                possible &= scope.spread(factor.weights > 0, factor.clique, wide).any(axis=gone)
        rows = Tally(self._conjunction(query, known))
        if is_nobody(rows.query):
            possible[...] = False
        point, low, high = (np.broadcast_to(part, shape) for part in (value.point, value.low, value.high))
        bounds = self._bounds(value.clique, query, possible, point, low, high)
        return Weighted(value.clique, query, possible, point, bounds, rows)

    def _bounds(
        self, clique: Clique, query: LinearQuery, possible: Bools, point: Floats, low: Floats, high: Floats
    ) -> Bounds:
        """How far rows can be from their representatives; tallied where the widest bin is far from typical."""
        if not possible.any() or ((low == high) | ~possible).all():
            return Bounds()
        least, most = float(low[possible].min()), float(high[possible].max())
        half = np.where(possible, np.maximum(point - low, high - point), 0.0)
        widest = float(half.max())
        if widest > UNEVEN * float(np.median(half[possible])):
            spread = Tally(self._conjunction(query, Factor(clique, half / widest)))
            return Bounds(widest, widest, least, most, spread)
        below, above = float((point - low)[possible].max()), float((high - point)[possible].max())
        return Bounds(below, above, least, most)

    def _tally(self, of: Weighted, weights: Floats) -> Tally:
        unit = np.clip(np.where(of.possible, weights, 0.0), 0, 1)
        return Tally(self._conjunction(of.query, Factor(of.clique, unit)))

    # ---- settling

    def _settle_shares(self) -> set[int]:
        """Settle the averages that are made of shares, and what follows from these; the answer names them.

        Of the rows of such an average the number follows from its shares, and a sum over them is bought as shares
        too: else it would need their number besides. Where a row is replaced and there is one group, their number
        moves by 1 and both shares by 2. So there an average is made of shares only if nothing else is bought.
        """
        found = {name: made for name, of in self._means.items() if (made := self._shares(of)) is not None}
        if self._shared and (len(self._means) > 1 or self._settled or self._sums or self._measures):
            found = {}
        of_rows = {self._means[name].rows.key: made for name, made in reversed(found.items())}
        sums = {name: self._shares(of) for name, of in self._sums.items() if of.rows.key in of_rows}
        for name, made in found.items():
            self._settled[name] = SharedMean(made, self._means[name].bounds)
        for name, made in sums.items():
            if made is not None:
                found[name] = made
                self._settled[name] = SharedSum(made, self._sums[name].bounds)
        for name, other in self._settled.items():
            if isinstance(other, Count) and other.rows.key in of_rows:
                self._settled[name] = SharedCount(of_rows[other.rows.key])
        return set(found)

    def _shares(self, of: Weighted) -> RowShares | None:
        """The shares that a number is summed up by; None where it is the same in all rows, and in one group of a
        public number of rows where that number, or more than an average, is needed anyway.
        """
        free = self._shared and (not of.rows.query.factors or of.bounds.spread is not None)
        if free or not of.possible.any() or of.lowest == of.highest:
            return None
        if 2 * of.point.size > MAX_TABLE:  # whether no row adds more than 1 would not be found out
            return None
        place = np.clip((of.point - of.lowest) / (of.highest - of.lowest), 0.0, 1.0)
        low, high = self._tally(of, 1.0 - place), self._tally(of, place)
        return RowShares(of.lowest, of.highest, low, high)

    def _shifted(self, of: Weighted) -> tuple[float, float, Tally | None]:
        lowest, width = of.lowest, of.highest - of.lowest
        return lowest, width, self._tally(of, (of.point - lowest) / width) if width else None

    def _mean(self, of: Weighted) -> Mean:
        if not of.possible.any():
            return Mean(0.0, 0.0, of.rows, None, Bounds())
        lowest, width, weight = self._shifted(of)
        return Mean(lowest, width, of.rows, weight, of.bounds)

    def _sum(self, of: Weighted, rows_are_measured: bool) -> Sum:  # noqa: FBT001 (private)
        if not of.possible.any():
            return Sum(())
        inexact = not of.bounds.exact
        free = self._shared and not of.rows.query.factors
        if not (inexact or rows_are_measured or free):
            return Sum(self._direct(of))
        lowest, width, weight = self._shifted(of)
        parts = [(lowest, of.rows)] if lowest else []
        if weight is not None:
            parts.append((width, weight))
        return Sum(tuple(parts), of.bounds, of.rows) if inexact else Sum(tuple(parts))

    def _direct(self, of: Weighted) -> tuple[tuple[float, Tally], ...]:
        """Without the number of rows: the values above 0 and those below, each relative to the largest."""
        ends = [end for end, sign in ((of.highest, 1), (of.lowest, -1)) if sign * end > 0]
        return tuple((end, self._tally(of, np.maximum(of.point / end, 0.0))) for end in ends)

    # ---- quantiles

    def _quantile(self, node: Node, query: LinearQuery) -> Quantile | MeasuredQuantile:
        reader = _QUANTILES.get(type(node))
        if reader is None:
            raise refused_aggregate(node, shown(node), shown(node.this) if node.this else "x")
        of, level, continuous = reader(node)
        attribute = self._attribute(of)
        wanted = 0.5 if level is None else self.grid.constant(level, "the level of a quantile")
        if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted <= 1:
            raise QueryError("the level of a quantile is a number between 0 and 1")
        if self._measures is not None:
            by_value = self._measures.quantile(query, attribute, float(wanted))
            if by_value is not None:
                return by_value
        return Quantile(Tally(query, attribute.name), attribute, float(wanted), continuous)

    def _attribute(self, node: Node) -> Bins:
        of = node.unnest() if isinstance(node, exp.Paren) else node
        value = self.grid.value(of)
        if isinstance(of, exp.Column) and len(value.clique) == 1:
            attribute = self.domain[value.clique[0]]
            if isinstance(attribute, Bins):
                return attribute
        raise QueryError(f"a quantile needs a numeric or date attribute itself, not {shown(node)}")


def _summed(value: Value, node: Node) -> Numbers:
    if isinstance(value, Truths):
        return zero_or_one(value)
    if isinstance(value, Numbers) and is_temporal(value):
        raise QueryError(
            f"{shown(node)}: only numbers are summed and averaged",
            remedy=f"median({shown(node.this)}) is the middle",
        )
    if isinstance(value, Nothing) or not isinstance(value, Numbers):
        raise QueryError(
            f"{shown(node)}: only numbers are summed and averaged", remedy="count(*) FILTER (WHERE …) counts"
        )
    return value


def _median(node: Node) -> tuple[Node, Node | None, bool]:
    only(node)
    return node.this, None, True


def _with_level(*, argument: str, continuous: bool) -> Callable[[Node], tuple[Node, Node | None, bool]]:
    def reader(node: Node) -> tuple[Node, Node | None, bool]:
        only(node, argument)
        level = node.args.get(argument)
        if level is None:
            raise QueryError(
                f"{shown(node)} is of no column",
                remedy="write quantile_cont(x, 0.5), or add WITHIN GROUP (ORDER BY x)",
            )
        return node.this, level, continuous

    return reader


def _within_group(node: Node) -> tuple[Node, Node | None, bool]:
    only(node)
    inner, order = node.this, node.expression
    if type(inner) not in (exp.PercentileCont, exp.PercentileDisc) or used(inner) - {"this"}:
        raise QueryError(f"{shown(node)}: WITHIN GROUP belongs to percentile_cont(p) and percentile_disc(p)")
    if (
        not isinstance(order, exp.Order)
        or len(order.expressions) != 1
        or order.expressions[0].args.get("desc")
    ):
        raise QueryError("WITHIN GROUP (ORDER BY x) takes one attribute, in rising order")
    return order.expressions[0].this, inner.this, isinstance(inner, exp.PercentileCont)


_QUANTILES: dict[type[Node], Callable[[Node], tuple[Node, Node | None, bool]]] = {
    exp.Median: _median,
    exp.PercentileCont: _with_level(argument="expression", continuous=True),
    exp.PercentileDisc: _with_level(argument="expression", continuous=False),
    exp.Quantile: _with_level(argument="quantile", continuous=False),
    exp.ApproxQuantile: _with_level(argument="quantile", continuous=False),
    exp.WithinGroup: _within_group,
}
