"""Answers to the parts of a question: for nothing where what is known tells them, else bought, else by a stand-in.

What is known never changes, so it is read without a lock, and nobody waits for another's purchase. Whoever has to
buy holds the lock of the buyer, for one question at a time: all that its parts may buy is planned first, and where
the budget cannot pay for all of it, nothing is bought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from understudy.answer.answer import Answer
from understudy.curator.curator import Curator
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.ledger.asking_lock import AskingLock
from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import Buyer
from understudy.sessions.deduction import Deduction
from understudy.sessions.number_of_rows import NumberOfRows
from understudy.sessions.purchase import Purchase
from understudy.sessions.question_plan import QuestionPlan

if TYPE_CHECKING:
    from understudy.sessions.fitted_standin import FittedStandin


class PartAnswers:
    """The answers of a session to marginals, each within the session's `width` or `uncertified`.

    curator  the Curator of the table
    buyer    buys what is not known, and knows what was bought
    asked    how many questions were answered by this process

    Promise     Each answer is within the session's width where the bands that were bought hold, or is called
                `uncertified`. A question that was answered before gets the same answer for nothing. Of a question
                of several parts all are bought or none, unless others spend what it needed while it is answered.
    Why         Answers come from a `Deduction`, or from a purchase that was planned to keep the width. Who buys
                holds the buyer's lock, catches up with other processes, and compares the whole plan with the funds
                first.
    Privacy     What is free reads released values alone. Each purchase is charged by the Curator before it looks.
                Whether one is made depends on released values, prices, and what is left of the budget.
    Cost        For nothing, or what the plan of the question says at most. Free answers take no lock.
    """

    def __init__(self, curator: Curator, buyer: Buyer) -> None:
        self.curator = curator
        self.buyer = buyer
        self.asked = 0
        self._fitting = AskingLock("session")
        self._standin: tuple[int, FittedStandin] | None = None

    def answers(
        self,
        marginals: Sequence[Marginal],
        asking: Asking,
        plan: QuestionPlan | None,
        *,
        uncertified: bool,
    ) -> list[Answer]:
        """An answer for each marginal: for nothing where that is possible, else bought, else by the stand-in.

        `plan` is what they may still buy, where that was planned before.
        """
        self.buyer.check_request(asking)
        seen = self.buyer.known if len(marginals) == 1 else None
        answers = self.free(marginals)
        if answers is None:
            with self.buyer.lock, self.curator.one_question(marginals):
                self.buyer.check_request(asking)  # another thread may have bought under it meanwhile
                whole = True
                if len(marginals) > 1:
                    is_new = self.buyer.catch_up() or plan is None or not self.buyer.holds(plan)
                    if is_new or plan is None:
                        plan = self.planned(marginals, asking.analyst)
                    mine = plan.of_parts(marginals)
                    if is_new:
                        plan.most = self._most_of(mine, asking)
                    whole = self._is_affordable(mine, asking.analyst, refuse=not uncertified)
                told = list[Answer | Cost]()
                for part in marginals:
                    told.append(self._told(part, asking, seen, plan, uncertified=uncertified, buy=whole))
                    if plan is not None:
                        plan.answered(part)
            answers = [
                self._uncertified(part, answer) if isinstance(answer, Cost) else answer
                for part, answer in zip(marginals, told, strict=True)
            ]
        return answers if asking.request is None else self.with_cost(answers, asking)

    def free(self, marginals: Sequence[Marginal]) -> list[Answer] | None:
        """Answers to all of several questions from what is known now, in one moment; None where one needs more."""
        known, nothing = self.buyer.known, self.buyer.nothing
        answers, deduced = list[Answer](), list[tuple[int, Marginal]]()
        for place, marginal in enumerate(marginals):
            repeated = self.repeated(marginal)
            if repeated is not None:
                answers.append(repeated)
                continue
            answer = known.answer(marginal, nothing)
            if answer is None:
                return None
            answers.append(answer)
            deduced.append((place, marginal))
        for place, marginal in deduced:
            kept = self.buyer.memory.keep_free(marginal, answers[place])
            if kept is not answers[place]:  # another thread's, who may have paid for it
                answers[place] = replace(kept, source=answers[place].source, cost=nothing)
            self.buyer.plans.serve(marginal)
        self.count(sum(not isinstance(marginal, NumberOfRows) for marginal in marginals))
        return answers

    def repeated(self, marginal: Marginal) -> Answer | None:
        """The answer that was given to a question before, if it is remembered."""
        known = self.buyer.memory.find(marginal)
        return None if known is None else known.repeated(self.buyer.nothing)

    def count(self, questions: int) -> None:
        """Count questions; other threads may do so at the same time: it is about right, which is enough."""
        self.asked += questions
        self.buyer.asked += questions

    def planned(self, marginals: Sequence[Marginal], analyst: str) -> QuestionPlan:
        """All that questions may buy if this analyst asks them now, one after the other."""
        return self.buyer.plans.of(marginals, analyst, asked=self.buyer.asked + 1)

    def with_cost(self, answers: list[Answer], asking: Asking) -> list[Answer]:
        """The answers of a question; what earlier attempts under its request were charged is told with the first.

        The same request tells the same cost, however often it was interrupted. What was paid for under it and is
        deduced is `measured`: `implied` and `pinned` are words for answers that cost nothing.
        """
        known = None if asking.request is None else self.buyer.requests.get(asking.request)
        if known is None or not answers:
            return answers
        now = sum(answer.cost.units for answer in answers)
        first = type(known.cost)(answers[0].cost.units + known.cost.units - now)
        source = answers[0].source
        if first.units and source in ("implied", "pinned"):
            source = "measured"
        return [replace(answers[0], cost=first, source=source), *answers[1:]]

    def _told(
        self,
        marginal: Marginal,
        asking: Asking,
        seen: Deduction | None,
        plan: QuestionPlan | None,
        *,
        uncertified: bool,
        buy: bool,
    ) -> Answer | Cost:
        """What whoever holds the lock for buying can say: an answer; what was spent in vain where it has none.

        By what was known in `seen` there is no answer for nothing: it is not looked for there again.
        """
        if not isinstance(marginal, NumberOfRows):
            self.count(1)
        asking.charged = self.buyer.nothing
        repeated = self.repeated(marginal)
        if repeated is not None:
            return repeated
        answer = None
        if self.buyer.known is not seen:
            if plan is not None and self.buyer.known.intervals(marginal) is not None:
                asking.asked = self.buyer.asked
                self.buyer.keep_to(plan, marginal, asking)
            answer = self.buyer.deduced(marginal, asking.charged)
        if answer is None and buy:
            answer = self.buyer.bought(marginal, asking, asked=self.buyer.asked, plan=plan)
        if answer is not None:
            return answer
        if not uncertified:
            planned = self.planned([marginal], asking.analyst).purchases
            self._is_affordable(planned, asking.analyst, refuse=True)
            raise RefusedError("others spent what this needed; ask again")
        return asking.charged

    def _most_of(self, planned: Sequence[Purchase], asking: Asking) -> int | None:
        """What may be charged for all parts of a question, in units: its price; None for one purchase.

        Raises a `PriceRoseError` where it is beyond what was agreed to.
        """
        if len(planned) < 2 and asking.limit is None:
            return None
        price = self.buyer.funds(asking.analyst).quote(planned)
        if asking.limit is not None:
            asking.limit.check(price)
        return price.units

    def _is_affordable(self, purchases: Sequence[Purchase], analyst: str, *, refuse: bool) -> bool:
        """Whether the analyst can pay for all that questions may buy; where `refuse`, an error says why not."""
        try:
            self.buyer.funds(analyst).check(purchases)
        except InsufficientBudgetError:
            if refuse:
                raise
            return False
        return True

    def _uncertified(self, marginal: Marginal, charged: Cost) -> Answer:
        """An answer by the stand-in, which is fitted again after each purchase, from where it was."""
        from understudy.sessions.fitted_standin import FittedStandin  # late: with numba, which takes a second

        known = self.buyer.known
        with self._fitting:
            if self._standin is None or self._standin[0] != known.step:
                before = None if self._standin is None else self._standin[1].model
                self._standin = known.step, FittedStandin.of(known.knowledge, start=before)
            return known.uncertified(self._standin[1], marginal, charged)
