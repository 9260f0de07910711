"""Questions that are asked one after the other, for no more than was agreed to before the first of them.

The price of a question is that of the next one. After others it can cost more: they leave it less of β, and what
they paid can make a class due. So several questions are planned together, each after the purchases that are
planned for those before it, and the plan is kept to while they are asked (`question_plan`).

Promise     Whatever is asked, the questions are charged at most `price` together, or the limit that was agreed to
            in its place: a question that would pass it is refused with a `PriceRoseError`, and nothing is bought
            for it. Questions without quantiles and without an error of their own are all answered within `price`,
            as long as nobody else buys in the session and no two released numbers contradict each other.
Why         Each purchase is compared with what is left of the limit before it is made (`charge_limit`). The parts
            of all questions have one plan, which is kept to as the parts of one statement keep to theirs: what was
            charged and the quote of what is still planned never grow together, and every planned share of β is
            there when it is needed. [question_plan]
Ahead       What becomes due while the questions are asked, by what they paid, is bought ahead as in any session
            where a new plan of all that is left, with it, is within what is left of the limit. Else the plan is
            kept to, and it waits for a later command. Of more than `FEW` questions the price has room for that:
            it is half as much again as their own counts cost, which is what a session may cost beside direct
            answers [allowance], so that long lists cost what their questions do one by one.
Margin      Where located events are priced jointly the ledger's quote is a bound that gets better by sweeps, made
            whenever it has grown by a twentieth [privacy.joint]. With a planned purchase left out they come at
            another moment, and the bound of fewer events can be above that of more: by 2.2% at most in forty
            random lists of up to 40 questions. So what is told for several questions is a twentieth above their
            quote, unless the quote is the plain sum of their prices, which is exact.
Apart       What a quantile or an error of its own buys depends on what its first purchases tell. Such a question
            is planned when its turn comes, within the limit. The plan of the others goes on after it where it left
            enough of β for them; else, and where others bought in the session, what is left is planned anew.
Beyond      Where a question costs more by a new plan than is left of the limit, nothing is bought ahead for it:
            its own counts are tried before it is refused.
Privacy     Plans are functions of the questions, the declaration and released values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Protocol

from understudy.answer.answer import Answer
from understudy.answer.reader import Asked, ReadQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.errors import ParameterError
from understudy.privacy.cost import Cost
from understudy.privacy.joint import GROWTH
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.buyer import Buyer
from understudy.sessions.charge_limit import ChargeLimit
from understudy.sessions.closer_answers import CloserAnswer
from understudy.sessions.part_answers import PartAnswers
from understudy.sessions.purchase import Purchase
from understudy.sessions.quantile_buyer import QuantileBuyer, Running
from understudy.sessions.question_plan import QuestionPlan, is_own, without_repeats

MARGIN = GROWTH - 1
"""What is told for several questions is above their quote by this part of it, where they are priced jointly."""

FEW = 24
"""Of more questions than this the price has room for what is bought ahead."""

ROOM = Fraction(1, 2)
"""This room, as a part of what the questions' own counts cost."""

QUOTED = 16
"""Places of a long list up to which the price of its first questions is found."""

TRIES = 5
"""How often a plan is made anew because somebody bought something while it was made; the limit holds anyway."""


_Apart = dict[int, list[Purchase]]
"""What questions with quantiles, or an error of their own, may buy, by their places."""


