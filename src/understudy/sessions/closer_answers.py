"""Questions to a session within an error of their own: in people, or in the unit of a sum, an average, a ratio.

An answer is made of counts and sums of which intervals are known. What its numbers can be off by follows from
these intervals, in their own unit (`answer.unit_error`). Where that is within the error asked for, the answer
costs nothing. Else the intervals have to be narrower, and it is found how narrow: the sums are bought within
that many people.

How many people is found for the worst place of the new intervals within the old ones (`interval_widths`). An
average is (sum)/(number of rows): with a sum within w people, a number of rows within v, and at least L rows, it
is off by at most (w + v)/L of the range of the values.

How many rows there are has to be known for that. Where it is not, the session counts them first, and the sums
with them, as it answers any question: within its own width, which costs little beside a narrow error, and tells
where the average lies. What the whole will cost is then not known beforehand: `price` is what it costs if the
rows are at least half as many as expected, and at least three times the session's width. That is the most that is
spent, and a question whose price cannot be paid is refused before anything is bought. Who wants the rows counted
all the same asks without an error, which has a price of its own. Where the rows turn out to be too few for the
price, the question is refused after they were counted, and the refusal says what was charged for that, and what
the answer would cost.

Groups      Of a group that is known to have at most three times the session's width of rows nothing is promised
            beside larger ones: its numbers have the bounds that they have. More precision never makes a small
            group a large one, so that a question that was answered stays free. A question about such rows alone is
            priced by them.
Promise     An answer within an error is within it, with the probability that the session promises for all answers.
Why         Its bounds follow from intervals of bands that were bought, each with its share of β; before it is
            told, these bounds are compared with the error.
Privacy     What is bought, and what is refused, follows from the question and from released numbers.
Cost        At most `price`: all purchases are planned, and quoted together, before the first is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, RowBounds, SourceCounts
from understudy.answer.forecast import even_counts
from understudy.answer.reader import RateQuestion, ReadQuestion, ShareQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.unit_error import is_made_of_ratios, largest_half_width, unit_of
from understudy.domain.domain import Clique
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.privacy.cost import Cost
from understudy.query.box import Cells
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import TRIES, Buyer
from understudy.sessions.direct import intervals
from understudy.sessions.interval_widths import Widths, WidthSearch, is_count, is_wider
from understudy.sessions.knowledge import TOUCHING, IntervalTable
from understudy.sessions.number_of_rows import NumberOfRows, rows_error
from understudy.sessions.part_answers import PartAnswers
from understudy.sessions.predicted_counts import predicted
from understudy.sessions.purchase import Purchase
from understudy.sessions.unkept_error import UnkeptError, dearer_than_told
from understudy.sessions.within_error import WithinPurchase

CAUTION = 0.8
"""The part of an error that is aimed at where it is not proven which tables are the worst."""

FEWEST = 3
"""In widths of the session: a group of at most so many rows is small, and a price beforehand goes by no fewer."""

MUCH = 3.0
"""How many times narrower than the session's width sums have to be for a look within that width to come first."""

COUNT_FIRST = (
    "Ask for a wider error; or ask without `error` first: that counts the rows, at a price of its own, and by "
    "what is known then this may cost much less"
)
"""What to do where a price cannot be paid that goes by rows which nobody has counted."""

EVEN = 1.05
"""Errors are the same up to this factor."""


@dataclass(frozen=True, eq=False)
class _WithinPlan:
    """What a question within an error may buy.

    first    the counts that are asked for before, within the session's width, so that the rows are known
    counts   what these buy
    within   what is bought then, within widths of its own; by what is expected where `first` is not empty
    price    the most that all of it costs
    fewest   of how few rows of a group that goes by what is expected; None where it goes by none
    """

    first: list[Marginal]
    counts: list[Purchase]
    within: list[WithinPurchase]
    price: Cost
    fewest: float | None = None


