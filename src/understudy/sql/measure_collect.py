"""Aggregates of measures in a statement: which are read so, and which moments each of them buys.

An aggregate of a measure itself, such as avg(income), is made of moments of its values. One of an expression,
such as avg(income * 2), is made of the bins of its attributes, as one of any other attribute is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sqlglot import exp

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.linear import Factor, LinearQuery
from understudy.query.quantile_end import ends_of
from understudy.sql.aggregate import Count
from understudy.sql.evaluate import Evaluator, Node, only, shown
from understudy.sql.factors import conjunction, is_nobody
from understudy.sql.group import Tally
from understudy.sql.measured import (
    Family,
    MeasuredCount,
    MeasuredMean,
    MeasuredQuantile,
    MeasuredSpread,
    MeasuredSum,
    Moments,
    Spread,
    moments,
)

Measured = MeasuredCount | MeasuredSum | MeasuredMean | MeasuredSpread | MeasuredQuantile

SPREADS = (
    exp.Stddev,
    exp.StddevSamp,
    exp.StddevPop,
    exp.Variance,
    exp.VariancePop,
    exp.CovarSamp,
    exp.CovarPop,
)

_KINDS: dict[type[Node], tuple[Spread, bool]] = {
    exp.Stddev: ("deviation", True),
    exp.StddevSamp: ("deviation", True),
    exp.StddevPop: ("deviation", False),
    exp.Variance: ("variance", True),
    exp.VariancePop: ("variance", False),
    exp.CovarSamp: ("covariance", True),
    exp.CovarPop: ("covariance", False),
}


class HasTallies(Protocol):
    """An aggregate, as far as it matters which tallies are bought anyway."""

    @property
    def tallies(self) -> tuple[Tally, ...]: ...


@dataclass(frozen=True)
class _Wanted:
    """A sum, or an average, that is settled last: of a measure over rows."""

    measure: Bins
    rows: LinearQuery
    average: bool


class MeasureCollector:
    """Reads the aggregates of measures of one statement, and says which moments they need.

    `shared` says that everybody knows how many rows there are, and that they are one group: then a count of all
    rows costs nothing, and centred moments are the best of all families but that of sessions. `cells` says that
    every group is a cell of the attributes that it is made of.
    """

    def __init__(self, domain: Domain, grid: Evaluator, family: Family, *, shared: bool, cells: bool) -> None:
        self.domain = domain
        self.grid = grid
        self.family: Family = family
        self._shared = shared
        self._cells = cells
        self._settled: dict[int, Measured] = {}
        self._sums: dict[int, _Wanted] = {}

    def __len__(self) -> int:
        """How many aggregates were read."""
        return len(self._settled) + len(self._sums)

    def __contains__(self, name: int) -> bool:
        return name in self._settled or name in self._sums

    def register(self, name: int, node: Node, query: LinearQuery) -> bool:
        """Read an aggregate over the rows of a query; False where it is none of measures alone."""
        if not isinstance(node, (exp.Sum, exp.Avg, *SPREADS)):
            return False
        terms = [node.this] + ([node.expression] if isinstance(node, exp.CovarSamp | exp.CovarPop) else [])
        measures = [self._measure(term) for term in terms]
        known = tuple(measure for measure in measures if measure is not None)
        if len(known) < len(terms):
            return False
        only(node, *(["expression"] if len(terms) > 1 else []))
        rows = self._known_rows(query, known)
        if is_nobody(rows):  # no row can have a value: the bins say so too
            return False
        if isinstance(node, exp.Sum | exp.Avg):
            self._sums[name] = _Wanted(known[0], rows, isinstance(node, exp.Avg))
        else:
            what, sample = _KINDS[type(node)]
            if what == "covariance" and known[0] == known[1]:
                raise QueryError(
                    f"{shown(node)}: the covariance of {known[0].name} with itself",
                    remedy="ask for its variance",
                )
            wanted = "xy" if what == "covariance" else "xx"
            self._settled[name] = MeasuredSpread(
                moments(self._family(rows), wanted, rows, known), what, sample
            )
        return True

    def settle(self, others: Mapping[int, HasTallies]) -> dict[int, Measured]:
        """What each aggregate is, beside the `others` of the statement, of which some counts follow from moments.

        An average takes moments of its measure and rows that are bought anyway, for a variance, and a sum those of
        an average; else a sum buys as few as it needs.
        """
        wide = {
            (found.moments.measures[0].name, found.moments.tallies[0].query.key): found.moments
            for found in self._settled.values()
            if isinstance(found, MeasuredSpread) and len(found.moments.measures) == 1
        }
        for wanted in self._sums.values():
            if wanted.average:
                place = (wanted.measure.name, wanted.rows.key)
                family = self._family(wanted.rows)
                wide.setdefault(place, moments(family, "x", wanted.rows, (wanted.measure,)))
        counted = {tally.key for other in others.values() for tally in other.tallies}
        for name, wanted in self._sums.items():
            known = wide.get((wanted.measure.name, wanted.rows.key))
            if wanted.average:
                assert known is not None
                self._settled[name] = MeasuredMean(known)
            else:
                self._settled[name] = MeasuredSum(known or self._fewest(wanted, counted))
        shared = {known.tallies[0].query.key: known for known in wide.values() if known.tallies[0].moment}
        for name, other in others.items():
            known = shared.get(other.rows.query.key) if isinstance(other, Count) else None
            if known is not None:
                self._settled[name] = MeasuredCount(known)
        return self._settled

    def _fewest(self, wanted: _Wanted, counted: Collection[tuple[str, str]]) -> Moments:
        """The moments that a sum alone buys: one, if the measure begins with 0 and rows are not counted."""
        family, measures = self._family(wanted.rows), (wanted.measure,)
        usual = moments(family, "x", wanted.rows, measures)
        anyway = family == "centred" and (
            usual.tallies[0].key in counted or (self._shared and not wanted.rows.factors)
        )
        if wanted.measure.lower_bound == 0 and not anyway:
            return moments("positions", "x", wanted.rows, measures)
        return usual

    def quantile(self, query: LinearQuery, measure: Bins, level: float) -> MeasuredQuantile | None:
        """A quantile by values; None where it is answered from bins: in a session, or of no rows.

        A group must be one cell of the marginal, since ends of quantiles are not added up.
        """
        rows = self._known_rows(query, (measure,))
        if measure.resolution is None or self.family == "positions" or not self._cells or is_nobody(rows):
            return None
        drawn = tuple(Tally(rows, moment=end) for end in ends_of(level, measure.name))
        return MeasuredQuantile(measure, drawn)

    def _family(self, rows: LinearQuery) -> Family:
        if self.family == "shares" and self._shared and not rows.factors:
            return "centred"
        return self.family

    def _measure(self, node: Node) -> Bins | None:
        """The measure that an expression is, and nothing else."""
        of = node.unnest() if isinstance(node, exp.Paren) else node
        if not isinstance(of, exp.Column):
            return None
        value = self.grid.value(of)
        attribute = self.domain[value.clique[0]] if len(value.clique) == 1 else None
        return attribute if isinstance(attribute, Bins) and attribute.resolution is not None else None

    def _known_rows(self, query: LinearQuery, measures: Iterable[Bins]) -> LinearQuery:
        """The rows of a query in which each measure has a value: those in its cells for other and missing not."""
        known = [
            Factor((measure.name,), (np.arange(measure.size) < measure.proper_size).astype(np.float64))
            for measure in measures
        ]
        return conjunction(self.domain, self.grid.scope, [*query.factors, *known])
