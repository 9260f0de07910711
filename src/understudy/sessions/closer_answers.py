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

What is no ratio of a sum and its rows, a standard deviation above all, is looked at first, as `within_plan` says:
its price is the most that can be needed, and what is bought goes by what is known after each look.

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
from understudy.answer.counts import RowBounds
from understudy.answer.forecast import even_counts
from understudy.answer.reader import ReadQuestion, ShareQuestion
from understudy.answer.unit_error import is_made_of_ratios, unit_of
from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError
from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal
from understudy.sessions.answer_ends import FEWEST, AnswerEnds
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import TRIES, Buyer
from understudy.sessions.interval_widths import Widths, WidthSearch, is_count, is_wider
from understudy.sessions.knowledge import IntervalTable
from understudy.sessions.number_of_rows import NumberOfRows, RowCountPurchase, rows_error
from understudy.sessions.part_answers import PartAnswers
from understudy.sessions.predicted_counts import predicted
from understudy.sessions.purchase import Purchase
from understudy.sessions.unkept_error import UnkeptError, dearer_than_told, short_of
from understudy.sessions.within_error import WithinPurchase
from understudy.sessions.within_plan import NARROWER, WithinPlan, is_ahead, wider

CAUTION = 0.85
"""The part of an error that is aimed at where it is not proven which tables are the worst."""

MUCH = 3.0
"""How many times narrower than the session's width sums have to be for a look within that width to come first."""

COUNT_FIRST = (
    "Ask for a wider error; or ask without `error` first: that counts the rows, at a price of its own, and by "
    "what is known then this may cost much less"
)
"""What to do where a price cannot be paid that goes by rows which nobody has counted."""

WIDER_FIRST = (
    "Ask for a wider error first: that tells how large the number is, and by what is known then this may cost "
    "much less"
)
"""What to do where a price cannot be paid that goes by the worst that a number can be, and looks may be enough."""

