"""Answers to all parts of one question: quantiles first, by running sums, then the others, each by its own counts.

What both may buy is planned together before the first purchase, so that the price of the question holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from understudy.answer.answer import Answer
from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal
from understudy.sessions.asking import Asking
from understudy.sessions.part_answers import PartAnswers
from understudy.sessions.quantile_buyer import QuantileBuyer, Running
from understudy.sessions.question_plan import QuestionPlan


class QuestionAnswers:
    """The answers of a session to questions, each within the session's `width` or `uncertified`.

    A question is given as its `marginals`, and `running`, the quantiles for which running sums are enough. Answers
    are in the order of the marginals.

    quantiles  finds, and buys, what quantiles need
    """

    def __init__(self, parts: PartAnswers) -> None:
        self._parts = parts
        self._buyer = parts.buyer
        self.quantiles = QuantileBuyer(parts.buyer)

    def planned(self, marginals: Sequence[Marginal], running: Running, analyst: str) -> QuestionPlan:
        """All that the question may buy if this analyst asks it now."""
        plan = self._plan_with_quantiles(marginals, running, analyst)
        if plan is not None:
            return plan
        places = self.quantiles.places(marginals, running)
        return self._parts.planned([m for i, m in enumerate(marginals) if i not in places], analyst)

    def free(self, marginals: Sequence[Marginal], running: Running, asking: Asking) -> list[Answer] | None:
        """Answers from what is known now; None where something would have to be bought."""
        if not running:
            known = self._parts.free(marginals)
            return None if known is None else self._parts.with_cost(known, asking)
        if self._plan_with_quantiles(marginals, running, asking.analyst) is not None:
            return None
        told = self.quantiles.told(marginals, running)
        answers = self._parts.free([m for place, m in enumerate(marginals) if place not in told])
        return None if answers is None else self._parts.with_cost(_in_places(told, answers), asking)

    def answers(
        self,
        marginals: Sequence[Marginal],
        running: Running,
        asking: Asking,
        plan: QuestionPlan | None = None,
        *,
        uncertified: bool,
    ) -> list[Answer]:
        """Answers: for nothing where that is possible, else bought, else by the stand-in.

        `plan` is what parts without quantiles may buy, where that was planned before.
        """
        if not running:
            return self._parts.answers(marginals, asking, plan, uncertified=uncertified)
        self._buyer.check_request(asking)
        with self._parts.curator.one_question(marginals):
            plan = self._bought_for_quantiles(marginals, running, asking) or plan
            ahead = asking.charged
            told = self.quantiles.told(marginals, running)
            others = [marginal for place, marginal in enumerate(marginals) if place not in told]
            answers = self._parts.answers(others, asking, plan, uncertified=uncertified) if others else []
        answers = _in_places(told, answers)
        self.quantiles.keep(marginals, running, answers)
        self._parts.count(len(told))
        if not others:
            answers = self._parts.with_cost(answers, asking)
        if ahead.units:
            first = answers[0]
            source = first.source if first.source == "uncertified" else "measured"
            total: Cost = first.cost
            if asking.request is None:  # what is charged under a request is told with it anyway
                total = total + ahead  # type: ignore[operator]  # one currency
            answers = [replace(first, cost=total, source=source), *answers[1:]]
        return answers

    def _bought_for_quantiles(
        self, marginals: Sequence[Marginal], running: Running, asking: Asking
    ) -> QuestionPlan | None:
        """Buy what quantiles need, where that is not known and can be paid.

        Returns what is still planned then; None where there was nothing to buy for them.
        """
        if self._plan_with_quantiles(marginals, running, asking.analyst) is None:
            return None
        with self._buyer.lock:
            self._buyer.check_request(asking)  # another thread may have bought under it meanwhile
            return self.quantiles.buy(marginals, running, asking, asked=self._buyer.asked + 1)

    def _plan_with_quantiles(
        self, marginals: Sequence[Marginal], running: Running, analyst: str
    ) -> QuestionPlan | None:
        """What the question may buy with its quantiles; None where these need nothing, or are made of cells."""
        return self.quantiles.plan(marginals, running, analyst, asked=self._buyer.asked + 1)


def _in_places(told: Mapping[int, Answer], others: Sequence[Answer]) -> list[Answer]:
    """Answers in the order of a question's marginals: some by their places, and the others in their order."""
    rest = iter(others)
    return [told[i] if i in told else next(rest) for i in range(len(told) + len(others))]
