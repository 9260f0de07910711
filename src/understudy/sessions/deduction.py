"""Answers for nothing: what follows from everything that a session released up to one moment.

A `Deduction` never changes, so that any number of threads answer from it without waiting for each other or for
somebody's purchase. A purchase makes a new one, which takes the old one's place in one assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import floor, inf
from typing import TYPE_CHECKING

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.counts import PopulationReach, RowBounds
from understudy.curator.curator import Curator
from understudy.curator.row_sums import RowSums
from understudy.domain.refinement import refines
from understudy.errors import ParameterError, QueryError
from understudy.privacy.cost import Cost
from understudy.query.box import Grid
from understudy.query.marginal import Marginal
from understudy.sessions.cut_knowledge import CutKnowledge
from understudy.sessions.direct import intervals
from understudy.sessions.knowledge import UNBOUNDED, IntervalTable, Knowledge, boxes_of, nearest
from understudy.sessions.number_of_rows import NumberOfRows, rows_error
from understudy.sessions.population import Population, by_tilting, by_transfer, narrower, spent_on_rows
from understudy.sessions.terms import Terms

if TYPE_CHECKING:
    from understudy.sessions.fitted_standin import FittedStandin

REMEMBERED = 1 << 7
"""What was spent, for so many states of a ledger, whose certificate is remembered."""


@dataclass(frozen=True, eq=False)
class SessionPromise:
    """What the terms of a session mean for one table: fixed when it is opened, and made of public values.

    rows   the public number of rows, or the declared least one where the number is private
    width  α of these rows in people, rounded down: the error of every count
    """

    curator: Curator
    terms: Terms
    rows: int
    width: int

    @classmethod
    def of(cls, curator: Curator, terms: Terms) -> SessionPromise:
        """Raises a `ParameterError` where α of the rows is less than one person."""
        rows = curator.rows_at_least
        width = floor(terms.alpha * rows)
        if width < 1:
            raise ParameterError(
                f"alpha {float(terms.alpha):g} of {rows} rows is less than one person: ask for a wider error"
            )
        return cls(curator, terms, rows, width)

    @property
    def fixed(self) -> tuple[object, ...]:
        """All that decides what a session's purchases mean, beside the purchases themselves and the code."""
        curator = self.curator
        declared = curator.domain, curator.relation, curator.declaration.unit, curator.ledger.budget
        public = self.rows, self.width, curator.rows_at_most, curator.declaration.opening
        return (*declared, self.terms, *public)

    @property
    def population(self) -> Population:
        """How far shares of rows can be from those of the population behind the table, or why nobody can tell.

        It goes by what the ledger holds at this moment.
        """
        return self._population_after(None)

    def _population_after(self, request: str | None) -> Population:
        """The same after the purchase of a request and all before it; None for what the ledger holds now."""
        return self._population_of(spent_on_rows(self.curator, request))

    @cached_property
    def _population_of(self) -> Callable[[RowSums], Population]:
        """The same for what was spent; remembered, since all answers between two purchases rest on the same."""

        def found(spent: RowSums) -> Population:
            error = self._share_error
            tilting = by_tilting(self.curator, self.terms, self.rows, spent, share_error=error)
            return narrower(tilting, self._transfer)

        return lru_cache(maxsize=REMEMBERED)(found)

    def population_of_shares(self) -> PopulationReach | None:
        """How far shares of a number of rows that is not known exactly can be from the population's now."""
        return self.population.of_shares

    @cached_property
    def _transfer(self) -> Population:
        return by_transfer(self.curator, self.terms, share_error=self._share_error)

    @property
    def _share_error(self) -> float | None:
        public = self.curator.relation.rows_are_public
        return None if public else (self.width + rows_error(self.width)) / self.rows

    def nothing_released(self) -> Deduction:
        """What is known before the first purchase: the public bounds of the number of rows."""
        most = self.curator.rows_at_most
        total = float(self.rows), UNBOUNDED if most is None else float(most)
        cuts = CutKnowledge(one_refinement=self.curator.declaration.unit is not None)
        return Deduction(self, Knowledge(Grid(self.curator.domain), total, cuts=cuts))

    def certified(self, answer: Answer, most: float, *, request: str | None = None) -> Answer:
        """The answer with its error against the population, where a theorem gives one for at most `most` rows.

        With the `request` of the purchase that answered it, the error is the same whenever it is asked for.
        """
        if most >= UNBOUNDED:
            return answer
        known = self._population_after(request)
        reach = known.of_counts(answer, self.width, most)
        if reach is None or known.beta is None or known.theorem is None:
            return answer
        return answer.with_population(reach, known.beta, known.theorem)


@dataclass(frozen=True, eq=False)
class Deduction:
    """What follows from the first `step` purchases of a session. Nobody adds to its `knowledge` any more.

    Promise     Where every band that was bought holds, each answer is within its error, which is at most the
                session's width.
    Why         The intervals of `knowledge` contain the true counts then, and an answer is a value that is within
                the width of both ends.
    Cost        Neither privacy nor any of β. Time: milliseconds; the stand-in of `uncertified` takes a fit.
    """

    promise: SessionPromise
    knowledge: Knowledge
    step: int = 0
    noise: str | None = None
    """The noise of these purchases, on which all that follows rests, as `Answer.noise` names it."""

    def intervals(self, marginal: Marginal) -> IntervalTable | None:
        """Intervals for a question's counts, if what was released makes them narrow enough to answer it."""
        if not refines(marginal.domain, self.promise.curator.domain):
            raise QueryError("the question is about another domain")
        table = intervals(self.knowledge, marginal)
        most = 0 if self.promise.terms.is_direct else 2 * self.promise.width
        if isinstance(marginal, NumberOfRows):  # bought once for all shares, also by who asks directly
            most = 2 * rows_error(self.promise.width)
        return None if table is None or bool((table.high - table.low > most).any()) else table

    def answer(self, marginal: Marginal, charged: Cost) -> Answer | None:
        """An answer from what was released, if that is enough; None else. `charged` was paid for that just now."""
        table = self.intervals(marginal)
        if table is None:
            return None
        free = "implied" if len(marginal.clique) <= 1 else "pinned"
        box = boxes_of(marginal)
        estimate = None if box is None else self.knowledge.estimate(marginal.by, box)
        value, error = nearest(table, estimate, self.promise.width)
        noisy, beta = value if estimate is None else estimate, float(self.promise.terms.beta)
        source = "measured" if charged.units else free
        everyone = not marginal.by and not marginal.where.factors and marginal.moment is None
        noise = None if everyone and self.promise.curator.relation.rows_are_public else self.noise
        answer = Answer(marginal, value, error, noisy, charged, beta, source, noise=noise)
        return self.promise.certified(answer, self.knowledge.total[1])

    @cached_property
    def rows(self) -> RowBounds:
        """What is known of the number of rows, and how far shares of it can be from the population's."""
        least, most = self.knowledge.total
        known = least < most <= least + 2 * rows_error(self.promise.width)  # else shares can be further off
        reach = self.promise.population_of_shares if known else None
        return RowBounds(least, inf if most >= UNBOUNDED else most, share_population=reach)

    def uncertified(self, standin: FittedStandin, marginal: Marginal, charged: Cost) -> Answer:
        """An answer by a stand-in of this knowledge; `charged` was paid for what did not suffice."""
        value = standin.counts(self.knowledge, marginal)
        beta, unbounded = float(self.promise.terms.beta), np.full(value.shape, inf)
        return Answer(marginal, value, unbounded, value, charged, beta, "uncertified")
