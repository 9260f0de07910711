"""A compiled statement: the marginals that have to be measured, and what to make of their released counts.

Everything here is public: it reads parse trees, the declared grid and released numbers, never a row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sqlglot import exp

from understudy.domain.attribute import Attribute, unique_label
from understudy.errors import QueryError
from understudy.query.cell_noise import CellNoise, TallyNoise
from understudy.query.column import Column, ColumnType, type_of
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.sql.aggregate import Count, Folded, Quantile
from understudy.sql.collect import Aggregate
from understudy.sql.constants import as_date, as_instant
from understudy.sql.evaluate import Evaluator, Leaf, Node
from understudy.sql.grid import Floats, Nothing, Numbers, Scope, Texts, Truths, Value
from understudy.sql.group import AXIS, Grouping, Part, Tally
from understudy.sql.measured import MeasuredMean, MeasuredSpread
from understudy.sql.read import Statement
from understudy.sql.scalar import FUNCTIONS
from understudy.sql.shares import OfShares, SharedCount
from understudy.sql.sorting import Sorted, ranks, surely_sorted

Noises = Sequence[CellNoise | None]
"""For each marginal the noise on its cells, where it is known; empty where nothing is."""

Key = str | int | float | bool | dt.date | None
"""A value that comes from the declaration: what a group is called."""


Through = Callable[[str], tuple[Floats, Floats] | None]
"""Tells the lower and upper ends of running sums along an attribute of a marginal; None where it knows none."""


class Estimate(NamedTuple):
    """A released number, between `low` and `high` in truth; None where it is missing or has no bound.

    `discretisation` is the part of the error that comes from bins: no budget makes it smaller.
    """

    value: float | dt.date | None
    low: float | dt.date | None
    high: float | dt.date | None
    discretisation: float


@dataclass(frozen=True, eq=False)
class CompiledSql:
    """What a statement asks, apart from how it was written: equal questions have equal keys.

    `marginals` are all that is ever measured; `evaluate` turns their counts into rows.
    """

    columns: tuple[Column, ...]
    marginals: tuple[Marginal, ...]
    key: str
    program: SqlProgram = field(repr=False)
    grouped_by: tuple[str, ...] = ()
    """The attributes that GROUP BY lists as they are."""
    text: str = field(default="", repr=False)
    """The statement itself, where it was taken out of a larger one."""

    @property
    def running(self) -> dict[int, str]:
        """The attributes along which quantiles need running sums, by the places of their marginals."""
        aggregates, parts = self.program.aggregates.values(), self.program.parts
        quantiles = (aggregate.tally for aggregate in aggregates if isinstance(aggregate, Quantile))
        return {place: tally.over for tally in quantiles for place, _ in parts[tally.key]}

    @property
    def most_rows(self) -> int:
        """The most rows that `evaluate` can give, which is public."""
        groups, limit = int(self.program.listed.sum()), self.program.statement.limit
        return groups if limit is None else min(groups, limit)

    def evaluate(
        self,
        values: Sequence[ArrayLike],
        errors: Sequence[ArrayLike],
        *,
        below: Sequence[ArrayLike] | None = None,
        bare: Sequence[ArrayLike] | None = None,
        rows: float | None = None,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
    ) -> list[tuple[Key | Estimate, ...]]:
        """Rows from a value and an error for every cell of every marginal; `rows` bounds the number of rows.

        If all cells are within their errors, every number is within its bounds. Where cells can be further off on
        one side, `errors` are how far they can be above the values, and `below` how far below. `bare` are the
        errors less what comes from bins that a condition cuts, where some are cut. `throughs` give for each
        marginal the bounds of running sums along an attribute, or None, which have to hold as well.

        With `noises`, those of the marginals, averages and variances have bounds of their own where no other
        number needs the errors of theirs; then all numbers are within their bounds except with the marginals'
        probabilities together. Raises a `QueryError` where there is not one value and one error for each
        marginal.
        """
        arrays, widths = self._shaped(values), self._shaped(errors)
        under = widths if below is None else self._shaped(below)
        alone = widths if bare is None else self._shaped(bare)
        most = inf if rows is None else float(rows)
        return self.program.rows(arrays, widths, under, alone, most, throughs, noises)

    def is_in_order(
        self,
        values: Sequence[ArrayLike],
        errors: Sequence[ArrayLike],
        *,
        rows: float | None = None,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
    ) -> bool | None:
        """Whether the rows that `evaluate` gives are surely those, in that order, if all cells are within errors.

        None where ORDER BY goes by public names, or there is none. An order by released numbers is sure where the
        bounds of neighbours do not overlap, and neither do those of the last row and of any that LIMIT cut off.
        """
        if not self.program.sorts_released:
            return None
        arrays, widths = self._shaped(values), self._shaped(errors)
        return self.program.is_in_order(
            arrays, widths, inf if rows is None else float(rows), throughs, noises
        )

    def reach(
        self,
        values: Sequence[ArrayLike],
        errors: Sequence[ArrayLike],
        expected_errors: Sequence[ArrayLike],
        *,
        rows: float | None = None,
        noises: Noises = (),
    ) -> list[tuple[float | None, ...]]:
        """How far each number that `evaluate` gives can be from what the statement says of expected counts.

        Expected counts are the number of rows times the probability of a cell (for weights: times their
        expectation); `expected_errors` say how far they are from `values`. Every aggregate and every expression
        is followed through intervals that hold for all real counts within their ends, whole or not, so if all
        expected counts are within their errors, so is every number made of them: no further probability is lost.
        A quantile of expected counts is any value at which the distribution function passes the level; it lies in
        one of the bins that are possible for whole counts. The groups are those that `evaluate` lists.

        Returns for each row and column a distance in the column's unit (days for a date, seconds for a timestamp);
        None in columns of keys, and where a number is missing or the distance has no bound.
        """
        arrays, widths, wide = self._shaped(values), self._shaped(errors), self._shaped(expected_errors)
        return self.program.reach(arrays, widths, wide, inf if rows is None else float(rows), noises)

    def error(self, errors: Sequence[float], noises: Noises = ()) -> float:
        """How far a number of people that the statement tells can be off: the largest half-width, in people.

        `errors` are those of the cells of each marginal. A group that is made of several cells is off by what they
        are off together. Of marginals that no number of people is made of it is the error of their cells.
        """
        return self.program.error(self._shaped(errors), noises)

    def _shaped(self, cells: Sequence[ArrayLike]) -> list[Floats]:
        if len(cells) != len(self.marginals):
            raise QueryError(f"{len(self.marginals)} marginals are needed, each with a value and an error")
        arrays = [np.asarray(array, np.float64) for array in cells]
        return [
            array.reshape(marginal.shape)
            if array.size == marginal.size
            else np.broadcast_to(array, marginal.shape)
            for array, marginal in zip(arrays, self.marginals, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class CompiledAround:
    """A statement around private SELECTs: `outer` is made of the rows that the `inner` ones release.

    outer  SQL in the dialect of DuckDB, in which the rows of inner statement i are the table `released_<i>`. It is
           for `understudy.desk` alone: it is made of an analyst's words, and its result has no bounds
    inner  the statements over the table, each of which is answered with bounds
    """

    outer: str
    inner: tuple[CompiledSql, ...]

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        """All that is ever measured: the marginals of the inner statements, each once."""
        found = {_of(marginal): marginal for part in self.inner for marginal in part.marginals}
        return tuple(found.values())

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """The attributes that some inner GROUP BY lists as they are."""
        return tuple({name: None for part in self.inner for name in part.grouped_by})

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """For each inner statement the places of its marginals among all."""
        place = {_of(marginal): i for i, marginal in enumerate(self.marginals)}
        return tuple(tuple(place[_of(marginal)] for marginal in part.marginals) for part in self.inner)

    @property
    def running(self) -> dict[int, str]:
        """As `CompiledSql.running`, of all inner statements."""
        each = zip(self.inner, self.places, strict=True)
        return {places[i]: name for part, places in each for i, name in part.running.items()}

    @cached_property
    def key(self) -> str:
        """Equal for statements that ask the same, as far as their words show it."""
        return sha256(repr([self.outer, [part.key for part in self.inner]]).encode()).hexdigest()


def _of(marginal: Marginal) -> tuple[str, tuple[str, ...], str]:
    """What a marginal counts, or sums up."""
    return marginal.where.key, marginal.by, marginal.moment.describe() if marginal.moment else ""


@dataclass(frozen=True, eq=False)
class SqlProgram:
    """The public part of a statement: groups, their names, and expressions over released numbers."""

    statement: Statement
    grouping: Grouping
    aggregates: Mapping[int, Aggregate]
    fixed: Mapping[int, Value]
    names: tuple[list[Key] | None, ...]
    """For each column the names of the groups, or None where its values are released."""
    parts: Mapping[tuple[str, str], Sequence[tuple[int, Part]]]
    listed: NDArray[np.bool_]
    """The groups that WHERE leaves possible; the others are no rows of the result."""

    def rows(
        self,
        values: Sequence[Floats],
        errors: Sequence[Floats],
        below: Sequence[Floats],
        alone: Sequence[Floats],
        most: float,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
    ) -> list[tuple[Key | Estimate, ...]]:
        """What `CompiledSql.evaluate` returns."""
        full = self._estimates(
            values, errors, most, discretised=True, below=below, throughs=throughs, noises=noises
        )
        bare = self._estimates(values, alone, most, discretised=False, throughs=throughs, noises=noises)
        chosen = self._chosen(full)
        columns = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            if names is not None:
                columns.append([names[i] for i in chosen])
                continue
            with_bins, without = self._column(item.node, full), self._column(item.node, bare)
            columns.append([_estimate(with_bins, without, i) for i in chosen])
        return list(zip(*columns, strict=True))

    def reach(
        self,
        values: Sequence[Floats],
        errors: Sequence[Floats],
        expected_errors: Sequence[Floats],
        most: float,
        noises: Noises = (),
    ) -> list[tuple[float | None, ...]]:
        """What `CompiledSql.reach` returns."""
        full = self._estimates(values, errors, most, discretised=True, noises=noises)
        wide = self._estimates(values, expected_errors, most, discretised=True)
        chosen = self._chosen(full)
        columns: list[list[float | None]] = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            if names is not None:
                columns.append([None] * len(chosen))
                continue
            if any(called.name.lower() in ("low", "high") for called in item.node.find_all(exp.Anonymous)):
                columns.append([None] * len(chosen))  # an end of bounds says nothing of the population
                continue
            released, expected = self._column(item.node, full), self._column(item.node, wide, whole=False)
            columns.append([_distance(released, expected, i) for i in chosen])
        return list(zip(*columns, strict=True))

    def _column(self, node: Node, leaf: Leaf, *, whole: bool = True) -> Numbers:
        count = self.grouping.count
        return _released(_evaluator(count, leaf, whole=whole).value(node), count)

    def _estimates(
        self,
        values: Sequence[Floats],
        errors: Sequence[Floats],
        most: float,
        *,
        discretised: bool,
        below: Sequence[Floats] | None = None,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
    ) -> Leaf:
        folded: dict[tuple[str, str], Folded] = {}
        under = errors if below is None else below

        def fold(tally: Tally) -> Folded:
            if tally.key not in folded:
                folded[tally.key] = self._fold(tally, values, errors, under, most, throughs, noises)
            return folded[tally.key]

        known: dict[int, Value] = dict(self.fixed)
        if not discretised:
            known = {name: _representative(value) for name, value in known.items()}
        for name, aggregate in self.aggregates.items():
            known[name] = aggregate.estimate(fold, discretised=discretised)
        return lambda node: known.get(id(node))

    @cached_property
    def _ratios_alone(self) -> dict[int, int]:
        """For each marginal that averages and variances alone are made of, how many of these there are."""
        users: dict[int, list[bool]] = {}
        different = {one.key if self._by_law(one) else name: one for name, one in self.aggregates.items()}
        for aggregate in different.values():
            lawful = {tally.key for tally in self._by_law(aggregate)}
            used = {(place, tally.key) for tally in aggregate.tallies for place, _ in self.parts[tally.key]}
            for place, name in used:
                users.setdefault(place, []).append(name in lawful)
        return {place: len(ratios) for place, ratios in users.items() if all(ratios)}

    def _by_law(self, aggregate: Aggregate) -> tuple[Tally, ...]:
        """The tallies of an aggregate on whose noise together its interval rests; else errors are used."""
        if isinstance(aggregate, OfShares):
            return aggregate.shares.tallies
        if isinstance(aggregate, Count):
            return aggregate.tallies if self._merges(aggregate.rows) else ()
        return aggregate.tallies if isinstance(aggregate, MeasuredMean | MeasuredSpread) else ()

    def _merges(self, tally: Tally) -> bool:
        """Whether some group is made of several cells in which a row can have a weight."""
        for _, part in self.parts[tally.key]:
            possible = np.broadcast_to(part.possible > 0, part.marginal.shape).ravel()
            if np.bincount(part.groups, weights=possible).max(initial=0) > 1:
                return True
        return False

    def error(self, errors: Sequence[Floats], noises: Noises) -> float:
        """What `CompiledSql.error` returns."""
        nothing = [np.zeros(cells.shape) for cells in errors]

        def fold(tally: Tally) -> Folded:
            parts = [part for _, part in self.parts[tally.key]]
            off = self.grouping.fold(tally, parts, [errors[place] for place, _ in self.parts[tally.key]])
            return Folded(np.zeros(off.shape), -off, off, noise=self._noise(tally, nothing, noises))

        counts = [one for one in self.aggregates.values() if isinstance(one, Count | SharedCount)]
        found = [float(one.half_width(fold)[self.listed].max(initial=0.0)) for one in counts]
        told = {place for one in counts for tally in one.tallies for place, _ in self.parts[tally.key]}
        found += [float(cells.max(initial=0.0)) for i, cells in enumerate(errors) if i not in told]
        return max(found, default=0.0)

    def _noise(self, tally: Tally, values: Sequence[Floats], noises: Noises) -> TallyNoise | None:
        """The noise on a tally in each group, where that on all its marginals is known."""
        places, parts = zip(*self.parts[tally.key], strict=True) if self.parts[tally.key] else ((), ())
        known = [noise for noise in (noises[i] for i in places if noises) if noise is not None]
        if len(known) < len(places) or not known or tally.over:
            return None
        released = [values[i] for i in places]
        each = [np.ones(cells.shape) for cells in released]
        variances = [cells * noise.variance for cells, noise in zip(each, known, strict=True)]
        steps = [cells * noise.step for cells, noise in zip(each, known, strict=True)]
        left = (
            noise.beta / self._ratios_alone[i]
            for i, noise in zip(places, known, strict=True)
            if i in self._ratios_alone
        )
        bounds = {noise.bound for noise in known if noise.variance}
        if len(bounds) > 1:
            return None
        noisy = [cells * (noise.variance > 0) for cells, noise in zip(each, known, strict=True)]
        folded = (self.grouping.fold(tally, parts, cells) for cells in (released, variances, steps, noisy))
        return TallyNoise(*folded, beta=sum(left), bound=next(iter(bounds), None))

    def _fold(
        self,
        tally: Tally,
        values: Sequence[Floats],
        above: Sequence[Floats],
        below: Sequence[Floats],
        most: float,
        throughs: Sequence[Through | None],
        noises: Noises,
    ) -> Folded:
        places = self.parts[tally.key]
        parts = [part for _, part in places]
        value = self.grouping.fold(tally, parts, [values[i] for i, _ in places])
        over = self.grouping.fold(tally, parts, [above[i] for i, _ in places])
        under = over if below is above else self.grouping.fold(tally, parts, [below[i] for i, _ in places])
        least, largest = (0.0, most) if tally.moment is None else _reach_of(tally.moment, most)
        through = self._through(tally, throughs) if throughs and tally.over else None
        value, low, high = (np.clip(part, least, largest) for part in (value, value - under, value + over))
        return Folded(value, low, high, through, self._noise(tally, values, noises), most)

    def _through(self, tally: Tally, throughs: Sequence[Through | None]) -> tuple[Floats, Floats] | None:
        """The ends of the running sums along the tally's attribute, where every part of it has some."""
        found = []
        for place, part in self.parts[tally.key]:
            known = throughs[place]
            ends = None if known is None or (part.possible == 0).any() else known(tally.over)
            if ends is None:
                return None
            found.append((part, ends))
        if not found:
            return None
        parts = [part for part, _ in found]
        low, high = (self.grouping.fold(tally, parts, [ends[side] for _, ends in found]) for side in (0, 1))
        return low, high

    # ---- which rows, in which order

    @property
    def sorts_released(self) -> bool:
        """Whether ORDER BY goes by released numbers."""
        return any(id(term.node) not in self.fixed for term in self.statement.order)

    def is_in_order(
        self,
        values: Sequence[Floats],
        errors: Sequence[Floats],
        most: float,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
    ) -> bool:
        """What `CompiledSql.is_in_order` returns."""
        leaf = self._estimates(values, errors, most, discretised=True, throughs=throughs, noises=noises)
        listed, count = self._chosen(leaf, cut=False), self.grouping.count
        evaluator = _evaluator(count, leaf, released=True)
        terms = [Sorted.of(evaluator.value(term.node), term, count) for term in self.statement.order]
        start = self.statement.offset
        end = len(listed) if self.statement.limit is None else min(start + self.statement.limit, len(listed))
        return surely_sorted([term for term in terms if term is not None], listed, start, end)

    def _chosen(self, leaf: Leaf, *, cut: bool = True) -> list[int]:
        count = self.grouping.count
        evaluator = _evaluator(count, leaf, released=True)
        order = np.arange(count)
        keys: list[NDArray[np.int64]] = []
        for term in reversed(self.statement.order):
            keys.extend(ranks(evaluator.value(term.node), term, count))
        if keys:
            order = np.lexsort(keys)
        if self.statement.having is not None:
            kept = np.broadcast_to(evaluator.condition(self.statement.having).true, (count,))
            order = order[kept[order]]
        order = order[self.listed[order]]
        if not cut:
            return order.tolist()
        start = self.statement.offset
        end = None if self.statement.limit is None else start + self.statement.limit
        return order[start:end].tolist()

    def dry_run(self, leaf: Leaf) -> tuple[Column, ...]:
        """Evaluate everything once with a given leaf, so that mistakes show before anything is measured.

        Returns the columns: what they will hold does not depend on what is measured.
        """
        columns: list[Column] = []
        for item, names in zip(self.statement.items, self.names, strict=True):
            if names is None:
                kind = self._column(item.node, leaf).kind
                released: ColumnType = (
                    "date" if kind == "date" else "timestamp" if kind == "timestamp" else "float"
                )
                columns.append(Column(item.name, "value", released))
            else:
                kept = [name for name, is_listed in zip(names, self.listed, strict=True) if is_listed]
                columns.append(Column(item.name, "key", type_of(kept)))
        self._chosen(leaf)
        return tuple(columns)


