"""Buying for a session: one purchase after the other, each written down, charged, made and made known.

Whoever buys holds `lock`, while the table is looked at too. Plans have a lock of their own (`purchase_plans`).
What was bought is made known by putting a new `Deduction` in the place of the old one: whoever answers from that
waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from understudy.answer.answer import Answer, noise_together
from understudy.curator.curator import Curator
from understudy.errors import (
    InsufficientBudgetError,
    OvertakenError,
    PriceRoseError,
    RefusedError,
    RequestConflictError,
)
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.interface import JournalStep
from understudy.privacy.cost import Cost
from understudy.privacy.sweeping import load
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import AnswerMemory, identity
from understudy.sessions.asking import Asking, RequestRecord
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.checkpoint import SessionCheckpoint
from understudy.sessions.deduction import Deduction, SessionPromise
from understudy.sessions.forecast import MOST_BESIDE
from understudy.sessions.funds import Funds
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.purchase import Purchase, PurchaseRequest, PurchaseResult
from understudy.sessions.purchase_journal import PurchaseJournal
from understudy.sessions.purchase_plans import PurchasePlans
from understudy.sessions.question_plan import QuestionPlan, without_repeats
from understudy.sessions.terms import Announced
from understudy.sessions.within_error import WithinPurchase

LOADED_AFTER = 12
"""After so many purchases of a process joint prices will need machine code (`joint.COMPILED`): it is loaded then,
while the table is looked at, and not when somebody waits for a price."""

TRIES = 100
"""How often a process starts over because another one bought something in between."""


class Buyer:
    """The purchases of one session: its journal, the `plans` of them, and what is `known` after each.

    Promise     A purchase is charged once, before the table is looked at, to the analyst who asked for it.
    Why         It and its debit are one transaction, under a request that its number names (`purchase_journal`).

    Safe for threads, and for processes that share a durable ledger. `owner` pays for steps that name nobody.
    """

    def __init__(self, promise: SessionPromise, *, name: str, owner: str, lazily: bool) -> None:
        self.curator: Curator = promise.curator
        self.promise = promise
        self.memory = AnswerMemory()
        self.owner = owner
        self.calibrator = Calibrator(self.curator, promise.width)
        self.plans = PurchasePlans(promise, self.calibrator, self.memory, self.funds)
        self.nothing = self.curator.ledger.budget.total([])
        self.requests: dict[str, RequestRecord] = {}
        self._made = 0
        self.asked = 0
        """How many questions the session was asked so far, as far as this process knows."""
        self.lock = AskingLock("session")
        self.journal = self.curator.recorded(
            promise.terms.text(),
            lambda text: PurchaseJournal(self.curator.ledger, text, name=name, analyst=owner, lazily=lazily),
        )
        self._checkpoint = SessionCheckpoint(
            self.curator.ledger, self.journal, bound=promise.fixed, known=self._fixed_objects()
        )

    # ---- what needs no lock

    @property
    def known(self) -> Deduction:
        """What is known after the purchases so far, and answers that follow from it."""
        return self.plans.known

    @property
    def policy(self) -> PurchasePolicy:
        """What says which purchase comes next, told of those so far."""
        return self.plans.policy

    def funds(self, analyst: str) -> Funds:
        """What this analyst may still spend."""
        return Funds(self.calibrator, self.curator.ledger, analyst)

    def check_request(self, asking: Asking) -> None:
        """Refuse a request under which something else was bought, as far as this process knows."""
        if asking.request is not None:
            asking.check(self.requests.get(asking.request))

    def holds(self, plan: QuestionPlan) -> bool:
        """Whether nothing was bought since a plan was made, or only what it says."""
        return plan.step == self.journal.length

    # ---- purchases, by whoever holds the lock

    def deduced(self, marginal: Marginal, charged: Cost) -> Answer | None:
        """An answer from what is known by now, which is then remembered; None where that is not enough."""
        answer = self.known.answer(marginal, charged)
        if answer is None:
            return None
        if not charged.units:
            self.plans.serve(marginal)
        kept = self.memory.keep_free(marginal, answer)
        return answer if kept is answer else replace(kept, source=answer.source, cost=charged)

    def bought(
        self, marginal: Marginal, asking: Asking, *, asked: int, plan: QuestionPlan | None = None
    ) -> Answer | None:
        """An answer that is bought, or follows from what another process bought; None if the budget cannot pay.

        What is bought is what `plan` says. Without one, and where others bought since, it is planned here. Raises
        a `RefusedError` where other processes buy something each time before this one can.
        """
        is_planned_anew = False
        for _ in range(TRIES):
            if self.catch_up():
                self.check_request(asking)
                known = self.memory.find(marginal)
                if known is not None:
                    return known.repeated(asking.charged)
                answer = self.deduced(marginal, asking.charged)
                if answer is not None:  # another process bought what tells it
                    return answer
            asking.asked = asked
            try:
                return self._buy(marginal, asking, asked, plan)
            except OvertakenError:
                continue
            except InsufficientBudgetError:
                if is_planned_anew:
                    return None
                is_planned_anew, plan = True, None
                self.plans.forget()
        raise RefusedError("other processes are asking in this session all the time; ask again")

    def _buy(self, marginal: Marginal, asking: Asking, asked: int, plan: QuestionPlan | None) -> Answer:
        """Make the purchases that are planned for a question, until what was released answers it."""
        if plan is None or not self.holds(plan) or plan.of(marginal) is None:
            purchases = self.plans.of_one(marginal, asking.analyst, asked=asked)
            plan = QuestionPlan({identity(marginal): purchases}, self.journal.length)
        is_told = False
        while not is_told:
            purchase, is_last = self.plans.next(marginal, asking.analyst, plan, asked=asked)
            result = self._make_planned(purchase, asking, plan)
            is_own = result.answer is not None and self.memory.find(marginal) is not None
            is_told = is_own or (is_last and self.known.intervals(marginal) is not None)
        self.keep_to(plan, marginal, asking)
        if (found := self.memory.paid.get(identity(marginal))) is not None:
            return replace(found, cost=asking.charged)
        answer = self.deduced(marginal, asking.charged)
        assert answer is not None  # what is known only grows
        self.plans.tell(lambda policy: policy.record.answered(marginal))
        return answer

    def _make_planned(self, purchase: Purchase, asking: Asking, plan: QuestionPlan) -> PurchaseResult:
        result = self.make(purchase, asking)
        plan.made(purchase, self.journal.length, result.cost)
        return result

    def keep_to(self, plan: QuestionPlan, marginal: Marginal, asking: Asking) -> None:
        """Make what is still planned for a question that needs it no more, where all that is planned beside it
        would else cost more than was told, and costs no more with it. [question_plan]

        Not where another process bought something, or where it cannot be paid any more.
        """
        try:
            while self.holds(plan) and self._is_dearer_without(plan, marginal, asking.analyst):
                self._make_planned((plan.of(marginal) or [])[0], asking, plan)
        except (OvertakenError, InsufficientBudgetError, PriceRoseError):
            return

    def _is_dearer_without(self, plan: QuestionPlan, marginal: Marginal, analyst: str) -> bool:
        """Whether a plan is within what was told with what is planned for a question, and is not without it."""
        left, beside, funds = plan.of(marginal), plan.beside(marginal), self.funds(analyst)
        if plan.most is None or not left or not 0 < len(beside) <= MOST_BESIDE:
            return False
        return funds.in_turn(beside) > plan.most >= funds.in_turn(without_repeats([*left, *beside]))

    def buy_within(self, purchases: Sequence[WithinPurchase], asking: Asking, *, asked: int) -> bool:
        """Make purchases that are planned, one after the other; for whoever holds the lock.

        Returns False where another process bought something in between: then what is left is planned anew. Raises
        an `InsufficientBudgetError` where one cannot be paid.
        """
        asking.asked = asked
        try:
            for purchase in purchases:
                self.make(purchase, asking)
        except OvertakenError:
            self.catch_up()
            return False
        return True

    def open_classes(self, analyst: str) -> None:
        """Buy the classes that the terms order, those that another process bought left out."""
        with self.lock:
            self._make_all(self.plans.next_of_opening, Asking(analyst, self.nothing))

    def order(self, named: Announced, asking: Asking) -> None:
        """Buy a class that is ordered, unless it was bought before.

        Raises an `InsufficientBudgetError`, and buys nothing, where not all of it can be paid.
        """
        with self.lock:
            self.catch_up()
            self.funds(asking.analyst).check(self.plans.of_order(named))
            self._make_all(lambda: self.plans.next_of_order(named), asking)

    def _make_all(self, following: Callable[[], Purchase | None], asking: Asking) -> None:
        """Make one purchase after the other, as they follow, until there is none."""
        while (purchase := following()) is not None:
            try:
                self.make(purchase, asking)
            except OvertakenError:
                self.catch_up()

    def make(self, purchase: Purchase, asking: Asking) -> PurchaseResult:
        """Make the next purchase: write it and its debit into the ledger in one transaction, then look.

        Raises an `InsufficientBudgetError` where it cannot be paid, a `PriceRoseError` where it is beyond what was
        agreed to, and an `OvertakenError` where another process bought something first: then nothing is written or
        charged.
        """
        funds = self.funds(asking.analyst)
        if asking.limit is not None:
            asking.limit.check(funds.quote([purchase]))
        funds.check([purchase])
        self.policy.beta.check(purchase)
        plan = {**purchase.plain(), **purchase.band(self.calibrator), **asking.plain(self.owner)}
        step = self.journal.plan(purchase.kind, plan, asking.words)
        draft = self.known.knowledge.copy()
        try:
            result = self._carry_out(purchase, asking, draft, step)
        except RequestConflictError as conflict:
            raise self.journal.taken(conflict) from None
        self._publish(draft)
        asking.charged = asking.charged + result.cost  # type: ignore[operator]  # one currency
        asking.spent += result.cost.units
        if asking.limit is not None:
            asking.limit.charged(result.cost)
        if self._checkpoint.is_due:
            with self.plans.at_rest():
                self._checkpoint.keep(self._state())
        self._made += 1
        if self._made == LOADED_AFTER:
            load()
        return result

    def _carry_out(
        self, purchase: Purchase, asking: Asking, draft: Knowledge, step: JournalStep | None = None
    ) -> PurchaseResult:
        """Carry out the purchase of the journal's next step, and add what it tells to a draft of the knowledge.

        `step` writes the purchase down where it is not in the journal yet. Under the request of the step, one that
        was made before is read back for nothing.
        """
        request = PurchaseRequest(self.journal.request, asking.analyst, step)
        result = purchase.make(self.calibrator, draft, request)
        self._finish(purchase)
        self.plans.tell(lambda policy: policy.record.made(purchase, result.cost))
        self._record(asking, result.cost)
        if result.answer is not None and result.marginal is not None:
            noise = noise_together(
                self.policy.record.noises
            )  # it rests on what was bought by now, whatever comes later
            answer = replace(result.answer, beta=float(self.promise.terms.beta), noise=noise)
            if not isinstance(purchase, WithinPurchase):
                certified = self.promise.certified(answer, draft.total[1], request=request.name)
                self.memory.keep_paid(result.marginal, certified)
            else:
                if purchase.width <= self.promise.width:
                    answer = self.promise.certified(answer, draft.total[1], request=request.name)
                self.memory.keep_closer(result.marginal, answer, self.promise.width)
        return result

    def _record(self, asking: Asking, cost: Cost) -> None:
        """Remember what was charged under a question's request, where it has one."""
        if asking.request is not None:
            self.requests[asking.request] = asking.after(self.requests.get(asking.request), cost)

    def _finish(self, purchase: Purchase) -> None:
        """Go on to the journal's next step, and take the share of the purchase from β.

        A purchase that failed between its debit and its answer is not finished: it stays the next step of the
        journal, and the next process that catches up with the journal carries it out.
        """
        self.journal.length += 1
        self._checkpoint.note(purchase.kind)
        self.plans.tell(lambda policy: policy.record.note(purchase))

    def _publish(self, draft: Knowledge) -> None:
        noise = noise_together(self.policy.record.noises)
        self.plans.known = replace(self.known, knowledge=draft, step=self.journal.length, noise=noise)

    def catch_up(self) -> bool:
        """Carry out, or read back, every purchase of the journal that this process does not know.

        Returns whether there were any.
        """
        resumed = not self.journal.length and self._resume()
        draft: Knowledge | None = None
        try:
            for plan in self.journal.later():
                draft = self.known.knowledge.copy() if draft is None else draft
                purchase, asking = self.policy.read(plan), Asking.read(plan, self.owner, self.nothing)
                self.asked = max(self.asked, asking.asked)
                try:
                    self._carry_out(purchase, asking, draft)
                except (InsufficientBudgetError, RequestConflictError):
                    # It was never paid, or was paid on another version of the table and never answered: its share
                    # of β is gone all the same.
                    paid = self.curator.ledger.find(self.journal.request)
                    self._record(asking, self.nothing if paid is None else paid.cost)
                    self._finish(purchase)
        finally:
            if draft is not None:
                self._publish(draft)
        return resumed or draft is not None

    # ---- checkpoints

    def _fixed_objects(self) -> Mapping[str, object]:
        """What the state refers to and every process makes for itself."""
        domain = self.curator.domain
        known: dict[str, object] = {f"attribute {attribute.name}": attribute for attribute in domain}
        known |= {"calibrator": self.calibrator, "terms": self.promise.terms, "domain": domain}
        return known | {"grid": self.known.knowledge.grid}

    def _state(self) -> dict[str, object]:
        """All that the purchases so far have come to; what was answered for nothing is deduced again."""
        return {
            "knowledge": self.known.knowledge,
            "policy": self.policy,
            "paid": self.memory.paid,
            "closer": self.memory.closer,
            "requests": self.requests,
            "asked": self.asked,
            "row sums": self.curator.row_sums.read,
        }

    def _resume(self) -> bool:
        """Go on from the newest checkpoint, where there is one that can be used."""
        found = self._checkpoint.load()
        if found is None:
            return False
        self.journal.length, state = found
        self.plans.policy, self.requests, self.asked = state["policy"], state["requests"], state["asked"]
        self.memory.paid, self.memory.closer = state["paid"], state["closer"]
        self.curator.row_sums.go_on_from(state["row sums"])
        self._publish(state["knowledge"])
        return True