@dataclass(frozen=True, eq=False)
class PutQuestion:
    """A question as it was read.

    asked      how its answer is made of counts
    marginals  the counts, with no more edges than they need
    running    its quantiles, by the places of their marginals
    error      how far off it may be, in its unit; None for the session's own promise
    """

    asked: ReadQuestion[Answer | SqlAnswer]
    marginals: tuple[Marginal, ...]
    running: Running
    error: float | None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for questions that buy the same."""
        return tuple(map(identity, self.marginals)), tuple(self.running.items()), self.error


def listed(questions: Sequence[Asked]) -> Sequence[Asked]:
    """Several questions; raises a `ParameterError` where one stands alone, whose letters are no questions."""
    if isinstance(questions, (str, Marginal, LinearQuery)):
        raise ParameterError(
            "several questions are a list", remedy="put the one in brackets, or `ask` it alone"
        )
    return questions


class AnswersUnderLimit(Protocol):
    """Answers a question under a limit, by what was planned for its parts."""

    def __call__(
        self,
        put: PutQuestion,
        payer: str,
        request: str | None,
        *,
        uncertified: bool,
        limit: ChargeLimit | None,
        plan: QuestionPlan | None,
    ) -> Answer | SqlAnswer: ...


class SeveralQuestions:
    """Questions of one analyst that are asked one after the other; made by `Session.several`, which plans them.

    Promise and reason are those of the module. It is for one thread; others may ask in the session meanwhile,
    which can make the rest dearer. Cost in time: the plan of each question, and a quote of all.

    price    the most that all of them cost, in the ledger's currency, if they are asked now
    """

    def __init__(
        self,
        put: Sequence[PutQuestion],
        analyst: str,
        parts: PartAnswers,
        quantiles: QuantileBuyer,
        answering: AnswersUnderLimit,
    ) -> None:
        self._put = tuple(put)
        self._analyst = analyst
        self._parts = parts
        self._quantiles = quantiles
        self._answering = answering
        self._plan, self._apart = self._planned(0)
        self._next_try = 0
        self._most = self._with_room(self._plan.purchases)
        self.price: Cost = self._most if len(self._put) > 1 else self._quote(self._plan.purchases)

    def __len__(self) -> int:
        return len(self._put)

    @property
    def _buyer(self) -> Buyer:
        return self._parts.buyer

    def _quote(self, purchases: Sequence[Purchase]) -> Cost:
        return self._buyer.funds(self._analyst).quote(purchases)

    def _told(self, purchases: Sequence[Purchase]) -> Cost:
        """The most that purchases are charged, however many of them are left out; the margin is the module's."""
        quote, budget = self._quote(purchases), self._buyer.curator.ledger.budget
        events = [self._buyer.calibrator.charged(one.event(self._buyer.calibrator)) for one in purchases]
        if len(events) < 2 or quote.units >= sum(budget.price(event).units for event in events):
            return quote
        return type(quote)(quote.units + ceil(quote.units * MARGIN))

    def _with_room(self, purchases: Sequence[Purchase]) -> Cost:
        """What is told for purchases: of a long list, with room for what is bought ahead."""
        told = self._told(purchases)
        return type(told)(told.units + ceil(told.units * ROOM)) if len(self._put) > FEW else told

    def prices(self) -> list[Cost]:
        """The most that the first question costs, the first two, and so on, as they were planned: the last is
        `price`, before anything is asked. A quote takes time for each purchase: of a long list it is found at
        `QUOTED` places, and questions between them have the price of the next such place.
        """
        found, planned = list[Cost](), list[Purchase]()
        since, every = 0, max(1, len(self._put) // QUOTED)
        for place, put in enumerate(self._put):
            planned += self._apart.get(place) or self._plan.of_parts(put.marginals)
            if place + 1 == len(self._put):
                found += [self.price] * (place + 1 - since)
            elif not place or (place + 1) % every == 0:
                so_far = max(
                    [self._with_room(without_repeats(planned)), *found[-1:]], key=lambda cost: cost.units
                )
                found += [min(so_far, self.price, key=lambda cost: cost.units)] * (place + 1 - since)
                since = place + 1
        return found

    def ask(self, *, most: Cost | None = None, uncertified: bool = True) -> Iterator[Answer | SqlAnswer]:
        """The answers, in the order of the questions, each bought when it is fetched.

        All of them together are charged at most `price`, or `most` in its place. Raises a `PriceRoseError` at the
        first question that would pass it, for which nothing is bought; answers before it stay known, and cost
        nothing when they are asked again. Else as `Session.ask`.
        """
        limit = ChargeLimit.of(self._most if most is None else most, self._buyer.calibrator.currency)
        for place in range(len(self._put)):
            yield self.ask_one(place, limit, uncertified=uncertified)

    def ask_one(
        self, place: int, limit: ChargeLimit, *, uncertified: bool = True, request: str | None = None
    ) -> Answer | SqlAnswer:
        """The answer to the question at a place, those before it being answered; raises as `ask` does."""
        put, buyer = self._put[place], self._buyer
        plan = self._ready(place, limit)
        step, made = buyer.journal.length, limit.made
        told = self._answering(put, self._analyst, request, uncertified=uncertified, limit=limit, plan=plan)
        if place in self._apart and self._plan.step == step == buyer.journal.length - (limit.made - made):
            self._go_on()
        return told

    # ---- plans

    def _planned(self, first: int) -> tuple[QuestionPlan, _Apart]:
        """What the questions from a place on may buy, and what of it is planned apart, by their places."""
        step = self._buyer.known.step
        found = self._planned_now(first, step)
        for _ in range(TRIES):
            if self._buyer.known.step == step:
                break
            step = self._buyer.known.step
            found = self._planned_now(first, step)
        return found

    def _planned_now(self, first: int, step: int) -> tuple[QuestionPlan, _Apart]:
        plan, asked, seen = QuestionPlan({}, step), self._buyer.asked + 1, set[tuple[Any, ...]]()
        planned_apart: _Apart = {}
        for place, put in list(enumerate(self._put))[first:]:
            if put.key in seen:
                continue
            seen.add(put.key)
            marginals = put.marginals
            if put.error is not None:
                closer = CloserAnswer(put.asked, marginals, put.error, self._parts)
                apart = closer.planned(self._analyst, plan.purchases)
            else:
                found = self._quantiles.plan(
                    marginals, put.running, self._analyst, asked=asked, after=plan.purchases
                )
                apart = None if found is None else found.purchases
            if apart is not None:
                planned_apart[place] = apart
                plan.before += apart
            else:
                told = self._quantiles.places(marginals, put.running)
                others = [one for i, one in enumerate(marginals) if i not in told]
                plan = self._buyer.plans.of(others, self._analyst, asked=asked, onto=plan)
            asked += len(marginals)
        plan.left = self._buyer.plans.left_after(plan.purchases)
        return plan, planned_apart

    def _ready(self, place: int, limit: ChargeLimit) -> QuestionPlan | None:
        """What was planned for a question whose turn it is, and is within the limit; None where it is planned
        apart.

        Raises a `PriceRoseError` where it is not within it.
        """
        buyer, put = self._buyer, self._put[place]
        if not buyer.holds(self._plan):
            with buyer.lock:
                buyer.catch_up()
            self._plan, self._apart = self._planned(place)
        elif place >= self._next_try:
            self._buy_ahead(place, limit)
        if place in self._apart:
            self._plan.before = [one for one in self._plan.before if one not in self._apart[place]]
            limit.check(self._quote(self._now(put)))
            return None
        own = self._plan.of_parts(put.marginals)
        if own and not buyer.funds(self._analyst).is_payable(own):  # a first look would be bought in vain
            limit.check(self._quote(self._now(put)))
            return None
        if not own:
            return self._plan
        plan, quote = self._plan, self._quote(own)
        if not limit.pays(quote):
            plan = buyer.plans.of_own(put.marginals, self._analyst, asked=buyer.asked + 1)
            quote = self._quote(plan.purchases)
            limit.check(quote)
        if len(self._put) == 1:  # the price of a list has a margin
            plan.most = quote.units
        return plan

    def _buy_ahead(self, place: int, limit: ChargeLimit) -> None:
        """Plan anew where something has become due that is bought ahead, if all that is left then is within the
        limit. It is not tried again at once where it was not: a plan takes time for every question.
        """
        put = self._put[place]
        planned = self._plan.of_parts(put.marginals)
        if place in self._apart or not planned or not is_own(planned):
            return
        asked = self._buyer.asked + 1
        if is_own(self._buyer.plans.of(put.marginals, self._analyst, asked=asked).purchases):
            return
        plan, apart = self._planned(place)
        if limit.pays(self._told(plan.purchases)):
            self._plan, self._apart = plan, apart
        else:
            self._next_try = place + 1 + (len(self._put) - place) // 8

    def _now(self, put: PutQuestion) -> list[Purchase]:
        """What a question that is planned apart buys if it is asked now, whatever was planned for it."""
        if put.error is not None:
            return CloserAnswer(put.asked, put.marginals, put.error, self._parts).planned(self._analyst)
        asked = self._buyer.asked + 1
        found = self._quantiles.plan(put.marginals, put.running, self._analyst, asked=asked)
        if found is not None:
            return found.purchases
        told = self._quantiles.places(put.marginals, put.running)
        others = [one for i, one in enumerate(put.marginals) if i not in told]
        return self._buyer.plans.of(others, self._analyst, asked=asked).purchases

    def _go_on(self) -> None:
        """Go on with the plan after a question apart, where that left what is planned enough of β."""
        plan = self._plan
        if self._buyer.plans.left_after(plan.purchases) >= plan.left:
            plan.step, plan.moved = self._buyer.journal.length, True