def _reach_of(moment: Moment | QuantileEnd, rows: float) -> tuple[float, float]:
    """The least and the most that a moment can add up to over so many rows; a place is between 0 and 1."""
    if isinstance(moment, QuantileEnd):
        return 0.0, 1.0
    return (float(moment.low) * rows if moment.low else 0.0), float(moment.high) * rows


def _evaluator(count: int, leaf: Leaf, *, released: bool = False, whole: bool = True) -> Evaluator:
    scope = Scope({AXIS: count}, strict=False, whole=whole)
    return Evaluator(scope, leaf, functions=FUNCTIONS, released=released)


def _released(value: Value, count: int) -> Numbers:
    if not isinstance(value, Numbers):
        raise QueryError(
            "a column of released values must be a number", remedy="conditions belong into HAVING"
        )
    whole = {
        part: np.broadcast_to(getattr(value, part), (count,))
        for part in ("point", "low", "high", "null", "unknown")
    }
    return replace(value, **whole)


def _representative(value: Value) -> Value:
    """A function of the group without the width of its bins."""
    return replace(value, low=value.point, high=value.point) if isinstance(value, Numbers) else value


def _estimate(full: Numbers, bare: Numbers, i: int) -> Estimate:
    """One number with its bounds; the error of the bins is how much wider they make the interval.

    It is a part of the half-width, and so never more than that, also where bins move one end alone.
    """
    low, high = float(full.low[i]), float(full.high[i])
    inner_low, inner_high = max(float(bare.low[i]), low), min(float(bare.high[i]), high)
    point = min(max(float(full.point[i]), low), high)
    wider = max(inner_low - low, high - inner_high, 0.0) if low > -inf and high < inf else 0.0
    wider = min(wider, (high - low) / 2) if low > -inf and high < inf else wider
    missing = bool(full.null[i] or full.unknown[i])
    if full.kind == "date":
        days = [as_date(part) for part in (point, low, high)]
        return Estimate(None if missing else days[0], days[1], days[2], wider)
    if full.kind == "timestamp":
        moments = [
            as_instant(float(round_to(part)))
            for part, round_to in ((point, floor), (low, floor), (high, ceil))
        ]
        return Estimate(None if missing else moments[0], moments[1], moments[2], wider)
    bounds = [None if part in (inf, -inf) else part + 0.0 for part in (low, high)]
    return Estimate(None if missing else point + 0.0, bounds[0], bounds[1], wider)