@dataclass(frozen=True, eq=False)
class CloserAnswer:
    """One question of a session within an error of its own; promise and reason are those of the module.

    question   the question as it was read
    marginals  the counts and sums that its answer is made of, with no more edges than they need
    error      how far off its numbers may be, in its unit
    parts      answers counts and sums within the session's own width
    """

    question: ReadQuestion[Any]
    marginals: tuple[Marginal, ...]
    error: float
    parts: PartAnswers

    @property
    def buyer(self) -> Buyer:
        """Who buys for the session."""
        return self.parts.buyer

    @cached_property
    def _search(self) -> WidthSearch:
        return WidthSearch(self.marginals)

    def free(self) -> list[Answer] | None:
        """Answers for the marginals from what is known, if they keep the error; None where they do not."""
        tables = self._tables()
        if self._off(tables, self._small(tables)) > self.error * (1 + 1e-9):
            return None
        return [self._answer(*each) for each in zip(self.marginals, tables, strict=True)]

    def price(self, analyst: str) -> Cost:
        """The most that the question costs; raises as `bought` does where it is refused."""
        return self.buyer.nothing if self.free() is not None else self._plan(analyst).price

    def planned(self, analyst: str, after: Sequence[Purchase] = ()) -> list[Purchase]:
        """All that the question may buy `after` purchases that are planned for others; raises as `price` does."""
        if self.free() is not None:
            return []
        plan = self._plan(analyst, after=after)
        return [*plan.counts, *plan.within]

    def bought(self, asking: Asking) -> list[Answer]:
        """Answers for the marginals that keep the error, bought where they are not known; for who holds the lock.

        Raises a `RefusedError` where no precision keeps the error, or the rows turn out to be too few for its
        price, and an `InsufficientBudgetError` where the budget cannot pay.
        """
        told: _WithinPlan | None = None
        are_counted = False
        for _ in range(TRIES):
            self.buyer.catch_up()
            self.buyer.check_request(asking)
            if (answers := self.free()) is not None:
                return self._told(answers, asking)
            plan = self._plan(asking.analyst, are_counted=are_counted)
            told = plan if told is None else told
            if plan.first:
                if (refusal := self._unpaid(plan, asking.analyst)) is not None:
                    raise refusal
                self._count(plan.first, asking)
                are_counted = True
                continue
            if plan.price.units + asking.charged.units > told.price.units:
                raise self._dearer(plan, told, asking)
            self._check(plan, asking)
            if self.buyer.buy_within(plan.within, asking, asked=self.buyer.asked + 1):
                break
        if (answers := self.free()) is None:  # bands contradict each other, or it is no sum of ratios
            raise RefusedError(
                f"what was bought does not keep an error of {self._told_error}",
                remedy="ask again, which buys more precision; or leave `error` out",
            )
        return self._told(answers, asking)

    def _count(self, marginals: Sequence[Marginal], asking: Asking) -> None:
        """Have the session answer marginals within its own width; what they cost is added to what was charged."""
        counting = replace(asking)
        try:
            self.parts.answers(marginals, counting, None, uncertified=False)
        finally:
            asking.spent = counting.spent
            asking.charged = type(asking.charged)(counting.spent)

    def unpaid(self, analyst: str) -> InsufficientBudgetError | None:
        """Why the analyst could not pay for the question, before any of it is bought; None where they could."""
        return None if self.free() is not None else self._unpaid(self._plan(analyst), analyst)

    def _unpaid(self, plan: _WithinPlan, analyst: str) -> InsufficientBudgetError | None:
        """Why the analyst cannot pay for a plan: where it counts rows first, with all that comes after that."""
        funds = self.buyer.funds(analyst)
        try:
            funds.check([*plan.counts, *plan.within])
        except InsufficientBudgetError as refusal:
            if not plan.first or not funds.is_payable(plan.counts):
                return refusal
            return InsufficientBudgetError(
                requested=refusal.requested,
                remaining=refusal.remaining,
                currency=refusal.currency,
                limit=refusal.limit,
                remedy=COUNT_FIRST,
            )
        return None

    def _check(self, plan: _WithinPlan, asking: Asking) -> None:
        """Refuse what the analyst cannot pay for; where the rows were counted for it, the refusal says so."""
        try:
            self.buyer.funds(asking.analyst).check(plan.within)
        except InsufficientBudgetError as refusal:
            if not asking.spent:
                raise
            raise RefusedError(
                f"the rows were counted; an error of {self._told_error} costs {refusal.currency} "
                f"{refusal.requested:.4g} more, which the budget cannot pay",
                remedy="ask for a wider `error`, or leave it out",
            ) from refusal

    # ---- what is known

    def _tables(self) -> list[IntervalTable]:
        return [self._known(marginal) for marginal in self.marginals]

    def _known(self, marginal: Marginal) -> IntervalTable:
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

    def _small(self, tables: Sequence[IntervalTable]) -> Cells | None:
        """The groups that are known to be small, beside others that are not; None where there are none."""
        by = self.marginals[0].by if self.marginals else ()
        if not by or any(marginal.by != by for marginal in self.marginals) or not self._is_by_cells(by):
            return None
        small = np.zeros(self.marginals[0].shape, bool)
        for size in self._sizes(tables):
            small |= size.high <= FEWEST * self.buyer.promise.width
        return small if small.any() and not small.all() else None

    def _is_by_cells(self, by: Clique) -> bool:
        """Whether every group of the answer is one cell of the marginals."""
        question = self.question
        return not isinstance(question, SelectQuestion) or set(question.compiled.grouped_by) == set(by)

    def _off(
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
        told = [self._answer(*each) for each in zip(self.marginals, tables, strict=True)]
        cells = tuple(CellCounts(answer, answer.value, answer.error) for answer in told)
        known = self.buyer.known
        counts = SourceCounts(cells, rows or known.rows, float(known.promise.terms.beta), self.buyer.nothing)
        return largest_half_width(self.question, counts)

    def _answer(self, marginal: Marginal, table: IntervalTable) -> Answer:
        value, error = (table.low + table.high) / 2, (table.high - table.low) / 2
        is_repeat = identity(marginal) in self.buyer.memory.closer
        source = "repeat" if is_repeat else "implied" if len(marginal.clique) <= 1 else "pinned"
        known = self.buyer.known
        beta = float(known.promise.terms.beta)
        return Answer(marginal, value, error, value, self.buyer.nothing, beta, source, noise=known.noise)

    def _told(self, answers: list[Answer], asking: Asking) -> list[Answer]:
        """The answers, with what was charged for them told with the first."""
        if not asking.charged.units or not answers:
            return answers
        return [
            replace(answers[0], cost=asking.charged, source="measured"),
            *(replace(answer, source="measured") for answer in answers[1:]),
        ]

    # ---- what has to be bought

    def _plan(
        self, analyst: str, *, are_counted: bool = False, after: Sequence[Purchase] = ()
    ) -> _WithinPlan:
        """What the question may buy by what is known now; nothing first where that was bought (`are_counted`).

        It comes `after` purchases that are planned for questions before it.
        """
        asked, funds, tables = self.buyer.asked + 1, self.buyer.funds(analyst), self._tables()
        widths = self._widths(tables)
        first = [] if are_counted else self._first(tables, widths)
        if not first:
            if widths is None:
                raise self._unkept(tables, None, are_counted=are_counted)
            within = self.buyer.plans.within(self._wanted(tables, widths), asked=asked, after=after)
            return _WithinPlan([], [], within, funds.quote(within))
        expected = [
            self._expected(marginal) if marginal in first and is_count(marginal) else table
            for marginal, table in zip(self.marginals, tables, strict=True)
        ]
        rows = self._expected_rows() if self._everyone in first else None
        widths = self._widths(expected, rows)
        if widths is None:
            raise self._unkept(expected, rows, are_counted=False)
        counts = self.buyer.plans.of(first, analyst, asked=asked, before=after)
        counts = replace(counts, before=[]).purchases
        wanted = self._wanted(expected, widths)
        within = self.buyer.plans.within(wanted, asked=asked + len(first), after=[*after, *counts])
        fewest = self._fewest(expected)
        price = funds.quote([*counts, *within])
        return _WithinPlan(first, counts, within, price, None if fewest is None else fewest[0])

    def _widths(self, tables: Sequence[IntervalTable], rows: RowBounds | None = None) -> Widths | None:
        """How wide the intervals of the marginals may be by what is known; None where no widths keep the error."""
        small = self._small(tables)
        return self._search.widths(tables, lambda placed: self._off(placed, small, rows), self._aim)

    @property
    def _aim(self) -> float:
        return self.error if is_made_of_ratios(self.question) else CAUTION * self.error

    def _wanted(self, tables: Sequence[IntervalTable], widths: Widths) -> list[tuple[Marginal, float]]:
        """The marginals that are not known to within their widths."""
        each = zip(self.marginals, tables, widths, strict=True)
        return [(marginal, width) for marginal, table, width in each if is_wider(table, width)]

    def _first(self, tables: Sequence[IntervalTable], widths: Widths | None) -> list[Marginal]:
        """The marginals that are asked for first, within the session's width, where that is not known.

        All of them, where no widths keep the error by what is known, or they have to be much narrower than the
        session's; none where the error depends on the widths alone, as those of counts and sums do.
        """
        width = float(self.buyer.promise.width)
        if widths is not None and (self._is_even(tables) or min(widths) > width / MUCH):
            return []
        each = zip(self.marginals, tables, strict=True)
        first = [marginal for marginal, table in each if is_wider(table, width)]
        least, most = self.buyer.known.knowledge.total
        if isinstance(self.question, ShareQuestion) and most > least + 2 * rows_error(int(width)):
            first.append(self._everyone)  # what it is a share of is private, and not known closely
        return first

    @cached_property
    def _everyone(self) -> Marginal:
        return NumberOfRows(self.buyer.curator.domain, ())

    def _expected_rows(self) -> RowBounds:
        """What will be known of the number of all rows, if it is the least one declared."""
        least = self.buyer.known.knowledge.total[0]
        return RowBounds(least, least + 2 * rows_error(self.buyer.promise.width))

    def _is_even(self, tables: Sequence[IntervalTable]) -> bool:
        """Whether the error is the same wherever the intervals come to lie."""
        widths = [float(self.buyer.promise.width) / MUCH] * len(self.marginals)
        small = self._small(tables)
        found = [self._off(placed, small) for placed in self._search.placed(tables, widths)]
        return max(found) <= EVEN * min(found)

    def _expected(self, marginal: Marginal) -> IntervalTable:
        """What will be known of a count within the session's width, if there are half of the rows expected."""
        known, width = self.buyer.known.knowledge, self.buyer.promise.width
        guess = predicted(known, marginal)
        if guess is None:
            guess = even_counts(marginal, known.total[0])
        if guess is None:
            guess = np.zeros(marginal.shape)
        rows = np.clip(np.broadcast_to(guess, marginal.shape) / 2, FEWEST * width, max(known.total[0], 1.0))
        return IntervalTable(np.maximum(rows - width, 0.0), rows + width)

    # ---- refusals

    @property
    def _told_error(self) -> str:
        return f"{self.error:,.10g} ({unit_of(self.question)})"

    def _sizes(self, tables: Sequence[IntervalTable]) -> list[IntervalTable]:
        """What is known of the numbers of rows that others are sums over, or are divided by."""
        if isinstance(self.question, RateQuestion):
            return [IntervalTable(tables[0].low + tables[1].low, tables[0].high + tables[1].high)]
        return [table for table, holds in zip(tables, self._search.holders, strict=True) if holds]

    def _fewest(self, tables: Sequence[IntervalTable]) -> tuple[float, float] | None:
        """The least and the most rows of the group that may have the fewest, small ones left out.

        None where the answer is divided by no number of rows.
        """
        small = self._small(tables)
        found: list[tuple[float, float]] = []
        for size in self._sizes(tables):
            told = np.ones(size.low.shape, bool) if small is None else ~small
            found += zip(size.low[told].tolist(), size.high[told].tolist(), strict=True)
        return min(found, default=None)

    def _unkept(
        self, tables: Sequence[IntervalTable], rows: RowBounds | None, *, are_counted: bool
    ) -> RefusedError:
        """The refusal of an error that no precision keeps by what is known, or expected, of the rows."""
        small = self._small(tables)
        by = self.marginals[0].by if self.marginals else ()
        has_groups = bool(by) or any(column.kind == "key" for column in self.question.columns)
        unkept = UnkeptError(
            search=self._search,
            tables=tables,
            off=lambda placed: self._off(placed, small, rows),
            error=self.error,
            aim=self._aim,
            told_error=self._told_error,
            fewest=self._fewest(tables),
            groups="" if not has_groups else "cells" if self._is_by_cells(by) else "expressions",
            so_far="the rows were counted, and nothing more was bought"
            if are_counted
            else "nothing was bought",
        )
        return unkept.refusal()

    def _dearer(self, plan: _WithinPlan, told: _WithinPlan, asking: Asking) -> RefusedError:
        """The refusal of a price that is beyond the one `told`, once the rows were counted."""
        self._check(plan, asking)  # who cannot pay for it need not ask again
        return dearer_than_told(
            error=self._told_error,
            price=f"{plan.price.currency} {plan.price.amount:.4g}",
            fewest=self._fewest(self._tables()),
            expected=told.fewest,
        )
