"""Questions to a session within an error of their own: in people, or in the unit of a sum, an average, a ratio.

An answer is made of counts and sums of which intervals are known. What its numbers can be off by follows from
these intervals, in their own unit (`answer.unit_error`). Where that is within the error asked for, the answer
costs nothing. Else the intervals have to be narrower, and it is found how narrow: the sums are bought within
that many people.

How many people is found for the worst place of the new intervals within the old ones. An average is
(sum)/(number of rows): with a sum within w people, a number of rows within v, and at least L rows, it is off by
at most (w + v)/L of the range of the values, and that is reached where the rows are fewest and the average is
largest. So intervals are tried at their lower ends and at their upper ones, and sums as large as the rows that
they are over. The widths of numbers of rows beside sums are tried at several ratios, of which the cheapest is
taken.

How many rows there are has to be known for that. Where it is not, the session counts them first, and the sums
with them, as it answers any question: within its own width, which costs little beside a narrow error, and tells
where the average lies. What the whole will cost is then not known beforehand: `price` is what it costs if the
rows are at least half as many as expected, and at least three times the session's width. That is the most that is
spent; where the rows turn out to be too few for it, the question is refused after they were counted, and the
refusal says what it would cost.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, SourceCounts
from understudy.answer.forecast import even_counts
from understudy.answer.reader import RateQuestion, ReadQuestion
from understudy.answer.select_question import SelectQuestion
from understudy.answer.unit_error import is_made_of_ratios, largest_half_width, unit_of
from understudy.domain.domain import Clique
from understudy.errors import QueryError, RefusedError
from understudy.privacy.cost import Cost
from understudy.query.box import Cells
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import TRIES, Buyer
from understudy.sessions.direct import intervals
from understudy.sessions.knowledge import TOUCHING, IntervalTable, Values
from understudy.sessions.predicted_counts import predicted
from understudy.sessions.within_error import WithinPurchase

LEAST_WIDTH = 1 / 16
"""In people: no sum is bought within less."""

STEPS = 24
"""Halvings of the logarithm of the width that is looked for."""

BESIDE = (1.0, 3.0, 10.0, inf)
"""How many times as wide as sums the numbers of rows beside them may be; infinite: as they are known."""

CAUTION = 0.8
"""The part of an error that is aimed at where it is not proven which tables are the worst."""

FEWEST = 3
"""In widths of the session: a group of at most so many rows is small, and a price beforehand goes by no fewer."""

MUCH = 3.0
"""How many times narrower than the session's width sums have to be for a look within that width to come first."""

EVEN = 1.05
"""Errors are the same up to this factor."""

DOMINANCE_CELLS = 1 << 16
"""Cells up to which it is looked whether one marginal counts no more than another in each of them."""

Widths = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Plan:
    """What a question within an error may buy.

    first    the counts that are asked for before, within the session's width, so that the rows are known
    within   what is bought then, within widths of its own; by what is expected where `first` is not empty
    price    the most that all of it costs
    """

    first: list[Marginal]
    within: list[WithinPurchase]
    price: Cost


