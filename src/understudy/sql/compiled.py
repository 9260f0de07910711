"""A compiled statement: the marginals that have to be measured, and what to make of their released counts.

Everything here is public: it reads parse trees, the declared grid and released numbers, never a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import QueryError
from understudy.query.column import Column
from understudy.query.marginal import Marginal
from understudy.query.quantiles_of_bins import QuantilesOfBins
from understudy.sql.aggregate import Quantile
from understudy.sql.estimate import Estimate, Key
from understudy.sql.folding import Noises, ReleasedCells, Through
from understudy.sql.grid import Floats
from understudy.sql.group import Part
from understudy.sql.program import SqlProgram


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
    def running(self) -> dict[int, QuantilesOfBins]:
        """The quantiles that are taken of marginals whose cells nothing else needs, by the places of these.

        Running sums of counts are enough for them. Those of groups that are added up from several cells are not
        among them, and neither are those of bins that the condition rules out: they are made of cells.
        """
        aggregates, parts = self.program.aggregates.values(), self.program.parts
        found, others = dict[int, QuantilesOfBins](), set[int]()
        for aggregate in aggregates:
            for tally in aggregate.tallies:
                for place, part in parts[tally.key]:
                    if not isinstance(aggregate, Quantile) or not _is_cell_by_cell(part):
                        others.add(place)
                        continue
                    bins = aggregate.attribute.proper_size
                    need = QuantilesOfBins(tally.over, (aggregate.level,), bins)
                    found[place] = need.joined(found[place]) if place in found else need
        return {place: need for place, need in found.items() if place not in others}

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
        bare_below: Sequence[ArrayLike] | None = None,
        rows: float | None = None,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
        measured: bool = False,
    ) -> list[tuple[Key | Estimate, ...]]:
        """Rows from a value and an error for every cell of every marginal; `rows` bounds the number of rows.

        If all cells are within their errors, every number is within its bounds. Where cells can be further off on
        one side, `errors` are how far they can be above the values, and `below` how far below. `bare` and
        `bare_below` are the same less what comes from bins that a condition cuts, where some are cut. `throughs`
        give for each marginal the bounds of running sums along an attribute, or None, which have to hold as well.

        With `noises`, those of the marginals, averages and variances have bounds of their own where no other
        number needs the errors of theirs; then all numbers are within their bounds except with the marginals'
        probabilities together. Where the values are `measured`, and no estimates of a model, an average or a
        quantile of which nothing is known is missing. Raises a `QueryError` where there is not one value and one
        error for each marginal.
        """
        arrays, widths = self._shaped(values), self._shaped(errors)
        under = widths if below is None else self._shaped(below)
        cells = alone = ReleasedCells(arrays, widths, under, _most(rows), throughs, noises, measured)
        if bare is not None:
            over = self._shaped(bare)
            under = over if bare_below is None else self._shaped(bare_below)
            alone = replace(cells, above=over, below=under)
        return self.program.rows(cells, alone)

    def is_in_order(
        self,
        values: Sequence[ArrayLike],
        errors: Sequence[ArrayLike],
        *,
        below: Sequence[ArrayLike] | None = None,
        rows: float | None = None,
        throughs: Sequence[Through | None] = (),
        noises: Noises = (),
        measured: bool = False,
    ) -> bool | None:
        """Whether the rows that `evaluate` gives are surely those, in that order, if all cells are within errors.

        `errors` and `below` are those of `evaluate`. None where ORDER BY goes by public names, or there is none.
        An order by released numbers is sure where the bounds of neighbours do not overlap, and neither do those of
        the last row and of any that LIMIT cut off.
        """
        if not self.program.sorts_released:
            return None
        arrays, widths = self._shaped(values), self._shaped(errors)
        under = widths if below is None else self._shaped(below)
        cells = ReleasedCells(arrays, widths, under, _most(rows), throughs, noises, measured)
        return self.program.is_in_order(cells)

    def reach(
        self,
        values: Sequence[ArrayLike],
        errors: Sequence[ArrayLike],
        expected_errors: Sequence[ArrayLike],
        *,
        rows: float | None = None,
        noises: Noises = (),
        measured: bool = False,
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
        arrays, widths = self._shaped(values), self._shaped(errors)
        cells = ReleasedCells(arrays, widths, widths, _most(rows), noises=noises, measured=measured)
        return self.program.reach(cells, self._shaped(expected_errors))

    def error(self, errors: Sequence[ArrayLike], noises: Noises = ()) -> float:
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
    def running(self) -> dict[int, QuantilesOfBins]:
        """As `CompiledSql.running`, of all inner statements."""
        found, others = dict[int, QuantilesOfBins](), set[int]()
        for part, places in zip(self.inner, self.places, strict=True):
            running = part.running
            for i, place in enumerate(places):
                if i not in running:
                    others.add(place)
                else:
                    found[place] = running[i].joined(found[place]) if place in found else running[i]
        return {place: need for place, need in found.items() if place not in others}

    @cached_property
    def key(self) -> str:
        """Equal for statements that ask the same, as far as their words show it."""
        return sha256(repr([self.outer, [part.key for part in self.inner]]).encode()).hexdigest()


def _of(marginal: Marginal) -> tuple[str, tuple[str, ...], str]:
    """What a marginal counts, or sums up."""
    return marginal.where.key, marginal.by, marginal.moment.describe() if marginal.moment else ""


def _most(rows: float | None) -> float:
    """The most rows that there can be, where a bound is known or not."""
    return inf if rows is None else float(rows)


def _is_cell_by_cell(part: Part) -> bool:
    """Whether each group of a part is one of its cells, and its rows may be in every one."""
    return len(set(part.groups.tolist())) == part.groups.size and bool((part.possible > 0).all())
