"""How far the numbers of an answer can be off by what a session knows of the sums that it is made of.

An answer is made of counts and sums of which intervals are known: deduced, or bought within any error. What its
numbers can be off by follows from these intervals, in their own unit (`answer.unit_error`). Only released numbers
are read for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.reader import RateQuestion, ReadQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.unit_error import largest_half_width, unit_of
from understudy.domain.domain import Clique
from understudy.query.box import Cells
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.buyer import Buyer
from understudy.sessions.direct import intervals
from understudy.sessions.interval_widths import WidthSearch
from understudy.sessions.knowledge import TOUCHING, IntervalTable

FEWEST = 3
"""In widths of the session: a group of at most so many rows is small, and a price beforehand goes by no fewer."""


@dataclass(frozen=True, eq=False)
class AnswerEnds:
    """What the answer to one question can be, by what is known of its marginals.

    question   the question as it was read
    marginals  the counts and sums that its answer is made of
    buyer      knows what was bought
    search     says which marginals are numbers of rows
    """

    question: ReadQuestion[Any]
    marginals: tuple[Marginal, ...]
    buyer: Buyer
    search: WidthSearch

    def tables(self) -> list[IntervalTable]:
        """What is known of each of them."""
        return [self.known(marginal) for marginal in self.marginals]

    def known(self, marginal: Marginal) -> IntervalTable:
        """What is known of the sums of a marginal: deduced, or bought for it within any error."""
        known = self.buyer.known
        knowledge = known.knowledge
        if known.promise.terms.is_direct:  # who asks directly deduces nothing
            knowledge = known.promise.nothing_released().knowledge
        table = intervals(knowledge, marginal)
        shape, most = marginal.shape, knowledge.total[1]
        low = np.zeros(shape) if table is None else np.array(table.low)
        high = np.full(shape, most) if table is None else np.array(table.high)
        for answer in (self.buyer.memory.find(marginal), self.buyer.memory.closer.get(identity(marginal))):
            if answer is None or answer.source == "uncertified":
                continue
            below, above = answer.value - answer.error, answer.value + answer.error
            fits = (np.maximum(low, below) <= np.minimum(high, above) + TOUCHING) & np.isfinite(answer.error)
            low, high = (
                np.where(fits, np.maximum(low, below), low),
                np.where(fits, np.minimum(high, above), high),
            )
        return IntervalTable(np.minimum(low, high), np.maximum(low, high))

    def small(self, tables: Sequence[IntervalTable]) -> Cells | None:
        """The groups that are known to be small, beside others that are not; None where there are none."""
        by = self.marginals[0].by if self.marginals else ()
        if not by or any(marginal.by != by for marginal in self.marginals) or not self.is_by_cells(by):
            return None
        small = np.zeros(self.marginals[0].shape, bool)
        for size in self.sizes(tables):
            small |= size.high <= FEWEST * self.buyer.promise.width
        return small if small.any() and not small.all() else None

    def is_by_cells(self, by: Clique) -> bool:
        """Whether every group of the answer is one cell of the marginals."""
        question = self.question
        return not isinstance(question, SelectQuestion) or set(question.compiled.grouped_by) == set(by)

    def off(
        self, tables: Sequence[IntervalTable], small: Cells | None, rows: RowBounds | None = None
    ) -> float:
        """How far a number of the answer can be off, in the question's unit, by intervals for its marginals.

        In people that is what a number of people, or a sum for another number, can be off by. Groups that are
        `small` are left out. `rows` is the number of all rows, where it is not what is known now.
        """
        halves = [(table.high - table.low) / 2 for table in tables]
        if unit_of(self.question) == "people":
            if isinstance(self.question, SelectQuestion):
                return self.question.compiled.error(halves)
            return max((float(half.max(initial=0.0)) for half in halves), default=0.0)
        if small is not None:  # as if they were like one that is not: whatever it is off by, they add nothing
            like = tuple(np.argwhere(~small)[0])
            tables = [
                IntervalTable(np.where(small, t.low[like], t.low), np.where(small, t.high[like], t.high))
                for t in tables
            ]
        told = [self.answer(*each) for each in zip(self.marginals, tables, strict=True)]
        cells = tuple(CellCounts(answer, answer.value, answer.error) for answer in told)
        known = self.buyer.known
        counts = SourceCounts(cells, rows or known.rows, float(known.promise.terms.beta), self.buyer.nothing)
        return largest_half_width(self.question, counts)

    def answer(self, marginal: Marginal, table: IntervalTable) -> Answer:
        """The answer for a marginal in the middle of what is known of it."""
        value, error = (table.low + table.high) / 2, (table.high - table.low) / 2
        is_repeat = identity(marginal) in self.buyer.memory.closer
        source = "repeat" if is_repeat else "implied" if len(marginal.clique) <= 1 else "pinned"
        known = self.buyer.known
        beta = float(known.promise.terms.beta)
        return Answer(marginal, value, error, value, self.buyer.nothing, beta, source, noise=known.noise)

    def sizes(self, tables: Sequence[IntervalTable]) -> list[IntervalTable]:
        """What is known of the numbers of rows that others are sums over, or are divided by."""
        if isinstance(self.question, RateQuestion):
            return [IntervalTable(tables[0].low + tables[1].low, tables[0].high + tables[1].high)]
        return [table for table, holds in zip(tables, self.search.holders, strict=True) if holds]

    def fewest(self, tables: Sequence[IntervalTable]) -> tuple[float, float] | None:
        """The least and the most rows of the group that may have the fewest, small ones left out.

        None where the answer is divided by no number of rows.
        """
        small = self.small(tables)
        found: list[tuple[float, float]] = []
        for size in self.sizes(tables):
            told = np.ones(size.low.shape, bool) if small is None else ~small
            found += zip(size.low[told].tolist(), size.high[told].tolist(), strict=True)
        return min(found, default=None)