def _distance(released: Numbers, expected: Numbers, i: int) -> float | None:
    """How far a released number is from the further end of the interval of its expected one."""
    if released.null[i] or released.unknown[i] or expected.null[i] or expected.unknown[i]:
        return None
    point = min(max(float(released.point[i]), float(released.low[i])), float(released.high[i]))
    off = max(float(expected.high[i]) - point, point - float(expected.low[i]), 0.0)
    return off if off < inf else None


def group_names(value: Value, count: int, attribute: Attribute | None = None) -> list[Key] | None:
    """What an exact value over groups is called in each; None where it is not exact.

    Where the value is that of an attribute, its cell of all other values bears the label that it has everywhere.
    """
    if isinstance(value, Nothing):
        return list[Key]([None]) * count
    null = np.broadcast_to(value.null, (count,))
    if isinstance(value, Truths):
        true = np.broadcast_to(value.true, (count,))
        return [None if n else bool(t) for t, n in zip(true, null, strict=True)]
    unknown = np.broadcast_to(value.unknown, (count,))
    if isinstance(value, Texts):
        plain: list[Key] = np.broadcast_to(value.values, (count,)).tolist()
    elif (value.known & ~value.exact).any():
        return None
    else:
        points = np.broadcast_to(value.point, (count,)).tolist()
        form = {"integer": int, "date": as_date, "timestamp": as_instant, "real": float}[value.kind]
        plain = [form(point) for point in points]
    taken = {
        name
        for name, n, u in zip(plain, null, unknown, strict=True)
        if isinstance(name, str) and not (n or u)
    }
    other = unique_label("other", taken) if attribute is None else attribute.other_label
    return [None if n else other if u else name for name, n, u in zip(plain, null, unknown, strict=True)]
