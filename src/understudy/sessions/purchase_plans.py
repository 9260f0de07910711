"""What questions of a session would buy: plans, which read no data and buy nothing.

Plans have a lock of their own, held while the policy is asked or told something. So a price never waits for
somebody's look at the table. The lock is let go while a number is found that takes long (`found_once`): so a price
waits for no other's simulation.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from understudy.ledger.asking_lock import AskingLock
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import AnswerMemory, Identity, identity
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.deduction import Deduction, SessionPromise
from understudy.sessions.forecast import Forecast
from understudy.sessions.found_once import planned
from understudy.sessions.funds import Funds
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.purchase import Purchase
from understudy.sessions.question_plan import QuestionPlan, without_repeats
from understudy.sessions.terms import Announced
from understudy.sessions.within_error import WithinPurchase

Found = TypeVar("Found")

SERVED, MOST_SERVED = 1 << 8, 1 << 12
"""Free answers that the policy is not told yet: from the first number on it is told as soon as nobody plans, and
beyond the second the oldest are forgotten. Then classes count as having saved less, and are bought later."""

MOST_KEPT = 64
"""Plans of one state of the session that are kept: of questions that were priced, and may be asked next."""

_Questions = tuple[tuple[Identity, ...], int, str, int]
"""Questions that are planned together, the number of the first among all of the session, who asks them, and how
many units they may spend."""


class PurchasePlans:
    """Asks the policy of a session what questions would buy, and tells it what was bought.

    Promise     What a plan says is what its questions buy when they are asked next, or more than that costs
                (`Forecast`), whatever else was planned meanwhile. Nobody reads the policy while it is told
                something.
    Why         The policy is read and told under one lock alone. What is `known` is replaced as a whole, by
                whoever buys and without that lock: so a plan reads it once. Plans of the present state are kept,
                and who asks has the plan that a price was told for. Beyond the latest `MOST_KEPT` one is made
                anew: what the allowance permits is the same then, however many prices were found (`allowance`).
    Privacy     It reads the declaration, the terms, the questions and what was released.
    Cost        Nothing of the budget, and nothing of β. Plans are made one at a time.
    """

    def __init__(
        self,
        promise: SessionPromise,
        calibrator: Calibrator,
        memory: AnswerMemory,
        funds: Callable[[str], Funds],
    ) -> None:
        self.known: Deduction = promise.nothing_released()
        self.policy = PurchasePolicy(calibrator, promise.terms, self.known.knowledge)
        self._memory = memory
        self._funds = funds
        self._lock = AskingLock("session")
        self._served: deque[Marginal] = deque(maxlen=MOST_SERVED)
        self._changes = 0
        self._kept: OrderedDict[_Questions, QuestionPlan] = OrderedDict()
        self._state: tuple[int, Deduction] | None = None
        """Of which state of the session the kept plans are."""

    # ---- what the policy is told

    def serve(self, marginal: Marginal) -> None:
        """Let the policy know of a question that was answered for nothing, sooner or later."""
        self._served.append(marginal)
        if len(self._served) >= SERVED:
            with self._lock.if_free() as entered:
                if entered:
                    self._tell_served()

    def tell(self, news: Callable[[PurchasePolicy], None]) -> None:
        """Tell the policy of what was bought or answered; plans that were made before are made anew."""
        with self._lock:
            self._changes += 1
            news(self.policy)

    def forget(self) -> None:
        """Have the next plans made anew: others spent since they were made, and less may do."""
        with self._lock:
            self._kept.clear()

    @contextmanager
    def at_rest(self) -> Generator[None]:
        """Nobody plans meanwhile, and the policy was told of every free answer."""
        with self._lock:
            self._tell_served()
            yield

    def _tell_served(self) -> None:
        while self._served:
            self._changes += 1
            self.policy.record.served(self.known.knowledge, self._served.popleft())

    # ---- what questions buy

    def of(
        self,
        marginals: Sequence[Marginal],
        analyst: str,
        *,
        asked: int,
        before: Sequence[Purchase] = (),
        onto: QuestionPlan | None = None,
    ) -> QuestionPlan:
        """All that questions may buy if this analyst asks them now, one after the other.

        `asked` is the number of the first of them among all questions of the session; `before` is what quantiles
        buy before them. Where they come after those of a plan, they are put `onto` it.
        """
        known = self.known
        step = known.step  # of what is known, not of a purchase that is being made and tells nothing yet
        unknown = self._unknown(marginals, known)
        if not unknown:
            return QuestionPlan({}, step, before=list(before)) if onto is None else onto
        if not before and onto is None:
            return self._in_plans(lambda: self._of_state(unknown, analyst, asked))

        def of_all() -> QuestionPlan:
            planned = [*before, *(() if onto is None else onto.purchases)]
            forecast = self._forecast(analyst, known).after(without_repeats(planned))
            return forecast.of_all(unknown, asked=asked, step=step, onto=onto)

        found = self._in_plans(of_all)
        return replace(found, before=list(before)) if onto is None else found

    def of_own(self, marginals: Sequence[Marginal], analyst: str, *, asked: int) -> QuestionPlan:
        """What questions buy if nothing is bought ahead of them: their own counts alone."""
        known = self.known
        unknown = self._unknown(marginals, known)
        return self._in_plans(
            lambda: self._forecast(analyst, known).own_of_all(unknown, asked=asked, step=known.step)
        )

    def of_one(self, marginal: Marginal, analyst: str, *, asked: int) -> list[Purchase]:
        """What one question buys; whoever was told its price and asks it next does not have it found twice."""
        plan = self._in_plans(lambda: self._of_state([marginal], analyst, asked))
        return plan.parts[identity(marginal)]

    def within(
        self, wanted: Sequence[tuple[Marginal, float]], *, asked: int, after: Sequence[Purchase] = ()
    ) -> list[WithinPurchase]:
        """The purchases of marginals within widths of their own, in people, each after those before it.

        All of them come `after` others that are planned.
        """

        def each() -> list[WithinPurchase]:
            policy, found = self.policy.after(after) if after else self.policy, list[WithinPurchase]()
            for marginal, width in wanted:
                found.append(policy.within(marginal, width, asked=asked))
                policy = policy.after(found[-1:])
            return found

        return self._in_plans(each)

    def next(
        self, marginal: Marginal, analyst: str, plan: QuestionPlan, *, asked: int
    ) -> tuple[Purchase, bool]:
        """The next purchase of a planned question (`Forecast.next`), which comes as the `asked`-th of all."""

        def find(forecast: Forecast) -> tuple[Purchase, bool]:
            self.policy.record.allowance.comes(marginal, asked)
            return forecast.next(marginal, plan, asked=asked)

        return self.forecast(find, analyst)

    def left_after(self, purchases: Sequence[Purchase]) -> float:
        """What is left of β, as a probability, after purchases that are planned."""
        return self._in_plans(lambda: self.policy.after(without_repeats(purchases)).beta.left)

    def forecast(self, find: Callable[[Forecast], Found], analyst: str) -> Found:
        """What `find` makes of what questions buy if this analyst asks them now; nobody else plans meanwhile.

        It may be called again, and changes nothing.
        """
        return self._in_plans(lambda: find(self._forecast(analyst, self.known)))

    # ---- what orders of classes buy

    def of_order(self, named: Announced) -> list[Purchase]:
        """All that an order of a class buys; nothing where it was bought before."""

        def each() -> list[Purchase]:
            policy, found = self.policy, list[Purchase]()
            while (purchase := self._of_order(policy, named)) is not None:
                found.append(purchase)
                if not isinstance(purchase, HistogramPurchase):
                    break
                policy = policy.after([purchase])
            return found

        return self._in_plans(each)

    def next_of_order(self, named: Announced) -> Purchase | None:
        """The next purchase of an order of a class; None where all of them were made."""
        return self._in_plans(lambda: self._of_order(self.policy, named))

    def next_of_opening(self) -> Purchase | None:
        """The next purchase that comes before any question (`PurchasePolicy.opening`)."""
        return self._in_plans(lambda: self.policy.opening(self.known.knowledge))

    # ---- by whoever holds the lock

    def _in_plans(self, plan: Callable[[], Found]) -> Found:
        """Ask the policy, told of free answers before, under the lock of plans, which `planned` may let go."""
        return planned(self._lock, plan, before=self._tell_served)

    def _of_state(self, marginals: Sequence[Marginal], analyst: str, asked: int) -> QuestionPlan:
        """All that questions buy which nothing comes before: by the plan of this state of the session, if one was
        made for them.
        """
        known = self.known
        if self._state is None or self._state[0] != self._changes or self._state[1] is not known:
            self._kept.clear()
            self._state = self._changes, known
        payable = self._funds(analyst).ledger.available(analyst).units
        questions = tuple(map(identity, marginals)), asked, analyst, payable
        if questions not in self._kept:
            self._kept[questions] = self._of_all(marginals, analyst, asked, known)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(questions)
        return self._kept[questions].anew()

    def _of_all(
        self, marginals: Sequence[Marginal], analyst: str, asked: int, known: Deduction
    ) -> QuestionPlan:
        forecast = self._forecast(analyst, known)
        if len(marginals) > 1:
            return forecast.of_all(marginals, asked=asked, step=known.step)
        [marginal] = marginals
        return QuestionPlan({identity(marginal): forecast.of(marginal, asked=asked)}, known.step)

    def _of_order(self, policy: PurchasePolicy, named: Announced) -> Purchase | None:
        return policy.opening(self.known.knowledge) or policy.ordered(self.known.knowledge, named)

    def _forecast(self, analyst: str, known: Deduction) -> Forecast:
        """What questions buy if this analyst asks them now: what the policy wants and their limits allow."""
        return Forecast(self.policy, self._funds(analyst), known.knowledge)

    def _unknown(self, marginals: Sequence[Marginal], known: Deduction) -> list[Marginal]:
        """The questions that are neither remembered nor told by what is known."""
        return [m for m in marginals if self._memory.find(m) is None and known.intervals(m) is None]
