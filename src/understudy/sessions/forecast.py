"""What questions may buy if they are asked now, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from understudy.errors import InsufficientBudgetError
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import Identity, identity
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.funds import Funds
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.looks import LookPurchase
from understudy.sessions.own_counts import OwnCounts
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import Purchase
from understudy.sessions.question_plan import QuestionPlan, are_no_dearer, are_same, is_own, scope

MOST_BESIDE = 32
"""Purchases that are still planned for other parts of a question. Beside more than these, counts that are not
surely cheaper than planned ones are not quoted, which takes time for each purchase: planned ones are bought."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What the policy would buy for a question, less what the funds cannot pay for.

    Promise     A forecast buys nothing, spends nothing of β and reads no data. What a question buys when it is
                asked next is what is forecast, or costs less where the first of several purchases tells something
                (`question_plan`).
    Cost        The time of finding prices.

    `asked` counts the questions of the session so far, the one in hand included.
    """

    policy: PurchasePolicy
    funds: Funds
    knowledge: Knowledge

    def last(self, marginal: Marginal, *, asked: int) -> Purchase:
        """The purchase that answers a question: a class, if the policy wants one and it can be paid, else its own
        counts.
        """
        wanted = self.policy.purchase(self.knowledge, marginal, asked=asked)
        if isinstance(wanted, OwnCounts) or self.funds.is_payable([wanted]):
            return wanted
        return self.policy.counts(self.knowledge, marginal, asked=asked)

    def of(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """All that a question may buy, the purchase that answers it last.

        Before it come histograms, and the count of a group (`small_groups`); each only where it leaves enough of
        the budget for the answer. Of several looks the later ones are there as well, since they may be needed;
        where not all can be paid, the counts are bought in one.
        """
        answering = self._answering(marginal, asked=asked)
        before = list[Purchase]()
        histograms = self.policy.preparations(marginal, asked=asked)
        if histograms and self.funds.is_payable([*histograms, *answering]):
            before += histograms
        group = self._group(answering[-1], asked=asked)
        if group is not None and self.funds.is_payable([*before, group, *answering]):
            before.append(group)
        return [*before, *answering]

    def _group(self, wanted: Purchase, *, asked: int) -> Purchase | None:
        """The count of the rows of a class that would be bought ahead, where that may be enough."""
        if not isinstance(wanted, ProductPurchase) or wanted.asked_for:
            return None
        return self.policy.group_count(self.knowledge, wanted, asked=asked)

    def _answering(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        last = self.last(marginal, asked=asked)
        if not isinstance(last, LookPurchase):
            return [last]
        looks: list[Purchase] = [last, *last.later]
        if not last.is_first or self.funds.is_payable(looks):
            return looks
        return [self.policy.direct(self.knowledge, marginal, asked=asked)]

    def own_counts(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """The counts of a question bought by themselves, whatever is due; of several looks all."""
        last = self.policy.counts(self.knowledge, marginal, asked=asked)
        return [last, *last.later] if isinstance(last, LookPurchase) else [last]

    def after(self, purchases: Iterable[Purchase]) -> Forecast:
        """The forecast after purchases that are planned, and of which nobody knows yet what they tell."""
        return replace(self, policy=self.policy.after(purchases))

    def own_of_all(self, marginals: Iterable[Marginal], *, asked: int, step: int) -> QuestionPlan:
        """The counts of several questions by themselves, one after the other, and nothing ahead."""
        forecast, plans = self, dict[Identity, list[Purchase]]()
        for i, marginal in enumerate(marginals):
            if identity(marginal) not in plans:
                plans[identity(marginal)] = forecast.own_counts(marginal, asked=asked + i)
                forecast = forecast.after(plans[identity(marginal)])
        return QuestionPlan(plans, step, forecast.policy.beta.left)

    def of_all(
        self, marginals: Iterable[Marginal], *, asked: int, step: int, onto: QuestionPlan | None = None
    ) -> QuestionPlan:
        """All that several questions may buy, one after the other; `step` is the number of purchases so far.

        They are planned after the questions of a plan `onto` which they are put: the forecast is the one after it.

        Each is forecast under a copy of the policy from which the shares of β of the purchases before it are gone:
        later questions get less of β, and cost more. What is bought ahead is due by the rents that were paid
        before all of them. Counts that would complete a planned sum (`completing`) are planned by themselves from
        the second question on, since purchases before them can change what is known of the sum.
        """
        earlier = QuestionPlan({}, step) if onto is None else onto
        forecast, plans, are_first = self, dict(earlier.parts), not earlier.purchases
        planned = {what: one for one in earlier.purchases if (what := scope(one)) is not None}
        for i, marginal in enumerate(marginals):
            if identity(marginal) in plans:
                continue
            found = forecast.of(marginal, asked=asked + i)
            if (plans or not are_first) and isinstance(found[-1], CompletingPurchase):
                found[-1] = forecast.policy.direct(self.knowledge, marginal, asked=asked + i)
            purchases = list[Purchase]()
            for purchase in found:
                what = scope(purchase)
                if what is None or what not in planned:
                    forecast = forecast.after([purchase])
                purchases.append(purchase if what is None else planned.setdefault(what, purchase))
            plans[identity(marginal)] = purchases
        return QuestionPlan(plans, step, forecast.policy.beta.left, list(earlier.before))

    def next(self, marginal: Marginal, plan: QuestionPlan, *, asked: int) -> tuple[Purchase, bool]:
        """The next purchase for a part of a planned question, and whether what it tells may be the answer.

        Once something was bought, more is known than when the counts of a part were planned: others take their
        place that are no dearer and leave as much of β. [question_plan] Where all that was planned is made and
        tells too little, the purchase that answers the part is planned by what is known now.
        """
        planned = plan.of(marginal)
        if not planned:
            return self.last(marginal, asked=asked), True
        if not is_own(planned[:1]) and len(planned) > 1:
            return planned[0], len(planned) == 2 or is_own(planned[1:])
        if plan.moved and (counts := self._instead(marginal, planned, plan, asked=asked)):
            plan.change(marginal, counts)
            return counts[0], True
        return planned[0], True

    def _instead(
        self, marginal: Marginal, planned: list[Purchase], plan: QuestionPlan, *, asked: int
    ) -> list[Purchase]:
        """The counts of a part by what is known now, where they may take the place of what was planned for it.

        None where they may not, and where a class was planned that is still wanted, by this part or another.
        """
        beside, are_counts = plan.beside(marginal), is_own(planned)
        try:
            if not are_counts and (planned[0] in beside or not is_own([self.last(marginal, asked=asked)])):
                return []
            counts = self.own_counts(marginal, asked=asked)
        except (
            InsufficientBudgetError
        ):  # too little of β is left for counts other than those that were planned
            return []
        if self.policy.after([*counts, *beside]).beta.left < plan.left:
            return []
        cheaper, most = are_counts and are_no_dearer(counts, planned), plan.most
        if cheaper and (most is None or are_same(counts, planned) or len(beside) > MOST_BESIDE):
            return counts
        if len(beside) > MOST_BESIDE:
            return []
        if cheaper:
            return counts if most is None or self.funds.in_turn([*counts, *beside]) <= most else []
        new, old = (self.funds.quote([*some, *beside]) for some in (counts, planned))
        return counts if new.units <= (old.units if most is None else min(old.units, most)) else []