@dataclass(eq=False)
class CloserAnswers:
    """Answers questions of one session within errors of their own; promise and reason are those of the module.

    `counted` has the session answer counts within its own width, and `planned` says what that may buy.
    """

    buyer: Buyer
    counted: Callable[[Sequence[Marginal], Asking], object]
    planned: Callable[[Sequence[Marginal], str], Sequence[Any]]
    _dominated: dict[tuple[object, object], bool] = field(default_factory=dict)

    def free(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], error: float
    ) -> list[Answer] | None:
        """Answers for the marginals of a question from what is known, if they keep the error; None where not."""
        tables = [self._known(marginal) for marginal in marginals]
        small = self._small(question, marginals, tables)
        if self._off(question, marginals, tables, small) > error * (1 + 1e-9):
            return None
        return [self._answer(marginal, table) for marginal, table in zip(marginals, tables, strict=True)]

    def price(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], analyst: str, error: float
    ) -> Cost:
        """The most that a question within an error costs; raises as `bought` does where it is refused."""
        if self.free(question, marginals, error) is not None:
            return self.buyer.nothing
        return self._plan(question, marginals, analyst, error).price

    def bought(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], asking: Asking, error: float
    ) -> list[Answer]:
        """Answers for the marginals that keep the error, bought where they are not known; holds the lock.

        Raises a `RefusedError` where no precision keeps the error, or the rows turn out to be too few for its
        price, and an `InsufficientBudgetError` where the budget cannot pay.
        """
        most: Cost | None = None
        are_counted = False
        for _ in range(TRIES):
            self.buyer.catch_up()
            self.buyer.check_request(asking)
            answers = self.free(question, marginals, error)
            if answers is not None:
                return self._told(answers, asking)
            plan = self._plan(question, marginals, asking.analyst, error, are_counted=are_counted)
            most = plan.price if most is None else most
            if plan.first:
                self.counted(plan.first, asking)
                are_counted = True
                continue
            if plan.price.units + asking.charged.units > most.units:
                raise self._too_few(question, marginals, plan, error)
            self.buyer.funds(asking.analyst).check(plan.within)
            if self.buyer.buy_within(plan.within, asking, asked=self.buyer.asked + 1):
                break
        answers = self.free(question, marginals, error)
        if answers is None:  # two bands contradict each other, or the expression is no sum of ratios
            raise RefusedError(
                f"what was bought does not keep an error of {error:g} ({unit_of(question)})",
                remedy="ask again, which buys more precision; or leave `error` out",
            )
        return self._told(answers, asking)

    # ---- what is known

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

    def _small(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], tables: Sequence[IntervalTable]
    ) -> Cells | None:
        """The groups that are known to be small, beside others that are not; None where there are none."""
        by = marginals[0].by if marginals else ()
        if not by or any(marginal.by != by for marginal in marginals) or not _is_by_cells(question, by):
            return None
        sizes = [t.high for t, holds in zip(tables, self._holders(marginals), strict=True) if holds]
        if isinstance(question, RateQuestion):
            sizes = [tables[0].high + tables[1].high]
        small = np.zeros(marginals[0].shape, bool)
        for high in sizes:
            small |= high <= FEWEST * self.buyer.promise.width
        return small if small.any() and not small.all() else None

    def _off(
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        tables: Sequence[IntervalTable],
        small: Cells | None,
    ) -> float:
        """How far a number of the answer can be off, in the question's unit, by intervals for its marginals.

        In people that is what a number of people, or a sum for another number, can be off by. Groups that are
        `small` are left out.
        """
        halves = [(table.high - table.low) / 2 for table in tables]
        if unit_of(question) == "people":
            if isinstance(question, SelectQuestion):
                return question.compiled.error(halves)
            return max((float(half.max(initial=0.0)) for half in halves), default=0.0)
        if small is not None:  # one row for sure in each of them, so that they are off by nothing
            one = [1.0 if holds else 0.5 for holds in self._holders(marginals)]
            tables = [
                IntervalTable(np.where(small, sure, table.low), np.where(small, sure, table.high))
                for sure, table in zip(one, tables, strict=True)
            ]
        cells = [
            _cells(self._answer(marginal, table)) for marginal, table in zip(marginals, tables, strict=True)
        ]
        known = self.buyer.known
        counts = SourceCounts(tuple(cells), known.rows(), float(known.promise.terms.beta), self.buyer.nothing)
        return largest_half_width(question, counts)

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
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        analyst: str,
        error: float,
        *,
        are_counted: bool = False,
    ) -> _Plan:
        """What the question may buy by what is known now; nothing first where that was bought (`are_counted`)."""
        asked, funds = self.buyer.asked + 1, self.buyer.funds(analyst)
        tables = [self._known(marginal) for marginal in marginals]
        widths = self._widths(question, marginals, tables, error)
        first = [] if are_counted else self._first(question, marginals, tables, widths)
        if not first:
            if widths is None:
                raise self._unkept(question, marginals, tables, error, are_counted=are_counted)
            within = self.buyer.within(_wanted(marginals, tables, widths), asked=asked)
            return _Plan([], within, funds.quote(within))
        expected = [
            self._expected(marginal) if marginal in first and _is_count(marginal) else table
            for marginal, table in zip(marginals, tables, strict=True)
        ]
        widths = self._widths(question, marginals, expected, error)
        if widths is None:
            raise self._unkept(question, marginals, tables, error, are_counted=False)
        counts = self.planned(first, analyst)
        within = self.buyer.within(_wanted(marginals, expected, widths), asked=asked + len(first))
        return _Plan(first, within, funds.quote([*counts, *within]))

    def _first(
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        tables: Sequence[IntervalTable],
        widths: Widths | None,
    ) -> list[Marginal]:
        """The marginals that are asked for first, within the session's width, where that is not known.

        All of them, where no widths keep the error by what is known, or they have to be much narrower than the
        session's; none where the error depends on the widths alone, as those of counts and sums do.
        """
        width = float(self.buyer.promise.width)
        if widths is not None and (self._is_even(question, marginals, tables) or min(widths) > width / MUCH):
            return []
        each = zip(marginals, tables, strict=True)
        return [marginal for marginal, table in each if _is_wider(table, width)]

    def _is_even(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], tables: Sequence[IntervalTable]
    ) -> bool:
        """Whether the error is the same wherever the intervals come to lie."""
        widths = [float(self.buyer.promise.width) / MUCH] * len(marginals)
        small = self._small(question, marginals, tables)
        placed = self._placed(marginals, tables, widths)
        found = [self._off(question, marginals, one, small) for one in placed]
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

    def _widths(
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        tables: Sequence[IntervalTable],
        error: float,
    ) -> Widths | None:
        """How wide the intervals of each marginal may be so that the error is kept wherever they come to lie.

        Half-widths in people; infinite for what is not bought. None where no widths keep it.
        """
        aim = error if is_made_of_ratios(question) else CAUTION * error
        holders, small = self._holders(marginals), self._small(question, marginals, tables)
        best: Widths | None = None
        least = inf
        ratios = BESIDE if 0 < sum(holders) < len(marginals) else (1.0,)
        for ratio in ratios:
            shape = tuple(ratio if holds else 1.0 for holds in holders)
            found = self._widest(question, marginals, tables, shape, aim, small)
            if found is None:
                continue
            cost = sum(
                1 / width**2 for width, table in zip(found, tables, strict=True) if _is_wider(table, width)
            )
            if cost < least:
                best, least = found, cost
        return best

    def _widest(
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        tables: Sequence[IntervalTable],
        shape: Widths,
        aim: float,
        small: Cells | None,
    ) -> Widths | None:
        """The widest half-widths in the proportions of `shape` that keep an error; None where none do."""

        def keeps(width: float) -> bool:
            widths = [width * part for part in shape]
            return all(
                self._off(question, marginals, placed, small) <= aim
                for placed in self._placed(marginals, tables, widths)
            )

        high = max((float((t.high - t.low).max(initial=0.0)) / 2 for t in tables), default=1.0)
        high = max(min(high, self.buyer.known.knowledge.total[1]), 1.0)
        low = LEAST_WIDTH
        if not keeps(low):
            return None
        for _ in range(STEPS):
            middle = sqrt(low * high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
            if high / low < 1.002:
                break
        return tuple(low * part for part in shape)

    def _placed(
        self, marginals: Sequence[Marginal], tables: Sequence[IntervalTable], widths: Sequence[float]
    ) -> Iterator[list[IntervalTable]]:
        """Intervals of these half-widths where they can come to lie: at the ends of what is known, sums at most as
        large as the rows that they are over.
        """
        holders = self._holders(marginals)
        for rows_at in (0.0, 1.0):
            for sums_at in (0.0, 0.5, 1.0):
                placed: list[IntervalTable] = []
                for marginal, table, width, holds in zip(marginals, tables, widths, holders, strict=True):
                    high = table.high
                    if not holds:
                        for other, held, at, their in zip(marginals, tables, holders, widths, strict=True):
                            if at and self._is_within(marginal, other):
                                high = np.minimum(high, _at(held, their, rows_at).high)
                    inner = IntervalTable(np.minimum(table.low, high), high)
                    placed.append(_at(inner, width, rows_at if holds else sums_at))
                yield placed
            if not any(holders):
                return

    def _holders(self, marginals: Sequence[Marginal]) -> list[bool]:
        """Which marginals are the numbers of rows that others are sums, or counts, over."""
        return [
            _is_count(marginal)
            and any(other is not marginal and self._is_within(other, marginal) for other in marginals)
            for marginal in marginals
        ]

    def _is_within(self, marginal: Marginal, other: Marginal) -> bool:
        """Whether no row adds more to one marginal than to another one, in each cell of both."""
        key = identity(marginal), identity(other)
        if key not in self._dominated:
            self._dominated[key] = _is_dominated(marginal, other)
        return self._dominated[key]

    # ---- refusals

    def _unkept(
        self,
        question: ReadQuestion[Any],
        marginals: Sequence[Marginal],
        tables: Sequence[IntervalTable],
        error: float,
        *,
        are_counted: bool,
    ) -> RefusedError:
        """The refusal of an error that no precision keeps by what is known of the rows."""
        fewest = [
            float(table.high.min(initial=inf))
            for marginal, table in zip(marginals, tables, strict=True)
            if _is_count(marginal)
        ]
        few = f": of some rows that it is about there are at most {min(fewest):,.0f}" if fewest else ""
        so_far = "the rows were counted, and nothing more" if are_counted else "nothing"
        return RefusedError(
            f"no precision is sure to keep an error of {error:g} ({unit_of(question)}){few}; {so_far} was bought",
            remedy="ask for a wider `error`, or leave it out; where the rows are few, ask for their number with a "
            "small `error` first; where bins are wide, have a `resolution` declared",
        )

    def _too_few(
        self, question: ReadQuestion[Any], marginals: Sequence[Marginal], plan: _Plan, error: float
    ) -> RefusedError:
        counts = [self._known(m) for m in marginals if _is_count(m)]
        fewest = min((float(table.high.min(initial=inf)) for table in counts), default=inf)
        price = f"{plan.price.currency} {plan.price.amount:.4g}"
        return RefusedError(
            f"the rows were counted, and are fewer than expected: at most {fewest:,.0f} of some; an error of "
            f"{error:g} ({unit_of(question)}) costs {price} more, which is beyond the price told",
            remedy="ask again: `price` goes by the number of rows that is known now; or ask for a wider `error`",
        )


def _cells(answer: Answer) -> CellCounts:
    return CellCounts(answer, answer.value, answer.error)


def _is_count(marginal: Marginal) -> bool:
    return marginal.moment is None and marginal.where.is_counting


def _is_by_cells(question: ReadQuestion[Any], by: Clique) -> bool:
    """Whether every group of an answer is one cell of the marginals."""
    return not isinstance(question, SelectQuestion) or set(question.compiled.grouped_by) == set(by)


def _is_wider(table: IntervalTable, width: float) -> bool:
    return bool((table.high - table.low > 2 * width + TOUCHING).any())


def _wanted(
    marginals: Sequence[Marginal], tables: Sequence[IntervalTable], widths: Widths
) -> list[tuple[Marginal, float]]:
    """The marginals that are not known to within their widths."""
    each = zip(marginals, tables, widths, strict=True)
    return [(marginal, width) for marginal, table, width in each if _is_wider(table, width)]


def _at(table: IntervalTable, width: float, place: float) -> IntervalTable:
    """Intervals of a half-width, or narrower ones, at a place between the lower end (0) and the upper end (1)."""
    half = np.minimum((table.high - table.low) / 2, width)
    middle: Values = table.low + half + place * (table.high - table.low - 2 * half)
    return IntervalTable(middle - half, middle + half)


def _is_dominated(marginal: Marginal, other: Marginal) -> bool:
    if marginal.by != other.by or marginal.domain != other.domain:
        return False
    if not _is_count(other) or (marginal.moment is not None and marginal.moment.low < 0):
        return False
    names = marginal.domain.clique({*marginal.where.clique, *other.where.clique})
    if marginal.domain.size(names) > DOMINANCE_CELLS:
        return False
    try:
        return bool((marginal.where.weights(names) <= other.where.weights(names)).all())
    except QueryError:
        return False