EVEN = 1.05
"""Errors are the same up to this factor."""


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
    def _ends(self) -> AnswerEnds:
        return AnswerEnds(self.question, self.marginals, self.buyer, self._search)

    @cached_property
    def _search(self) -> WidthSearch:
        return WidthSearch(self.marginals, is_made_of_ratios(self.question))

    def free(self) -> list[Answer] | None:
        """Answers for the marginals from what is known, if they keep the error; None where they do not."""
        tables = self._ends.tables()
        if self._ends.off(tables, self._ends.small(tables)) > self.error * (1 + 1e-9):
            return None
        return [self._ends.answer(*each) for each in zip(self.marginals, tables, strict=True)]

    def price(self, analyst: str) -> Cost:
        """The most that the question costs; raises as `bought` does where it is refused."""
        return self.buyer.nothing if self.free() is not None else self._plan(analyst).price

    def planned(self, analyst: str, after: Sequence[Purchase] = ()) -> list[Purchase]:
        """All that the question may buy `after` purchases that are planned for others; raises as `price` does."""
        if self.free() is not None:
            return []
        return self._plan(analyst, after=after).purchases

    def bought(self, asking: Asking) -> list[Answer]:
        """Answers for the marginals that keep the error, bought where they are not known; for who holds the lock.

        Raises a `RefusedError` where no precision keeps the error, or the rows turn out to be too few for its
        price, and an `InsufficientBudgetError` where the budget cannot pay.
        """
        told: WithinPlan | None = None
        are_counted = is_bought = False
        sure: list[WithinPurchase] = []
        for _ in range(TRIES):
            if self.buyer.catch_up():
                sure = []  # it was planned after other purchases
            self.buyer.check_request(asking)
            if (answers := self.free()) is not None:
                return self._told(answers, asking)
            plan = self._plan(asking.analyst, are_counted=are_counted, told=told)
            told = plan if told is None else told
            if not asking.spent and (refusal := self._unpaid(plan, asking.analyst)) is not None:
                raise refusal
            if plan.first:
                self._count(plan.first, asking)
                are_counted = True
                continue
            left = told.price.units - asking.charged.units
            if plan.widths == told.widths and not sure:
                sure = told.within
            now, sure = self._next(plan, sure, left, asking.analyst)
            if not now and is_bought:
                raise short_of(error=self._told_error)
            if not now:
                raise self._dearer(plan, told, asking)
            if asking.spent:
                self._check([*now, *sure], asking)
            is_bought = self.buyer.buy_within(now, asking, asked=self.buyer.asked + 1)
            if is_bought and self._search.of_ratios:
                break
        if (answers := self.free()) is None:
            raise short_of(error=self._told_error)
        return self._told(answers, asking)

    def _next(
        self, plan: WithinPlan, sure: list[WithinPurchase], left: int, analyst: str
    ) -> tuple[list[WithinPurchase], list[WithinPurchase]]:
        """What is bought next, and what is sure to keep the error after it, within the units that are `left`.

        A look that may be enough comes first, where what is sure to be enough can still be paid after it. Else it
        is that, by what is known now or, where that is dearer, as it was planned before the last look (`sure`).
        Nothing, where neither is within what is left.
        """
        funds, asked = self.buyer.funds(analyst), self.buyer.asked + 1
        if plan.look:
            look = self.buyer.plans.within(plan.look, asked=asked)
            after = self.buyer.plans.within(plan.wanted, asked=asked, after=look)
            if funds.quote([*look, *after]).units <= left:
                return look, after
        within = plan.within
        if plan.look:  # the price of the plan has a part for looks
            within = self.buyer.plans.within(plan.wanted, asked=asked)
        if funds.quote(within).units <= left:
            return within, []
        return sure, []

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

    def _unpaid(self, plan: WithinPlan, analyst: str) -> InsufficientBudgetError | None:
        """Why the analyst cannot pay for a plan, with all that comes after its first purchases."""
        funds = self.buyer.funds(analyst)
        try:
            funds.check(plan.purchases)
        except InsufficientBudgetError as refusal:
            if plan.first and funds.is_payable(plan.counts):
                remedy = COUNT_FIRST
            elif plan.look and not refusal.limit:
                remedy = WIDER_FIRST
            else:
                return refusal
            return InsufficientBudgetError(
                requested=refusal.requested,
                remaining=refusal.remaining,
                currency=refusal.currency,
                limit=refusal.limit,
                remedy=remedy,
            )
        return None

    def _check(self, purchases: Sequence[Purchase], asking: Asking) -> None:
        """Refuse what the analyst cannot pay for any more, after something was bought for the question."""
        try:
            self.buyer.funds(asking.analyst).check(purchases)
        except InsufficientBudgetError as refusal:
            raise RefusedError(
                f"the rows were counted; an error of {self._told_error} costs {refusal.currency} "
                f"{refusal.requested:.4g} more, which the budget cannot pay",
                remedy="ask for a wider `error`, or leave it out",
            ) from refusal

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
        self,
        analyst: str,
        *,
        are_counted: bool = False,
        told: WithinPlan | None = None,
        after: Sequence[Purchase] = (),
    ) -> WithinPlan:
        """What the question may buy by what is known now; nothing first where that was bought (`are_counted`).

        It comes `after` purchases that are planned for questions before it. Where a plan was `told` before, what
        is sure to be enough by it still is, if no less is known than was expected.
        """
        asked, tables = self.buyer.asked + 1, self._ends.tables()
        widths = self._widths(tables, before=None if told is None else told.widths)
        first = [] if are_counted else self._first(tables, widths)
        if not first:
            if widths is None:
                raise self._unkept(tables, None, are_counted=are_counted)
            return self._priced([], [], tables, widths, None, analyst, after)
        expected = [
            self._expected(marginal) if marginal in first and is_count(marginal) else table
            for marginal, table in zip(self.marginals, tables, strict=True)
        ]
        rows = self._expected_rows() if self._everyone in first else None
        if any(isinstance(purchase, RowCountPurchase) for purchase in after):
            first = [marginal for marginal in first if marginal is not self._everyone]  # bought by then
        widths = self._widths(expected, rows)
        if widths is None:
            raise self._unkept(expected, rows, are_counted=False)
        counts = self.buyer.plans.of(first, analyst, asked=asked, before=after)
        counts = replace(counts, before=[]).purchases
        return self._priced(first, counts, expected, widths, rows, analyst, after)

    def _priced(
        self,
        first: list[Marginal],
        counts: list[Purchase],
        tables: Sequence[IntervalTable],
        widths: Widths,
        rows: RowBounds | None,
        analyst: str,
        after: Sequence[Purchase],
    ) -> WithinPlan:
        """The plan of widths that are sure to keep the error, by what is known of the marginals or expected."""
        asked, plans = self.buyer.asked + 1 + len(first), self.buyer.plans
        wanted, look = self._wanted(tables, widths), self._look(tables, widths, rows)
        try:
            looks = plans.within(wider(wanted), asked=asked, after=[*after, *counts]) if look else []
            within = plans.within(wanted, asked=asked, after=[*after, *counts, *looks])
        except ParameterError as error:  # noise that is surely bounded has a least width, and a largest price
            raise RefusedError(
                f"no noise of this session keeps an error of {self._told_error}: {error}",
                remedy="ask for a wider `error`, or leave it out",
            ) from error
        price = self.buyer.funds(analyst).quote([*counts, *looks, *within])
        fewest = self._ends.fewest(tables) if first else None
        return WithinPlan(
            first, counts, look, wanted, widths, looks, within, price, None if fewest is None else fewest[0]
        )

    def _look(
        self, tables: Sequence[IntervalTable], widths: Widths, rows: RowBounds | None
    ) -> list[tuple[Marginal, float]]:
        """What may keep the error, and costs much less than what is sure to; nothing where nothing does."""
        if self._search.of_ratios:
            return []
        small = self._ends.small(tables)
        found = self._search.typical(tables, lambda placed: self._ends.off(placed, small, rows), self._aim)
        if found is None:
            return []
        known = [float((table.high - table.low).max(initial=0.0)) / 2 for table in tables]
        narrow = tuple(
            max(min(w, NARROWER * k), sure) for w, k, sure in zip(found, known, widths, strict=True)
        )
        return self._wanted(tables, narrow) if is_ahead(tables, narrow, widths) else []

    def _widths(
        self, tables: Sequence[IntervalTable], rows: RowBounds | None = None, before: Widths | None = None
    ) -> Widths | None:
        """How wide the intervals of the marginals may be by what is known; None where no widths keep the error."""
        small = self._ends.small(tables)
        return self._search.widths(
            self._where_off(tables, rows),
            lambda placed: self._ends.off(placed, small, rows),
            self._aim,
            before=before,
        )

    def _where_off(self, tables: Sequence[IntervalTable], rows: RowBounds | None) -> Sequence[IntervalTable]:
        """What is known of the marginals, up to where an answer is the most off.

        A share of a private number of rows is off by more the larger it is, until its interval ends at the fewest
        rows that there may be: beyond that it is cut to 1.
        """
        if not isinstance(self.question, ShareQuestion):
            return tables
        fewest = (rows or self.buyer.known.rows).least
        return [IntervalTable(np.minimum(t.low, fewest), np.minimum(t.high, fewest)) for t in tables]

    @property
    def _aim(self) -> float:
        return self.error if self._search.of_ratios else CAUTION * self.error

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
        if not self._search.of_ratios:
            return False
        widths = [float(self.buyer.promise.width) / MUCH] * len(self.marginals)
        small = self._ends.small(tables)
        found = [self._ends.off(placed, small) for placed in self._search.placed(tables, widths)]
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

    def _unkept(
        self, tables: Sequence[IntervalTable], rows: RowBounds | None, *, are_counted: bool
    ) -> RefusedError:
        """The refusal of an error that no precision keeps by what is known, or expected, of the rows."""
        small = self._ends.small(tables)
        by = self.marginals[0].by if self.marginals else ()
        has_groups = bool(by) or any(column.kind == "key" for column in self.question.columns)
        unkept = UnkeptError(
            search=self._search,
            tables=tables,
            off=lambda placed: self._ends.off(placed, small, rows),
            error=self.error,
            aim=self._aim,
            told_error=self._told_error,
            fewest=self._ends.fewest(tables),
            groups="" if not has_groups else "cells" if self._ends.is_by_cells(by) else "expressions",
            so_far="the rows were counted, and nothing more was bought"
            if are_counted
            else "nothing was bought",
        )
        return unkept.refusal()

    def _dearer(self, plan: WithinPlan, told: WithinPlan, asking: Asking) -> RefusedError:
        """The refusal of a price that is beyond the one `told`, once the rows were counted."""
        self._check(plan.purchases, asking)  # who cannot pay for it need not ask again
        return dearer_than_told(
            error=self._told_error,
            price=f"{plan.price.currency} {plan.price.amount:.4g}",
            fewest=self._ends.fewest(self._ends.tables()),
            expected=told.fewest,
        )
